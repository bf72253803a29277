/* SPDX-License-Identifier: MIT */
/* What programs ask of `.query`, one operation a line, its first byte saying which: a path is
 * looked up and read or listed, something is made, written to or removed there.  Whatever the
 * names, each operation is done or fails with an errno, and every name of a listing can be looked
 * up. */
#undef NDEBUG /* what is asserted is what is looked for */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fs/mount/query/virtual.h"
#include "tests/fuzz/tree_fuzz.h"

#define LINES_MAX  8
#define LISTED_MAX 20 /* names of a listing that are tried */

static void tell_nobody(void *arg PFS_UNUSED, uint64_t dir PFS_UNUSED, const char *name PFS_UNUSED)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pfs_mount mount;

static void close_mount(void)
{
	pfs_queries_close(mount.queries);
	(void)!pfs_tree_close(mount.tree);
}

static void open_mount(void)
{
	mount.tree = open_small_tree(false);
	mount.fd = -1;
	mount.options.query_memory = 8 << 20;
	mount.options.query_time_ms = 500;
	if (pfs_queries_open(&mount.queries, mount.tree) != 0 || atexit(close_mount) != 0)
		abort();
}

/* ---- the way ---- */

/* Goes to the entry of the call's node; -errno, and the call is where it was. */
static int enter(struct pfs_call *call, const char *name)
{
	struct pfs_virtual *dir = call->virtual, *virtual;
	struct pfs_virtual_found found = {&pfs_query_kind, NULL};

	if (dir && !dir->kind->lookup)
		return -ENOTDIR;
	if (dir)
		PFS_TRY(dir->kind->lookup(call, dir, name, &found));
	PFS_TRY(pfs_virtual_find(mount.virtuals, &virtual, dir, call->scope.ino, name,
				 call->scope.uid, &found));
	pfs_virtual_forget(mount.virtuals, virtual->node, 1); /* it is held */
	if (dir)
		pfs_virtual_drop(mount.virtuals, dir);
	call->virtual = virtual;
	return 0;
}

static int begin(struct pfs_call *call)
{
	*call = (struct pfs_call){
		.mount = &mount,
		.scope = {.ino = PFS_ROOT_PRIME,
			  .sees_all = true,
			  .memory_limit = mount.options.query_memory,
			  .time_limit_ms = mount.options.query_time_ms},
	};
	(void)pthread_mutex_init(&call->lock, NULL);
	return enter(call, PFS_QUERY_NAME);
}

static void end(struct pfs_call *call)
{
	if (call->virtual)
		pfs_virtual_drop(mount.virtuals, call->virtual);
	(void)pthread_mutex_destroy(&call->lock);
}

/* Goes down the path; *last is its last name, which is not entered if `stop`. */
static int walk(struct pfs_call *call, char *path, char **last, bool stop)
{
	char *rest = path, *name;

	*last = path;
	while ((name = strsep(&rest, "/")) != NULL) {
		*last = name;
		if (strlen(name) > 255) /* the kernel's own limit */
			return -ENAMETOOLONG;
		if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			return -ENOENT; /* the kernel's, too */
		if (stop && !rest)
			return 0;
		PFS_TRY(enter(call, name));
	}
	return 0;
}

/* ---- operations ---- */

static bool may_fail_so(int error)
{
	return error == -ETIMEDOUT || error == -ENOMEM || error == -EINTR || error == -ENAMETOOLONG;
}

static void look_up(struct pfs_call *call, const char *name, mode_t type)
{
	struct pfs_virtual_found found = {NULL, NULL};
	int error = call->virtual->kind->lookup(call, call->virtual, name, &found);

	assert(*name && !strchr(name, '/'));
	assert(error ? may_fail_so(error) : (found.kind->mode & S_IFMT) == type);
	free(found.data);
}

static void list(struct pfs_call *call)
{
	struct pfs_virtual_names names = {.names = NULL};
	struct pfs_virtual *dir = call->virtual;
	int error = dir->kind->list ? dir->kind->list(call, dir, &names) : 0;

	for (size_t i = 0; i < names.n && i < LISTED_MAX && !error; i++)
		look_up(call, names.bytes + names.names[i].at, names.names[i].type);
	pfs_virtual_names_finish(&names);
}

