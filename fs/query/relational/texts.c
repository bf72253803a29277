/* SPDX-License-Identifier: MIT */
/* Columns that are made of columns of texts (textchain.h), behind those of their table, and
 * vectors of what is printed (printed.h).  What repeats becomes codes of a dictionary, which is
 * found out by a sample; other texts lie in a heap. */
#include "fs/query/relational/run.h"

#include <string.h>

#include "base/checked.h"
#include "fs/query/relational/printed.h"
#include "gpu/textheap.h"

#define SAMPLE	   2048u /* elements, of which a dictionary's are at most a quarter as many texts */
#define LOOK_BYTES (UINT64_C(1) << 19) /* between questions whether to go on */
#define HEAP_MIN   4096u
#define PIECE	   (1u << 15) /* elements */
#define REMEMBERED_BITS 9	   /* of how many rows that were printed */

/* What is made of a piece of the elements, before it is joined to the column. */
struct piece {
	struct pfs_made_texts texts;
	uint64_t begins; /* where the column's heap has that of the piece */
	uint32_t *codes; /* by the piece's code: the column's */
};

struct making {
	struct pfs_running *running;
	const struct pfs_term *term;
	const struct pfs_table *table;
	const struct pfs_table_column *base;
	struct pfs_made_texts *texts;
	uint64_t *live;	   /* by row; NULL: all are */
	uint32_t n;	   /* elements: rows, or what a column of another table has */
	bool by_code;	   /* instead of these elements the dictionary's codes are gone through */
	uint32_t *cells;   /* TEXT: codes or places, by what is gone through */
	int64_t *integers; /* NUMBER */
	struct piece *pieces;
	/* Of each code, where they are made first. */
	uint32_t *code_cells;
	int64_t *code_integers;
	const struct pfs_printing *printing; /* instead of term, table and base, which are NULL */
};

/* What one thread applies the steps with. */
struct applying {
	const struct making *making;
	struct pfs_text_room room;
	uint64_t looked; /* bytes since the last question */
};

/* ---- values ---- */

static bool is_there(const struct making *making, uint32_t at)
{
	const struct pfs_table_column *base = making->base;

	if (making->by_code || !making->base)
		return true;
	if (making->live && !(making->live[at / 64] >> at % 64 & 1))
		return false;
	return !base->nulls || base->not_null || !(base->nulls[at / 64] >> at % 64 & 1);
}

static uint32_t cell_at(const struct making *making, uint32_t at)
{
	return making->by_code || !making->base ? at : (uint32_t)pfs_cell_integer(making->base, at);
}

static const uint8_t *text_at(const struct pfs_table_column *base, uint32_t cell, size_t *len)
{
	return base->kind == PFS_KIND_CODE ? pfs_dictionary_text(base->dictionary, cell, len)
					   : pfs_heap_text(base->heap, cell, len);
}

static int print(struct applying *applying, uint32_t at, const uint8_t **text, size_t *len)
{
	struct pfs_text_buffer *out = &applying->room.buffers[0];

	PFS_TRY(pfs_printing_row(applying->making->printing, out, at));
	*text = out->bytes;
	*len = out->size;
	return 0;
}

/* What the steps make of that cell's text, or the row as it is printed; it asks now and then
 * whether to go on. */
static int apply(struct applying *applying, uint32_t cell, const uint8_t **text, size_t *len,
		 int64_t *place)
{
	const struct making *making = applying->making;

	if (!making->base)
		PFS_TRY(print(applying, cell, text, len));
	else
		*text = text_at(making->base, cell, len);
	applying->looked += *len + 64;
	if (applying->looked > LOOK_BYTES) {
		applying->looked = 0;
		PFS_TRY(pfs_run_poll(making->running->run));
	}
	if (!making->base)
		return 0;
	return pfs_text_apply(making->term->steps, making->term->n_steps, &applying->room, text,
			      len, place);
}

/* ---- where texts are put ---- */

