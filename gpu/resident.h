/* SPDX-License-Identifier: MIT */
/* gpu/resident.h - single questions about a tree, answered on a device by a kernel that stays there
 * and polls a mailbox (gpu/mailbox.h): a few microseconds each, where a launch and a copy take ten
 * times that.
 *
 * The device has an index of names, (key, slot) pairs in that order, and each slot's parent.
 * Changes are sent to it in batches.
 *
 * The kernel leaves the device when no question came for PFS_RESIDENT_IDLE_MS, after
 * PFS_RESIDENT_LIMIT_MS at the latest, and at once when it is told to: before its data is changed,
 * and before a call that waits for all of the device (pfs_resident_keep_away). The next question
 * starts it again.
 *
 * Threads: any number ask at once, but none while another thread loads, applies or closes. Errors:
 * a device that fails, or does not answer in time, is left for good with one warning. From then on
 * each function returns -EIO, or -ENOMEM if its memory was short, and the caller has to find the
 * answer itself. */
#ifndef PFS_GPU_RESIDENT_H
#define PFS_GPU_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/engine.h"
#include "gpu/mailbox.h"

#define PFS_RESIDENT_IDLE_MS  100u
#define PFS_RESIDENT_LIMIT_MS 500u
#define PFS_RESIDENT_EDITS    8u /* changes that are made one by one by the kernel, which stays */
/* New directories after which those of the tree are known by their paths anew; until then these are
 * found by components. */
#define PFS_RESIDENT_NEW 4096u

struct pfs_resident;
struct pfs_resident_backend;

/* Opens a resident without data over a back end, which it then owns. -ENOMEM. */
PFS_MUST_CHECK int pfs_resident_open_backend(struct pfs_resident **out,
					     struct pfs_resident_backend *backend);
void pfs_resident_close(struct pfs_resident *resident); /* NULL is allowed */

struct pfs_resident_load {
	const uint32_t *parent; /* by slot; PFS_MAILBOX_NONE: none */
	size_t n_slots;
	const uint64_t *keys; /* with values: strictly ascending pairs */
	const uint32_t *values;
	size_t n;
};

/* Replaces all data. The arrays stay the caller's. */
PFS_MUST_CHECK int pfs_resident_load(struct pfs_resident *resident,
				     const struct pfs_resident_load *load);

struct pfs_resident_changes {
	/* Pairs to remove, which is done first, and pairs to add. No pair is in both; both ascend
	 * strictly. A pair to remove need not be there, and one to add may be there. */
	const uint64_t *gone_keys, *new_keys;
	const uint32_t *gone_values, *new_values;
	size_t n_gone, n_new;
	const uint32_t *slots, *parents; /* no slot twice; includes the slot of each pair */
	size_t n_slots;
	uint32_t end;		/* all slots are below it */
	bool moves_directories; /* a pair to remove is, or was, one of a directory */
	size_t n_directories;	/* pairs to add that are */
};

PFS_MUST_CHECK int pfs_resident_apply(struct pfs_resident *resident,
				      const struct pfs_resident_changes *changes);

/* Returns true if PATH is worth asking. */
bool pfs_resident_knows_paths(const struct pfs_resident *resident);
/* Asks one question; op is LOOKUP, LIST, PATH or CHILD, as gpu/mailbox.h describes them. path: for
 * PATH, of as many bytes as the longer one has, PFS_MAILBOX_PATH_MAX at most. */
PFS_MUST_CHECK int pfs_resident_ask(struct pfs_resident *resident,
				    struct pfs_mailbox_answer *answer,
				    const struct pfs_mailbox_question *question, const char *path);
/* Sets *under if `slot` is `top` or lies under it. op: ANCESTOR or MOVE. */
PFS_MUST_CHECK int pfs_resident_is_under(struct pfs_resident *resident, bool *under,
					 enum pfs_mailbox_op op, uint32_t slot, uint32_t top);
/* Sets *common to the deepest node that both are or lie under. */
PFS_MUST_CHECK int pfs_resident_common(struct pfs_resident *resident, uint32_t *common, uint32_t a,
				       uint32_t b);

/* ---- many paths ---- */

#define PFS_RESIDENT_PATHS (1u << 18)	      /* that are resolved at once, at most */
#define PFS_RESIDENT_TEXT  ((size_t)24 << 20) /* bytes of theirs, at most */
/* Lists of paths that are resolved at the same time, at most. While one of them is packed, another
 * one crosses the bus, and kernels of two fill more of the device than one does. */
#define PFS_RESIDENT_LISTS 3u

/* Many paths and where they lead. What pfs_resident_paths_take gives is memory of which a device
 * copies at the speed of its bus. */
struct pfs_resident_paths {
	char *text;	/* the paths, one behind the other */
	uint32_t *ends; /* of each path in the text; it begins where the one before it ends */
	size_t n;
	/* Either may be set to NULL by who does not want it. */
	uint32_t *slots;  /* where each leads; PFS_MAILBOX_NONE: nowhere */
	uint64_t *primes; /* of these slots; 0: there is none */
	/* Below PFS_RESIDENT_LISTS; or that: the memory is the caller's, as any number of paths of
	 * a benchmark's, which one thread at a time may have resolved. */
	unsigned list;
};

