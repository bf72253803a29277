/* SPDX-License-Identifier: MIT */
/* Paths and codes: what follows from a node's ancestors. */
#include "fs/image/path.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"
#include "gpu/modexact.h"

#define CODE_LIMBS 128 /* of 32 bits */

/* x lies under k exactly when the prime of k divides the code of x.  The code is multiplied out on
 * the way up, since the image keeps none: so the answer is that of this moment, under the lock that
 * the caller holds, and needs no engine.  A code of more than 4,096 bits is tested in parts of that
 * length: a prime that divides a product divides a factor. */
bool pfs_image_is_under(const struct pfs_tree *tree, uint32_t slot, uint32_t top)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_divisor divisor;
	uint32_t code[CODE_LIMBS] = {1}, carry;
	unsigned n_limbs = 1;

	if (slot == top || top == image->root) /* whose 2 is left out: only odd numbers divide so */
		return true;
	if (!S_ISDIR(image->mode[top]))
		return false;
	if (!S_ISDIR(image->mode[slot]))
		slot = image->parent[slot];
	divisor = pfs_divisor_of((uint32_t)image->prime[top]);
	for (; slot != image->root; slot = image->parent[slot]) {
		carry = pfs_multiply(code, n_limbs, 1, (uint32_t)image->prime[slot]);
		if (carry)
			code[n_limbs++] = carry;
		if (n_limbs < CODE_LIMBS)
			continue;
		if (pfs_divides(divisor, code, n_limbs, 1))
			return true;
		code[0] = n_limbs = 1;
	}
	return pfs_divides(divisor, code, n_limbs, 1);
}

uint32_t pfs_image_depth(const struct pfs_image *image, uint32_t slot)
{
	uint32_t at = slot, n = 0, known = 0;

	for (; at != image->root; at = image->parent[at], n++) {
		known = __atomic_load_n(&image->depth[at], __ATOMIC_RELAXED);
		if (known)
			break;
	}
	n += known;
	if (n > 1)
		__atomic_store_n(&image->depth[image->root], 1, __ATOMIC_RELAXED);
	for (known = n; slot != at; slot = image->parent[slot], known--)
		if (S_ISDIR(image->mode[slot]))
			__atomic_store_n(&image->depth[slot], known, __ATOMIC_RELAXED);
	return n;
}

/* Looks for an absolute path on a device, if one knows it, or the directory before its last name.
 */
static bool resolve_whole(const struct pfs_tree *tree, uint32_t *out, const char *path)
{
	const char *last = *path == '/' ? strrchr(path, '/') : path;
	size_t len = strlen(last);

	return last != path && len > 1 && len <= PFS_NAME_MAX + 1 && strcmp(last, "/.") != 0 &&
	       strcmp(last, "/..") != 0 &&
	       pfs_image_at_path(tree, out, path, (size_t)(last - path),
				 (size_t)(last - path) + len);
}

static int resolve(const struct pfs_tree *tree, uint32_t *out, const char *path)
{
	const struct pfs_image *image = &tree->image;
	uint32_t slot = image->root;

	if (resolve_whole(tree, out, path))
		return *out == PFS_NO_SLOT ? -ENOENT : 0;
	for (;;) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0)
			break;
		if (!S_ISDIR(image->mode[slot]))
			return -ENOTDIR;
		if (len > PFS_NAME_MAX)
			return -ENAMETOOLONG;
		if (len == 2 && memcmp(path, "..", 2) == 0)
			slot = slot == image->root ? slot : image->parent[slot];
		else if (len != 1 || *path != '.')
			slot = pfs_image_child(tree, slot, path, len);
		if (slot == PFS_NO_SLOT)
			return -ENOENT;
		path += len;
	}
	*out = slot;
	return 0;
}

int pfs_tree_resolve(struct pfs_tree *tree, uint64_t *ino, const char *path)
{
	uint32_t slot;
	size_t len = strlen(path);
	int error;

	pfs_hold_read(tree, __func__);
	error = resolve(tree, &slot, path);
	if (!error && len && path[len - 1] == '/' && !S_ISDIR(tree->image.mode[slot]))
		error = -ENOTDIR;
	if (!error)
		*ino = tree->image.prime[slot];
	pfs_hold_end(tree);
	return error;
}

