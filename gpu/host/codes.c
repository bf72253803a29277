/* SPDX-License-Identifier: MIT */
#include "gpu/host/codes.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "gpu/host/chain.h"

#define BUILD_GRAIN 65536u
#define SCAN_GRAIN  16u /* tiles */
#define DEEP	    255u
#define UNUSED	    254u

static const uint8_t widths[PFS_N_WIDTHS] = PFS_WIDTHS;

static unsigned width_of(unsigned n_limbs)
{
	unsigned w = 0;

	while (widths[w] < n_limbs)
		w++;
	return w;
}

static void drop_tiles(struct pfs_code_tiles *codes)
{
	for (size_t i = 0; i < codes->n_blocks; i++)
		free(codes->blocks[i]);
	codes->n_blocks = 0;
	codes->n_tiles = 0;
	codes->n_deep = 0;
	codes->n_rows = 0;
	codes->n_lost = 0;
	memset(codes->open_tile, 0, sizeof(codes->open_tile));
}

void pfs_code_tiles_free(struct pfs_code_tiles *codes)
{
	drop_tiles(codes);
	free(codes->tiles);
	free(codes->blocks);
	free(codes->row_of);
	free(codes->deep);
}

void pfs_scan_scratch_free(struct pfs_scan_scratch *scratch)
{
	free(scratch->row_bits);
	free(scratch->directory_bits);
}

/* n tiles of that width in one block. */
static int add_tiles(struct pfs_code_tiles *codes, unsigned w, size_t n)
{
	size_t tile_limbs = (size_t)widths[w] * PFS_TILE_ROWS;
	uint32_t *block;

	if (n == 0)
		return 0;
	if (pfs_grow(&codes->tiles, &codes->tile_capacity, codes->n_tiles + n,
		     sizeof(*codes->tiles)) ||
	    pfs_grow(&codes->blocks, &codes->block_capacity, codes->n_blocks + 1,
		     sizeof(*codes->blocks)))
		return -ENOMEM;
	block = calloc(n * tile_limbs, sizeof(*block));
	if (!block)
		return -ENOMEM;
	codes->blocks[codes->n_blocks++] = block;
	for (size_t i = 0; i < n; i++)
		codes->tiles[codes->n_tiles++] =
			(struct pfs_tile){.limbs = block + i * tile_limbs, .n_limbs = widths[w]};
	return 0;
}

static int take_row(struct pfs_code_tiles *codes, unsigned w, uint32_t *row)
{
	struct pfs_tile *tile = &codes->tiles[codes->open_tile[w]];

	if (codes->open_tile[w] == 0 || tile->used == PFS_TILE_ROWS) {
		int error = add_tiles(codes, w, 1);

		if (error)
			return error;
		codes->open_tile[w] = (uint32_t)codes->n_tiles - 1;
		tile = &codes->tiles[codes->n_tiles - 1];
	}
	*row = codes->open_tile[w] * PFS_TILE_ROWS + tile->used++;
	codes->n_rows++;
	return 0;
}

static void write_row(const struct pfs_code_tiles *codes, uint32_t row, const uint32_t *limbs,
		      unsigned n_limbs)
{
	const struct pfs_tile *tile = &codes->tiles[row / PFS_TILE_ROWS];
	uint32_t *to = tile->limbs + row % PFS_TILE_ROWS;

	for (unsigned l = 0; l < tile->n_limbs; l++)
		to[(size_t)l * PFS_TILE_ROWS] = l < n_limbs ? limbs[l] : 0;
}

void pfs_code_tiles_read(const struct pfs_code_tiles *codes, uint32_t *limbs, uint32_t *n_limbs,
		    uint32_t directory)
{
	uint32_t row = codes->row_of[directory];
	const struct pfs_tile *tile = &codes->tiles[row / PFS_TILE_ROWS];

	*n_limbs = row ? tile->n_limbs : 0;
	for (unsigned l = 0; l < *n_limbs; l++)
		limbs[l] = tile->limbs[(size_t)l * PFS_TILE_ROWS + row % PFS_TILE_ROWS];
}

/* ---- building: how wide is each, then a row for each, then the limbs ---- */

