/* SPDX-License-Identifier: MIT */
/* Functions of windows: the source is sorted, a bit tells where a partition and one where other
 * peers begin, and each function goes through the tuples once. */
#include "gpu/window.h"

#include "base/checked.h"
#include "gpu/aggregate.h"
#include "gpu/host/families.h"
#include "gpu/host/order.h"
#include "gpu/host/positions.h"

/* ---- where what begins ---- */

struct marking {
	const struct pfs_sorting *sorting;
	const struct pfs_positions *sorted;
	size_t n_partition;
	uint64_t *partitions, *peers; /* a bit for each tuple */
};

/* Sets the bits of a span's tuples whose key is not that of the tuple before. */
static void mark_key(const struct marking *m, const struct pfs_order_key *key, uint64_t *bits,
		     uint64_t at, const struct pfs_span *span)
{
	uint64_t numbers[PFS_SPAN];
	struct pfs_cells cells;
	bool is_exact = pfs_order_numbers(key, span, numbers, &cells);

	for (uint32_t i = 0; i < span->n; i++) {
		bool differs = i && numbers[i] != numbers[i - 1];

		if (!differs && at + i && (!i || !is_exact))
			differs = pfs_order_compare_by(key, m->sorted->at[at + i - 1],
						       m->sorted->at[at + i]) != 0;
		bits[(at + i) / 64] |= (uint64_t)differs << (at + i) % 64;
	}
}

static int mark_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct marking *m = context;

	(void)worker;
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		struct pfs_span span;

		pfs_positions_span(m->sorted, &span, at, to);
		for (size_t i = 0; i < m->sorting->n_keys; i++)
			mark_key(m, &m->sorting->keys[i],
				 i < m->n_partition ? m->partitions : m->peers, at, &span);
		for (uint64_t word = at / 64; word <= (at + span.n - 1) / 64; word++)
			m->peers[word] |= m->partitions[word];
	}
	return 0;
}

/* ---- functions ---- */

struct fold {
	const struct pfs_run *run;
	const struct pfs_window_function *function;
	const uint64_t *partitions, *peers;
	uint64_t n;
	struct pfs_vector in; /* the argument's values, in order */
	struct pfs_vector *out;
	uint64_t partition, peer; /* where the tuple's partition and its peers begin */
	/* of the partition up to the tuple: */
	int64_t ranks, values, sum, least, greatest;
	uint64_t magnitude; /* the sum of absolute values, as far as it fits */
};

static void set_null(struct fold *f, uint64_t i)
{
	f->out->nulls[i / 64] |= UINT64_C(1) << i % 64;
	f->out->integers[i] = 0;
}

static void begin_partition(struct fold *f, uint64_t at)
{
	f->partition = at;
	f->ranks = f->values = f->sum = 0;
	f->magnitude = 0;
	f->least = INT64_MAX;
	f->greatest = INT64_MIN;
}

static int add(struct fold *f, uint64_t i)
{
	int64_t value = f->in.integers[i];

	if (pfs_vector_is_null(&f->in, i))
		return 0;
	f->values++;
	f->least = PFS_MIN(f->least, value);
	f->greatest = PFS_MAX(f->greatest, value);
	if (f->function->op != PFS_WINDOW_SUM && f->function->op != PFS_WINDOW_AVG)
		return 0;
	if (__builtin_add_overflow(f->sum, value, &f->sum))
		return -EOPNOTSUPP;
	f->magnitude += value < 0 ? -(uint64_t)value : (uint64_t)value;
	return f->function->op == PFS_WINDOW_AVG && f->magnitude > PFS_REAL_EXACT ? -EOPNOTSUPP : 0;
}

/* Gives tuples from..to, which are peers, what the partition up to the last of them has. */
static void give(struct fold *f, uint64_t from, uint64_t to)
{
	int64_t value = f->values;

	switch (f->function->op) {
	case PFS_RANK:
		value = (int64_t)(from - f->partition) + 1;
		break;
	case PFS_DENSE_RANK:
		value = ++f->ranks;
		break;
	case PFS_WINDOW_TUPLES:
		value = (int64_t)(to - f->partition);
		break;
	case PFS_WINDOW_SUM:
		value = f->sum;
		break;
	case PFS_WINDOW_MIN:
		value = f->least;
		break;
	case PFS_WINDOW_MAX:
		value = f->greatest;
		break;
	default: /* count; and avg, which gives reals */
		break;
	}
	for (uint64_t i = from; i < to; i++) {
		if (f->function->op > PFS_WINDOW_COUNT && !f->values)
			set_null(f, i);
		else if (f->function->op == PFS_WINDOW_AVG)
			f->out->reals[i] = (double)f->sum / (double)f->values;
		else
			f->out->integers[i] = value;
	}
}

/* Calls poll from time to time. */
static int look(const struct fold *f, uint64_t i)
{
	return i % PFS_PIECE ? 0 : pfs_run_poll(f->run);
}

static int fold_peers(struct fold *f)
{
	bool has_values = f->in.data != NULL;

	for (uint64_t i = 0; i < f->n; i++) {
		if (pfs_bit(f->peers, i)) {
			give(f, f->peer, i);
			f->peer = i;
		}
		if (!i || pfs_bit(f->partitions, i))
			begin_partition(f, i);
		if (has_values)
			PFS_TRY(add(f, i));
		PFS_TRY(look(f, i));
	}
	give(f, f->peer, f->n);
	return 0;
}

static int number_rows(struct fold *f)
{
	for (uint64_t i = 0; i < f->n; i++) {
		if (pfs_bit(f->partitions, i))
			f->partition = i;
		f->out->integers[i] = (int64_t)(i - f->partition) + 1;
		PFS_TRY(look(f, i));
	}
	return 0;
}

