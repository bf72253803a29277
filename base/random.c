/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

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
