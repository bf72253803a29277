/* SPDX-License-Identifier: MIT */
/* read, which also moves access times, and lseek to data and holes. */
#include "fs/tree/tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/content_impl.h"
#include "fs/content/fdcache.h"
#include "fs/content/row.h"
#include "fs/image/image.h"
#include "fs/journal/atime.h"
#include "fs/tree/tree_impl.h"

#define CHUNKS_AT_ONCE 64

/* Moves the time of the last access, if relatime says so. */
static void note_access(struct pfs_tree *tree, uint64_t ino)
{
	uint32_t slot;
	bool due;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	due = slot != PFS_NO_SLOT && pfs_atime_is_due(tree, slot);
	pfs_hold_end(tree);
	if (due)
		pfs_update_atime(tree, ino);
}

/* ---- reading ---- */

/* Bytes [low, high) of a chunk that has data[0, len). */
static void copy_part(uint8_t *out, const uint8_t *data, uint32_t len, uint32_t low, uint32_t high)
{
	uint32_t end = PFS_MAX(PFS_MIN(high, len), low);

	if (low < end)
		memcpy(out, data + low, end - low);
	memset(out + (end - low), 0, high - end);
}

/* A piece of a read: bytes [low, high) of chunk n go to `out`, which has room for more. */
struct piece {
	uint64_t n;
	uint32_t low, high;
	uint8_t *out;
	size_t room;
};

static int read_stored(struct pfs_tree *tree, uint64_t prime, const struct piece *piece)
{
	uint8_t *buffer PFS_FREE = NULL;
	bool direct = !piece->low && piece->room >= PFS_CHUNK_SIZE;
	size_t len;
	int error;

	if (!direct) {
		buffer = malloc(PFS_CHUNK_SIZE);
		if (!buffer)
			return -ENOMEM;
	}
	error = pfs_store_get_chunk(tree->store, direct ? piece->out : buffer, &len, prime,
				    piece->n);
	if (error && error != -ENOENT)
		return error;
	if (error)
		len = 0;
	if (!direct)
		copy_part(piece->out, buffer, (uint32_t)len, piece->low, piece->high);
	else if (len < piece->high)
		memset(piece->out + len, 0, piece->high - len);
	return 0;
}

/* Copies under the lock what memory has, and marks the rest in *stored. */
static void read_memory(struct pfs_tree *tree, uint64_t *stored, uint64_t prime,
			const struct piece *pieces, unsigned count)
{
	const struct pfs_file *file;
	struct pfs_chunk *chunk;
	unsigned i;

	*stored = count == CHUNKS_AT_ONCE ? UINT64_MAX : (UINT64_C(1) << count) - 1;
	pfs_parts_lock(tree);
	file = pfs_file_find(tree->content, prime);
	for (i = 0; file && i < count; i++) {
		const struct piece *piece = &pieces[i];

		switch (pfs_file_look(file, &chunk, piece->n)) {
		case PFS_PLACE_HOLE:
			memset(piece->out, 0, piece->high - piece->low);
			break;
		case PFS_PLACE_MEMORY:
			copy_part(piece->out, chunk->data, chunk->len, piece->low, piece->high);
			break;
		case PFS_PLACE_STORE:
			continue;
		}
		*stored &= ~(UINT64_C(1) << i);
	}
	pfs_parts_unlock(tree);
}

static int read_pieces(struct pfs_tree *tree, uint64_t prime, const struct piece *pieces,
		       unsigned count, bool nowait)
{
	uint64_t stored;
	unsigned i;
	int error;

	read_memory(tree, &stored, prime, pieces, count);
	if (stored && nowait)
		return -EAGAIN;
	for (i = 0; i < count; i++) {
		error = stored >> i & 1 ? read_stored(tree, prime, &pieces[i]) : 0;
		if (error)
			return error;
	}
	return 0;
}

/* Reads n bytes into data, which has room for `size`. */
static int read_content(struct pfs_tree *tree, uint8_t *data, size_t size, size_t n, uint64_t prime,
			int64_t offset, bool nowait)
{
	struct piece pieces[CHUNKS_AT_ONCE];
	size_t done = 0;
	unsigned count;
	int error;

	while (done < n) {
		for (count = 0; count < CHUNKS_AT_ONCE && done < n; count++) {
			struct piece *piece = &pieces[count];
			uint64_t at = (uint64_t)offset + done;

			piece->n = at / PFS_CHUNK_SIZE;
			piece->low = (uint32_t)(at % PFS_CHUNK_SIZE);
			piece->high = (uint32_t)PFS_MIN(PFS_CHUNK_SIZE, piece->low + (n - done));
			piece->out = data + done;
			piece->room = size - done;
			done += piece->high - piece->low;
		}
		error = read_pieces(tree, prime, pieces, count, nowait);
		if (error)
			return error;
		nowait = false;
	}
	return 0;
}

/* ---- reading through to the original ---- */

