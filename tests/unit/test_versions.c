/* SPDX-License-Identifier: MIT */
/* Statements with attributes, over files with several names and with times beyond nanoseconds,
 * beside somebody who changes all of that all the time: each answer is what the tree was at the
 * answer's epoch, and nobody has the tree for long.  PFS_LONG=1: 300,000 nodes. */
#include <pthread.h>

#include "tests/unit/query_util.h"

#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/image/snapshot.h"
#include "fs/journal/journal.h"
#include "fs/query/internal.h"
#include "fs/tree/tree_impl.h"

#define NAMES	  3u /* of a file */
#define FILES	  256u /* with several */
#define COLOURED  512u /* nodes whose attribute changes */
#define STEPS_MAX 200000u
#define ROUNDS	  12u

/* What the tree is after a step, as statements count it. */
struct model {
	uint64_t epoch;
	int64_t nodes, coloured, colours, names, squares, far;
};

static struct model models[STEPS_MAX];
static _Atomic unsigned n_models;
static _Atomic bool stop;
static uint64_t coloured[COLOURED], linked[FILES][NAMES], homes[2];
static int64_t colour_of[COLOURED];
static unsigned names_of[FILES];

static unsigned n_nodes(void)
{
	const char *mode = getenv("PFS_LONG");

	if (getenv("PFS_TEST_SMALL"))
		return 3000;
	return mode && *mode == '1' ? 300000 : 30000;
}

static uint64_t epoch(void)
{
	uint64_t now = pfs_scan_lock(tree, __func__);

	pfs_scan_unlock(tree);
	return now;
}

/* ---- the tree ---- */

/* As an import of a file with several names leaves them. */
static void link_files(void)
{
	struct pfs_store *file;
	char name[32];

	for (unsigned i = 0; i < FILES * NAMES; i++) {
		struct pfs_entry entry;
		uint32_t slot;

		(void)snprintf(name, sizeof(name), "l%u.%u", i / NAMES, i % NAMES);
		linked[i / NAMES][i % NAMES] = make(homes[0], name, S_IFREG | 0644);
		pfs_hold_write(tree, __func__);
		slot = pfs_image_slot(tree, linked[i / NAMES][i % NAMES]);
		pfs_image_set_flags(tree, slot, PFS_NODE_NAMED, PFS_NODE_NAMED);
		pfs_hold_end(tree);
		assert_int_equal(pfs_tree_setattr(tree, &entry, linked[i / NAMES][i % NAMES],
						  &(struct stat){.st_mode = S_IFREG | 0600},
						  PFS_SET_MODE, &temp_root),
				 0);
	}
	close_queries();
	assert_int_equal(pfs_store_open(&file, store.path, &(struct pfs_store_options){0}), 0);
	assert_int_equal(pfs_store_begin(file), 0);
	for (unsigned i = 0; i < FILES * NAMES; i++)
		assert_int_equal(
			pfs_store_put_hard_link(file, linked[i / NAMES][i % NAMES], i / NAMES), 0);
	assert_int_equal(pfs_store_commit(file, NULL), 0);
	pfs_store_close(file);
	open_queries();
	for (unsigned i = 0; i < FILES; i++)
		names_of[i] = NAMES;
}

static void grow(void)
{
	uint64_t directory = 0;
	char name[32];

	homes[0] = ino_of("/a");
	homes[1] = ino_of("/a/b");
	(void)make(homes[0], "x", S_IFREG | 0600);
	for (unsigned i = 0; i < n_nodes(); i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		if (i % 1000 == 0)
			directory = make(PFS_ROOT_PRIME, name, S_IFDIR | 0755);
		else if (i % 40 == 1 && i / 40 < COLOURED)
			coloured[i / 40] = make(directory, name, S_IFREG | 0644);
		else
			(void)make(directory, name, S_IFREG | 0644);
	}
	for (unsigned i = 0; i < COLOURED; i++)
		if (!coloured[i])
			coloured[i] = coloured[0];
	assert_int_equal(pfs_tree_setxattr(tree, coloured[0], "user.colour", "1", 1, 0), 0);
	colour_of[0] = 1;
	link_files();
}

/* ---- who changes it ---- */

static void paint(struct model *model, unsigned k, bool removes)
{
	unsigned i = coloured[k % COLOURED] == coloured[0] ? 0 : k % COLOURED;
	char text[16];

	if (removes && !colour_of[i])
		return;
	(void)snprintf(text, sizeof(text), "%u", k + 1);
	if (removes)
		assert_int_equal(pfs_tree_removexattr(tree, coloured[i], "user.colour"), 0);
	else
		assert_int_equal(
			pfs_tree_setxattr(tree, coloured[i], "user.colour", text, strlen(text), 0),
			0);
	model->coloured += !removes - (colour_of[i] != 0);
	model->colours -= colour_of[i];
	colour_of[i] = removes ? 0 : k + 1;
	model->colours += colour_of[i];
}

