/* SPDX-License-Identifier: MIT */
/* Blocks of a damaged image file, from the store's rows; and whether one says what they say.
 *
 * A block that nobody has touched is about nodes that have not changed since the file was written:
 * whoever changes one touches what he changes, and who removes one touches all that there is of it
 * (image.c).  So what the rows say of them now is what the file should say.  Only places of names,
 * and cells of the map, depend on nodes of other blocks, too: those are taken from the file's other
 * sections. */
#include "fs/image/imagefile_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "base/log.h"
#include "fs/image/children.h"
#include "fs/image/names.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define RETRY_US     1000000u
#define TRIES	     8u

struct mend {
	struct pfs_image_file *file;
	char *to;
	unsigned section;
	uint64_t number;
	size_t size;
	int error; /* why it cannot be */
};

/* ---- the rows ---- */

void pfs_imagefile_forget_rows(struct pfs_image_file *file)
{
	struct pfs_tree *rows = file->rows;

	file->rows = NULL;
	if (!rows)
		return;
	pfs_totals_destroy(rows);
	pfs_image_destroy(rows);
	free(rows);
}

/* The next to open the store shall not meet with the same.  what_follows: of what is damaged, for
 * the log, also of commands, which have closed it. */
static void remove_file(struct pfs_image_file *file, const char *what_follows)
{
	char *name PFS_FREE = pfs_imagefile_name(file->tree, "");
	struct stat ours, named;

	if (atomic_exchange(&file->removed, true))
		return;
	pfs_notice("%s: damaged, or changed by somebody; %s", name ? name : PFS_IMAGE_FILE_SUFFIX,
		   what_follows);
	if (name && !fstat(file->fd, &ours) && !lstat(name, &named) &&
	    ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
		(void)unlink(name);
}

/* Threads scan the rows one after the other: a group may be committed in between. */
static int load_image(struct pfs_tree *rows, int (*load)(struct pfs_tree *tree))
{
	int error = -EUCLEAN;

	for (unsigned i = 0; i < TRIES && error == -EUCLEAN; i++) {
		uint64_t seq = pfs_store_seq(rows->store);

		PFS_TRY(pfs_image_create(rows));
		error = load(rows);
		if (error)
			pfs_image_destroy(rows);
		if (seq == pfs_store_seq(rows->store))
			break;
	}
	return error;
}

static int load_rows(struct pfs_image_file *file)
{
	struct pfs_tree *rows;
	int error;
	PFS_LOCKED(&file->lock);

	if (file->rows)
		return 0;
	remove_file(file, "what it lacks is made from the store");
	rows = calloc(1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	rows->store = file->tree->store;
	error = load_image(rows, file->load_rows);
	if (error)
		free(rows);
	else
		file->rows = rows;
	return error;
}

/* ---- columns ---- */

static void copy_column(const struct mend *mend)
{
	const struct pfs_image *rows = &mend->file->rows->image;
	size_t element, from, n;
	const char *column = pfs_imagefile_column(rows, &element, mend->section);

	from = mend->number * (PFS_IMAGE_FILE_BLOCK / element);
	n = from < rows->end ? PFS_MIN(mend->size / element, rows->end - from) : 0;
	memcpy(mend->to, column + from * element, n * element);
}

static bool is_node(const struct pfs_image *rows, uint32_t slot)
{
	return slot < rows->end && pfs_image_is_live(rows, slot);
}

static void chain_free(const struct mend *mend)
{
	uint32_t *parents = (uint32_t *)mend->to, n = (uint32_t)(mend->size / sizeof(*parents));
	uint32_t first = (uint32_t)mend->number * PFS_IMAGE_PART;
	uint32_t next = mend->file->parts[mend->number + 1].free;

	for (uint32_t i = n; i-- > 0;) {
		if (is_node(&mend->file->rows->image, first + i))
			continue;
		parents[i] = next;
		next = first + i;
	}
}

/* ---- names ---- */

static uint32_t units(size_t len)
{
	return (uint32_t)((1 + len + 1 + PFS_NAME_UNIT - 1) / PFS_NAME_UNIT);
}

static const char *name_of(const struct pfs_image_file *file, uint32_t slot, size_t *len)
{
	const struct pfs_image *rows = &file->rows->image;

	*len = 0;
	return is_node(rows, slot) && slot != rows->root
		       ? pfs_names_get(rows->names, rows->name[slot], len)
		       : NULL;
}

/* Places of the part's names, as the file has or should have them.  -EUCLEAN: who made the file
 * made it up. */
static int place_names(const struct pfs_image_file *file, uint32_t *places, uint64_t part,
		       uint32_t n)
{
	uint32_t next = file->parts[part].place;

	for (uint32_t i = 0; i < n; i++) {
		size_t len;

		places[i] = PFS_NO_NAME;
		if (!name_of(file, (uint32_t)part * PFS_IMAGE_PART + i, &len))
			continue;
		places[i] = next;
		next += units(len);
	}
	return next == file->parts[part + 1].place ? 0 : -EUCLEAN;
}

/* Into memory that nobody looks at before the block that is filled is there: ThreadSanitizer does
 * not know that. */
__attribute__((no_sanitize("thread"), noinline)) static void write_name(char *to, const char *name,
									size_t len)
{
	volatile char *at = to;

	*at++ = (char)len;
	for (size_t i = 0; i <= len; i++)
		*at++ = name[i];
}

/* Names whose places are not known to anybody yet, in the heap: what is there may be why they were
 * not sound. */
static void restore_names(const struct mend *mend)
{
	const struct pfs_image_file *file = mend->file;
	const uint32_t *places = (const uint32_t *)mend->to;

	for (uint32_t i = 0; i < mend->size / sizeof(*places); i++) {
		size_t len;
		const char *name = name_of(file, (uint32_t)mend->number * PFS_IMAGE_PART + i, &len);
		char *to = file->memory[PFS_SECTION_HEAP] + (size_t)places[i] * PFS_NAME_UNIT;

		if (!name)
			continue;
		pfs_lazy_provide(file->lazy_parts[PFS_SECTION_HEAP],
				 (size_t)places[i] * PFS_NAME_UNIT, len + 2);
		write_name(to, name, len);
	}
}

/* The part's bytes in the block.  A node whose name has changed has its old one in the file, which
 * may be another one's place by now, but whose block has then been touched. */
static int write_names_of(const struct mend *mend, uint32_t *places, uint64_t part)
{
	const struct pfs_image_file *file = mend->file;
	uint32_t n = (uint32_t)PFS_MIN(file->header.end - part * PFS_IMAGE_PART, PFS_IMAGE_PART);
	bool known = pfs_lazy_is_filled(file->lazy_parts[PFS_SECTION_NAME], part);
	const uint32_t *now = file->tree->image.name + part * PFS_IMAGE_PART;
	size_t begin = mend->number * PFS_IMAGE_FILE_BLOCK, end = begin + mend->size;

	if (known)
		for (uint32_t i = 0; i < n; i++)
			places[i] = __atomic_load_n(&now[i], __ATOMIC_RELAXED);
	else if (!pfs_imagefile_read(file, places, PFS_SECTION_NAME, part, 1))
		PFS_TRY(place_names(file, places, part, n));
	for (uint32_t i = 0; i < n; i++) {
		size_t len, at = (size_t)places[i] * PFS_NAME_UNIT, from, to;
		const char *name = name_of(file, (uint32_t)part * PFS_IMAGE_PART + i, &len);
		char bytes[1 + 255 + 1];

		if (!name || places[i] < file->parts[part].place ||
		    places[i] >= file->parts[part + 1].place)
			continue;
		bytes[0] = (char)len;
		memcpy(bytes + 1, name, len + 1);
		from = PFS_MAX(at, begin);
		to = PFS_MIN(at + 1 + len + 1, end);
		if (from < to)
			memcpy(mend->to + (from - begin), bytes + (from - at), to - from);
	}
	return 0;
}

static int write_names(const struct mend *mend)
{
	const struct pfs_image_file *file = mend->file;
	uint64_t begin = mend->number * PFS_IMAGE_FILE_BLOCK / PFS_NAME_UNIT;
	uint64_t end = begin + mend->size / PFS_NAME_UNIT;
	uint32_t *places PFS_FREE = malloc(PFS_IMAGE_PART * sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (uint64_t part = 0; part < file->layout.n_parts; part++)
		if (file->parts[part].place < end && file->parts[part + 1].place > begin)
			PFS_TRY(write_names_of(mend, places, part));
	return 0;
}

/* ---- the map of primes ---- */

/* Primes as the file has or should have them. */
static void read_primes(const struct pfs_image_file *file, uint64_t *primes)
{
	const struct pfs_image *rows = &file->rows->image;
	uint32_t n = PFS_IMAGE_FILE_BLOCK / sizeof(*primes), block = 0;

	for (uint32_t from = 0; from < file->header.end; from += n, block++) {
		uint32_t count = PFS_MIN(file->header.end - from, n);

		if (pfs_imagefile_read(file, primes + from, PFS_SECTION_PRIME, block, 1))
			continue;
		for (uint32_t i = 0; i < count; i++)
			primes[from + i] = is_node(rows, from + i) ? rows->prime[from + i] : 0;
	}
}

static int make_cells(const struct mend *mend)
{
	const struct pfs_image_header *header = &mend->file->header;
	uint64_t *primes PFS_FREE =
		malloc(((size_t)header->end + PFS_IMAGE_FILE_BLOCK) * sizeof(*primes));

	if (!primes)
		return -ENOMEM;
	read_primes(mend->file, primes);
	return pfs_imagefile_make_cells(mend->file, mend->to, primes,
					mend->number * PFS_IMAGE_FILE_BLOCK, mend->size);
}

/* ---- the index of names ---- */

/* First entries that are not known are those of nodes that have not changed. */
static int make_firsts(const struct pfs_image_file *file, size_t inner)
{
	const struct pfs_btree *index = file->rows->image.by_name;
	size_t leaf = pfs_btree_first_leaf(file->layout.n_leaves, inner);
	size_t n = pfs_btree_first_leaf(file->layout.n_leaves, inner + 1) - leaf;
	struct pfs_btree_entry firsts[PFS_BTREE_INNER_COUNT], other;
	struct pfs_btree_cursor cursor;

	if (pfs_imagefile_know_firsts(file, inner))
		return 0;
	pfs_btree_seek(index, &cursor, file->tops[inner].key, file->tops[inner].slot);
	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 1; i && k < PFS_BTREE_LEAF_COUNT; k++)
			if (!pfs_btree_next(index, &cursor, &other))
				return -EUCLEAN;
		if (!pfs_btree_next(index, &cursor, &firsts[i]))
			return -EUCLEAN;
	}
	return pfs_imagefile_take_firsts(file, inner, firsts, n) ? 0 : -EUCLEAN;
}

static int make_inners(const struct mend *mend)
{
	size_t inner = mend->number * PFS_IMAGE_INNERS,
	       end = inner + mend->size / PFS_BTREE_INNER_SIZE;

	for (char *to = mend->to; inner < end; inner++, to += PFS_BTREE_INNER_SIZE) {
		PFS_TRY(make_firsts(mend->file, inner));
		pfs_imagefile_make_inner(mend->file, to, inner);
	}
	return 0;
}

static int make_leaves(const struct mend *mend)
{
	const struct pfs_image_file *file = mend->file;
	const struct pfs_btree *index = file->rows->image.by_name;
	size_t leaf = mend->number * PFS_IMAGE_LEAVES,
	       end = leaf + mend->size / PFS_BTREE_LEAF_SIZE;
	struct pfs_btree_entry entries[PFS_BTREE_LEAF_COUNT], first;
	struct pfs_btree_cursor cursor;
	char *to = mend->to;

	for (size_t i = leaf; i < end; i++)
		PFS_TRY(make_firsts(file, pfs_btree_inner_of(file->layout.n_leaves, i)));
	first = pfs_imagefile_first(file, leaf);
	pfs_btree_seek(index, &cursor, first.key, first.slot);
	for (; leaf < end; leaf++, to += PFS_BTREE_LEAF_SIZE) {
		size_t before = leaf * PFS_BTREE_LEAF_COUNT;
		unsigned n =
			(unsigned)PFS_MIN(file->header.nodes - 1 - before, PFS_BTREE_LEAF_COUNT);

		for (unsigned i = 0; i < n; i++)
			if (!pfs_btree_next(index, &cursor, &entries[i]))
				return -EUCLEAN;
		first = pfs_imagefile_first(file, leaf);
		if (!n || entries[0].key != first.key || entries[0].slot != first.slot)
			return -EUCLEAN;
		pfs_btree_make_leaf(to, file->leaves.base, leaf, file->layout.n_leaves, entries, n);
	}
	return 0;
}

/* ---- what cannot be made ---- */

/* Slots without nodes are chained as ever; others are in the root, so that every way up ends. */
static void chain_all(const struct mend *mend)
{
	const struct pfs_image_file *file = mend->file;
	uint32_t *parents = (uint32_t *)mend->to, first = (uint32_t)mend->number * PFS_IMAGE_PART;
	uint32_t next = file->parts[mend->number + 1].free;

	for (uint32_t i = (uint32_t)(mend->size / sizeof(*parents)); i-- > 0;) {
		bool live = pfs_image_is_live(&file->tree->image, first + i);

		parents[i] = !live			      ? next
			     : first + i == file->header.root ? PFS_NO_SLOT
							      : file->header.root;
		if (!live)
			next = first + i;
	}
}

/* Leaves without entries there are none. */
static void make_poor_leaves(const struct mend *mend)
{
	const struct pfs_image_file *file = mend->file;
	size_t leaf = mend->number * PFS_IMAGE_LEAVES,
	       end = leaf + mend->size / PFS_BTREE_LEAF_SIZE;

	for (char *to = mend->to; leaf < end; leaf++, to += PFS_BTREE_LEAF_SIZE)
		pfs_btree_make_leaf(to, file->leaves.base, leaf, file->layout.n_leaves,
				    &file->tops[pfs_btree_inner_of(file->layout.n_leaves, leaf)],
				    1);
}

/* Nor inner nodes without a leaf. */
void pfs_imagefile_poor_inners(const struct pfs_image_file *file, void *inners, uint64_t number,
			       size_t size)
{
	size_t inner = number * PFS_IMAGE_INNERS, end = inner + size / PFS_BTREE_INNER_SIZE;

	for (char *to = inners; inner < end; inner++, to += PFS_BTREE_INNER_SIZE)
		pfs_btree_make_inner(to, file->leaves.base,
				     pfs_btree_first_leaf(file->layout.n_leaves, inner),
				     &file->tops[inner], 1);
}

/* Zeros are no prime, no type, no name, and a cell that is empty. */
static void make_harmless(const struct mend *mend)
{
	memset(mend->to, 0, mend->size);
	if (mend->section == PFS_SECTION_PARENT)
		chain_all(mend);
	if (mend->section == PFS_SECTION_INDEX)
		make_poor_leaves(mend);
	if (mend->section == PFS_SECTION_INNERS)
		pfs_imagefile_poor_inners(mend->file, mend->to, mend->number, mend->size);
}

static void lose(const struct mend *mend)
{
	struct pfs_image_file *file = mend->file;

	make_harmless(mend);
	if (!atomic_exchange(&file->lost, true) && file->load_rows)
		pfs_error(
			"%s" PFS_IMAGE_FILE_SUFFIX
			": damaged, and cannot be made anew from the store: %s; nothing is answered any more: unmount, "
			"run primefs check %s, and mount again",
			pfs_store_path(file->tree->store), strerror(-mend->error),
			pfs_store_path(file->tree->store));
}

int pfs_imagefile_failure(const struct pfs_tree *tree)
{
	const struct pfs_image_file *file = tree->image.file;

	return file && atomic_load(&file->lost) ? -EIO : 0;
}

/* ---- all of it ---- */

/* Ends depend on what has become of the slots since they were laid out: nobody knows them but the
 * file. */
static void give_up_ends(struct pfs_image_file *file)
{
	pfs_spans_give_up(file->tree);
	remove_file(file, "subtrees are found without it until the store is opened again");
}

static int mend_block(struct mend *mend)
{
	struct pfs_image_file *file = mend->file;

	if (mend->section == PFS_SECTION_ENDS) {
		give_up_ends(file);
		return 0;
	}
	if (!file->load_rows)
		return -EIO;
	PFS_TRY(load_rows(file));
	switch (mend->section) {
	case PFS_SECTION_NAME:
		PFS_TRY(place_names(file, (uint32_t *)mend->to, mend->number,
				    (uint32_t)(mend->size / sizeof(uint32_t))));
		restore_names(mend);
		return 0;
	case PFS_SECTION_HEAP:
		return write_names(mend);
	case PFS_SECTION_MAP:
		return make_cells(mend);
	case PFS_SECTION_INDEX:
		return make_leaves(mend);
	case PFS_SECTION_INNERS:
		return make_inners(mend);
	case PFS_SECTION_TOTALS:
	case PFS_SECTION_DIRECTORIES:
		return pfs_imagefile_mend_subtrees(file, mend->to, mend->section, mend->number,
						   mend->size);
	default:
		copy_column(mend);
		if (mend->section == PFS_SECTION_PARENT)
			chain_free(mend);
		return 0;
	}
}

/* Who touched the block waits, whatever he holds.  Memory that is short is waited for a while. */
void pfs_imagefile_mend(struct pfs_image_file *file, void *to, unsigned section, uint64_t number,
			size_t size)
{
	struct mend mend = {
		.file = file, .to = to, .section = section, .number = number, .size = size};

	mend.error = atomic_load(&file->lost) ? -EIO : -ENOMEM;
	for (unsigned i = 0; i < TRIES && mend.error == -ENOMEM; i++) {
		if (i)
			(void)usleep(RETRY_US);
		mend.error = mend_block(&mend);
	}
	if (mend.error)
		lose(&mend);
}

/* ---- comparing ---- */

static bool same_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
	return a_len == b_len && (!a_len || memcmp(a, b, a_len) == 0);
}

