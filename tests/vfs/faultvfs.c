/* SPDX-License-Identifier: MIT */
#include "tests/vfs/faultvfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/vfs/fault_impl.h"

struct fault_file {
	sqlite3_file base;
	int recorded; /* its number in the recording, or -1 */
	sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;
static sqlite3_mem_methods real_memory;
static _Thread_local int last_errno; /* of the failure just injected */
static _Thread_local bool spared;

/* ---- the plan ---- */

static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault_plan plan;	  /* protected by plan_lock */
static uint64_t calls, failures;  /* protected by plan_lock */
static const char *plan_file;	  /* PFS_FAULT_FILE; fixed once registered */
static struct timespec plan_time; /* protected by plan_lock: of the plan_file that was read */

static void set_locked(const struct fault_plan *next)
{
	plan = next ? *next : (struct fault_plan){.count = 0};
	calls = 0;
	failures = 0;
}

void fault_spare(bool spare)
{
	spared = spare;
}

void fault_set(const struct fault_plan *next)
{
	PFS_LOCKED(&plan_lock);

	set_locked(next);
}

uint64_t fault_calls(void)
{
	PFS_LOCKED(&plan_lock);

	return calls;
}

uint64_t fault_failures(void)
{
	PFS_LOCKED(&plan_lock);

	return failures;
}

static int parse_calls(unsigned *out, char *text)
{
	static const char *const names[FAULT_CALLS] = {"open", "read",	 "write",  "truncate",
						       "sync", "delete", "access", "size",
						       "shm",  "lock",	 "memory"};
	char *rest = NULL, *word;
	unsigned bits = 0;
	int i;

	for (word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (strcmp(word, "any") == 0) {
			bits |= FAULT_ANY;
			continue;
		}
		for (i = 0; i < FAULT_CALLS && strcmp(word, names[i]) != 0; i++)
			;
		if (i == FAULT_CALLS)
			return -EINVAL;
		bits |= FAULT_BIT(i);
	}
	*out = bits;
	return bits ? 0 : -EINVAL;
}

static int parse_errno(int *out, const char *text)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"ENOMEM", ENOMEM}};
	size_t i;

	for (i = 0; i < PFS_COUNT(errors); i++) {
		if (strcmp(text, errors[i].name) == 0) {
			*out = errors[i].error;
			return 0;
		}
	}
	return -EINVAL;
}

int fault_parse(struct fault_plan *out, const char *text)
{
	struct fault_plan parsed = {.count = 0};
	char words[100], count[21], error[16];
	unsigned long long first;

	if (text[strspn(text, " \n")] == 0) {
		*out = parsed;
		return 0;
	}
	/* NOLINTNEXTLINE(cert-err34-c): written by a test */
	if (sscanf(text, "%99[^:]:%llu:%20[^:]:%15s", words, &first, count, error) != 4)
		return -EINVAL;
	parsed.first = first;
	parsed.count = strcmp(count, "*") == 0 ? FAULT_FOR_EVER : strtoull(count, NULL, 10);
	if (parse_calls(&parsed.calls, words) || parse_errno(&parsed.error, error))
		return -EINVAL;
	*out = parsed;
	return 0;
}

/* Takes over the plan file's plan when the file has changed. */
static void look_at_file(void)
{
	FILE *file PFS_FCLOSE = NULL;
	struct fault_plan next;
	char text[200] = "";
	struct stat st;

	if (stat(plan_file, &st))
		return;
	if (st.st_mtim.tv_sec == plan_time.tv_sec && st.st_mtim.tv_nsec == plan_time.tv_nsec)
		return;
	file = fopen(plan_file, "re");
	if (!file)
		return;
	plan_time = st.st_mtim;
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	if (fault_parse(&next, text))
		(void)fprintf(stderr, "%s: no plan of faults: %s\n", plan_file, text);
	else
		set_locked(&next);
}

/* The errno that this call fails with; 0: it goes on. */
static int fault_of(enum fault_call call)
{
	PFS_LOCKED(&plan_lock);

	if (plan_file)
		look_at_file();
	if (spared || !(plan.calls & FAULT_BIT(call)))
		return 0;
	if (calls++ < plan.first || calls - plan.first > plan.count)
		return 0;
	failures++;
	last_errno = plan.error;
	return plan.error;
}

static int result_of(int error, int io_result)
{
	if (error == ENOMEM)
		return SQLITE_IOERR_NOMEM;
	return error == ENOSPC && io_result == SQLITE_IOERR_WRITE ? SQLITE_FULL : io_result;
}

/* ---- files ---- */

