/* SPDX-License-Identifier: MIT */
/* fs/image/device_lookup_impl.h - what questions to a device (device_lookup.c) share with what
 * keeps its index of names and its parents as the image's are (device_follow.c).
 *
 * A thread fills the device in short holds of the tree, and later sends it changes if they are
 * many; nobody asks the device meanwhile. A few changes are sent by whoever asks next. */
#ifndef PFS_FS_IMAGE_DEVICE_LOOKUP_IMPL_H
#define PFS_FS_IMAGE_DEVICE_LOOKUP_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/device_lookup.h"

/* A pair of the index that came or went, and, unless PFS_MAILBOX_NONE, the slot's parent. */
struct pfs_device_change {
	uint64_t key;
	uint32_t slot, parent;
	uint32_t number; /* in order of time */
	bool is_gone;
	bool is_directory; /* the slot's node */
};

struct pfs_device_changes {
	struct pfs_device_change *list;
	size_t n, capacity;
	uint32_t end; /* no slot is at or beyond it */
};

enum pfs_device_state {
	PFS_DEVICE_EMPTY,  /* it is to be filled, and changes are not gathered */
	PFS_DEVICE_BUSY,   /* the thread fills or changes it */
	PFS_DEVICE_FILLED, /* it is as the image was before the changes that are gathered */
};

struct pfs_device_counter {
	_Atomic uint64_t n, timed, ns;
};

struct pfs_device_lookup {
	/* NULL: nobody but the image answers.  Set before the tree has more than one user. */
	struct pfs_resident *resident;
	pthread_mutex_t lock; /* after tree->lock */
	/* Written under tree->lock for writing, or by who holds `lock` and any tree->lock. */
	_Atomic enum pfs_device_state state;
	struct pfs_device_changes changes;
	_Atomic bool is_current; /* filled, and no changes */
	_Atomic bool is_given_up;
	_Atomic bool had_no_paths; /* it has been told that memory for paths was refused */
	uint32_t falsified; /* tests: a bit for each kind */
	/* The thread; protected by `lock`, but for `stops`. */
	pthread_t thread;
	pthread_cond_t wanted;
	bool has_thread, is_wanted;
	_Atomic bool stops;
	struct pfs_device_counter host[PFS_QUESTION_KINDS], device[PFS_QUESTION_KINDS];
};

/* Leaves the device for good. why: for a warning; NULL: its own failure has been told. -EIO. */
int pfs_device_give_up(struct pfs_device_lookup *single, const char *why);

/* True if changes are gathered. tree->lock is held for writing. */
static inline bool pfs_device_follows(const struct pfs_device_lookup *single)
{
	return atomic_load_explicit(&single->state, memory_order_relaxed) != PFS_DEVICE_EMPTY;
}

/* Gathers a change; `number` is set here. tree->lock is held for writing. */
void pfs_device_follow_note(struct pfs_device_lookup *single,
			    const struct pfs_device_change *change);
/* Brings the device up to date if little is missing, else asks the thread to. tree->lock is held.
 * -EAGAIN: the device is not to be asked now; -EIO, -ENOMEM: never again. */
PFS_MUST_CHECK int pfs_device_follow(const struct pfs_tree *tree);
/* Starts the thread, which fills the device when it is first asked (pfs_device_follow): at the
 * mount it would take the processors and the bus from the first statement. No lock is held. */
void pfs_device_follow_start(struct pfs_tree *tree);
void pfs_device_follow_stop(struct pfs_device_lookup *single);

#endif