static bool same_time(struct pfs_time a, struct pfs_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static bool same_numbers(const struct pfs_node_record *a, const struct pfs_node_record *b)
{
	bool same = a->prime == b->prime && a->parent == b->parent && a->mode == b->mode &&
		    a->flags == b->flags && a->rdev == b->rdev;

#define NUMBER(id, name, type, since) same &= a->name == b->name;
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
	return same;
}

/* Found by its prime and by its name, too. */
static bool is_found(const struct pfs_tree *tree, const struct pfs_node_record *node, uint32_t slot)
{
	return pfs_image_slot(tree, node->prime) == slot &&
	       (slot == tree->image.root || pfs_image_child(tree, tree->image.parent[slot],
							    node->name, node->name_len) == slot);
}

static bool is_same(const struct pfs_tree *tree, const struct pfs_tree *rows, uint32_t slot)
{
	struct pfs_node_record a, b;

	if (pfs_image_is_live(&tree->image, slot) != pfs_image_is_live(&rows->image, slot))
		return false;
	if (!pfs_image_is_live(&tree->image, slot))
		return true;
	pfs_image_record(tree, &a, slot);
	pfs_image_record(rows, &b, slot);
	return same_numbers(&a, &b) && same_bytes(a.name, a.name_len, b.name, b.name_len) &&
	       same_bytes(a.target, a.target_len, b.target, b.target_len) &&
	       same_time(a.atime, b.atime) && same_time(a.mtime, b.mtime) &&
	       same_time(a.ctime, b.ctime) && tree->image.links[slot] == rows->image.links[slot] &&
	       is_found(tree, &a, slot);
}

int pfs_imagefile_compare(struct pfs_tree *tree, struct pfs_tree *rows, uint64_t *different)
{
	const struct pfs_image *image = &tree->image;
	uint32_t most = PFS_MAX(image->end, rows->image.end),
		 end = PFS_MIN(image->end, rows->image.end);
	uint64_t n = most - end;

	if (!image->file)
		return -ENOENT;
	for (uint32_t slot = 0; slot < end; slot++)
		n += !is_same(tree, rows, slot);
	n += !pfs_imagefile_subtrees_are_same(tree, rows);
	if (atomic_load(&image->file->bad))
		return -EUCLEAN;
	*different = n;
	return 0;
}
