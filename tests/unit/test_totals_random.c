/* SPDX-License-Identifier: MIT */
/* Totals of subtrees after random changes, and under many threads. */
#include "totals_util.h"
#include "watch_util.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- anything ---- */

#define NODES_MAX 150

static struct {
	uint64_t ino; /* with a reference that is ours */
	bool directory;
} nodes[NODES_MAX];
static unsigned n_nodes;
static uint64_t random_state;
static unsigned names_made;

static uint32_t any(uint32_t n)
{
	return random_below(&random_state, n);
}

static uint64_t any_node(bool directory)
{
	unsigned first = any(NODES_MAX);

	for (unsigned i = 0; i < n_nodes; i++) {
		unsigned k = (first + i) % n_nodes;

		if (nodes[k].directory == directory)
			return nodes[k].ino;
	}
	return ROOT;
}

/* The node's place: its directory and its name there.  False: it has none. */
static bool place_of(uint64_t *parent, char name[PFS_NAME_MAX + 1], uint64_t ino)
{
	char *path PFS_FREE = NULL, *last;

	if (ino == ROOT || pfs_tree_path(tree, &path, ino))
		return false;
	last = strrchr(path, '/');
	(void)snprintf(name, PFS_NAME_MAX + 1, "%s", last + 1);
	*last = 0;
	assert_int_equal(pfs_tree_resolve(tree, parent, path), 0);
	return true;
}

static void random_make(void)
{
	struct pfs_entry entry;
	bool directory = any(5) < 2;
	char name[16];
	int error;

	if (n_nodes == NODES_MAX)
		return;
	(void)snprintf(name, sizeof(name), "n%u", names_made++);
	if (any(8))
		error = pfs_tree_make(tree, &entry, any_node(true), name,
				      directory ? S_IFDIR | 0755 : S_IFREG | 0644, 0, &temp_root);
	else
		error = pfs_tree_symlink(tree, &entry, any_node(directory = false), name, name,
					 &temp_root);
	assert_true(!error || error == -ENOENT || error == -ENOTDIR);
	if (error)
		return;
	nodes[n_nodes].ino = entry.attr.st_ino;
	nodes[n_nodes++].directory = directory;
}

static void random_remove(void)
{
	bool directory = any(3) == 0;
	char name[PFS_NAME_MAX + 1];
	uint64_t parent;
	int error;

	if (!place_of(&parent, name, any_node(directory)))
		return;
	error = directory ? pfs_tree_rmdir(tree, parent, name)
			  : pfs_tree_unlink(tree, parent, name);
	assert_true(!error || error == -ENOTEMPTY);
}

static void random_rename(void)
{
	uint64_t parent, new_parent = any_node(true);
	char name[PFS_NAME_MAX + 1], new_name[PFS_NAME_MAX + 1] = "";
	unsigned flags = any(2) ? RENAME_EXCHANGE : 0;

	if (!place_of(&parent, name, any_node(any(2))))
		return;
	if ((flags || any(2)) && !place_of(&new_parent, new_name, any_node(any(2))))
		return;
	if (!*new_name)
		(void)snprintf(new_name, sizeof(new_name), "n%u", names_made++);
	if (pfs_tree_rename(tree, parent, name, new_parent, new_name, flags)) {
		/* into itself, onto what is not empty, ...: nothing has changed then */
	}
}

static void random_content(void)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
				    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};
	static uint8_t bytes[200000];
	int64_t offset = any(4) ? any(300000) : 0, length = 1 + any(sizeof(bytes) - 1);
	struct stat attr = {.st_size = any(300000)};
	uint64_t ino = any_node(false);
	struct pfs_entry entry;
	bool linked;

	if (ino == ROOT || pfs_tree_getattr(tree, &entry, ino) || !S_ISREG(entry.attr.st_mode))
		return;
	switch (any(6)) {
	case 0:
		assert_int_equal(
			pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_SIZE, &temp_root), 0);
		break;
	case 1:
		assert_int_equal(pfs_tree_fallocate(tree, ino, modes[any(4)], offset, length, true),
				 0);
		break;
	case 2:
		assert_int_equal(
			pfs_tree_open_file(tree, &linked, ino, O_WRONLY | O_TRUNC, true, false), 0);
		break;
	default:
		assert_int_equal(
			pfs_tree_write(tree, ino, bytes, (size_t)length, offset, true, false),
			length);
	}
}

static void random_time(void)
{
	static const int64_t bases[] = {0, -1000, 5000000000, INT64_MAX / SECOND - 100,
					INT64_MIN / SECOND - 100};
	uint64_t ino = any_node(any(2));

	set_mtime(ino, bases[any(5)] + any(200), any(2) ? 0 : any(SECOND));
}

static void random_forget(void)
{
	unsigned i = any(NODES_MAX);
	struct pfs_entry entry;

	if (i >= n_nodes || pfs_tree_getattr(tree, &entry, nodes[i].ino) || entry.attr.st_nlink)
		return;
	pfs_tree_forget(tree, nodes[i].ino, 1);
	nodes[i] = nodes[--n_nodes];
}

