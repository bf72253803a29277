/* SPDX-License-Identifier: MIT */
#include "fs/content/fdcache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/image/byprime.h"

struct pfs_fd {
	struct pfs_byprime by_prime;
	int number;
	unsigned users;
	bool findable;
	struct pfs_fd *newer, *older; /* in the list of those that are unused and can be found */
};

struct pfs_fdcache {
	pthread_mutex_t lock;
	unsigned limit;
	atomic_bool is_used; /* it has ever held a descriptor */
	/* protected by lock */
	struct pfs_byprime_table table;
	struct pfs_fd *newest, *oldest;
	unsigned unused;
};

int pfs_fdcache_create(struct pfs_fdcache **out, unsigned limit)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->limit = limit;
	(void)pthread_mutex_init(&(*out)->lock, NULL);
	return 0;
}

static void free_fd(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	struct pfs_fd *fd = (struct pfs_fd *)entry;

	(void)close(fd->number);
	free(fd);
}

void pfs_fdcache_destroy(struct pfs_fdcache *cache)
{
	if (!cache)
		return;
	pfs_byprime_drain(&cache->table, free_fd, NULL);
	(void)pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static void unchain(struct pfs_fdcache *cache, struct pfs_fd *fd)
{
	*(fd->newer ? &fd->newer->older : &cache->newest) = fd->older;
	*(fd->older ? &fd->older->newer : &cache->oldest) = fd->newer;
	cache->unused--;
}

static void chain(struct pfs_fdcache *cache, struct pfs_fd *fd)
{
	fd->newer = NULL;
	fd->older = cache->newest;
	*(fd->older ? &fd->older->newer : &cache->oldest) = fd;
	cache->newest = fd;
	cache->unused++;
}

/* Takes the descriptor out of the table, and closes it unless somebody uses it. */
static void forget(struct pfs_fdcache *cache, struct pfs_fd *fd)
{
	pfs_byprime_remove(&cache->table, &fd->by_prime);
	fd->findable = false;
	if (fd->users)
		return;
	unchain(cache, fd);
	free_fd(NULL, &fd->by_prime);
}

struct pfs_fd *pfs_fdcache_get(struct pfs_fdcache *cache, uint64_t prime)
{
	struct pfs_fd *fd;
	PFS_LOCKED(&cache->lock);

	fd = (struct pfs_fd *)pfs_byprime_find(&cache->table, prime);
	if (fd && !fd->users++)
		unchain(cache, fd);
	return fd;
}

int pfs_fdcache_add(struct pfs_fdcache *cache, struct pfs_fd **out, uint64_t prime, int number)
{
	struct pfs_fd *fd = malloc(sizeof(*fd)), *before;

	if (!fd) {
		(void)close(number);
		return -ENOMEM;
	}
	*fd = (struct pfs_fd){
		.by_prime.prime = prime, .number = number, .users = 1, .findable = true};
	PFS_LOCKED(&cache->lock);
	before = (struct pfs_fd *)pfs_byprime_find(&cache->table, prime);
	if (before)
		forget(cache, before);
	atomic_store(&cache->is_used, true);
	pfs_byprime_add(&cache->table, &fd->by_prime);
	*out = fd;
	return 0;
}

void pfs_fdcache_put(struct pfs_fdcache *cache, struct pfs_fd *fd)
{
	if (!fd)
		return;
	PFS_LOCKED(&cache->lock);
	if (--fd->users)
		return;
	if (!fd->findable) {
		free_fd(NULL, &fd->by_prime);
		return;
	}
	chain(cache, fd);
	if (cache->unused > cache->limit)
		forget(cache, cache->oldest);
}

PFS_SELDOM static void drop(struct pfs_fdcache *cache, uint64_t prime)
{
	struct pfs_fd *fd;
	PFS_LOCKED(&cache->lock);

	fd = (struct pfs_fd *)pfs_byprime_find(&cache->table, prime);
	if (fd)
		forget(cache, fd);
}

void pfs_fdcache_drop(struct pfs_fdcache *cache, uint64_t prime)
{
	if (atomic_load(&cache->is_used))
		drop(cache, prime);
}

void pfs_fdcache_shrink(struct pfs_fdcache *cache)
{
	PFS_LOCKED(&cache->lock);

	while (cache->oldest)
		forget(cache, cache->oldest);
}

int pfs_fd_number(const struct pfs_fd *fd)
{
	return fd->number;
}