struct build {
	struct pfs_code_tiles *codes;
	const struct pfs_columns *c;
	uint8_t *width; /* by directory */
	bool write;	/* the second time */
	atomic_int error;
};

static void build_piece(void *context, size_t from, size_t to)
{
	struct build *b = context;
	struct pfs_chain chain = {.c = b->c};
	const uint32_t *limbs;
	unsigned n_limbs;
	int error = 0;

	for (size_t d = from; d < to && error == 0; d++) {
		if (b->c->directory_slot[d] == PFS_NO_SLOT) {
			b->width[d] = UNUSED;
			continue;
		}
		error = pfs_chain_code(&chain, &limbs, &n_limbs, (uint32_t)d);
		if (error)
			break;
		if (!b->write)
			b->width[d] = n_limbs ? (uint8_t)width_of(n_limbs) : DEEP;
		else if (b->codes->row_of[d])
			write_row(b->codes, b->codes->row_of[d], limbs, n_limbs);
	}
	if (error)
		atomic_store(&b->error, error);
	pfs_chain_finish(&chain);
}

static int note_deep(struct pfs_code_tiles *codes, uint32_t directory)
{
	if (pfs_grow(&codes->deep, &codes->deep_capacity, codes->n_deep + 1, sizeof(*codes->deep)))
		return -ENOMEM;
	codes->deep[codes->n_deep++] = directory;
	return 0;
}

/* Rows in the order of directories, so that neighbours in the tree are neighbours in memory. */
static int assign_rows(struct pfs_code_tiles *codes, const struct pfs_columns *c,
		       const uint8_t *width)
{
	size_t count[256] = {0};
	uint32_t next[PFS_N_WIDTHS];
	int error = add_tiles(codes, 0, 1);

	for (size_t d = 1; d < c->n_directories; d++)
		count[width[d]]++;
	for (unsigned w = 0; w < PFS_N_WIDTHS && error == 0; w++) {
		next[w] = (uint32_t)codes->n_tiles * PFS_TILE_ROWS;
		error = add_tiles(codes, w, pfs_div_round_up(count[w], PFS_TILE_ROWS));
		codes->n_rows += count[w];
		for (size_t t = next[w] / PFS_TILE_ROWS; t < codes->n_tiles && error == 0; t++) {
			codes->tiles[t].used = (uint32_t)PFS_MIN(count[w], PFS_TILE_ROWS);
			count[w] -= codes->tiles[t].used;
			codes->open_tile[w] = (uint32_t)t;
		}
	}
	for (uint32_t d = 1; d < c->n_directories && error == 0; d++) {
		codes->row_of[d] = width[d] < PFS_N_WIDTHS ? next[width[d]]++ : 0;
		if (width[d] == DEEP)
			error = note_deep(codes, d);
	}
	return error;
}

static int grow_rows(struct pfs_code_tiles *codes, size_t n)
{
	size_t before = codes->row_capacity;

	if (pfs_grow(&codes->row_of, &codes->row_capacity, pfs_div_round_up(n + 1, 32) * 32,
		     sizeof(*codes->row_of)))
		return -ENOMEM;
	memset(codes->row_of + before, 0, (codes->row_capacity - before) * sizeof(*codes->row_of));
	return 0;
}

int pfs_code_tiles_build(struct pfs_code_tiles *codes, const struct pfs_columns *c)
{
	struct build b = {.codes = codes, .c = c};
	uint8_t *width PFS_FREE = malloc((size_t)c->n_directories + 1);
	int error;

	drop_tiles(codes);
	b.width = width;
	if (!width || grow_rows(codes, c->n_directories))
		return -ENOMEM;
	memset(codes->row_of, 0, codes->row_capacity * sizeof(*codes->row_of));
	pfs_pool_run(codes->pool, c->n_directories, BUILD_GRAIN, build_piece, &b);
	error = atomic_load(&b.error);
	error = error ? error : assign_rows(codes, c, width);
	if (error == 0) {
		b.write = true;
		pfs_pool_run(codes->pool, c->n_directories, BUILD_GRAIN, build_piece, &b);
		error = atomic_load(&b.error);
	}
	if (error)
		drop_tiles(codes);
	return error;
}

/* ---- changing ---- */

