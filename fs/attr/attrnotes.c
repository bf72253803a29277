/* SPDX-License-Identifier: MIT */
#include "fs/attr/attrnotes.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "fs/image/byprime.h"
#include "fs/image/snapshot.h"
#include "fs/journal/records.h"

#define NOTES_MAX ((size_t)1 << 17) /* how many sets are noted, older ones included */
#define DRAIN	  16u /* older sets that are freed at a time */

/* A set that snapshots read whose number is above `since`, up to `since` of the newer version. */
struct version {
	struct pfs_value *set;
	uint64_t since;
	struct version *older;
};

struct note {
	struct pfs_byprime by_prime;
	struct version now;
};

/* An older set. It is the last of its note's versions when it is the first in the list. */
struct kept {
	struct version version;
	struct note *note;
	/* `since` of the newer version, which is never less than that of sets kept earlier */
	uint64_t upto;
	struct kept *next;
};

struct pfs_attr_notes {
	struct pfs_tree *tree;
	_Atomic unsigned references;
	struct pfs_byprime_table table;
	size_t n; /* how many sets there are */
	struct kept *first, *last;
};

int pfs_attr_notes_create(struct pfs_attr_notes **out, struct pfs_tree *tree)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->tree = tree;
	(*out)->references = 1;
	return 0;
}

struct pfs_attr_notes *pfs_attr_notes_ref(struct pfs_attr_notes *notes)
{
	notes->references++;
	return notes;
}

static int64_t bytes_of(const struct kept *kept)
{
	return (int64_t)(sizeof(*kept) + (kept->version.set ? kept->version.set->size : 0));
}

static void free_first(struct pfs_attr_notes *notes)
{
	struct kept *kept = notes->first;

	notes->first = kept->next;
	notes->n--;
	pfs_snapshots_keep(notes->tree, PFS_KEPT_ATTRIBUTES, -bytes_of(kept));
	pfs_value_unref(kept->version.set);
	free(kept);
}

static void free_note(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	struct note *note = (struct note *)entry;

	pfs_value_unref(note->now.set);
	free(note);
}

void pfs_attr_notes_unref(struct pfs_attr_notes *notes)
{
	if (!notes || --notes->references)
		return;
	while (notes->first)
		free_first(notes);
	pfs_byprime_drain(&notes->table, free_note, NULL);
	free(notes);
}

/* Frees some of those that no snapshot reads any more. */
static void drain(struct pfs_attr_notes *notes, uint64_t first, uint64_t last)
{
	for (unsigned i = 0; i < DRAIN && notes->first && (!last || notes->first->upto < first);
	     i++) {
		struct version *newer = &notes->first->note->now;

		while (newer->older != &notes->first->version)
			newer = newer->older;
		newer->older = NULL;
		free_first(notes);
	}
}

/* Makes the node's present set an older one, which snapshots up to number `last` read. */
static int keep_older(struct pfs_attr_notes *notes, struct note *note, uint64_t last)
{
	struct kept *kept = notes->n < NOTES_MAX ? malloc(sizeof(*kept)) : NULL;

	if (!kept)
		return -ENOMEM;
	*kept = (struct kept){.version = note->now, .note = note, .upto = last};
	note->now = (struct version){.since = last, .older = &kept->version};
	*(notes->first ? &notes->last->next : &notes->first) = kept;
	notes->last = kept;
	notes->n++;
	pfs_snapshots_keep(notes->tree, PFS_KEPT_ATTRIBUTES, bytes_of(kept));
	return 0;
}

static int add_note(struct pfs_attr_notes *notes, struct note **out, uint64_t prime, uint64_t last)
{
	struct note *note = notes->n < NOTES_MAX ? calloc(1, sizeof(*note)) : NULL;

	if (!note)
		return -ENOMEM;
	note->by_prime.prime = prime;
	note->now.since = last;
	pfs_byprime_add(&notes->table, &note->by_prime);
	notes->n++;
	*out = note;
	return 0;
}

int pfs_attr_notes_put(struct pfs_attr_notes *notes, uint64_t prime, struct pfs_value *set)
{
	struct note *note = (struct note *)pfs_byprime_find(&notes->table, prime);
	uint64_t first, last = pfs_snapshots_open(notes->tree, &first);

	drain(notes, first, last);
	if (!note)
		PFS_TRY(add_note(notes, &note, prime, last));
	else if (note->now.since < last)
		PFS_TRY(keep_older(notes, note, last));
	pfs_value_unref(note->now.set);
	note->now.set = pfs_value_ref(set);
	return 0;
}

bool pfs_attr_notes_empty(const struct pfs_attr_notes *notes)
{
	return !notes->n;
}

bool pfs_attr_notes_find(const struct pfs_attr_notes *notes, struct pfs_value **set, uint64_t prime,
			 uint64_t number)
{
	const struct note *note = (const struct note *)pfs_byprime_find(&notes->table, prime);
	const struct version *version = note ? &note->now : NULL;

	while (version && version->since >= number)
		version = version->older;
	*set = version ? version->set : NULL;
	return version;
}
