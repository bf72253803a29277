/* SPDX-License-Identifier: MIT */
/* Statements over a frozen tree: the answers are those of the moment when it was frozen, byte for
 * byte, whatever happens to the tree meanwhile; and nobody is held up. */
#include <pthread.h>

#include "tests/unit/query_util.h"

#include "fs/query/internal.h"
#include "fs/tree/frozen.h"
#include "fs/image/hold.h"
#include "meta/account.h"
#include "fs/image/watch.h"

/* ---- a tree with something of everything ---- */

static void fill(unsigned n)
{
	uint64_t directory = PFS_ROOT_PRIME;
	struct pfs_entry entry;
	struct stat attr = {0};
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "n%u.%s", i, i % 3 ? "txt" : "c");
		if (i % 10 == 0) {
			directory = make(i % 50 ? directory : PFS_ROOT_PRIME, name, S_IFDIR | 0755);
			continue;
		}
		if (i % 10 == 1) {
			assert_int_equal(pfs_tree_symlink(tree, &entry, directory, name,
							  "to/somewhere", &temp_root),
					 0);
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
			continue;
		}
		attr.st_size = i * 7;
		attr.st_uid = i % 5;
		attr.st_mtim.tv_sec = 1000 + i;
		if (i % 17 == 2)
			attr.st_mtim.tv_sec = INT64_C(1) << 40;
		assert_int_equal(
			pfs_tree_setattr(tree, &entry, make(directory, name, S_IFREG | 0644), &attr,
					 PFS_SET_SIZE | PFS_SET_UID | PFS_SET_MTIME, &temp_root),
			0);
		if (i % 3 == 0)
			assert_int_equal(pfs_tree_setxattr(tree, entry.attr.st_ino, "user.colour",
							   name, strlen(name), 0),
					 0);
		if (i % 100 == 5)
			assert_int_equal(pfs_tree_setxattr(tree, entry.attr.st_ino, "user.rare",
							   "yes", 3, 0),
					 0);
	}
	assert_int_equal(pfs_tree_sync(tree), 0);
}

/* Each third node that has attributes loses them, each other third gets another one; and times. */
static void upset_attributes(void)
{
	struct pfs_entry entry;
	struct stat attr = {.st_mtim.tv_sec = 7};
	char text[4096], *at = text;
	unsigned i = 0;

	query_text(text, sizeof(text), "SELECT ino FROM nodes WHERE colour IS NOT NULL LIMIT 300");
	for (uint64_t ino; (ino = strtoull(at, &at, 10)); at += *at == ',') {
		if (i % 3 == 0)
			assert_int_equal(pfs_tree_removexattr(tree, ino, "user.colour"), 0);
		else if (i % 3 == 1)
			assert_int_equal(pfs_tree_setxattr(tree, ino, "user.colour", "other", 5, 0),
					 0);
		else
			assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_MTIME,
							  &temp_root),
					 0);
		i++;
	}
	assert_true(i > 100);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.newer", "1", 1, 0), 0);
}

/* Everything becomes another: times, sizes, places, names, and whether it is there. */
static void upset(unsigned n)
{
	struct pfs_entry entry;
	struct stat attr = {.st_size = 5, .st_mtim.tv_sec = 5, .st_uid = 9, .st_mode = 0600};
	char name[32], to[32];
	uint64_t ino;

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "n%u.%s", i, i % 3 ? "txt" : "c");
		(void)snprintf(to, sizeof(to), "other%u", i);
		if (i % 50 == 0) {
			assert_int_equal(
				pfs_tree_rename(tree, PFS_ROOT_PRIME, name, ino_of("/a"), to, 0),
				0);
		} else if (i < 10) {
			ino = ino_of("/a/other0");
			assert_int_equal(pfs_tree_unlink(tree, ino, name), 0);
			(void)make(ino, name, S_IFREG | 0600);
		}
	}
	upset_attributes();
	ino = ino_of("/a/d.c");
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr,
					  PFS_SET_SIZE | PFS_SET_UID | PFS_SET_MTIME | PFS_SET_MODE,
					  &temp_root),
			 0);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "e.tar.gz"), 0);
	(void)make(PFS_ROOT_PRIME, "e.tar.zz", S_IFREG | 0600);
	assert_int_equal(pfs_tree_sync(tree), 0);
}

/* ---- statements ---- */

static const char long_1[] =
	"SELECT name, ext, ino, parent, depth, type, mode, uid, gid, size, blocks, nlink, target, mtime, "
	"atime, ctime, path FROM nodes ORDER BY path";
static const char long_2[] =
	"SELECT path, subtree_count, subtree_size, subtree_blocks, subtree_mtime FROM nodes WHERE type = 'd' "
	"ORDER BY preorder";

