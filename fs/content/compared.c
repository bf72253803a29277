/* SPDX-License-Identifier: MIT */
#include "fs/content/compared.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "fs/attr/attrcolumn.h"
#include "fs/attr/attrset.h"
#include "fs/attr/xattr.h"
#include "fs/content/content_impl.h"
#include "fs/content/follow.h"
#include "fs/content/original.h"
#include "fs/image/image.h"
#include "fs/journal/records.h"
#include "fs/tree/tree_impl.h"

#define LOOKED_AT_ONCE 65536u /* slots that are looked at in one hold of the tree's lock */
#define NS	       INT64_C(1000000000)

struct pfs_compared {
	/* held while stamps are loaded or changed, also while the store is asked */
	pthread_mutex_t changing;
	bool loaded;		  /* protected by changing */
	pthread_rwlock_t lock;	  /* after tree->lock */
	/* protected by lock; changed only with both locks */
	struct pfs_compared_stamp *list; /* in order of inode numbers */
	size_t n, capacity;
	bool live;
	/* the time until which a watch had seen everything, in seconds; 0: it never had */
	int64_t live_s;
};

int pfs_compared_create(struct pfs_tree *tree)
{
	tree->compared = calloc(1, sizeof(*tree->compared));
	if (!tree->compared)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->compared->changing, NULL);
	(void)pthread_rwlock_init(&tree->compared->lock, NULL);
	return 0;
}

void pfs_compared_destroy(struct pfs_tree *tree)
{
	if (!tree->compared)
		return;
	(void)pthread_rwlock_destroy(&tree->compared->lock);
	(void)pthread_mutex_destroy(&tree->compared->changing);
	free(tree->compared->list);
	free(tree->compared);
	tree->compared = NULL;
}

/* ---- the table ---- */

/* Returns the index at which the stamp is, or would be. */
static size_t place_of(const struct pfs_compared *compared, uint64_t ino)
{
	return (size_t)PFS_SEARCH(i, 0, compared->n, compared->list[i].ino < ino);
}

static struct pfs_compared_stamp *find(const struct pfs_compared *compared, uint64_t ino)
{
	size_t at = place_of(compared, ino);

	return at < compared->n && compared->list[at].ino == ino ? &compared->list[at] : NULL;
}

static void take_newer(struct pfs_compared_times *times, const struct pfs_compared_times *other)
{
	times->full_s = PFS_MAX(times->full_s, other->full_s);
	times->quick_s = PFS_MAX(times->quick_s, other->quick_s);
	times->flat_s = PFS_MAX(times->flat_s, other->flat_s);
	if (times->flat_s <= times->full_s)
		times->flat_s = 0;
}

/* Gets the root of the folder that the node came with; 0: it came with none. */
static int find_root(struct pfs_tree *tree, uint32_t *root, uint64_t ino)
{
	struct pfs_value *record PFS_UNREF = NULL;

	PFS_TRY(pfs_records_get(pfs_links_sources(tree), &record, ino, PFS_RECORDS_LOOK));
	*root = record ? pfs_links_record(record)->root : 0;
	return 0;
}

/* Sets the stamp's root, and whether it begins there. Directories that the store has made belong to
 * what they lie in. */
static int place_stamp(struct pfs_tree *tree, struct pfs_compared_stamp *stamp)
{
	uint64_t above = stamp->ino;
	uint32_t root = 0;

	PFS_TRY(find_root(tree, &stamp->root, stamp->ino));
	while (!root && (above = pfs_follow_parent(tree, above)))
		PFS_TRY(find_root(tree, &root, above));
	stamp->begins = root != stamp->root;
	return 0;
}

static int put(struct pfs_tree *tree, uint64_t ino, const struct pfs_compared_times *times,
	       bool kept)
{
	struct pfs_compared *compared = tree->compared;
	struct pfs_compared_stamp *stamp, placed = {.ino = ino};
	size_t at;
	int error = 0;

	PFS_TRY(place_stamp(tree, &placed));
	(void)pthread_rwlock_wrlock(&compared->lock);
	stamp = find(compared, ino);
	if (!stamp)
		error = pfs_grow(&compared->list, &compared->capacity, compared->n + 1,
				 sizeof(*compared->list));
	if (!stamp && !error) {
		at = place_of(compared, ino);
		stamp = &compared->list[at];
		memmove(stamp + 1, stamp, (compared->n++ - at) * sizeof(*stamp));
		*stamp = placed;
	}
	if (!error) {
		take_newer(&stamp->times, times);
		stamp->kept = kept;
		stamp->root = placed.root;
		stamp->begins = placed.begins;
	}
	(void)pthread_rwlock_unlock(&compared->lock);
	return error;
}

