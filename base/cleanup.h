/* SPDX-License-Identifier: MIT */
/* base/cleanup.h - attributes of local variables that are released when their scope ends. This is
 * the whole list of them; code that has more to undo uses one `fail:` label. */
#ifndef PFS_BASE_CLEANUP_H
#define PFS_BASE_CLEANUP_H

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

static inline void pfs_cleanup_free(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

static inline void pfs_cleanup_fd(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		(void)close(*fd);
		errno = saved;
	}
}

static inline void pfs_cleanup_file(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

static inline void pfs_cleanup_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static inline void pfs_cleanup_unlock(pthread_mutex_t **mutex)
{
	if (*mutex)
		(void)pthread_mutex_unlock(*mutex);
}

static inline void pfs_cleanup_unlock_rw(pthread_rwlock_t **lock)
{
	(void)pthread_rwlock_unlock(*lock);
}

static inline pthread_rwlock_t *pfs_lock_rw(pthread_rwlock_t *lock, int (*how)(pthread_rwlock_t *))
{
	(void)how(lock);
	return lock;
}

static inline pthread_mutex_t *pfs_lock_mutex(pthread_mutex_t *mutex)
{
	(void)pthread_mutex_lock(mutex);
	return mutex;
}

#define PFS_FREE  __attribute__((cleanup(pfs_cleanup_free)))  /* char *p PFS_FREE = NULL; */
#define PFS_CLOSE __attribute__((cleanup(pfs_cleanup_fd)))    /* int fd PFS_CLOSE = -1; */
#define PFS_FCLOSE __attribute__((cleanup(pfs_cleanup_file))) /* FILE *f PFS_FCLOSE = NULL; */
#define PFS_CLOSEDIR __attribute__((cleanup(pfs_cleanup_dir))) /* DIR *d PFS_CLOSEDIR = NULL; */

/* Holds the mutex to the end of the enclosing block. */
#define PFS_LOCKED(mutex) PFS_LOCKED_AT(mutex, __LINE__)
#define PFS_LOCKED_AT(mutex, line) PFS_LOCKED_IN(mutex, line) /* for the line's number */
#define PFS_LOCKED_IN(mutex, line) PFS_LOCKED_AS(mutex, pfs_locked_##line)
#define PFS_LOCKED_AS(mutex, name)                                                                 \
	pthread_mutex_t *name __attribute__((cleanup(pfs_cleanup_unlock), unused)) =               \
		pfs_lock_mutex(mutex)

/* Hold the lock for reading, or for writing, to the end of the enclosing block. */
#define PFS_READING(lock) PFS_HOLDING_AT(lock, pthread_rwlock_rdlock, __LINE__)
#define PFS_WRITING(lock) PFS_HOLDING_AT(lock, pthread_rwlock_wrlock, __LINE__)
#define PFS_HOLDING_AT(lock, how, line) PFS_HOLDING_AS(lock, how, line) /* for the line's number */
#define PFS_HOLDING_AS(lock, how, line)                                                            \
	pthread_rwlock_t *pfs_holding_##line                                                       \
		__attribute__((cleanup(pfs_cleanup_unlock_rw), unused)) = pfs_lock_rw(lock, how)

/* Sets an owning local to NULL and gives its value, so that its cleanup does nothing:
 * return PFS_TAKE(p); */
#define PFS_TAKE(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) pfs_taken = (pointer);                                         \
		(pointer) = NULL;                                                                  \
		pfs_taken;                                                                         \
	})

#endif