static int grow_heap(struct pfs_made_texts *texts, const struct pfs_run *run, uint64_t size)
{
	uint64_t capacity = PFS_MAX(texts->capacity * 2, HEAP_MIN);
	uint8_t *bytes;

	while (capacity < size)
		capacity *= 2;
	if (capacity >> PFS_TEXT_SHIFT > UINT32_MAX)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_run_alloc_raw(run, &bytes, capacity, 1));
	if (texts->size)
		memcpy(bytes, texts->bytes, texts->size);
	pfs_run_free(run, texts->bytes, texts->capacity, 1);
	texts->bytes = bytes;
	texts->capacity = capacity;
	return 0;
}

/* What it has grown by is on the statement's account, too. */
static int charge_dictionary(struct pfs_made_texts *texts, const struct pfs_run *run)
{
	uint64_t more = pfs_dictionary_memory(&texts->dictionary) - texts->charged;

	if (more && run->charge)
		PFS_TRY(run->charge(run->context, (int64_t)more));
	texts->charged += more;
	return 0;
}

int pfs_made_texts_put(struct pfs_made_texts *texts, const struct pfs_run *run, uint32_t *out,
		       const uint8_t *text, size_t len)
{
	if (!texts->is_heap) {
		PFS_TRY((texts->are_new ? pfs_dictionary_append : pfs_dictionary_add)(
			&texts->dictionary, out, (const char *)text, len));
		return charge_dictionary(texts, run);
	}
	if (texts->size + pfs_heap_room(len) > texts->capacity)
		PFS_TRY(grow_heap(texts, run, texts->size + pfs_heap_room(len)));
	*out = pfs_heap_put(texts->bytes, &texts->size, text, len);
	return 0;
}

static void free_texts(struct pfs_made_texts *texts, const struct pfs_run *run)
{
	pfs_run_free(run, texts->bytes, texts->capacity, 1);
	pfs_dictionary_finish(&texts->dictionary);
	if (texts->charged && run->charge)
		(void)run->charge(run->context, -(int64_t)texts->charged);
	texts->bytes = NULL;
	texts->charged = 0;
}

/* Estimates by a sample whether texts repeat. */
static int look_at_sample(struct making *making)
{
	struct applying applying = {.making = making};
	struct pfs_dictionary_builder different = {.table = NULL};
	uint32_t n = PFS_MIN(making->n, SAMPLE), n_texts = 0, code;
	int error = pfs_dictionary_begin(&different);

	for (uint32_t i = 0; i < n && !error; i++) {
		uint32_t at = (uint32_t)((uint64_t)i * making->n / n);
		const uint8_t *text;
		int64_t place;
		size_t len;

		if (!is_there(making, at))
			continue;
		n_texts++;
		error = apply(&applying, cell_at(making, at), &text, &len, &place);
		if (!error)
			error = pfs_dictionary_add(&different, &code, (const char *)text, len);
	}
	making->texts->is_heap = different.shown.n > n_texts / 4 + 16;
	pfs_dictionary_finish(&different);
	pfs_text_room_finish(&applying.room);
	return error;
}

/* ---- pieces ---- */

/* A row that was printed, and what it became; neighbours often repeat. */
struct remembered {
	uint32_t at, cell;
	bool is_there;
};

static int print_cell(struct applying *applying, struct pfs_made_texts *texts,
		      struct remembered *all, uint32_t at)
{
	const struct making *making = applying->making;
	struct remembered *one =
		&all[pfs_printing_hash(making->printing, at) >> (64 - REMEMBERED_BITS)];
	const uint8_t *text;
	int64_t place;
	size_t len;

	if (!one->is_there || !pfs_printing_same(making->printing, one->at, at)) {
		one->is_there = false;
		PFS_TRY(apply(applying, at, &text, &len, &place));
		PFS_TRY(pfs_made_texts_put(texts, making->running->run, &one->cell, text, len));
		one->at = at;
		one->is_there = true;
	}
	making->cells[at] = one->cell;
	return 0;
}

