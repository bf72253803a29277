/* SPDX-License-Identifier: MIT */
#include "tools/bench/samples.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
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

void pfs_samples_print(const struct pfs_samples *samples)
{
	static const double parts[] = {0.5, 0.99, 0.999};

	qsort(samples->seconds, samples->n, sizeof(*samples->seconds), by_length);
	for (size_t i = 0; i < PFS_COUNT(parts) && samples->n; i++)
		(void)printf("%8.3f", samples->seconds[(size_t)((double)(samples->n - 1) * parts[i])] * 1e3);
	if (samples->n)
		(void)printf("%8.2f ", samples->seconds[samples->n - 1] * 1e3);
}
