/* SPDX-License-Identifier: MIT */
/* The places that the nodes of a set get. The tree counts as it will be: a node may take a name
 * that another node of the set gives up, and a directory may be named by the path that the set
 * gives it. */
#include "fs/change/change_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "base/siphash.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/nodes/relation.h"
#include "fs/tree/tree_impl.h"

static bool has(const uint64_t *bits, uint32_t slot)
{
	return bits[slot / 64] >> slot % 64 & 1;
}

/* ---- the paths that the set gives ---- */

struct paths {
	const struct pfs_changing *changing;
	size_t *rows; /* row + 1; 0: the cell is free */
	size_t mask;
};

static const char *path_of(const struct paths *paths, size_t row, size_t *len)
{
	const struct pfs_bytes *path = &paths->changing->changes->list[row].path;

	*len = path->len;
	return pfs_change_text(paths->changing, path);
}

/* Returns the cell of the path, or the free one where it belongs. */
static size_t *find_path(const struct paths *paths, const char *path, size_t len)
{
	uint64_t seed = pfs_store_seed(paths->changing->tree->store);
	size_t at = pfs_siphash(path, len, seed, ~seed) & paths->mask;

	for (; paths->rows[at]; at = (at + 1) & paths->mask) {
		size_t other_len;
		const char *other = path_of(paths, paths->rows[at] - 1, &other_len);

		if (other_len == len && memcmp(other, path, len) == 0)
			break;
	}
	return &paths->rows[at];
}

static int list_paths(struct paths *paths, struct pfs_changing *changing)
{
	size_t n = changing->changes->n, size = 4;

	while (size < 2 * n)
		size *= 2;
	*paths = (struct paths){
		.changing = changing,
		.rows = calloc(size, sizeof(*paths->rows)),
		.mask = size - 1,
	};
	if (!paths->rows)
		return -ENOMEM;
	for (size_t row = 0; row < n; row++) {
		size_t len, *place;
		const char *path;

		if (!(changing->changes->list[row].set & PFS_CHANGE_PATH))
			continue;
		path = path_of(paths, row, &len);
		place = find_path(paths, path, len);
		if (*place)
			return pfs_change_fail_row(changing, -EEXIST, row,
						   "two rows would have this path");
		*place = row + 1;
	}
	return 0;
}

/* ---- one row ---- */

struct placing {
	struct pfs_changing *changing;
	struct paths paths;
	/* the directory that was resolved last */
	const char *folder;
	size_t folder_len;
	uint32_t parent;
	size_t parent_row;
	/* a bit for each slot: the set moves nothing above it, as the tree is now */
	uint64_t *trusted;
};

/* Checks that a directory which is named by its present place stays there. */
static int check_stays(struct placing *placing, uint32_t slot, size_t row)
{
	struct pfs_changing *changing = placing->changing;
	const uint32_t *parent = changing->tree->image.parent;

	for (uint32_t up = slot; up != PFS_NO_SLOT; up = parent[up]) {
		if (has(placing->trusted, up))
			break;
		if (pfs_is_moving(changing, up))
			return pfs_change_fail_row(changing, -EINVAL, row,
						   "the statement moves the directory above; name "
						   "the directory by its new path, or move it in a "
						   "statement of its own");
	}
	for (uint32_t up = slot; up != PFS_NO_SLOT && !has(placing->trusted, up); up = parent[up])
		placing->trusted[up / 64] |= UINT64_C(1) << up % 64;
	return 0;
}

static int resolve_folder(struct placing *placing, size_t row, const char *folder, size_t len)
{
	const struct pfs_changing *changing = placing->changing;
	size_t found;

	if (placing->folder && placing->folder_len == len &&
	    memcmp(placing->folder, folder, len) == 0)
		return 0;
	placing->folder = NULL;
	found = len ? *find_path(&placing->paths, folder, len) : 0;
	placing->parent_row = PFS_NO_ROW;
	placing->parent = PFS_NO_SLOT;
	if (found && changing->changes->kind == PFS_CHANGE_CREATE)
		placing->parent_row = found - 1;
	else if (found)
		placing->parent = changing->slots[found - 1];
	else if (len)
		placing->parent = pfs_relation_resolve(changing->tree, NULL, folder, len);
	else
		placing->parent = changing->tree->image.root;
	if (!found && placing->parent == PFS_NO_SLOT)
		return pfs_change_fail_row(placing->changing, -ENOENT, row,
					   "there is no such directory");
	placing->folder = folder;
	placing->folder_len = len;
	return 0;
}

