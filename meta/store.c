/* SPDX-License-Identifier: MIT */
#include "meta/store.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "meta/history.h"
#include "meta/internal.h"
#include "meta/log.h"

#define LOG_LIMIT    (UINT64_C(64) << 20)

static const char *const side_suffixes[] = {"-wal", "-shm", "-journal"};

/* ---- files beside the store ---- */

/* Returns the size of the file `path` plus suffix; 0: there is no such file. */
static int64_t side_size(const char *path, const char *suffix)
{
	char name[PATH_MAX];
	struct stat st;

	if (snprintf(name, sizeof(name), "%s%s", path, suffix) >= (int)sizeof(name))
		return 0;
	return stat(name, &st) ? 0 : st.st_size;
}

static int remove_side_files(const char *path)
{
	char name[PATH_MAX];
	size_t i;

	for (i = 0; i < PFS_COUNT(side_suffixes); i++) {
		if (snprintf(name, sizeof(name), "%s%s", path, side_suffixes[i]) >=
		    (int)sizeof(name))
			return -ENAMETOOLONG;
		if (unlink(name) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

static int open_folder(const char *path)
{
	char copy[PATH_MAX];
	int fd;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -ENAMETOOLONG;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int pfs_store_sync_folder(const char *path)
{
	int fd PFS_CLOSE = open_folder(path);

	if (fd < 0)
		return fd;
	if (fsync(fd) && errno != EINVAL) /* EINVAL: folders of this filesystem need no sync */
		return -errno;
	return 0;
}

/* SQLite makes and removes the log in the folder. */
static int folder_writable(const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -ENAMETOOLONG;
	return faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

/* ---- opening ---- */

/* From now on everything is read of one group, by this connection alone. */
static int read_group(struct pfs_store *store, struct pfs_db *db, int64_t at)
{
	int error = pfs_db_begin_reading(db);

	db->keeps = true;
	store->group = db;
	if (!error && at)
		error = pfs_history_dress(store, db, at);
	return error ? error : pfs_meta_load(store, db);
}

static int open_reading(struct pfs_store *store, int64_t at)
{
	bool log = side_size(store->path, "-wal") > 0 ||
		   (store->flags & PFS_STORE_UNLOCKED && side_size(store->path, "-shm") > 0);
	struct pfs_db *db = NULL;
	int error;

	store->read_mode = log ? PFS_DB_READ : PFS_DB_IMMUTABLE;
	error = pfs_db_open(&db, store->path, store->read_mode, store->vfs);
	if (error && log && error != -ENOMEM && error != -EPERM && error != -EMEDIUMTYPE &&
	    error != -EPROTONOSUPPORT)
		return -EROFS; /* to read a log, an index beside it must exist, or be made */
	if (error)
		return error;
	if (store->flags & PFS_STORE_UNLOCKED || at)
		return read_group(store, db, at);
	error = pfs_meta_load(store, db);
	pfs_reader_put(store, db);
	return error;
}

static int open_writing(struct pfs_store *store)
{
	enum pfs_db_mode mode = store->flags & PFS_STORE_BULK	  ? PFS_DB_BULK
				: store->flags & PFS_STORE_CREATE ? PFS_DB_CREATE
								  : PFS_DB_WRITE;
	int error = folder_writable(store->path);

	if (!error && mode != PFS_DB_WRITE)
		error = remove_side_files(store->path);
	if (error)
		return error;
	store->read_mode = PFS_DB_READ;
	store->names = calloc(1, sizeof(*store->names));
	if (!store->names)
		return -ENOMEM;
	error = pfs_writer_open(store, mode);
	if (!error)
		error = pfs_meta_load(store, store->writer);
	if (!error)
		error = pfs_change_load(store);
	if (!error)
		error = pfs_history_begin(store);
	if (!error)
		pfs_count_pages(store);
	if (!error && mode == PFS_DB_CREATE)
		error = pfs_store_sync_folder(store->path);
	return error;
}

static int open_store(struct pfs_store *store, const char *path,
		      const struct pfs_store_options *options)
{
	bool read_only = options->flags & PFS_STORE_READ_ONLY;
	enum pfs_lock_mode mode = PFS_LOCK_ALONE;
	int error;

	if (options->flags & PFS_STORE_CREATE)
		mode = PFS_LOCK_CREATE;
	else if (read_only && !(options->flags & PFS_STORE_ALONE))
		mode = options->flags & PFS_STORE_UNLOCKED ? PFS_LOCK_NOT : PFS_LOCK_SHARED;
	error = pfs_lock_open(&store->lock, path, mode, options->wait_ms);
	if (error)
		return error;
	if (mode == PFS_LOCK_CREATE && options->mode && fchmod(store->lock.fd, options->mode))
		return -errno;
	store->path = realpath(path, NULL);
	if (!store->path)
		return -errno;
	if (options->vfs && !(store->vfs = strdup(options->vfs)))
		return -ENOMEM;
	if (mode == PFS_LOCK_ALONE || mode == PFS_LOCK_SHARED)
		PFS_TRY(pfs_log_check(store->path, store->lock.fd));
	return read_only ? open_reading(store, options->at) : open_writing(store);
}

static bool flags_valid(unsigned flags)
{
	if (flags & PFS_STORE_READ_ONLY)
		return !(flags & (PFS_STORE_CREATE | PFS_STORE_BULK));
	return !(flags & PFS_STORE_UNLOCKED) &&
	       (!(flags & PFS_STORE_BULK) || flags & PFS_STORE_CREATE);
}

/* Closes the connections, writer last: the last one to close removes the log. */
static int close_connections(struct pfs_store *store)
{
	int error;

	(void)pfs_db_close(store->group);
	store->group = NULL;
	while (store->idle) {
		struct pfs_db *db = store->idle;

		store->idle = db->next;
		(void)pfs_db_close(db);
	}
	error = pfs_db_close(store->writer);
	store->writer = NULL;
	return error;
}

static void free_store(struct pfs_store *store)
{
	(void)close_connections(store);
	pfs_lock_close(&store->lock);
	(void)pthread_mutex_destroy(&store->mutex);
	(void)pthread_mutex_destroy(&store->group_mutex);
	free(store->names);
	free(store->rows);
	pfs_attr_rows_free(store->attr_rows);
	free(store->changes.primes);
	free(store->path);
	free(store->vfs);
	free(store);
}

static void init_recursive(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;

	(void)pthread_mutexattr_init(&attr);
	(void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	(void)pthread_mutex_init(mutex, &attr);
	(void)pthread_mutexattr_destroy(&attr);
}

static struct pfs_store *make_store(unsigned flags)
{
	struct pfs_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->lock = PFS_LOCK_NONE;
	store->flags = flags;
	(void)pthread_mutex_init(&store->mutex, NULL);
	init_recursive(&store->group_mutex);
	return store;
}

int pfs_store_open(struct pfs_store **out, const char *path,
		   const struct pfs_store_options *options)
{
	struct pfs_store *store;
	int error;

	*out = NULL;
	if (!flags_valid(options->flags))
		return -EINVAL;
	store = make_store(options->flags);
	if (!store)
		return -ENOMEM;
	store->feed_primes = options->feed_primes;
	store->log_limit = options->log_bytes ? options->log_bytes : LOG_LIMIT;
	error = open_store(store, path, options);
	if (error) {
		bool made = options->flags & PFS_STORE_CREATE && store->lock.fd >= 0;

		(void)close_connections(store);
		if (made && !unlink(path))
			(void)remove_side_files(path);
		free_store(store);
		return error;
	}
	*out = store;
	return 0;
}

#define TICK_STEPS 10000 /* steps of SQLite's machine */

int pfs_history_open(struct pfs_store **out, struct pfs_store *of, int64_t at,
		     int (*tick)(void *arg), void *arg)
{
	struct pfs_store *store = make_store(PFS_STORE_READ_ONLY | PFS_STORE_UNLOCKED);
	struct pfs_db *db = NULL;
	int error = 0;

	*out = NULL;
	if (!store)
		return -ENOMEM;
	store->path = strdup(of->path);
	if (of->vfs)
		store->vfs = strdup(of->vfs);
	if (!store->path || (of->vfs && !store->vfs))
		error = -ENOMEM;
	if (!error)
		error = pfs_db_open(&db, store->path, of->read_mode, store->vfs);
	if (!error && tick)
		sqlite3_progress_handler(db->handle, TICK_STEPS, tick, arg);
	if (!error)
		error = read_group(store, db, at);
	if (error) {
		free_store(store);
		return error;
	}
	*out = store;
	return 0;
}

/* ---- closing ---- */

static int finish_bulk(struct pfs_store *store)
{
	int error = store->spoilt ? 0 : pfs_db_finish_bulk(store->writer);
	int closed = close_connections(store);

	if (!error)
		error = closed;
	if (!error && fsync(store->lock.fd)) {
		error = -errno;
		pfs_error("%s: cannot sync: %s", store->path, strerror(-error));
	}
	return error;
}

int pfs_store_close(struct pfs_store *store)
{
	int error = 0;

	if (!store)
		return 0;
	pfs_store_rollback(store);
	if (store->flags & PFS_STORE_BULK) {
		error = finish_bulk(store);
	} else if (store->writer) {
		error = pfs_writer_finish(store);
	}
	free_store(store);
	return error;
}

/* Gives the file the mode of the old one and, if this user may set it, the owner. At no time may a
 * user read it who could not read the old one. */
static int take_rights(struct pfs_store *store, const char *to)
{
	int fd PFS_CLOSE = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat attr;

	if (fd < 0 || fstat(store->lock.fd, &attr))
		return -errno;
	if (fchown(fd, attr.st_uid, attr.st_gid)) {
		if (errno != EPERM)
			return -errno;
		/* these rights were meant for another owner and group */
		attr.st_mode &= ~(mode_t)(S_IRWXG | S_IRWXO);
	}
	return fchmod(fd, attr.st_mode & 07777) ? -errno : 0;
}

int pfs_store_replace(struct pfs_store *store, const char *from)
{
	int error = take_rights(store, from);

	if (error) {
		pfs_error("%s: cannot take over the mode of %s: %s", from, store->path,
			  strerror(-error));
		return error;
	}
	if (rename(from, store->path)) {
		error = -errno;
		pfs_error("%s: cannot rename to %s: %s", from, store->path, strerror(-error));
		return error;
	}
	PFS_TRY(remove_side_files(store->path)); /* a log that a reader kept is the old file's */
	return pfs_store_sync_folder(store->path);
}

int pfs_store_publish(const char *from, const char *to)
{
	struct stat st;
	int error;

	if (!lstat(to, &st))
		return -EEXIST;
	if (errno != ENOENT)
		return -errno;
	error = remove_side_files(to);
	if (error)
		return error;
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		if (link(from, to) || unlink(from)) /* a filesystem without this flag */
			return -errno;
	}
	return pfs_store_sync_folder(to);
}

/* ---- what a store is ---- */

int pfs_store_version(const struct pfs_store *store)
{
	return store->version;
}

bool pfs_store_is_read_only(const struct pfs_store *store)
{
	return store->flags & PFS_STORE_READ_ONLY;
}

bool pfs_store_is_steady(const struct pfs_store *store)
{
	return store->group && store->read_mode == PFS_DB_READ;
}

const char *pfs_store_path(const struct pfs_store *store)
{
	return store->path;
}

uint64_t pfs_store_seed(const struct pfs_store *store)
{
	return store->seed;
}

int pfs_store_space(struct pfs_store *store, struct pfs_store_space *out)
{
	uint64_t pages = __atomic_load_n(&store->pages, __ATOMIC_RELAXED);
	uint64_t free_pages = __atomic_load_n(&store->free_pages, __ATOMIC_RELAXED);
	uint64_t now = (uint64_t)side_size(store->path, ""), then = pages * PFS_DB_PAGE_SIZE;
	struct statvfs fs;

	if (fstatvfs(store->lock.fd, &fs))
		return -errno;
	*out = (struct pfs_store_space){
		.free = (uint64_t)fs.f_bavail * fs.f_frsize,
		.total = (uint64_t)fs.f_blocks * fs.f_frsize,
		.size = then > now ? then : now,
		.reusable = free_pages * PFS_DB_PAGE_SIZE,
		.log = (uint64_t)side_size(store->path, "-wal"),
		.growth = then > now ? then - now : 0,
		.keeps_history = __atomic_load_n(&store->keeps_history, __ATOMIC_RELAXED),
	};
	return 0;
}
