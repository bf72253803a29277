/* SPDX-License-Identifier: MIT */
/* Linked into primefs in place of the CUDA back end: `--engine=cuda` then has a device that is
 * none, so that whatever happens with one can be tested everywhere.  PRIMEFS_CUDA_FAIL_AT=N makes
 * its N-th call fail, and all after it; PRIMEFS_CUDA_OPENS=N lets it be opened N times;
 * PRIMEFS_CUDA_SPOIL=N makes it get the code of the directory number N wrong;
 * PRIMEFS_RESIDENT_SILENT_AFTER=N lets single questions wait in vain after N answers. */
#include <limits.h>
#include <stdlib.h>

#include "gpu/engine_impl.h"
#include "gpu/resident.h"
#include "tests/ref/stand_in.h"
#include "tests/ref/stand_in_resident.h"

static long number_in(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* Once: whoever opens a part of the device first begins to count. */
static void read_fail_at(void)
{
	static bool is_read;

	if (!is_read)
		pfs_cuda_fail_at(number_in("PRIMEFS_CUDA_FAIL_AT", 0));
	is_read = true;
}

int pfs_cuda_open(struct pfs_backend **out)
{
	static long n_opened;

	read_fail_at();
	if (n_opened++ >= number_in("PRIMEFS_CUDA_OPENS", LONG_MAX))
		return -EIO;
	stand_in.spoiled = (uint32_t)number_in("PRIMEFS_CUDA_SPOIL", 0);
	return stand_in_open(out);
}

long pfs_cuda_fail_at(long n)
{
	long left = stand_in.calls_left;

	stand_in.calls_left = n > 0 ? n : LONG_MAX;
	return left == LONG_MAX ? 0 : left;
}

uint64_t pfs_cuda_bytes_left(void)
{
	return 0;
}

int pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	(void)out;
	return -ENODEV;
}

int pfs_cuda_resident_open(struct pfs_resident_backend **out)
{
	read_fail_at();
	stand_in_resident.silent_after = number_in("PRIMEFS_RESIDENT_SILENT_AFTER", -1);
	if (stand_in_resident.silent_after >= 0)
		stand_in_resident.patience_ns = 200000000; /* the answer would have come */
	stand_in_resident.in_slices = number_in("PRIMEFS_RESIDENT_SLICES", 0);
	return stand_in_resident_open(out);
}