static void unlink_name(struct model *model, unsigned k)
{
	unsigned file = k % FILES, left = names_of[file];
	char name[32];

	if (!left)
		return;
	(void)snprintf(name, sizeof(name), "l%u.%u", file, left - 1);
	assert_int_equal(pfs_tree_unlink(tree, homes[0], name), 0);
	names_of[file] = left - 1;
	model->nodes--;
	model->names--;
	model->squares -= (int64_t)left * left - (int64_t)(left - 1) * (left - 1);
}

static void set_far(struct model *model, bool is_far)
{
	struct stat attr = {.st_mtim.tv_sec = is_far ? INT64_C(1) << 40 : 1000};
	struct pfs_entry entry;

	assert_int_equal(
		pfs_tree_setattr(tree, &entry, coloured[1], &attr, PFS_SET_MTIME, &temp_root), 0);
	model->far = is_far;
}

static void step(struct model *model, unsigned k)
{
	char name[32];

	switch (k % 6) {
	case 0:
	case 1:
		paint(model, k / 6, false);
		break;
	case 2:
		paint(model, k / 2, true);
		break;
	case 3:
		assert_int_equal(
			pfs_tree_rename(tree, homes[k / 6 % 2], "x", homes[!(k / 6 % 2)], "x", 0),
			0);
		break;
	case 4:
		(void)snprintf(name, sizeof(name), "new%u", k);
		(void)make(homes[1], name, S_IFREG | 0600);
		model->nodes++;
		break;
	case 5:
		if (k / 6 % 2)
			unlink_name(model, k / 12);
		else
			set_far(model, k / 12 % 2);
		break;
	default:
		break;
	}
}

static void *change_all_the_time(void *arg)
{
	for (unsigned k = 0; !atomic_load(&stop) && k + 1 < STEPS_MAX; k++) {
		struct model model = models[k];

		step(&model, k);
		model.epoch = epoch();
		models[k + 1] = model;
		atomic_store(&n_models, k + 2);
		(void)usleep(200);
	}
	return arg;
}

/* ---- who asks ---- */

#define FACTS                                                                                      \
	"count(*), count(colour), coalesce(sum(CAST(colour AS INTEGER)), 0), count(link), "        \
	"sum(CASE WHEN link IS NULL THEN 0 ELSE links END), count(far) "
#define OF "colour, link, links, CASE WHEN mtime > '2200-01-01' THEN 1 END AS far "

static const char *const statements[] = {
	"SELECT " FACTS "FROM (SELECT " OF "FROM nodes)",
	"SELECT " FACTS "FROM (SELECT " OF ", row_number() OVER (ORDER BY size, name) FROM nodes)",
	"SELECT " FACTS "FROM (SELECT " OF ", path FROM nodes ORDER BY length(path))",
	("SELECT sum(c), sum(CASE WHEN colour IS NULL THEN 0 ELSE c END), coalesce(sum(CAST(colour AS INTEGER) * c), 0) "
	 "FROM (SELECT colour, count(*) AS c FROM nodes GROUP BY colour)"),
};

static void compare(const char *text, uint64_t at)
{
	char expected[256];
	unsigned n = atomic_load(&n_models), i = 0;

	while (i < n && models[i].epoch != at)
		i++;
	if (i == n) /* the step is not written down yet */
		for (unsigned tries = 0; tries < 1000 && atomic_load(&n_models) == n; tries++)
			(void)usleep(1000);
	if (models[i].epoch != at)
		fail_msg("epoch %llu is that of no step", (unsigned long long)at);
	(void)snprintf(expected, sizeof(expected), "%lld %lld %lld %lld %lld %lld",
		       (long long)models[i].nodes, (long long)models[i].coloured,
		       (long long)models[i].colours, (long long)models[i].names,
		       (long long)models[i].squares, (long long)models[i].far);
	if (strncmp(expected, text, strlen(text)) != 0)
		fail_msg("at epoch %llu, step %u: %s, not %s", (unsigned long long)at, i, text,
			 expected);
}

static unsigned ask(const char *sql)
{
	char text[256];
	struct pfs_query *query = begin(sql);
	unsigned is_frozen;

	query->piece = 1000;
	rest_text(text, sizeof(text), query);
	is_frozen = query->frozen != NULL;
	compare(text, pfs_query_epoch(query));
	pfs_query_finish(query);
	return is_frozen;
}

