/* SPDX-License-Identifier: MIT */
/* What a binder notes, and its terms: made, and compared with one another. */
#include "fs/query/relational/bind.h"

#include <string.h>
#include <strings.h>

#include "fs/query/relational/textchain.h"

/* ---- what a binder notes ---- */

void *pfs_bind_refuse(struct pfs_binder *binder, const char *why)
{
	if (!binder->error) {
		binder->error = -ENOTSUP;
		binder->why = why;
	}
	return NULL;
}

void *pfs_bind_get(struct pfs_binder *binder, size_t size)
{
	void *piece = binder->error ? NULL : pfs_arena_get(binder->arena, size);

	if (!piece && !binder->error)
		binder->error = -ENOMEM;
	return piece;
}

const char *pfs_bind_keep(struct pfs_binder *binder, const char *name)
{
	const char *kept = name ? pfs_arena_text(binder->arena, name, strlen(name)) : NULL;

	if (name && !kept)
		binder->error = -ENOMEM;
	return kept ? kept : "";
}

static void note_read(struct pfs_binder *binder, const char *table, const char *column,
		      bool is_optional)
{
	struct pfs_bound_read *read = pfs_bind_get(binder, sizeof(*read));

	if (!read)
		return;
	*read = (struct pfs_bound_read){table, column, is_optional, binder->reads};
	binder->reads = read;
}

void pfs_bind_read(struct pfs_binder *binder, const char *table, const char *column)
{
	note_read(binder, table, column, false);
}

void pfs_bind_may_read(struct pfs_binder *binder, const char *table, const char *column)
{
	note_read(binder, table, column, true);
}

bool pfs_name_is(const struct pfs_name *name, const char *word)
{
	return word && strlen(word) == name->len && strncasecmp(name->text, word, name->len) == 0;
}

/* ---- terms ---- */

struct pfs_term *pfs_term_new(struct pfs_binder *binder, enum pfs_bound_kind kind,
			      enum pfs_class class)
{
	struct pfs_term *bound = pfs_bind_get(binder, sizeof(*bound));

	if (!bound)
		return NULL;
	bound->kind = kind;
	bound->class = class;
	bound->size = 1;
	return bound;
}

/* A walk meets an argument as often as it is one: nested, that could be without end. */
struct pfs_term *pfs_term_add(struct pfs_binder *binder, struct pfs_term *bound,
			      struct pfs_term *arg)
{
	bound->args[bound->n_args++] = arg;
	bound->size += arg->size;
	if (bound->size > PFS_PROGRAM_STEPS)
		return pfs_bind_refuse(binder, "a very large expression");
	return bound;
}

struct pfs_term *pfs_bound_step(struct pfs_binder *binder, enum pfs_op op, enum pfs_class class,
				struct pfs_term *a, struct pfs_term *b)
{
	struct pfs_term *bound = a ? pfs_term_new(binder, PFS_BOUND_STEP, class) : NULL;

	if (!bound)
		return NULL;
	bound->op = op;
	bound->can_be_null = true;
	bound = pfs_term_add(binder, bound, a);
	return bound && b ? pfs_term_add(binder, bound, b) : bound;
}

struct pfs_term *pfs_term_integer(struct pfs_binder *binder, int64_t value)
{
	struct pfs_term *bound = pfs_term_new(binder, PFS_BOUND_CONSTANT, PFS_CLASS_NUMBER);

	if (!bound)
		return NULL;
	bound->constant.type = PFS_IS_INTEGER;
	bound->constant.integer = value;
	return bound;
}

struct pfs_term *pfs_term_null(struct pfs_binder *binder)
{
	struct pfs_term *bound = pfs_term_new(binder, PFS_BOUND_CONSTANT, PFS_CLASS_NONE);

	if (bound)
		bound->can_be_null = true;
	return bound;
}

static bool constants_equal(const struct pfs_constant *a, const struct pfs_constant *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case PFS_IS_NULL:
		return true;
	case PFS_IS_INTEGER:
		return a->integer == b->integer;
	case PFS_IS_REAL:
		return a->real == b->real;
	case PFS_IS_TEXT:
		return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
	}
	return false;
}

bool pfs_steps_begin(const struct pfs_term *term, const struct pfs_term *with)
{
	bool begin = with->n_steps <= term->n_steps;

	for (unsigned i = 0; i < with->n_steps && begin; i++) {
		const struct pfs_text_step *x = &term->steps[i], *y = &with->steps[i];

		begin = x->op == y->op && x->at_left == y->at_left && x->at_right == y->at_right &&
			x->from == y->from && x->count == y->count &&
			constants_equal(&x->a, &y->a) && constants_equal(&x->b, &y->b);
	}
	return begin;
}

/* Returns true if both are surely the same value wherever they stand. */
bool pfs_bound_equals(const struct pfs_term *a, const struct pfs_term *b)
{
	if ((a->kind == PFS_BOUND_AGGREGATE || a->kind == PFS_BOUND_WINDOW) && b->kind == a->kind)
		return a->aggregate == b->aggregate;
	if (a->kind != b->kind || a->op != b->op || a->n_args != b->n_args ||
	    a->collation != b->collation || a->n_list || b->n_list || a->escape != b->escape)
		return false;
	if (a->n_steps != b->n_steps || !pfs_steps_begin(a, b))
		return false;
	for (unsigned i = 0; i < a->n_args; i++) {
		if (!pfs_bound_equals(a->args[i], b->args[i]))
			return false;
	}
	switch (a->kind) {
	case PFS_BOUND_CONSTANT:
	case PFS_BOUND_STEP:
	case PFS_BOUND_MADE:
	case PFS_BOUND_PRINTED:
		return constants_equal(&a->constant, &b->constant);
	case PFS_BOUND_COLUMN:
		return a->input == b->input && a->column == b->column;
	case PFS_BOUND_AGGREGATE:
	case PFS_BOUND_WINDOW:
	case PFS_BOUND_NODES:
		return false;
	}
	return false;
}

size_t pfs_block_made(const struct pfs_block *block, const struct pfs_term *term)
{
	size_t i = 0;

	while (i < block->n_made && !pfs_bound_equals(block->made[i], term))
		i++;
	return i;
}

const struct pfs_cte *pfs_bind_find_cte(const struct pfs_binder *binder,
					const struct pfs_bind_scope **scope,
					const struct pfs_name *name)
{
	for (*scope = binder->scope; *scope; *scope = (*scope)->outer) {
		for (const struct pfs_cte *cte = (*scope)->with->first; cte; cte = cte->next) {
			if (pfs_name_is(name, cte->name.text))
				return cte;
		}
	}
	return NULL;
}