static const char *const corpus[] = {
	long_1,
	"SELECT count(*), sum(size), min(mtime), max(ctime) FROM nodes WHERE type = 'f'",
	"SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 1",
	"SELECT uid, depth, count(*) FROM nodes GROUP BY uid, depth ORDER BY 1, 2",
	long_2,
	"SELECT name, row_number() OVER (PARTITION BY uid ORDER BY size, name) FROM nodes ORDER BY ino",
	"SELECT a.name, b.name FROM nodes a JOIN nodes b ON a.parent = b.ino ORDER BY a.ino",
	"SELECT path FROM nodes WHERE under(ino, '/n0.c') ORDER BY path",
	"SELECT path FROM nodes WHERE child_of(ino, '/a') ORDER BY name",
	"SELECT name FROM nodes WHERE name LIKE '%1%.txt' ORDER BY ino",
	"SELECT name FROM nodes WHERE name GLOB 'n2*' AND size > 100 ORDER BY ino",
	"SELECT path FROM nodes WHERE path = '/a/d.c'",
	"SELECT ino_of('/a/b/c.txt'), path_of(ino_of('/e.tar.gz')), common_ancestor('/a/b', '/a/d.c')",
	"SELECT name, target FROM nodes WHERE type = 'l' ORDER BY ino DESC LIMIT 7",
	"SELECT DISTINCT owner, owner_group FROM nodes ORDER BY 1, 2",
	"SELECT name FROM nodes WHERE size > (SELECT avg(size) FROM nodes) ORDER BY size DESC, ino LIMIT 20",
	"SELECT count(*) FROM nodes",
	"SELECT r.* FROM resolve('/a/b/c.txt' || char(10) || '/a/none' || char(10) || '/e.tar.gz') r",
	"SELECT readdir, name FROM nodes WHERE child_of(ino, '/') ORDER BY readdir",
	"SELECT ino, colour, rare FROM nodes ORDER BY ino",
	"SELECT * FROM nodes ORDER BY ino",
	"SELECT colour, count(*) FROM nodes GROUP BY colour ORDER BY 1",
	"SELECT name FROM nodes WHERE colour = name ORDER BY ino",
	"SELECT count(*) FROM nodes a JOIN nodes b USING (colour)",
	"SELECT name, mtime FROM nodes WHERE mtime > '2200-01-01' ORDER BY ino",
};

struct answer {
	char text[1 << 20];
	size_t len;
};

static void add(struct answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void add(struct answer *answer, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	answer->len = strlen(answer->text);
	answer->len += (size_t)vsnprintf(answer->text + answer->len,
					 sizeof(answer->text) - answer->len, format, list);
	va_end(list);
	assert_true(answer->len < sizeof(answer->text));
}

static void add_row(struct answer *answer, const struct pfs_query *query)
{
	for (size_t i = 0; i < pfs_query_columns(query); i++) {
		append_value(answer->text, sizeof(answer->text), query, i);
		add(answer, "|");
	}
	add(answer, "\n");
}

static void finish(struct answer *answer, struct pfs_query *query)
{
	int got;

	*answer->text = 0;
	answer->len = 0;
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN) {
		if (got == -EAGAIN)
			*answer->text = 0;
		else
			add_row(answer, query);
	}
	if (got)
		print_message("%s\n", error.text);
	assert_int_equal(got, 0);
	pfs_query_finish(query);
}

static void test_as_it_was(void **state)
{
	static struct answer before[PFS_COUNT(corpus)], frozen;
	struct pfs_query *running[PFS_COUNT(corpus)];

	(void)state;
	fill(600);
	for (size_t i = 0; i < PFS_COUNT(corpus); i++) {
		finish(&before[i], begin(corpus[i]));
		running[i] = begin(corpus[i]);
		assert_int_equal(pfs_query_freeze(running[i]), 0);
	}
	upset(600);
	for (size_t i = 0; i < PFS_COUNT(corpus); i++) {
		finish(&frozen, running[i]);
		if (strcmp(frozen.text, before[i].text) != 0)
			print_message("%s\n", corpus[i]);
		assert_string_equal(frozen.text, before[i].text);
	}
	/* and what is asked now is answered as it is now */
	finish(&frozen, begin(corpus[0]));
	assert_string_not_equal(frozen.text, before[0].text);
}

/* What is limited to somebody's sight is so on a frozen tree, too. */
static void test_viewers(void **state)
{
	static struct answer before, frozen;
	struct pfs_query *query;
	struct pfs_entry entry;
	struct stat attr = {.st_mode = 0700};

	(void)state;
	assert_int_equal(
		pfs_tree_setattr(tree, &entry, ino_of("/a/b"), &attr, PFS_SET_MODE, &temp_root), 0);
	scope.sees_all = false;
	scope.may_change = false;
	scope.uid = 1234;
	finish(&before, begin("SELECT path, subtree_count, links, link FROM nodes ORDER BY path"));
	assert_null(strstr(before.text, "c.txt"));
	query = begin("SELECT path, subtree_count, links, link FROM nodes ORDER BY path");
	assert_int_equal(pfs_query_freeze(query), 0);
	attr.st_mode = 0755;
	assert_int_equal(
		pfs_tree_setattr(tree, &entry, ino_of("/a/b"), &attr, PFS_SET_MODE, &temp_root), 0);
	finish(&frozen, query);
	assert_string_equal(frozen.text, before.text);
}

