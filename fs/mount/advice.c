/* SPDX-License-Identifier: MIT */
#include "fs/mount/advice.h"

bool pfs_advice_list(struct pfs_advice *advice, pid_t pid, uint64_t ino, int64_t offset)
{
	struct pfs_advice_slot *slot = &advice->slots[(uint32_t)pid % PFS_ADVICE_SLOTS];

	if (offset == 0)
		return true;
	if (atomic_load_explicit(&slot->pid, memory_order_relaxed) != pid) {
		atomic_store_explicit(&slot->wants, false, memory_order_relaxed);
		atomic_store_explicit(&slot->pid, pid, memory_order_relaxed);
	} else if (atomic_load_explicit(&slot->wants, memory_order_relaxed)) {
		return true;
	}
	atomic_store_explicit(&slot->bare, ino, memory_order_relaxed);
	return false;
}