static int print_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct making *making = context;
	struct pfs_made_texts *texts = &making->pieces[from / PIECE].texts;
	struct applying applying = {.making = making};
	struct remembered all[1u << REMEMBERED_BITS] = {{.is_there = false}};
	int error = 0;

	(void)worker;
	texts->is_heap = making->texts->is_heap;
	for (uint32_t at = (uint32_t)from; at < to && !error; at++)
		error = print_cell(&applying, texts, all, at);
	pfs_text_room_finish(&applying.room);
	return error;
}

static int make_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct making *making = context;
	struct pfs_made_texts *texts = &making->pieces[from / PIECE].texts;
	struct applying applying = {.making = making};
	int error = 0;

	(void)worker;
	texts->is_heap = making->texts->is_heap;
	for (uint32_t at = (uint32_t)from; at < to && !error; at++) {
		const uint8_t *text;
		int64_t place = 0;
		size_t len;

		if (!is_there(making, at))
			continue;
		error = apply(&applying, cell_at(making, at), &text, &len, &place);
		if (making->integers)
			making->integers[at] = place;
		else if (!error)
			error = pfs_made_texts_put(texts, making->running->run, &making->cells[at],
						   text, len);
	}
	pfs_text_room_finish(&applying.room);
	return error;
}

/* Copies the piece's cells to the column's. */
static int join_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct making *making = context;
	struct piece *piece = &making->pieces[from / PIECE];
	bool is_heap = making->texts->is_heap;

	(void)worker;
	if (is_heap && piece->texts.size)
		memcpy(making->texts->bytes + piece->begins, piece->texts.bytes, piece->texts.size);
	free_texts(&piece->texts, making->running->run);
	for (uint32_t at = (uint32_t)from; at < to; at++) {
		uint32_t *cell = &making->cells[at];

		if (is_there(making, at))
			*cell = is_heap ? *cell + (uint32_t)(piece->begins >> PFS_TEXT_SHIFT)
					: piece->codes[*cell];
	}
	return 0;
}

/* Room for the heaps of all pieces, one behind the other. */
static int place_heaps(struct making *making, size_t n_pieces)
{
	struct pfs_made_texts *texts = making->texts;

	for (size_t i = 0; i < n_pieces; i++) {
		making->pieces[i].begins = texts->size;
		texts->size += making->pieces[i].texts.size;
	}
	if (texts->size >> PFS_TEXT_SHIFT > UINT32_MAX)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_run_alloc_raw(making->running->run, &texts->bytes, texts->size, 1));
	texts->capacity = texts->size;
	return 0;
}

/* Puts the piece's texts into the column's dictionary, in their order: codes are the same however
 * elements are cut. */
static int join_dictionary(struct making *making, struct piece *piece)
{
	const struct pfs_dictionary *of = &piece->texts.dictionary.shown;
	const struct pfs_run *run = making->running->run;

	PFS_TRY(pfs_run_poll(run));
	PFS_TRY(pfs_run_alloc_raw(run, &piece->codes, PIECE, sizeof(*piece->codes)));
	for (uint32_t code = 0; code < of->n; code++) {
		size_t len;
		const uint8_t *text = pfs_dictionary_text(of, code, &len);

		PFS_TRY(pfs_made_texts_put(making->texts, run, &piece->codes[code], text, len));
	}
	return 0;
}

static int make_each(struct making *making, uint32_t n)
{
	const struct pfs_run *run = making->running->run;
	size_t n_pieces = pfs_div_round_up(n, PIECE);
	int error;

	PFS_TRY(pfs_run_alloc(run, &making->pieces, n_pieces, sizeof(*making->pieces)));
	error = pfs_operators_for(run, n, PIECE, making->base ? make_piece : print_piece, making);
	if (!error && making->cells && making->texts->is_heap)
		error = place_heaps(making, n_pieces);
	else if (making->cells)
		for (size_t i = 0; i < n_pieces && !error; i++)
			error = join_dictionary(making, &making->pieces[i]);
	if (!error && making->cells)
		error = pfs_operators_for(run, n, PIECE, join_piece, making);
	for (size_t i = 0; i < n_pieces; i++) {
		free_texts(&making->pieces[i].texts, run);
		pfs_run_free(run, making->pieces[i].codes, PIECE, sizeof(uint32_t));
	}
	pfs_run_free(run, making->pieces, n_pieces, sizeof(*making->pieces));
	return error;
}

