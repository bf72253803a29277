/* SPDX-License-Identifier: MIT */
/* fs/image/imagefile_impl.h - for imagefile*.c: how an image file is laid out, and what is kept of
 * one that is in use.
 *
 * The file is a page with the header, the table of the blocks' checksums, and the sections, each of
 * which begins at a page. Sizes and places of all of them follow from the header's counts. Numbers
 * are in the machine's byte order. */
#ifndef PFS_FS_IMAGE_IMAGEFILE_IMPL_H
#define PFS_FS_IMAGE_IMAGEFILE_IMPL_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/btree.h"
#include "base/pool.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "meta/store.h"

#define PFS_IMAGE_FILE_BEGIN "primefs image " /* of any version */
/* The version of the store's format decides which columns there are. */
#define PFS_IMAGE_FILE_MAGIC PFS_IMAGE_FILE_BEGIN PFS_STRING_OF(PFS_STORE_SCHEMA)
#define PFS_IMAGE_FILE_ORDER UINT64_C(0x0102030405060708)
#define PFS_IMAGE_FILE_REVISION 6u /* of what follows, within a version of the format */
#define PFS_IMAGE_FILE_PAGE  4096u
#define PFS_IMAGE_FILE_BLOCK ((size_t)4 << 10) /* bytes that have a checksum together, and are filled together */
#define PFS_IMAGE_PART	     1024u	       /* slots that struct pfs_image_part is about: a block of names' places */
#define PFS_IMAGE_LEAVES     16u	       /* of the index of names, that are filled together: whole pages */
#define PFS_IMAGE_INNERS     16u	       /* inner nodes of it, likewise */
#define PFS_IMAGE_SUMS	     512u	       /* checksums that have one together */

enum pfs_image_section {
/* Columns, an element a slot; a slot without a node has zeros, but for parents: those are the next
 * such slots. */
#define PFS_SECTION(id, ...) PFS_SECTION_##id,
	PFS_WATCHED_COLUMNS(PFS_SECTION) PFS_SECTION_STATE,
#undef PFS_SECTION
	PFS_SECTION_COLUMNS,			/* how many there are */
	PFS_SECTION_HEAP = PFS_SECTION_COLUMNS, /* of names: no gaps, in order of slots */
	PFS_SECTION_INDEX,  /* of names: an entry a node but the root, in order */
	PFS_SECTION_INNERS, /* struct pfs_btree_entry: the first below each inner node that is right
			       above leaves; read when the file is opened; becomes those nodes */
	PFS_SECTION_MAP,    /* of primes: cells */
	PFS_SECTION_ENDS, /* of directories, in order of slots: the slot past their own (span.h); or
			     nothing */
	PFS_SECTION_TOTALS,	 /* of directories, in order of slots: struct pfs_dirtable_entry */
	PFS_SECTION_DIRECTORIES, /* a bit a slot; becomes blocks of the table of totals */
	/* Sections before LAZY are read when they are touched, the others when the file is
	 * opened. */
	PFS_SECTION_LAZY,
	PFS_SECTION_LIVE = PFS_SECTION_LAZY, /* a bit a slot */
	PFS_SECTION_PARTS,		     /* struct pfs_image_part */
	PFS_SECTION_RARE,	 /* struct pfs_image_rare, each with its target, ascending slots */
	PFS_SECTION_STRAYS,	 /* slots (slotorder.h) */
	PFS_SECTION_SPAN_STRAYS, /* struct pfs_image_stray, ascending slots (span.h) */
	/* These are read when they are asked for. */
	PFS_SECTION_FIRSTS, /* struct pfs_btree_entry: the first of each leaf of the index, with
			       room for PFS_BTREE_INNER_COUNT below each inner node */
	PFS_SECTION_EXTRA,  /* bytes of modules above the image */
	PFS_SECTIONS
};

/* Describes PFS_IMAGE_PART slots; one more follows the last. */
struct pfs_image_part {
	uint32_t place; /* of the first name: the part's names follow each other from there on */
	uint32_t free; /* the first slot without a node from the part's beginning on; PFS_NO_SLOT */
	uint32_t directories; /* in the part */
	uint32_t before;      /* directories in the parts before */
};

struct pfs_image_stray {
	uint32_t slot, parent;
};