static struct fault_file *own(sqlite3_file *file)
{
	return (struct fault_file *)file;
}

static int fault_close(sqlite3_file *file)
{
	sqlite3_file *real = own(file)->real;

	return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *data, int len, sqlite3_int64 offset)
{
	sqlite3_file *real = own(file)->real;
	int error = fault_of(FAULT_READ);

	if (error)
		return result_of(error, SQLITE_IOERR_READ);
	return real->pMethods->xRead(real, data, len, offset);
}

static int fault_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 offset)
{
	sqlite3_file *real = own(file)->real;
	int error = fault_of(FAULT_WRITE);
	int done = error ? len / 2 : len, result = SQLITE_OK;

	if (done)
		result = real->pMethods->xWrite(real, data, done, offset);
	if (result == SQLITE_OK && done)
		fault_note_write(own(file)->recorded, data, (size_t)done, offset);
	return error ? result_of(error, SQLITE_IOERR_WRITE) : result;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	sqlite3_file *real = own(file)->real;
	int error = fault_of(FAULT_TRUNCATE), result;

	if (error)
		return result_of(error, SQLITE_IOERR_TRUNCATE);
	result = real->pMethods->xTruncate(real, size);
	if (result == SQLITE_OK)
		fault_note_truncate(own(file)->recorded, size);
	return result;
}

/* Nothing is really synced: no test pulls the plug, and many make thousands of syncs. */
static int fault_sync(sqlite3_file *file, int flags PFS_UNUSED)
{
	int error = fault_of(FAULT_SYNC);

	if (error)
		return result_of(error, SQLITE_IOERR_FSYNC);
	fault_note_sync(own(file)->recorded);
	return SQLITE_OK;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *size)
{
	sqlite3_file *real = own(file)->real;
	int error = fault_of(FAULT_SIZE);

	return error ? result_of(error, SQLITE_IOERR_FSTAT) : real->pMethods->xFileSize(real, size);
}