static int place_by_path(struct placing *placing, struct pfs_move *move,
			 const struct pfs_change *change)
{
	struct pfs_changing *changing = placing->changing;
	const char *path = pfs_change_text(changing, &change->path);
	const char *slash = memrchr(path, '/', change->path.len);

	if (*path != '/' || !slash)
		return pfs_change_fail_row(changing, -EINVAL, move->row,
					   "a path begins with / at the store's root");
	PFS_TRY(resolve_folder(placing, move->row, path, (size_t)(slash - path)));
	move->parent = placing->parent;
	move->parent_row = placing->parent_row;
	move->name = slash + 1;
	return 0;
}

static int place_by_parent(struct placing *placing, struct pfs_move *move,
			   const struct pfs_change *change)
{
	struct pfs_changing *changing = placing->changing;
	const struct pfs_image *image = &changing->tree->image;

	if (change->set & PFS_CHANGE_PARENT) {
		move->parent = pfs_image_slot(changing->tree, change->parent);
		if (move->parent == PFS_NO_SLOT ||
		    image->state[move->parent] & PFS_SLOT_UNLINKED)
			return pfs_change_fail_row(changing, -ENOENT, move->row,
						   "no directory has the number of its parent");
	} else {
		move->parent = image->parent[move->slot];
	}
	move->name = change->set & PFS_CHANGE_NAME
			     ? pfs_change_text(changing, &change->name)
			     : pfs_names_get(image->names, image->name[move->slot], &move->len);
	return 0;
}

static int check_name(struct pfs_changing *changing, struct pfs_move *move, size_t text_len)
{
	int error = pfs_name_check(&move->len, move->name);

	if (!error && move->len != text_len)
		error = -EINVAL; /* it has a NUL in it */
	if (error == -ENAMETOOLONG)
		return pfs_change_fail_row(changing, error, move->row,
					   "the name has more than 255 bytes");
	if (error)
		return pfs_change_fail_row(changing, error, move->row, "this is no name of a file");
	if (pfs_name_is_reserved(move->name))
		return pfs_change_fail_row(changing, -EEXIST, move->row,
					   "the name .query is reserved");
	return 0;
}

/* Returns the length of the name in the set's text, or in the heap. */
static size_t text_len(const struct pfs_changing *changing, const struct pfs_move *move,
		       const struct pfs_change *change)
{
	if (change->set & PFS_CHANGE_PATH)
		return (size_t)(pfs_change_text(changing, &change->path) + change->path.len -
				move->name);
	return change->set & PFS_CHANGE_NAME ? change->name.len : move->len;
}

static bool is_directory(const struct pfs_changing *changing, const struct pfs_move *move)
{
	mode_t mode = 0;

	if (move->parent != PFS_NO_SLOT)
		return S_ISDIR(changing->tree->image.mode[move->parent]);
	return !pfs_change_new_mode((struct pfs_changing *)changing, &mode, move->parent_row) &&
	       S_ISDIR(mode);
}

static int place(struct placing *placing, struct pfs_move *move)
{
	struct pfs_changing *changing = placing->changing;
	const struct pfs_change *change = &changing->changes->list[move->row];

	move->parent_row = PFS_NO_ROW;
	PFS_TRY(change->set & PFS_CHANGE_PATH ? place_by_path(placing, move, change)
					      : place_by_parent(placing, move, change));
	PFS_TRY(check_name(changing, move, text_len(changing, move, change)));
	if (!is_directory(changing, move))
		return pfs_change_fail_row(changing, -ENOTDIR, move->row,
					   "what would be its directory is none");
	move->hash = pfs_image_hash(changing->tree, move->name, move->len);
	return 0;
}

/* Returns true if the node already is where it is to be. */
static bool is_there(const struct pfs_changing *changing, const struct pfs_move *move)
{
	const struct pfs_image *image = &changing->tree->image;
	const char *name;
	size_t len;

	if (move->slot == PFS_NO_SLOT || move->parent != image->parent[move->slot])
		return false;
	name = pfs_names_get(image->names, image->name[move->slot], &len);
	return len == move->len && memcmp(name, move->name, len) == 0;
}

/* Returns true if the root gets the place that its columns show; statements about all nodes set
 * them, too. */
static bool root_stays(const struct pfs_changing *changing, const struct pfs_change *change)
{
	return !(change->set & PFS_CHANGE_PARENT) &&
	       (!(change->set & PFS_CHANGE_NAME) || !change->name.len) &&
	       (!(change->set & PFS_CHANGE_PATH) ||
		(change->path.len == 1 && *pfs_change_text(changing, &change->path) == '/'));
}