static void test_replayed(void **state)
{
	const bool is_long = n_nodes() >= 300000;
	unsigned frozen = 0;
	pthread_t thread;

	(void)state;
	grow();
	models[0] = (struct model){.epoch = epoch(),
				   .coloured = 1,
				   .colours = 1,
				   .names = FILES * NAMES,
				   .squares = FILES * NAMES * NAMES};
	pfs_hold_write(tree, __func__);
	models[0].nodes = tree->image.nodes;
	pfs_hold_end(tree);
	atomic_store(&n_models, 1);
	pfs_hold_count_cpu();
	/* columns of the attribute are read, and others' holds are not counted */
	(void)ask("SELECT count(*), count(colour) FROM nodes");
	for (unsigned is_write = 0; is_write < 2; is_write++)
		(void)pfs_hold_longest(tree, is_write, true);
	assert_int_equal(pthread_create(&thread, NULL, change_all_the_time, (void *)&stop), 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		frozen += ask(statements[i % PFS_COUNT(statements)]);
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned is_write = 0; is_write < 2; is_write++) {
		struct pfs_hold longest = pfs_hold_longest(tree, is_write, false);

		print_message("%s: %.3f ms of a processor, %s\n", is_write ? "writing" : "reading",
			      (double)longest.cpu_ns / 1e6, longest.cpu_by);
		assert_true(longest.cpu_ns < (is_long ? 5000000 : 50000000));
	}
	print_message("%u of %u statements read a frozen tree, beside %u changes\n", frozen, ROUNDS,
		      atomic_load(&n_models));
	assert_true(frozen > 0);
}

/* ---- an answer that is held open ---- */

#define HELD 20000u /* nodes, each with half a kilobyte of attributes */

static struct pfs_snapshot_stats stats(void)
{
	struct pfs_snapshot_stats out;

	pfs_snapshots_stats(tree, &out);
	return out;
}

static void colour_held(uint64_t ino, unsigned value)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "%0500u", value);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.colour", text, strlen(text), 0), 0);
}

static void make_held(uint64_t *inos)
{
	char name[32];

	for (unsigned i = 0; i < HELD; i++) {
		(void)snprintf(name, sizeof(name), "held%u", i);
		inos[i] = make(PFS_ROOT_PRIME, name, S_IFREG | 0600);
		colour_held(inos[i], 0);
	}
}

/* What is kept for it counts, whatever it is; beyond an eighth of the image the statement ends, and
 * no change fails. With its end all of that goes. */
static void test_held_open(void **state PFS_UNUSED)
{
	static const int64_t most = INT64_C(56) << 20; /* so that 8 MiB are left */
	static uint64_t inos[HELD];
	struct pfs_query *query, *later;
	char text[256];
	unsigned n = 0;

	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.colour", "1", 1, 0), 0);
	query_text(text, sizeof(text), "SELECT count(colour) FROM nodes");
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.colour", "2", 1, 0), 0);
	make_held(inos);
	query = begin("SELECT count(*), max(colour) FROM nodes");
	assert_int_equal(pfs_query_freeze(query), 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.colour", "3", 1, 0), 0);
	assert_true(stats().kept_elsewhere[PFS_KEPT_ATTRIBUTES] > 0);
	assert_true(stats().taken_bytes >= stats().kept_elsewhere[PFS_KEPT_ATTRIBUTES]);
	pfs_snapshots_keep(tree, PFS_KEPT_PASTS, most);
	for (; n < HELD && !stats().given_up; n++)
		colour_held(inos[n], n);
	assert_int_equal(stats().given_up, 1);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "held1"), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_true(stats().kept_slots > 0);
	/* who comes later is not given up for what is kept for the first */
	later = begin("SELECT count(*), max(colour) FROM nodes");
	assert_int_equal(pfs_query_freeze(later), 0);
	for (unsigned i = 2; i < 1000; i++)
		colour_held(inos[i], 1);
	assert_int_equal(stats().given_up, 1);
	pfs_snapshots_keep(tree, PFS_KEPT_PASTS, -most);
	assert_int_equal(pfs_query_next(query, &error), -ENOMEM);
	assert_non_null(strstr(error.text, "run it again"));
	pfs_query_finish(query);
	assert_int_equal(pfs_query_next(later, &error), 1);
	pfs_query_finish(later);
	for (unsigned i = 2; i < 2000; i++)
		colour_held(inos[i], 2);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(stats().open, 0);
	assert_int_equal(stats().bytes + stats().kept_slots + stats().kept_names, 0);
	assert_int_equal(stats().kept_elsewhere[PFS_KEPT_ATTRIBUTES], 0);
}

/* Memory is reserved for copies of the columns that a statement changes, and of no other. */
static void test_reserved_columns(void **state PFS_UNUSED)
{
	struct pfs_snapshot *snapshot;

	assert_int_equal(stats().bytes, 0);
	pfs_hold_read(tree, __func__);
	assert_int_equal(pfs_snapshot_take(&snapshot, tree, PFS_COLUMNS_ALL), 0);
	pfs_hold_end(tree);
	change("UPDATE nodes SET mtime = mtime + 1 WHERE path = '/a/d.c'", 1);
	assert_true(stats().copied > 0);
	/* of two blocks at the most, the modification and the change time */
	assert_true(stats().bytes <= 2 * 2 * pfs_snapshot_block_size(PFS_COLUMN_MTIME));
	pfs_snapshot_end(snapshot);
	assert_int_equal(stats().bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replayed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_held_open, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reserved_columns, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
