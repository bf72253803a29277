/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/placement.h"

#include <string.h>

#include "base/log.h"

#define DEVICE_ROWS 262144u	/* below them a launch costs more than the host's work */
#define START_NS    1000000000u /* of the host's time: about what starting and copying take */

int pfs_placement_open(struct pfs_placement *placement, enum pfs_engine_kind kind)
{
	placement->kind = kind;
	PFS_TRY(pfs_operators_open(&placement->operators, PFS_ENGINE_HOST, 0));
	if (kind == PFS_ENGINE_CUDA && pfs_operators_start_device(placement->operators))
		pfs_warning("no CUDA device for statements: the processor runs them");
	return 0;
}

void pfs_placement_close(struct pfs_placement *placement)
{
	if (placement->is_starting)
		(void)pthread_join(placement->starter, NULL);
	pfs_operators_close(placement->operators);
	*placement = (struct pfs_placement){.kind = placement->kind};
}

enum pfs_engine_kind pfs_placement_of(const struct pfs_placement *placement, uint64_t rows)
{
	if (placement->kind == PFS_ENGINE_CUDA)
		return PFS_ENGINE_CUDA;
	if (placement->kind == PFS_ENGINE_AUTO && rows >= DEVICE_ROWS &&
	    pfs_operators_has_device(placement->operators))
		return PFS_ENGINE_AUTO;
	return PFS_ENGINE_HOST;
}

static void *start(void *operators)
{
	/* Where there is none the host goes on: that is what auto means. */
	if (pfs_operators_start_device(operators))
		pfs_debug("no device");
	return NULL;
}

void pfs_placement_took(struct pfs_placement *placement, uint64_t rows, uint64_t ns)
{
	if (placement->kind != PFS_ENGINE_AUTO || rows < DEVICE_ROWS ||
	    pfs_operators_has_device(placement->operators) ||
	    atomic_fetch_add(&placement->host_ns, ns) + ns < START_NS ||
	    atomic_exchange(&placement->asked, true))
		return;
	placement->is_starting = pthread_create(&placement->starter, NULL, start,
						placement->operators) == 0;
}
