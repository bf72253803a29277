/* SPDX-License-Identifier: MIT */
/* Columns that are made, and how they follow the tree.  Before a reader gets one it is brought to
 * the tree's epoch; so nobody else reads it while it is being changed, since whoever reads it in
 * the same hold found nothing more to do. */
#include "fs/nodes/columns_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/content/register.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define PIECE	(1u << 15) /* slots read in the first hold of the tree, */
#define PIECE_GROWS 128u   /* up to so many times as many in others */
#define HELD_NS	1000000u
#define READ_MOST   8192u		     /* slots of changed blocks that are read in one hold */
#define FOLLOWED    1024u		     /* changes that a column takes over at a time, */
#define TIMES	    8u			     /* and so often in one hold */
#define UNWANTED    (16u * PFS_FEED_CHANGES) /* a column that lacks more is given up */

/* ---- life ---- */

static void free_derived(struct pfs_derived *column)
{
	if (!column)
		return;
	pfs_attr_reader_close(column->reader);
	pfs_reserve_close(&column->data);
	pfs_reserve_close(&column->nulls);
	pfs_reserve_close(&column->blocks);
	pfs_dictionary_finish(&column->dictionary);
	free(column->known);
	free(column->attr);
	free(column);
}

void pfs_columns_destroy(struct pfs_tree *tree)
{
	struct pfs_derived_columns *columns = tree->columns;

	if (!columns)
		return;
	for (size_t i = 0; i < columns->n; i++)
		free_derived(columns->columns[i]);
	(void)pthread_mutex_destroy(&columns->making);
	(void)pthread_mutex_destroy(&columns->lock);
	free(columns);
	tree->columns = NULL;
}

/* ---- following ---- */

/* Brings the column towards the tree's epoch; 0: it is there, 1: not yet, -EAGAIN: it has to be
 * made. */
static int follow(struct pfs_tree *tree, struct pfs_derived *column)
{
	uint32_t slots[FOLLOWED];
	int more = 1;

	if (column->kind == PFS_DERIVED_DEPTH && column->access != tree->image.access)
		return -EAGAIN;
	for (unsigned i = 0; i < TIMES && more == 1; i++) {
		struct pfs_feed_follower follower = column->follower;
		size_t n = FOLLOWED;

		more = pfs_feed_next(&tree->image, &follower, slots, &n);
		for (size_t row = 0; row < n; row++)
			pfs_stamps_touch(&column->data_stamps, slots[row], tree->image.epoch);
		if (n)
			PFS_TRY(pfs_derived_fill(tree, column, slots, n));
		column->follower = follower;
	}
	return more ? more : pfs_derived_reach(column, tree->image.end);
}

/* ---- life ---- */

static bool has_bit(const uint64_t *bits, uint32_t slot)
{
	return bits[slot / 64] >> slot % 64 & 1;
}

/* What one slot has in the column is what the image says. */
static bool is_right(const struct pfs_tree *tree, const struct pfs_derived *column, uint32_t slot)
{
	const struct pfs_dictionary *dictionary = &column->dictionary.shown;
	const uint32_t *values = column->data.base;
	const char *name, *text;
	size_t len, kept_len;

	if (column->kind == PFS_DERIVED_DEPTH)
		return values[slot] == pfs_scan_integer(tree, PFS_FIELD_DEPTH, slot);
	name = pfs_names_get(tree->image.names, tree->image.name[slot], &len);
	text = pfs_scan_extension(name, &len);
	if (!text || has_bit(column->nulls.base, slot))
		return !text == has_bit(column->nulls.base, slot);
	return !memcmp(pfs_dictionary_text(dictionary, values[slot], &kept_len), text, len) &&
	       kept_len == len;
}