/* An entry of the index: what is above the hash in its key is the slot's parent. */
static inline uint64_t pfs_image_entry(uint32_t hash, uint32_t slot)
{
	return (uint64_t)hash << 32 | slot;
}

/* A time that is none of nanoseconds, a target or a device number.  The target's bytes follow, with
 * zeros up to a multiple of 8. */
struct pfs_image_rare {
	uint32_t slot, target_len;
	uint64_t rdev;
	struct {
		int64_t sec;
		uint64_t nsec;
	} times[3]; /* as fs/image/rare_values.h counts them */
};

struct pfs_image_header {
	char magic[16];
	uint64_t order;
	uint64_t seed;
	uint64_t seq;
	uint8_t token[PFS_TOKEN_SIZE];
	uint32_t end, nodes, directories, root;
	uint64_t heap_size, rare_size; /* bytes */
	uint32_t cells;
	uint32_t revision;  /* PFS_IMAGE_FILE_REVISION */
	uint32_t descends;  /* whether some directory's slot is below its parent's */
	uint32_t strays; /* one more than there are; 0: the order of slots is not known */
	uint32_t span_strays,
		zero; /* one more than there are; 0: directories' ends are not known */
	uint64_t extra_size; /* bytes */
	uint64_t table_checksum; /* of the checksums of checksums */
	uint64_t checksum; /* of all that is before it */
};

/* Says where sections lie, which follows from the counts. */
struct pfs_image_layout {
	uint64_t offset[PFS_SECTIONS], size[PFS_SECTIONS]; /* bytes */
	uint64_t unit[PFS_SECTIONS];			   /* bytes that have a checksum together */
	uint64_t first_block[PFS_SECTIONS];
	uint64_t blocks, file_size;
	uint64_t n_sum_pages, sum_pages_offset; /* the checksums of PFS_IMAGE_SUMS checksums each */
	size_t n_leaves, n_inners, n_parts;	/* parts without the last, empty one */
};
void pfs_imagefile_layout(struct pfs_image_layout *layout, const struct pfs_image_header *header);

/* Returns the image's column of that section; *element is the size of one of its elements. */
void *pfs_imagefile_column(const struct pfs_image *image, size_t *element, unsigned section);

/* Computes the checksum of one block, of the header or of the table (numbers from PFS_SUM_TABLE
 * on). The number and the file enter it, so that misplaced or foreign blocks do not match. */
#define PFS_SUM_PAGES  (UINT64_C(1) << 62) /* of so many checksums, and those that follow */
#define PFS_SUM_TABLE  (UINT64_MAX - 1)
#define PFS_SUM_HEADER UINT64_MAX
uint64_t pfs_imagefile_sum(const struct pfs_image_header *header, uint64_t number,
			   const void *bytes, size_t size);

/* Makes the checksums of all blocks' checksums, which are layout->n_sum_pages, and returns the
 * table's own. */
uint64_t pfs_imagefile_sum_sums(const struct pfs_image_header *header,
				const struct pfs_image_layout *layout, const uint64_t *sums,
				uint64_t *sum_pages);

/* Returns the name of the store's image file with a suffix, which the caller frees; NULL: no
 * memory. */
char *pfs_imagefile_name(const struct pfs_tree *tree, const char *suffix);

/* ---- imagefile_place.c ---- */

/* Returns true if nothing has that name, or an image file, whole or not. */
bool pfs_imagefile_may_replace(const char *name);

/* Opens the file that is going to be the store's new one, and locks it: what an earlier attempt has
 * left of it is used again. Returns a descriptor; -EPERM: something else has the name; -EBUSY: it
 * is being written. */
PFS_MUST_CHECK int pfs_imagefile_begin(const char *store);
/* Removes that file, which this process or the one that it comes from has begun. */
void pfs_imagefile_give_up(const char *store);

/* As pfs_imagefile_write, to the file that was begun, which stays the caller's. */
PFS_MUST_CHECK int pfs_imagefile_write_to(struct pfs_tree *tree, int fd);

struct pfs_lazy;
struct pfs_lazy_part;

/* An image file that an image was loaded from, whose blocks are read when they are first
 * touched. */
