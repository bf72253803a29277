/* SPDX-License-Identifier: MIT */
/* What an import says while it goes on. */
#include "tools/import/import.h"

#include <stdarg.h>
#include <string.h>

static PFS_PRINTF(2, 0) void say(struct pfs_import *import, const char *format, va_list values)
{
	char message[8192];

	(void)vsnprintf(message, sizeof(message), format, values);
	(void)pthread_mutex_lock(&import->mutex);
	pfs_progress_clear(&import->progress);
	if (import->say)
		import->say(import->say_arg, message);
	else
		(void)pfs_cmd_fail("import", "%s", message);
	(void)pthread_mutex_unlock(&import->mutex);
}

int pfs_import_problem(struct pfs_import *import, const char *format, ...)
{
	va_list values;

	/* threads may meet with several before they see that the first one has ended it */
	if (!import->options.skip && __atomic_exchange_n(&import->stopped, true, __ATOMIC_RELAXED))
		return -ECANCELED;
	va_start(values, format);
	say(import, format, values);
	va_end(values);
	(void)__atomic_fetch_add(&import->report.skipped, 1, __ATOMIC_RELAXED);
	return import->options.skip ? 0 : -ECANCELED;
}

int pfs_import_fail(struct pfs_import *import, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(import, format, values);
	va_end(values);
	return -ECANCELED;
}

void pfs_import_warn(struct pfs_import *import, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(import, format, values);
	va_end(values);
}

void pfs_import_note_column(struct pfs_import *import, const char *name)
{
	char *list = import->report.columns;
	size_t len = strlen(list);

	(void)snprintf(list + len, sizeof(import->report.columns) - len, "%s\"user.%s\"",
		       len ? ", " : "", name);
}

const char *pfs_import_name_error(int error)
{
	switch (error) {
	case -ENAMETOOLONG:
		return "a name is longer than 255 bytes";
	case -EINVAL:
		return "a name is empty, '.' or '..', or has a '/' or a NUL in it";
	case -ELOOP:
		return "'..' in a path; write paths from the top down";
	case -ENOTDIR:
		return "lies in, or is, something that is no directory";
	case -EEXIST:
		return "is in the store already; import it under another --at";
	case -ENOTUNIQ:
		return ".query is stored as .query~, and both are there";
	case -EOVERFLOW:
		return "a store holds at most 1,073,741,824 nodes";
	default:
		return strerror(-error);
	}
}

void pfs_import_progress(struct pfs_import *import)
{
	if (import->options.quiet)
		return;
	(void)pthread_mutex_lock(&import->mutex);
	pfs_progress_show(&import->progress, "%llu nodes read",
			  (unsigned long long)pfs_build_count(import->build));
	(void)pthread_mutex_unlock(&import->mutex);
}

/* ---- what cannot be read ---- */

int pfs_import_keep(struct pfs_import *import)
{
	int error = pfs_input_keep(&import->input);

	if (error && error != -ENOMEM)
		return pfs_import_fail(import,
				       "%s: has to be kept in a temporary file, in $TMPDIR or "
				       "/tmp: %s",
				       import->input.name, strerror(-error));
	return error;
}

int pfs_import_unreadable(struct pfs_import *import, int error)
{
	if (error == -ENOSPC && import->input.kept_fd >= 0)
		return pfs_import_fail(import,
				       "%s: no space left for the temporary file that keeps it; "
				       "set TMPDIR to a folder with more",
				       import->input.name);
	return pfs_import_fail(import, "%s: %s", import->input.name,
			       import->input.why ? import->input.why : strerror(-error));
}
