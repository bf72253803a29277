/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/rates.h"

#include <math.h>

const char *const pfs_work_names[PFS_N_WORKS] = {
#define WORK_NAME(id, name, ...) [PFS_WORK_##id] = (name),
	PFS_WORKS(WORK_NAME)
#undef WORK_NAME
};

const struct pfs_rates pfs_rates_fixed = {
	.work =
		{
#define WORK_RATE(id, name, on_host, on_device, ...) [PFS_WORK_##id] = {(on_host), (on_device)},
			PFS_WORKS(WORK_RATE)
#undef WORK_RATE
		},
	.start_ns = 3e8,
	.launch_ns = 2e4,
	.byte_ns = 0.1, /* with what it takes to lay the bytes ready */
};

enum who { DEVICE, HOST };

static const struct {
	enum who by;
	enum pfs_sample sample;
} works[PFS_N_WORKS] = {
#define WORK_SAMPLE(id, name, on_host, on_device, by, as) [PFS_WORK_##id] = {(by), PFS_SAMPLE_##as},
	PFS_WORKS(WORK_SAMPLE)
#undef WORK_SAMPLE
};

/* Nanoseconds a row on the machine of the fixed rates (primefs-bench rates). */
static const struct pfs_measured usual = {{
	[PFS_SAMPLE_LOOK] = 1.2,
	[PFS_SAMPLE_PATTERN] = 100,
	[PFS_SAMPLE_FOLD] = 1.1,
	[PFS_SAMPLE_GROUP_FEW] = 5.3,
	[PFS_SAMPLE_GROUP_MANY] = 75,
	[PFS_SAMPLE_SORT] = 31.5,
	[PFS_SAMPLE_JOIN] = 43.5,
}};

/* Returns how many times as long as expected something took, as far as that is believed. */
static double factor_of(double found, double expected)
{
	double factor = isfinite(found) && found > 0 ? found / expected : 1;

	return fmin(fmax(factor, 1 / PFS_RATES_RANGE), PFS_RATES_RANGE);
}

void pfs_rates_measured(struct pfs_rates *rates, const struct pfs_measured *measured)
{
	for (unsigned i = 0; i < PFS_N_WORKS; i++) {
		const struct pfs_rate *fixed = &pfs_rates_fixed.work[i];
		enum pfs_sample sample = works[i].sample;
		double factor = factor_of(measured->ns[sample], usual.ns[sample]);

		rates->work[i].host = fixed->host * factor;
		if (works[i].by == HOST)
			rates->work[i].device = fixed->device * factor;
	}
	rates->is_measured = true;
}

static double seen_rate(double fixed, double seen)
{
	return fixed * factor_of(seen, fixed);
}

void pfs_rates_seen(struct pfs_rates *rates, const struct pfs_seen *seen)
{
	rates->start_ns = seen_rate(pfs_rates_fixed.start_ns, seen->start_ns);
	rates->launch_ns = seen_rate(pfs_rates_fixed.launch_ns, seen->launch_ns);
	rates->byte_ns = seen_rate(pfs_rates_fixed.byte_ns, seen->byte_ns);
	rates->is_seen = true;
}
