/* SPDX-License-Identifier: MIT */
/* A set of changes: with the locks held, it is found possible as a whole, and then made in the same
 * hold. */
#include "fs/change/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/attr/attredit.h"
#include "fs/change/change_impl.h"
#include "fs/content/content.h"
#include "fs/content/row.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/sides.h"
#include "fs/tree/tree_impl.h"

#define SETATTR (PFS_CHANGE_MODE | PFS_CHANGE_UID | PFS_CHANGE_GID | PFS_CHANGE_SIZE |              \
		 PFS_CHANGE_ATIME | PFS_CHANGE_MTIME)

#define RENEWALS 100u /* how often attributes are copied again that change meanwhile */

/* ---- sets ---- */

int pfs_change_set_text(struct pfs_change_set *changes, struct pfs_bytes *out, const void *bytes,
		     size_t len)
{
	PFS_TRY(pfs_grow(&changes->text, &changes->text_capacity, changes->text_len + len + 1, 1));
	*out = (struct pfs_bytes){.at = changes->text_len, .len = len};
	if (len)
		memcpy(changes->text + out->at, bytes, len);
	changes->text[out->at + len] = 0;
	changes->text_len += len + 1;
	return 0;
}

int pfs_change_set_move(struct pfs_change_set *changes, uint64_t ino, uint64_t parent,
			const char *name)
{
	struct pfs_change *change;

	PFS_TRY(pfs_grow(&changes->list, &changes->capacity, changes->n + 1,
			 sizeof(*changes->list)));
	change = &changes->list[changes->n];
	*change = (struct pfs_change){
		.ino = ino,
		.set = PFS_CHANGE_PARENT | PFS_CHANGE_NAME,
		.parent = parent,
	};
	PFS_TRY(pfs_change_set_text(changes, &change->name, name, strlen(name)));
	changes->n++;
	return 0;
}

void pfs_change_name_aside(char out[PFS_NAME_MAX + 1], const char *name, uint64_t ino)
{
	(void)snprintf(out, PFS_NAME_MAX + 1, "%.200s~%llu", name, (unsigned long long)ino);
}

uint64_t pfs_change_set_memory(const struct pfs_change_set *changes)
{
	return changes->capacity * sizeof(*changes->list) +
	       changes->attrs_capacity * sizeof(*changes->attrs) + changes->text_capacity;
}

void pfs_change_set_clear(struct pfs_change_set *changes)
{
	changes->n = changes->n_attrs = changes->text_len = 0;
}

void pfs_change_set_finish(struct pfs_change_set *changes)
{
	free(changes->list);
	free(changes->attrs);
	free(changes->text);
	*changes = (struct pfs_change_set){.kind = changes->kind};
}

/* ---- attributes ---- */

static struct timespec timespec_of(int64_t nanoseconds)
{
	int64_t nsec = nanoseconds % 1000000000;

	return (struct timespec){.tv_sec = nanoseconds / 1000000000 - (nsec < 0),
				 .tv_nsec = nsec < 0 ? nsec + 1000000000 : nsec};
}

/* Returns which of the values that the row asks for the node does not have yet. */
static unsigned differing(const struct pfs_changing *changing, const struct pfs_change *change,
			  uint32_t slot)
{
	const struct pfs_image *image = &changing->tree->image;
	unsigned set = change->set & SETATTR;

	if ((change->mode & 07777) == (image->mode[slot] & 07777u))
		set &= ~(unsigned)PFS_CHANGE_MODE;
	if (change->uid == image->uid[slot])
		set &= ~(unsigned)PFS_CHANGE_UID;
	if (change->gid == image->gid[slot])
		set &= ~(unsigned)PFS_CHANGE_GID;
	if (change->size == image->size[slot])
		set &= ~(unsigned)PFS_CHANGE_SIZE;
	if (change->atime == image->atime[slot])
		set &= ~(unsigned)PFS_CHANGE_ATIME;
	if (change->mtime == image->mtime[slot])
		set &= ~(unsigned)PFS_CHANGE_MTIME;
	return set;
}

