/* SPDX-License-Identifier: MIT */
/* A device's table of nodes by their whole paths, or a stand-in's: it is made in pieces, a few
 * slots in a hold of the tree, and what it says is right whatever changes between them. */
#include "gpu/path_table.h"

#include "resolve_device_util.h"

#define FOLDERS 10u
#define FILES	60u /* more nodes together than are looked through for two paths */

/* ---- what is asked ---- */

static uint64_t lookups(void)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(model.tree, &stats);
	return stats.device[PFS_QUESTION_LOOKUP].n;
}

static bool knows_paths(void)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(model.tree, &stats);
	return stats.info.knows_paths;
}

/* Asks, at least once, until the device has a table of all paths; returns how often it took. */
static unsigned wait_for_table(void)
{
	unsigned n = 0;

	do {
		assert_true(n++ < 1000);
		wait_for_device();
	} while (!knows_paths());
	return n;
}

/* Every path that there was, also of what has moved or is gone since. */
struct past {
	struct pfs_path_text *paths;
	size_t n;
};

static void remember(struct past *past)
{
	past->paths = realloc(past->paths, (past->n + model.n) * sizeof(*past->paths));
	assert_non_null(past->paths);
	for (size_t i = 1; i < model.n; i++) {
		const char *path = strdup(model.seen[i].path);

		past->paths[past->n++] = (struct pfs_path_text){path, strlen(path)};
	}
}

static void forget(struct past *past)
{
	for (size_t i = 0; i < past->n; i++)
		free((char *)past->paths[i].bytes);
	free(past->paths);
	*past = (struct past){.n = 0};
}

static uint64_t expected_now(const struct pfs_path_text *path)
{
	uint64_t ino;

	(void)pfs_scan_lock(model.tree, __func__);
	ino = expected_of(NULL, path);
	pfs_scan_unlock(model.tree);
	return ino;
}

/* All at once, and one in so many alone. */
static void check_past(const struct past *past, uint32_t one_in)
{
	const struct pfs_resolve_from from = {.alone = true};
	uint64_t *inos = calloc(past->n + 1, sizeof(*inos));

	assert_non_null(inos);
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, past->paths, past->n, &from), 0);
	for (size_t i = 0; i < past->n; i++) {
		const struct pfs_path_text *path = &past->paths[i];
		uint64_t wanted = expected_now(path), ino = wanted;

		if (rnd(one_in) == 0 && pfs_tree_resolve(model.tree, &ino, path->bytes))
			ino = 0;
		if (inos[i] != wanted || ino != wanted)
			fail_msg("%s: %llu and %llu instead of %llu", path->bytes,
				 (unsigned long long)inos[i], (unsigned long long)ino,
				 (unsigned long long)wanted);
	}
	free(inos);
}

/* ---- a table that is there ---- */

/* A device that has resolved many paths knows nodes by theirs, and so is asked once for one whose
 * directory it can be told; not so what has changed since. */
static void single_paths(void **state)
{
	const bool is_small = getenv("PFS_TEST_SMALL");
	const unsigned rounds = is_small ? 4 : 30;
	struct past past = {.n = 0};

	open_tree(state);
	random_tree(model.tree, is_small ? 40 : 400);
	for (unsigned round = 0; round < rounds; round++) {
		uint64_t before, ino;
		size_t short_ones = 0;

		model_look(&model, model.tree);
		remember(&past);
		if (round == 0 || rnd(2))
			(void)wait_for_table();
		else
			wait_for_device();
		check_past(&past, 1);
		before = lookups();
		for (size_t i = 1; i < model.n; i++) {
			const char *path = model.seen[i].path;

			if (strrchr(path, '/') - path > (ptrdiff_t)PFS_MAILBOX_PATH_MAX)
				continue;
			short_ones++;
			assert_int_equal(pfs_tree_resolve(model.tree, &ino, path), 0);
			assert_int_equal(ino, model.seen[i].ino);
		}
		if (is_stand_in && round == 0)
			assert_int_equal(lookups(), before + short_ones);
		random_changes(&model, 1 + rnd(3));
	}
	forget(&past);
	close_tree();
}

/* What is said to be below a file has the same error whatever the device knows. */
static void below_a_file(void **state)
{
	uint64_t ino, directory;

	open_tree(state);
	directory = temp_tree_make(model.tree, PFS_ROOT_PRIME, "a", S_IFDIR | 0755);
	(void)temp_tree_make(model.tree, directory, "file", S_IFREG | 0644);
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(pfs_tree_resolve(model.tree, &ino, "/a/file/x"), -ENOTDIR);
		assert_int_equal(pfs_tree_resolve(model.tree, &ino, "/a/none/x"), -ENOENT);
		(void)wait_for_table();
	}
	close_tree();
}

