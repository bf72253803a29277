/* SPDX-License-Identifier: MIT */
/* Many paths that a device resolves, or a stand-in for one: it finds what each path leads to if it
 * is asked for alone, after changes, too; and the host does where the device may not, cannot, or
 * fails. */
#include "resolve_device_util.h"

#include "clock_util.h"

#include <limits.h>
#include <pthread.h>

#include "tests/ref/stand_in.h"

long pfs_cuda_fail_at(long n); /* gpu/engine_impl.h, which does not go with the store's headers */

#define FAILING_MS 100
#define FOLDERS	   50u
#define FILES	   40u
#define ALL	   (FOLDERS * FILES)

/* ---- the same as the host finds ---- */

static void random_paths(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 31, 33, 1025, PFS_RESOLVE_HELD + 100};

	const bool is_small = getenv("PFS_TEST_SMALL");
	const unsigned rounds = is_small ? 2 : 6;

	open_tree(state);
	random_tree(model.tree, is_small ? 60 : 400);
	model_look(&model, model.tree);
	random_rights(&model);
	for (unsigned round = 0; round < rounds; round++) {
		const struct pfs_viewer viewer = {.uid = 1 + rnd(5), .gid = rnd(6)};
		uint64_t on_device, on_host;
		size_t asked = 0;

		wait_for_device();
		on_device = count(true);
		on_host = count(false);
		for (size_t i = 0; i < PFS_COUNT(sizes); asked += sizes[i++])
			check_paths(NULL, sizes[i]);
		assert_int_equal(count(true), on_device + asked);
		assert_int_equal(count(false), on_host);
		check_paths(&viewer, 500);
		assert_int_equal(count(true),
				 on_device + asked); /* who does not see all asks the host */
		check_relative();
		random_changes(&model, 10);
	}
	close_tree();
}

static struct pfs_path_text make_path(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
static struct pfs_path_text make_path(const char *format, ...)
{
	va_list args;
	char *path;
	int len;

	va_start(args, format);
	len = vasprintf(&path, format, args);
	va_end(args);
	assert_true(len >= 0);
	return (struct pfs_path_text){path, (size_t)len};
}

/* So many names in a directory that some have the same hash; more paths than are sent at once; and
 * some that are longer than there is room for. */
static void many_paths(void **state)
{
	const size_t files = 30000, n = 5 * files, all = 2 * n + 3, size = PFS_RESIDENT_TEXT + 1;
	const struct pfs_resolve_from from = {0};
	struct pfs_path_text *paths;
	uint64_t *made, *inos;
	char *slashes;

	open_tree(state);
	paths = calloc(all, sizeof(*paths));
	made = calloc(all, sizeof(*made));
	inos = calloc(all, sizeof(*inos));
	slashes = malloc(size);
	memset(slashes, '/', size);
	for (size_t i = 0; i < files; i++) {
		paths[i] = make_path("/%zu", i);
		made[i] = temp_tree_make(model.tree, PFS_ROOT_PRIME, paths[i].bytes + 1,
					 S_IFREG | 0644);
	}
	for (size_t i = 0; i < n; i++) {
		paths[i] = paths[n + i + 3] = paths[i % files];
		made[i] = made[n + i + 3] = made[i % files];
	}
	paths[n] = (struct pfs_path_text){slashes, size};
	paths[n + 1] = (struct pfs_path_text){slashes, size - 1};
	paths[n + 2] = (struct pfs_path_text){slashes, 0};
	made[n] = made[n + 1] = PFS_ROOT_PRIME;
	wait_for_device();
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, all, &from), 0);
	assert_memory_equal(inos, made, all * sizeof(*made));
	close_tree();
	for (size_t i = 0; i < files; i++)
		free((char *)paths[i].bytes);
	free(slashes);
	free(paths);
	free(made);
	free(inos);
}

