/* SPDX-License-Identifier: MIT */
/* Each statement of tests/query/statements.sql is answered while writers change the tree, and has
 * the answer that a second store, to which the changes up to the answer's epoch were made again,
 * gives to it while it stands still. PFS_LONG=1: many rounds, or so many; PFS_TEST_SEED: another
 * seed. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/random_tree_util.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "fs/image/hold.h"
#include "fs/query/internal.h"
#include "fs/tree/tree_impl.h"

#define CORPUS	    "tests/query/statements.sql"
#define READERS	    4
#define WRITERS	    2
#define DIRECTORIES 16
#define CHANGES	    (1u << 17) /* in a round */
#define ROUNDS_LONG 20

/* ---- two stores, and what is done to them ---- */

struct place {
	struct temp_store store;
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	uint64_t directories[DIRECTORIES]; /* their numbers, the root's first; some may be gone */
};

/* It does the same to each place that is in the same state. */
struct change {
	uint64_t seed, clock;
	uint64_t before, after; /* epochs: an answer up to the one is without it, and from the other
				   on has it */
	int64_t result; /* a negative errno, or the number of what was made or of rows that were
			   changed */
};

static struct place live, second;
static struct change *changes; /* of this round; protected by lock */
static _Atomic unsigned n_changes, n_failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool stop;
static _Atomic uint64_t
	clock_now; /* s; a change stamps what the same change of the other place does */
static _Thread_local uint64_t at_time; /* 0: as it is */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	if (!at_time || id != CLOCK_REALTIME_COARSE)
		return __real_clock_gettime(id, out);
	*out = (struct timespec){.tv_sec = (time_t)at_time};
	return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static const struct pfs_query_scope all = {
	.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};

static int64_t run_statement(struct place *place, uint64_t *state, uint64_t directory)
{
	static const char *const forms[][2] = {
		{"UPDATE nodes SET size = size + 1 WHERE type = 'f' AND name GLOB 'f", "*'"},
		{"UPDATE nodes SET tag = 'red' WHERE size > 100 AND depth = ", ""},
		{"UPDATE nodes SET mode = 384 WHERE type = 'f' AND depth = ", ""},
	};
	const char *const *form = forms[random_below(state, PFS_COUNT(forms))];
	struct pfs_query_error error;
	struct pfs_query *query;
	char sql[128];
	int64_t n;

	if (random_below(state, 8) == 0 && directory != PFS_ROOT_PRIME)
		(void)snprintf(sql, sizeof(sql), "DELETE FROM nodes WHERE under(ino, %llu)",
			       (unsigned long long)directory);
	else
		(void)snprintf(sql, sizeof(sql), "%s%u%s", form[0], random_below(state, 6),
			       form[1]);
	n = pfs_query_start(&query, place->queries, &all, sql, strlen(sql), &error);
	if (n)
		return n;
	n = (int64_t)pfs_query_changes(query);
	pfs_query_finish(query);
	return n;
}

static int64_t made(struct place *place, const struct pfs_entry *entry, int failed)
{
	if (failed)
		return failed;
	pfs_tree_forget(place->tree, entry->attr.st_ino, 1);
	return (int64_t)entry->attr.st_ino;
}

/* A directory that is gone is made again elsewhere. */
static int64_t make_directory(struct place *place, uint64_t *number, uint64_t parent,
			      const char *name)
{
	struct pfs_entry entry;
	int64_t got;

	if (*number && pfs_tree_getattr(place->tree, &entry, *number) == 0)
		return 0;
	got = made(place, &entry,
		   pfs_tree_make(place->tree, &entry, parent, name, S_IFDIR | 0755, 0, &temp_root));
	if (got > 0)
		*number = (uint64_t)got;
	return got;
}

static int64_t set_one(struct place *place, uint64_t *state, uint64_t parent, const char *name)
{
	static const int64_t sizes[] = {0, 1, 100, 101, 4096, 5000, INT64_C(1) << 33};
	struct stat st = {.st_size = sizes[random_below(state, PFS_COUNT(sizes))],
			  .st_mtim = {.tv_sec = random_below(state, 2000000000)},
			  .st_uid = random_below(state, 3) * 17};
	unsigned set = PFS_SET_MTIME | PFS_SET_UID;
	struct pfs_entry entry;
	int64_t got;

	PFS_TRY(pfs_tree_lookup(place->tree, &entry, parent, name));
	if (random_below(state, 3) == 0)
		got = S_ISLNK(entry.attr.st_mode)
			      ? 0
			      : pfs_tree_setxattr(place->tree, entry.attr.st_ino, "user.size", "7",
						  1, 0);
	else
		got = pfs_tree_setattr(place->tree, &entry, entry.attr.st_ino, &st,
				       set | (S_ISREG(entry.attr.st_mode) ? PFS_SET_SIZE : 0),
				       &temp_root);
	pfs_tree_forget(place->tree, entry.attr.st_ino, 1);
	return got;
}

