/* SPDX-License-Identifier: MIT */
/* Functions of one text whose other arguments are constants (textchain.h): columns that are made of
 * columns. */
#include "fs/query/relational/bind.h"
#include "fs/query/relational/textchain.h"

#define NUMBER_MAX 1000000 /* of characters: in larger ones versions of SQLite differ */

/* A further step on what the term is: a column of texts, or steps on one. */
static struct pfs_term *add_step(struct pfs_binder *binder, const struct pfs_term *text,
				 const struct pfs_text_step *step)
{
	struct pfs_text_step *steps;
	struct pfs_term *bound;

	if (text->class != PFS_CLASS_TEXT || text->is_late || text->is_collated ||
	    (text->kind != PFS_BOUND_COLUMN && text->kind != PFS_BOUND_MADE))
		return pfs_bind_refuse(binder, "a function of what is no column of texts");
	if (binder->query->is_limited) /* it would be made of what he does not see */
		return pfs_bind_refuse(binder, "a function of texts for who does not see all");
	if (text->n_steps == PFS_TEXT_STEPS_MAX)
		return pfs_bind_refuse(binder, "very many functions of a text");
	bound = pfs_term_new(binder, PFS_BOUND_MADE,
			     step->op == PFS_TEXT_PLACE ? PFS_CLASS_NUMBER : PFS_CLASS_TEXT);
	steps = pfs_bind_get(binder, (text->n_steps + 1) * sizeof(*steps));
	if (!bound || !steps)
		return NULL;
	for (unsigned i = 0; i < text->n_steps; i++)
		steps[i] = text->steps[i];
	steps[text->n_steps] = *step;
	bound->steps = steps;
	bound->n_steps = text->n_steps + 1;
	bound->can_be_null = text->can_be_null;
	bound->input = text->input;
	return pfs_term_add(binder, bound,
			    text->kind == PFS_BOUND_MADE ? text->args[0] : (struct pfs_term *)text);
}

/* ---- constant arguments ---- */

static bool take_text(struct pfs_binder *binder, struct pfs_constant *out,
		      const struct pfs_term *value)
{
	if (value->kind != PFS_BOUND_CONSTANT || value->class != PFS_CLASS_TEXT ||
	    value->is_collated)
		return pfs_bind_refuse(binder, "a function of several texts"), false;
	*out = value->constant;
	return true;
}

static bool take_number(struct pfs_binder *binder, int64_t *out, const struct pfs_term *value,
			int64_t least)
{
	if (value->kind != PFS_BOUND_CONSTANT || value->constant.type != PFS_IS_INTEGER ||
	    value->constant.integer < least || value->constant.integer > NUMBER_MAX)
		return pfs_bind_refuse(binder, "a part of a text by what is no small number"),
		       false;
	*out = value->constant.integer;
	return true;
}

static bool is_ascii(const struct pfs_constant *text)
{
	bool is = true;

	for (size_t i = 0; i < text->len; i++)
		is &= text->text[i] && (uint8_t)text->text[i] < 0x80;
	return is;
}

/* Takes the n arguments behind the text. */
static bool take_arguments(struct pfs_binder *binder, struct pfs_text_step *step,
			   struct pfs_term *const *args, size_t n)
{
	switch (step->op) {
	case PFS_TEXT_TRIM:
		step->a = (struct pfs_constant){.type = PFS_IS_TEXT, .text = " ", .len = 1};
		if (n && !take_text(binder, &step->a, args[0]))
			return false;
		return is_ascii(&step->a) ||
		       pfs_bind_refuse(binder, "trim of characters beyond ASCII");
	case PFS_TEXT_PART:
		step->count = INT64_MAX;
		return take_number(binder, &step->from, args[0], -NUMBER_MAX) &&
		       (n < 2 || take_number(binder, &step->count, args[1], 0));
	case PFS_TEXT_REPLACE:
		if (!take_text(binder, &step->a, args[0]) || !take_text(binder, &step->b, args[1]))
			return false;
		return (step->a.len && *step->a.text) ||
		       pfs_bind_refuse(binder, "replace of nothing");
	case PFS_TEXT_PLACE:
		if (!take_text(binder, &step->a, args[0]))
			return false;
		return !step->a.len || (*step->a.text & 0xc0) != 0x80 ||
		       pfs_bind_refuse(binder, "instr of no character");
	default:
		return true;
	}
}

/* ---- by name ---- */

static const struct function {
	const char *name;
	size_t least, most; /* arguments */
	struct pfs_text_step step;
} functions[] = {
	{"upper", 1, 1, {.op = PFS_TEXT_UPPER}},
	{"lower", 1, 1, {.op = PFS_TEXT_LOWER}},
	{"trim", 1, 2, {.op = PFS_TEXT_TRIM, .at_left = true, .at_right = true}},
	{"ltrim", 1, 2, {.op = PFS_TEXT_TRIM, .at_left = true}},
	{"rtrim", 1, 2, {.op = PFS_TEXT_TRIM, .at_right = true}},
	{"substr", 2, 3, {.op = PFS_TEXT_PART}},
	{"substring", 2, 3, {.op = PFS_TEXT_PART}},
	{"replace", 3, 3, {.op = PFS_TEXT_REPLACE}},
	{"instr", 2, 2, {.op = PFS_TEXT_PLACE}},
};

static const struct function *find(const struct pfs_name *name, size_t n)
{
	for (size_t i = 0; i < PFS_COUNT(functions); i++) {
		if (pfs_name_is(name, functions[i].name))
			return n >= functions[i].least && n <= functions[i].most ? &functions[i]
										 : NULL;
	}
	return NULL;
}

bool pfs_bind_is_text(const struct pfs_name *name, size_t n)
{
	return find(name, n) != NULL;
}

struct pfs_term *pfs_bind_text(struct pfs_binder *binder, const struct pfs_name *name,
			       struct pfs_term *const *args, size_t n)
{
	const struct function *function = find(name, n);
	struct pfs_text_step step;

	if (!function)
		return pfs_bind_refuse(binder, "a function of texts with other arguments");
	step = function->step;
	return take_arguments(binder, &step, args + 1, n - 1) ? add_step(binder, args[0], &step)
							      : NULL;
}

struct pfs_term *pfs_bind_concat(struct pfs_binder *binder, const struct pfs_term *left,
				 const struct pfs_term *right)
{
	bool appends = right->kind == PFS_BOUND_CONSTANT;
	const struct pfs_term *constant = appends ? right : left;

	if (constant->kind != PFS_BOUND_CONSTANT || constant->class != PFS_CLASS_TEXT ||
	    constant->is_collated)
		return pfs_bind_refuse(binder, "|| of two that are no constants");
	return add_step(binder, appends ? left : right,
			&(struct pfs_text_step){.op = appends ? PFS_TEXT_APPEND : PFS_TEXT_PREPEND,
						.a = constant->constant});
}
