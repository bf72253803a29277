/* SPDX-License-Identifier: MIT */
#include "gpu/probe.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "gpu/engine_impl.h"
#include "gpu/probe_impl.h"

void pfs_figure_of(struct pfs_figure *figure, double *seconds, size_t n)
{
	qsort(seconds, n, sizeof(*seconds), pfs_compare_double);
	figure->least = seconds[0];
	figure->median = seconds[n / 2];
	figure->most = seconds[n - 1];
}

static int find_divisors(const struct pfs_columns *c, struct pfs_divisor *divisors,
			 const uint32_t *slots, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!pfs_slot_live(c, slots[i]) || !pfs_slot_is_directory(c, slots[i]))
			return -ENOENT;
		divisors[i] = pfs_divisor_of(c->directories[c->home[slots[i]]].prime);
	}
	return 0;
}

int pfs_engine_probe(struct pfs_engine *e, struct pfs_figure *figure, enum pfs_probe what,
		     const uint32_t *slots, size_t n, unsigned repeat)
{
	struct pfs_asking asking = {.engine = e, .is_alone = true};
	struct pfs_divisor divisors[PFS_SUBTREES_MAX];
	double *seconds PFS_FREE = calloc(repeat + 2u, sizeof(*seconds));
	int error;

	if (!seconds)
		return -ENOMEM;
	if (n > PFS_SUBTREES_MAX)
		return -E2BIG;
	error = pfs_asking_begin(&asking);
	error = error ? error : find_divisors(&e->columns, divisors, slots, n);
	for (unsigned i = 0; i < repeat + 2 && error == 0; i++)
		error = (e->is_device ? pfs_cuda_probe : pfs_host_probe)(
			asking.job, &seconds[i], &figure->bytes, what, divisors, n);
	if (!pfs_asking_end(&asking, &error))
		return -EIO; /* there is no device any more to be measured */
	if (error == 0)
		pfs_figure_of(figure, seconds + 2, PFS_MAX(repeat, 1u));
	return error;
}

int pfs_sort_probe(const struct pfs_run *run, double *seconds, unsigned repeat,
		   const uint64_t *keys, uint64_t n)
{
	struct pfs_operator_backend *device = pfs_operators_device(run->operators);

	return device ? pfs_cuda_sort_probe(device, run, seconds, repeat, keys, n) : -EOPNOTSUPP;
}