static void drop(struct pfs_compared *compared, uint64_t ino)
{
	struct pfs_compared_stamp *stamp;

	(void)pthread_rwlock_wrlock(&compared->lock);
	stamp = find(compared, ino);
	if (stamp) {
		size_t behind = compared->n - (size_t)(stamp - compared->list) - 1;

		memmove(stamp, stamp + 1, behind * sizeof(*stamp));
		compared->n--;
	}
	(void)pthread_rwlock_unlock(&compared->lock);
}

/* ---- the attribute ---- */

int pfs_compared_print(char out[PFS_COMPARED_TEXT_SIZE], const struct pfs_compared_times *times)
{
	int len = snprintf(out, PFS_COMPARED_TEXT_SIZE, "%" PRId64 " %" PRId64, times->full_s,
			   times->quick_s);

	/* The third number is written only if there is one: earlier programs do not know it. */
	return times->flat_s ? len + snprintf(out + len, PFS_COMPARED_TEXT_SIZE - (size_t)len,
					      " %" PRId64, times->flat_s)
			     : len;
}

static int write_stamp(struct pfs_tree *tree, uint64_t ino, const struct pfs_compared_times *times)
{
	char text[PFS_COMPARED_TEXT_SIZE];
	const struct pfs_attr attr = {
		.name = PFS_COMPARED,
		.name_len = sizeof(PFS_COMPARED) - 1,
		.text = times ? text : NULL,
		.text_len = times ? (uint32_t)pfs_compared_print(text, times) : 0,
		.type = PFS_ATTR_TEXT,
	};

	return pfs_attr_change_ours(tree, ino, &attr);
}

/* Returns false if the text is no stamp, or a stamp of a later version. */
static bool parse(struct pfs_compared_times *times, const char *text)
{
	char *end;

	*times = (struct pfs_compared_times){.full_s = strtoll(text, &end, 10)};
	times->quick_s = *end == ' ' ? strtoll(end + 1, &end, 10) : -1;
	if (*end == ' ')
		times->flat_s = strtoll(end + 1, &end, 10);
	return !*end && times->full_s >= 0 && times->quick_s >= 0 && times->flat_s >= 0;
}

static int read_stamp(struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_compared_times times;
	char text[PFS_COMPARED_TEXT_SIZE] = "";
	struct pfs_attr attr;

	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	if (!pfs_attrset_find(set, &attr, PFS_COMPARED, sizeof(PFS_COMPARED) - 1))
		return 0;
	memcpy(text, attr.text, PFS_MIN(attr.text_len, sizeof(text) - 1));
	return parse(&times, text) ? put(tree, ino, &times, true) : 0;
}

