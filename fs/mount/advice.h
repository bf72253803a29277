/* SPDX-License-Identifier: MIT */
/* fs/mount/advice.h - which listings carry attributes.
 *
 * Attributes with a listing save a request for each entry, if they are wanted; if not, they cost
 * three times what names alone do. A request does not say which. So the first part of a listing
 * carries them, which is all of a small directory. The rest carries them if the process was seen to
 * look up an entry that had been listed to it without attributes. A wrong guess costs time only.
 * Threads: any number; a race costs a wrong guess. */
#ifndef PFS_FS_MOUNT_ADVICE_H
#define PFS_FS_MOUNT_ADVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PFS_ADVICE_SLOTS 64

/* Holds what is known of processes; it is all zero at first. */
struct pfs_advice {
	struct pfs_advice_slot {
		_Atomic pid_t pid;
		_Atomic bool wants;
		_Atomic uint64_t bare; /* the directory last listed without attributes */
	} slots[PFS_ADVICE_SLOTS];     /* by pid; the later process takes a slot over */
};

/* Returns true if pid's listing of directory `ino` is to carry attributes, from `offset` on. */
bool pfs_advice_list(struct pfs_advice *advice, pid_t pid, uint64_t ino, int64_t offset);

/* Notes that pid looked up an entry of directory `parent`. Not to be called for directories: those
 * are looked up to be listed, too. */
static inline void pfs_advice_lookup(struct pfs_advice *advice, pid_t pid, uint64_t parent)
{
	struct pfs_advice_slot *slot = &advice->slots[(uint32_t)pid % PFS_ADVICE_SLOTS];

	if (atomic_load_explicit(&slot->bare, memory_order_relaxed) == parent &&
	    atomic_load_explicit(&slot->pid, memory_order_relaxed) == pid)
		atomic_store_explicit(&slot->wants, true, memory_order_relaxed);
}

#endif
