/* SPDX-License-Identifier: MIT */
/* gpu/code.c - codes as numbers: their products and greatest common divisors, by GMP. */
#include "gpu/probe.h"

#include <gmp.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

#define DECIMAL_MAX (1u << 20)
#define CHECK_BATCH 4096u

static void multiply_u64(mpz_t product, uint64_t factor)
{
	mpz_t f;

	mpz_init(f);
	mpz_import(f, 1, -1, sizeof(factor), 0, 0, &factor);
	mpz_mul(product, product, f);
	mpz_clear(f);
}

/* Computes the directory's code without the root's factor 2. */
static void directory_code(mpz_t code, const struct pfs_columns *c, uint32_t directory)
{
	mpz_set_ui(code, 1);
	for (uint32_t d = directory; d; d = c->directories[d].parent)
		mpz_mul_ui(code, code, c->directories[d].prime);
}

static void odd_code(mpz_t code, const struct pfs_columns *c, uint32_t slot)
{
	directory_code(code, c, c->home[slot]);
	if (!pfs_slot_is_directory(c, slot))
		multiply_u64(code, c->prime[slot]);
}

int pfs_engine_code(struct pfs_engine *e, char **decimal, uint32_t slot)
{
	PFS_READING(&e->lock);
	mpz_t code;
	char *text;

	if (!pfs_slot_live(&e->columns, slot))
		return -ENOENT;
	mpz_init(code);
	odd_code(code, &e->columns, slot);
	mpz_mul_ui(code, code, PFS_ROOT_PRIME);
	text = malloc(mpz_sizeinbase(code, 10) + 2);
	if (text)
		(void)mpz_get_str(text, 10, code);
	mpz_clear(code);
	if (!text)
		return -ENOMEM;
	*decimal = text;
	return 0;
}

/* The directories are those whose primes divide the number. If the number is a code they are a
 * path: each lies in the next. Sets *deepest to the one in which none of them lies, or to 0 if they
 * are no path. -ENOMEM. */
static int end_of_path(const struct pfs_columns *c, uint32_t *deepest, const uint32_t *directories,
		       size_t n)
{
	uint8_t *is_parent PFS_FREE = calloc(c->n_directories + (size_t)1, 1);
	uint32_t end = 0;
	size_t depth = 0;

	if (!is_parent)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		is_parent[c->directories[directories[i]].parent] = 1;
	for (size_t i = 0; i < n && !end; i++)
		end = is_parent[directories[i]] ? 0 : directories[i];
	for (uint32_t d = end; d; d = c->directories[d].parent)
		depth++;
	*deepest = depth == n ? end : 0;
	return 0;
}

static int dividing(struct pfs_codes_job *job, uint32_t **out, size_t *n, const mpz_t number)
{
	size_t n_limbs = (mpz_sizeinbase(number, 2) + 31) / 32, written;
	size_t capacity = n_limbs * 32; /* each prime takes more than one bit */
	uint32_t *limbs PFS_FREE = calloc(n_limbs, sizeof(*limbs));
	uint32_t *directories PFS_FREE = malloc(capacity * sizeof(*directories));

	if (!limbs || !directories)
		return -ENOMEM;
	(void)mpz_export(limbs, &written, -1, sizeof(*limbs), 0, 0, number);
	PFS_TRY(job->ops->dividing(job, directories, n, capacity, limbs, n_limbs));
	if (*n > capacity)
		return -ENOENT;
	*out = PFS_TAKE(directories);
	return 0;
}

/* Finds the node whose code is code(deepest) * number: the directory itself if the number is 1,
 * else the file with that prime. */
static int node_of_rest(const struct pfs_asking *asking, uint32_t *slot, uint32_t deepest,
			const mpz_t number)
{
	const struct pfs_columns *c = &asking->engine->columns;
	uint64_t prime = 0;
	int error = -ENOENT;
	mpz_t code;

	mpz_init(code);
	directory_code(code, c, deepest);
	if (mpz_divisible_p(number, code)) {
		mpz_divexact(code, number, code);
		if (mpz_cmp_ui(code, 1) == 0) {
			*slot = c->directory_slot[deepest];
			error = 0;
		} else if (mpz_sizeinbase(code, 2) <= 64) {
			(void)mpz_export(&prime, NULL, -1, sizeof(prime), 0, 0, code);
		}
	}
	mpz_clear(code);
	if (prime < PFS_FIRST_FILE_PRIME)
		return error;
	PFS_TRY(asking->job->ops->find_prime(asking->job, slot, prime));
	return c->home[*slot] == deepest ? 0 : -ENOENT;
}

static int node_by_index(const struct pfs_engine *e, uint32_t *slot, const mpz_t number)
{
	uint64_t low = 0;
	size_t at = 0;
	bool found = false;
	mpz_t code;

	mpz_init(code);
	mpz_fdiv_r_2exp(code, number, 64);
	(void)mpz_export(&low, NULL, -1, sizeof(low), 0, 0, code);
	while (!found && (*slot = pfs_code_index_next(&e->codes, low, &at)) != PFS_NO_SLOT) {
		odd_code(code, &e->columns, *slot);
		found = mpz_cmp(code, number) == 0;
	}
	mpz_clear(code);
	return found ? 0 : -ENOENT;
}

