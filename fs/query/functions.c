/* SPDX-License-Identifier: MIT */
/* Functions of the tree.  They take nodes by path or by ino; what does not exist is NULL. */
#include "fs/query/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fs/nodes/relation.h"
#include "fs/tree/resolve.h"

/* ---- nodes ---- */

/* The same path is asked for with every row. */
static uint32_t resolve(struct pfs_query *query, const char *path, size_t len)
{
	if (query->path_known && len == query->path_len && memcmp(path, query->path, len) == 0)
		return query->path_slot;
	query->path_slot = memchr(path, 0, len) ? PFS_NO_SLOT
						: pfs_relation_resolve(query->tree, query->visible,
								       path, len);
	query->path_known = !pfs_grow(&query->path, &query->path_capacity, len + 1, 1);
	if (query->path_known) {
		memcpy(query->path, path, len);
		query->path_len = len;
	}
	return query->path_slot;
}

uint32_t pfs_query_node(struct pfs_query *query, const struct pfs_sql_value *value)
{
	uint32_t slot = PFS_NO_SLOT;

	switch (value->type) {
	case PFS_SQL_INTEGER:
		if (value->integer > 0)
			slot = pfs_scan_slot_of(query->tree, (uint64_t)value->integer);
		break;
	case PFS_SQL_TEXT:
	case PFS_SQL_BLOB:
		slot = resolve(query, value->bytes, value->size);
		break;
	default:
		break;
	}
	return slot != PFS_NO_SLOT && pfs_visible_has(query->visible, query->tree, slot)
		       ? slot
		       : PFS_NO_SLOT;
}

/* ---- calls ---- */

/* Holds the tree for a function; says so to SQLite if it cannot. */
static bool hold(struct pfs_query *query, struct pfs_sql_call *call)
{
	int error = pfs_query_hold(query);

	if (error)
		pfs_sql_return_error(call, error, "the tree changed");
	return !error;
}

/* The two nodes of a question; false: one is none, the answer is NULL. */
static bool two_nodes(struct pfs_query *query, uint32_t slots[2],
		      const struct pfs_sql_value *arguments)
{
	slots[0] = pfs_query_node(query, &arguments[0]);
	slots[1] = pfs_query_node(query, &arguments[1]);
	return slots[0] != PFS_NO_SLOT && slots[1] != PFS_NO_SLOT;
}

static bool is_under(const struct pfs_tree *tree, const uint32_t slots[2])
{
	return pfs_relation_is_under(tree, slots[0], slots[1]);
}

static bool is_child(const struct pfs_tree *tree, const uint32_t slots[2])
{
	return pfs_relation_is_child(tree, slots[0], slots[1]);
}

static bool is_ancestor(const struct pfs_tree *tree, const uint32_t slots[2])
{
	return slots[0] != slots[1] && pfs_relation_is_under(tree, slots[1], slots[0]);
}

static void ask(struct pfs_query *query, struct pfs_sql_call *call,
		const struct pfs_sql_value *arguments,
		bool (*holds)(const struct pfs_tree *tree, const uint32_t slots[2]))
{
	uint32_t slots[2];

	if (!hold(query, call))
		return;
	if (two_nodes(query, slots, arguments))
		pfs_sql_return_integer(call, holds(query->tree, slots));
	pfs_query_release(query);
}

static void under(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments)
{
	ask(user, call, arguments, is_under);
}

static void child_of(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments)
{
	ask(user, call, arguments, is_child);
}

static void ancestor_of(void *user, struct pfs_sql_call *call,
			const struct pfs_sql_value *arguments)
{
	ask(user, call, arguments, is_ancestor);
}

static void common(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments)
{
	struct pfs_query *query = user;
	uint32_t slots[2];

	if (!hold(query, call))
		return;
	if (two_nodes(query, slots, arguments))
		pfs_sql_return_integer(
			call, (int64_t)pfs_relation_ino(query->tree,
							pfs_relation_common(query->tree, slots[0],
									    slots[1])));
	pfs_query_release(query);
}

static void ino_of(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments)
{
	struct pfs_query *query = user;
	uint32_t slot;

	if (!hold(query, call))
		return;
	slot = pfs_query_node(query, arguments);
	if (slot != PFS_NO_SLOT)
		pfs_sql_return_integer(call, (int64_t)pfs_relation_ino(query->tree, slot));
	pfs_query_release(query);
}

static void path_of(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments)
{
	struct pfs_query *query = user;
	uint64_t offset[2];
	size_t capacity = 0;
	char *path = NULL;
	uint32_t slot;
	int error = 0;

	if (!hold(query, call))
		return;
	slot = pfs_query_node(query, arguments);
	if (slot != PFS_NO_SLOT)
		error = pfs_scan_bytes(query->tree, &path, &capacity, offset, NULL, PFS_FIELD_PATH,
				       &slot, 1);
	if (error)
		pfs_sql_return_error(call, error, "no memory");
	else if (slot != PFS_NO_SLOT)
		pfs_sql_return_text(call, path, offset[1]);
	pfs_query_release(query);
	free(path);
}