/* ---- all elements ---- */

static int spread_codes(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct making *making = context;
	uint32_t n = making->base->dictionary->n;

	(void)worker;
	for (uint32_t at = (uint32_t)from; at < to; at++) {
		uint32_t code = (uint32_t)pfs_cell_integer(making->base, at);

		code = is_there(making, at) && code < n ? code
							: n; /* of what is no row, anything */
		if (making->integers)
			making->integers[at] = making->code_integers[code];
		else
			making->cells[at] = making->code_cells[code];
	}
	return 0;
}

/* Applies the function to each text of a dictionary, once. */
static int make_by_code(struct making *making)
{
	const struct pfs_run *run = making->running->run;
	uint32_t n = making->base->dictionary->n;
	size_t size = making->integers ? sizeof(int64_t) : sizeof(uint32_t);
	struct making codes = *making;
	void *made;
	int error;

	PFS_TRY(pfs_run_alloc(run, &made, (size_t)n + 1, size));
	codes.by_code = true;
	codes.integers = making->code_integers = making->integers ? made : NULL;
	codes.cells = making->code_cells = making->integers ? NULL : made;
	error = make_each(&codes, n);
	if (!error)
		error = pfs_operators_for(run, making->n, PIECE, spread_codes, making);
	pfs_run_free(run, made, (size_t)n + 1, size);
	return error;
}

static int make_values(struct making *making)
{
	const struct pfs_run *run = making->running->run;
	struct pfs_made_texts *texts = making->texts;
	bool is_text = making->term->class == PFS_CLASS_TEXT;

	texts->cells_size =
		(size_t)(making->n + 1) * (is_text ? sizeof(uint32_t) : sizeof(int64_t));
	PFS_TRY(pfs_run_alloc(run, &texts->cells, texts->cells_size, 1));
	making->cells = is_text ? texts->cells : NULL;
	making->integers = is_text ? NULL : texts->cells;
	if (making->base->kind == PFS_KIND_CODE && making->base->dictionary->n <= making->n)
		return make_by_code(making);
	if (is_text)
		PFS_TRY(look_at_sample(making));
	return make_each(making, making->n);
}

/* Gets the bits of the live rows, if not all rows of the table are live. */
static int find_live(struct making *making, struct pfs_running *running)
{
	const struct pfs_table *table = making->table;
	size_t words = (table->n_rows + 63) / 64;

	if (table->fill_live) /* a viewer's, who has no such columns */
		return -EOPNOTSUPP;
	if (!table->live)
		return 0;
	making->live = pfs_arena_get(running->arena, (words + 1) * sizeof(*making->live));
	if (!making->live)
		return -ENOMEM;
	memcpy(making->live, table->live, words * sizeof(*making->live));
	return 0;
}

/* ---- columns ---- */

/* Where the texts are freed when the statement's block has run. */
static int open_texts(struct making *making)
{
	struct pfs_run_context *context = making->running->context;
	struct pfs_made_texts *texts = pfs_arena_get(context->arena, sizeof(*texts));

	if (!texts)
		return -ENOMEM;
	texts->next = context->made;
	context->made = texts;
	making->texts = texts;
	return pfs_dictionary_begin(&texts->dictionary);
}

static const struct pfs_heap *heap_of(struct pfs_made_texts *texts)
{
	texts->heap = pfs_heap_of(texts->bytes, texts->size);
	return &texts->heap;
}

static struct pfs_table_column column_of(const struct making *making)
{
	struct pfs_made_texts *texts = making->texts;
	struct pfs_table_column column = *making->base;

