/* SPDX-License-Identifier: MIT */
/* Ranges: fallocate, truncation, and opening (which may truncate). */
#include "fs/content/content.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>

#include "base/checked.h"
#include "fs/content/hardlink.h"
#include "fs/content/link.h"
#include "fs/content/row.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

/* ---- fallocate ---- */

struct range {
	struct pfs_tree *tree;
	uint64_t ino;
	enum pfs_edit_kind kind;
	int64_t offset, end;
	bool keep_size, privileged;
};

static int64_t chunk_start(uint64_t n)
{
	return (int64_t)n * PFS_CHUNK_SIZE;
}

/* Gets the next piece to change, from *at on: at most a bounded number of chunks. A hole needs no
 * punching, however long it is, and is passed over. *length is 0 if nothing is left. */
static int next_piece(const struct range *range, int64_t *at, size_t *length)
{
	uint64_t n = (uint64_t)*at / PFS_CHUNK_SIZE;
	uint32_t len;
	int error;

	*length = 0;
	if (*at >= range->end)
		return 0;
	if (range->kind == PFS_EDIT_PUNCH) {
		error = pfs_content_next(range->tree, &n, &len, range->ino, n,
					 (uint64_t)(range->end - 1) / PFS_CHUNK_SIZE + 1);
		if (error)
			return error == -ENOENT ? 0 : error;
		*at = PFS_MAX(*at, chunk_start(n));
	}
	/* Ends at a boundary of chunks, so that only the ends of the range are parts of chunks. */
	*length = (size_t)(PFS_MIN(chunk_start(n) + PFS_EDIT_SPAN, range->end) - *at);
	return 0;
}

static int change_piece(const struct range *range, int64_t offset, size_t length, bool last)
{
	struct pfs_edit edit = {.tree = range->tree};
	int64_t size = -1;
	int error;

	error = pfs_journal_reserve(range->tree, 1,
				    2 * PFS_CHUNK_SIZE + PFS_EDIT_CHUNKS * sizeof(struct pfs_chunk),
				    false);
	if (error)
		return error;
	error = pfs_edit_open(&edit, range->tree, range->ino, false, false);
	if (!error && length) {
		pfs_edit_span(&edit, range->kind, NULL, offset, length);
		error = pfs_edit_prepare(&edit);
	}
	if (!error) {
		if (last && !range->keep_size && range->end > edit.node.size)
			size = range->end;
		pfs_edit_apply(&edit);
		pfs_edit_commit(&edit, size, range->privileged);
	}
	pfs_edit_close(&edit);
	return error;
}

/* Makes a linked file's content its own; *node is then up to date. */
static int own_content(struct pfs_tree *tree, struct pfs_file_node *node, uint64_t ino)
{
	struct pfs_edit edit = {.tree = tree};
	int error = pfs_edit_open(&edit, tree, ino, false, false);

	*node = edit.node;
	pfs_edit_close(&edit);
	return error;
}

/* Checks that there is room for what is not allocated yet. */
static int check_room(const struct range *range, const struct pfs_file_node *node)
{
	int64_t length = range->end - range->offset, has = node->blocks * 512;

	if (range->kind == PFS_EDIT_PUNCH || length <= has)
		return 0;
	return pfs_content_room(range->tree, (uint64_t)(length - has));
}

static int change_range(const struct range *range)
{
	int64_t at = range->offset, next;
	size_t length, next_length;
	int error;

	error = next_piece(range, &at, &length);
	while (!error) {
		next = at + (int64_t)length;
		next_length = 0;
		if (length)
			error = next_piece(range, &next, &next_length);
		if (error)
			break;
		error = change_piece(range, at, length, !next_length);
		if (!next_length)
			break;
		at = next;
		length = next_length;
	}
	return error;
}