/* Attributes are the store's: tests compare those. */
static bool check_column(const struct pfs_tree *tree, const struct pfs_derived *column)
{
	struct pfs_feed_follower follower = column->follower;
	uint32_t end = PFS_MIN(column->end, tree->image.end);
	uint64_t *unread PFS_FREE = calloc(end / 64 + 1, sizeof(*unread));

	if (!unread || !column->ready || column->kind == PFS_DERIVED_ATTR ||
	    (column->kind == PFS_DERIVED_DEPTH && column->access != tree->image.access))
		return true;
	for (int more = 1; more;) {
		uint32_t slots[FOLLOWED];
		size_t n = FOLLOWED;

		more = pfs_feed_next(&tree->image, &follower, slots, &n);
		if (more < 0)
			return true; /* it is brought up to date before anybody sees it */
		for (size_t i = 0; i < n; i++)
			if (slots[i] < end)
				unread[slots[i] / 64] |= UINT64_C(1) << slots[i] % 64;
	}
	for (uint32_t slot = 0; slot < end; slot++)
		if (pfs_image_is_live(&tree->image, slot) && !has_bit(unread, slot) &&
		    !is_right(tree, column, slot))
			return false;
	return true;
}

static bool check(struct pfs_tree *tree)
{
	PFS_LOCKED(&tree->columns->lock);

	for (size_t i = 0; i < tree->columns->n; i++)
		if (!check_column(tree, tree->columns->columns[i]))
			return false;
	return true;
}

static const struct pfs_watcher watcher = {
	.name = "columns",
	.check = check,
};

