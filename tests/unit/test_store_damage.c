/* SPDX-License-Identifier: MIT */
/* Files that are no store, damaged stores, stores that cannot be written: refused with the right
 * errno and one line, or read as far as they go; never a crash, never a wrong value. */
#include "tests/unit/store_model.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "base/log.h"

#define NOBODY 65534

static char good_path[120]; /* a sound store to make damaged copies of */

static void remove_sides(void)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
	char path[120];
	size_t i;

	for (i = 0; i < PFS_COUNT(suffixes); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", test_path, suffixes[i]);
		(void)unlink(path);
	}
}

static void write_text(const char *text, size_t len)
{
	int fd = open(test_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(close(fd), 0);
}

/* Runs SQL on the file, past the store. */
static void sql(const char *text)
{
	sqlite3 *handle;
	char *message = NULL;

	assert_int_equal(sqlite3_open(test_path, &handle), SQLITE_OK);
	if (sqlite3_exec(handle, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
	assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void assert_refused(int error, const char *words)
{
	const unsigned flags[] = {0, PFS_STORE_READ_ONLY, PFS_STORE_READ_ONLY | PFS_STORE_UNLOCKED};
	struct pfs_store *store;
	char line[900];
	size_t i;

	for (i = 0; i < PFS_COUNT(flags); i++) {
		assert_int_equal(try_open_as(&store, flags[i]), error);
		assert_null(store);
	}
	pfs_store_explain(line, sizeof(line), test_path, error);
	assert_non_null(strstr(line, test_path));
	assert_non_null(strstr(line, words));
	assert_null(strchr(line, '\n'));
}

static int make_good_store(void **state)
{
	struct pfs_store *store;
	uint64_t g;

	if (make_folder(state))
		return -1;
	if (!getenv("PFS_VERBOSE"))
		pfs_log_open((enum pfs_log_level)0, false); /* the damage is meant */
	store = new_store(0);
	for (g = 1; g <= 40; g++) {
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(model_group(store, g), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
	}
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
	(void)snprintf(good_path, sizeof(good_path), "%s/good", test_folder);
	return rename(test_path, good_path);
}

/* ---- no store at all ---- */

static void what_is_no_store_is_refused(void **state PFS_UNUSED)
{
	static const char text[] = "just a text, and no store at all";

	(void)unlink(test_path);
	assert_refused(-ENOENT, "no such store");
	write_text("", 0);
	assert_refused(-EMEDIUMTYPE, "is no primefs store");
	write_text(text, sizeof(text));
	assert_refused(-EMEDIUMTYPE, "is no primefs store");
	write_text("", 0);
	sql("CREATE TABLE node (prime INTEGER PRIMARY KEY)");
	assert_refused(-EMEDIUMTYPE, "is no primefs store");
	assert_int_equal(unlink(test_path), 0);
	assert_int_equal(mkdir(test_path, 0700), 0);
	assert_refused(-EMEDIUMTYPE, "is a directory; make a store of it");
	assert_int_equal(rmdir(test_path), 0);
	assert_int_equal(mkfifo(test_path, 0700), 0);
	assert_refused(-EMEDIUMTYPE, "is no primefs store");
	assert_int_equal(unlink(test_path), 0);
}

static void other_schemas_are_refused(void **state PFS_UNUSED)
{
	static const char *const changes[] = {
		"CREATE TRIGGER bad AFTER INSERT ON node BEGIN DELETE FROM node; END",
		"CREATE VIEW bad AS SELECT 1",
		"CREATE TABLE more (a)",
		"CREATE INDEX more ON node (slot)",
		"DROP TABLE orphan",
		"ALTER TABLE node ADD COLUMN more ANY",
		"DELETE FROM meta",
		"UPDATE meta SET next_other = 5",
		"PRAGMA application_id = 1",
		"PRAGMA user_version = 0",
		"PRAGMA user_version = 1",
	};
	struct pfs_store *store;
	size_t i;

	for (i = 0; i < PFS_COUNT(changes); i++) {
		copy_file(test_path, good_path);
		sql(changes[i]);
		assert_refused(-EMEDIUMTYPE, "is no primefs store, or damaged");
	}
	copy_file(test_path, good_path);
	sql("PRAGMA user_version = 4");
	assert_refused(-EPROTONOSUPPORT, "newer primefs");
	copy_file(test_path, good_path);
	sql("PRAGMA journal_mode = DELETE; CREATE TABLE side_1 (id INTEGER PRIMARY KEY, c0 ANY) STRICT; "
	    "INSERT INTO side_table VALUES (1, x'61', CAST('CREATE TABLE a(b)' AS BLOB)); VACUUM");
	store = open_as(0); /* side tables are foreseen, and another journal does not matter */
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- damage ---- */

static bool expected(int error)
{
	if (error == 0 || error == -EUCLEAN || error == -EIO || error == -EMEDIUMTYPE ||
	    error == -EPROTONOSUPPORT || error == -ENOENT)
		return true;
	print_message("unexpected: %s\n", strerror(-error));
	return false;
}

static void ignore(void *arg PFS_UNUSED, const char *finding)
{
	assert_null(strchr(finding, '\n'));
}

static int ignore_column(void *arg PFS_UNUSED, const void *name PFS_UNUSED, size_t len,
			 enum pfs_attr_type type)
{
	return len && type <= PFS_ATTR_TEXT ? 0 : 1;
}

static int ignore_root(void *arg PFS_UNUSED, const struct pfs_source_root *root)
{
	return root->path[0] == '/' ? 0 : 1;
}

static int ignore_attr(void *arg PFS_UNUSED, const struct pfs_attr_record *attr)
{
	return attr->name_len ? 0 : 1;
}

/* Everything that a program may do with a store, and the damage may show anywhere. */
static void exercise(unsigned flags)
{
	uint8_t data[PFS_CHUNK_SIZE];
	struct pfs_store_totals totals;
	struct pfs_source_record source;
	uint64_t group, digest, n;
	struct pfs_store *store;
	char path[PATH_MAX];
	size_t len;
	bool left;
	int error = try_open_as(&store, flags);
	uint64_t i;

	assert_true(expected(error));
	if (error)
		return;
	assert_true(expected(model_look(store, &group, &digest)));
	assert_true(expected(pfs_store_totals(store, &totals)));
	assert_true(expected(pfs_store_scan_columns(store, ignore_column, NULL)));
	assert_true(expected(pfs_store_scan_source_roots(store, ignore_root, NULL)));
	assert_true(expected(pfs_store_next_orphan(store, &n, 0)));
	for (i = 0; i < MODEL_NODES; i++) {
		uint64_t prime = MODEL_PRIME(i);

		assert_true(
			expected(pfs_store_get_chunk(store, data, &len, prime, i % MODEL_CHUNKS)));
		assert_true(expected(pfs_store_next_chunk(store, &n, &len, prime, 0, UINT64_MAX)));
		assert_true(expected(pfs_store_scan_attrs(store, prime, ignore_attr, NULL)));
		assert_true(expected(pfs_store_get_source(store, &source, path, prime)));
	}
	assert_true(expected(pfs_store_check(store, ignore, NULL)));
	if (!(flags & PFS_STORE_READ_ONLY) && !pfs_store_begin(store)) {
		error = model_group(store, 41);
		if (!error)
			error = pfs_store_reap_orphan(store, &left, MODEL_PRIME(3), 10);
		assert_true(expected(error));
		assert_true(expected(pfs_store_commit(store, NULL)));
	}
	assert_true(expected(pfs_store_close(store)));
}

static void cut_files_do_no_harm(void **state PFS_UNUSED)
{
	off_t sizes[] = {1, 15, 16, 60, 99, 100, 511, 512, 1000, 8191, 8192, 8193, 16384, 0, 0, 0};
	struct stat st;
	size_t i;

	assert_int_equal(stat(good_path, &st), 0);
	for (i = 0; i < PFS_COUNT(sizes) * (long_mode() ? 20 : 1); i++) {
		off_t size = i < 13 ? sizes[i] : (off_t)(model_random(i) % (uint64_t)st.st_size);

		copy_file(test_path, good_path);
		remove_sides();
		assert_int_equal(truncate(test_path, size), 0);
		exercise(PFS_STORE_READ_ONLY);
		exercise(0);
	}
}

static void noise_does_no_harm(void **state PFS_UNUSED)
{
	uint64_t seed = model_seed(7), i, k, rounds = long_mode() ? 3000 : 60;
	struct stat st;

	assert_int_equal(stat(good_path, &st), 0);
	for (i = 0; i < rounds; i++) {
		uint64_t r = model_random(model_random(seed) + i);
		size_t len = r % 3 == 0 ? 1 : r % 3 == 1 ? 64 : 8192;
		int fd, places = r % 3 == 0 ? 40 : 4;
		uint8_t noise[8192];

		copy_file(test_path, good_path);
		remove_sides();
		fd = open(test_path, O_RDWR);
		assert_true(fd >= 0);
		for (k = 0; k < (uint64_t)places; k++) {
			uint64_t q = model_random(r + k), j;

			for (j = 0; j < len; j++)
				noise[j] = (uint8_t)model_random(q + j);
			/* half of it early in the file, where the small tables are */
			q %= (uint64_t)(k % 2 ? st.st_size : 20 * 8192);
			assert_int_equal(pwrite(fd, noise, len, (off_t)q), (ssize_t)len);
		}
		assert_int_equal(close(fd), 0);
		exercise(i % 2 ? PFS_STORE_READ_ONLY : 0);
	}
}

struct wanted_finding {
	const char *words;
	bool met;
};

static void see_finding(void *arg, const char *finding)
{
	struct wanted_finding *wanted = arg;

	wanted->met |= strstr(finding, wanted->words) != NULL;
}

/* Values that SQLite takes and the store must not. */
static const struct {
	const char *sql, *finding;
	bool scan_fails;
} bad_values[] = {
	{"UPDATE node SET mode = 420 WHERE prime > 2", "mode", true},
	{"UPDATE node SET mode = 1 << 40 WHERE prime > 2", "out of range", true},
	{"UPDATE node SET size = -1 WHERE prime > 2", "out of range", true},
	{"UPDATE node SET slot = -1 WHERE prime > 2", "out of range", true},
	{"UPDATE node SET slot = 4000000000 WHERE prime > 2", "beyond", true},
	{"UPDATE meta SET end_slot = 4294967295; UPDATE node SET slot = 4000000000 WHERE prime > 2",
	 "beyond", true},
	{"UPDATE meta SET end_slot = 4294967295", "more slots", false},
	{"CREATE TABLE side_9 (id INTEGER PRIMARY KEY, c0 ANY) STRICT; INSERT INTO side_table "
	 "VALUES (9, x'6e6f646573', CAST('CREATE TABLE nodes(a)' AS BLOB))",
	 "side table nodes: none can have that name", false},
	{"CREATE TABLE side_9 (id INTEGER PRIMARY KEY, c0 ANY) STRICT; INSERT INTO side_table "
	 "VALUES (9, x'61', CAST('CREATE TABLE a AS SELECT 1' AS BLOB))",
	 "side table a: its declaration cannot be understood at 'AS'", false},
	{"UPDATE node SET slot = 3 WHERE prime > 2", "more than one node", false},
	{"UPDATE node SET parent = -3 WHERE prime > 2", "parent", true},
	{"UPDATE node SET parent = NULL WHERE prime > 2", "parent", true},
	{"UPDATE node SET parent = 2 WHERE prime = 2", "parent", true},
	{"UPDATE node SET name = x'' WHERE prime > 2", "name", true},
	{"UPDATE node SET name = x'612f62' WHERE prime > 2", "name", true},
	{"UPDATE node SET name = x'610062' WHERE prime > 2", "name", true},
	{"UPDATE node SET name = x'2e2e' WHERE prime > 2", "name", true},
	{"UPDATE node SET name = zeroblob(256) WHERE prime > 2", "out of range", true},
	{"UPDATE node SET target = x'61' WHERE prime > 2", "target", true},
	{"UPDATE node SET mode = 41471 WHERE prime > 2", "target", true},
	{"UPDATE node SET mtime = 1.5 WHERE prime > 2", "out of range", true},
	{"UPDATE node SET mtime = 'soon' WHERE prime > 2", "out of range", true},
	{"UPDATE node SET mtime = '9.12345678' WHERE prime > 2", "out of range", true},
	{"UPDATE node SET mtime = '99999999999999999999.123456789' WHERE prime > 2",
	 "out of range", true},
	{"UPDATE node SET prime = -7 WHERE prime = (SELECT max(prime) FROM node)", "prime",
	 false},
	{"UPDATE node SET prime = 1 << 50 WHERE prime = (SELECT max(prime) FROM node)",
	 "never handed out", false},
	{"DELETE FROM node WHERE prime = (SELECT max(prime) FROM node)", "meta row counts",
	 false},
	{"DELETE FROM node WHERE prime > 2", "content without a node", false},
	{"DELETE FROM node WHERE prime > 2", "attributes without a node", false},
	{"DELETE FROM node WHERE prime > 2", "source without a node", false},
	{"DELETE FROM source", "not recorded", false},
	{"DELETE FROM source_root", "without its root", false},
	{"UPDATE source SET ctime = 'soon'", "original that is none", false},
	{"UPDATE source SET path = zeroblob(3)", "original that is none", false},
	{"UPDATE source SET size = -1", "original that is none", false},
	{"UPDATE source_root SET path = x'61'", "root that is none", false},
	{"DELETE FROM attr_name", "without a name", false},
	{"UPDATE attr_name SET name = zeroblob(300) WHERE id = 1", "name that is none",
	 false},
	{"UPDATE attr SET value = 'text'", "attribute that is none", false},
	{"UPDATE node SET flags = 0", "does not know of", false},
	{"UPDATE node SET flags = 4", "does not read through", false},
	{"UPDATE change SET seq = seq + 100", "changes remembered", false},
	{"UPDATE meta SET feed_start = 7", "changes remembered", false},
	{"INSERT INTO orphan SELECT max(prime) FROM node", "orphan that still", false},
	{"UPDATE chunk SET data = zeroblob(65537) WHERE id = 1", "chunk that is none",
	 false},
	{"UPDATE node SET size = 0, flags = flags & ~1 WHERE prime > 2", "beyond the end",
	 false},
	{"UPDATE chunk SET n = -1 WHERE id = (SELECT max(id) FROM chunk)",
	 "chunk that is none", false},
};

static void bad_values_are_found(void **state PFS_UNUSED)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(bad_values); i++) {
		struct wanted_finding wanted = {.words = bad_values[i].finding};
		uint64_t group, digest;
		struct pfs_store *store;
		int error;

		copy_file(test_path, good_path);
		sql(bad_values[i].sql);
		store = open_as(PFS_STORE_READ_ONLY);
		error = model_look(store, &group, &digest);
		assert_true(expected(error));
		if (bad_values[i].scan_fails && error != -EUCLEAN)
			fail_msg("%s: not noticed", bad_values[i].sql);
		assert_int_equal(pfs_store_check(store, see_finding, &wanted), 0);
		if (!wanted.met)
			fail_msg("%s: not found", bad_values[i].sql);
		assert_int_equal(pfs_store_close(store), 0);
	}
}

/* ---- stores that cannot be written ---- */

/* Runs fn as a user whom permissions bind. */
static int as_nobody(int (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(99);
		_exit(fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int read_only_works(void)
{
	uint64_t group, digest;
	struct pfs_store *store;

	if (try_open_as(&store, PFS_STORE_READ_ONLY))
		return 1;
	if (model_look(store, &group, &digest) || group != 40)
		return 2;
	return pfs_store_close(store) ? 3 : 0;
}

static int writing_is_explained(void)
{
	struct pfs_store *store;
	char line[900];
	int error = try_open_as(&store, 0);

	pfs_store_explain(line, sizeof(line), test_path, error);
	return error == -EACCES && strstr(line, "-o ro") ? 0 : 1;
}

static int reading_is_explained(void)
{
	struct pfs_store *store;
	char line[900];
	int error = try_open_as(&store, PFS_STORE_READ_ONLY);

	pfs_store_explain(line, sizeof(line), test_path, error);
	return error == -EACCES && strstr(line, "permissions") ? 0 : 1;
}

static int log_is_explained(void)
{
	struct pfs_store *store;
	char line[900];
	int error = try_open_as(&store, PFS_STORE_READ_ONLY);

	pfs_store_explain(line, sizeof(line), test_path, error);
	return error == -EROFS && strstr(line, "not closed cleanly") ? 0 : 1;
}

static void unwritable_stores_can_be_read(void **state PFS_UNUSED)
{
	copy_file(test_path, good_path);
	remove_sides();
	assert_int_equal(chmod(test_path, 0444), 0);
	assert_int_equal(chmod(test_folder, 0555), 0);
	assert_int_equal(as_nobody(read_only_works), 0);
	assert_int_equal(as_nobody(writing_is_explained), 0);
	assert_int_equal(chmod(test_path, 0666), 0);
	assert_int_equal(as_nobody(writing_is_explained), 0); /* the folder still is not */
	assert_int_equal(chmod(test_path, 0000), 0);
	assert_int_equal(as_nobody(reading_is_explained), 0);
	assert_int_equal(chmod(test_folder, 0755), 0);
	assert_int_equal(chmod(test_path, 0644), 0);
}

/* A store with a log, as a killed process leaves it. */
static void make_logged_store(void)
{
	char log[120], copy[120], copied_log[130];
	struct pfs_store *store;

	(void)snprintf(log, sizeof(log), "%s-wal", test_path);
	(void)snprintf(copy, sizeof(copy), "%s/copy", test_folder);
	(void)snprintf(copied_log, sizeof(copied_log), "%s/copy-wal", test_folder);
	remove_sides();
	copy_file(test_path, good_path);
	sql("UPDATE node SET size = 39 WHERE prime = 2"); /* 40 comes by the log alone */
	remove_sides();
	store = open_as(0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(model_group(store, 40), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	copy_file(copy, test_path);
	copy_file(copied_log, log);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(rename(copy, test_path), 0);
	assert_int_equal(rename(copied_log, log), 0);
}

static void a_log_is_read_where_that_is_possible(void **state PFS_UNUSED)
{
	make_logged_store();
	assert_int_equal(chmod(test_folder, 0555), 0);
	assert_int_equal(as_nobody(log_is_explained), 0);
	assert_int_equal(chmod(test_folder, 0777), 0);
	assert_int_equal(read_only_works(), 0);
	assert_int_equal(read_only_works(), 0);
	assert_int_equal(pfs_store_close(open_as(0)), 0);
	assert_int_equal(chmod(test_folder, 0555), 0);
	assert_int_equal(as_nobody(read_only_works), 0);
	assert_int_equal(chmod(test_folder, 0700), 0);
}

/* ---- names ---- */

static void odd_names_are_no_trouble(void **state PFS_UNUSED)
{
	static const char *const names[] = {"a?mode=memory", "b%20c",	     "d#e",
					    "f g",	     "\xc3\xa4\xff", "h;i'j\"k"};
	char kept[sizeof(test_path)];
	size_t i;

	(void)memcpy(kept, test_path, sizeof(kept));
	for (i = 0; i < PFS_COUNT(names); i++) {
		(void)snprintf(test_path, sizeof(test_path), "%s/%s", test_folder, names[i]);
		assert_int_equal(pfs_store_close(new_store(0)), 0);
		assert_int_equal(access(test_path, F_OK), 0);
		assert_int_equal(pfs_store_close(open_as(0)), 0);
		assert_int_equal(pfs_store_close(open_as(PFS_STORE_READ_ONLY)), 0);
	}
	(void)memcpy(test_path, kept, sizeof(kept));
}

static void links_and_long_paths(void **state PFS_UNUSED)
{
	char link_path[120], deep[700];
	struct pfs_store *store;
	size_t at;

	copy_file(test_path, good_path);
	(void)snprintf(link_path, sizeof(link_path), "%s/link", test_folder);
	assert_int_equal(symlink("a.pfs", link_path), 0);
	assert_int_equal(pfs_store_open(&store, link_path, &(struct pfs_store_options){.flags = 0}),
			 0);
	assert_string_equal(pfs_store_path(store), test_path);
	assert_int_equal(pfs_store_close(store), 0);

	at = (size_t)snprintf(deep, sizeof(deep), "%s/", test_folder);
	while (at < 600) {
		at += (size_t)snprintf(deep + at, sizeof(deep) - at, "%s", "0123456789012345678/");
		assert_int_equal(mkdir(deep, 0700), 0);
	}
	(void)snprintf(deep + at, sizeof(deep) - at, "a.pfs");
	assert_int_equal(pfs_store_open(&store, deep,
					&(struct pfs_store_options){.flags = PFS_STORE_CREATE}),
			 -ENAMETOOLONG);
	assert_int_equal(access(deep, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_store_is_refused),
		cmocka_unit_test(other_schemas_are_refused),
		cmocka_unit_test(cut_files_do_no_harm),
		cmocka_unit_test(noise_does_no_harm),
		cmocka_unit_test(bad_values_are_found),
		cmocka_unit_test(unwritable_stores_can_be_read),
		cmocka_unit_test(a_log_is_read_where_that_is_possible),
		cmocka_unit_test(odd_names_are_no_trouble),
		cmocka_unit_test(links_and_long_paths),
	};

	return cmocka_run_group_tests(tests, make_good_store, remove_folder);
}