struct pfs_image_file {
	struct pfs_tree *tree;
	int fd;
	struct pfs_image_header header;
	struct pfs_image_layout layout;
	uint64_t handed_out[2]; /* by enum pfs_prime_kind: primes are below */
	struct pfs_image_known {
		struct pfs_reserve memory; /* takes none before it is read */
		_Atomic uint64_t *words;
		_Atomic uint8_t *pieces; /* nonzero: the piece has been read and is sound */
	} sums, firsts; /* checksums by PFS_IMAGE_SUMS, and two words an entry, by inner nodes */
	uint64_t *sum_pages;
	struct pfs_image_part *parts;
	struct pfs_btree_entry *tops; /* PFS_SECTION_INNERS */
	uint32_t *rare; /* slots, ascending; PFS_IMAGE_TARGET is added where there is a target */
	size_t n_rare;
	struct pfs_reserve leaves, inners; /* of the index */
	char *memory[PFS_SECTION_LAZY];
	struct pfs_lazy *lazy;
	struct pfs_lazy_part *lazy_parts[PFS_SECTION_LAZY];
	struct pfs_image_source {
		struct pfs_image_file *file;
		unsigned section;
	} sources[PFS_SECTION_LAZY];
	bool followed;		/* the image was brought up to a later group */
	/* Set while the file is being opened: damage then makes opening use the rows. Later a
	 * damaged block alone is made from them. */
	_Atomic bool loading;
	_Atomic bool bad;	/* something in the file is damaged */
	_Atomic bool removed;	/* the file was removed, because it is damaged */
	pthread_mutex_t lock;	/* protects `rows` */
	_Atomic bool lost;	/* a block could not be made from the rows: answers may be wrong */
	int (*load_rows)(struct pfs_tree *tree); /* loads the store's rows; NULL: it cannot */
	struct pfs_tree *rows;	/* the tree made of the store's rows, once the file was found bad */
};
#define PFS_IMAGE_TARGET (UINT32_C(1) << 31)

/* Takes address space for so many words, in so many pieces, none of which is known. -ENOMEM. */
PFS_MUST_CHECK int pfs_imagefile_open_known(struct pfs_image_known *known, size_t words,
					    size_t pieces);
void pfs_imagefile_close_known(struct pfs_image_known *known);
/* Puts n words of a piece there, from number `first` on. Several threads may put the same. */
void pfs_imagefile_put_known(const struct pfs_image_known *known, size_t piece, size_t first,
			     const uint64_t *words, size_t n);

/* Returns true if all of so many bytes could be read. */
bool pfs_imagefile_read_at(int fd, void *to, uint64_t size, uint64_t offset);

/* pfs_imagefile_read reads blocks of a section, and returns true if their checksums are right.
 * pfs_imagefile_size returns the size of these blocks in the file, in bytes. */
bool pfs_imagefile_read(const struct pfs_image_file *file, void *to, unsigned section,
			uint64_t first, uint64_t count);
size_t pfs_imagefile_size(const struct pfs_image_file *file, unsigned section, uint64_t first,
			  uint64_t count);

/* Return how many bytes of memory the section becomes, and how many of them are filled together. */
size_t pfs_imagefile_memory_size(const struct pfs_image_file *file, unsigned section);
size_t pfs_imagefile_memory_block(unsigned section);

/* The pfs_lazy_fill of sections that are read when they are touched: reads blocks, and verifies
 * what checksums cannot: that all numbers in them point where they may. */
void pfs_imagefile_fill(void *source, void *to, uint64_t first, uint64_t count, size_t size);

/* Makes a damaged block from the store's rows. That is right because nothing in a block that has
 * not been touched has changed since the file was written. A damaged block of ends of subtrees is
 * not made: ends are unknown from then on. If the rows are damaged, too, the image is lost, and the
 * block says nothing that leads out of bounds. */
void pfs_imagefile_mend(struct pfs_image_file *file, void *to, unsigned section, uint64_t number,
			size_t size);
/* Fills a block of inner nodes that cannot be had: each has its first leaf alone, so that a search
 * ends. */
void pfs_imagefile_poor_inners(const struct pfs_image_file *file, void *inners, uint64_t number,
			       size_t size);

/* Makes the bytes from `offset` on of the map's cells, as the file's writer made them. primes: by
 * slot; 0: there is no node. */
