/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/placement.h"

#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "fs/query/internal.h"
#include "fs/query/relational/kept_rates.h"

static int start_device(const struct pfs_placement *placement)
{
	uint64_t start = pfs_now_ns();

	PFS_TRY(pfs_operators_start_device(placement->operators));
	if (placement->rates)
		pfs_kept_rates_see(placement->rates, placement->operators, pfs_now_ns() - start);
	return 0;
}

int pfs_placement_open(struct pfs_placement *placement, enum pfs_engine_kind kind,
		       struct pfs_kept_rates *rates, struct pfs_pool *pool)
{
	placement->kind = kind;
	placement->rates = rates;
	placement->processors = (unsigned)PFS_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	PFS_TRY(pfs_operators_open_on(&placement->operators, PFS_ENGINE_HOST, pool));
	if (kind == PFS_ENGINE_CUDA && start_device(placement))
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

enum pfs_engine_kind pfs_placement_of(const struct pfs_placement *placement,
				      const struct pfs_cost *cost)
{
	if (placement->kind == PFS_ENGINE_CUDA)
		return PFS_ENGINE_CUDA;
	if (placement->kind == PFS_ENGINE_AUTO && cost->device_ns < cost->host_ns &&
	    pfs_operators_has_device(placement->operators))
		return PFS_ENGINE_AUTO;
	return PFS_ENGINE_HOST;
}

static void *start(void *placement)
{
	/* Where there is none the host goes on: that is what auto means. */
	if (start_device(placement))
		pfs_debug("no device");
	return NULL;
}

void pfs_placement_took(struct pfs_placement *placement, const struct pfs_cost *cost, uint64_t ns)
{
	static const struct pfs_thread_kind kind = {"pfs-device", 0,
						    0}; /* a driver's threads inherit it */
	uint64_t lost = ns > cost->device_ns ? ns - cost->device_ns : 0;

	if (placement->kind != PFS_ENGINE_AUTO || cost->device_ns >= cost->host_ns ||
	    pfs_operators_has_device(placement->operators) ||
	    atomic_fetch_add(&placement->lost_ns, lost) + lost < cost->start_ns ||
	    atomic_exchange(&placement->asked, true))
		return;
	placement->is_starting =
		pfs_thread_start(&placement->starter, &kind, start, placement) == 0;
}

/* ---- of queries ---- */

static void publish(struct pfs_queries *queries, const struct pfs_placement *opened)
{
	PFS_LOCKED(&queries->lock);

	queries->placement.kind = opened->kind;
	queries->placement.rates = opened->rates;
	queries->placement.processors = opened->processors;
	queries->placement.operators = opened->operators;
}

int pfs_queries_placement(struct pfs_queries *queries, struct pfs_placement **out)
{
	struct pfs_placement opened = {.operators = NULL};
	PFS_LOCKED(&queries->placing);

	if (!queries->placement.operators) {
		PFS_TRY(pfs_placement_open(&opened, pfs_tree_engine_kind(queries->tree),
					   queries->rates, pfs_scan_pool(queries->tree)));
		publish(queries, &opened);
	}
	*out = &queries->placement;
	return 0;
}

bool pfs_queries_count(struct pfs_queries *queries, uint64_t *host, uint64_t *device)
{
	struct pfs_operator_counts counts = {0};
	bool has_device = false;
	PFS_LOCKED(&queries->lock);

	if (queries->placement.operators) {
		pfs_operators_count(queries->placement.operators, &counts);
		has_device = pfs_operators_has_device(queries->placement.operators);
	}
	*host = counts.host;
	*device = counts.device;
	return has_device;
}

uint64_t pfs_queries_operators_ns(const struct pfs_queries *queries)
{
	return atomic_load(&queries->operators_ns);
}
