/* SPDX-License-Identifier: MIT */
/* Nodes by their codes. */
#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/path.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/relation.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

#define DECIMAL_MAX ((size_t)1 << 20)

/* The deepest of the directories whose primes divide the number; the root if there is none.  If the number
 * is a code, these are the node's ancestors, and no others. */
static uint32_t deepest_dividing(const struct pfs_image *image, const mpz_t number)
{
	uint32_t deepest = image->root, depth = 0;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (!S_ISDIR(image->mode[slot]) || !pfs_image_is_live(image, slot) ||
		    !mpz_divisible_ui_p(number, (unsigned long)image->prime[slot]))
			continue;
		if (slot != image->root && pfs_image_depth(image, slot) > depth) {
			deepest = slot;
			depth = pfs_image_depth(image, slot);
		}
	}
	return deepest;
}

/* Divides the number by the directory's code; false: it is no multiple of that. */
static bool divide_out(const struct pfs_image *image, mpz_t number, uint32_t directory)
{
	for (uint32_t slot = directory; slot != PFS_NO_SLOT; slot = image->parent[slot]) {
		if (!mpz_divisible_ui_p(number, (unsigned long)image->prime[slot]))
			return false;
		mpz_divexact_ui(number, number, (unsigned long)image->prime[slot]);
	}
	return true;
}

/* What is left of a code is 1, of a directory's, or the prime of a node in it. */
static uint32_t by_division(const struct pfs_tree *tree, mpz_t number)
{
	const struct pfs_image *image = &tree->image;
	uint32_t slot, directory = deepest_dividing(image, number);
	uint64_t prime = 0;

	if (!divide_out(image, number, directory))
		return PFS_NO_SLOT;
	if (mpz_cmp_ui(number, 1) == 0)
		return directory;
	if (mpz_sizeinbase(number, 2) > 64)
		return PFS_NO_SLOT;
	(void)mpz_export(&prime, NULL, -1, sizeof(prime), 0, 0, number);
	slot = pfs_scan_slot_of(tree, prime);
	return slot != PFS_NO_SLOT && image->parent[slot] == directory ? slot : PFS_NO_SLOT;
}

static int by_engine(struct pfs_tree *tree, uint32_t *slot, const char *decimal)
{
	struct pfs_engine *engine;
	int error;

	PFS_TRY(pfs_codes_try(tree, &engine));
	error = pfs_engine_node(engine, slot, decimal);
	if (error == -ESTALE) /* lost with its device: the host engine answers now */
		error = pfs_engine_node(engine, slot, decimal);
	pfs_codes_release(tree);
	if (error == -ENOENT) {
		*slot = PFS_NO_SLOT;
		error = 0;
	}
	return error;
}

int pfs_relation_of_code(struct pfs_tree *tree, uint32_t *slot, const char *text, size_t len)
{
	char *decimal PFS_FREE = strndup(text, PFS_MIN(len, DECIMAL_MAX));
	mpz_t number;

	*slot = PFS_NO_SLOT;
	if (!decimal)
		return -ENOMEM;
	if (!len || len > DECIMAL_MAX || strspn(decimal, "0123456789") != len)
		return 0;
	if (by_engine(tree, slot, decimal) == 0)
		return 0;
	(void)mpz_init_set_str(number, decimal, 10); /* digits */
	*slot = mpz_sgn(number) ? by_division(tree, number) : PFS_NO_SLOT;
	mpz_clear(number);
	return 0;
}

int pfs_tree_node_of_code(struct pfs_tree *tree, uint64_t *ino, const char *decimal)
{
	struct pfs_engine *engine;
	uint32_t slot;
	int error;

	PFS_TRY(pfs_codes_begin(tree, &engine));
	error = pfs_engine_node(engine, &slot, decimal);
	if (error == -ESTALE) /* lost with its device: the host engine answers now */
		error = pfs_engine_node(engine, &slot, decimal);
	if (!error)
		*ino = tree->image.prime[slot];
	pfs_codes_end(tree);
	return error;
}