static void read_file(struct pfs_call *call)
{
	struct pfs_answer *answer;

	if (!call->virtual->kind->fill || pfs_answer_create(&answer, 1 << 16, 8 << 20) != 0)
		return;
	(void)!call->virtual->kind->fill(call, call->virtual, answer);
	pfs_answer_close(answer);
}

static void look(struct pfs_call *call)
{
	if (S_ISDIR(call->virtual->kind->mode))
		list(call);
	else if (S_ISREG(call->virtual->kind->mode))
		read_file(call);
	else
		assert(*(const char *)call->virtual->data); /* a link's target */
}

static void store(struct pfs_call *call, const char *bytes)
{
	const struct pfs_virtual_kind *kind = call->virtual->kind;
	struct pfs_answer *written;

	if (!kind->store || pfs_answer_create(&written, 1 << 16, kind->store_limit) != 0)
		return;
	if (pfs_answer_write(written, bytes, strlen(bytes)) == 0)
		(void)!kind->store(call, call->virtual, written);
	pfs_answer_close(written);
}

/* "wPATH TAB BYTES", where \v stands for the end of a line. */
static void write_file(struct pfs_call *call, char *path)
{
	char *bytes = strchr(path, '\t'), *name;

	if (!bytes)
		return;
	*bytes++ = 0;
	for (char *c = bytes; *c; c++)
		*c = *c == '\v' ? '\n' : *c;
	call->making = true; /* as one that is made to be written */
	if (walk(call, path, &name, false) == 0)
		store(call, bytes);
}

static void make_or_remove(struct pfs_call *call, char *path, bool make, mode_t type)
{
	const struct pfs_virtual_kind *kind;
	char *name;

	if (walk(call, path, &name, true) != 0)
		return;
	kind = call->virtual->kind;
	if (make && kind->make && kind->make(call, call->virtual, name, type) == 0) {
		call->making = true;
		assert(enter(call, name) == 0);
	} else if (!make && kind->remove) {
		(void)!kind->remove(call, call->virtual, name, type);
	}
}

static bool run_line(char *line)
{
	struct pfs_call call;
	char *name;

	if (begin(&call) != 0)
		abort();
	switch (*line) {
	case 'm':
	case 'f':
	case 'd':
	case 'u':
		make_or_remove(&call, line + 1, *line == 'm' || *line == 'f',
			       *line == 'm' || *line == 'd' ? S_IFDIR : S_IFREG);
		break;
	case 'w':
		write_file(&call, line + 1);
		break;
	default:
		if (walk(&call, line, &name, false) == 0)
			look(&call);
	}
	end(&call);
	return *line == 'm' || *line == 'w';
}

/* ---- afterwards ---- */

static void remove_all(const char *dir, mode_t type)
{
	struct pfs_virtual_names names = {.names = NULL};
	struct pfs_call call;

	if (begin(&call) != 0 || (dir && enter(&call, dir) != 0) ||
	    call.virtual->kind->list(&call, call.virtual, &names) != 0)
		abort();
	for (size_t i = 0; i < names.n; i++)
		(void)!call.virtual->kind->remove(&call, call.virtual,
						  names.bytes + names.names[i].at, type);
	pfs_virtual_names_finish(&names);
	end(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), *rest = text, *line;
	bool changed = false;

	if (!mount.tree)
		open_mount();
	if (!text || pfs_virtuals_open(&mount.virtuals, tell_nobody, NULL) != 0 ||
	    pfs_reasons_open(&mount.reasons) != 0)
		abort();
	if (size)
		memcpy(text, data, size);
	for (unsigned n = 0; n < LINES_MAX && (line = strsep(&rest, "\n")) != NULL; n++)
		changed |= run_line(line);
	if (changed) {
		remove_all(NULL, S_IFDIR);
		remove_all("tables", S_IFREG);
	}
	pfs_virtuals_stop(mount.virtuals);
	pfs_virtuals_close(mount.virtuals);
	pfs_reasons_close(mount.reasons);
	free(text);
	return 0;
}