/* Directories that are made later are known by their paths, too, once they are many. */
static void new_directories(void **state)
{
	static const char path[] = "/a/b/c/d";
	uint64_t made[4], ino, at = PFS_ROOT_PRIME;

	open_tree(state);
	wait_for_device();
	for (unsigned i = 0; i < 4; i++) {
		const char name[] = {path[2 * i + 1], 0};

		at = made[i] = temp_tree_make(model.tree, at, name, S_IFDIR | 0755);
	}
	for (unsigned i = 0; i < PFS_RESIDENT_NEW; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", i);
		(void)temp_tree_make(model.tree, made[i % 4], name, S_IFDIR | 0755);
		if (i % 1000)
			continue;
		wait_for_device();
		assert_int_equal(pfs_tree_resolve(model.tree, &ino, path), 0);
		assert_int_equal(ino, made[3]);
	}
	(void)wait_for_table();
	if (is_stand_in) {
		const uint64_t before = lookups();

		assert_int_equal(pfs_tree_resolve(model.tree, &ino, path), 0);
		assert_int_equal(ino, made[3]);
		assert_int_equal(lookups(), before + 1);
	}
	close_tree();
}

/* ---- a table that is being made ---- */

static uint64_t folders[FOLDERS];

/* Two that are there at a time. */
static const char *numbered(const char *prefix, unsigned number)
{
	static char names[2][64];
	static unsigned last;
	char *name = names[last++ % 2];

	(void)snprintf(name, sizeof(names[0]), "%s%u", prefix, number);
	return name;
}

static uint64_t make_file(uint64_t folder, const char *name)
{
	return temp_tree_make(model.tree, folder, name, S_IFREG | 0644);
}

static uint64_t make_directory(uint64_t folder, const char *name)
{
	return temp_tree_make(model.tree, folder, name, S_IFDIR | 0755);
}

/* /dI/fJ, and empty directories. */
static void make_folders(void)
{
	for (unsigned i = 0; i < FOLDERS; i++) {
		folders[i] = make_directory(PFS_ROOT_PRIME, numbered("d", i));
		for (unsigned j = 0; j < FILES; j++)
			(void)make_file(folders[i], numbered("f", j));
	}
	(void)make_directory(PFS_ROOT_PRIME, "empty");
	(void)make_directory(PFS_ROOT_PRIME, "drop");
}

static void rename_in(uint64_t from, const char *name, uint64_t to, const char *new_name,
		      unsigned flags)
{
	assert_int_equal(pfs_tree_rename(model.tree, from, name, to, new_name, flags), 0);
}

/* Moves a directory away, or back if it is not there. */
static void move_to_and_fro(uint64_t home, const char *at_home, uint64_t away,
			    const char *when_away)
{
	if (pfs_tree_rename(model.tree, home, at_home, away, when_away, 0))
		rename_in(away, when_away, home, at_home, 0);
}

static void rename_file(unsigned n)
{
	rename_in(folders[4], numbered("f", n), folders[4],
		  numbered("a name that is much longer than it was ", n), 0);
}

static void rename_over(unsigned n)
{
	rename_in(folders[0], numbered("f", n), folders[0], numbered("f", n + 30), 0);
}

static void move_file(unsigned n)
{
	rename_in(folders[9], numbered("f", n), folders[0], numbered("from elsewhere ", n), 0);
}

static void exchange_files(unsigned n)
{
	rename_in(folders[1], numbered("f", n), folders[8], numbered("f", n + 1), RENAME_EXCHANGE);
}

static void create_files(unsigned n)
{
	(void)make_file(folders[2], numbered("new", n));
	(void)make_file(folders[7], numbered("new", n));
}

static void create_directory(unsigned n)
{
	const uint64_t made = make_directory(folders[3], numbered("new", n));

	(void)make_file(made, "in it");
	rename_in(folders[3], numbered("f", n), made, "moved", 0);
}

static void remove_file(unsigned n)
{
	assert_int_equal(pfs_tree_unlink(model.tree, folders[5], numbered("f", n)), 0);
}

/* Files that are made get the slots of those that are gone. */
static void reuse_slots(unsigned n)
{
	for (unsigned i = 3 * n; i < 3 * n + 3; i++)
		assert_int_equal(pfs_tree_unlink(model.tree, folders[6], numbered("f", i)), 0);
	for (unsigned i = 3 * n; i < 3 * n + 3; i++)
		(void)make_file(folders[i % FOLDERS], numbered("in its slot ", i));
}

static void rename_directory(unsigned n PFS_UNUSED)
{
	move_to_and_fro(PFS_ROOT_PRIME, "d1", PFS_ROOT_PRIME, "renamed");
}