static void names_that_are_too_long(void **state)
{
	enum { LONGEST = 300 };
	struct pfs_path_text paths[2 * LONGEST];
	uint64_t inos[2 * LONGEST], made[LONGEST] = {0};
	const struct pfs_resolve_from from = {0};
	char name[LONGEST + 1];

	open_tree(state);
	memset(name, 'n', LONGEST);
	for (unsigned len = 1; len < LONGEST; len++) {
		name[len] = 0;
		if (len <= 255)
			made[len] =
				temp_tree_make(model.tree, PFS_ROOT_PRIME, name, S_IFREG | 0644);
		paths[len] = make_path("%s", name);
		paths[LONGEST + len] = make_path("%s/", name); /* a file is no directory */
		name[len] = 'n';
	}
	paths[0] = paths[LONGEST] = make_path("/..//.");
	wait_for_device();
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, 2 * LONGEST, &from), 0);
	assert_int_equal(inos[0], PFS_ROOT_PRIME);
	for (unsigned len = 1; len < LONGEST; len++) {
		assert_int_equal(inos[len], made[len]);
		assert_int_equal(inos[LONGEST + len], 0);
	}
	close_tree();
	paths[LONGEST].bytes = NULL; /* the same as the first */
	for (unsigned i = 0; i < 2 * LONGEST; i++)
		free((char *)paths[i].bytes);
}

/* The host resolves the paths that are longer than PATH_MAX, each by itself, and the device those
 * around them. */
static void paths_that_are_too_long(void **state)
{
	static const size_t lens[] = {2,	   PATH_MAX,	 PATH_MAX + 1, 2,
				      100,	   PATH_MAX + 1, 3 * PATH_MAX, PATH_MAX,
				      PATH_MAX + 1};
	struct pfs_path_text paths[PFS_COUNT(lens)];
	const struct pfs_resolve_from from = {0};
	uint64_t inos[PFS_COUNT(lens)], file, on_device, on_host;
	size_t n_long = 0;

	open_tree(state);
	file = temp_tree_make(model.tree, PFS_ROOT_PRIME, "f", S_IFREG | 0644);
	for (size_t i = 0; i < PFS_COUNT(lens); i++) {
		char *path = malloc(lens[i]);

		memset(path, '/', lens[i]);
		path[lens[i] - 1] = 'f';
		paths[i] = (struct pfs_path_text){path, lens[i]};
		n_long += lens[i] > PATH_MAX;
	}
	wait_for_device();
	on_device = count(true);
	on_host = count(false);
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, PFS_COUNT(lens), &from), 0);
	for (size_t i = 0; i < PFS_COUNT(lens); i++)
		assert_int_equal(inos[i], file);
	assert_int_equal(count(true), on_device + PFS_COUNT(lens) - n_long);
	assert_int_equal(count(false), on_host + n_long);
	close_tree();
	for (size_t i = 0; i < PFS_COUNT(lens); i++)
		free((char *)paths[i].bytes);
}

/* As SQL's resolve() asks. */
static void slots_in_a_hold(void **state)
{
	struct pfs_path_text paths[] = {{"/d/f", 4}, {"d", 1}, {"/d/g", 4}, {"", 0}};
	uint32_t slots[PFS_COUNT(paths)];
	uint64_t folder, file, before;

	open_tree(state);
	folder = temp_tree_make(model.tree, PFS_ROOT_PRIME, "d", S_IFDIR | 0755);
	file = temp_tree_make(model.tree, folder, "f", S_IFREG | 0644);
	wait_for_device();
	before = count(true);
	(void)pfs_scan_lock(model.tree, __func__);
	pfs_resolve_held(model.tree, NULL, PFS_NO_SLOT, slots, paths, PFS_COUNT(paths));
	assert_int_equal(slots[0], pfs_scan_slot_of(model.tree, file));
	assert_int_equal(slots[1], PFS_NO_SLOT);
	assert_int_equal(slots[2], PFS_NO_SLOT);
	assert_int_equal(slots[3], PFS_NO_SLOT);
	pfs_resolve_held(model.tree, NULL, pfs_scan_slot_of(model.tree, PFS_ROOT_PRIME), slots,
			 paths, 2);
	assert_int_equal(slots[1], pfs_scan_slot_of(model.tree, folder));
	pfs_scan_unlock(model.tree);
	assert_int_equal(count(true), before + PFS_COUNT(paths) + 2);
	close_tree();
}

