/* SPDX-License-Identifier: MIT */
/* Sixteen readers beside four writers: each answer is what a model of the tree says, in which the
 * changes up to the answer's epoch were made again, one after the other. */
#include <inttypes.h>
#include <pthread.h>

#include "tests/unit/query_util.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "fs/image/hold.h"
#include "fs/query/internal.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"

#define READERS	    16
#define WRITERS	    4
#define DIRECTORIES 3
#define FILES	    40
#define CHANGES	    (1u << 20)
#define TEXT	    (1u << 16)

/* ---- the model ---- */

/* What a file is like; the same file may be removed and made again. */
struct file {
	int64_t size;
	uint8_t directory;
	bool is_there;
};

/* One change: the file is like that from this epoch on. */
struct change {
	uint64_t epoch;
	unsigned file;
	struct file now;
};

static uint64_t directories[DIRECTORIES]; /* their numbers, from the smallest on */
static struct file files[FILES];	  /* now; protected by the lock, as the changes are */
static struct change *changes;
static _Atomic unsigned n_changes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool stop;
static _Atomic unsigned wrong, frozen, asked;

static void name_of(char out[8], unsigned file)
{
	(void)snprintf(out, 8, "f%02u", file);
}

static void replay(struct file out[FILES], uint64_t epoch)
{
	unsigned n;
	PFS_LOCKED(&lock); /* what was seen is noted by now */

	n = atomic_load(&n_changes);
	memset(out, 0, FILES * sizeof(*out));
	for (unsigned i = 0; i < n && changes[i].epoch <= epoch; i++)
		out[changes[i].file] = changes[i].now;
}

/* ---- what is asked, and what the model answers ---- */

static size_t put(char *text, size_t len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static size_t put(char *text, size_t len, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	len += (size_t)vsnprintf(text + len, TEXT - len, format, list);
	va_end(list);
	return len;
}

static void by_name(char *text, const struct file *at)
{
	char name[8];
	size_t len = 0;

	for (unsigned i = 0; i < FILES; i++) {
		name_of(name, i);
		if (at[i].is_there)
			len = put(text, len, "%s|%" PRId64 "|%" PRIu64 "|\n", name, at[i].size,
				  directories[at[i].directory]);
	}
}

static void by_directory(char *text, const struct file *at)
{
	size_t len = 0;

	for (unsigned d = 0; d < DIRECTORIES; d++) {
		int64_t n = 0, size = 0;

		for (unsigned i = 0; i < FILES; i++) {
			bool in = at[i].is_there && at[i].directory == d;

			n += in;
			size += in ? at[i].size : 0;
		}
		if (n)
			len = put(text, len, "%" PRIu64 "|%" PRId64 "|%" PRId64 "|\n",
				  directories[d], n, size);
	}
}

static void by_path(char *text, const struct file *at)
{
	char name[8];
	size_t len = 0;

	for (unsigned d = 0; d < DIRECTORIES; d++)
		for (unsigned i = 0; i < FILES; i++) {
			name_of(name, i);
			if (at[i].is_there && at[i].directory == d)
				len = put(text, len, "/%c/%s|\n", 'x' + (int)d, name);
		}
}

/* The place of each by size, and by name where sizes are the same. */
static void by_rank(char *text, const struct file *at)
{
	char name[8];
	size_t len = 0;

	for (unsigned i = 0; i < FILES; i++) {
		unsigned place = 1;

		for (unsigned j = 0; j < FILES; j++)
			place += at[j].is_there &&
				 (at[j].size < at[i].size || (at[j].size == at[i].size && j < i));
		name_of(name, i);
		if (at[i].is_there)
			len = put(text, len, "%s|%u|\n", name, place);
	}
}

static void pairs(char *text, const struct file *at)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < FILES; i++)
		for (unsigned j = 0; j < FILES; j++)
			n += at[i].is_there && at[j].is_there && at[i].size == at[j].size;
	(void)put(text, 0, "%" PRIu64 "|\n", n);
}

static const struct {
	const char *sql;
	void (*model)(char *text, const struct file *at);
} questions[] = {
	{"SELECT name, size, parent FROM nodes WHERE name GLOB 'f*' ORDER BY name", by_name},
	{"SELECT parent, count(*), sum(size) FROM nodes WHERE name GLOB 'f*' GROUP BY parent ORDER "
	 "BY parent",
	 by_directory},
	{"SELECT path FROM nodes WHERE name GLOB 'f*' ORDER BY path", by_path},
	{"SELECT name, row_number() OVER (ORDER BY size, name) FROM nodes WHERE name GLOB 'f*' "
	 "ORDER BY name",
	 by_rank},
	{"SELECT count(*) FROM nodes a JOIN nodes b ON a.size = b.size WHERE a.name GLOB 'f*' AND "
	 "b.name GLOB 'f*'",
	 pairs},
	/* by SQLite */
	{"SELECT name, CAST(printf('%d', size) AS INTEGER), parent FROM nodes WHERE name GLOB 'f*' "
	 "ORDER BY name",
	 by_name},
};

/* ---- writers ---- */