/* What is without a name is gone then, and what has one is looked up again. */
static void random_reopen(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n_nodes; i++) {
		struct pfs_entry entry;

		assert_int_equal(pfs_tree_getattr(tree, &entry, nodes[i].ino), 0);
		if (entry.attr.st_nlink)
			nodes[kept++] = nodes[i];
	}
	n_nodes = kept;
	temp_tree_close(tree);
	tree = temp_tree_open(&temp);
	shadow_begin(tree);
	for (unsigned i = 0; i < n_nodes; i++) {
		struct pfs_entry entry;

		assert_int_equal(pfs_tree_lookup(tree, &entry, nodes[i].ino, "."), 0);
	}
}

static void random_change(void)
{
	static void (*const operations[])(void) = {
		random_make,   random_make,    random_make,    random_make,   random_remove,
		random_remove, random_rename,  random_rename,  random_time,   random_time,
		random_time,   random_content, random_content, random_forget,
	};

	operations[any(PFS_COUNT(operations))]();
}

/* Between two pieces of the pass. */
static int change_between(void *arg)
{
	unsigned *pieces = arg;

	++*pieces;
	pfs_scan_unlock(tree);
	for (unsigned n = any(4); n > 0; n--)
		random_change();
	if (any(20) == 0)
		assert_int_equal(pfs_tree_sync(tree), 0); /* slots are given to others */
	(void)pfs_scan_lock(tree, __func__);
	return 0;
}

static unsigned pass_with_changes(void)
{
	unsigned pieces = 0;

	pfs_totals_set_piece(4);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_totals_prepare(tree, change_between, &pieces), 0);
	pfs_scan_unlock(tree);
	pfs_totals_set_piece(UINT32_MAX);
	assert_true(totals_are_right(tree));
	return pieces;
}

static void test_random(void **state)
{
	const char *text = getenv("PFS_LONG");
	unsigned steps = text && !strcmp(text, "1") ? 100000 : 8000, pieces = 0;

	(void)state;
	random_state = seed;
	open_new();
	shadow_begin(tree);
	for (unsigned i = 0; i < steps; i++) {
		if (any(200) == 0) {
			random_reopen();
			pieces += pass_with_changes();
		} else if (any(300) == 0) {
			assert_int_equal(pfs_tree_sync(tree), 0);
		} else {
			random_change();
		}
		if (any(20) == 0)
			check_all();
		else
			assert_true(totals_are_right(tree));
	}
	assert_true(pieces > 100);
	random_reopen();
	check_all();
	end();
}

/* ---- many at once ---- */

#define THREADS 4
#define ROUNDS	3000

static _Atomic bool stop;
static uint64_t shared[3]; /* directories, one in the other */

static void *change_all_the_time(void *arg)
{
	uint64_t random = seed + *(unsigned *)arg;
	struct stat attr = {0};
	struct pfs_entry entry;
	char name[16], other[16];
	int error = 0;

	for (unsigned i = 0; i < ROUNDS && !error; i++) {
		uint64_t from = shared[random_below(&random, 3)],
			 to = shared[random_below(&random, 3)];

		(void)snprintf(name, sizeof(name), "f%u.%u", *(unsigned *)arg, i);
		(void)snprintf(other, sizeof(other), "g%u", random_below(&random, 20));
		error = pfs_tree_make(tree, &entry, from, name,
				      i % 4 ? S_IFREG | 0600 : S_IFDIR | 0700, 0, &temp_root);
		if (!error && i % 4 &&
		    pfs_tree_write(tree, entry.attr.st_ino, name, 5, 0, true, false) != 5)
			error = -EIO;
		attr.st_mtim.tv_sec = random_below(&random, 1000000);
		if (!error)
			error = pfs_tree_setattr(tree, &entry, entry.attr.st_ino, &attr,
						 PFS_SET_MTIME, &temp_root);
		if (!error && pfs_tree_rename(tree, from, name, to, other, 0))
			error = i % 4 ? pfs_tree_unlink(tree, from, name)
				      : pfs_tree_rmdir(tree, from, name);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
	*(unsigned *)arg = (unsigned)-error;
	return NULL;
}

/* Each sees its totals grow from the inner directory to the outer one, whatever others do. */
static void *ask_all_the_time(void *arg)
{
	unsigned *wrong = arg;

	*wrong = 0;
	while (!atomic_load(&stop)) {
		struct pfs_totals inner, outer;

		if (pfs_tree_totals(tree, &inner, shared[2]) ||
		    pfs_tree_totals(tree, &outer, ROOT) || !inner.count || outer.count < 4)
			++*wrong;
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS + 2];
	unsigned arg[THREADS + 2];

	(void)state;
	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &(struct pfs_tree_options){.commit_ms = 2});
	shared[0] = make_in(ROOT, "a", S_IFDIR | 0755);
	shared[1] = make_in(shared[0], "b", S_IFDIR | 0755);
	shared[2] = make_in(shared[1], "c", S_IFDIR | 0755);
	atomic_store(&stop, false);
	for (unsigned i = 0; i < THREADS + 2; i++) {
		arg[i] = i;
		assert_int_equal(
			pthread_create(&threads[i], NULL,
				       i < THREADS ? change_all_the_time : ask_all_the_time,
				       &arg[i]),
			0);
	}
	for (unsigned i = 0; i < THREADS + 2; i++) {
		if (i == THREADS)
			atomic_store(&stop, true);
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(arg[i], 0);
	}
	check_all();
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_threads),
	};

	take_seed(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
