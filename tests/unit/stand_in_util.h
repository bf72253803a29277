/* SPDX-License-Identifier: MIT */
/* tests/unit/stand_in_util.h - the tests of engine_util.h on a third engine: one whose device is
 * the stand-in, which counts what it is asked. */
#ifndef PFS_TESTS_STAND_IN_UTIL_H
#define PFS_TESTS_STAND_IN_UTIL_H

#include "engine_util.h"
#include "gpu/engine_impl.h"
#include "tests/ref/stand_in.h"

static enum pfs_engine_kind engine_stand_in = (enum pfs_engine_kind)(PFS_ENGINE_CUDA + 1);

static inline bool is_stand_in(void **state)
{
	return kind_of(state) == engine_stand_in;
}

static inline struct pfs_engine *open_case(void **state)
{
	struct pfs_backend *device = NULL;
	struct pfs_engine *engine = NULL;

	if (!is_stand_in(state))
		return open_or_skip(kind_of(state));
	stand_in.loads = stand_in.applies = 0;
	stand_in.names_sent = 0;
	assert_int_equal(stand_in_open(&device), 0);
	assert_int_equal(pfs_engine_open_backend(&engine, device, true), 0);
	return engine;
}

#define ON_EACH(test) ON_ALL(test), ON(stand_in, test)

#endif
