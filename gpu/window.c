/* SPDX-License-Identifier: MIT */
#include "gpu/window.h"

const struct pfs_window_traits pfs_window_traits[PFS_N_WINDOWS] = {
#define PFS_WINDOW_TRAITS(id, name, has_argument, tells_apart) [PFS_##id] = {name, has_argument, tells_apart},
	PFS_WINDOWS(PFS_WINDOW_TRAITS)
#undef PFS_WINDOW_TRAITS
};
