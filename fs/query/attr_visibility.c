/* SPDX-License-Identifier: MIT */
/* Which attributes a viewer sees: the name of an attribute that only nodes in closed directories have tells
 * something that is not his to know, so for him `nodes` has no such column.
 *
 * Most stores have their attributes all over: a few nodes show nearly all names.  Those that are left are
 * looked for in their columns, one by one. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/internal.h"

#define REMEMBERED 8   /* viewers */
#define SAMPLE	   256 /* nodes whose names are listed */
#define LIST_SIZE  ((size_t)64 << 10)
#define BATCH	   1024
#define HELD	   (64 * BATCH) /* nodes looked at before others may have the tree */
#define TRIES	   8 /* while the tree changes; then the name stays unknown */

struct entry {
	struct pfs_visible *visible;
	uint64_t epoch;
	struct pfs_attr_visibility attrs;
};

struct pfs_attr_visibilities {
	pthread_mutex_t lock;
	struct entry entries[REMEMBERED]; /* protected by lock */
	size_t next;			  /* to be replaced; the same */
};

int pfs_attr_visibilities_create(struct pfs_attr_visibilities **out)
{
	struct pfs_attr_visibilities *visibilities = calloc(1, sizeof(*visibilities));

	*out = visibilities;
	if (!visibilities)
		return -ENOMEM;
	(void)pthread_mutex_init(&visibilities->lock, NULL);
	return 0;
}

static void forget(struct entry *entry)
{
	pfs_visible_unref(entry->visible);
	free(entry->attrs.shown);
	*entry = (struct entry){.epoch = 0};
}

void pfs_attr_visibilities_destroy(struct pfs_attr_visibilities *visibilities)
{
	if (!visibilities)
		return;
	for (size_t i = 0; i < REMEMBERED; i++)
		forget(&visibilities->entries[i]);
	(void)pthread_mutex_destroy(&visibilities->lock);
	free(visibilities);
}

/* ---- looking ---- */

struct looking {
	struct pfs_query *query;
	char **names; /* sorted */
	size_t capacity;
	struct pfs_attr_visibility attrs;
	size_t n_unknown;
	uint64_t epoch; /* that the slots are of */
	struct pfs_slots slots; /* nodes that have attributes, seen */
};

static int add_name(void *arg, const char *name, size_t len, enum pfs_attr_type type PFS_UNUSED)
{
	struct looking *looking = arg;
	size_t n = (size_t)looking->attrs.n;

	PFS_TRY(pfs_grow(&looking->names, &looking->capacity, n + 1, sizeof(*looking->names)));
	looking->names[n] = strndup(name, len);
	if (!looking->names[n])
		return -ENOMEM;
	looking->attrs.n++;
	return 0;
}

static void finish(struct looking *looking)
{
	for (size_t i = 0; i < looking->attrs.n; i++)
		free(looking->names[i]);
	free(looking->names);
	free(looking->attrs.shown);
	pfs_slots_finish(&looking->slots);
}

static int compare(const void *key, const void *name)
{
	return strcmp(key, *(char *const *)name);
}

static void show(struct looking *looking, const char *name)
{
	char **found = bsearch(name, looking->names, looking->attrs.n, sizeof(*looking->names),
			       compare);

	if (!found || looking->attrs.shown[found - looking->names])
		return;
	looking->attrs.shown[found - looking->names] = true;
	looking->n_unknown--;
}

/* Nodes that have attributes, in the tree as it is now. */
static int find_bearers(struct looking *looking)
{
	struct pfs_query *query = looking->query;
	int error;

	pfs_slots_finish(&looking->slots);
	PFS_TRY(pfs_visible_make(query->tree, &query->viewer));
	looking->epoch = pfs_scan_lock(query->tree, __func__);
	error = pfs_query_look_around(query);
	if (!error)
		error = pfs_visible_bearers(query->visible, query->tree, &looking->slots);
	pfs_scan_unlock(query->tree);
	return error;
}

/* What a few of them, from all over the tree, have. */
static int list_some(struct looking *looking)
{
	static const char prefix[] = "user.";
	struct pfs_tree *tree = looking->query->tree;
	size_t n = PFS_MIN(looking->slots.n, SAMPLE);
	char *list PFS_FREE = malloc(LIST_SIZE);
	uint32_t slots[SAMPLE];
	int64_t inos[SAMPLE];
	int error = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		slots[i] = looking->slots.slot[i * looking->slots.n / n];
	if (pfs_scan_lock(tree, __func__) == looking->epoch)
		error = pfs_scan_integers(tree, inos, PFS_FIELD_INO, slots, n);
	else
		n = 0; /* they may be others' slots */
	pfs_scan_unlock(tree);
	for (size_t i = 0; i < n && looking->n_unknown && !error; i++) {
		ssize_t size = pfs_tree_listxattr(tree, list, LIST_SIZE, (uint64_t)inos[i]);

		for (char *at = list; at < list + size; at += strlen(at) + 1)
			show(looking, at + sizeof(prefix) - 1);
	}
	return error;
}

