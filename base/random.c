/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

int pfs_random_bytes(void *out, size_t size)
{
	if (getrandom(out, size, 0) != (ssize_t)size)
		return errno ? -errno : -EIO;
	return 0;
}

int pfs_random_digits(char out[PFS_RANDOM_SIZE])
{
	uint64_t number;

	PFS_TRY(pfs_random_bytes(&number, sizeof(number)));
	(void)snprintf(out, PFS_RANDOM_SIZE, "%016llx", (unsigned long long)number);
	return 0;
}

static pthread_once_t drawn = PTHREAD_ONCE_INIT;
static _Atomic uint64_t the_seed;

static void draw_seed(void)
{
	struct timespec now;
	uint64_t seed;

	if (pfs_random_bytes(&seed, sizeof(seed))) {
		(void)clock_gettime(CLOCK_REALTIME, &now);
		seed = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	the_seed = seed;
}

uint64_t pfs_random_seed(void)
{
	(void)pthread_once(&drawn, draw_seed);
	return the_seed;
}

void pfs_random_use_seed(uint64_t seed)
{
	(void)pthread_once(&drawn, draw_seed);
	the_seed = seed;
}