static int place_all(struct placing *placing)
{
	struct pfs_changing *changing = placing->changing;
	const struct pfs_change_set *changes = changing->changes;
	const unsigned asks = PFS_CHANGE_PARENT | PFS_CHANGE_NAME | PFS_CHANGE_PATH;
	bool create = changes->kind == PFS_CHANGE_CREATE;

	for (size_t row = 0; row < changes->n; row++) {
		struct pfs_move *move = &changing->moves[changing->n_moves];

		if (!create && !(changes->list[row].set & asks))
			continue;
		*move = (struct pfs_move){
			.row = row,
			.slot = create ? PFS_NO_SLOT : changing->slots[row],
		};
		if (!create && move->slot == changing->tree->image.root) {
			if (root_stays(changing, &changes->list[row]))
				continue;
			return pfs_change_fail(changing, -EBUSY, move->slot,
					       "the root stays where it is");
		}
		PFS_TRY(place(placing, move));
		changing->n_moves += !is_there(changing, move);
	}
	return 0;
}

/* ---- names that are free ---- */

static int compare_places(const void *a, const void *b)
{
	const struct pfs_move *x = *(struct pfs_move *const *)a, *y = *(struct pfs_move *const *)b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->parent_row != y->parent_row)
		return x->parent_row < y->parent_row ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return pfs_compare_bytes(x->name, x->len, y->name, y->len);
}

static int check_free(struct pfs_changing *changing, const struct pfs_move *move)
{
	uint32_t other;

	if (move->parent == PFS_NO_SLOT)
		return 0;
	other = pfs_image_child(changing->tree, move->parent, move->name, move->len);
	if (other == PFS_NO_SLOT || pfs_is_moving(changing, other))
		return 0;
	return pfs_change_fail(changing, -EEXIST, other, "exists");
}

