/* SPDX-License-Identifier: MIT */
/* Tests of columns, names and sets of slots as a program of the operators (gpu/predicate.h). */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>

#include "base/checked.h"

bool pfs_scan_test_is_rest(const struct pfs_selection *selection, const struct pfs_scan_test *test)
{
	switch (test->how) {
	case PFS_HOW_DEPTH:
	case PFS_HOW_INTEGER:
	case PFS_HOW_TEXT:
	case PFS_HOW_PARENT_BITS:
	case PFS_HOW_CLIMB:
		return true;
	case PFS_HOW_RANGES: /* bits of all slots are not made for a few */
		return selection->list != NULL;
	default:
		return false;
	}
}

/* ---- steps ---- */

static struct pfs_step *add_step(struct pfs_scan_program *p, enum pfs_op op)
{
	struct pfs_step *step = &p->steps[p->n_steps++];

	*step = (struct pfs_step){.op = op};
	return step;
}

static void add_column(struct pfs_scan_program *p, const struct pfs_table_column *column)
{
	p->columns[p->n_columns++] = *column;
}

/* A step that reads the column added last. */
static void read_column(struct pfs_scan_program *p)
{
	add_step(p, PFS_OP_COLUMN)->ref.column = (uint16_t)(p->n_columns - 1);
}

static void add_integer(struct pfs_scan_program *p, int64_t value)
{
	add_step(p, PFS_OP_CONSTANT)->constant =
		(struct pfs_constant){.type = PFS_IS_INTEGER, .integer = value};
}

static void add_between(struct pfs_scan_program *p, int64_t low, int64_t high)
{
	read_column(p);
	add_integer(p, low);
	add_integer(p, high);
	(void)add_step(p, PFS_OP_BETWEEN);
}

static void add_set(struct pfs_scan_program *p, const struct pfs_rows *set)
{
	p->sets[p->n_sets] = *set;
	add_step(p, PFS_OP_BITS)->bits = &p->sets[p->n_sets++];
}

/* ---- tests ---- */

static void add_numbers(struct pfs_scan_program *p, const struct pfs_scan_test *test, uint8_t width)
{
	add_column(p, &(struct pfs_table_column){.kind = PFS_KIND_INTEGER,
						 .width = width,
						 .is_signed = width == 8,
						 .not_null = true,
						 .data = test->column});
	add_between(p, test->low, test->high);
}

static void add_mode(struct pfs_scan_program *p, uint8_t shift, uint64_t mask)
{
	add_column(p, &(struct pfs_table_column){.kind = PFS_KIND_INTEGER,
						 .width = 2,
						 .shift = shift,
						 .mask = mask,
						 .not_null = true,
						 .data = p->selection->image->mode});
}

/* Types are numbers; what no node has may be in between. */
static void add_types(struct pfs_scan_program *p, unsigned types)
{
	static const unsigned used =
		1u << 1 | 1u << 2 | 1u << 4 | 1u << 6 | 1u << 8 | 1u << 10 | 1u << 12;
	unsigned runs = 0;

	add_mode(p, 12, 0);
	for (unsigned i = 0, first = 0, in_run = 0; i <= 16; i++) {
		if (i < 16 && !(used >> i & 1))
			continue;
		if (i < 16 && (types >> i & 1)) {
			first = in_run ? first : i;
			in_run = 1;
			continue;
		}
		if (in_run) {
			add_between(p, first, (int64_t)i - 1);
			if (runs++)
				(void)add_step(p, PFS_OP_OR);
		}
		in_run = 0;
	}
	if (!runs)
		add_between(p, 1, 0);
}

static void compare_name(struct pfs_scan_program *p, enum pfs_op op, const void *text, size_t len)
{
	const struct pfs_constant constant = {.type = PFS_IS_TEXT, .text = text, .len = len};

	read_column(p);
	if (op >= PFS_OP_LIKE) {
		add_step(p, op)->constant = constant;
		return;
	}
	add_step(p, PFS_OP_CONSTANT)->constant = constant;
	(void)add_step(p, op);
}

/* low <= the name < high. */
static void add_range_of_names(struct pfs_scan_program *p, const struct pfs_text_match *range)
{
	if (range->text || !range->high_text)
		compare_name(p, PFS_OP_GE, range->text ? range->text : "",
			     range->text ? range->text_len : 0);
	if (range->high_text)
		compare_name(p, PFS_OP_LT, range->high_text, range->high_len);
	if (range->text && range->high_text)
		(void)add_step(p, PFS_OP_AND);
}

static void add_name(struct pfs_scan_program *p, const struct pfs_text_match *match)
{
	add_column(p, &(struct pfs_table_column){.kind = PFS_KIND_PLACE,
						 .width = 4,
						 .not_null = true,
						 .data = p->selection->image->name,
						 .heap = &p->selection->names});
	switch (match->op) {
	case PFS_OP_BETWEEN:
		if (match->rest == PFS_REST_NONE)
			compare_name(p, PFS_OP_PREFIX, match->prefix, match->prefix_len);
		else
			add_range_of_names(p, match);
		return;
	case PFS_OP_SUFFIX:
		compare_name(p, PFS_OP_SUFFIX, match->suffix, match->suffix_len);
		if (match->min_len == match->suffix_len)
			return;
		/* an extension's, before whose dot something stands */
		compare_name(p, PFS_OP_EQ, match->suffix, match->suffix_len);
		(void)add_step(p, PFS_OP_NOT);
		(void)add_step(p, PFS_OP_AND);
		return;
	case PFS_OP_CONTAINS:
		compare_name(p, PFS_OP_CONTAINS, match->needle.text, match->needle.len);
		return;
	case PFS_OP_LIKE:
	case PFS_OP_GLOB:
		compare_name(p, match->op, match->text, match->text_len);
		return;
	default:
		compare_name(p, match->op, match->prefix, match->prefix_len);
	}
}

