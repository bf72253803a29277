/* SPDX-License-Identifier: MIT */
/* Stores by anybody: a small sound one, of which the input overwrites some bytes.  Whatever is in
 * it, it is refused, or it is checked, opened, walked and asked, within limits.
 *
 * The input is a list of patches: where (3 bytes), how many bytes (1), and these. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/thread.h"
#include "fs/query/query.h"
#include "tests/fuzz/tree_fuzz.h"

#define PATCHES_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *good, *bytes;
static size_t good_size;
static char path[128];

static void ask(struct pfs_queries *queries, const char *sql)
{
	const struct pfs_query_scope scope = {.ino = 2,
					      .sees_all = true,
					      .may_change = true,
					      .memory_limit = 32 << 20,
					      .time_limit_ms = 2000};
	struct pfs_query_error error = {.error = 0};
	struct pfs_query *query;

	if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error) != 0)
		return;
	for (unsigned rows = 0; rows < 1000 && pfs_query_next(query, &error) == 1; rows++)
		for (size_t i = 0; i < pfs_query_columns(query); i++) {
			struct pfs_sql_value value;

			pfs_query_value(query, i, &value);
		}
	pfs_query_finish(query);
}

static void ask_all(struct pfs_tree *tree, const char *const *statements)
{
	struct pfs_queries *queries;

	if (pfs_queries_open(&queries, tree) != 0)
		return;
	for (; *statements; statements++)
		ask(queries, *statements);
	pfs_queries_close(queries);
}

static void put(void)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, good_size) != (ssize_t)good_size || close(fd) != 0)
		abort();
}

static void remove_sides(void)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
	char name[140];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		(void)unlink(name);
	}
}

static void remove_all(void)
{
	remove_sides();
	(void)unlink(path);
}

static void make_good(void *arg)
{
	static const char *const statements[] = {
		"CREATE TABLE t(a INTEGER, b TEXT)",
		"CREATE INDEX i ON t(b)",
		"INSERT INTO t VALUES (1, 'x'), (2, 'y')",
		NULL,
	};
	struct pfs_tree *tree;
	struct stat attr;
	int fd;

	(void)arg;
	(void)snprintf(path, sizeof(path), "%s/primefs-fuzz-store-%ld.pfs",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
	(void)unlink(path);
	if (import_paths(path) != 0 ||
	    pfs_tree_open(&tree, path, &(struct pfs_tree_options){.read_only = false}) != 0 ||
	    pfs_tree_start(tree) != 0)
		abort();
	ask_all(tree, statements);
	if (pfs_tree_close(tree) != 0)
		abort();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &attr) != 0)
		abort();
	good_size = (size_t)attr.st_size;
	good = malloc(good_size);
	bytes = malloc(good_size);
	if (!good || !bytes || atexit(remove_all) != 0 ||
	    read(fd, good, good_size) != (ssize_t)good_size)
		abort();
	(void)close(fd);
}

static void try_it(void *arg)
{
	static const char *const statements[] = {
		"SELECT count(*), sum(size), max(depth), sum(subtree_size), max(mtime) FROM nodes",
		"SELECT path, name, ext, owner, target, link, links, tag FROM nodes ORDER BY path",
		"SELECT ino FROM nodes WHERE path LIKE '%c%' AND under(ino, '/d') ORDER BY name",
		"SELECT a, b FROM t WHERE b > 'a' ORDER BY b",
		"SELECT type, count(*) FROM nodes NATURAL JOIN (SELECT ino FROM nodes) GROUP BY 1",
		NULL,
	};
	struct pfs_tree *tree;

	(void)arg;
	(void)!pfs_tree_check(path, &(struct pfs_tree_options){.read_only = true}, keep_silent,
			      NULL);
	if (pfs_tree_open(&tree, path, &(struct pfs_tree_options){.read_only = true}) == 0) {
		ask_all(tree, statements);
		(void)!pfs_tree_close(tree);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!good) {
		pfs_log_open((enum pfs_log_level)0, false); /* the damage is meant */
		if (pfs_thread_call(make_good, NULL) != 0)
			abort();
	}
	memcpy(bytes, good, good_size);
	for (unsigned i = 0; i < PATCHES_MAX && size > 4; i++) {
		size_t at = ((size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) %
			    good_size;
		size_t n = data[3] % 64 + 1u;

		n = n < size - 4 ? n : size - 4;
		n = n < good_size - at ? n : good_size - at;
		memcpy(bytes + at, data + 4, n);
		data += 4 + n;
		size -= 4 + n;
	}
	put();
	if (pfs_thread_call(try_it, NULL) != 0)
		abort();
	remove_sides();
	return 0;
}