/* Each column alone reads no more of the frozen tree than was said that it is made of (PFS_VERIFY
 * ends what does), whoever asks. */
static void test_each_column(void **state)
{
	static const char *const columns[] = {
		"path",		  "name",	   "ext",      "ino",		"parent",
		"depth",	  "type",	   "mode",     "uid",		"gid",
		"owner",	  "owner_group",   "size",     "blocks",	"nlink",
		"link",		  "links",	   "target",   "mtime",		"atime",
		"ctime",	  "readdir",	   "preorder", "subtree_count", "subtree_size",
		"subtree_blocks", "subtree_mtime",
	};
	static const char *const forms[][2] = {
		{"SELECT ", " FROM nodes ORDER BY ino"},
		{"SELECT ino FROM nodes WHERE ", " >= '1970-01-02' ORDER BY ino"},
		{"SELECT ino FROM nodes ORDER BY ", ", ino LIMIT 50"},
		{"SELECT count(*) FROM nodes GROUP BY ", ""},
		{"SELECT count(*) FROM nodes a JOIN nodes b USING (", ")"},
	};
	static struct answer live, frozen;

	(void)state;
	fill(100);
	for (size_t i = 0; i < PFS_COUNT(columns) * PFS_COUNT(forms) * 2; i++) {
		struct pfs_query *query;
		char sql[128];
		const char *const *form = forms[i / 2 % PFS_COUNT(forms)];

		(void)snprintf(sql, sizeof(sql), "%s%s%s", form[0],
			       columns[i / 2 / PFS_COUNT(forms)], form[1]);
		scope.sees_all = i % 2;
		scope.may_change = i % 2;
		scope.uid = i % 2 ? 0 : 1234;
		finish(&live, begin(sql));
		query = begin(sql);
		assert_int_equal(pfs_query_freeze(query), 0);
		finish(&frozen, query);
		assert_string_equal(frozen.text, live.text);
	}
}

/* What cannot be frozen says so. */
static void test_refused(void **state)
{
	struct pfs_query *query;

	(void)state;
	query = begin("SELECT name FROM nodes");
	assert_int_equal(pfs_query_freeze(query), 0);
	assert_int_equal(pfs_query_freeze(query), -EOPNOTSUPP);
	pfs_query_finish(query);
	/* what a frozen tree takes is what all statements together may have */
	query = begin("SELECT name FROM nodes");
	pfs_accounts_limit(pfs_accounts_used() + 1000);
	assert_int_equal(pfs_query_freeze(query), -ENOMEM);
	assert_int_equal(pfs_query_complain(query, &error, -ENOMEM, NULL), -ENOMEM);
	assert_non_null(strstr(error.text, "query_memory_total"));
	pfs_query_finish(query);
	pfs_accounts_limit(0);
	scope.memory_limit = 100000;
	query = begin("SELECT name FROM nodes");
	assert_int_equal(pfs_query_freeze(query), 0);
	pfs_query_finish(query);
	scope.memory_limit = 0;
}

/* ---- beside somebody who changes the tree all the time ---- */

#define FILES 20000

static _Atomic bool stop;
static _Atomic unsigned n_changes;

/* Each step leaves as many nodes as there were, and one of "x" in one of two places. */
static void *change_all_the_time(void *arg)
{
	uint64_t a = ino_of("/a"), b = ino_of("/a/b");

	for (unsigned i = 0; !atomic_load(&stop); i++) {
		if (pfs_tree_rename(tree, i % 2 ? b : a, "x", i % 2 ? a : b, "x", 0))
			return NULL;
		atomic_fetch_add(&n_changes, 1);
		(void)usleep(500);
	}
	return arg;
}