static void move_directory(unsigned n PFS_UNUSED)
{
	move_to_and_fro(PFS_ROOT_PRIME, "d8", folders[0], "moved");
}

static void exchange_directories(unsigned n PFS_UNUSED)
{
	rename_in(PFS_ROOT_PRIME, "d0", PFS_ROOT_PRIME, "d9", RENAME_EXCHANGE);
}

static void remove_directory(unsigned n PFS_UNUSED)
{
	assert_int_equal(pfs_tree_rmdir(model.tree, PFS_ROOT_PRIME, "empty"), 0);
	(void)make_directory(PFS_ROOT_PRIME, "empty");
}

static void replace_directory(unsigned n)
{
	rename_in(PFS_ROOT_PRIME, "d2", PFS_ROOT_PRIME, numbered("other", n), 0);
	folders[2] = make_directory(PFS_ROOT_PRIME, "d2");
	(void)make_file(folders[2], "f0");
}

static const struct {
	void (*make)(unsigned n); /* for the n-th time, from 0 on */
	bool begins_anew;	  /* the table */
} kinds[] = {
	{rename_file, false},	   {rename_over, false},	 {move_file, false},
	{exchange_files, false},   {create_files, false},	 {create_directory, false},
	{remove_file, false},	   {reuse_slots, false},	 {rename_directory, true},
	{move_directory, true},	   {exchange_directories, true}, {remove_directory, true},
	{replace_directory, true},
};

/* Has the device drop its table with the next question. */
static void drop_table(void)
{
	move_to_and_fro(PFS_ROOT_PRIME, "drop", PFS_ROOT_PRIME, "dropped");
}

/* A change of each kind behind the n-th piece; returns how many there are. */
static unsigned change_behind(unsigned n)
{
	unsigned pieces;

	drop_table();
	pieces = wait_for_table();
	for (size_t kind = 0; kind < PFS_COUNT(kinds); kind++) {
		struct past past = {.n = 0};
		unsigned left;

		drop_table();
		for (unsigned i = 0; i < n; i++)
			wait_for_device();
		model_look(&model, model.tree);
		remember(&past);
		kinds[kind].make(n);
		model_look(&model, model.tree);
		remember(&past);
		left = wait_for_table();
		if (is_stand_in) /* a device counts paths before it begins */
			assert_int_equal(left, kinds[kind].begins_anew ? pieces : pieces - n);
		check_past(&past, 16);
		forget(&past);
	}
	return pieces;
}

static void changes_between_pieces(void **state)
{
	unsigned n = 0;

	open_tree(state);
	make_folders();
	(void)wait_for_table();
	while (n + 1 < change_behind(n))
		n++;
	assert_true(n > 4);
	close_tree();
}

static void random_changes_between_pieces(void **state)
{
	open_tree(state);
	random_tree(model.tree, 600);
	(void)make_directory(PFS_ROOT_PRIME, "drop");
	for (unsigned round = 0; round < 30; round++) {
		struct past past = {.n = 0};

		drop_table();
		do {
			wait_for_device();
			if (rnd(3))
				continue;
			model_look(&model, model.tree);
			remember(&past);
			random_changes(&model, 1);
		} while (!knows_paths());
		remember(&past);
		check_past(&past, 256);
		forget(&past);
	}
	close_tree();
}

/* However many paths somebody asks for, he looks through few slots while he holds the tree. */
static void short_pieces(void **state)
{
	static const size_t asked[] = {1, 2, 4095, 4096, 4097, PFS_RESIDENT_PATHS, SIZE_MAX};
	const struct pfs_path_table t = {.n_slots = 100 * PFS_PATH_PIECE + 1};

	for (size_t i = 0; i < PFS_COUNT(asked); i++) {
		const size_t most =
			PFS_MIN(asked[i], PFS_PATH_PIECE / PFS_PATH_WORTH) * PFS_PATH_WORTH;
		size_t pieces = 0;

		for (uint32_t at = 0, to; at < t.n_slots; at = to, pieces++) {
			to = pfs_table_piece_end(&t, at, asked[i]);
			assert_in_range(to - at, 1, most);
		}
		assert_int_equal(pieces, pfs_div_round_up(t.n_slots, most));
	}
	stand_in_resident.looked_most = 0;
	open_tree(state);
	make_folders();
	(void)wait_for_table();
	if (is_stand_in)
		assert_int_equal(stand_in_resident.looked_most, PFS_PATH_WORTH);
	close_tree();
}

/* With arguments, a pattern, only the tests that match it; and a seed. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(single_paths),
		ON_BOTH(below_a_file),
		ON_BOTH(new_directories),
		ON_BOTH(changes_between_pieces),
		ON_BOTH(random_changes_between_pieces),
		ON_BOTH(short_pieces),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