static ssize_t read_original(struct pfs_tree *tree, uint8_t *data, size_t n, uint64_t ino,
			     int64_t offset, bool nowait)
{
	struct pfs_fd *original = pfs_links_opened(tree, ino);
	struct iovec vector = {.iov_base = data, .iov_len = n};
	size_t done = 0;
	ssize_t got;
	int error;

	if (nowait) { /* from the page cache, if that has all of it */
		got = original ? preadv2(pfs_fd_number(original), &vector, 1, offset, RWF_NOWAIT)
			       : -1;
		pfs_links_close(tree, original);
		return got == (ssize_t)n ? got : -EAGAIN;
	}
	if (!original) {
		error = pfs_links_open(tree, &original, ino);
		if (error)
			return error;
	}
	do {
		got = pread(pfs_fd_number(original), data + done, n - done, offset + (int64_t)done);
		if (got > 0)
			done += (size_t)got;
	} while (done < n && (got > 0 || (got < 0 && errno == EINTR)));
	error = got < 0 ? -errno : 0;
	pfs_links_close(tree, original);
	return done ? (ssize_t)done : error;
}

/* Reads the text of a row, which is made anew each time. */
static ssize_t read_row(struct pfs_tree *tree, uint8_t *data, size_t size, uint64_t ino,
			int64_t offset)
{
	char *text PFS_FREE = NULL;
	size_t len, n;

	PFS_TRY(pfs_row_text(tree, &text, &len, ino));
	if ((uint64_t)offset >= len)
		return 0;
	n = PFS_MIN(size, len - (size_t)offset);
	memcpy(data, text + offset, n);
	return (ssize_t)n;
}

static ssize_t read_node(struct pfs_tree *tree, uint8_t *data, size_t size, uint64_t ino,
			 int64_t offset, bool nowait)
{
	struct pfs_file_node node;
	ssize_t got;
	size_t n;
	int error;

	for (;;) {
		error = pfs_file_node(tree, &node, ino);
		if (error)
			return error;
		if (node.flags & PFS_NODE_ROW)
			return nowait ? -EAGAIN : read_row(tree, data, size, ino, offset);
		if (offset >= node.size)
			return 0;
		if (node.flags & PFS_NODE_NODATA)
			return -ENODATA;
		n = PFS_MIN(size, (uint64_t)(node.size - offset));
		if (!(node.flags & PFS_NODE_LINKED)) {
			error = read_content(tree, data, size, n, ino, offset, nowait);
			return error ? error : (ssize_t)n;
		}
		got = read_original(tree, data, n, ino, offset, nowait);
		if (got != -ENOENT) /* it was copied meanwhile: look again */
			return got;
	}
}

ssize_t pfs_tree_read(struct pfs_tree *tree, void *data, size_t size, uint64_t ino, int64_t offset,
		      unsigned flags)
{
	ssize_t got;

	if (offset < 0)
		return -EINVAL;
	got = read_node(tree, data, size, ino, offset, flags & PFS_READ_NOWAIT);
	if (got >= 0 && size && !(flags & PFS_READ_NOATIME))
		note_access(tree, ino);
	return got;
}

/* ---- data and holes ---- */

static int64_t seek_data(struct pfs_tree *tree, uint64_t ino, int64_t offset, int64_t size)
{
	uint64_t n = (uint64_t)offset / PFS_CHUNK_SIZE;
	uint64_t end = pfs_div_round_up((uint64_t)size, PFS_CHUNK_SIZE);
	uint32_t len;
	int error;

	for (;; n++) {
		error = pfs_content_next(tree, &n, &len, ino, n, end);
		if (error)
			return error == -ENOENT ? -ENXIO : error;
		if (len && (int64_t)n * PFS_CHUNK_SIZE + len > offset)
			return PFS_MAX(offset, (int64_t)n * PFS_CHUNK_SIZE);
	}
}

static int64_t seek_hole(struct pfs_tree *tree, uint64_t ino, int64_t offset, int64_t size)
{
	int64_t at = offset, end;
	uint64_t n;
	uint32_t len;
	int error;

	while (at < size) {
		n = (uint64_t)at / PFS_CHUNK_SIZE;
		error = pfs_content_next(tree, &n, &len, ino, n, n + 1);
		if (error == -ENOENT)
			return at;
		if (error)
			return error;
		end = (int64_t)n * PFS_CHUNK_SIZE + len;
		if (end <= at)
			return at;
		at = end;
	}
	return size;
}

static int64_t seek_original(struct pfs_tree *tree, uint64_t ino, int64_t offset, int64_t size,
			     int whence)
{
	struct pfs_fd *original;
	int64_t found;
	int error;

	error = pfs_links_open(tree, &original, ino);
	if (error)
		return error;
	found = lseek(pfs_fd_number(original), offset, whence);
	if (found < 0)
		found = -errno;
	pfs_links_close(tree, original);
	if (found == -ENXIO && whence == SEEK_HOLE) /* the file has become shorter */
		return size;
	return found >= size ? (whence == SEEK_HOLE ? size : -ENXIO) : found;
}

int64_t pfs_tree_seek(struct pfs_tree *tree, uint64_t ino, int64_t offset, int whence)
{
	struct pfs_file_node node;
	int64_t found;
	int error;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	do {
		error = pfs_file_node(tree, &node, ino);
		if (error)
			return error;
		if (offset < 0 || offset >= node.size)
			return -ENXIO;
		if (node.flags & (PFS_NODE_NODATA | PFS_NODE_ROW))
			found = whence == SEEK_DATA ? offset : node.size;
		else if (node.flags & PFS_NODE_LINKED)
			found = seek_original(tree, ino, offset, node.size, whence);
		else if (whence == SEEK_DATA)
			found = seek_data(tree, ino, offset, node.size);
		else
			found = seek_hole(tree, ino, offset, node.size);
	} while (found == -ENOENT); /* it was copied meanwhile */
	return found;
}
