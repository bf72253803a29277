/* SPDX-License-Identifier: MIT */
/* gpu/prefix.h - prefix trees (docs/design/papers.md, S3): each key, a byte string or an integer,
 * has a list of 64-bit payloads.
 *
 * A key is cut into sub-keys of `bits` bits, each of which picks one of 2^bits children; the first
 * is the most significant. `levels` levels make a *partition*, a tree of its own with a number, so
 * that a key's ways through all partitions can be walked at once and put together afterwards. Keys
 * come in byte order, integers by size; a key that is a prefix of another comes before it.
 *
 * The tree is pages with relative addresses: it is written as bytes, read into another index and
 * sent to a device as it is. Keys and lists of payloads are in the host's memory. A device has a
 * copy of the tree's pages, of which changed ones are sent again, and answers if run->on is CUDA or
 * AUTO. If a device fails or is short of memory, one warning is logged, and the host answers the
 * same.
 *
 * Threads: any number.  A batch of changes is one step: a batch of questions sees the index before
 * it or after it.  Questions run side by side. Errors of all functions, beside their own: -ENOMEM;
 * what run->poll answers. Not handled here: what a payload means. */
#ifndef PFS_GPU_PREFIX_H
#define PFS_GPU_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/run.h"

#define PFS_PREFIX_NONE	     UINT32_MAX /* no place: the key is not there */
#define PFS_PREFIX_KEY_MAX   4096u	/* bytes */
#define PFS_PREFIX_BATCH_MAX ((size_t)1 << 30)

struct pfs_prefix;

enum pfs_prefix_key_type { PFS_PREFIX_BYTES, PFS_PREFIX_U32, PFS_PREFIX_U64 };

enum pfs_prefix_layout {
	/* The tree has every level; each node is allocated when it is first needed. */
	PFS_PREFIX_ON_DEMAND,
	/* The tree has every level. 16 partitions of a level share their inner nodes, and where
	 * they differ their words lie side by side, for the 16 threads that walk them. */
	PFS_PREFIX_SIXTEEN,
	/* The tree has only nodes where keys part; the whole key is compared at the end. There are
	 * no partitions, and every traversal is the serial one. */
	PFS_PREFIX_COMPACT,
};

struct pfs_prefix_shape {
	enum pfs_prefix_key_type type;
	enum pfs_prefix_layout layout;
	unsigned bits;	 /* of a sub-key: 1 to 8 */
	/* Levels of a partition; 0: the square root of the levels of a key (of one of 128 bytes, if
	 * keys vary in length). */
	unsigned levels;
	/* HIERARCHICAL: partitions of a block that lie one below the other; 0: 8. */
	unsigned depth;
};

/* Says how a key is looked up. */
enum pfs_prefix_traversal {
	PFS_PREFIX_SERIAL,	 /* level by level; a thread a key */
	PFS_PREFIX_SPECULATIVE,	 /* in all partitions at once; their results are followed in turn */
	PFS_PREFIX_HIERARCHICAL, /* the same within blocks of partitions, and then for the blocks */
	/* In all partitions at once; then backwards from each payload found. If only one was found,
	 * its key is compared, and nothing else is done. */
	PFS_PREFIX_PARALLEL,
};

/* Keys, which the caller owns. Byte strings lie one after the other, key i from at[i] to at[i + 1];
 * integers are an array of uint32_t or uint64_t, and `at` is NULL. */
struct pfs_prefix_keys {
	const void *keys;
	const uint64_t *at;
	size_t n;
};

/* Makes an empty index. -EINVAL: there is no such shape. */
PFS_MUST_CHECK int pfs_prefix_create(const struct pfs_run *run, struct pfs_prefix **out,
				     const struct pfs_prefix_shape *shape);
/* NULL is allowed. */
void pfs_prefix_close(const struct pfs_run *run, struct pfs_prefix *index);

/* Errors of all functions that follow and take keys: -ENAMETOOLONG: one is longer than
 * PFS_PREFIX_KEY_MAX; -EINVAL: n is over PFS_PREFIX_BATCH_MAX, or `at` is there for integers, or
 * not for strings. */

/* Adds payloads[i] at the end of the list of key i; a list may have a payload many times. On an
 * error the first *n_added pairs have been added, and no others. -EOVERFLOW: there would be more
 * than 2^31 keys or 32 GiB of tree. */
PFS_MUST_CHECK int pfs_prefix_insert(const struct pfs_run *run, struct pfs_prefix *index,
				     uint64_t *n_added, const struct pfs_prefix_keys *keys,
				     const uint64_t *payloads);
/* Removes from the list of key i the first payload that is payloads[i], and the key when its list
 * is empty; *n_removed is how many payloads were there. A list is read up to the payload. */
PFS_MUST_CHECK int pfs_prefix_remove(const struct pfs_run *run, struct pfs_prefix *index,
				     uint64_t *n_removed, const struct pfs_prefix_keys *keys,
				     const uint64_t *payloads);

/* Looks up each key: payloads[i] = the first payload of key i, and places[i] = its place, or
 * PFS_PREFIX_NONE if the key is not there. payloads may be NULL. */
PFS_MUST_CHECK int pfs_prefix_get(const struct pfs_run *run, struct pfs_prefix *index,
				  uint64_t *payloads, uint32_t *places,
				  const struct pfs_prefix_keys *keys,
				  enum pfs_prefix_traversal traversal);

/* ---- in order ---- */