/* The node whose code the number is, as user.primefs.code has it; a text, since most are beyond 64
 * bits. */
static void node_of_code(void *user, struct pfs_sql_call *call,
			 const struct pfs_sql_value *arguments)
{
	struct pfs_query *query = user;
	uint32_t slot = PFS_NO_SLOT;
	char digits[PFS_NUMBER_SIZE];
	const char *code = arguments->bytes;
	size_t len = arguments->size;
	int error;

	if (arguments->type == PFS_SQL_INTEGER) {
		len = pfs_print_integer(digits, arguments->integer);
		code = digits;
	} else if (arguments->type != PFS_SQL_TEXT) {
		return;
	}
	if (!hold(query, call))
		return;
	error = pfs_relation_of_code(query->tree, &slot, code, len, &query->watch);
	if (error)
		pfs_sql_return_error(call, error,
				     error == -ENOMEM ? "no memory" : "the tree changed");
	else if (slot != PFS_NO_SLOT && pfs_visible_has(query->visible, query->tree, slot))
		pfs_sql_return_integer(call, (int64_t)pfs_relation_ino(query->tree, slot));
	pfs_query_release(query);
}

/* ---- resolve(TEXT): paths, a line each ---- */

#define LINES 1024 /* that are resolved at once, if they are not long */

enum { LINE, PATH, INO, RESOLVE_COLUMNS };

struct resolving {
	struct pfs_query *query;
	const char *text;
	size_t size, at; /* at: where the next batch begins */
	int64_t before;	 /* lines before the batch */
	size_t n, row;	 /* of the batch */
	struct pfs_path_text paths[LINES];
	uint64_t inos[LINES]; /* 0: there is no such node */
};

static int open_lines(void *user, void **rows, const struct pfs_sql_value *value,
		      char *problem PFS_UNUSED)
{
	struct resolving *resolving = malloc(sizeof(*resolving));
	bool is_text = value->type == PFS_SQL_TEXT || value->type == PFS_SQL_BLOB;

	if (!resolving)
		return -ENOMEM;
	resolving->query = user;
	resolving->text = is_text ? value->bytes : NULL;
	resolving->size = is_text ? value->size : 0;
	resolving->at = resolving->n = resolving->row = 0;
	resolving->before = 0;
	*rows = resolving;
	return 0;
}

static int number_held(struct resolving *resolving, uint32_t *slots, uint32_t top,
		       const struct pfs_path_text *paths, size_t n)
{
	const struct pfs_query *query = resolving->query;

	PFS_TRY(pfs_query_hold(resolving->query));
	if (top == PFS_NO_SLOT)
		top = pfs_scan_slot_of(query->tree, PFS_ROOT_PRIME);
	pfs_resolve_held(query->tree, query->visible, top, slots, paths, n);
	for (size_t i = 0; i < n; i++)
		resolving->inos[i] =
			slots[i] == PFS_NO_SLOT ? 0 : pfs_relation_ino(query->tree, slots[i]);
	pfs_query_release(resolving->query);
	return 0;
}

/* A path that is too long for one hold is a batch of its own, and resolved piece by piece: the
 * statement sees one state of the tree, in which a slot stays the same node's. */
static int number_paths(struct resolving *resolving)
{
	struct pfs_path_text rest = resolving->paths[0];
	uint32_t slots[LINES] = {PFS_NO_SLOT};

	if (rest.len <= PFS_RESOLVE_HELD_BYTES)
		return number_held(resolving, slots, PFS_NO_SLOT, resolving->paths, resolving->n);
	do {
		const struct pfs_path_text piece = pfs_path_piece(&rest);

		PFS_TRY(number_held(resolving, slots, slots[0], &piece, 1));
	} while (slots[0] != PFS_NO_SLOT && rest.len);
	return 0;
}

static void read_batch(struct resolving *resolving)
{
	size_t at = resolving->at, left = PFS_RESOLVE_HELD_BYTES;
	struct pfs_path_text path;

	resolving->n = 0;
	while (resolving->n < LINES && left > 0 && /* an empty line fits where nothing is left */
	       pfs_path_next(&path, resolving->text, resolving->size, &at, '\n')) {
		if (resolving->n && path.len > left)
			break;
		left -= PFS_MIN(left, path.len);
		resolving->paths[resolving->n++] = path;
		resolving->at = at;
	}
}