static void test_beside_changes(void **state)
{
	static const char *const statements[] = {
		("SELECT count(*), count(DISTINCT n) FROM (SELECT name, row_number() OVER (ORDER BY size, name) "
		 "AS n FROM nodes)"),
		"SELECT count(*), count(DISTINCT path) FROM (SELECT path FROM nodes ORDER BY length(path))",
		"SELECT sum(c), sum(c) FROM (SELECT count(*) AS c FROM nodes GROUP BY ext, uid, depth)",
	};
	static struct answer answer;
	static struct answer expected;
	pthread_t thread;
	unsigned frozen = 0;

	(void)state;
	fill(getenv("PFS_TEST_SMALL") ? 2000 : FILES);
	(void)make(ino_of("/a"), "x", S_IFREG | 0600);
	finish(&expected, begin("SELECT count(*), count(*) FROM nodes"));
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_all_the_time, (void *)&stop), 0);
	for (unsigned round = 0; round < 4; round++) {
		for (size_t i = 0; i < PFS_COUNT(statements); i++) {
			struct pfs_query *query = begin(statements[i]);
			unsigned before = atomic_load(&n_changes);

			while (atomic_load(&n_changes) == before) /* one that is in between */
				(void)usleep(100);
			query->piece = 1000;
			*answer.text = 0;
			for (int got; (got = pfs_query_next(query, &error)) != 0;) {
				if (got == 1) {
					add_row(&answer, query);
					continue;
				}
				assert_int_equal(got, -EAGAIN);
				*answer.text = 0;
			}
			frozen += query->frozen != NULL;
			assert_string_equal(answer.text, expected.text);
			pfs_query_finish(query);
		}
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, (void **)&state), 0);
	assert_non_null(state);
	print_message("%u of 12 statements read a frozen tree, beside %u changes\n", frozen,
		      atomic_load(&n_changes));
	assert_true(frozen > 0);
}

/* ---- who holds the tree, and how long ---- */

#define WORK_NS UINT64_C(12000000) /* the clock has a tick of some milliseconds */

/* Takes so much of the processor. */
static void work(uint64_t ns)
{
	struct timespec now, end;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += (long)ns;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static void test_longest(void **state PFS_UNUSED)
{
	struct pfs_hold longest;

	pfs_hold_count_cpu();
	for (unsigned is_write = 0; is_write < 2; is_write++)
		(void)pfs_hold_longest(tree, is_write, true);
	pfs_hold_read(tree, "a reader");
	work(WORK_NS);
	pfs_hold_end(tree);
	pfs_hold_write(tree, "a writer");
	work(WORK_NS);
	pfs_hold_end(tree);
	longest = pfs_hold_longest(tree, false, false);
	assert_string_equal(longest.by, "a reader");
	assert_string_equal(longest.cpu_by, "a reader");
	assert_true(longest.ns >= WORK_NS / 2 && longest.cpu_ns >= WORK_NS);
	longest = pfs_hold_longest(tree, true, true);
	assert_string_equal(longest.by, "a writer");
	assert_null(pfs_hold_longest(tree, true, false).by);
	(void)pfs_hold_longest(tree, false, true);
	/* what somebody waits for without the processor is in one figure only */
	pfs_hold_read(tree, "a sleeper");
	(void)usleep(20000);
	pfs_hold_end(tree);
	longest = pfs_hold_longest(tree, false, true);
	assert_true(longest.ns >= 10000000 && longest.cpu_ns < longest.ns);
}

static void *write_once(void *arg PFS_UNUSED)
{
	pfs_hold_write(tree, "a writer");
	pfs_hold_end(tree);
	return NULL;
}

/* However long a hold is, only that for which somebody waits keeps him. */
static void test_wait(void **state PFS_UNUSED)
{
	pthread_t writer;

	(void)pfs_hold_longest(tree, true, true);
	pfs_hold_read(tree, "a sleeper");
	(void)usleep(20000);
	pfs_hold_end(tree);
	write_once(NULL);
	assert_int_equal(pfs_hold_longest(tree, true, false).waited_ns, 0);
	pfs_hold_read(tree, "a reader");
	assert_int_equal(pthread_create(&writer, NULL, write_once, NULL), 0);
	for (unsigned ms = 0; ms < 20000 && !pfs_hold_is_wanted(tree); ms++)
		(void)usleep(1000);
	pfs_hold_end(tree);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_not_equal(pfs_hold_longest(tree, true, true).waited_ns, 0);
	assert_int_equal(pfs_hold_longest(tree, true, false).waited_ns, 0);
}

/* A frozen tree keeps nobody up, whoever holds it and for how long. */
static void test_frozen_hold(void **state PFS_UNUSED)
{
	struct pfs_tree *frozen;

	assert_int_equal(pfs_frozen_open(&frozen, tree,
					 &(struct pfs_frozen_wish){.columns = PFS_COLUMNS_ALL,
								   .most = UINT64_MAX}),
			 0);
	(void)pfs_hold_longest(tree, false, true);
	pfs_hold_read(frozen, "a reader of what is frozen");
	pfs_hold_read(tree, "a reader");
	work(WORK_NS);
	pfs_hold_end(tree);
	work(2 * WORK_NS);
	pfs_hold_end(frozen);
	assert_string_equal(pfs_hold_longest(tree, false, false).by, "a reader");
	assert_null(pfs_hold_longest(frozen, false, false).by);
	pfs_frozen_close(frozen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_viewers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_column, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_beside_changes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_longest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_frozen_hold, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