static void add_range(struct pfs_scan_program *p, int64_t low, int64_t high)
{
	uint32_t end = p->selection->image->end;

	low = PFS_MIN(low, (int64_t)end);
	high = PFS_MIN(high + 1, (int64_t)end);
	add_set(p, &(struct pfs_rows){.form = PFS_ROWS_RANGE,
				      .n_rows = end,
				      .from = (uint32_t)low,
				      .to = (uint32_t)PFS_MAX(low, high)});
}

static void add_bits(struct pfs_scan_program *p, const uint64_t *bits)
{
	uint32_t end = p->selection->image->end;

	add_set(p,
		&(struct pfs_rows){
			.form = PFS_ROWS_BITS, .n_rows = end, .to = end, .bits = (uint64_t *)bits});
}

static void add_list(struct pfs_scan_program *p, const struct pfs_scan_test *test)
{
	add_set(p, &(struct pfs_rows){.form = PFS_ROWS_LIST,
				      .n_rows = p->selection->image->end,
				      .list = test->list,
				      .n_list = (uint32_t)test->n_list});
}

static void set_run(uint64_t *bits, uint32_t from, uint32_t to)
{
	while (from < to) {
		uint32_t n = PFS_MIN(to - from, 64 - from % 64);

		bits[from / 64] |= ~UINT64_C(0) >> (64 - n) << from % 64;
		from += n;
	}
}

/* Ranges of slots become bits. */
static int add_ranges(struct pfs_scan_program *p, struct pfs_scan_test *test)
{
	uint32_t end = p->selection->image->end;

	if (!test->own_bits) {
		test->own_bits = calloc(pfs_div_round_up(end, 64) + 1, sizeof(*test->own_bits));
		if (!test->own_bits)
			return -ENOMEM;
		for (size_t i = 0; i < test->n_ranges; i++)
			set_run(test->own_bits, test->ranges[i].from,
				PFS_MIN(test->ranges[i].to, end));
		if (test->proper)
			test->own_bits[test->slot / 64] &= ~(UINT64_C(1) << test->slot % 64);
	}
	add_bits(p, test->own_bits);
	return 0;
}

static int add_test(struct pfs_scan_program *p, struct pfs_scan_test *test)
{
	switch (test->how) {
	case PFS_HOW_U32:
		add_numbers(p, test, 4);
		return 0;
	case PFS_HOW_I64:
		add_numbers(p, test, 8);
		return 0;
	case PFS_HOW_MASK:
		if (!test->low) { /* no bits are no mask, and those of every node */
			add_range(p, 0, UINT32_MAX);
			return 0;
		}
		add_mode(p, 0, (uint64_t)test->low);
		add_between(p, test->high, test->high);
		return 0;
	case PFS_HOW_TYPE:
		add_types(p, (unsigned)test->low);
		return 0;
	case PFS_HOW_NAME:
		if (test->text.min_len <= test->text.max_len) {
			add_name(p, &test->text);
			return 0;
		}
		add_range(p, 0, -1);
		return 0;
	case PFS_HOW_SLOT:
		add_range(p, test->low, test->high);
		return 0;
	case PFS_HOW_LIST:
		add_list(p, test);
		return 0;
	case PFS_HOW_BITS:
		add_bits(p, test->bits);
		return 0;
	case PFS_HOW_RANGES:
		return add_ranges(p, test);
	default: /* NOTHING */
		add_range(p, 0, -1);
		return 0;
	}
}

static int add_tests(struct pfs_scan_program *p, struct pfs_scan_test *const *tests, size_t n)
{
	uint32_t root = p->selection->image->root;
	bool first = true;

	for (size_t i = 0; i < n; i++) {
		if (pfs_scan_test_is_rest(p->selection, tests[i])) {
			p->n_rest++;
			continue;
		}
		PFS_TRY(add_test(p, tests[i]));
		if (tests[i]->negated)
			(void)add_step(p, PFS_OP_NOT);
		if (tests[i]->negated && tests[i]->not_root) {
			add_range(p, root, root);
			(void)add_step(p, PFS_OP_NOT);
			(void)add_step(p, PFS_OP_AND);
		}
		if (!first)
			(void)add_step(p, PFS_OP_AND);
		first = false;
	}
	return 0;
}

int pfs_scan_program_init(struct pfs_scan_program *p, const struct pfs_selection *selection,
			  struct pfs_scan_test *const *tests, size_t n)
{
	const struct pfs_image *image = selection->image;
	int error = 0;

	p->selection = selection;
	p->n_steps = p->n_columns = p->n_sets = p->n_rest = 0;
	p->steps = p->few_steps;
	p->columns = p->few_columns;
	p->sets = p->few_sets;
	if (n > PFS_TESTS_FEW) {
		p->steps = malloc(n * PFS_SCAN_STEPS * sizeof(*p->steps));
		p->columns = malloc(n * sizeof(*p->columns));
		p->sets = malloc(2 * n * sizeof(*p->sets));
		error = p->steps && p->columns && p->sets ? 0 : -ENOMEM;
	}
	if (!error)
		error = add_tests(p, tests, n);
	p->program = (struct pfs_program){p->steps, p->n_steps};
	p->table = (struct pfs_table){
		.n_rows = image->end,
		.n_columns = (uint32_t)p->n_columns,
		.columns = p->columns,
		.live = selection->all_live ? NULL : image->live,
	};
	return error;
}

void pfs_scan_program_finish(struct pfs_scan_program *p)
{
	if (p->steps == p->few_steps)
		return;
	free(p->steps);
	free(p->columns);
	free(p->sets);
}