static void random_name(char out[16], uint64_t *state, const char *kind)
{
	static const char *const ends[] = {"", "", ".c", ".txt", ".01", "\xff"};

	(void)snprintf(out, 16, "%s%u%s", kind, random_below(state, 6),
		       ends[random_below(state, PFS_COUNT(ends))]);
}

static int64_t apply(struct place *place, const struct change *change)
{
	uint64_t random = change->seed, *state = &random;
	unsigned of = random_below(state, DIRECTORIES), kind = random_below(state, 16);
	uint64_t *from = &place->directories[of],
		 to = place->directories[random_below(state, DIRECTORIES)];
	struct pfs_entry entry;
	char name[16], new[16];

	at_time = change->clock;
	random_name(name, state, random_below(state, 6) ? "f" : "d");
	random_name(new, state, *name == 'f' ? "f" : "d");
	if (kind < 4)
		return made(place, &entry,
			    pfs_tree_make(place->tree, &entry, *from, name, S_IFREG | 0644, 0,
					  &temp_root));
	if (kind < 6)
		return make_directory(place, from, to, name);
	if (kind < 7)
		return made(place, &entry,
			    pfs_tree_symlink(place->tree, &entry, *from, name, "d1", &temp_root));
	if (kind < 9)
		return pfs_tree_unlink(place->tree, *from, name);
	if (kind < 12)
		return pfs_tree_rename(place->tree, *from, name, to, new, 0);
	if (kind < 15)
		return set_one(place, state, *from, name);
	return run_statement(place, state, *from);
}

/* One at a time, so that it is known in what order they came; but the tree's lock is everybody's.
 */
static void change_one(uint64_t *state)
{
	unsigned n;
	struct change *change;
	PFS_LOCKED(&lock);

	n = atomic_load(&n_changes);
	change = &changes[n];
	*change = (struct change){.seed = random_next(state), .clock = ++clock_now};
	pfs_hold_read(live.tree, __func__);
	change->before = live.tree->image.epoch;
	pfs_hold_end(live.tree);
	change->result = apply(&live, change);
	n_failed += change->result < 0;
	pfs_hold_read(live.tree, __func__);
	change->after = live.tree->image.epoch;
	pfs_hold_end(live.tree);
	atomic_store(&n_changes, n + 1);
}

static void *write_all_the_time(void *arg)
{
	while (!atomic_load(&stop) && atomic_load(&n_changes) < CHANGES - WRITERS) {
		change_one(arg);
		(void)usleep(200);
	}
	return NULL;
}

/* ---- statements and their answers ---- */

struct statement {
	char *sql;
	bool ordered;
};

struct answer {
	const struct statement *statement;
	bool freeze; /* before its first row */
	bool frozen;
	uint64_t epoch;
	char *text;
};

static struct statement *corpus;
static size_t n_corpus;
static struct answer *answers; /* two of each statement */
static _Atomic size_t n_asked;

/* Left out, as the stores' slots differ: SQL does not say of which row they show a column, or in
 * which order rows come. */
static const char *const left_out[] = {
	/* of those with the least size */
	"SELECT min(size), path FROM nodes WHERE type = 'f' AND size > 3000000",
	/* of a group */
	"SELECT sum(size), ext FROM nodes GROUP BY ext HAVING upper(name) > 'A'",
	/* in the order of slots, or the first of them */
	"SELECT DISTINCT ext, depth FROM nodes ORDER BY depth LIMIT 5",
	"SELECT DISTINCT type, uid, size FROM nodes ORDER BY uid DESC, type LIMIT 9 OFFSET 2",
	"SELECT DISTINCT depth, ext FROM nodes WHERE size >= 0",
	"SELECT DISTINCT ext FROM nodes ORDER BY size, depth LIMIT 6",
	"SELECT * FROM (SELECT DISTINCT depth, ext FROM nodes) LIMIT 4",
	"SELECT DISTINCT ext, size > (SELECT avg(size) FROM nodes) FROM nodes LIMIT 4",
	("SELECT n, t, char(65) FROM (SELECT DISTINCT ext t, depth n FROM nodes ORDER BY n DESC) "
	 "WHERE n > 0 ORDER BY t > 'c' LIMIT 5"),
	("SELECT x.depth, s.ext FROM (SELECT DISTINCT depth FROM nodes) x LEFT JOIN side s "
	 "ON s.n = x.depth LIMIT 4"),
	("SELECT DISTINCT ext, depth FROM nodes WHERE size < (SELECT max(size) FROM nodes) ORDER BY "
	 "depth LIMIT 3"),
};

