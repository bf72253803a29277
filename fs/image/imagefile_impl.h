/* SPDX-License-Identifier: MIT */
/* fs/image/imagefile_impl.h - how an image file is laid out, for imagefile.c, imagefile_write.c and
 * imagefile_check.c.
 *
 * A page with the header, the table of blocks' checksums, and the sections, each from a page's beginning
 * on.  Sizes and places of all of them follow from the header's counts.  Numbers are as the machine has
 * them. */
#ifndef PFS_FS_IMAGE_IMAGEFILE_IMPL_H
#define PFS_FS_IMAGE_IMAGEFILE_IMPL_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/pool.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "meta/store.h"

#define PFS_IMAGE_FILE_BEGIN "primefs image " /* of any version */
/* Which columns there are goes by the version of the store's format. */
#define PFS_IMAGE_FILE_MAGIC PFS_IMAGE_FILE_BEGIN PFS_STRING_OF(PFS_STORE_SCHEMA)
#define PFS_IMAGE_FILE_ORDER UINT64_C(0x0102030405060708)
#define PFS_IMAGE_FILE_TIMES 2u /* what stands for times that are none of nanoseconds: PFS_TIME_PAST, _FUTURE */
#define PFS_IMAGE_FILE_PAGE  4096u
#define PFS_IMAGE_FILE_BLOCK ((size_t)1 << 20) /* bytes of a section that have a checksum together */

enum pfs_image_section {
/* Columns, an element a slot; a slot without a node has zeros. */
#define PFS_SECTION(id, ...) PFS_SECTION_##id,
	PFS_STORED_COLUMNS(PFS_SECTION)
#undef PFS_SECTION
	PFS_SECTION_COLUMNS,		       /* how many there are */
	PFS_SECTION_HEAP = PFS_SECTION_COLUMNS, /* of names: no gaps, in order of slots */
	PFS_SECTION_INDEX, /* of names: an entry a node but the root, in order */
	PFS_SECTION_MAP,   /* of primes: cells */
	PFS_SECTION_RARE,  /* struct pfs_image_rare, each with its target, ascending slots */
	PFS_SECTIONS
};

/* An entry of the index: what is above the hash in its key is the slot's parent. */
static inline uint64_t pfs_image_entry(uint32_t hash, uint32_t slot)
{
	return (uint64_t)hash << 32 | slot;
}

/* A time that is none of nanoseconds, a target or a device number.  The target's bytes follow, with zeros up
 * to a multiple of 8. */
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
	uint32_t times; /* PFS_IMAGE_FILE_TIMES */
	uint64_t table_checksum;
	uint64_t checksum; /* of all that is before it */
};

/* What follows from the counts. */
struct pfs_image_layout {
	uint64_t offset[PFS_SECTIONS], size[PFS_SECTIONS]; /* bytes */
	uint64_t first_block[PFS_SECTIONS];
	uint64_t blocks, file_size;
};
void pfs_imagefile_layout(struct pfs_image_layout *layout, const struct pfs_image_header *header);

/* The image's column of that section, and the size of an element. */
void *pfs_imagefile_column(const struct pfs_image *image, size_t *element, unsigned section);

/* Of one block, or of header and table with numbers from PFS_SUM_TABLE on: what has another place or is of
 * another file has another checksum. */
#define PFS_SUM_TABLE  (UINT64_MAX - 1)
#define PFS_SUM_HEADER UINT64_MAX
uint64_t pfs_imagefile_sum(const struct pfs_image_header *header, uint64_t number, const void *bytes,
			   size_t size);

/* The name of the store's image file, with this at its end; allocated, or NULL. */
char *pfs_imagefile_name(const struct pfs_tree *tree, const char *suffix);

/* A file that is read: what is not the image's own yet. */
struct pfs_image_reading {
	struct pfs_tree *tree;
	struct pfs_pool *pool;
	struct pfs_image_header header;
	struct pfs_image_layout layout;
	uint64_t handed_out[2]; /* by enum pfs_prime_kind: primes are below */
	uint64_t *entries;	/* PFS_SECTION_INDEX */
	uint32_t *cells;	/* PFS_SECTION_MAP: the map's own */
	uint8_t *rare;		/* PFS_SECTION_RARE */
	_Atomic bool bad;
};

/* Verifies what checksums cannot, that nothing points anywhere else than it should, and makes what follows
 * from the columns: states, links, rare values, the index.  -ENOENT: it is not sound; -ENOMEM. */
PFS_MUST_CHECK int pfs_imagefile_check(struct pfs_image_reading *reading);

/* Brings the image of an earlier state of the store, which the store follows, up to its last group.  -ENOENT: that
 * would take as long as reading all rows, or what the groups changed does not fit what there is; -ENOMEM.
 * The image is of no use then. */
PFS_MUST_CHECK int pfs_imagefile_follow(struct pfs_tree *tree);

#endif