/* Lets go of the tree for a moment.  -EAGAIN: it has changed; -EINTR: the statement is to end. */
static int let_others(const struct looking *looking)
{
	struct pfs_tree *tree = looking->query->tree;

	pfs_scan_unlock(tree);
	if (pfs_scan_lock(tree, __func__) != looking->epoch)
		return -EAGAIN;
	return pfs_query_tick(looking->query) ? -EINTR : 0;
}

/* Whether one of the nodes has the attribute.  The tree is held. */
static int look_through(struct looking *looking, struct pfs_attr_reader *reader, size_t name)
{
	struct pfs_attr_value values[BATCH];

	for (size_t at = 0; at < looking->slots.n; at += BATCH) {
		size_t n = PFS_MIN(looking->slots.n - at, BATCH);

		if (at && at % HELD == 0)
			PFS_TRY(let_others(looking));
		PFS_TRY(pfs_attr_read(reader, values, looking->slots.slot + at, n));
		for (size_t i = 0; i < n; i++) {
			if (!values[i].is_set)
				continue;
			looking->attrs.shown[name] = true;
			looking->n_unknown--;
			return 0;
		}
	}
	return 0;
}

static int look_for(struct looking *looking, size_t name)
{
	struct pfs_tree *tree = looking->query->tree;
	const char *text = looking->names[name];
	int error = -EAGAIN;

	for (unsigned tries = 0; tries < TRIES && error == -EAGAIN; tries++) {
		struct pfs_attr_reader *reader;

		PFS_TRY(pfs_attr_reader_open(&reader, tree, text, strlen(text)));
		if (pfs_scan_lock(tree, __func__) == looking->epoch)
			error = look_through(looking, reader, name);
		pfs_scan_unlock(tree);
		pfs_attr_reader_close(reader);
		if (error == -EAGAIN)
			PFS_TRY(find_bearers(looking));
	}
	return error == -EAGAIN ? 0 : error;
}

static int look(struct looking *looking)
{
	PFS_TRY(pfs_attr_names(looking->query->tree, add_name, looking));
	looking->attrs.shown = calloc(looking->attrs.n + 1, sizeof(*looking->attrs.shown));
	if (!looking->attrs.shown)
		return -ENOMEM;
	looking->n_unknown = looking->attrs.n;
	if (!looking->n_unknown)
		return 0;
	PFS_TRY(find_bearers(looking));
	PFS_TRY(list_some(looking));
	for (size_t i = 0; i < looking->attrs.n && looking->n_unknown; i++) {
		if (!looking->attrs.shown[i])
			PFS_TRY(look_for(looking, i));
	}
	return 0;
}

/* ---- remembering ---- */

static int copy(struct pfs_attr_visibility *out, const struct pfs_attr_visibility *attrs)
{
	out->shown = calloc(attrs->n + 1, sizeof(*out->shown));
	if (!out->shown)
		return -ENOMEM;
	memcpy(out->shown, attrs->shown, attrs->n * sizeof(*out->shown));
	out->n = attrs->n;
	return 0;
}

/* What is visible is remembered as long as nothing about directories changes: it stands for the
 * viewer. */
static bool recall(struct pfs_query *query, struct pfs_attr_visibility *out)
{
	struct pfs_attr_visibilities *visibilities = query->queries->attr_visibilities;
	uint64_t n_names = pfs_attr_names_count(query->tree);

	PFS_LOCKED(&visibilities->lock);
	for (size_t i = 0; query->visible && i < REMEMBERED; i++) {
		const struct entry *entry = &visibilities->entries[i];

		if (entry->visible == query->visible && entry->epoch == query->epoch &&
		    entry->attrs.n == n_names)
			return copy(out, &entry->attrs) == 0;
	}
	return false;
}

static int remember(struct looking *looking)
{
	struct pfs_attr_visibilities *visibilities = looking->query->queries->attr_visibilities;
	struct entry *entry;
	int error = 0;
	PFS_LOCKED(&visibilities->lock);

	entry = &visibilities->entries[visibilities->next++ % REMEMBERED];
	forget(entry);
	error = copy(&entry->attrs, &looking->attrs);
	if (!error) {
		entry->visible = pfs_visible_ref(looking->query->visible);
		entry->epoch = looking->epoch;
	}
	return error;
}

int pfs_attr_visibility_find(struct pfs_query *query, struct pfs_attr_visibility *out)
{
	struct looking looking = {.query = query};
	int error;

	if (recall(query, out))
		return 0;
	error = look(&looking);
	if (!error)
		error = copy(out, &looking.attrs);
	if (!error && looking.attrs.n)
		error = remember(&looking);
	if (error) {
		free(out->shown);
		*out = (struct pfs_attr_visibility){.n = 0};
	}
	finish(&looking);
	return error;
}
