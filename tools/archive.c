/* SPDX-License-Identifier: MIT */
#include "tools/archive.h"

#if PFS_ARCHIVE

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifndef PFS_ARCHIVE_LIBRARY /* the name that the build has found */
#define PFS_ARCHIVE_LIBRARY "libarchive.so.13"
#endif

struct pfs_archive_functions pfs_archive;

static const struct {
	const char *name;
	size_t at; /* its place in pfs_archive */
} functions[] = {
#define FUNCTION(name) {"archive_" #name, offsetof(struct pfs_archive_functions, name)},
	PFS_ARCHIVE_FUNCTIONS(FUNCTION)
#undef FUNCTION
	{"archive_errno", offsetof(struct pfs_archive_functions, error_number)},
};

/* Bytes are copied: C has no way from a pointer to an object to one to a function. */
static bool find_all(void *library)
{
	for (size_t i = 0; i < PFS_COUNT(functions); i++) {
		void *symbol = dlsym(library, functions[i].name);

		if (!symbol)
			return false;
		memcpy((char *)&pfs_archive + functions[i].at, &symbol, sizeof(symbol));
	}
	return true;
}

int pfs_archive_load(const char **reason)
{
	static bool loaded;
	void *library;

	if (loaded)
		return 0;
	library = dlopen(PFS_ARCHIVE_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* it stays open */
	loaded = library && find_all(library);
	if (!loaded && reason)
		*reason = dlerror();
	return loaded ? 0 : -ENOENT;
}

#endif