/* Finds the node of a number that is a code without the root's factor. */
static int find_node(const struct pfs_asking *asking, uint32_t *slot, const mpz_t number)
{
	struct pfs_engine *e = asking->engine;
	uint32_t *directories PFS_FREE = NULL;
	uint32_t deepest;
	size_t n = 0;

	if (!(e->device_only && e->is_device) &&
	    pfs_code_index_ready(&e->codes, &e->columns, e->epoch))
		return node_by_index(e, slot, number);
	PFS_TRY(dividing(asking->job, &directories, &n, number));
	PFS_TRY(end_of_path(&e->columns, &deepest, directories, n));
	return deepest ? node_of_rest(asking, slot, deepest, number) : -ENOENT;
}

static int ask_for_node(struct pfs_engine *e, uint32_t *slot, mpz_t number)
{
	struct pfs_asking asking = {.engine = e};
	int error;

	if (mpz_sgn(number) <= 0 || mpz_tstbit(number, 0) || mpz_scan1(number, 0) != 1)
		return -ENOENT; /* the root's factor 2 must divide it exactly once */
	mpz_tdiv_q_2exp(number, number, 1);
	do {
		error = pfs_asking_begin(&asking);
		error = error ? error : find_node(&asking, slot, number);
	} while (!pfs_asking_end(&asking, &error));
	return error;
}

int pfs_engine_node(struct pfs_engine *e, uint32_t *slot, const char *decimal)
{
	size_t length = strnlen(decimal, DECIMAL_MAX + 1);
	mpz_t number;
	int error;

	if (length > DECIMAL_MAX)
		return -E2BIG;
	if (length == 0 || strspn(decimal, "0123456789") != length)
		return -EINVAL;
	mpz_init(number);
	error = mpz_set_str(number, decimal, 10) ? -EINVAL : ask_for_node(e, slot, number);
	mpz_clear(number);
	return error;
}

int pfs_engine_common_ancestor(struct pfs_engine *e, uint32_t *ancestor, const uint32_t *slots,
			       size_t n)
{
	PFS_READING(&e->lock);
	const struct pfs_columns *c = &e->columns;
	uint32_t deepest;
	mpz_t common, code;
	bool same = true;

	if (n == 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!pfs_slot_live(c, slots[i]))
			return -ENOENT;
		same = same && slots[i] == slots[0];
	}
	if (same) { /* the node may be no directory */
		*ancestor = slots[0];
		return 0;
	}
	mpz_inits(common, code, NULL);
	directory_code(common, c, c->home[slots[0]]);
	for (size_t i = 1; i < n && mpz_cmp_ui(common, 1) != 0; i++) {
		if (c->home[slots[i]] == c->home[slots[i - 1]])
			continue;
		directory_code(code, c, c->home[slots[i]]);
		mpz_gcd(common, common, code);
	}
	/* Finds the deepest directory on the first node's path that divides the common divisor. */
	deepest = c->home[slots[0]];
	while (c->directories[deepest].parent &&
	       !mpz_divisible_ui_p(common, c->directories[deepest].prime))
		deepest = c->directories[deepest].parent;
	mpz_clears(common, code, NULL);
	*ancestor = c->directory_slot[deepest];
	return 0;
}

/* Computes the code if it has at most so many bits; else a product of some of its factors that has
 * more. */
static void code_up_to(mpz_t code, const struct pfs_columns *c, uint32_t directory, size_t bits)
{
	mpz_set_ui(code, 1);
	for (uint32_t d = directory; d && mpz_sizeinbase(code, 2) <= bits;
	     d = c->directories[d].parent)
		mpz_mul_ui(code, code, c->directories[d].prime);
}

static uint64_t count_wrong(const struct pfs_columns *c, const uint32_t *limbs,
			    const uint32_t *n_limbs, uint32_t first, size_t n)
{
	uint64_t wrong = 0;
	mpz_t code, kept;

	mpz_inits(code, kept, NULL);
	for (size_t i = 0; i < n; i++) {
		uint32_t d = first + (uint32_t)i;

		if (c->directory_slot[d] == PFS_NO_SLOT) {
			wrong += n_limbs[i] != 0;
			continue;
		}
		code_up_to(code, c, d, PFS_LIMBS_MAX * 32);
		mpz_import(kept, n_limbs[i], -1, sizeof(*limbs), 0, 0, limbs + i * PFS_LIMBS_MAX);
		if (n_limbs[i])
			wrong += mpz_cmp(code, kept) != 0;
		else /* checks that the code is too long */
			wrong += mpz_sizeinbase(code, 2) < (PFS_LIMBS_MAX - 1) * 32;
	}
	mpz_clears(code, kept, NULL);
	return wrong;
}

int pfs_engine_check(struct pfs_engine *e, uint64_t *wrong)
{
	uint32_t *limbs PFS_FREE = malloc(sizeof(*limbs) * CHECK_BATCH * PFS_LIMBS_MAX);
	uint32_t *n_limbs PFS_FREE = malloc(sizeof(*n_limbs) * CHECK_BATCH);
	struct pfs_asking asking = {.engine = e};
	uint64_t total;
	int error;

	if (!limbs || !n_limbs)
		return -ENOMEM;
	do {
		total = 0;
		error = pfs_asking_begin(&asking);
		for (uint32_t d = 1; error == 0 && d < e->columns.n_directories;) {
			size_t n = PFS_MIN(CHECK_BATCH, e->columns.n_directories - d);

			error = asking.job->ops->codes(asking.job, limbs, n_limbs, d, n);
			if (error == 0)
				total += count_wrong(&e->columns, limbs, n_limbs, d, n);
			d += (uint32_t)n;
		}
	} while (!pfs_asking_end(&asking, &error));
	if (error == 0)
		*wrong = total;
	return error;
}
