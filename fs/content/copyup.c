/* SPDX-License-Identifier: MIT */
/* The first change of a linked file's content: the original's bytes become chunks. They may be more
 * than one group can hold. They mean nothing until the group that removes the source record. If a
 * copy was interrupted, the next one removes its chunks first. */
#include "fs/content/content_impl.h"

#include <errno.h>
#include <unistd.h>

#include "base/checked.h"
#include "fs/content/fdcache.h"
#include "fs/content/link.h"
#include "fs/content/row.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

/* copies of an original that changes meanwhile; the last one counts */
#define ATTEMPTS     4
#define RESERVE_STEP ((uint64_t)1 << 20)

struct copy {
	struct pfs_edit *edit;
	int fd;
	int64_t end; /* bytes [0, end) are copied */
	int64_t blocks;
	int64_t reserved; /* room is reserved up to this offset */
};

/* Reads a chunk; *len = how much there is of it. */
static int read_chunk(const struct copy *copy, uint8_t *data, uint32_t *len, uint64_t n)
{
	int64_t start = (int64_t)n * PFS_CHUNK_SIZE;
	uint32_t wanted = (uint32_t)PFS_MIN(copy->end - start, PFS_CHUNK_SIZE);
	ssize_t got;

	for (*len = 0; *len < wanted; *len += (uint32_t)got) {
		got = pread(copy->fd, data + *len, wanted - *len, start + *len);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			break;
		if (got < 0)
			got = 0;
	}
	return 0;
}

static int copy_chunk(struct copy *copy, uint64_t n)
{
	struct pfs_edit *edit = copy->edit;
	struct pfs_content *content = edit->tree->content;
	int64_t start = (int64_t)n * PFS_CHUNK_SIZE;
	struct pfs_chunk *chunk;
	uint32_t len;
	int error;

	if (start >= copy->reserved) {
		error = pfs_journal_reserve(edit->tree, 0, RESERVE_STEP, false);
		if (error)
			return error;
		copy->reserved = start + (int64_t)RESERVE_STEP;
	}
	chunk = pfs_chunk_create(content, n, (uint32_t)PFS_MIN(copy->end - start, PFS_CHUNK_SIZE));
	if (!chunk)
		return -ENOMEM;
	error = read_chunk(copy, chunk->data, &len, n);
	if (error || !len) {
		pfs_chunk_free(content, chunk);
		return error;
	}
	chunk->kind = PFS_CHUNK_DATA;
	chunk->len = len;
	copy->blocks += pfs_chunk_blocks(len);
	pfs_parts_lock(edit->tree);
	pfs_file_add(content, edit->file, chunk);
	pfs_parts_unlock(edit->tree);
	return 0;
}

/* Sets *n to the next chunk from *n on that has data. Returns false if there is none before the
 * end. */
static bool next_data(const struct copy *copy, uint64_t *n)
{
	int64_t start = (int64_t)*n * PFS_CHUNK_SIZE;
	off_t data;

	if (start >= copy->end)
		return false;
	data = lseek(copy->fd, start, SEEK_DATA);
	if (data < 0)
		/* a filesystem that cannot tell: everything counts as data */
		return errno != ENXIO;
	if (data >= copy->end)
		return false;
	*n = (uint64_t)data / PFS_CHUNK_SIZE;
	return true;
}

/* The file is busy, and the content lock is not held. */
static int copy_chunks(struct copy *copy)
{
	uint64_t n;
	int error;

	for (n = 0; next_data(copy, &n); n++) {
		error = copy_chunk(copy, n);
		if (error)
			return error;
	}
	return 0;
}

/* Copies the original as it is now. -EAGAIN: it changed meanwhile. */
static int copy_once(struct pfs_edit *edit, struct pfs_value **source, int64_t upto)
{
	struct pfs_tree *tree = edit->tree;
	struct copy copy = {.edit = edit};
	struct pfs_fd *original;
	struct stat st;
	int error;

	pfs_value_unref(*source);
	*source = NULL;
	error = pfs_links_refresh(tree, edit->ino);
	if (!error)
		error = pfs_links_open(tree, &original, edit->ino);
	if (error)
		return error;
	error = pfs_links_source(tree, source, edit->ino);
	if (!error) {
		copy.fd = pfs_fd_number(original);
		copy.end = PFS_MIN(upto, pfs_links_record(*source)->size);
		error = fstat(copy.fd, &st) ? -errno : 0;
	}
	if (!error)
		error = pfs_content_room(tree, (uint64_t)PFS_MIN(copy.end, st.st_blocks * 512));
	if (!error)
		error = copy_chunks(&copy);
	if (!error && fstat(copy.fd, &st))
		error = -errno;
	if (!error && !pfs_links_same(pfs_links_record(*source), &st))
		error = -EAGAIN;
	edit->copied_blocks = copy.blocks;
	pfs_links_close(tree, original);
	return error;
}

/* Checks that the source record is still the one that was copied, and makes sure that it can be
 * removed. -EAGAIN: it is another one. */
static int check_source(struct pfs_edit *edit, const struct pfs_value *source)
{
	struct pfs_record *record;

	record = pfs_records_entry(pfs_links_sources(edit->tree), edit->ino);
	if (!record)
		return -ENOMEM;
	return record->value == source ? 0 : -EAGAIN;
}

int pfs_copyup(struct pfs_edit *edit, int64_t upto)
{
	struct pfs_content *content = edit->tree->content;
	struct pfs_value *source PFS_UNREF = NULL;
	int attempt, error = 0, ended = 0;

	if (edit->node.flags & PFS_NODE_ROW)
		return pfs_row_copyup(edit, upto);
	for (attempt = 0; attempt < ATTEMPTS; attempt++) {
		pfs_file_cut(content, edit->file, 0);
		edit->copied_blocks = 0;
		if (!upto) /* none of the original's bytes are needed */
			return pfs_records_entry(pfs_links_sources(edit->tree), edit->ino)
				       ? 0
				       : -ENOMEM;
		pfs_edit_busy(edit);
		error = copy_once(edit, &source, upto);
		ended = pfs_edit_busy_end(edit);
		if (ended)
			return ended;
		if (!error || (error == -EAGAIN && attempt == ATTEMPTS - 1))
			error = check_source(edit, source);
		if (error != -EAGAIN)
			break;
	}
	if (!error || error == -EAGAIN)
		return 0; /* the file never rests, so that this copy is as good as any */
	pfs_file_cut(content, edit->file, 0);
	return error;
}

void pfs_copyup_commit(struct pfs_edit *edit, uint32_t slot, int64_t size)
{
	const struct pfs_image *image = &edit->tree->image;
	struct pfs_records *sources = pfs_links_sources(edit->tree);
	struct pfs_record *record;

	if (image->flags[slot] & PFS_NODE_ROW) {
		pfs_row_commit(edit, slot, size);
		return;
	}
	record = pfs_records_find(sources, edit->ino);
	pfs_records_set(sources, record, NULL, true);
	pfs_image_set_flags(edit->tree, slot, PFS_NODE_LINKED, 0);
	pfs_image_set_size(edit->tree, slot, size >= 0 ? size : image->size[slot],
			   edit->copied_blocks);
	pfs_journal_touch(edit->tree, slot);
}