static int fault_lock(sqlite3_file *file, int level)
{
	sqlite3_file *real = own(file)->real;
	int error = fault_of(FAULT_LOCK);

	return error ? result_of(error, SQLITE_IOERR_LOCK) : real->pMethods->xLock(real, level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
	return own(file)->real->pMethods->xUnlock(own(file)->real, level);
}

static int fault_check_lock(sqlite3_file *file, int *out)
{
	return own(file)->real->pMethods->xCheckReservedLock(own(file)->real, out);
}

static int fault_control(sqlite3_file *file, int op, void *arg)
{
	return own(file)->real->pMethods->xFileControl(own(file)->real, op, arg);
}

static int fault_sector(sqlite3_file *file)
{
	return own(file)->real->pMethods->xSectorSize(own(file)->real);
}

static int fault_device(sqlite3_file *file)
{
	return own(file)->real->pMethods->xDeviceCharacteristics(own(file)->real);
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
	sqlite3_file *real = own(file)->real;
	int error = fault_of(FAULT_SHM);

	return error ? result_of(error, SQLITE_IOERR_SHMMAP)
		     : real->pMethods->xShmMap(real, page, size, extend, out);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return own(file)->real->pMethods->xShmLock(own(file)->real, offset, n, flags);
}

static void fault_shm_barrier(sqlite3_file *file)
{
	own(file)->real->pMethods->xShmBarrier(own(file)->real);
}

static int fault_shm_unmap(sqlite3_file *file, int remove)
{
	return own(file)->real->pMethods->xShmUnmap(own(file)->real, remove);
}

static const sqlite3_io_methods fault_methods = {
	.iVersion = 2, /* 3 would be memory maps, which no fault can reach */
	.xClose = fault_close,
	.xRead = fault_read,
	.xWrite = fault_write,
	.xTruncate = fault_truncate,
	.xSync = fault_sync,
	.xFileSize = fault_size,
	.xLock = fault_lock,
	.xUnlock = fault_unlock,
	.xCheckReservedLock = fault_check_lock,
	.xFileControl = fault_control,
	.xSectorSize = fault_sector,
	.xDeviceCharacteristics = fault_device,
	.xShmMap = fault_shm_map,
	.xShmLock = fault_shm_lock,
	.xShmBarrier = fault_shm_barrier,
	.xShmUnmap = fault_shm_unmap,
};

/* ---- the VFS ---- */

static int fault_open(sqlite3_vfs *vfs PFS_UNUSED, const char *path, sqlite3_file *file, int flags,
		      int *out_flags)
{
	struct fault_file *opened = own(file);
	int error = fault_of(FAULT_OPEN), result;
	bool exists;

	opened->base.pMethods = NULL;
	opened->recorded = -1;
	opened->real = (sqlite3_file *)(opened + 1);
	if (error)
		return error == ENOMEM ? SQLITE_NOMEM : SQLITE_CANTOPEN;
	exists = path && !access(path, F_OK); /* xAccess takes an empty file for none */
	result = real_vfs->xOpen(real_vfs, path, opened->real, flags, out_flags);
	if (result != SQLITE_OK)
		return result;
	opened->base.pMethods = &fault_methods;
	if (path && !(flags & SQLITE_OPEN_DELETEONCLOSE))
		opened->recorded = fault_note_open(path, !exists);
	return SQLITE_OK;
}

static int fault_delete(sqlite3_vfs *vfs PFS_UNUSED, const char *path, int sync_folder)
{
	int error = fault_of(FAULT_DELETE), result;

	if (error)
		return result_of(error, SQLITE_IOERR_DELETE);
	result = real_vfs->xDelete(real_vfs, path, sync_folder);
	if (result == SQLITE_OK)
		fault_note_delete(path);
	return result;
}

static int fault_access(sqlite3_vfs *vfs PFS_UNUSED, const char *path, int flags, int *out)
{
	int error = fault_of(FAULT_ACCESS);

	return error ? result_of(error, SQLITE_IOERR_ACCESS)
		     : real_vfs->xAccess(real_vfs, path, flags, out);
}

static int fault_full_path(sqlite3_vfs *vfs PFS_UNUSED, const char *path, int size, char *out)
{
	return real_vfs->xFullPathname(real_vfs, path, size, out);
}

static int fault_random(sqlite3_vfs *vfs PFS_UNUSED, int len, char *out)
{
	return real_vfs->xRandomness(real_vfs, len, out);
}

static int fault_sleep(sqlite3_vfs *vfs PFS_UNUSED, int microseconds)
{
	return real_vfs->xSleep(real_vfs, microseconds);
}

static int fault_time(sqlite3_vfs *vfs PFS_UNUSED, double *out)
{
	return real_vfs->xCurrentTime(real_vfs, out);
}

static int fault_time64(sqlite3_vfs *vfs PFS_UNUSED, sqlite3_int64 *out)
{
	return real_vfs->xCurrentTimeInt64(real_vfs, out);
}

static int fault_last_error(sqlite3_vfs *vfs PFS_UNUSED, int len, char *out)
{
	int injected = last_errno;

	last_errno = 0;
	return injected ? injected : real_vfs->xGetLastError(real_vfs, len, out);
}

/* ---- memory ---- */

static void *fault_malloc(int size)
{
	return fault_of(FAULT_MEMORY) ? NULL : real_memory.xMalloc(size);
}

static void *fault_realloc(void *old, int size)
{
	return fault_of(FAULT_MEMORY) ? NULL : real_memory.xRealloc(old, size);
}

/* Has to come before SQLite's first use; without effect after it. */
static void wrap_memory(void)
{
	sqlite3_mem_methods wrapped;

	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS,
			     0); /* as meta/db.c, which comes too late now */
	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory) != SQLITE_OK)
		return;
	wrapped = real_memory;
	wrapped.xMalloc = fault_malloc;
	wrapped.xRealloc = fault_realloc;
	(void)sqlite3_config(SQLITE_CONFIG_MALLOC, &wrapped);
}

int fault_register(bool make_default)
{
	const char *text = getenv("PFS_FAULT");
	struct fault_plan first;
	int error;

	if (real_vfs)
		return 0;
	wrap_memory();
	real_vfs = sqlite3_vfs_find(NULL);
	if (!real_vfs)
		return -EIO;
	fault_vfs = (sqlite3_vfs){
		.iVersion = 2,
		.szOsFile = (int)sizeof(struct fault_file) + real_vfs->szOsFile,
		.mxPathname = real_vfs->mxPathname,
		.zName = FAULT_VFS_NAME,
		.xOpen = fault_open,
		.xDelete = fault_delete,
		.xAccess = fault_access,
		.xFullPathname = fault_full_path,
		.xRandomness = fault_random,
		.xSleep = fault_sleep,
		.xCurrentTime = fault_time,
		.xGetLastError = fault_last_error,
		.xCurrentTimeInt64 = fault_time64,
	};
	if (text) {
		error = fault_parse(&first, text);
		if (error)
			return error;
		fault_set(&first);
	}
	plan_file = getenv("PFS_FAULT_FILE");
	return sqlite3_vfs_register(&fault_vfs, make_default) == SQLITE_OK ? 0 : -EIO;
}
