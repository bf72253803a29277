/* SPDX-License-Identifier: MIT */
/* Checks whether the store is a tree. A damaged store has no image, so its records are checked as
 * they are: sorted by prime, with their parents' primes. What the store can check alone (slots,
 * numbers handed out, ranges of values) pfs_store_check does. */
#include "fs/tree/tree.h"

#include <gmp.h>
#include <inttypes.h>
#include <primesieve.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/siphash.h"
#include "fs/image/names.h"
#include "meta/store.h"

#define FINDINGS_PER_RULE 100
#define NONE		  UINT32_MAX

/* Many primes in a window of numbers are compared with those of a sieve; few are tested one by one.
 */
#define WINDOW	    (UINT64_C(1) << 20)
#define WINDOW_MANY 512u

enum way { UNKNOWN, TO_ROOT, NOWHERE, BEING_CLIMBED };

struct node {
	uint64_t prime, parent;
	uint32_t up;   /* the index of the parent in `nodes`, or NONE */
	uint32_t name; /* a place in `names` */
	uint16_t mode;
	uint8_t way; /* of directories: enum way */
};

struct check {
	struct node *nodes; /* in order of primes */
	size_t n, capacity;
	struct pfs_names *names;
	void (*fn)(void *arg, const char *finding);
	void *arg;
	unsigned reported; /* how often the present rule was broken */
};

/* ---- reporting ---- */

/* Writes "node 123 (name)", with characters that would disturb a line of text replaced. */
static void describe(char *out, size_t size, const struct check *check, const struct node *node)
{
	size_t len, at;
	const char *name = pfs_names_get(check->names, node->name, &len);

	at = (size_t)snprintf(out, size, "node %" PRIu64 " (", node->prime);
	for (size_t i = 0; i < len && at + 2 < size; i++)
		out[at++] = (char)((unsigned char)name[i] < ' ' || name[i] == 127 ? '?' : name[i]);
	out[at++] = ')';
	out[at] = 0;
}

static PFS_PRINTF(3, 4) void report(struct check *check, const struct node *node,
				    const char *format, ...)
{
	char line[640], who[320];
	va_list args;
	size_t at;

	if (check->reported > FINDINGS_PER_RULE)
		return;
	if (check->reported++ == FINDINGS_PER_RULE) {
		check->fn(check->arg, "and more of the kind");
		return;
	}
	describe(who, sizeof(who), check, node);
	at = (size_t)snprintf(line, sizeof(line), "%s: ", who);
	va_start(args, format);
	(void)vsnprintf(line + at, sizeof(line) - at, format, args);
	va_end(args);
	check->fn(check->arg, line);
}

/* ---- reading ---- */

static int add(void *arg, const struct pfs_node_record *record)
{
	struct check *check = arg;
	struct node *node;

	if (check->n == NONE)
		return -EFBIG;
	PFS_TRY(pfs_grow(&check->nodes, &check->capacity, check->n + 1, sizeof(*check->nodes)));
	node = &check->nodes[check->n];
	*node = (struct node){
		.prime = record->prime,
		.parent = record->parent,
		.up = NONE,
		.mode = (uint16_t)record->mode,
	};
	PFS_TRY(pfs_names_add(check->names, &node->name, record->name, record->name_len));
	check->n++;
	return 0;
}

/* Returns the index of the first node whose prime is not less. */
static size_t rank(const struct check *check, uint64_t prime)
{
	return PFS_SEARCH(i, 0, check->n, check->nodes[i].prime < prime);
}

/* ---- parents ---- */

static void find_parents(struct check *check)
{
	size_t last = 0;

	check->reported = 0;
	for (size_t i = 0; i < check->n; i++) {
		struct node *node = &check->nodes[i];

		if (node->prime == PFS_ROOT_PRIME) {
			node->way = TO_ROOT;
			if (!S_ISDIR(node->mode))
				report(check, node, "it is the root and no directory");
			continue;
		}
		if (last >= check->n || check->nodes[last].prime != node->parent)
			last = rank(check, node->parent);
		if (last >= check->n || check->nodes[last].prime != node->parent)
			report(check, node, "its parent %" PRIu64 " does not exist", node->parent);
		else if (!S_ISDIR(check->nodes[last].mode))
			report(check, node, "its parent %" PRIu64 " is no directory", node->parent);
		else
			node->up = (uint32_t)last;
	}
	if (!check->n || check->nodes[0].prime != PFS_ROOT_PRIME)
		check->fn(check->arg, "there is no root");
}

/* Climbs until it is known where the way leads, then says so of all that it passed. */
static void climb(struct check *check, uint32_t from)
{
	struct node *nodes = check->nodes;
	uint8_t way = NOWHERE;
	uint32_t i;

	for (i = from; i != NONE && nodes[i].way == UNKNOWN; i = nodes[i].up)
		nodes[i].way = BEING_CLIMBED;
	if (i != NONE && nodes[i].way == BEING_CLIMBED)
		report(check, &nodes[i], "it is its own ancestor");
	else if (i != NONE)
		way = nodes[i].way;
	for (i = from; i != NONE && nodes[i].way == BEING_CLIMBED; i = nodes[i].up)
		nodes[i].way = way;
}

