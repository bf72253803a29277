/* SPDX-License-Identifier: MIT */
/* Sub-selects: their rows are put aside as vectors, one for each column that is used, which are a
 * table for the stages of the SELECT around them.  Texts stay where they are; only where those of
 * several parts lie in several places they are copied.  Many rows of numbers that a device has
 * found stay there. */
#include "fs/query/relational/run.h"
#include "gpu/textheap.h"

#define STEPS_MAX 512 /* of a recursion; one with more SQLite goes through */
#define STAY_ROWS 65536u /* fewer are in the host's memory as soon as they could be read where they are */

struct pfs_subselect {
	struct pfs_tuples *tuples; /* of no table */
	struct pfs_subselect *next;
};

/* ---- the rows of one part ---- */

/* One text, which lasts as long as the statement. */
static struct pfs_dictionary *dictionary_of(struct pfs_arena *arena,
					    const struct pfs_constant *constant)
{
	struct pfs_dictionary *dictionary = pfs_arena_get(arena, sizeof(*dictionary));
	uint64_t *offset = pfs_arena_get(arena, 2 * sizeof(*offset));

	if (!dictionary || !offset)
		return NULL;
	offset[1] = constant->len;
	*dictionary = (struct pfs_dictionary){
		.bytes = (const uint8_t *)constant->text, .offset = offset, .n = 1};
	return dictionary;
}

static int repeat(struct pfs_running *running, struct pfs_vector *out,
		  const struct pfs_constant *constant, uint64_t n)
{
	enum pfs_kind kind = constant->type == PFS_IS_TEXT   ? PFS_KIND_CODE
			     : constant->type == PFS_IS_REAL ? PFS_KIND_REAL
							     : PFS_KIND_INTEGER;

	PFS_TRY(pfs_vector_make(running->run, out, kind, n));
	if (constant->type == PFS_IS_NULL)
		PFS_TRY(pfs_vector_make_bits(running->run, &out->nulls, n));
	for (uint64_t i = 0; i < n; i++) {
		if (kind == PFS_KIND_CODE)
			out->codes[i] = 0;
		else if (kind == PFS_KIND_REAL)
			out->reals[i] = constant->real;
		else
			out->integers[i] = constant->integer;
		if (out->nulls)
			out->nulls[i / 64] |= UINT64_C(1) << i % 64;
	}
	if (kind != PFS_KIND_CODE)
		return 0;
	out->dictionary = dictionary_of(running->arena, constant);
	return out->dictionary ? 0 : -ENOMEM;
}

static int gather_result(struct pfs_running *running, struct pfs_vector *out,
			 const struct pfs_term *result, uint64_t n)
{
	struct pfs_ref ref;

	if (result->kind == PFS_BOUND_CONSTANT)
		return repeat(running, out, &result->constant, n);
	if (result->is_late || !pfs_stage_ref(&running->stage, &ref, result))
		return -EOPNOTSUPP;
	return pfs_gather(running->run, out, &running->source, ref);
}

/* Returns true if the rows are on a device and may stay there: all results are columns of numbers.
 */
static bool may_stay(const struct pfs_running *running, uint64_t n)
{
	const struct pfs_block *block = running->block;
	const struct pfs_tuples *tuples = running->tuples;
	struct pfs_ref ref;

	if (!tuples || !tuples->device || n != tuples->n ||
	    (n < STAY_ROWS && !running->query->piece))
		return false;
	for (size_t i = 0; i < block->n_results; i++) {
		const struct pfs_term *result = block->results[i];

		if (result->kind == PFS_BOUND_CONSTANT || result->is_late ||
		    !pfs_bound_is_number(result) || !pfs_stage_ref(&running->stage, &ref, result))
			return false;
	}
	return true;
}

static int stay(struct pfs_running *running, struct pfs_tuples **out)
{
	size_t n = running->block->n_results;
	struct pfs_program *programs = pfs_arena_get(running->arena, (n + 1) * sizeof(*programs));
	struct pfs_step *steps = pfs_arena_get(running->arena, (n + 1) * sizeof(*steps));

	if (!programs || !steps)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		steps[i].op = PFS_OP_COLUMN;
		if (!pfs_stage_ref(&running->stage, &steps[i].ref, running->block->results[i]))
			return -EOPNOTSUPP;
		programs[i] = (struct pfs_program){.steps = &steps[i], .n = 1};
	}
	return pfs_project(running->run, out, &running->source, programs, n);
}

int pfs_running_vectors(struct pfs_running *running, struct pfs_tuples **out, uint64_t n,
			bool is_alone)
{
	const struct pfs_block *block = running->block;
	struct pfs_vector *vectors =
		pfs_arena_get(running->arena, (block->n_results + 1) * sizeof(*vectors));
	int error = vectors ? 0 : -ENOMEM;

	if (is_alone && may_stay(running, n))
		return stay(running, out);

	for (size_t i = 0; i < block->n_results && !error; i++)
		error = gather_result(running, &vectors[i], block->results[i], n);
	if (!error)
		return pfs_tuples_of_vectors(running->run, out, n, vectors, block->n_results);
	for (size_t i = 0; vectors && i < block->n_results; i++)
		pfs_vector_free(running->run, &vectors[i]);
	return error;
}