static int check_attributes(struct pfs_changing *changing, size_t row)
{
	const struct pfs_change *change = &changing->changes->list[row];
	uint32_t slot = changing->slots[row];
	unsigned set = differing(changing, change, slot);
	mode_t mode = changing->tree->image.mode[slot];

	if (change->set & PFS_CHANGE_MODE && change->mode & S_IFMT &&
	    (change->mode & S_IFMT) != (mode & S_IFMT))
		return pfs_change_fail(changing, -EINVAL, slot,
				       "the mode is one of another type of file");
	if (set & PFS_CHANGE_MODE && S_ISLNK(mode))
		return pfs_change_fail(changing, -EOPNOTSUPP, slot,
				       "the mode of a symbolic link does not change");
	return set || (changing->edits && changing->edits[row].in_use)
		       ? pfs_notice_node(changing, slot)
		       : 0;
}

static void set_attributes(struct pfs_changing *changing, size_t row)
{
	const struct pfs_change *change = &changing->changes->list[row];
	uint32_t slot = changing->slots[row];
	unsigned differs = differing(changing, change, slot), set = 0;
	struct stat attr = {
		.st_mode = change->mode,
		.st_uid = change->uid,
		.st_gid = change->gid,
		.st_size = change->size,
		.st_atim = timespec_of(change->atime),
		.st_mtim = timespec_of(change->mtime),
	};

	set |= differs & PFS_CHANGE_MODE ? PFS_SET_MODE : 0;
	set |= differs & PFS_CHANGE_UID ? PFS_SET_UID : 0;
	set |= differs & PFS_CHANGE_GID ? PFS_SET_GID : 0;
	set |= differs & PFS_CHANGE_SIZE ? PFS_SET_SIZE : 0;
	set |= differs & PFS_CHANGE_ATIME ? PFS_SET_ATIME : 0;
	set |= differs & PFS_CHANGE_MTIME ? PFS_SET_MTIME : 0;
	if (set)
		pfs_set_attributes(changing->tree, slot, &attr, set, changing->now);
}

/* ---- updates ---- */

static void move(struct pfs_changing *changing)
{
	struct pfs_tree *tree = changing->tree;
	size_t n = changing->n_moves;

	/* Times come first: then a node that comes or goes is hardly ever the newest (totals.h). */
	for (size_t i = 0; i < n; i++) {
		uint32_t from = tree->image.parent[changing->moves[i].slot];

		pfs_stamp(tree, from, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, changing->now);
		pfs_stamp(tree, changing->moves[i].parent, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME,
			  changing->now);
	}
	for (size_t i = 0; i < n; i++) {
		const struct pfs_move *one = changing->order[i];

		pfs_image_move(tree, one->slot, one->parent, one->place, one->hash,
			       pfs_stamp_ctime(tree, one->slot, changing->now));
		pfs_journal_touch(tree, one->slot);
	}
}

static int add_names(struct pfs_changing *changing)
{
	struct pfs_names *names = changing->tree->image.names;

	for (size_t i = 0; i < changing->n_moves; i++) {
		struct pfs_move *one = &changing->moves[i];

		if (!pfs_names_add(names, &one->place, one->name, one->len))
			continue;
		while (i-- > 0)
			pfs_names_remove(names, changing->moves[i].place);
		return -ENOMEM;
	}
	return 0;
}

static int update(struct pfs_changing *changing)
{
	PFS_TRY(pfs_change_places(changing));
	for (size_t row = 0; row < changing->changes->n; row++)
		PFS_TRY(check_attributes(changing, row));
	PFS_TRY(pfs_change_check_edits(changing));
	PFS_TRY(pfs_notice_moves(changing));
	PFS_TRY(add_names(changing));
	move(changing);
	for (size_t row = 0; row < changing->changes->n; row++)
		set_attributes(changing, row);
	pfs_change_apply_edits(changing);
	return 0;
}

/* ---- removal ---- */

