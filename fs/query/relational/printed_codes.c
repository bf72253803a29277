/* SPDX-License-Identifier: MIT */
/* Integers that lie close together and repeat are printed once each: what is printed are codes of a
 * dictionary, found by number. */
#include "fs/query/relational/printed.h"
#include "fs/query/relational/run.h"

#include "base/checked.h"

#define PIECE	   (1u << 15) /* rows */
#define SLOTS_MOST 2	      /* for each row */
#define MANY_TIMES 4	      /* how often a number is there, at least, in the mean */

struct coding {
	struct pfs_running *running;
	const struct pfs_printing *printing;
	struct pfs_made_texts *texts;
	int64_t least;
	uint32_t n_slots; /* one for each number from `least` on */
	uint32_t *slots;  /* 1: some row has the number; later its code */
	uint32_t *cells;
};

static int64_t number_at(const struct coding *coding, uint64_t at)
{
	const struct pfs_vector *numbers = &coding->printing->values[0];

	return pfs_vector_is_null(numbers, at) ? 0 : numbers->integers[at]; /* as it is printed */
}

static uint32_t *slot_of(const struct coding *coding, uint64_t at)
{
	return &coding->slots[(uint64_t)number_at(coding, at) - (uint64_t)coding->least];
}

/* Finds the least number, and how many slots there are; none if they would be too many. */
static int find_slots(struct coding *coding, uint64_t n)
{
	int64_t least = n ? number_at(coding, 0) : 0, most = least;

	for (uint64_t at = 0; at < n; at++) {
		int64_t number = number_at(coding, at);

		least = PFS_MIN(least, number);
		most = PFS_MAX(most, number);
		if (at % PIECE && at + 1 < n)
			continue;
		PFS_TRY(pfs_run_poll(coding->running->run));
		if ((uint64_t)most - (uint64_t)least >= PFS_MIN(SLOTS_MOST * n, UINT32_MAX))
			return 0;
	}
	coding->least = least;
	coding->n_slots = (uint32_t)((uint64_t)most - (uint64_t)least) + 1;
	return 0;
}

static int note_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct coding *coding = context;

	(void)worker;
	for (uint64_t at = from; at < to; at++)
		__atomic_store_n(slot_of(coding, at), 1, __ATOMIC_RELAXED);
	return 0;
}

static int give_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct coding *coding = context;

	(void)worker;
	for (uint64_t at = from; at < to; at++)
		coding->cells[at] = *slot_of(coding, at);
	return 0;
}

static int repeat_often(bool *often, const struct coding *coding, uint64_t n)
{
	uint64_t found = 0;

	for (uint32_t slot = 0; slot < coding->n_slots; slot++) {
		if (slot % PIECE == 0)
			PFS_TRY(pfs_run_poll(coding->running->run));
		found += coding->slots[slot];
	}
	*often = found * MANY_TIMES <= n;
	return 0;
}

/* Different integers are printed as different texts, whatever the flags and the width. */
static int print_slots(struct coding *coding)
{
	int64_t number;
	const struct pfs_printing one = {
		.format = coding->printing->format,
		.values = {{.kind = PFS_KIND_INTEGER, .integers = &number, .n = 1}}};
	struct pfs_text_buffer out = {.bytes = NULL};
	int error = 0;

	coding->texts->are_new = true;
	for (uint32_t slot = 0; slot < coding->n_slots && !error; slot++) {
		if (slot % PIECE == 0)
			error = pfs_run_poll(coding->running->run);
		if (!coding->slots[slot] || error)
			continue;
		number = (int64_t)((uint64_t)coding->least + slot);
		error = pfs_printing_row(&one, &out, 0);
		if (!error)
			error = pfs_made_texts_put(coding->texts, coding->running->run,
						   &coding->slots[slot], out.bytes, out.size);
	}
	free(out.bytes);
	return error;
}

static int print_coded(bool *done, struct coding *coding, uint64_t n)
{
	const struct pfs_run *run = coding->running->run;

	PFS_TRY(pfs_operators_for(run, n, PIECE, note_piece, coding));
	PFS_TRY(repeat_often(done, coding, n));
	if (!*done)
		return 0;
	PFS_TRY(print_slots(coding));
	return pfs_operators_for(run, n, PIECE, give_piece, coding);
}

static bool is_of_integers(const struct pfs_printing *printing)
{
	const struct pfs_sql_format *format = printing->format;
	bool is = format->n_values == 1 && printing->values[0].kind == PFS_KIND_INTEGER;

	for (size_t i = 0; i < format->n_pieces && is; i++)
		is = format->pieces[i].what == PFS_SQL_AS_IS ||
		     format->pieces[i].what == PFS_SQL_AS_INTEGER;
	return is;
}

int pfs_running_print_codes(struct pfs_running *running, bool *done, uint32_t *cells,
			    struct pfs_made_texts *texts, const struct pfs_printing *printing)
{
	struct coding coding = {.running = running, .printing = printing, .texts = texts};
	uint64_t n = printing->values[0].n;
	int error;

	*done = false;
	coding.cells = cells;
	if (!is_of_integers(printing))
		return 0;
	PFS_TRY(find_slots(&coding, n));
	if (!coding.n_slots)
		return 0;
	PFS_TRY(pfs_run_alloc(running->run, &coding.slots, coding.n_slots, sizeof(*coding.slots)));
	error = print_coded(done, &coding, n);
	pfs_run_free(running->run, coding.slots, coding.n_slots, sizeof(*coding.slots));
	return error;
}