PFS_MUST_CHECK int pfs_imagefile_make_cells(const struct pfs_image_file *file, void *to,
					    const uint64_t *primes, size_t offset, size_t size);

/* ---- imagefile_index.c: what is above the leaves of the index of names ---- */

/* Before a leaf is made the first entries of all leaves below its inner node are known, and stay
 * so: where they are not, nothing that is below it has changed since the file was written.
 * pfs_imagefile_know_firsts returns false if they are not to be had from the file. */
bool pfs_imagefile_know_firsts(const struct pfs_image_file *file, size_t inner);
/* Takes them over, n of them. Returns false if they are not sound. */
bool pfs_imagefile_take_firsts(const struct pfs_image_file *file, size_t inner,
			       const struct pfs_btree_entry *firsts, size_t n);
/* Returns true if a leaf begins and ends where these say. */
bool pfs_imagefile_leaf_is_between(const struct pfs_image_file *file, size_t leaf,
				   struct pfs_btree_entry first, struct pfs_btree_entry last);
/* Gets that of a leaf whose inner node's are known. */
struct pfs_btree_entry pfs_imagefile_first(const struct pfs_image_file *file, size_t leaf);
/* Makes an inner node, whose leaves' are known. */
void pfs_imagefile_make_inner(const struct pfs_image_file *file, void *to, size_t inner);
/* Does the work of pfs_imagefile_fill for inner nodes; returns false if they are not to be had from
 * the file. */
bool pfs_imagefile_fill_inners(const struct pfs_image_file *file, void *to, uint64_t first,
			       size_t size);
bool pfs_imagefile_tops_are_sound(const struct pfs_image_file *file);
/* Writes one of the two sections that have first entries. */
struct pfs_image_out {
	int (*put)(void *writer, const void *bytes, size_t size);
	void *writer;
};
PFS_MUST_CHECK int pfs_imagefile_write_firsts(const struct pfs_image_out *out,
					      const struct pfs_btree *index,
					      const struct pfs_image_layout *layout,
					      unsigned section);

/* ---- imagefile_subtrees.c: ends and totals of directories' subtrees ---- */

/* pfs_imagefile_lend_subtrees takes memory for them, which is filled later;
 * pfs_imagefile_load_strays then reads the strays. -ENOENT: the strays are damaged; -ENOMEM. */
PFS_MUST_CHECK int pfs_imagefile_lend_subtrees(struct pfs_image_file *file);
PFS_MUST_CHECK int pfs_imagefile_load_strays(struct pfs_image_file *file);
/* Returns how many bytes the section becomes. */
size_t pfs_imagefile_subtrees_size(const struct pfs_image_file *file, unsigned section);
/* Do the work of pfs_imagefile_fill for these three sections, and of pfs_imagefile_mend for the two
 * that are not ends. fill returns false if a block is damaged; mend returns an error. */
bool pfs_imagefile_fill_subtrees(const struct pfs_image_file *file, void *to, unsigned section,
				 uint64_t first, uint64_t count, size_t size);
PFS_MUST_CHECK int pfs_imagefile_mend_subtrees(struct pfs_image_file *file, void *to,
					       unsigned section, uint64_t number, size_t size);
/* Writes one of these sections. The tree's totals have been made, and so have the ends, unless the
 * section is to be empty. */
PFS_MUST_CHECK int pfs_imagefile_write_subtrees(const struct pfs_image_out *out,
						const struct pfs_tree *tree, unsigned section);
/* Returns true if totals and ends are what the nodes say; `rows` is the same store's tree, read
 * without the file. */
bool pfs_imagefile_subtrees_are_same(struct pfs_tree *tree, struct pfs_tree *rows);

void pfs_imagefile_forget_rows(struct pfs_image_file *file);

/* Checks what was read when the file was opened, and takes over its rare values. -ENOENT: it
 * contradicts itself; -ENOMEM. */
PFS_MUST_CHECK int pfs_imagefile_check(struct pfs_image_file *file, const uint8_t *rare);

/* Brings the image of an earlier state of the store up to the store's last group. -ENOENT: that
 * would take as long as reading all rows, or the changes do not fit the image; -ENOMEM. After an
 * error the image is of no use. */
PFS_MUST_CHECK int pfs_imagefile_follow(struct pfs_tree *tree);

#endif