static int list_removed(struct pfs_changing *changing)
{
	const struct pfs_image *image = &changing->tree->image;

	changing->n_moves = changing->changes->n;
	changing->moves = calloc(changing->n_moves, sizeof(*changing->moves));
	if (!changing->moves)
		return -ENOMEM;
	for (size_t row = 0; row < changing->n_moves; row++) {
		uint32_t slot = changing->slots[row];

		if (slot == image->root)
			return pfs_change_fail(changing, -EBUSY, slot,
					       "the root cannot be deleted");
		changing->moves[row] = (struct pfs_move){
			.row = row, .slot = slot, .parent = image->parent[slot]};
	}
	return pfs_change_order(changing);
}

/* Checks that nothing is left in a directory that is removed. */
static int check_emptied(struct pfs_changing *changing, uint32_t slot)
{
	const struct pfs_image *image = &changing->tree->image;
	struct pfs_children children;
	struct pfs_btree_entry entry;

	if (!S_ISDIR(image->mode[slot]))
		return 0;
	pfs_children_begin(&children, changing->tree, slot, 0, 0);
	while (pfs_children_next(&children, &entry)) {
		if (pfs_is_moving(changing, entry.slot))
			continue;
		if (pfs_change_came_later(changing, entry.slot))
			return -EAGAIN;
		return pfs_change_fail(changing, -ENOTEMPTY, entry.slot,
				       "the statement deletes the directory and leaves this");
	}
	return 0;
}

/* Returns true if the store is going to forget content that somebody may go on reading; it must be
 * read before. */
static bool is_used(const struct pfs_changing *changing, uint32_t slot)
{
	return pfs_parts_must_keep(changing->tree, slot) &&
	       atomic_load(&changing->tree->image.references[slot]);
}

static void unlink_one(struct pfs_changing *changing, uint32_t slot)
{
	struct pfs_tree *tree = changing->tree;
	uint64_t ino = tree->image.prime[slot];

	if (!pfs_unlink_slot(tree, slot, pfs_image_hash_of(tree, slot), changing->now))
		return;
	pfs_parts_drop(tree, ino);
	pfs_journal_dropped(tree, slot);
}

/* -EAGAIN, with *wanted set: content of some nodes has to be kept first. */
static int remove_all(struct pfs_changing *changing, bool *wanted)
{
	PFS_TRY(list_removed(changing));
	for (size_t i = 0; i < changing->n_moves; i++) {
		PFS_TRY(check_emptied(changing, changing->moves[i].slot));
		*wanted |= is_used(changing, changing->moves[i].slot) && !changing->kept[i];
	}
	if (*wanted)
		return -EAGAIN;
	PFS_TRY(pfs_notice_moves(changing));
	for (size_t i = changing->n_moves; i-- > 0;)
		unlink_one(changing, changing->order[i]->slot);
	pfs_journal_replaced(changing->tree, changing->former);
	return 0;
}

/* Keeps such content. No lock is held. */
static int keep(struct pfs_changing *changing)
{
	bool *kept = changing->kept;
	uint64_t former; /* only measured */

	for (size_t row = 0; row < changing->changes->n; row++) {
		bool used;

		pfs_hold_read(changing->tree, __func__);
		used = !kept[row] && is_used(changing, changing->slots[row]);
		pfs_hold_end(changing->tree);
		if (used)
			PFS_TRY(pfs_parts_keep(changing->tree, changing->changes->list[row].ino,
					       &former));
		kept[row] |= used;
	}
	return 0;
}

/* ---- making ---- */

static int create(struct pfs_changing *changing, const uint64_t *primes)
{
	int error;

	PFS_TRY(pfs_change_places(changing));
	PFS_TRY(pfs_notice_moves(changing));
	for (size_t row = 0; changing->edits && row < changing->changes->n; row++)
		changing->edits[row].ino = primes[row];
	error = pfs_change_take(changing, primes);
	for (size_t i = 0; i < changing->n_moves; i++) {
		if (changing->moves[i].slot != PFS_NO_SLOT)
			changing->slots[changing->moves[i].row] = changing->moves[i].slot;
	}
	if (!error)
		error = pfs_change_check_edits(changing);
	if (error) {
		pfs_change_untake(changing);
		return error;
	}
	pfs_change_make(changing);
	pfs_change_apply_edits(changing);
	return 0;
}

