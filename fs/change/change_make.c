/* SPDX-License-Identifier: MIT */
/* The nodes that a set makes. */
#include "fs/change/change_impl.h"

#include <stdlib.h>
#include <string.h>

#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/primes.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

int pfs_change_new_mode(struct pfs_changing *changing, mode_t *mode, size_t row)
{
	const struct pfs_change *change = &changing->changes->list[row];

	*mode = change->mode;
	if (!S_ISREG(*mode) && !S_ISDIR(*mode) && !S_ISLNK(*mode) && !S_ISFIFO(*mode) &&
	    !S_ISSOCK(*mode))
		return pfs_change_fail_row(changing, -EINVAL, row,
					   "a node of this type cannot be inserted");
	if (S_ISLNK(*mode) != !!(change->set & PFS_CHANGE_TARGET))
		return pfs_change_fail_row(changing, -EINVAL, row,
					   "a symbolic link, and nothing else, has a target");
	if (S_ISLNK(*mode) && (!change->target.len || change->target.len > PFS_TARGET_MAX ||
			       memchr(pfs_change_text(changing, &change->target), 0,
				      change->target.len)))
		return pfs_change_fail_row(changing, -EINVAL, row,
					   "a target has 1 to 4095 bytes, none of them NUL");
	return 0;
}

int pfs_change_primes(struct pfs_changing *changing, uint64_t *primes, size_t *n)
{
	for (; *n < changing->changes->n; ++*n) {
		mode_t mode;

		PFS_TRY(pfs_change_new_mode(changing, &mode, *n));
		PFS_TRY(pfs_primes_next(changing->tree, &primes[*n],
					S_ISDIR(mode) ? PFS_PRIME_DIRECTORY : PFS_PRIME_OTHER));
	}
	return 0;
}

static int take_target(struct pfs_changing *changing, const struct pfs_move *move)
{
	const struct pfs_bytes *target = &changing->changes->list[move->row].target;
	char *copy = strdup(pfs_change_text(changing, target));
	int error = -ENOMEM;

	if (copy)
		error = pfs_image_set_target(changing->tree, move->slot, copy, target->len, 0);
	if (error)
		free(copy);
	return error;
}

int pfs_change_take(struct pfs_changing *changing, const uint64_t *primes)
{
	for (size_t i = 0; i < changing->n_moves; i++) {
		struct pfs_move *move = &changing->moves[i];

		PFS_TRY(pfs_image_reserve(changing->tree, 1)); /* it grows a little at a time */
		PFS_TRY(pfs_names_add(changing->tree->image.names, &move->place, move->name,
				      move->len));
		move->slot = pfs_image_take(changing->tree, primes[move->row]);
		if (changing->changes->list[move->row].set & PFS_CHANGE_TARGET)
			PFS_TRY(take_target(changing, move));
	}
	return 0;
}

void pfs_change_untake(struct pfs_changing *changing)
{
	for (size_t i = 0; i < changing->n_moves; i++) {
		const struct pfs_move *move = &changing->moves[i];

		if (move->place != PFS_NO_NAME)
			pfs_names_remove(changing->tree->image.names, move->place);
		if (move->slot != PFS_NO_SLOT)
			pfs_image_free(changing->tree, move->slot);
	}
}

static void set_columns(struct pfs_changing *changing, const struct pfs_move *move)
{
	const struct pfs_image *image = &changing->tree->image;
	const struct pfs_change *change = &changing->changes->list[move->row];
	mode_t mode = change->mode;
	gid_t gid = changing->caller->gid;

	if (image->mode[move->parent] & S_ISGID) {
		gid = image->gid[move->parent];
		mode |= S_ISDIR(mode) ? S_ISGID : 0;
	}
	pfs_image_make(changing->tree, move->slot, mode,
		       change->set & PFS_CHANGE_UID ? change->uid : changing->caller->uid,
		       change->set & PFS_CHANGE_GID ? change->gid : gid, changing->now);
}

static struct pfs_time time_of(int64_t nanoseconds)
{
	int64_t nsec = nanoseconds % 1000000000;

	return (struct pfs_time){.sec = nanoseconds / 1000000000 - (nsec < 0),
				 .nsec = (uint32_t)(nsec < 0 ? nsec + 1000000000 : nsec)};
}

void pfs_change_make(struct pfs_changing *changing)
{
	struct pfs_tree *tree = changing->tree;

	for (size_t i = 0; i < changing->n_moves; i++) {
		struct pfs_move *move = changing->order[i];
		const struct pfs_change *change = &changing->changes->list[move->row];

		if (move->parent_row != PFS_NO_ROW)
			move->parent = changing->moves[move->parent_row].slot;
		set_columns(changing, move);
		pfs_image_attach(tree, move->slot, move->parent, move->place, move->hash);
		pfs_journal_touch(tree, move->slot);
		pfs_stamp(tree, move->parent, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, changing->now);
		changing->slots[move->row] = move->slot;
		if (change->set & PFS_CHANGE_ATIME)
			pfs_image_stamp(tree, move->slot, PFS_COLUMN_ATIME,
					time_of(change->atime));
	}
	/* What is made in a directory changes the directory's time, so times that were asked for
	 * are set last. */
	for (size_t i = 0; i < changing->n_moves; i++) {
		const struct pfs_move *move = changing->order[i];
		const struct pfs_change *change = &changing->changes->list[move->row];

		if (change->set & PFS_CHANGE_MTIME)
			pfs_image_stamp(tree, move->slot, PFS_COLUMN_MTIME,
					time_of(change->mtime));
	}
}