static int is_called(void *arg, const char *name, size_t len, enum pfs_attr_type type PFS_UNUSED)
{
	const char *wanted = arg;

	return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

/* Returns the next directory from *slot on that has attributes. It looks at the slots of one hold,
 * and returns 0 if none of them is such a directory. */
static uint64_t next_directory(struct pfs_tree *tree, uint32_t *slot, bool *more)
{
	const struct pfs_image *image = &tree->image;
	uint64_t ino = 0;
	uint32_t stop;

	pfs_hold_read(tree, __func__);
	stop = PFS_MIN(image->end, *slot + LOOKED_AT_ONCE);
	for (; *slot < stop && !ino; ++*slot)
		if (image->flags[*slot] & PFS_NODE_ATTRS && S_ISDIR(image->mode[*slot]) &&
		    !(image->state[*slot] & PFS_SLOT_UNLINKED))
			ino = image->prime[*slot];
	*more = *slot < image->end;
	pfs_hold_end(tree);
	return ino;
}

static int load(struct pfs_tree *tree)
{
	uint32_t slot = 0;
	int there;

	if (tree->compared->loaded)
		return 0;
	there = pfs_attr_names(tree, is_called, (void *)PFS_COMPARED);
	if (there < 0)
		return there;
	for (bool more = there; more;) {
		uint64_t ino = next_directory(tree, &slot, &more);
		int error = ino ? read_stamp(tree, ino) : 0;

		if (error && error != -ESTALE)
			return error;
	}
	tree->compared->loaded = true;
	return 0;
}

int pfs_compared_load(struct pfs_tree *tree)
{
	PFS_LOCKED(&tree->compared->changing);

	return load(tree);
}

/* ---- what nodes have ---- */

/* What the stamps at the node and above it say of the node. */
struct known {
	struct pfs_compared_times times; /* flat_s: of the node's own stamp */
	int64_t beside_s;		 /* flat_s of the directory that it is in */
	int64_t begun_s;		 /* the newest of its times without a watch */
	bool followed;
};

static void take_stamp(const struct pfs_tree *tree, struct known *known,
		       const struct pfs_compared_stamp *stamp, unsigned distance)
{
	const struct pfs_compared_times *times = &stamp->times;

	known->times.full_s = PFS_MAX(known->times.full_s, times->full_s);
	known->times.quick_s = PFS_MAX(known->times.quick_s, times->quick_s);
	if (distance == 0)
		known->times.flat_s = times->flat_s;
	else if (distance == 1)
		known->beside_s = times->flat_s;
	known->followed |= stamp->root &&
			   (times->full_s || times->quick_s || (times->flat_s && distance < 2)) &&
			   !pfs_originals_is_away(pfs_links_originals(tree), stamp->root);
}

static void know(const struct pfs_tree *tree, struct known *known, uint32_t slot)
{
	struct pfs_compared *compared = tree->compared;
	const struct pfs_compared_stamp *list;
	unsigned distance = 0;

	*known = (struct known){.beside_s = 0};
	(void)pthread_rwlock_rdlock(&compared->lock);
	list = compared->list;
	if (compared->n == 1 && list->ino == PFS_ROOT_PRIME && !list->times.flat_s)
		slot = tree->image.root; /* nearly always so, and saves the way up from each node */
	for (; compared->n && slot != PFS_NO_SLOT; slot = tree->image.parent[slot], distance++) {
		const struct pfs_compared_stamp *stamp = find(compared, tree->image.prime[slot]);

		if (stamp)
			take_stamp(tree, known, stamp, distance);
		if (stamp && stamp->begins)
			break;
	}
	known->begun_s = PFS_MAX(known->times.full_s, known->times.quick_s);
	known->begun_s = PFS_MAX(known->begun_s, known->times.flat_s);
	if (known->followed)
		known->times.full_s =
			PFS_MAX(known->times.full_s,
				compared->live ? (int64_t)time(NULL) : compared->live_s);
	(void)pthread_rwlock_unlock(&compared->lock);
}

int64_t pfs_compared_ns(const struct pfs_tree *tree, uint32_t slot)
{
	struct known known;
	int64_t time_s;

	know(tree, &known, slot);
	time_s = PFS_MAX(known.times.full_s, known.beside_s);
	if (S_ISDIR(tree->image.mode[slot])) {
		time_s = PFS_MAX(time_s, known.times.quick_s);
		time_s = PFS_MAX(time_s, known.times.flat_s);
	}
	return time_s > 0 && time_s <= INT64_MAX / NS ? time_s * NS : INT64_MIN;
}

/* What is known of the node of that number. -ESTALE: there is none. */
static int know_node(struct pfs_tree *tree, struct known *known, uint64_t ino)
{
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		know(tree, known, slot);
	pfs_hold_end(tree);
	return slot == PFS_NO_SLOT ? -ESTALE : 0;
}

int pfs_compared_node(struct pfs_tree *tree, struct pfs_compared_times *out, uint64_t ino)
{
	struct known known;

	PFS_TRY(know_node(tree, &known, ino));
	*out = known.times;
	return 0;
}

int pfs_compared_begun(struct pfs_tree *tree, int64_t *time_s, uint64_t ino)
{
	struct known known;

	PFS_TRY(pfs_compared_load(tree));
	PFS_TRY(know_node(tree, &known, ino));
	*time_s = known.begun_s;
	return 0;
}

int pfs_compared_list(struct pfs_tree *tree, struct pfs_compared_stamp **out, size_t *n)
{
	struct pfs_compared *compared = tree->compared;

	(void)pthread_rwlock_rdlock(&compared->lock);
	*n = compared->n;
	*out = calloc(*n + 1, sizeof(**out));
	if (*out && *n)
		memcpy(*out, compared->list, *n * sizeof(**out));
	(void)pthread_rwlock_unlock(&compared->lock);
	return *out ? 0 : -ENOMEM;
}

/* ---- changing ---- */

/* Returns true if the node lies below the directory, or if both are gone. */
static bool is_below(struct pfs_tree *tree, uint64_t ino, uint64_t above)
{
	uint32_t slot, top;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	top = pfs_image_slot(tree, above);
	while (slot != PFS_NO_SLOT && slot != top)
		slot = tree->image.parent[slot];
	pfs_hold_end(tree);
	return slot == top;
}

static bool says_no_more(const struct pfs_compared_times *a, const struct pfs_compared_times *b)
{
	return a->full_s <= b->full_s && a->quick_s <= PFS_MAX(b->quick_s, b->full_s) &&
	       a->flat_s <= b->full_s;
}

static int has(struct pfs_tree *tree, uint64_t ino, const char *name)
{
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_attr attr;

	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	return pfs_attrset_find(set, &attr, name, strlen(name));
}

/* Returns 1 if the nearest of the attributes at the directory and above it says that something came
 * there as a copy. */
static int is_nearest_copied(struct pfs_tree *tree, uint64_t directory)
{
	for (uint64_t above = directory; above; above = pfs_follow_parent(tree, above)) {
		int copied = has(tree, above, PFS_COPIED);
		int other = copied ? 0 : has(tree, above, PFS_COMPARED);

		if (copied || other < 0)
			return copied ? copied : other;
		if (other)
			break;
	}
	return 0;
}

/* Returns 1 if the store's stamp has to stay: without it the directory would count as a part of the
 * copy above it (pfs_compared_is_copied). */
static int tells_from_copy(struct pfs_tree *tree, const struct pfs_compared_stamp *stamp)
{
	uint64_t above = stamp->kept ? pfs_follow_parent(tree, stamp->ino) : 0;

	return above ? is_nearest_copied(tree, above) : 0;
}

static int drop_below(struct pfs_tree *tree, uint64_t ino, const struct pfs_compared_times *times)
{
	struct pfs_compared_stamp *list PFS_FREE = NULL;
	size_t n;

	PFS_TRY(pfs_compared_list(tree, &list, &n));
	for (size_t i = 0; i < n; i++) {
		int error;

		if (list[i].ino == ino || list[i].begins || !says_no_more(&list[i].times, times) ||
		    !is_below(tree, list[i].ino, ino))
			continue;
		error = tells_from_copy(tree, &list[i]);
		if (error > 0)
			continue;
		if (!error)
			error = list[i].kept ? write_stamp(tree, list[i].ino, NULL) : 0;
		if (error && error != -ESTALE && error != -ENODATA)
			return error;
		drop(tree->compared, list[i].ino);
	}
	return 0;
}

static int note(struct pfs_tree *tree, uint64_t ino, const struct pfs_compared_times *times,
		bool keep)
{
	const struct pfs_compared_stamp *there;
	struct pfs_compared_times all = *times;

	PFS_TRY(load(tree));
	there = find(tree->compared, ino);
	if (there)
		take_newer(&all, &there->times);
	if (!there && tree->compared->n >= PFS_COMPARED_MAX)
		return 0; /* the stamps above it go on counting */
	if (keep)
		PFS_TRY(write_stamp(tree, ino, &all));
	PFS_TRY(put(tree, ino, &all, keep));
	return keep ? drop_below(tree, ino, &all) : 0;
}

int pfs_compared_note(struct pfs_tree *tree, uint64_t ino, const struct pfs_compared_times *times,
		      bool keep)
{
	PFS_LOCKED(&tree->compared->changing);

	return note(tree, ino, times, keep);
}

void pfs_compared_set_live(struct pfs_tree *tree, bool live)
{
	struct pfs_compared *compared = tree->compared;

	(void)pthread_rwlock_wrlock(&compared->lock);
	if (compared->live && !live)
		compared->live_s = time(NULL);
	compared->live = live;
	(void)pthread_rwlock_unlock(&compared->lock);
}

static bool is_top(struct pfs_tree *tree, const struct pfs_compared_stamp *list, size_t n, size_t i)
{
	for (size_t j = 0; j < n && !list[i].begins; j++)
		if (j != i && is_below(tree, list[i].ino, list[j].ino))
			return false;
	return true;
}

int pfs_compared_keep(struct pfs_tree *tree)
{
	struct pfs_compared_stamp *list PFS_FREE = NULL;
	size_t n;
	PFS_LOCKED(&tree->compared->changing);

	PFS_TRY(pfs_compared_list(tree, &list, &n));
	for (size_t i = 0; i < n; i++) {
		struct pfs_compared_times times = {.full_s = 0};
		int error = pfs_compared_node(tree, &times, list[i].ino);

		if (!error && is_top(tree, list, n, i) &&
		    (!list[i].kept || times.full_s != list[i].times.full_s))
			error = note(tree, list[i].ino, &times, true);
		if (error && error != -ESTALE)
			return error;
	}
	return 0;
}

/* ---- what came as a copy ---- */

int pfs_compared_is_copied(struct pfs_tree *tree, uint64_t directory)
{
	int copied, there = pfs_attr_names(tree, is_called, (void *)PFS_COPIED);
	uint32_t slot = 0;

	if (there <= 0)
		return there;
	copied = is_nearest_copied(tree, directory);
	if (copied)
		return copied;
	for (bool more = true; more;) {
		uint64_t node = next_directory(tree, &slot, &more);

		if (node && is_below(tree, node, directory))
			copied = has(tree, node, PFS_COPIED);
		if (copied)
			return copied;
	}
	return 0;
}