/* ---- the whole ---- */

/* Frees what one attempt found out. */
static void forget(struct pfs_changing *changing)
{
	free(changing->moves);
	free(changing->by_slot);
	free(changing->moving);
	free(changing->order);
	changing->moves = NULL;
	changing->by_slot = changing->order = NULL;
	changing->moving = NULL;
	changing->n_moves = 0;
	pfs_notices_clear(changing);
}

static void lock(struct pfs_changing *changing, bool has_content_lock)
{
	if (!has_content_lock)
		pfs_parts_lock(changing->tree);
	pfs_hold_write(changing->tree, __func__);
	changing->now = pfs_now();
}

static void unlock(struct pfs_changing *changing)
{
	pfs_hold_end(changing->tree);
	pfs_content_end_size(changing->tree);
}

/* Finds the only row that changes a size, or PFS_NO_ROW. */
static int find_resized(struct pfs_changing *changing, size_t *resized)
{
	const struct pfs_change_set *changes = changing->changes;

	*resized = PFS_NO_ROW;
	for (size_t row = 0; row < changes->n; row++) {
		if (!(changes->list[row].set & PFS_CHANGE_SIZE))
			continue;
		if (*resized != PFS_NO_ROW || changes->kind != PFS_CHANGE_UPDATE)
			return pfs_change_fail_path(changing, -EINVAL, "size", 4,
						    "a statement changes it of one file, and not "
						    "of one that it makes");
		*resized = row;
	}
	return 0;
}

static int update_once(struct pfs_changing *changing)
{
	size_t resized;
	int error;

	PFS_TRY(find_resized(changing, &resized));
	if (resized != PFS_NO_ROW) {
		const struct pfs_change *change = &changing->changes->list[resized];

		error = pfs_check_size(changing->tree, change->ino, change->size);
		if (!error)
			error = pfs_content_prepare_size(changing->tree, change->ino, change->size);
		if (error == -ESTALE && changing->basis->frozen)
			resized = PFS_NO_ROW; /* the node is gone, which is found out later */
		else if (error)
			return error == -ESTALE
				       ? -EAGAIN
				       : pfs_change_fail_path(changing, error, "size", 4,
							      strerror(-error));
	}
	lock(changing, resized != PFS_NO_ROW);
	error = pfs_change_check(changing);
	if (!error && changing->changes->n)
		error = update(changing);
	unlock(changing);
	return error;
}

/* Few nodes have attributes that changed after they were copied. These are copied again in a
 * moment, so that the statement need not run again. */
static int run_update(struct pfs_changing *changing)
{
	int error = update_once(changing);

	for (unsigned i = 0; i < RENEWALS && error == -EAGAIN && changing->has_outdated; i++) {
		changing->has_outdated = false;
		forget(changing);
		PFS_TRY(pfs_change_renew_edits(changing));
		error = update_once(changing);
	}
	return error;
}

static int run_removal(struct pfs_changing *changing)
{
	bool wanted;
	int error;

	changing->kept = calloc(changing->changes->n, sizeof(*changing->kept));
	if (!changing->kept)
		return -ENOMEM;
	for (;;) {
		wanted = false;
		lock(changing, false);
		error = pfs_change_check(changing);
		if (!error && changing->changes->n)
			error = remove_all(changing, &wanted);
		unlock(changing);
		if (!wanted)
			return error;
		forget(changing);
		PFS_TRY(keep(changing));
	}
}

static int run_creation(struct pfs_changing *changing)
{
	uint64_t *primes PFS_FREE = calloc(changing->changes->n, sizeof(*primes));
	size_t n = 0, resized;
	int error;

	if (!primes)
		return -ENOMEM;
	PFS_TRY(find_resized(changing, &resized));
	while ((error = pfs_change_primes(changing, primes, &n)) == -EAGAIN)
		PFS_TRY(pfs_journal_fetch_primes(changing->tree));
	if (error)
		return error;
	lock(changing, false);
	error = create(changing, primes);
	unlock(changing);
	return error;
}

/* Returns the columns of the image that the set changes, including those of directories that get or
 * lose nodes. */