/* Calls give_all for each partition. */
static int each_partition(struct fold *f,
			  void (*give_all)(struct fold *f, uint64_t from, uint64_t to))
{
	for (uint64_t i = 0; i < f->n; i++) {
		if (pfs_bit(f->partitions, i)) {
			give_all(f, f->partition, i);
			f->partition = i;
		}
		PFS_TRY(look(f, i));
	}
	give_all(f, f->partition, f->n);
	return 0;
}

/* Numbers the parts of a partition. The larger ones come first. */
static void give_parts(struct fold *f, uint64_t from, uint64_t to)
{
	uint64_t n = to - from, parts = (uint64_t)f->function->distance, size = n / parts,
		 large = n % parts;
	uint64_t in_large = large * (size + 1);

	for (uint64_t i = 0; i < n; i++)
		f->out->integers[from + i] =
			(int64_t)(i < in_large ? i / (size + 1) : large + (i - in_large) / size) +
			1;
}

/* Gives each tuple of a partition the value of the one `distance` before or after it. */
static void shift(struct fold *f, uint64_t from, uint64_t to)
{
	uint64_t distance = (uint64_t)f->function->distance;
	bool is_lag = f->function->op == PFS_LAG;

	for (uint64_t i = from; i < to; i++) {
		uint64_t left = is_lag ? i - from : to - 1 - i;
		uint64_t of = is_lag ? i - distance : i + distance;

		if (left < distance || pfs_vector_is_null(&f->in, of))
			set_null(f, i);
		else
			f->out->integers[i] = f->in.integers[of];
	}
}

static int fold_all(struct fold *f)
{
	switch (f->function->op) {
	case PFS_ROW_NUMBER:
		return number_rows(f);
	case PFS_NTILE:
		return each_partition(f, give_parts);
	case PFS_LAG:
	case PFS_LEAD:
		return each_partition(f, shift);
	default:
		return fold_peers(f);
	}
}

/* ---- the operator ---- */

static int compute(struct fold *f, struct pfs_operator_backend *b, const struct pfs_tuples *tuples)
{
	const struct pfs_source sorted = {.tuples = (struct pfs_tuples *)tuples};
	enum pfs_kind kind = f->function->op == PFS_WINDOW_AVG ? PFS_KIND_REAL : PFS_KIND_INTEGER;
	int error = 0;

	if (pfs_window_traits[f->function->op].has_argument)
		PFS_TRY(pfs_host_gather_column(b, f->run, &f->in, &sorted, f->function->ref));
	if (f->in.data && f->in.kind != PFS_KIND_INTEGER)
		error = -EOPNOTSUPP;
	if (!error)
		error = pfs_vector_make(f->run, f->out, kind, f->n);
	if (!error)
		error = pfs_vector_make_bits(f->run, &f->out->nulls, f->n);
	if (!error && f->n)
		error = fold_all(f);
	if (!error)
		pfs_vector_trim(f->run, f->out);
	pfs_vector_free(f->run, &f->in);
	return error;
}

static int add_functions(struct pfs_operator_backend *b, const struct pfs_run *run,
			 struct pfs_tuples *tuples, size_t first, const struct pfs_window *window,
			 const struct marking *marks)
{
	int error = 0;

	for (size_t i = 0; i < window->n_functions && !error; i++) {
		struct fold fold = {
			.run = run,
			.function = &window->functions[i],
			.partitions = marks->partitions,
			.peers = marks->peers,
			.n = tuples->n,
			.out = &tuples->computed[first + i],
		};

		error = compute(&fold, b, tuples);
	}
	return error;
}

/* Runs the window over sorted tuples. An empty source has an empty result. */
static int run_sorted(struct pfs_operator_backend *b, struct marking *m, struct pfs_tuples **out,
		      const struct pfs_source *source, const struct pfs_window *window)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	const struct pfs_run *run = m->sorting->run;
	uint64_t n = m->sorted->n;
	size_t words = (size_t)pfs_div_round_up(n, 64);
	int error = pfs_run_alloc(run, &m->partitions, words, sizeof(*m->partitions));

	if (!error)
		error = pfs_run_alloc(run, &m->peers, words, sizeof(*m->peers));
	if (!error)
		error = pfs_host_for(host, run, n, PFS_PIECE, mark_piece, m);
	if (!error)
		error = pfs_host_batch(host, run, out, source, m->sorted, window->n_functions);
	if (!error)
		error = add_functions(b, run, *out, pfs_source_computed(source), window, m);
	pfs_run_free(run, m->partitions, words, sizeof(*m->partitions));
	pfs_run_free(run, m->peers, words, sizeof(*m->peers));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

int pfs_host_window(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_tuples **out, const struct pfs_source *source,
		    const struct pfs_window *window)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct pfs_positions positions, sorted = {0};
	struct pfs_sorting sorting;
	struct marking marking = {
		.sorting = &sorting, .sorted = &sorted, .n_partition = window->n_partition};
	int error;

	*out = NULL;
	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	error = pfs_sorting_open(&sorting, host, run, source, &positions, window->keys,
				 window->n_keys);
	if (!error)
		error = pfs_sort_all(&sorting, &sorted.at, positions.n);
	if (!error) {
		sorted.n = positions.n;
		error = run_sorted(b, &marking, out, source, window);
		pfs_run_free(run, sorted.at, positions.n, sizeof(*sorted.at));
	}
	pfs_sorting_close(&sorting);
	pfs_positions_close(run, &positions);
	return error;
}