/* ---- several lists at once ---- */

/* The host resolves while others have all of the memory. */
static void as_many_lists_as_there_may_be(void **state)
{
	struct pfs_resident_paths *taken[PFS_RESIDENT_LISTS], *more;

	open_tree(state);
	random_tree(model.tree, 100);
	model_look(&model, model.tree);
	wait_for_device();
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++) {
		const uint64_t on_device = count(true), on_host = count(false);

		check_paths(NULL, 10);
		assert_int_equal(count(true), on_device + 10);
		assert_int_equal(count(false), on_host);
		assert_true(pfs_device_paths_take(model.tree, &taken[i]));
		for (unsigned j = 0; j < i; j++)
			assert_ptr_not_equal(taken[i]->text, taken[j]->text);
	}
	assert_false(pfs_device_paths_take(model.tree, &more));
	check_paths(NULL, 10);
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++) {
		pfs_device_paths_return(model.tree, taken[i]);
		assert_true(pfs_device_paths_take(model.tree, &more));
		assert_ptr_equal(more, taken[i]);
	}
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++)
		pfs_device_paths_return(model.tree, taken[i]);
	close_tree();
}

struct asking {
	const struct pfs_path_text *paths;
	const uint64_t *wanted;
	size_t n;
};

static void *ask_often(void *arg)
{
	const struct asking *asking = arg;
	const struct pfs_resolve_from from = {.alone = true};
	uint64_t *inos = calloc(asking->n, sizeof(*inos));

	for (unsigned round = 0; round < 50; round++) {
		memset(inos, 0xff, asking->n * sizeof(*inos));
		if (pfs_tree_resolve_many(model.tree, inos, asking->paths, asking->n, &from) ||
		    memcmp(inos, asking->wanted, asking->n * sizeof(*inos)) != 0)
			break;
		if (round == 49)
			arg = NULL;
	}
	free(inos);
	return arg;
}

/* Each thread gets the answers to its own paths, all of the device. */
static void lists_of_several_threads(void **state)
{
	enum { PATHS = 2000 };
	struct pfs_path_text paths[PATHS];
	uint64_t made[PATHS], on_device;
	struct asking asking[PFS_RESIDENT_LISTS];
	pthread_t threads[PFS_RESIDENT_LISTS];

	open_tree(state);
	for (unsigned i = 0; i < PATHS; i++) {
		paths[i] = make_path("/%u", i);
		made[i] = temp_tree_make(model.tree, PFS_ROOT_PRIME, paths[i].bytes + 1,
					 S_IFREG | 0644);
	}
	wait_for_device();
	on_device = count(true);
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++) {
		asking[i] = (struct asking){paths + i, made + i, PATHS - 100 * i};
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &asking[i]), 0);
		on_device += 50 * asking[i].n;
	}
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(count(true), on_device);
	close_tree();
	for (unsigned i = 0; i < PATHS; i++)
		free((char *)paths[i].bytes);
}

/* ---- failures ---- */

/* /dI/fJ of each file, after some folders have changed their names; returns how many the device
 * resolved. */
static uint64_t resolve_amid_changes(void)
{
	const struct pfs_resolve_from from = {0};
	static struct pfs_path_text paths[ALL];
	static uint64_t made[ALL], inos[ALL];

	for (unsigned i = 0; i < FOLDERS; i++) {
		char name[16];
		uint64_t folder;

		(void)snprintf(name, sizeof(name), "d%u", i);
		folder = temp_tree_make(model.tree, PFS_ROOT_PRIME, name, S_IFDIR | 0755);
		for (unsigned j = 0; j < FILES; j++) {
			(void)snprintf(name, sizeof(name), "f%u", j);
			made[i * FILES + j] =
				temp_tree_make(model.tree, folder, name, S_IFREG | 0644);
			paths[i * FILES + j] = make_path("/%s%u/f%u", i % 7 ? "d" : "moved", i, j);
		}
	}
	for (unsigned i = 0; i < FOLDERS; i += 7) {
		char from_name[16], to[16];

		(void)snprintf(from_name, sizeof(from_name), "d%u", i);
		(void)snprintf(to, sizeof(to), "moved%u", i);
		for (unsigned round = 0; round < 3; round++) {
			assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths + FILES,
							       FILES, &from),
					 0);
			assert_memory_equal(inos, made + FILES, FILES * sizeof(*made));
			(void)usleep(1000);
		}
		assert_int_equal(pfs_tree_rename(model.tree, PFS_ROOT_PRIME, from_name,
						 PFS_ROOT_PRIME, to, 0),
				 0);
	}
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, ALL, &from), 0);
	assert_memory_equal(inos, made, sizeof(made));
	for (unsigned i = 0; i < ALL; i++)
		free((char *)paths[i].bytes);
	return count(true);
}

