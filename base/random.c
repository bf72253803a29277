/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

int pfs_random_digits(char out[PFS_RANDOM_SIZE])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return errno ? -errno : -EIO;
	(void)snprintf(out, PFS_RANDOM_SIZE, "%016llx", (unsigned long long)number);
	return 0;
}