static int next_line(void *rows)
{
	struct resolving *resolving = rows;

	if (++resolving->row < resolving->n)
		return 1;
	resolving->before += (int64_t)resolving->n;
	resolving->row = 0;
	read_batch(resolving);
	if (!resolving->n)
		return 0;
	PFS_TRY(number_paths(resolving));
	return 1;
}

static int give_line(void *rows, struct pfs_sql_value *out, int column)
{
	const struct resolving *resolving = rows;
	const struct pfs_path_text *path = &resolving->paths[resolving->row];
	uint64_t ino = resolving->inos[resolving->row];

	if (column == LINE)
		*out = (struct pfs_sql_value){.type = PFS_SQL_INTEGER,
					      .integer = resolving->before +
							 (int64_t)resolving->row + 1};
	else if (column == PATH)
		*out = (struct pfs_sql_value){
			.type = PFS_SQL_TEXT, .bytes = path->bytes, .size = path->len};
	else if (ino)
		*out = (struct pfs_sql_value){.type = PFS_SQL_INTEGER, .integer = (int64_t)ino};
	return 0;
}

const struct pfs_sql_table_function pfs_resolve_table = {
	.name = "resolve",
	.columns = "line INTEGER, path TEXT, ino INTEGER",
	.n_columns = RESOLVE_COLUMNS,
	.rows_assumed = 1000,
	.open = open_lines,
	.next = next_line,
	.value = give_line,
	.close = free,
};

/* ---- times ---- */

static void return_time(struct pfs_sql_call *call, const struct pfs_sql_value *value, int error,
			const char *problem)
{
	if (error)
		pfs_sql_return_error(call, error, problem);
	else if (value->type == PFS_SQL_INTEGER)
		pfs_sql_return_integer(call, value->integer);
	else if (value->type == PFS_SQL_REAL)
		pfs_sql_return_real(call, value->real);
}

static void make_time(const struct pfs_query *query, struct pfs_sql_call *call,
		      const struct pfs_sql_value *argument, bool strict)
{
	char problem[PFS_TIME_PROBLEM];
	struct pfs_sql_value value;
	int error = pfs_time_value(&value, argument, query->now, strict, problem);

	return_time(call, &value, error, problem);
}

static void time_of(void *user, struct pfs_sql_call *call, const struct pfs_sql_value *arguments)
{
	make_time(user, call, arguments, true);
}

/* The second argument, 0: numbers are as they are. */
static void time_or_number(void *user, struct pfs_sql_call *call,
			   const struct pfs_sql_value *arguments)
{
	make_time(user, call, arguments, false);
}

static void seconds(void *user PFS_UNUSED, struct pfs_sql_call *call,
		    const struct pfs_sql_value *arguments)
{
	char problem[PFS_TIME_PROBLEM];
	struct pfs_sql_value value;
	int error = pfs_time_from_seconds(&value, arguments, problem);

	return_time(call, &value, error, problem);
}

/* ---- the aggregate common_ancestor ---- */

struct gathered {
	uint32_t ancestor;
	bool any;
};

static void gather_step(void *user, struct pfs_sql_call *call, void *state,
			const struct pfs_sql_value *argument)
{
	struct pfs_query *query = user;
	struct gathered *gathered = state;
	uint32_t slot;

	if (!hold(query, call))
		return;
	slot = pfs_query_node(query, argument);
	if (slot != PFS_NO_SLOT) {
		gathered->ancestor = gathered->any ? pfs_relation_common(query->tree,
									 gathered->ancestor, slot)
						   : slot;
		gathered->any = true;
	}
	pfs_query_release(query);
}

static void gather_final(void *user, struct pfs_sql_call *call, void *state)
{
	struct pfs_query *query = user;
	const struct gathered *gathered = state;

	if (!gathered || !gathered->any || !hold(query, call))
		return;
	pfs_sql_return_integer(call, (int64_t)pfs_relation_ino(query->tree, gathered->ancestor));
	pfs_query_release(query);
}

const struct pfs_sql_function pfs_tree_functions[] = {
	{.name = "under", .n_arguments = 2, .call = under},
	{.name = "child_of", .n_arguments = 2, .call = child_of},
	{.name = "ancestor_of", .n_arguments = 2, .call = ancestor_of},
	{.name = "common_ancestor", .n_arguments = 2, .call = common},
	{.name = "ino_of", .n_arguments = 1, .call = ino_of},
	{.name = "path_of", .n_arguments = 1, .call = path_of},
	{.name = "node_of_code", .n_arguments = 1, .call = node_of_code},
	{.name = "time_of", .n_arguments = 1, .call = time_of},
	{.name = "time_of", .n_arguments = 2, .call = time_or_number},
	{.name = "seconds", .n_arguments = 1, .call = seconds},
	{.name = "common_ancestor",
	 .n_arguments = 1,
	 .state_size = sizeof(struct gathered),
	 .step = gather_step,
	 .final = gather_final},
	{.name = NULL},
};