static void check_who_resolves(bool on_device)
{
	const uint64_t before = count(on_device);

	check_paths(NULL, 10);
	assert_int_equal(count(on_device), before + 10);
}

/* Asks until the device answers single questions. */
static void wait_for_lookups(void)
{
	struct pfs_device_lookup_stats stats = {.device = {{0}}};

	for (unsigned ms = 0; ms < WAIT_MS && !stats.device[PFS_QUESTION_LOOKUP].n; ms++) {
		check_who_resolves(false);
		(void)usleep(1000);
		pfs_device_lookup_stats(model.tree, &stats);
	}
	assert_true(stats.device[PFS_QUESTION_LOOKUP].n > 0);
}

/* Where memory was refused the host resolves for half a minute. The clock is not put on while the
 * device gets the tree, which would seem to have taken so long. */
static void memory_is_asked_for_again(void **state)
{
	open_tree(state);
	random_tree(model.tree, 100);
	model_look(&model, model.tree);
	/* That of the first list. */
	stand_in_resident.refused = PFS_RESIDENT_LISTS;
	wait_for_lookups();
	stand_in_resident.refused = 0;
	check_who_resolves(false);
	seconds_later += 40;
	wait_for_device();
	/* The device's own, for the paths. */
	stand_in_resident.is_full = true;
	check_who_resolves(false);
	stand_in_resident.is_full = false;
	check_who_resolves(false);
	seconds_later += 40;
	check_who_resolves(true);
	close_tree();
	seconds_later = 0;
}

static void every_call_of_a_stand_in(void **state)
{
	static const int failures[] = {-EIO, -ENOMEM};

	for (size_t f = 0; f < PFS_COUNT(failures); f++) {
		stand_in.failure = failures[f];
		for (long n = 1; n < 12; n++) {
			stand_in.calls_left = n;
			open_tree(state);
			(void)resolve_amid_changes();
			close_tree();
		}
	}
	stand_in.failure = -EIO;
	stand_in.calls_left = LONG_MAX;
	open_tree(state);
	assert_true(resolve_amid_changes() > 0);
	close_tree();
}

/* A device is there some time after its tree, if it does not fail before. */
static void every_call_of_a_device(void **state)
{
	for (long n = 0; n <= 400; n += n < 100 ? 1 : 15) {
		pfs_cuda_fail_at(n);
		open_tree(state);
		if (n == 0)
			wait_for_device();
		else
			(void)is_on_device(FAILING_MS);
		assert_true(resolve_amid_changes() > 0 || n);
		close_tree();
	}
	pfs_cuda_fail_at(0);
}

/* With arguments, a pattern, only the tests that match it; and a seed. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(random_paths),
		ON_BOTH(many_paths),
		ON_BOTH(names_that_are_too_long),
		ON_BOTH(paths_that_are_too_long),
		ON_BOTH(slots_in_a_hold),
		ON_BOTH(as_many_lists_as_there_may_be),
		ON_BOTH(lists_of_several_threads),
		{"memory_is_asked_for_again", memory_is_asked_for_again, NULL, NULL,
		 (void *)"stand-in"},
		{"every_call_of_a_stand_in", every_call_of_a_stand_in, NULL, NULL,
		 (void *)"stand-in"},
		{"every_call_of_a_device", every_call_of_a_device, NULL, NULL, NULL},
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