struct pfs_prefix_entry {
	uint64_t payload;
	const uint8_t *key; /* valid until the index changes; integers: highest byte first */
	uint32_t len;
	uint32_t place;
	uint64_t removals; /* how many removals the index had had when the entry was read */
};

/* The functions in this section return 1 if they found an entry, and 0 if there is none.
 *
 * seek finds the first payload of the first key that is not less. */
PFS_MUST_CHECK int pfs_prefix_seek(struct pfs_prefix *index, struct pfs_prefix_entry *out,
				   const struct pfs_prefix_keys *key);
/* Gets the payload at a place that pfs_prefix_get returned, with its key. -ESTALE: no payload is at
 * that place any more. */
PFS_MUST_CHECK int pfs_prefix_at(struct pfs_prefix *index, struct pfs_prefix_entry *out,
				 uint32_t place);
/* Goes to the next payload, of the same key or of the next one. -ESTALE: something was removed
 * since the entry was read; insertions do no harm. */
PFS_MUST_CHECK int pfs_prefix_next(struct pfs_prefix *index, struct pfs_prefix_entry *entry);
/* pfs_prefix_last finds the last payload of the last key; pfs_prefix_previous goes from one payload
 * to the one before, with the errors of pfs_prefix_next. */
PFS_MUST_CHECK int pfs_prefix_last(struct pfs_prefix *index, struct pfs_prefix_entry *out);
PFS_MUST_CHECK int pfs_prefix_previous(struct pfs_prefix *index, struct pfs_prefix_entry *entry);

/* pfs_prefix_scan lists the payloads of all keys that begin with these bytes, in order; the caller
 * frees the list with pfs_prefix_list_free. -EINVAL: the keys are integers. */
struct pfs_prefix_list {
	uint64_t *payloads;
	size_t n;
};
PFS_MUST_CHECK int pfs_prefix_scan(const struct pfs_run *run, struct pfs_prefix *index,
				   struct pfs_prefix_list *out, const void *prefix, size_t len);
void pfs_prefix_list_free(const struct pfs_run *run, struct pfs_prefix_list *list);

/* ---- out and in ---- */

/* Writes the index as bytes, which the caller frees with free. They are in this machine's byte
 * order. */
PFS_MUST_CHECK int pfs_prefix_write(const struct pfs_run *run, struct pfs_prefix *index,
				    uint8_t **bytes, size_t *size);
/* Makes an index of such bytes, which stay the caller's. -EUCLEAN: they are damaged; the log says
 * where. */
PFS_MUST_CHECK int pfs_prefix_read(const struct pfs_run *run, struct pfs_prefix **out,
				   const uint8_t *bytes, size_t size);
/* Frees the device's copy; the next question for the device makes another. */
void pfs_prefix_page_out(const struct pfs_run *run, struct pfs_prefix *index);

struct pfs_prefix_info {
	const char *where; /* "host", or "cuda" if a device has a copy */
	struct pfs_prefix_shape shape;
	uint64_t n_keys, n_payloads;
	uint64_t n_nodes, n_partitions, n_blocks; /* COMPACT: nodes only */
	uint64_t tree_bytes; /* memory of nodes and partitions, which a device has, too */
	uint64_t list_bytes; /* memory of keys and payloads */
	uint64_t asked_on_device; /* keys that a device has looked up */
};
void pfs_prefix_describe(struct pfs_prefix *index, struct pfs_prefix_info *info);

/* Checks the invariants: order, links, counts, partitions, what each key leads to. -EUCLEAN: one is
 * broken; page and rule have been logged. Verify builds call it after each batch of changes. */
PFS_MUST_CHECK int pfs_prefix_verify(struct pfs_prefix *index);

/* For benchmarks: measures the seconds that each of `repeat` batches of pfs_prefix_get takes on the
 * device, with keys and answers in its memory. -EOPNOTSUPP: no device has a copy. */
PFS_MUST_CHECK int pfs_prefix_probe(const struct pfs_run *run, struct pfs_prefix *index,
				    double *seconds, unsigned repeat,
				    const struct pfs_prefix_keys *keys,
				    enum pfs_prefix_traversal traversal);

/* ---- a dictionary of named indexes ---- */

#define PFS_PREFIX_NAME_MAX 255u /* bytes */

struct pfs_prefix_names;

PFS_MUST_CHECK int pfs_prefix_names_create(struct pfs_prefix_names **out);
/* Frees the dictionary; its indexes are not closed. */
void pfs_prefix_names_close(const struct pfs_run *run, struct pfs_prefix_names *names);
/* Adds an index under a name. -EEXIST; -ENAMETOOLONG; -EINVAL: it is no name. */
PFS_MUST_CHECK int pfs_prefix_names_add(struct pfs_prefix_names *names, const char *name,
					struct pfs_prefix *index);
/* Finds an index by its name; returns 0 with *out NULL if there is none. On a device each thread
 * compares one name. */
PFS_MUST_CHECK int pfs_prefix_names_find(const struct pfs_run *run, struct pfs_prefix_names *names,
					 struct pfs_prefix **out, const char *name);
/* Forgets the name; the index is not closed.  -ENOENT. */
PFS_MUST_CHECK int pfs_prefix_names_remove(struct pfs_prefix_names *names, const char *name);
/* Calls `each` for each name, in the order in which they were added, until it returns non-zero,
 * which is returned. The dictionary must not be changed meanwhile. */
PFS_MUST_CHECK int pfs_prefix_names_each(struct pfs_prefix_names *names,
					 int (*each)(void *context, const char *name,
						     struct pfs_prefix *index),
					 void *context);

#endif