size_t pfs_path_write(const struct pfs_image *image, char *out, uint64_t top, uint32_t slot)
{
	size_t total = 0;

	for (; slot != PFS_NO_SLOT && slot != image->root && image->prime[slot] != top;
	     slot = image->parent[slot]) {
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[slot], &len);

		total += len + 1;
		if (out) {
			memcpy(out - total + 1, name, len);
			out[-(ptrdiff_t)total] = '/';
		}
	}
	return total;
}

int pfs_tree_path(struct pfs_tree *tree, char **path, uint64_t ino)
{
	char *text = NULL;
	size_t len = 0;
	uint32_t slot;
	int error = 0;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot == PFS_NO_SLOT || tree->image.state[slot] & PFS_SLOT_UNLINKED) {
		error = slot == PFS_NO_SLOT ? -ESTALE : -ENOENT;
	} else {
		len = pfs_path_write(&tree->image, NULL, PFS_ROOT_PRIME, slot);
		text = malloc(PFS_MAX(len, 1) + 1);
		error = text ? 0 : -ENOMEM;
	}
	if (text) {
		(void)pfs_path_write(&tree->image, text + len, PFS_ROOT_PRIME, slot);
		if (len == 0)
			text[len++] = '/';
		text[len] = 0;
	}
	pfs_hold_end(tree);
	if (!error)
		*path = text;
	return error;
}

/* ---- codes ---- */

/* The primes from the root to slot: *primes allocated, *n of them.  Under the lock. */
static int path_primes(const struct pfs_tree *tree, uint64_t **primes, size_t *n, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	size_t count = 0;

	for (uint32_t s = slot; s != PFS_NO_SLOT; s = image->parent[s])
		count++;
	*primes = calloc(count, sizeof(**primes));
	if (!*primes)
		return -ENOMEM;
	*n = count;
	for (uint32_t s = slot; s != PFS_NO_SLOT; s = image->parent[s])
		(*primes)[--count] = image->prime[s];
	return 0;
}

/* product = primes[0] * ... * primes[n - 1], halves first, so that a deep chain stays cheap. */
static void multiply(mpz_t product, const uint64_t *primes, size_t n)
{
	mpz_t right;

	if (n == 1) {
		mpz_import(product, 1, 1, sizeof(*primes), 0, 0, primes);
		return;
	}
	mpz_init(right);
	multiply(product, primes, n / 2);
	multiply(right, primes + n / 2, n - n / 2);
	mpz_mul(product, product, right);
	mpz_clear(right);
}

int pfs_image_code_bits(const struct pfs_tree *tree, uint32_t *bits, uint32_t slot)
{
	uint64_t *primes PFS_FREE = NULL;
	size_t n;
	mpz_t code;

	PFS_TRY(path_primes(tree, &primes, &n, slot));
	mpz_init(code);
	multiply(code, primes, n);
	*bits = (uint32_t)mpz_sizeinbase(code, 2);
	mpz_clear(code);
	return 0;
}

/* The primes from the root to the node: *primes allocated. */
static int primes_of(struct pfs_tree *tree, uint64_t **primes, size_t *n, uint64_t ino)
{
	uint32_t slot;
	int error;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot == PFS_NO_SLOT)
		error = -ESTALE;
	else if (tree->image.state[slot] & PFS_SLOT_UNLINKED)
		error = -ENOENT;
	else
		error = path_primes(tree, primes, n, slot);
	pfs_hold_end(tree);
	return error;
}

int pfs_tree_code(struct pfs_tree *tree, char **decimal, uint64_t ino)
{
	uint64_t *primes PFS_FREE = NULL;
	size_t n = 0;
	mpz_t code;

	PFS_TRY(primes_of(tree, &primes, &n, ino));
	mpz_init(code);
	multiply(code, primes, n);
	*decimal = malloc(mpz_sizeinbase(code, 10) + 2);
	if (*decimal)
		(void)mpz_get_str(*decimal, 10, code);
	mpz_clear(code);
	return *decimal ? 0 : -ENOMEM;
}

int pfs_tree_ancestors(struct pfs_tree *tree, char **lines, uint64_t ino)
{
	uint64_t *primes PFS_FREE = NULL;
	char *text, *end;
	size_t n = 0;

	PFS_TRY(primes_of(tree, &primes, &n, ino));
	text = malloc(n * PFS_NUMBER_SIZE);
	if (!text)
		return -ENOMEM;
	end = text;
	for (size_t i = 0; i + 1 < n; i++) {
		end += pfs_print_integer(end, (int64_t)primes[i]);
		*end++ = '\n';
	}
	*end = '\0';
	*lines = text;
	return 0;
}
