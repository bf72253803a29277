/* SPDX-License-Identifier: MIT */
/* Nodes by their codes. */
#include "fs/nodes/relation.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/image/image.h"
#include "fs/image/device_lookup.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define DECIMAL_MAX   ((size_t)1 << 20)
#define ENGINE_DIGITS 128  /* the engine divides without a look at the clock, as long as the number is */
#define LOOK_SLOTS    4096 /* between two */

/* ---- by residues: what is compared is short, however long the number is ---- */

struct residues {
	const struct pfs_image *image;
	const struct pfs_scan_watch *watch;
	uint64_t *of; /* by slot, a directory's code modulo 2^64; 0, which none is: not known yet */
	uint32_t *path; /* room for one */
};

static uint64_t residue_of(const struct residues *residues, uint32_t directory)
{
	const struct pfs_image *image = residues->image;
	size_t n = 0;
	uint32_t slot;
	uint64_t code;

	for (slot = directory; slot != PFS_NO_SLOT && !residues->of[slot];
	     slot = image->parent[slot])
		residues->path[n++] = slot;
	code = slot == PFS_NO_SLOT ? 1 : residues->of[slot];
	while (n--) {
		code *= image->prime[residues->path[n]];
		residues->of[residues->path[n]] = code;
	}
	return code;
}

static int compare(const struct residues *residues, bool *same, const mpz_t number, uint32_t node)
{
	const struct pfs_image *image = residues->image;
	int error = 0;
	mpz_t rest;

	*same = true;
	mpz_init_set(rest, number);
	for (uint32_t slot = node; slot != PFS_NO_SLOT && *same && !error;
	     slot = image->parent[slot]) {
		error = pfs_scan_look(residues->watch);
		*same = image->prime[slot] && /* 0 in an image that is lost */
			mpz_divisible_ui_p(rest, (unsigned long)image->prime[slot]);
		if (*same)
			mpz_divexact_ui(rest, rest, (unsigned long)image->prime[slot]);
	}
	*same = *same && mpz_cmp_ui(rest, 1) == 0;
	mpz_clear(rest);
	return error;
}

static uint64_t residue_of_number(const mpz_t number)
{
	uint64_t residue = 0;
	mpz_t low;

	mpz_init(low);
	mpz_fdiv_r_2exp(low, number, 64);
	(void)mpz_export(&residue, NULL, -1, sizeof(residue), 0, 0, low);
	mpz_clear(low);
	return residue;
}

static int look_through(const struct residues *residues, uint32_t *found, const mpz_t number)
{
	const struct pfs_image *image = residues->image;
	const uint64_t wanted = residue_of_number(number);

	for (uint32_t slot = 0; slot < image->end; slot++) {
		uint32_t parent = image->parent[slot];
		bool same;

		if (slot % LOOK_SLOTS == 0)
			PFS_TRY(pfs_scan_look(residues->watch));
		if (!pfs_image_is_live(image, slot) ||
		    (parent == PFS_NO_SLOT ? 1 : residue_of(residues, parent)) *
				    image->prime[slot] !=
			    wanted)
			continue;
		PFS_TRY(compare(residues, &same, number, slot));
		if (same) {
			*found = slot;
			return 0;
		}
	}
	return 0;
}

static int by_residues(const struct pfs_tree *tree, uint32_t *found, const mpz_t number,
		       const struct pfs_scan_watch *watch)
{
	const size_t end = tree->image.end;
	uint64_t *of PFS_FREE = calloc(end + 1, sizeof(*of));
	uint32_t *path PFS_FREE = malloc((end + 1) * sizeof(*path));
	const struct residues residues = {&tree->image, watch, of, path};

	return of && path ? look_through(&residues, found, number) : -ENOMEM;
}

/* pfs_engine_node, counted if it answers. */
static int ask_engine(struct pfs_tree *tree, struct pfs_engine *engine, uint32_t *slot,
		      const char *decimal)
{
	uint64_t began = pfs_now_ns();
	struct pfs_engine_info info;
	int error = pfs_engine_node(engine, slot, decimal);

	if (error == -ESTALE) /* lost with its device: the host engine answers now */
		error = pfs_engine_node(engine, slot, decimal);
	if (error && error != -ENOENT)
		return error;
	pfs_engine_describe(engine, &info);
	if (!error && pfs_device_lookup_is_falsified(tree, PFS_QUESTION_CODE))
		*slot = tree->image.root;
	pfs_device_lookup_count(tree, PFS_QUESTION_CODE, info.engine[0] == 'c',
				pfs_now_ns() - began);
	return error;
}

static int by_engine(struct pfs_tree *tree, uint32_t *slot, const char *decimal)
{
	struct pfs_engine *engine;
	int error;

	PFS_TRY(pfs_codes_try(tree, &engine));
	error = ask_engine(tree, engine, slot, decimal);
	if (error == -ENOENT) {
		*slot = PFS_NO_SLOT;
		error = 0;
	}
	return error;
}

int pfs_relation_of_code(struct pfs_tree *tree, uint32_t *slot, const char *text, size_t len,
			 const struct pfs_scan_watch *watch)
{
	char *decimal PFS_FREE = strndup(text, PFS_MIN(len, DECIMAL_MAX));
	uint64_t began;
	mpz_t number;
	int error;

	*slot = PFS_NO_SLOT;
	if (!decimal)
		return -ENOMEM;
	if (!len || len > DECIMAL_MAX || strspn(decimal, "0123456789") != len)
		return 0;
	if (len <= ENGINE_DIGITS && by_engine(tree, slot, decimal) == 0)
		return 0;
	began = pfs_now_ns();
	(void)mpz_init_set_str(number, decimal, 10); /* digits */
	error = by_residues(tree, slot, number, watch);
	mpz_clear(number);
	if (!error)
		pfs_device_lookup_count(tree, PFS_QUESTION_CODE, false, pfs_now_ns() - began);
	return error;
}

int pfs_tree_node_of_code(struct pfs_tree *tree, uint64_t *ino, const char *decimal)
{
	struct pfs_engine *engine;
	uint32_t slot;
	int error;

	PFS_TRY(pfs_codes_begin(tree, &engine));
	error = ask_engine(tree, engine, &slot, decimal);
	if (!error)
		*ino = tree->image.prime[slot];
	pfs_codes_let_go(tree);
	pfs_codes_end(tree);
	return error;
}