	column.data = texts->cells;
	column.data_stamps = NULL;
	column.shift = 0;
	column.mask = 0;
	column.base = 0;
	column.unique = false;
	column.dictionary = NULL;
	column.heap = NULL;
	column.is_signed = making->integers != NULL;
	column.width = making->integers ? sizeof(int64_t) : sizeof(uint32_t);
	column.kind = making->integers ? PFS_KIND_INTEGER
		      : texts->is_heap ? PFS_KIND_PLACE
				       : PFS_KIND_CODE;
	if (column.kind == PFS_KIND_PLACE) {
		column.heap = heap_of(texts);
	} else if (column.kind == PFS_KIND_CODE) {
		column.dictionary = &texts->dictionary.shown;
	}
	return column;
}

static int make(struct pfs_running *running, struct pfs_table_column *out,
		const struct pfs_term *term, const struct pfs_table *table)
{
	struct making making = {.running = running, .term = term, .table = table};
	int error;

	making.base = &table->columns[pfs_stage_column(&running->stage, term->args[0])];
	making.n = making.base->via ? making.base->n_elements : table->n_rows;
	if (making.base->kind != PFS_KIND_CODE && making.base->kind != PFS_KIND_PLACE)
		return -EOPNOTSUPP;
	if (!making.base->via || making.base->kind == PFS_KIND_PLACE)
		PFS_TRY(find_live(&making, running));
	PFS_TRY(open_texts(&making));
	error = make_values(&making);
	if (!error)
		*out = column_of(&making);
	return error;
}

int pfs_running_texts(struct pfs_running *running, unsigned input)
{
	const struct pfs_block *block = running->block;
	struct pfs_table *table = &running->tables[input];
	struct pfs_table_column *columns;
	uint32_t n = table->n_columns;

	for (size_t i = 0; i < block->n_made; i++)
		n += block->inputs[block->made[i]->input].parent_of == input;
	if (n == table->n_columns)
		return 0;
	columns = pfs_arena_get(running->arena, n * sizeof(*columns));
	if (!columns)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n_columns; i++)
		columns[i] = table->columns[i];
	table->columns = columns;
	for (size_t i = 0; i < block->n_made; i++) {
		if (block->inputs[block->made[i]->input].parent_of != input)
			continue;
		PFS_TRY(make(running, &columns[table->n_columns], block->made[i], table));
		table->n_columns++;
	}
	return 0;
}

int pfs_running_print(struct pfs_running *running, struct pfs_vector *vector,
		      const struct pfs_printing *printing)
{
	struct making making = {.running = running, .printing = printing};
	struct pfs_vector printed;
	bool done;
	int error;

	if (vector->n > PFS_ROWS_MAX || !pfs_printing_takes(printing))
		return -EOPNOTSUPP;
	making.n = (uint32_t)vector->n;
	PFS_TRY(open_texts(&making));
	PFS_TRY(pfs_vector_make(running->run, &printed, PFS_KIND_CODE, vector->n));
	making.cells = printed.codes;
	error = pfs_running_print_codes(running, &done, making.cells, making.texts, printing);
	if (!error && !done)
		error = look_at_sample(&making);
	if (!error && !done)
		error = make_each(&making, making.n);
	if (error) {
		pfs_vector_free(running->run, &printed);
		return error;
	}
	pfs_vector_free(running->run, vector);
	if (making.texts->is_heap) {
		printed.kind = PFS_KIND_PLACE;
		printed.heap = heap_of(making.texts);
	} else {
		printed.dictionary = &making.texts->dictionary.shown;
	}
	*vector = printed;
	return 0;
}

void pfs_made_texts_free(struct pfs_run_context *context)
{
	for (struct pfs_made_texts *made = context->made; made; made = made->next) {
		pfs_run_free(context->run, made->cells, made->cells_size, 1);
		free_texts(made, context->run);
	}
	context->made = NULL;
}