static int recode(struct pfs_code_tiles *codes, const struct pfs_columns *c,
		  struct pfs_chain *chain, uint32_t d)
{
	uint32_t row = codes->row_of[d];
	const uint32_t *limbs;
	unsigned n_limbs;
	int error;

	if (c->directory_slot[d] == PFS_NO_SLOT) {
		codes->n_lost += row != 0;
		codes->row_of[d] = 0;
		return 0;
	}
	error = pfs_chain_code(chain, &limbs, &n_limbs, d);
	if (error)
		return error;
	if (row && (n_limbs == 0 || codes->tiles[row / PFS_TILE_ROWS].n_limbs < n_limbs)) {
		codes->n_lost++;
		row = 0;
	}
	if (n_limbs == 0)
		error = note_deep(codes, d);
	else if (row == 0)
		error = take_row(codes, width_of(n_limbs), &row);
	codes->row_of[d] = row;
	if (error == 0 && n_limbs)
		write_row(codes, row, limbs, n_limbs);
	return error;
}

/* Recoded directories are taken out of the list first and enter it again if still deep. */
static void forget_deep(struct pfs_code_tiles *codes, const uint32_t *concerned)
{
	size_t kept = 0;

	for (size_t i = 0; i < codes->n_deep; i++)
		if (!(concerned[codes->deep[i] / 32] >> codes->deep[i] % 32 & 1))
			codes->deep[kept++] = codes->deep[i];
	codes->n_deep = kept;
}

static bool bit_of(const uint32_t *bits, uint32_t i)
{
	return bits[i / 32] >> i % 32 & 1;
}

struct marking {
	const struct pfs_columns *c;
	const uint32_t *changed;
	uint32_t *concerned;
};

static void mark_piece(void *context, size_t from, size_t to)
{
	const struct marking *m = context;

	for (size_t d = from; d < to; d++) {
		bool under = false;

		for (uint32_t up = (uint32_t)d; up && !under; up = m->c->directories[up].parent) {
			if (up >= from && up < d) { /* known already: one step, in pre-order */
				under = bit_of(m->concerned, up);
				break;
			}
			under = bit_of(m->changed, up);
		}
		if (under) /* few are, and a store would hold up the next one's load */
			m->concerned[d / 32] |= 1u << d % 32;
	}
}

/* Makes the bits of the directories whose codes change: those made, moved or removed, and those
 * that lie under a moved one now. */
static int find_concerned(struct pfs_code_tiles *codes, uint32_t **out, const struct pfs_columns *c,
			  const struct pfs_changes *changes)
{
	size_t n_words = pfs_div_round_up(c->n_directories, 32) + 1;
	uint32_t *changed PFS_FREE = calloc(n_words, sizeof(*changed));
	struct marking m = {.c = c, .changed = changed};

	if (!changed)
		return -ENOMEM;
	for (size_t i = 0; i < changes->n_directories; i++)
		changed[changes->directories[i] / 32] |= 1u << changes->directories[i] % 32;
	if (!changes->has_moves) {
		*out = changed;
		changed = NULL;
		return 0;
	}
	m.concerned = calloc(n_words, sizeof(*m.concerned));
	if (!m.concerned)
		return -ENOMEM;
	pfs_pool_run(codes->pool, c->n_directories, BUILD_GRAIN, mark_piece, &m);
	*out = m.concerned;
	return 0;
}

int pfs_code_tiles_change(struct pfs_code_tiles *codes, const struct pfs_columns *c,
		     const struct pfs_changes *changes)
{
	size_t n_words = pfs_div_round_up(c->n_directories, 32);
	uint32_t *concerned PFS_FREE = NULL;
	struct pfs_chain chain = {.c = c};
	int error;

	PFS_TRY(find_concerned(codes, &concerned, c, changes));
	error = grow_rows(codes, c->n_directories);
	forget_deep(codes, concerned);
	for (size_t w = 0; w < n_words && error == 0; w++)
		for (uint32_t left = concerned[w]; left && error == 0; left &= left - 1)
			error = recode(codes, c, &chain,
				       (uint32_t)(w * 32) + (uint32_t)__builtin_ctz(left));
	pfs_chain_finish(&chain);
	if (codes->n_deep)
		qsort(codes->deep, codes->n_deep, sizeof(*codes->deep), pfs_compare_u32);
	if (error == 0 && codes->n_lost > codes->n_rows / 2 + 64 * PFS_TILE_ROWS)
		error = pfs_code_tiles_build(codes, c);
	return error;
}

