/* SPDX-License-Identifier: MIT */
/* Which attributes a viewer sees: the name of an attribute that only nodes in closed directories
 * have tells something that is not his to know, so for him `nodes` has no such column.
 *
 * Most stores have their attributes all over: a few nodes show nearly all names.  Those that are
 * left are looked for in their columns, one by one. */
#include "fs/query/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define REMEMBERED 8   /* viewers */
#define SAMPLE	   256 /* nodes whose names are listed */
#define LIST_SIZE  ((size_t)64 << 10)
#define BATCH	   1024
#define HELD	   (16u * BATCH) /* nodes looked at in one hold of the tree, and */
#define READ_HELD  (4u * BATCH)	 /* those of which an attribute is read */
#define TRIES	   8 /* while columns of attributes are forgotten; then the name stays unknown */

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
	uint64_t epoch; /* when looking began */
	uint32_t *slots; /* of nodes that bore attributes and were seen when they were looked at */
	size_t n_slots, slots_capacity;
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
	free(looking->slots);
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

/* Takes the tree, and finds what is seen now. */
static int hold(const struct looking *looking, uint64_t *epoch)
{
	struct pfs_query *query = looking->query;
	int error;

	PFS_TRY(pfs_visible_make(query->tree, &query->viewer));
	*epoch = pfs_scan_lock(query->tree, __func__);
	error = pfs_query_look_around(query);
	if (error)
		pfs_scan_unlock(query->tree);
	return error;
}

static int add_bearers(struct looking *looking, uint32_t from, uint32_t to)
{
	const struct pfs_query *query = looking->query;

	for (uint32_t slot = from; slot < to; slot++) {
		if (!pfs_visible_bears(query->visible, query->tree, slot))
			continue;
		PFS_TRY(pfs_grow(&looking->slots, &looking->slots_capacity, looking->n_slots + 1,
				 sizeof(*looking->slots)));
		looking->slots[looking->n_slots++] = slot;
	}
	return 0;
}

/* The tree may change between two holds: whoever reads of one of them looks again whether he
 * may. */
static int find_bearers(struct looking *looking)
{
	struct pfs_query *query = looking->query;
	uint32_t from = 0, to, end;
	uint64_t epoch;
	int error;

	do {
		if (pfs_query_tick(query))
			return -EINTR;
		PFS_TRY(hold(looking, &epoch));
		looking->epoch = from ? looking->epoch : epoch;
		end = pfs_scan_end(query->tree);
		to = PFS_MIN(end, from + HELD);
		error = add_bearers(looking, from, to);
		pfs_scan_unlock(query->tree);
		from = to;
	} while (!error && to < end);
	return error;
}

/* Keeps those of n slots that may be read now; returns how many. The tree is held. */
static size_t keep_bearers(const struct looking *looking, uint32_t *out, const uint32_t *slots,
			   size_t n)
{
	const struct pfs_query *query = looking->query;
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		if (pfs_visible_bears(query->visible, query->tree, slots[i]))
			out[n_kept++] = slots[i];
	return n_kept;
}

/* What a few of them, from all over the tree, have. */
static int list_some(struct looking *looking)
{
	static const char prefix[] = "user.";
	struct pfs_tree *tree = looking->query->tree;
	size_t n = PFS_MIN(looking->n_slots, SAMPLE);
	char *list PFS_FREE = malloc(LIST_SIZE);
	uint32_t slots[SAMPLE];
	int64_t inos[SAMPLE];
	uint64_t epoch;
	int error;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		slots[i] = looking->slots[i * looking->n_slots / n];
	PFS_TRY(hold(looking, &epoch));
	n = keep_bearers(looking, slots, slots, n);
	error = pfs_scan_integers(tree, inos, PFS_FIELD_INO, slots, n);
	pfs_scan_unlock(tree);
	for (size_t i = 0; i < n && looking->n_unknown && !error; i++) {
		ssize_t size = pfs_tree_listxattr(tree, list, LIST_SIZE, (uint64_t)inos[i]);

		for (char *at = list; at < list + size; at += strlen(at) + 1)
			show(looking, at + sizeof(prefix) - 1);
	}
	return error;
}

/* Looks in one hold whether one of n slots' nodes has the attribute. */
static int look_at_some(struct looking *looking, struct pfs_attr_reader *reader, size_t name,
			const uint32_t *slots, size_t n)
{
	struct pfs_attr_value values[BATCH];
	uint32_t kept[BATCH];
	uint64_t epoch;
	int error = 0;

	PFS_TRY(hold(looking, &epoch));
	for (size_t at = 0; at < n && !error && !looking->attrs.shown[name]; at += BATCH) {
		size_t n_kept = keep_bearers(looking, kept, slots + at, PFS_MIN(n - at, BATCH));

		error = pfs_attr_read(reader, values, kept, n_kept);
		for (size_t i = 0; i < n_kept && !error; i++)
			looking->attrs.shown[name] |= values[i].is_set;
	}
	pfs_scan_unlock(looking->query->tree);
	return error;
}

static int look_through(struct looking *looking, struct pfs_attr_reader *reader, size_t name)
{
	for (size_t at = 0; at < looking->n_slots; at += READ_HELD) {
		if (pfs_query_tick(looking->query))
			return -EINTR;
		PFS_TRY(look_at_some(looking, reader, name, looking->slots + at,
				     PFS_MIN(looking->n_slots - at, READ_HELD)));
		if (looking->attrs.shown[name]) {
			looking->n_unknown--;
			break;
		}
	}
	return 0;
}

static int look_for(struct looking *looking, size_t name)
{
	const char *text = looking->names[name];
	int error = -EAGAIN;

	for (unsigned tries = 0; tries < TRIES && error == -EAGAIN; tries++) {
		struct pfs_attr_reader *reader;

		PFS_TRY(pfs_attr_reader_open(&reader, looking->query->tree, text, strlen(text)));
		error = look_through(looking, reader, name);
		pfs_attr_reader_close(reader);
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
