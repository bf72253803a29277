/* SPDX-License-Identifier: MIT */
/* Linked into primefs in place of the CUDA back end: `--engine=cuda` then has a device that is
 * none, so that whatever happens with one can be tested everywhere.  PRIMEFS_CUDA_FAIL_AT=N makes
 * its N-th call fail, and all after it; PRIMEFS_CUDA_SPOIL=N makes it get the code of the directory
 * number N wrong. */
#include <limits.h>
#include <stdlib.h>

#include "gpu/engine_impl.h"
#include "tests/ref/stand_in.h"

static long number_in(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 10) : otherwise;
}

int pfs_cuda_open(struct pfs_backend **out)
{
	pfs_cuda_fail_at(number_in("PRIMEFS_CUDA_FAIL_AT", 0));
	stand_in.spoiled = (uint32_t)number_in("PRIMEFS_CUDA_SPOIL", 0);
	return stand_in_open(out);
}

void pfs_cuda_fail_at(long n)
{
	stand_in.calls_left = n > 0 ? n : LONG_MAX;
}

int pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	(void)out;
	return -ENODEV;
}