int pfs_tree_fallocate(struct pfs_tree *tree, uint64_t ino, int mode, int64_t offset,
		       int64_t length, bool privileged)
{
	struct range range = {.tree = tree, .ino = ino, .offset = offset, .privileged = privileged};
	struct pfs_file_node node;
	int error;

	range.keep_size = mode & FALLOC_FL_KEEP_SIZE;
	switch (mode & ~FALLOC_FL_KEEP_SIZE) {
	case 0:
		range.kind = PFS_EDIT_ALLOCATE;
		break;
	case FALLOC_FL_ZERO_RANGE:
		range.kind = PFS_EDIT_ZERO;
		break;
	case FALLOC_FL_PUNCH_HOLE:
		range.kind = PFS_EDIT_PUNCH;
		if (range.keep_size)
			break;
		return -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
	if (offset < 0 || length <= 0)
		return -EINVAL;
	if (offset > PFS_FILE_SIZE_MAX || length > PFS_FILE_SIZE_MAX - offset)
		return -EFBIG;
	range.end = offset + length;
	error = pfs_journal_reserve(tree, 1, 0, false);
	if (!error)
		error = own_content(tree, &node, ino);
	if (!error)
		error = check_room(&range, &node);
	return error ? error : change_range(&range);
}

/* ---- truncation ---- */

/* Counts the blocks of the chunks from n on. The file is busy, so that they do not change. */
static int count_blocks(struct pfs_edit *edit, int64_t *blocks, uint64_t n)
{
	uint32_t len;
	int error;

	*blocks = 0;
	for (;; n++) {
		error = pfs_content_next(edit->tree, &n, &len, edit->ino, n, PFS_CHUNKS_MAX);
		if (error)
			return error == -ENOENT ? 0 : error;
		*blocks += pfs_chunk_blocks(len);
	}
}

/* Prepares a smaller size that leaves something: the chunk that it cuts through is punched, those
 * after it are counted. */
static int prepare_smaller(struct pfs_edit *edit, int64_t size)
{
	uint64_t n = pfs_div_round_up((uint64_t)size, PFS_CHUNK_SIZE);
	int64_t blocks = 0;
	int error, ended;

	if (edit->nowait)
		return -EAGAIN;
	pfs_edit_busy(edit);
	error = count_blocks(edit, &blocks, n);
	ended = pfs_edit_busy_end(edit);
	if (!error)
		error = ended;
	if (!error && size % PFS_CHUNK_SIZE) {
		pfs_edit_span(edit, PFS_EDIT_PUNCH, NULL, size,
			      PFS_CHUNK_SIZE - (size_t)(size % PFS_CHUNK_SIZE));
		error = pfs_edit_prepare(edit);
	}
	edit->blocks = -blocks;
	return error;
}

/* Prepares, in an open edit, everything that the new size needs. */
static int prepare_size(struct pfs_edit *edit, int64_t size)
{
	edit->new_size = size;
	if (edit->node.flags & PFS_NODE_NODATA)
		return size ? -ENODATA : 0;
	if (edit->node.flags & PFS_NODE_ELSEWHERE) {
		if (size && edit->nowait)
			return -EAGAIN;
		return pfs_copyup(edit, size);
	}
	if (size && size < edit->node.size)
		return prepare_smaller(edit, size);
	return 0;
}

static int prepare(struct pfs_tree *tree, uint64_t ino, int64_t size, bool nowait)
{
	struct pfs_edit *edit;
	int error;

	if (size < 0)
		return -EINVAL;
	if (size > PFS_FILE_SIZE_MAX)
		return -EFBIG;
	error = pfs_journal_reserve(tree, 1, PFS_CHUNK_SIZE, nowait);
	if (error)
		return error;
	edit = calloc(1, sizeof(*edit));
	if (!edit)
		return -ENOMEM;
	error = pfs_edit_open(edit, tree, ino, nowait, true);
	if (!error)
		error = prepare_size(edit, size);
	if (error) {
		pfs_edit_close(edit);
		free(edit);
		return error;
	}
	tree->content->resize = edit;
	return 0;
}

int pfs_content_prepare_size(struct pfs_tree *tree, uint64_t ino, int64_t size)
{
	return prepare(tree, ino, size, false);
}

void pfs_content_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size)
{
	struct pfs_content *content = tree->content;
	struct pfs_image *image = &tree->image;
	struct pfs_edit *edit = content->resize;
	int64_t blocks = image->blocks[slot];

	PFS_VERIFY_CHECK(edit && edit->new_size == size && edit->ino == image->prime[slot]);
	if (edit->node.flags & PFS_NODE_ELSEWHERE) {
		pfs_copyup_commit(edit, slot, size);
		blocks = image->blocks[slot];
	} else if (size < image->size[slot] || !size) {
		/* This also removes what was allocated beyond the end. */
		pfs_edit_apply(edit);
		pfs_file_cut(content, edit->file, pfs_div_round_up((uint64_t)size, PFS_CHUNK_SIZE));
		blocks = size ? PFS_MAX(blocks + edit->blocks, 0) : 0;
	}
	if (!size && image->flags[slot] & PFS_NODE_NODATA)
		pfs_image_set_flags(tree, slot, PFS_NODE_NODATA, 0);
	pfs_hard_link_leave(tree, slot);
	pfs_image_set_size(tree, slot, size, blocks);
	pfs_journal_touch(tree, slot);
}

void pfs_content_end_size(struct pfs_tree *tree)
{
	struct pfs_edit *resize = tree->content->resize;

	if (!resize) {
		pfs_parts_unlock(tree);
		return;
	}
	tree->content->resize = NULL;
	pfs_edit_close(resize); /* this unlocks */
	free(resize);
}

/* ---- opening ---- */

static int truncate_at_open(struct pfs_tree *tree, uint64_t ino, bool privileged, bool nowait)
{
	uint32_t slot;
	int error;

	error = prepare(tree, ino, 0, nowait);
	if (error)
		return error;
	pfs_hold_write(tree, __func__);
	/* it exists: prepare has looked, and the content lock keeps it */
	slot = pfs_image_slot(tree, ino);
	pfs_content_set_size(tree, slot, 0);
	pfs_node_changed(tree, slot, privileged);
	pfs_hold_end(tree);
	pfs_content_end_size(tree);
	return 0;
}

int pfs_tree_open_file(struct pfs_tree *tree, bool *volatile_attr, uint64_t ino, int flags,
		       bool privileged, bool nowait)
{
	bool truncate = flags & O_TRUNC;
	struct pfs_file_node node;
	int error;

	error = pfs_file_node(tree, &node, ino);
	if (error)
		return error;
	if (((flags & O_ACCMODE) != O_RDONLY || truncate) && tree->read_only)
		return -EROFS;
	if (node.flags & PFS_NODE_LINKED) {
		if (nowait)
			return -EAGAIN;
		error = pfs_links_refresh(tree, ino);
		if (error)
			return error;
	}
	if (node.flags & PFS_NODE_ROW && !truncate) {
		if (nowait)
			return -EAGAIN;
		pfs_row_refresh(tree, ino);
	}
	if (truncate) {
		error = truncate_at_open(tree, ino, privileged, nowait);
		if (error)
			return error;
	}
	*volatile_attr = node.flags & PFS_NODE_ELSEWHERE && !truncate;
	return 0;
}
