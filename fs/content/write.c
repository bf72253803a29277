/* SPDX-License-Identifier: MIT */
/* write and copy_file_range. */
#include "fs/tree/tree.h"

#include <stdlib.h>

#include "base/checked.h"
#include "fs/content/content_impl.h"
#include "fs/journal/journal.h"

#define COPY_PIECE ((size_t)PFS_EDIT_SPAN)
#define COPY_MAX   ((size_t)16 << 20) /* bytes that one copy_range moves, so that it ends soon */

/* Writes at most PFS_EDIT_SPAN bytes. */
static int write_piece(struct pfs_edit *edit, const void *data, size_t size, int64_t offset,
		       bool privileged)
{
	int error;

	if (offset >= 0) {
		pfs_edit_span(edit, PFS_EDIT_WRITE, data, offset, size);
		error = pfs_edit_fill(edit);
		if (error)
			return error;
	}
	error = pfs_edit_open(edit, edit->tree, edit->ino, edit->nowait, false);
	if (error)
		return error;
	if (offset < 0) {
		offset = edit->node.size;
		if (size > (uint64_t)(PFS_FILE_SIZE_MAX - offset))
			return -EFBIG;
		pfs_edit_span(edit, PFS_EDIT_WRITE, data, offset, size);
	}
	error = pfs_edit_prepare(edit);
	if (error)
		return error;
	pfs_edit_apply(edit);
	pfs_edit_commit(edit, edit->end_size, privileged);
	return 0;
}

static ssize_t write_bytes(struct pfs_tree *tree, uint64_t ino, const uint8_t *data, size_t size,
			   int64_t offset, bool privileged, bool nowait)
{
	size_t done, piece;
	int error;

	/* A write without an offset appends. Its pieces may be separated by those of another
	 * append; the kernel sends one piece at a time. */
	for (done = 0; done < size; done += piece) {
		struct pfs_edit edit = {.tree = tree, .ino = ino, .nowait = nowait};

		piece = PFS_MIN(size - done, (size_t)PFS_EDIT_SPAN);
		error = write_piece(&edit, data + done, piece,
				    offset < 0 ? PFS_AT_END : offset + (int64_t)done, privileged);
		pfs_edit_close(&edit);
		if (error)
			return done ? (ssize_t)done : error;
		nowait = false; /* a write that has begun is finished */
	}
	return (ssize_t)size;
}

ssize_t pfs_tree_write(struct pfs_tree *tree, uint64_t ino, const void *data, size_t size,
		       int64_t offset, bool privileged, bool nowait)
{
	bool append = offset == PFS_AT_END;
	struct pfs_file_node node;
	int error;

	if (!append && offset < 0)
		return -EINVAL;
	if (!size)
		return pfs_file_node(tree, &node, ino);
	if (!append &&
	    (offset > PFS_FILE_SIZE_MAX || size > (uint64_t)(PFS_FILE_SIZE_MAX - offset)))
		return -EFBIG;
	error = pfs_journal_reserve(tree, 1, size, nowait);
	if (error)
		return error;
	return write_bytes(tree, ino, data, size, offset, privileged, nowait);
}

struct copying {
	struct pfs_tree *tree;
	uint64_t from, to;
	int64_t from_offset, to_offset;
	bool privileged;
};

static ssize_t copy_bytes(const struct copying *copying, uint8_t *buffer, size_t size)
{
	struct pfs_tree *tree = copying->tree;
	size_t done = 0;
	ssize_t n = 1;

	while (done < size && n > 0) {
		n = pfs_tree_read(tree, buffer, PFS_MIN(size - done, COPY_PIECE), copying->from,
				  copying->from_offset + (int64_t)done, 0);
		if (n > 0)
			n = pfs_tree_write(tree, copying->to, buffer, (size_t)n,
					   copying->to_offset + (int64_t)done, copying->privileged,
					   false);
		if (n > 0)
			done += (size_t)n;
	}
	return done ? (ssize_t)done : n;
}

/* Reduces *size to what can be copied in one call. */
static int check_copy(const struct copying *copying, size_t *size)
{
	int64_t from = copying->from_offset, to = copying->to_offset;
	struct pfs_file_node source, target;
	int error;

	error = pfs_file_node(copying->tree, &source, copying->from);
	if (!error)
		error = pfs_file_node(copying->tree, &target, copying->to);
	if (error)
		return error;
	if (from < 0 || to < 0)
		return -EINVAL;
	*size = from < source.size ? PFS_MIN(*size, (uint64_t)(source.size - from)) : 0;
	if (*size > (uint64_t)(PFS_FILE_SIZE_MAX - PFS_MIN(to, PFS_FILE_SIZE_MAX)))
		return -EFBIG;
	if (copying->from == copying->to && from < to + (int64_t)*size &&
	    to < from + (int64_t)*size)
		return -EINVAL;
	*size = PFS_MIN(*size, COPY_MAX);
	return 0;
}

ssize_t pfs_tree_copy_range(struct pfs_tree *tree, uint64_t from, int64_t from_offset, uint64_t to,
			    int64_t to_offset, size_t size, bool privileged)
{
	struct copying copying = {.tree = tree,
				  .from = from,
				  .to = to,
				  .from_offset = from_offset,
				  .to_offset = to_offset,
				  .privileged = privileged};
	uint8_t *buffer;
	ssize_t copied;
	int error;

	error = check_copy(&copying, &size);
	if (error || !size)
		return error;
	buffer = malloc(PFS_MIN(size, COPY_PIECE));
	if (!buffer)
		return -ENOMEM;
	copied = copy_bytes(&copying, buffer, size);
	free(buffer);
	return copied;
}