int pfs_columns_create(struct pfs_tree *tree)
{
	struct pfs_derived_columns *columns = calloc(1, sizeof(*columns));

	tree->columns = columns;
	if (!columns)
		return -ENOMEM;
	(void)pthread_mutex_init(&columns->making, NULL);
	(void)pthread_mutex_init(&columns->lock, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}

/* ---- making one ---- */

static struct pfs_derived *find(const struct pfs_derived_columns *columns,
				enum pfs_derived_kind kind, const struct pfs_column_wish *wish)
{
	for (size_t i = 0; i < columns->n; i++) {
		struct pfs_derived *column = columns->columns[i];

		if (column->kind == kind &&
		    (kind != PFS_DERIVED_ATTR ||
		     (column->attr_len == wish->attr_len &&
		      memcmp(column->attr, wish->attr, wish->attr_len) == 0)))
			return column;
	}
	return NULL;
}

static const unsigned made_of[] = {
	[PFS_DERIVED_EXT] = PFS_COLUMN_NAME,
	[PFS_DERIVED_DEPTH] = PFS_COLUMN_PARENT,
	[PFS_DERIVED_ATTR] = PFS_COLUMN_FLAGS,
};

static struct pfs_derived *new_derived(enum pfs_derived_kind kind,
				       const struct pfs_column_wish *wish)
{
	struct pfs_derived *column = calloc(1, sizeof(*column));
	int error;

	if (!column)
		return NULL;
	column->kind = kind;
	column->follower.columns = made_of[kind];
	if (kind == PFS_DERIVED_ATTR) {
		column->type = wish->type;
		column->attr_len = wish->attr_len;
		column->attr = strndup(wish->attr, wish->attr_len);
	}
	error = kind == PFS_DERIVED_ATTR && !column->attr ? -ENOMEM : 0;
	if (!error)
		error = pfs_reserve_open(&column->data, PFS_SLOT_MAX * sizeof(int64_t));
	if (!error)
		error = pfs_reserve_open(&column->nulls, PFS_SLOT_MAX / 8);
	if (!error)
		error = pfs_stamps_reserve(&column->data_stamps, &column->blocks);
	column->nulls_stamps.block = column->data_stamps.block;
	if (!error)
		error = pfs_dictionary_begin(&column->dictionary);
	if (error)
		free_derived(PFS_TAKE(column));
	return column;
}

static void remove_column(struct pfs_derived_columns *columns, const struct pfs_derived *column)
{
	for (size_t i = 0; i < columns->n; i++) {
		if (columns->columns[i] == column)
			columns->columns[i--] = columns->columns[--columns->n];
	}
}

/* Gives up columns that nobody has wanted for long: who has one in this hold has brought it to the
 * epoch. */
static void drop_unwanted(struct pfs_tree *tree)
{
	struct pfs_derived_columns *columns = tree->columns;

	for (size_t i = columns->n; i-- > 0;) {
		struct pfs_derived *column = columns->columns[i];

		if (column->ready && tree->image.epoch - column->follower.cursor > UNWANTED) {
			columns->columns[i] = columns->columns[--columns->n];
			free_derived(column);
		}
	}
}

/* From now on it follows.  Whoever makes a column changes the list, and nobody else does. */
static int enlist(struct pfs_tree *tree, struct pfs_derived *column, bool is_new)
{
	struct pfs_derived_columns *columns = tree->columns;
	int error = 0;

	(void)pfs_scan_lock(tree, __func__);
	{
		PFS_LOCKED(&columns->lock);
		column->ready = false;
		drop_unwanted(tree);
		if (is_new && columns->n == PFS_DERIVED_MAX)
			error = -ENOMEM;
		else if (is_new)
			columns->columns[columns->n++] = column;
		column->since = column->follower.cursor;
		if ((column->kind == PFS_DERIVED_DEPTH && column->access != tree->image.access) ||
		    !pfs_feed_is_near(&tree->image, column->follower.columns, column->end,
				      column->since))
			column->since = 0;
		if (!column->since)
			column->is_mixed = false;
		column->follower.cursor = tree->image.epoch;
		column->access = tree->image.access;
		if (!error)
			error = pfs_derived_reach(column, tree->image.end);
	}
	pfs_scan_unlock(tree);
	return error;
}

/* Reads what has changed among the slots from..*to, or up to where that is enough. */
static int fill_changed(struct pfs_tree *tree, struct pfs_derived *column, uint32_t from,
			uint32_t *to)
{
	uint32_t slots[1024], n_read = 0;

	while (from < *to) {
		size_t n = 0;

		if (!pfs_feed_has_changed(&tree->image, column->follower.columns,
					  from / PFS_BLOCK_ROWS, column->since)) {
			from += PFS_COUNT(slots);
			continue;
		}
		tree->columns->blocks_read += from % PFS_BLOCK_ROWS == 0;
		for (; n < PFS_COUNT(slots) && from < *to; from++)
			slots[n++] = from;
		PFS_TRY(pfs_derived_fill(tree, column, slots, n));
		n_read += (uint32_t)n;
		if (n_read >= READ_MOST && from % PFS_BLOCK_ROWS == 0)
			*to = from;
	}
	return 0;
}

/* The slots from *from on, in one hold of the tree, as many as *size, which becomes what suits the
 * next, or as are enough. */
static int fill_piece(struct pfs_tree *tree, struct pfs_derived *column, uint32_t *from,
		      uint32_t *size)
{
	const uint32_t wanted = *from + *size;
	uint64_t started, took;
	uint32_t to, end;
	int error;

	(void)pfs_scan_lock(tree, __func__);
	started = pfs_now_ns();
	to = end = PFS_MIN(wanted, tree->image.end);
	if (column->since) {
		error = fill_changed(tree, column, *from, &to);
	} else {
		error = *from < to ? pfs_derived_fill_range(tree, column, *from, &to) : 0;
		for (uint32_t block = *from / PFS_BLOCK_ROWS; block * PFS_BLOCK_ROWS < to; block++)
			tree->columns->blocks_read++;
	}
	took = pfs_now_ns() - started;
	pfs_scan_unlock(tree);
	*from = to < end ? to : wanted;
	if (took < HELD_NS / 2 && *size < PIECE * PIECE_GROWS)
		*size *= 2;
	else if (took > HELD_NS && *size > PIECE)
		*size /= 2;
	return error;
}

static int make(struct pfs_tree *tree, struct pfs_derived *column, int (*poll)(void *arg),
		void *arg)
{
	uint32_t end = column->end, size = PIECE;

	for (uint32_t from = 0; from < end;) {
		PFS_TRY(fill_piece(tree, column, &from, &size));
		if (poll && poll(arg))
			return -EINTR;
	}
	(void)pfs_scan_lock(tree, __func__);
	{
		PFS_LOCKED(&tree->columns->lock);
		column->ready = true;
		column->data_stamps.id =
			pfs_table_new_id(); /* nobody has a copy of it as it is now */
		column->nulls_stamps.id = pfs_table_new_id();
	}
	pfs_scan_unlock(tree);
	return 0;
}

static void forget(struct pfs_tree *tree, struct pfs_derived *column)
{
	(void)pfs_scan_lock(tree, __func__);
	{
		PFS_LOCKED(&tree->columns->lock);
		remove_column(tree->columns, column);
	}
	pfs_scan_unlock(tree);
	free_derived(column);
}

/* Finds the column and has it follow the tree. Returns 0: it is up to date; 1: it has come nearer
 * to it, call again; -EAGAIN: it has to be made. Its reader of attributes is exchanged for *reader.
 */
static int look(struct pfs_tree *tree, struct pfs_derived **column, enum pfs_derived_kind kind,
		const struct pfs_column_wish *wish, struct pfs_attr_reader **reader)
{
	struct pfs_derived_columns *columns = tree->columns;
	int error;

	(void)pfs_scan_lock(tree, __func__);
	{
		PFS_LOCKED(&columns->lock);
		*column = find(columns, kind, wish);
		if (*column && reader && *reader) {
			struct pfs_attr_reader *old = (*column)->reader;

			(*column)->reader = *reader;
			(*column)->n_known = 0;
			*reader = old;
		}
		error = *column && (*column)->ready ? follow(tree, *column) : -EAGAIN;
		if (*column && error == -EAGAIN)
			(*column)->ready = false; /* its maker has it from now on */
	}
	pfs_scan_unlock(tree);
	return error;
}

static int prepare(struct pfs_tree *tree, enum pfs_derived_kind kind,
		   const struct pfs_column_wish *wish, int (*poll)(void *arg), void *arg)
{
	struct pfs_attr_reader *reader = NULL;
	struct pfs_derived *column;
	bool is_new, follows;
	int error;

	if (kind == PFS_DERIVED_ATTR)
		PFS_TRY(pfs_attr_reader_open(&reader, tree, wish->attr, wish->attr_len));
	error = look(tree, &column, kind, wish, &reader);
	follows = error == 1;
	while (error == 1) /* one hold after the other */
		error = poll && poll(arg) ? -EINTR : look(tree, &column, kind, wish, NULL);
	if (error != -EAGAIN || (follows && !column)) {
		pfs_attr_reader_close(reader);
		return error;
	}
	is_new = !column;
	if (is_new) {
		column = new_derived(kind, wish);
		if (column) {
			column->reader = reader;
			reader = NULL;
		}
	}
	pfs_attr_reader_close(reader);
	error = column ? enlist(tree, column, is_new) : -ENOMEM;
	if (!error)
		error = make(tree, column, poll, arg);
	if (error && column)
		forget(tree, column);
	return error;
}

/* What follows from a node's place changes without the node: nobody notes that. */
static bool is_computed(const struct pfs_tree *tree, const struct pfs_column_wish *wish)
{
	return wish->attr && pfs_registers_computing(tree, wish->attr, wish->attr_len);
}

int pfs_columns_prepare(struct pfs_tree *tree, const struct pfs_column_wish *wishes, size_t n,
			int (*poll)(void *arg), void *arg)
{
	enum pfs_derived_kind kind;
	PFS_LOCKED(&tree->columns->making);

	for (size_t i = 0; i < n; i++) {
		if (pfs_derived_kind_of(&kind, &wishes[i]) && !is_computed(tree, &wishes[i]))
			PFS_TRY(prepare(tree, kind, &wishes[i], poll, arg));
	}
	return 0;
}

int pfs_derived_get(struct pfs_tree *tree, struct pfs_derived **out, enum pfs_derived_kind kind,
		    const struct pfs_column_wish *wish)
{
	int error;
	PFS_LOCKED(&tree->columns->lock);

	if (kind == PFS_DERIVED_ATTR && is_computed(tree, wish))
		return -EOPNOTSUPP;
	*out = find(tree->columns, kind, wish);
	if (!*out || !(*out)->ready)
		return -EAGAIN;
	error = follow(tree, *out);
	if (error)
		return error == 1 ? -EAGAIN : error;
	return (*out)->is_mixed ? -EOPNOTSUPP : 0;
}