/* ---- one kind, and one place of texts, for each column ---- */

static bool is_text(const struct pfs_vector *vector)
{
	return vector->kind == PFS_KIND_CODE || vector->kind == PFS_KIND_PLACE;
}

/* Returns true if the texts of a column lie in several heaps or dictionaries. */
static bool is_scattered(struct pfs_tuples *const *parts, size_t n_parts, size_t column)
{
	const struct pfs_vector *first = NULL;

	for (size_t i = 0; i < n_parts; i++) {
		const struct pfs_vector *vector = &parts[i]->computed[column];

		if (!parts[i]->n || !is_text(vector))
			continue;
		if (first &&
		    (first->kind != vector->kind || first->dictionary != vector->dictionary ||
		     first->heap != vector->heap))
			return true;
		first = vector;
	}
	return false;
}

/* Goes over the texts of a vector; one that stands below itself is met once.  With bytes, copies
 * each one there and makes its place the row's. */
static uint64_t copy_texts(struct pfs_vector *vector, uint8_t *bytes, uint64_t at)
{
	uint32_t last = 0, place = 0;
	bool is_any = false;

	for (uint64_t i = 0; i < vector->n; i++) {
		const uint8_t *text;
		size_t size;

		if (pfs_vector_is_null(vector, i))
			continue;
		if (!is_any || vector->codes[i] != last) {
			text = pfs_vector_text(vector, i, &size);
			if (bytes)
				place = pfs_heap_put(bytes, &at, text, size);
			else
				at += pfs_heap_room(size);
			last = vector->codes[i];
			is_any = true;
		}
		if (bytes)
			vector->codes[i] = place;
	}
	return at;
}

static struct pfs_heap *make_heap(struct pfs_running *running, uint64_t size)
{
	struct pfs_texts *copy = pfs_kept_texts_add(running->context);

	if (!copy || size >> PFS_TEXT_SHIFT > UINT32_MAX ||
	    pfs_run_alloc_raw(running->run, &copy->bytes, size + 1, 1))
		return NULL;
	copy->size = size + 1;
	copy->heap = pfs_heap_of(copy->bytes, size);
	return &copy->heap;
}

/* Has all parts' texts of a column in one heap. */
static int gather_texts(struct pfs_running *running, struct pfs_tuples *const *parts,
			size_t n_parts, size_t column)
{
	uint64_t size = 0, at = 0;
	struct pfs_heap *heap;

	for (size_t i = 0; i < n_parts; i++)
		size = copy_texts(&parts[i]->computed[column], NULL, size);
	heap = make_heap(running, size);
	if (!heap)
		return -ENOMEM;
	for (size_t i = 0; i < n_parts; i++) {
		struct pfs_vector *vector = &parts[i]->computed[column];

		at = copy_texts(vector, (uint8_t *)heap->bytes, at);
		vector->kind = PFS_KIND_PLACE;
		vector->dictionary = NULL;
		vector->heap = heap;
	}
	return 0;
}

/* A table has integers or reals. Where the first part's column is of reals, SQLite makes reals of
 * the others' integers, also if it has no rows. */
static bool is_of_kind(const struct pfs_tuples *part, const struct pfs_tuples *first, size_t column)
{
	enum pfs_kind kind = part->computed[column].kind;

	return kind != PFS_KIND_NUMBER && !(kind == PFS_KIND_INTEGER && part->n &&
					    first->computed[column].kind == PFS_KIND_REAL);
}

/* Checks that the last n_columns vectors of all parts are of one kind, and brings their texts into
 * one place. -EOPNOTSUPP: they are not. */
static int settle_all(struct pfs_running *running, struct pfs_tuples *const *parts, size_t n_parts,
		      size_t n_columns)
{
	for (size_t i = parts[0]->n_computed - n_columns; i < parts[0]->n_computed; i++) {
		for (size_t part = 0; part < n_parts; part++) {
			if (!is_of_kind(parts[part], parts[0], i))
				return -EOPNOTSUPP;
		}
		if (is_scattered(parts, n_parts, i))
			PFS_TRY(gather_texts(running, parts, n_parts, i));
	}
	return 0;
}

/* ---- the table ---- */