static int check_names(struct pfs_changing *changing)
{
	size_t n = changing->n_moves;
	struct pfs_move **sorted PFS_FREE = calloc(PFS_MAX(n, 1), sizeof(struct pfs_move *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &changing->moves[i];
	qsort(sorted, n, sizeof(struct pfs_move *), compare_places);
	for (size_t i = 0; i < n; i++) {
		if (i && compare_places(&sorted[i - 1], &sorted[i]) == 0)
			return pfs_change_fail_row(changing, -EEXIST, sorted[i]->row,
						   "two rows would have this name");
		PFS_TRY(check_free(changing, sorted[i]));
	}
	return 0;
}

/* ---- order ---- */

static int compare_slots(const void *a, const void *b)
{
	const struct pfs_move *x = *(struct pfs_move *const *)a, *y = *(struct pfs_move *const *)b;

	return (x->slot > y->slot) - (x->slot < y->slot);
}

static struct pfs_move *move_of(const struct pfs_changing *changing, uint32_t slot)
{
	struct pfs_move key = {.slot = slot}, *at = &key;
	struct pfs_move **found = bsearch(&at, changing->by_slot, changing->n_moves,
					  sizeof(struct pfs_move *), compare_slots);

	return *found;
}

static int list_by_slot(struct pfs_changing *changing)
{
	size_t n = changing->n_moves, words = (size_t)changing->tree->image.end / 64 + 1;

	changing->by_slot = calloc(PFS_MAX(n, 1), sizeof(struct pfs_move *));
	changing->moving = calloc(words, sizeof(*changing->moving));
	changing->order = calloc(PFS_MAX(n, 1), sizeof(struct pfs_move *));
	if (!changing->by_slot || !changing->moving || !changing->order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t slot = changing->moves[i].slot;

		changing->by_slot[i] = &changing->moves[i];
		if (slot != PFS_NO_SLOT)
			changing->moving[slot / 64] |= UINT64_C(1) << slot % 64;
	}
	qsort(changing->by_slot, n, sizeof(struct pfs_move *), compare_slots);
	for (size_t i = 1; i < n; i++) {
		if (changing->by_slot[i]->slot == changing->by_slot[i - 1]->slot &&
		    changing->by_slot[i]->slot != PFS_NO_SLOT)
			return pfs_change_fail(changing, -EINVAL, changing->by_slot[i]->slot,
					       "the statement changes it twice");
	}
	return 0;
}

struct ordering {
	struct pfs_changing *changing;
	uint64_t *seen; /* a bit for each slot: it is on the way up now, or ordered */
	uint64_t *done; /* a bit for each slot: it is ordered */
	uint32_t *way;
	size_t capacity, n;
};

static uint32_t parent_afterwards(const struct pfs_changing *changing, uint32_t slot)
{
	return pfs_is_moving(changing, slot) ? move_of(changing, slot)->parent
					     : changing->tree->image.parent[slot];
}

/* Goes from the node up to nodes that are ordered, and orders those on the way back down. */
static int order_above(struct ordering *ordering, struct pfs_move *move)
{
	struct pfs_changing *changing = ordering->changing;
	size_t n = 0;
	uint32_t slot = move->slot;

	for (; slot != PFS_NO_SLOT && !has(ordering->seen, slot);
	     slot = parent_afterwards(changing, slot)) {
		PFS_TRY(pfs_grow(&ordering->way, &ordering->capacity, n + 1,
				 sizeof(*ordering->way)));
		ordering->way[n++] = slot;
		ordering->seen[slot / 64] |= UINT64_C(1) << slot % 64;
	}
	if (slot != PFS_NO_SLOT && !has(ordering->done, slot))
		return pfs_change_fail(changing, -EINVAL, move->slot,
				       "a directory would come to lie within itself");
	while (n-- > 0) {
		slot = ordering->way[n];
		ordering->done[slot / 64] |= UINT64_C(1) << slot % 64;
		if (pfs_is_moving(changing, slot))
			changing->order[ordering->n++] = move_of(changing, slot);
	}
	return 0;
}

int pfs_change_order(struct pfs_changing *changing)
{
	size_t words = (size_t)changing->tree->image.end / 64 + 1;
	uint64_t *bits PFS_FREE = calloc(2 * words, sizeof(*bits));
	struct ordering ordering = {.changing = changing, .seen = bits};
	int error = 0;

	if (!bits)
		return -ENOMEM;
	ordering.done = bits + words;
	if (!changing->by_slot)
		PFS_TRY(list_by_slot(changing));
	for (size_t i = 0; i < changing->n_moves && !error; i++)
		error = order_above(&ordering, &changing->moves[i]);
	free(ordering.way);
	return error;
}

/* Orders new nodes: directories of the set before the nodes made in them. */
static void order_new(struct pfs_changing *changing)
{
	struct pfs_move *moves = changing->moves; /* by row, since each row makes a node */
	size_t n = 0;

	for (size_t i = 0; i < changing->n_moves; i++) {
		while (!moves[i].visited) {
			size_t top = i;

			while (moves[top].parent_row != PFS_NO_ROW &&
			       !moves[moves[top].parent_row].visited)
				top = moves[top].parent_row;
			moves[top].visited = true;
			changing->order[n++] = &moves[top];
		}
	}
}

/* ---- all of it ---- */

static int check_folders(struct placing *placing)
{
	struct pfs_changing *changing = placing->changing;

	for (size_t i = 0; i < changing->n_moves; i++) {
		const struct pfs_move *move = &changing->moves[i];
		const struct pfs_change *change = &changing->changes->list[move->row];
		size_t len;

		if (!(change->set & PFS_CHANGE_PATH) || move->parent == PFS_NO_SLOT)
			continue;
		len = (size_t)(move->name - 1 - pfs_change_text(changing, &change->path));
		if (!len || !*find_path(&placing->paths, move->name - 1 - len, len))
			PFS_TRY(check_stays(placing, move->parent, move->row));
	}
	return 0;
}

static int plan(struct placing *placing)
{
	struct pfs_changing *changing = placing->changing;

	PFS_TRY(list_paths(&placing->paths, changing));
	PFS_TRY(place_all(placing));
	PFS_TRY(list_by_slot(changing));
	PFS_TRY(check_folders(placing));
	PFS_TRY(check_names(changing));
	if (changing->changes->kind == PFS_CHANGE_CREATE)
		order_new(changing);
	else
		PFS_TRY(pfs_change_order(changing));
	return pfs_btree_reserve(changing->tree->image.by_name, changing->n_moves);
}

int pfs_change_places(struct pfs_changing *changing)
{
	struct placing placing = {.changing = changing};
	size_t words = (size_t)changing->tree->image.end / 64 + 1;
	int error = -ENOMEM;

	changing->moves = calloc(PFS_MAX(changing->changes->n, 1), sizeof(*changing->moves));
	placing.trusted = calloc(words, sizeof(*placing.trusted));
	if (changing->moves && placing.trusted)
		error = plan(&placing);
	free(placing.trusted);
	free(placing.paths.rows);
	return error;
}