/* The columns by slot of the tree whose names and parents were loaded, besides those. */
struct pfs_resident_columns {
	const struct pfs_names_view *names; /* with the column of places */
	const uint64_t *prime;
	const struct pfs_stamps *place_stamps, *prime_stamps;
	uint64_t seed; /* of the hashes in the index's keys, and how many bits they have */
	unsigned hash_bits;
	uint32_t root, top; /* where absolute and relative paths begin; top: or PFS_MAILBOX_NONE */
};

/* Gets memory for many paths, until they are returned. -EBUSY: PFS_RESIDENT_LISTS callers have
 * some, or there is too little memory for more than others have; -ENOMEM: there is too little for
 * any; -EIO. Memory that was refused is asked for again half a minute later. */
PFS_MUST_CHECK int pfs_resident_paths_take(struct pfs_resident *resident,
					   struct pfs_resident_paths **out);
/* The thread that took them returns them. */
void pfs_resident_paths_return(struct pfs_resident *resident,
			       const struct pfs_resident_paths *paths);
/* Finds where the paths lead, as gpu/path_walk.h says. The columns do not change during the call,
 * nor does anybody load or apply. -EAGAIN: the device did not have all of the columns; it has more
 * of them now, and `most` bytes were sent. -EOPNOTSUPP: the device cannot be had for the moment.
 * -ENOMEM: its memory is too short, which for these paths' list it is not asked for again for half
 * a minute; single questions go on. */
PFS_MUST_CHECK int pfs_resident_resolve(struct pfs_resident *resident,
					struct pfs_resident_paths *paths,
					const struct pfs_resident_columns *columns, size_t most);

struct pfs_resident_info {
	char device[64];
	bool failed;
	bool is_running;	 /* the kernel is on the device */
	bool knows_paths;	 /* PATH is worth asking */
	uint64_t runs;		 /* how often the kernel was started */
	uint64_t loads, batches; /* how often all data was sent; batches of changes */
	uint64_t edits;		 /* changes that the kernel itself made, one by one */
	uint64_t change_ns;	 /* time that batches and edits took */
	uint64_t leave_ns; /* the longest time that the kernel took to leave once it was told to */
	uint64_t asked, bytes;	    /* questions answered; device memory */
	uint64_t bus_ns, kernel_ns; /* time that paths took on the bus, and in the kernel */
};
void pfs_resident_describe(struct pfs_resident *resident, struct pfs_resident_info *info);

/* For tests: makes answers to these operations wrong (bits by enum pfs_mailbox_op; PFS_MAILBOX_OPS:
 * many paths). */
void pfs_resident_falsify(struct pfs_resident *resident, uint32_t operations);

/* To be called before and after a CUDA call that waits for all of a device. A kernel that is there
 * has left when pfs_resident_keep_away returns; kernels that are started before
 * pfs_resident_come_back leave as soon as there is nothing to answer. */
void pfs_resident_keep_away(void);
void pfs_resident_come_back(void);

/* ---- for back ends ---- */

struct pfs_resident_ops {
	void (*close)(struct pfs_resident_backend *b);
	void (*describe)(struct pfs_resident_backend *b, struct pfs_resident_info *info);
	/* Called only while no run goes on. */
	int (*load)(struct pfs_resident_backend *b, const struct pfs_resident_load *load);
	int (*apply)(struct pfs_resident_backend *b, const struct pfs_resident_changes *changes);
	/* Says that the server has added a pair of this key, or removed one. */
	void (*edited)(struct pfs_resident_backend *b, uint64_t key, bool is_new);
	/* Begins a run of the server, and does not wait for it. */
	int (*start)(struct pfs_resident_backend *b, const struct pfs_mailbox_run *run);
	/* Gets memory for the paths of a list below PFS_RESIDENT_LISTS, once, which close frees. */
	int (*paths)(struct pfs_resident_backend *b, struct pfs_resident_paths **out,
		     unsigned list);
	/* As pfs_resident_resolve, also while a run goes on, and for several lists at once.
	 * is_false: nothing is to be found. */
	int (*resolve)(struct pfs_resident_backend *b, struct pfs_resident_paths *paths,
		       const struct pfs_resident_columns *columns, size_t most, bool is_false);
};

/* First member of every such back end. */
struct pfs_resident_backend {
	const struct pfs_resident_ops *ops;
	struct pfs_mailbox *mailbox; /* zeroed; freed by close, unless a run has not left */
	uint64_t patience_ns;	     /* nanoseconds that a running server may take for a question */
	bool in_slices;		     /* a run ends as soon as there is nothing to answer */
	uint32_t paths;		     /* enum pfs_paths_state; written and read by any thread */
};

enum pfs_paths_state {
	PFS_PATHS_UNKNOWN,
	PFS_PATHS_LEARNT, /* a table of them is being made: changes are told as if it were there */
	PFS_PATHS_KNOWN,  /* PATH can be answered */
};

/* -ENODEV: built without CUDA, or no device. */
PFS_MUST_CHECK int pfs_cuda_resident_open(struct pfs_resident_backend **out);

/* Opens a resident without data over the device. -ENODEV: there is none; -ENOMEM. It is in this
 * header because the device's back end calls resident.c, which therefore must not call the back
 * end. */
PFS_MUST_CHECK static inline int pfs_resident_open(struct pfs_resident **out)
{
	struct pfs_resident_backend *backend;

	*out = NULL;
	PFS_TRY(pfs_cuda_resident_open(&backend));
	return pfs_resident_open_backend(out, backend);
}

#endif