/* The table of the last n_columns vectors. */
static int describe(struct pfs_running *running, struct pfs_table *table, struct pfs_tuples *tuples,
		    size_t n_columns)
{
	struct pfs_table_column *columns =
		pfs_arena_get(running->arena, (n_columns + 1u) * sizeof(*columns));
	size_t first = tuples->n_computed - n_columns;

	if (!columns)
		return -ENOMEM;
	if (tuples->n > PFS_ROWS_MAX)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n_columns; i++) {
		const struct pfs_vector *vector = &tuples->computed[first + i];

		columns[i] = (struct pfs_table_column){
			.kind = vector->kind,
			.width = is_text(vector) ? sizeof(uint32_t) : sizeof(int64_t),
			.is_signed = vector->kind == PFS_KIND_INTEGER,
			.data = vector->data,
			.nulls = vector->nulls,
			.dictionary = vector->dictionary,
			.heap = vector->heap,
			.batch = tuples->device ? tuples : NULL,
			.vector = (uint16_t)(first + i),
		};
	}
	*table = (struct pfs_table){
		.n_rows = (uint32_t)tuples->n,
		.n_columns = (uint32_t)n_columns,
		.columns = columns,
	};
	return 0;
}

/* Parts become the rows, or are freed. */
static int put_together(struct pfs_running *running, struct pfs_tuples **out,
			struct pfs_tuples **parts, size_t n_parts, size_t n_columns)
{
	int error = settle_all(running, parts, n_parts, n_columns);

	if (!error && n_parts == 1) {
		*out = parts[0];
		return 0;
	}
	if (!error)
		error = pfs_tuples_concat(running->run, out, parts, n_parts);
	for (size_t i = 0; i < n_parts; i++)
		pfs_tuples_free(running->run, parts[i]);
	return error;
}

static size_t columns_of(const struct pfs_input *input)
{
	return input->parts[0]->n_results;
}

/* Returns true if the rows of the only part may stay where they are: operators alone read them. */
static bool is_alone(const struct pfs_running *running, const struct pfs_input *input)
{
	const struct pfs_block *block = running->block;

	for (size_t i = 0; i < block->n_made; i++) {
		if (&block->inputs[block->made[i]->input] == input)
			return false;
	}
	return input->n_parts == 1 && !input->is_value;
}

/* Runs the input's parts first..past. */
static int run_parts(struct pfs_running *running, struct pfs_tuples **out,
		     const struct pfs_input *input, size_t first, size_t past)
{
	struct pfs_tuples **parts =
		pfs_arena_get(running->arena, (past - first) * sizeof(struct pfs_tuples *));
	size_t n = 0;
	int error = 0;

	if (!parts)
		return -ENOMEM;
	while (n < past - first && !error) {
		error = pfs_block_run_part(&parts[n], input->parts[first + n], running->context,
					   is_alone(running, input));
		n += !error;
	}
	if (!error)
		return put_together(running, out, parts, n, columns_of(input));
	while (n--)
		pfs_tuples_free(running->run, parts[n]);
	return error;
}

/* Runs the steps until one has no more rows; levels[0] has those that it begins with.  *n: how many
 * there are, each with rows but the first. */
static int run_steps(struct pfs_running *running, struct pfs_tuples **levels, size_t *n,
		     const struct pfs_input *input)
{
	struct pfs_run_context *context = running->context;
	struct pfs_recursion recursion = {.of = input, .outer = context->recursion};
	int error = 0;

	while (!error && levels[*n - 1]->n) {
		error = *n == STEPS_MAX ? -EOPNOTSUPP
					: describe(running, &recursion.rows, levels[*n - 1],
						   columns_of(input));
		if (!error && *n == 1 && pfs_recursion_is_short(running, input, &recursion.rows)) {
			context->is_slower = true;
			error = -EOPNOTSUPP;
		}
		context->recursion = &recursion;
		if (!error)
			error = run_parts(running, &levels[*n], input, input->n_first,
					  input->n_parts);
		context->recursion = recursion.outer;
		*n += !error;
	}
	if (!error && *n > 1)
		pfs_tuples_free(running->run, levels[--*n]);
	return error;
}

static int run_recursion(struct pfs_running *running, struct pfs_tuples **out,
			 const struct pfs_input *input)
{
	struct pfs_tuples *levels[STEPS_MAX];
	size_t n = 1;
	int error;

	PFS_TRY(run_parts(running, &levels[0], input, 0, input->n_first));
	error = run_steps(running, levels, &n, input);
	if (!error)
		return put_together(running, out, levels, n, columns_of(input));
	while (n--)
		pfs_tuples_free(running->run, levels[n]);
	return error;
}

int pfs_subselect_get(struct pfs_running *running, struct pfs_table *table,
		      const struct pfs_input *input)
{
	struct pfs_subselect *sub = pfs_arena_get(running->arena, sizeof(*sub));

	if (!sub)
		return -ENOMEM;
	sub->next = running->subselects;
	running->subselects = sub;
	if (input->n_first)
		PFS_TRY(run_recursion(running, &sub->tuples, input));
	else
		PFS_TRY(run_parts(running, &sub->tuples, input, 0, input->n_parts));
	return describe(running, table, sub->tuples, columns_of(input));
}

void pfs_subselects_free(struct pfs_running *running)
{
	for (struct pfs_subselect *sub = running->subselects; sub; sub = sub->next)
		pfs_tuples_free(running->run, sub->tuples);
	running->subselects = NULL;
}