static int change_file(unsigned file, struct file *now, uint64_t *state)
{
	char name[8];
	struct pfs_entry entry;
	uint64_t directory = directories[now->directory];
	unsigned to = random_below(state, DIRECTORIES);
	struct stat attr = {.st_size = random_below(state, 20)};
	int failed;

	name_of(name, file);
	if (!now->is_there) {
		*now = (struct file){.directory = (uint8_t)to, .is_there = true};
		return temp_tree_make(tree, directories[to], name, S_IFREG | 0644) ? 0 : -EIO;
	}
	switch (random_below(state, 4)) {
	case 0:
		now->is_there = false;
		return pfs_tree_unlink(tree, directory, name);
	case 1:
		now->directory = (uint8_t)to;
		return pfs_tree_rename(tree, directory, name, directories[to], name, 0);
	default:
		now->size = attr.st_size;
		failed = pfs_tree_lookup(tree, &entry, directory, name);
		if (failed)
			return failed;
		failed = pfs_tree_setattr(tree, &entry, entry.attr.st_ino, &attr, PFS_SET_SIZE,
					  &temp_root);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
		return failed;
	}
}

/* One at a time, so that it is known in what order they came; but the tree's lock is everybody's.
 */
static int change_one(uint64_t *state)
{
	unsigned file = random_below(state, FILES), n;
	int failed;
	PFS_LOCKED(&lock);

	failed = change_file(file, &files[file], state);
	if (failed)
		return failed;
	n = atomic_load(&n_changes);
	pfs_hold_read(tree, __func__);
	changes[n] = (struct change){.epoch = tree->image.epoch, .file = file, .now = files[file]};
	pfs_hold_end(tree);
	atomic_store(&n_changes, n + 1);
	return 0;
}

static void *write_all_the_time(void *arg)
{
	uint64_t *state = arg;

	while (!atomic_load(&stop) && atomic_load(&n_changes) < CHANGES - WRITERS) {
		if (change_one(state)) {
			wrong++;
			break;
		}
		(void)usleep(100);
	}
	return NULL;
}

/* ---- readers ---- */

struct reader {
	pthread_t thread;
	unsigned number, rounds;
	char answer[TEXT], expected[TEXT];
	struct pfs_query_error error;
};

static int read_rows(struct reader *reader, struct pfs_query *query)
{
	int got;

	*reader->answer = 0;
	while ((got = pfs_query_next(query, &reader->error)) == 1 || got == -EAGAIN) {
		if (got == -EAGAIN) { /* from the first row again, over a frozen tree */
			*reader->answer = 0;
			continue;
		}
		for (size_t i = 0; i < pfs_query_columns(query); i++) {
			append_value(reader->answer, TEXT, query, i);
			(void)put(reader->answer, strlen(reader->answer), "|");
		}
		(void)put(reader->answer, strlen(reader->answer), "\n");
	}
	return got;
}

static void ask(struct reader *reader, size_t question)
{
	const char *sql = questions[question].sql;
	struct file at[FILES];
	struct pfs_query *query;
	unsigned seen;
	int got = pfs_query_start(&query, queries, &scope, sql, strlen(sql), &reader->error);

	if (!got && reader->number % 2)
		got = pfs_query_freeze(query);
	if (!got) {
		for (seen = atomic_load(&n_changes);
		     atomic_load(&n_changes) == seen && !atomic_load(&wrong);)
			(void)usleep(100); /* the tree changes under it */
		query->piece = 10;
		got = read_rows(reader, query);
		replay(at, pfs_query_epoch(query));
		frozen += query->frozen != NULL;
		asked++;
		pfs_query_finish(query);
	}
	if (got) {
		wrong++;
		print_message("%s: %d, %s\n", sql, got, reader->error.text);
		return;
	}
	*reader->expected = 0;
	questions[question].model(reader->expected, at);
	if (strcmp(reader->answer, reader->expected) != 0) {
		wrong++;
		print_message("%s:\n%s, not\n%s\n", sql, reader->answer, reader->expected);
	}
}

static void *ask_all(void *arg)
{
	struct reader *reader = arg;

	for (unsigned i = 0; i < reader->rounds * PFS_COUNT(questions) && !atomic_load(&wrong); i++)
		ask(reader, (i + reader->number) % PFS_COUNT(questions));
	return NULL;
}

static void test_answers_are_of_their_epoch(void **state PFS_UNUSED)
{
	static const struct pfs_thread_kind kind = {"reader", 0, PFS_THREAD_STACK};
	static struct reader readers[READERS];
	static uint64_t seeds[WRITERS] = {1, 2, 3, 4};
	pthread_t writers[WRITERS];
	char name[2] = "x";

	changes = calloc(CHANGES, sizeof(*changes));
	assert_non_null(changes);
	for (unsigned i = 0; i < DIRECTORIES; i++, name[0]++)
		directories[i] = make(PFS_ROOT_PRIME, name, S_IFDIR | 0755);
	for (unsigned i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, write_all_the_time, &seeds[i]),
				 0);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i].number = i;
		readers[i].rounds = getenv("PFS_TEST_SMALL") ? 1 : 3;
		assert_int_equal(pfs_thread_start(&readers[i].thread, &kind, ask_all, &readers[i]),
				 0);
	}
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(writers[i], NULL), 0);
	print_message("%u of %u answers are of a frozen tree, beside %u changes\n",
		      atomic_load(&frozen), atomic_load(&asked), atomic_load(&n_changes));
	assert_int_equal(atomic_load(&wrong), 0);
	free(changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers_are_of_their_epoch, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
