/* SPDX-License-Identifier: MIT */
/* tools/newer/from_impl.h - inside of tools/newer/from.h: from.c (which node is which),
 * from_values.c (what differs in one) and from_apply.c (make it so). */
#ifndef PFS_TOOLS_NEWER_FROM_IMPL_H
#define PFS_TOOLS_NEWER_FROM_IMPL_H

#include "tools/newer/from.h"

#define PFS_FROM_NONE UINT32_MAX

/* A node of one of the trees. */
struct pfs_from_node {
	char *path; /* below its root, "" for that itself */
	char *key;  /* NULL: it has none, it is the store's own */
	struct stat attr;
	uint64_t ino;	   /* in its own tree */
	uint32_t parent;   /* in the list */
	uint32_t other;	   /* in the other list: what it is there; or PFS_FROM_NONE */
	uint64_t place;	   /* of a newer one: the store's node; 0: none, or none yet */
	bool row;
	bool stays;	   /* of the store's that has no other: something in it stays */
	bool moves;	   /* of a newer one: it gets another parent or name */
	bool blocked;	   /* of a newer one: its place is taken by something that stays */
	bool changes;	   /* of a newer one: values or content */
};

struct pfs_from_list {
	struct pfs_from_node *nodes; /* in pre-order: the root is the first */
	size_t n, capacity;
	uint32_t *by_key; /* those that have one, in order of keys */
	size_t n_keys;
	uint32_t *own; /* the store's own, in order */
	size_t n_own, own_capacity;
};

/* As struct pfs_from_event; texts are its own. */
struct pfs_from_note {
	enum pfs_from_what what;
	uint32_t old, newer; /* which node it is, in either list, or PFS_FROM_NONE */
	char *path, *from, *column, *before, *after;
};

struct pfs_from_lists {
	struct pfs_from_options options;
	struct pfs_from_list old, newer;
	struct pfs_from_note *notes;
	size_t n_notes, notes_capacity;
	uint64_t count[PFS_FROM_WHATS];
};

static inline const char *pfs_from_name(const char *path)
{
	const char *slash = path;

	for (const char *at = path; *at; at++)
		if (*at == '/')
			slash = at + 1;
	return slash;
}

/* Adds a note, whose path is that of the newer node or, without one, of the old one. */
PFS_MUST_CHECK int pfs_from_note(struct pfs_from_lists *from, struct pfs_from_note **out,
				 enum pfs_from_what what, uint32_t old, uint32_t newer);

/* ---- from_values.c ---- */

/* Notes what differs between the node and what it was. */
PFS_MUST_CHECK int pfs_from_compare_values(struct pfs_from_lists *from, uint32_t newer);

/* Takes over what differs, or everything of a node that has just been made.  -ENOSPC and the
 * like. */
PFS_MUST_CHECK int pfs_from_take_values(struct pfs_from_lists *from,
					const struct pfs_from_node *node, bool made);

/* Gives a node that was made the attributes of the one that it was. */
PFS_MUST_CHECK int pfs_from_take_attributes(struct pfs_from_lists *from, uint64_t to, uint64_t of);

#endif