/* ---- scanning ---- */

struct scan {
	const struct pfs_code_tiles *codes;
	const struct pfs_scan_scratch *scratch;
	const struct pfs_divisor *divisors;
	size_t n, row_words;
};

static void scan_tiles(void *context, size_t from, size_t to)
{
	const struct scan *s = context;

	for (size_t t = from; t < to; t++)
		for (size_t k = 0; k < s->n; k++) /* the tile stays in the cache */
			s->codes->simd->scan_tile(s->scratch->row_bits + k * s->row_words +
							  t * PFS_TILE_WORDS,
						  s->codes->tiles[t].limbs,
						  s->codes->tiles[t].n_limbs, s->divisors[k]);
}

static void gather_directories(void *context, size_t from, size_t to)
{
	const struct scan *s = context;

	s->codes->simd->gather_bits(s->scratch->directory_bits + from / 32, s->codes->row_of + from,
				    to - from, s->scratch->row_bits);
}

/* A deep directory lies under the prime if it is its own, or if the directory above does: upwards
 * to one that is known, then down again. */
static int answer_deep(const struct pfs_code_tiles *codes, const struct pfs_columns *c,
		       uint32_t *bits, uint32_t prime)
{
	uint32_t *path PFS_FREE = malloc(codes->n_deep * sizeof(*path));
	uint8_t *known PFS_FREE = calloc(codes->n_deep, 1);

	if (!path || !known)
		return -ENOMEM;
	for (size_t i = 0; i < codes->n_deep; i++) {
		uint32_t d = codes->deep[i];
		size_t n = 0;
		bool under;

		for (;; d = c->directories[d].parent) {
			const uint32_t *at = codes->row_of[d] || d == 0
						     ? NULL
						     : bsearch(&d, codes->deep, codes->n_deep,
							       sizeof(d), pfs_compare_u32);

			if (!at || known[at - codes->deep])
				break;
			known[at - codes->deep] = 1;
			path[n++] = d;
		}
		under = bit_of(bits, d);
		while (n-- > 0) {
			under = under || c->directories[path[n]].prime == prime || prime == 1;
			bits[path[n] / 32] &= ~(1u << path[n] % 32);
			bits[path[n] / 32] |= (uint32_t)under << path[n] % 32;
		}
	}
	return 0;
}

int pfs_code_tiles_scan_rows(const struct pfs_code_tiles *codes, struct pfs_scan_scratch *scratch,
			     const struct pfs_divisor *divisors, size_t n)
{
	struct scan s = {.codes = codes, .scratch = scratch, .divisors = divisors, .n = n};

	s.row_words = codes->n_tiles * PFS_TILE_WORDS;
	if (pfs_grow(&scratch->row_bits, &scratch->row_bits_capacity, s.row_words * n,
		     sizeof(*scratch->row_bits)))
		return -ENOMEM;
	pfs_pool_run(codes->pool, codes->n_tiles, SCAN_GRAIN, scan_tiles, &s);
	for (size_t k = 0; k < n && codes->n_tiles; k++)
		scratch->row_bits[k * s.row_words] &= ~1u; /* row 0 stands for none */
	return 0;
}

int pfs_code_tiles_scan(const struct pfs_code_tiles *codes, struct pfs_scan_scratch *scratch,
			const struct pfs_columns *c, struct pfs_divisor divisor)
{
	size_t n_words = pfs_div_round_up(c->n_directories, 32); /* row_of has as many */
	struct scan s = {.codes = codes, .scratch = scratch};

	PFS_TRY(pfs_code_tiles_scan_rows(codes, scratch, &divisor, 1));
	PFS_TRY(pfs_grow(&scratch->directory_bits, &scratch->directory_bits_capacity, n_words + 1,
			 sizeof(*scratch->directory_bits)));
	pfs_pool_run(codes->pool, n_words * 32, BUILD_GRAIN, gather_directories, &s);
	return codes->n_deep ? answer_deep(codes, c, scratch->directory_bits, divisor.p) : 0;
}