static unsigned columns_of(const struct pfs_change_set *changes)
{
	static const struct {
		unsigned fields, columns;
	} kinds[] = {
		{PFS_CHANGE_PARENT | PFS_CHANGE_NAME | PFS_CHANGE_PATH,
		 PFS_COLUMN_PARENT | PFS_COLUMN_NAME | PFS_COLUMN_LINKS | PFS_COLUMN_MTIME},
		{PFS_CHANGE_MODE, PFS_COLUMN_MODE},
		{PFS_CHANGE_UID | PFS_CHANGE_GID,
		 PFS_COLUMN_UID | PFS_COLUMN_GID | PFS_COLUMN_MODE},
		{PFS_CHANGE_SIZE, PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS | PFS_COLUMN_FLAGS |
					  PFS_COLUMN_MODE | PFS_COLUMN_MTIME},
		{PFS_CHANGE_ATIME, PFS_COLUMN_ATIME},
		{PFS_CHANGE_MTIME, PFS_COLUMN_MTIME},
	};
	unsigned fields = 0, columns = PFS_COLUMN_CTIME | (changes->n_attrs ? PFS_COLUMN_FLAGS : 0);

	if (changes->kind != PFS_CHANGE_UPDATE)
		return columns | PFS_COLUMNS_PLACE | PFS_COLUMN_LINKS | PFS_COLUMN_MTIME;
	for (size_t i = 0; i < changes->n; i++)
		fields |= changes->list[i].set;
	for (size_t i = 0; i < PFS_COUNT(kinds); i++)
		columns |= kinds[i].fields & fields ? kinds[i].columns : 0;
	return columns;
}

static int reserve(struct pfs_changing *changing)
{
	const struct pfs_change_set *changes = changing->changes;
	const bool removal = changes->kind == PFS_CHANGE_REMOVE;
	int error = pfs_change_measure(changing);

	if (!error)
		error = pfs_journal_reserve_set(changing->tree, 2 * changes->n,
						(removal ? 0 : changes->text_len) +
							changing->former,
						columns_of(changes), removal);
	if (error == -EROFS)
		return pfs_change_fail_path(changing, error, "the store", 9, "it is read-only");
	if (error == -ENOSPC)
		return pfs_change_fail_path(changing, error, "the store", 9, PFS_STORE_IS_FULL);
	return error;
}

static int run(struct pfs_changing *changing)
{
	PFS_TRY(pfs_change_prepare_edits(changing));
	PFS_TRY(reserve(changing));
	PFS_TRY(pfs_change_find(changing));
	switch (changing->changes->kind) {
	case PFS_CHANGE_UPDATE:
		return run_update(changing);
	case PFS_CHANGE_REMOVE:
		return run_removal(changing);
	case PFS_CHANGE_CREATE:
		break;
	}
	return run_creation(changing);
}

int pfs_tree_change(struct pfs_tree *tree, struct pfs_change_set *changes,
		    const struct pfs_change_basis *basis, const struct pfs_caller *caller,
		    char *why, size_t why_size)
{
	struct pfs_changing changing = {
		.tree = tree,
		.changes = changes,
		.basis = basis,
		.caller = caller,
		.why = why,
		.why_size = why_size,
	};
	int error = pfs_notices_create(&changing);

	if (why_size)
		*why = 0;
	if (error || !changes->n) {
		pfs_notices_finish(&changing);
		return error;
	}
	changing.slots = malloc(changes->n * sizeof(*changing.slots));
	error = changing.slots ? 0 : -ENOMEM;
	if (!error) {
		memset(changing.slots, 0xff, changes->n * sizeof(*changing.slots));
		pfs_rows_hold(tree);
		error = run(&changing);
		if (!error)
			pfs_change_rows(&changing);
		pfs_rows_let_go(tree);
	}
	if (!error)
		pfs_notices_tell(&changing);
	forget(&changing);
	pfs_change_finish_edits(&changing);
	free(changing.slots);
	free(changing.kept);
	free(changing.seen);
	pfs_notices_finish(&changing);
	return error;
}