static bool is_left_out(const char *sql)
{
	for (size_t i = 0; i < PFS_COUNT(left_out); i++)
		if (strcmp(sql, left_out[i]) == 0)
			return true;
	return false;
}

static void read_corpus(void)
{
	FILE *file = fopen(CORPUS, "r");
	size_t capacity = 0, kept = 0, n_left_out = 0;
	char *line = NULL;
	ssize_t len;

	if (!file)
		fail_msg("%s: %s; run this in the folder of the source", CORPUS, strerror(errno));
	while ((len = getline(&line, &capacity, file)) > 0) {
		bool ordered = strncmp(line, "= ", 2) == 0;

		if (line[len - 1] == '\n')
			line[--len] = 0;
		if (len == 0 || strncmp(line, "--", 2) == 0)
			continue;
		if (is_left_out(line + (ordered ? 2 : 0))) {
			n_left_out++;
			continue;
		}
		assert_int_equal(pfs_grow(&corpus, &kept, n_corpus + 1, sizeof(*corpus)), 0);
		corpus[n_corpus] = (struct statement){.sql = strdup(line + (ordered ? 2 : 0)),
						      .ordered = ordered};
		assert_non_null(corpus[n_corpus++].sql);
	}
	free(line);
	(void)fclose(file);
	assert_int_equal(n_left_out, PFS_COUNT(left_out));
	assert_true(n_corpus >= 300);
	answers = calloc(n_corpus * 2 + 1, sizeof(*answers));
	assert_non_null(answers);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct rows {
	char **line;
	size_t n, capacity;
};

static void drop(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->line[i]);
	rows->n = 0;
}

static void add_row(struct rows *rows, const struct pfs_query *query)
{
	size_t size;
	FILE *out;

	if (pfs_grow(&rows->line, &rows->capacity, rows->n + 1, sizeof(*rows->line)))
		abort();
	out = open_memstream(&rows->line[rows->n++], &size);
	for (size_t i = 0; i < pfs_query_columns(query); i++) {
		struct pfs_sql_value value;

		pfs_query_value(query, i, &value);
		if (value.type == PFS_SQL_INTEGER)
			(void)fprintf(out, "i%lld ", (long long)value.integer);
		else if (value.type == PFS_SQL_REAL)
			(void)fprintf(out, "r%.17g ", value.real);
		else if (value.type == PFS_SQL_NULL)
			(void)fputs("- ", out);
		else
			(void)fprintf(out, "%c%zu:%.*s ", value.type == PFS_SQL_TEXT ? 't' : 'b',
				      value.size, (int)value.size, value.bytes);
	}
	(void)fclose(out);
}

/* Fills in the answer's rest; its statement's rows have an order, or are sorted. */
static void ask(struct answer *answer, struct place *place)
{
	const char *sql = answer->statement->sql;
	struct pfs_query_error error = {.error = 0};
	struct rows rows = {.n = 0};
	struct pfs_query *query;
	size_t size;
	FILE *out;
	int got = pfs_query_start(&query, place->queries, &all, sql, strlen(sql), &error);

	if (!got && answer->freeze)
		got = pfs_query_freeze(query);
	if (!got && place == &live)
		query->piece = 10;
	while (!got && ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN)) {
		if (got == 1)
			add_row(&rows, query);
		else /* from the first row again, over a frozen tree */
			drop(&rows);
		got = error.error = 0;
		if (place == &live && rows.n == 5)
			(void)usleep(300); /* the tree changes under it */
	}
	answer->epoch = query ? pfs_query_epoch(query) : 0;
	answer->frozen = query && query->frozen;
	if (!answer->statement->ordered && rows.n)
		qsort(rows.line, rows.n, sizeof(*rows.line), by_text);
	out = open_memstream(&answer->text, &size);
	for (size_t i = 0; i < rows.n; i++)
		(void)fprintf(out, "%s\n", rows.line[i]);
	if (error.error)
		(void)fprintf(out, "%d: %s\n", error.error, error.text);
	(void)fclose(out);
	drop(&rows);
	free(rows.line);
	pfs_query_finish(query);
}

