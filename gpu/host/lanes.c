/* SPDX-License-Identifier: MIT */
#include "gpu/host/lanes.h"

#include <endian.h>
#include <string.h>

#ifdef __clang__ /* clang makes vectors of loops without being asked */
#define VECTORS
#else
#define VECTORS __attribute__((optimize("O3")))
#endif

#define LANES(name)  name##_portable
#define LANES_TARGET VECTORS
#include "gpu/host/lanes_body.h" /* NOLINT(readability-duplicate-include): once for each */

#ifdef __x86_64__
#define LANES(name)  name##_avx2
#define LANES_TARGET VECTORS __attribute__((target("avx2,bmi,bmi2")))
#include "gpu/host/lanes_body.h" /* NOLINT(readability-duplicate-include) */

#define LANES(name)  name##_avx512
#define LANES_TARGET VECTORS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2")))
#include "gpu/host/lanes_body.h" /* NOLINT(readability-duplicate-include) */
#endif

const struct pfs_lanes *pfs_lanes_version(unsigned i)
{
#ifdef __x86_64__
	const struct pfs_lanes *versions[3];
	unsigned n = 0;

	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
		versions[n++] = &lanes_avx512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		versions[n++] = &lanes_avx2;
	versions[n++] = &lanes_portable;
	return i < n ? versions[i] : NULL;
#else
	return i == 0 ? &lanes_portable : NULL;
#endif
}

const struct pfs_lanes *pfs_lanes(void)
{
	static const struct pfs_lanes *lanes;
	const struct pfs_lanes *found = __atomic_load_n(&lanes, __ATOMIC_RELAXED);

	if (!found) {
		found = pfs_lanes_version(0);
		__atomic_store_n(&lanes, found, __ATOMIC_RELAXED);
	}
	return found;
}
