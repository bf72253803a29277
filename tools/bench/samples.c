/* SPDX-License-Identifier: MIT */
#include "tools/bench/samples.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"

void pfs_samples_add(struct pfs_samples *samples, double started)
{
	if (samples->n < PFS_SAMPLES_MAX)
		samples->seconds[samples->n++] = (float)(pfs_bench_now() - started);
}

static int by_length(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

double pfs_samples_part(const struct pfs_samples *samples, double part)
{
	if (!samples->n)
		return 0;
	qsort(samples->seconds, samples->n, sizeof(*samples->seconds), by_length);
	return samples->seconds[(size_t)((double)(samples->n - 1) * part)] * 1e3;
}

void pfs_samples_print(const struct pfs_samples *samples)
{
	static const double parts[] = {0.5, 0.99, 0.999};

	for (size_t i = 0; i < PFS_COUNT(parts) && samples->n; i++)
		(void)printf("%8.3f", pfs_samples_part(samples, parts[i]));
	if (samples->n)
		(void)printf("%8.2f ", pfs_samples_part(samples, 1));
}