static void *ask_all(void *arg PFS_UNUSED)
{
	for (size_t i; (i = atomic_fetch_add(&n_asked, 1)) < n_corpus * 2;) {
		answers[i] = (struct answer){.statement = &corpus[i % n_corpus],
					     .freeze = i / n_corpus != i % 2};
		ask(&answers[i], &live);
	}
	return NULL;
}

/* ---- the replay ---- */

static void replay(unsigned n)
{
	int64_t result = apply(&second, &changes[n]);

	at_time = 0;
	if (result != changes[n].result)
		fail_msg("change %u, seed %llu: %lld, not %lld as before", n,
			 (unsigned long long)changes[n].seed, (long long)result,
			 (long long)changes[n].result);
}

static bool is_as_second(const struct answer *answer, char **expected)
{
	struct answer its = {.statement = answer->statement};

	free(*expected);
	ask(&its, &second);
	*expected = its.text;
	return strcmp(answer->text, its.text) == 0;
}

static int by_epoch(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;

	return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

/* The committer, which frees slots, moves the epoch, too: between a change's two epochs an answer
 * may have it or not. */
static unsigned compare_all(void)
{
	unsigned done = 0, wrong = 0;
	char *expected = NULL;

	qsort(answers, n_corpus * 2, sizeof(*answers), by_epoch);
	for (size_t i = 0; i < n_corpus * 2; i++) {
		const struct answer *answer = &answers[i];
		bool same;

		while (done < n_changes && changes[done].after <= answer->epoch)
			replay(done++);
		while (!(same = is_as_second(answer, &expected)) && done < n_changes &&
		       changes[done].before < answer->epoch)
			replay(done++);
		wrong += !same;
		if (!same)
			print_message("%s (epoch %llu, %s):\n%.2000s, not\n%.2000s\n",
				      answer->statement->sql, (unsigned long long)answer->epoch,
				      answer->frozen ? "frozen" : "not frozen", answer->text,
				      expected);
		free(answer->text);
	}
	while (done < n_changes)
		replay(done++);
	free(expected);
	return wrong;
}

static unsigned one_round(void)
{
	pthread_t writers[WRITERS], readers[READERS];
	static const struct pfs_thread_kind kind = {.name = "replay",
						    .stack_size = PFS_THREAD_STACK};
	uint64_t seeds[WRITERS];
	unsigned frozen = 0;

	atomic_store(&stop, false);
	atomic_store(&n_changes, 0);
	atomic_store(&n_failed, 0);
	atomic_store(&n_asked, 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		seeds[i] = random_next(&seed);
		assert_int_equal(
			pfs_thread_start(&writers[i], &kind, write_all_the_time, &seeds[i]), 0);
	}
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pfs_thread_start(&readers[i], &kind, ask_all, NULL), 0);
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(readers[i], NULL), 0);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(writers[i], NULL), 0);
	for (size_t i = 0; i < n_corpus * 2; i++)
		frozen += answers[i].frozen;
	print_message("%zu answers, %u of a frozen tree, beside %u changes, of which %u failed\n",
		      n_corpus * 2, frozen, n_changes, n_failed);
	assert_true(n_changes - n_failed > 100);
	return compare_all();
}

static void open_place(struct place *place)
{
	place->tree = temp_tree_open(&place->store);
	assert_int_equal(pfs_queries_open(&place->queries, place->tree), 0);
	place->directories[0] = PFS_ROOT_PRIME;
}

static void close_place(struct place *place)
{
	pfs_queries_close(place->queries);
	temp_tree_close(place->tree);
	temp_store_remove(&place->store);
}

static void test_answers_are_of_their_epoch(void **state PFS_UNUSED)
{
	const char *text = getenv("PFS_LONG");
	unsigned long rounds =
		text ? strtoul(text, NULL, 10) : 0; /* 1 for the long mode, or a number */
	unsigned wrong = 0;

	read_corpus();
	open_random_tree();
	pfs_queries_close(queries);
	temp_tree_close(tree);
	live.store = store;
	temp_store_copy(&live.store, &second.store);
	open_place(&live);
	open_place(&second);
	clock_now = 1700000000;
	changes = calloc(CHANGES, sizeof(*changes));
	assert_non_null(changes);
	for (unsigned long i = 0; i < (rounds == 0 ? 1 : rounds == 1 ? ROUNDS_LONG : rounds); i++)
		wrong += one_round();
	close_place(&live);
	close_place(&second);
	for (size_t i = 0; i < n_corpus; i++)
		free(corpus[i].sql);
	free(corpus);
	free(answers);
	free(changes);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_are_of_their_epoch),
	};

	take_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