static void find_cycles(struct check *check)
{
	check->reported = 0;
	for (size_t i = 0; i < check->n; i++)
		if (S_ISDIR(check->nodes[i].mode))
			climb(check, (uint32_t)i);
}

/* ---- names ---- */

struct hashed {
	uint64_t hash;
	uint32_t node;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static bool same_name(const struct check *check, const struct node *a, const struct node *b)
{
	size_t a_len, b_len;
	const char *a_name = pfs_names_get(check->names, a->name, &a_len);
	const char *b_name = pfs_names_get(check->names, b->name, &b_len);

	return a->parent == b->parent && a_len == b_len && !memcmp(a_name, b_name, a_len);
}

static int find_duplicates(struct check *check)
{
	struct hashed *order PFS_FREE = malloc((check->n + 1) * sizeof(*order));

	check->reported = 0;
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < check->n; i++) {
		const struct node *node = &check->nodes[i];
		size_t len;
		const char *name = pfs_names_get(check->names, node->name, &len);

		order[i] = (struct hashed){pfs_siphash(name, len, node->parent, 0), (uint32_t)i};
		if (len == 6 && !memcmp(name, ".query", 6))
			report(check, node, "its name is reserved");
	}
	qsort(order, check->n, sizeof(*order), by_hash);
	for (size_t i = 1; i < check->n; i++) {
		const struct node *node = &check->nodes[order[i].node];
		const struct node *before = &check->nodes[order[i - 1].node];

		if (order[i].hash == order[i - 1].hash && same_name(check, node, before))
			report(check, node, "node %" PRIu64 " has the same name and parent",
			       before->prime);
	}
	return 0;
}

/* ---- primes ---- */

static void check_kind(struct check *check, const struct node *node)
{
	bool small = node->prime >> 32 == 0;

	if (S_ISDIR(node->mode) && !small)
		report(check, node, "it is a directory, and its number is above 2^32");
	if (!S_ISDIR(node->mode) && small)
		report(check, node, "it is no directory, and its number is below 2^32");
}

/* Nodes first to end - 1 against the primes of their window. */
static int sieve_window(struct check *check, size_t first, size_t end)
{
	size_t n, k = 0;
	uint64_t *primes;

	errno = 0;
	primes = primesieve_generate_primes(check->nodes[first].prime, check->nodes[end - 1].prime,
					    &n, UINT64_PRIMES);
	if (errno == EDOM || !primes)
		return -ENOMEM;
	for (size_t i = first; i < end; i++) {
		const struct node *node = &check->nodes[i];

		while (k < n && primes[k] < node->prime)
			k++;
		if (k == n || primes[k] != node->prime)
			report(check, node, "its number is not prime");
	}
	primesieve_free(primes);
	return 0;
}

/* GMP's test is exact below 2^64 (Baillie-PSW). */
static void test_window(struct check *check, size_t first, size_t end)
{
	mpz_t number;

	mpz_init(number);
	for (size_t i = first; i < end; i++) {
		const struct node *node = &check->nodes[i];

		mpz_import(number, 1, 1, sizeof(node->prime), 0, 0, &node->prime);
		if (!mpz_probab_prime_p(number, 1))
			report(check, node, "its number is not prime");
	}
	mpz_clear(number);
}

static int check_primes(struct check *check)
{
	size_t end;

	check->reported = 0;
	for (size_t i = 0; i < check->n; i++)
		check_kind(check, &check->nodes[i]);
	check->reported = 0;
	for (size_t i = 0; i < check->n; i = end) {
		end = rank(check, check->nodes[i].prime + WINDOW);
		if (end - i >= WINDOW_MANY)
			PFS_TRY(sieve_window(check, i, end));
		else
			test_window(check, i, end);
	}
	return 0;
}

/* ---- all of it ---- */

static int check_tree(struct check *check, struct pfs_store *store)
{
	int error = pfs_store_scan_nodes(store, 0, UINT64_MAX, add, check);

	if (error == -EUCLEAN)
		check->fn(check->arg, "the nodes cannot be read to the end");
	else if (error)
		return error;
	find_parents(check);
	find_cycles(check);
	PFS_TRY(find_duplicates(check));
	return check_primes(check);
}

int pfs_tree_check(const char *path, const struct pfs_tree_options *options,
		   void (*fn)(void *arg, const char *finding), void *arg)
{
	struct pfs_store_options how = {
		.flags = PFS_STORE_READ_ONLY,
		.wait_ms = options->wait_ms,
		.vfs = options->vfs,
	};
	struct check check = {.fn = fn, .arg = arg};
	struct pfs_store *store;
	int first, error;

	PFS_TRY(pfs_store_open(&store, path, &how));
	first = pfs_names_create(&check.names);
	if (!first)
		first = check_tree(&check, store);
	if (!first)
		first = pfs_store_check(store, fn, arg);
	pfs_names_destroy(check.names);
	free(check.nodes);
	error = pfs_store_close(store);
	return first ? first : error;
}
