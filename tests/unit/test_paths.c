/* SPDX-License-Identifier: MIT */
/* Listings that are read piece by piece while names come, go and move: each stays as it was when it
 * was opened. PFS_SEED: another seed. */
#include "tree_util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fs/image/hold.h"
#include "fs/image/old_places.h"
#include "fs/image/snapshot.h"
#include "fs/image/slotorder.h"
#include "fs/nodes/paths.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"

#define FOLDERS 240u
#define FILES	200u /* in each: together more than one hold takes */

static const struct pfs_tree_options options = {.no_atime = true, .engine = PFS_ENGINE_HOST};
static uint64_t seed = 20261122;

static int start(void **state)
{
	char name[32];

	(void)state;
	start_tree(&options);
	for (unsigned i = 0; i < FOLDERS; i++) {
		uint64_t folder;

		(void)snprintf(name, sizeof(name), "folder%04u", i);
		folder = temp_tree_make(tree, PFS_ROOT_PRIME, name, S_IFDIR | 0755);
		for (unsigned k = 0; k < FILES; k++) {
			(void)snprintf(name, sizeof(name), "%03u", k);
			assert_true(temp_tree_make(tree, folder, name, S_IFREG | 0644));
		}
	}
	return 0;
}

/* ---- texts ---- */

static struct text list_now(uint64_t ino, unsigned flags)
{
	const struct pfs_question question = {PFS_SUBTREE, &ino, 1};
	struct text text = {.size = 0};

	assert_int_equal(pfs_tree_list(tree, &question, flags, append_text, &text), 0);
	return text;
}

/* A listing, and what it is to have. */
struct listing {
	struct pfs_paths *paths;
	uint64_t row;
	unsigned flags;
	struct text wanted, found;
};

/* Every other one has inode numbers. */
static void open_listing(struct listing *listing, uint64_t ino)
{
	static unsigned n;
	unsigned flags = n++ % 2 ? PFS_LIST_INO : 0;

	*listing = (struct listing){.wanted = list_now(ino, flags), .flags = flags};
	assert_int_equal(pfs_paths_open(&listing->paths, tree, ino, flags), 0);
}

static void close_listing(struct listing *listing)
{
	pfs_paths_close(listing->paths);
	free(listing->wanted.bytes);
	free(listing->found.bytes);
	listing->paths = NULL;
}

/* Of paths alone: their length with numbers is not asked for. */
static uint64_t measure(struct listing *listing)
{
	uint64_t row = 0, size = 0, some;

	if (listing->flags)
		return listing->wanted.size;
	while (pfs_paths_measure(listing->paths, &row, &some, 65536) > 0)
		size += some;
	return size;
}

/* Goes on by a piece; at the end looks whether it is right, and begins again.  1: there is more. */
static int go_on(struct listing *listing)
{
	int error = pfs_paths_next(listing->paths, &listing->row, append_text, &listing->found);

	if (error != 0)
		return error;
	error = listing->found.size == listing->wanted.size &&
				measure(listing) == listing->wanted.size &&
				memcmp(listing->found.bytes, listing->wanted.bytes,
				       listing->wanted.size) == 0
			? 0
			: -EILSEQ;
	listing->row = listing->found.size = 0;
	return error;
}

static void check_whole(struct listing *listing)
{
	int error = 1;

	listing->row = listing->found.size = 0;
	while (error > 0)
		error = go_on(listing);
	assert_int_equal(error, 0);
}

/* ---- changes ---- */

static uint64_t look_up(uint64_t parent, const char *name)
{
	struct pfs_entry entry;

	if (pfs_tree_lookup(tree, &entry, parent, name))
		return 0;
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return entry.attr.st_ino;
}

static void random_name(char name[32], uint64_t *random, const char *prefix, unsigned digits,
			unsigned n)
{
	(void)snprintf(name, 32, "%s%0*u", prefix, (int)digits, random_below(random, n));
}

static void change(uint64_t *random)
{
	struct pfs_entry entry;
	char folder[32], other[32], name[32], to[32];
	uint64_t from, into;

	random_name(folder, random, "folder", 4, FOLDERS);
	random_name(other, random, "folder", 4, FOLDERS);
	random_name(name, random, "", 3, FILES + 20);
	random_name(to, random, random_below(random, 2) ? "" : "new", 3, FILES + 20);
	from = look_up(PFS_ROOT_PRIME, folder);
	into = look_up(PFS_ROOT_PRIME, other);
	switch (from && into ? random_below(random, 6) : 5) {
	case 0:
		(void)!pfs_tree_unlink(tree, from, name);
		break;
	case 1:
		(void)!pfs_tree_rename(tree, from, name, into, to, 0);
		break;
	case 2:
		if (!pfs_tree_make(tree, &entry, from, to, S_IFREG | 0644, 0, &temp_root))
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
		break;
	case 3: /* a folder into another, which a later step may take out again */
		if (random_below(random, 20) == 0)
			(void)!pfs_tree_rename(tree, PFS_ROOT_PRIME, folder, into, folder, 0);
		break;
	case 4:
		(void)!pfs_tree_rename(tree, from, name, from, to, 0);
		break;
	default:
		if (into)
			(void)!pfs_tree_rename(tree, into, folder, PFS_ROOT_PRIME, folder, 0);
	}
}

/* ---- */

static void test_still(void **state)
{
	struct listing listing, folder;
	uint64_t row = 7, ino = look_up(PFS_ROOT_PRIME, "folder0007");

	(void)state;
	open_listing(&listing, PFS_ROOT_PRIME);
	open_listing(&folder, ino);
	check_whole(&listing);
	check_whole(&folder);
	check_whole(&listing);
	row = UINT64_MAX;
	assert_int_equal(pfs_paths_next(listing.paths, &row, append_text, &listing.found), 0);
	close_listing(&folder);
	close_listing(&listing);
	assert_int_equal(pfs_paths_open(&listing.paths, tree, 4, 0), -ENOENT);
	assert_null(listing.paths);
}

static void test_changing(void **state)
{
	struct listing listings[6] = {{0}};
	uint64_t folder = look_up(PFS_ROOT_PRIME, "folder0011");

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct listing *one = &listings[random_below(&seed, PFS_COUNT(listings))];

		if (!one->paths) {
			open_listing(one, random_below(&seed, 4) ? PFS_ROOT_PRIME : folder);
		} else if (random_below(&seed, 12) == 0) {
			check_whole(one);
			close_listing(one);
		} else {
			assert_true(go_on(one) >= 0);
		}
		for (unsigned k = random_below(&seed, 20); k > 0; k--)
			change(&seed);
		if (i % 1000 == 500)
			assert_int_equal(pfs_tree_sync(tree), 0); /* slots are given to others */
	}
	for (size_t i = 0; i < PFS_COUNT(listings); i++) {
		if (listings[i].paths)
			check_whole(&listings[i]);
		if (listings[i].paths)
			close_listing(&listings[i]);
	}
}

static size_t n_strays(void)
{
	const uint32_t *strays;
	size_t n;

	(void)pfs_scan_lock(tree, __func__);
	n = pfs_slotorder(tree) == PFS_ORDER_ASCENDING ? pfs_slotorder_strays(tree, &strays, 0) : 0;
	pfs_scan_unlock(tree);
	return n;
}

/* Few that are not where pre-order would have them, in all places. */
static void test_strays(void **state)
{
	static const char *const names[] = {"!first", "folder", "folder0100a", "folder0100",
					    "~last"};
	struct listing listing;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		uint64_t into = i % 3 ? look_up(PFS_ROOT_PRIME, i % 2 ? "folder0000" : "folder0239")
				      : PFS_ROOT_PRIME;
		unsigned which = random_below(&seed, PFS_COUNT(names));

		(void)snprintf(name, sizeof(name), "%s%u", names[which], random_below(&seed, 50));
		if (look_up(into, name))
			assert_int_equal(pfs_tree_unlink(tree, into, name), 0);
		else
			assert_true(temp_tree_make(tree, into, name, S_IFREG | 0644));
		if (i % 10 == 0) {
			assert_true(i == 0 || n_strays() > 0);
			open_listing(&listing, PFS_ROOT_PRIME);
			check_whole(&listing);
			assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, "0", S_IFREG | 0644));
			assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "0"), 0);
			check_whole(&listing);
			close_listing(&listing);
		}
		if (i % 100 == 50)
			assert_int_equal(pfs_tree_sync(tree), 0);
	}
}

/* ---- sets ---- */

#define CHOSEN (FOLDERS / 2) /* every other folder, which have more than one hold takes */

/* What lies under the chosen folders, wherever these are. */
struct chosen {
	uint64_t inos[CHOSEN];
	char *paths[CHOSEN];
	struct text wanted;
};

static bool is_chosen(const struct chosen *chosen, const char *line)
{
	for (size_t i = 0; i < CHOSEN; i++) {
		size_t len = strlen(chosen->paths[i]);

		if (strncmp(line, chosen->paths[i], len) == 0 &&
		    (line[len] == '/' || line[len] == '\n'))
			return true;
	}
	return false;
}

static void choose(struct chosen *chosen)
{
	struct text all;
	char name[32];

	*chosen = (struct chosen){.wanted = {.size = 0}};
	for (unsigned i = 0; i < CHOSEN; i++) {
		(void)snprintf(name, sizeof(name), "folder%04u", 2 * i);
		chosen->inos[i] = look_up(PFS_ROOT_PRIME, name);
		assert_int_not_equal(chosen->inos[i], 0);
		assert_int_equal(pfs_tree_path(tree, &chosen->paths[i], chosen->inos[i]), 0);
	}
	all = list_now(PFS_ROOT_PRIME, 0);
	for (char *line = all.bytes, *end; line < all.bytes + all.size; line = end) {
		end = (char *)memchr(line, '\n', (size_t)(all.bytes + all.size - line)) + 1;
		if (is_chosen(chosen, line))
			(void)append_text(&chosen->wanted, line, (size_t)(end - line));
	}
	free(all.bytes);
}

/* Reads a listing, and has a file renamed meanwhile that comes last in it. */
struct set_reader {
	struct text text;
	pthread_t thread;
	uint64_t folder;
	bool has_begun, was_changed; /* when the last piece came */
	uint64_t epoch;		     /* when the first did */
	atomic_bool is_trying;
};

static void *change_last(void *arg)
{
	struct set_reader *reader = arg;

	atomic_store(&reader->is_trying, true);
	(void)!pfs_tree_rename(tree, reader->folder, "199", PFS_ROOT_PRIME, "!199", 0);
	return NULL;
}

static int read_set(void *arg, const char *bytes, size_t size)
{
	struct set_reader *reader = arg;

	if (!reader->has_begun)
		reader->epoch = tree->image.epoch;
	if (!reader->has_begun)
		assert_int_equal(pthread_create(&reader->thread, NULL, change_last, reader), 0);
	for (unsigned ms = 0; !reader->has_begun && ms < 10000 &&
			      !(atomic_load(&reader->is_trying) && pfs_hold_is_wanted(tree));
	     ms++)
		(void)usleep(1000);
	reader->has_begun = true;
	reader->was_changed = tree->image.epoch != reader->epoch;
	return append_text(&reader->text, bytes, size);
}

/* Lists a set, which is as it was in the first hold. Returns false if nobody came between two holds. */
static bool list_set(void)
{
	struct chosen chosen;
	struct set_reader reader = {.has_begun = false};
	struct pfs_question question = {PFS_SUBTREE, chosen.inos, CHOSEN};
	struct text folder = {.size = 0};

	choose(&chosen);
	reader.folder = chosen.inos[CHOSEN - 1];
	assert_int_equal(pfs_tree_list(tree, &question, 0, read_set, &reader), 0);
	(void)pthread_join(reader.thread, NULL);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "!199", reader.folder, "199", 0), 0);
	assert_int_equal(reader.text.size, chosen.wanted.size);
	assert_memory_equal(reader.text.bytes, chosen.wanted.bytes, chosen.wanted.size);
	question = (struct pfs_question){PFS_CHILDREN, chosen.inos, 1};
	assert_int_equal(pfs_tree_list(tree, &question, 0, append_text, &folder), 0);
	assert_true(folder.size > 0 && folder.size < chosen.wanted.size);
	assert_memory_equal(folder.bytes, chosen.wanted.bytes + strlen(chosen.paths[0]) + 1,
			    folder.size);
	free(folder.bytes);
	for (size_t i = 0; i < CHOSEN; i++)
		free(chosen.paths[i]);
	free(chosen.wanted.bytes);
	free(reader.text.bytes);
	return reader.was_changed;
}

/* A set is listed in several holds, between which others come, if they have a processor then. */
static void check_set(void)
{
	unsigned tries = 0;

	while (!list_set())
		assert_true(++tries < 100);
}

static void test_sets(void **state)
{
	uint64_t folder = look_up(PFS_ROOT_PRIME, "folder0100");
	char name[32];

	(void)state;
	assert_int_equal(n_strays(), 0);
	check_set();
	assert_true(n_strays() > 0);
	check_set();
	for (unsigned i = 0; i < PFS_STRAYS_MAX + 1; i++) { /* so many that slots have no order */
		(void)snprintf(name, sizeof(name), "!%05u", i);
		assert_true(temp_tree_make(tree, folder, name, S_IFREG | 0644));
	}
	assert_int_equal(n_strays(), 0);
	check_set();
}

/* Everything goes. */
static void test_emptied(void **state)
{
	struct listing listing;
	char folder[32], name[32];

	(void)state;
	open_listing(&listing, PFS_ROOT_PRIME);
	for (unsigned i = 0; i < FOLDERS; i++) {
		uint64_t ino;

		(void)snprintf(folder, sizeof(folder), "folder%04u", i);
		ino = look_up(PFS_ROOT_PRIME, folder);
		for (unsigned k = 0; ino && k < FILES + 20; k++) {
			(void)snprintf(name, sizeof(name), "%03u", k);
			(void)!pfs_tree_unlink(tree, ino, name);
		}
	}
	assert_int_equal(pfs_tree_sync(tree), 0);
	check_whole(&listing);
	for (unsigned i = 0; i < 5000; i++)
		change(&seed);
	check_whole(&listing);
	close_listing(&listing);
}

static uint64_t remembered(void)
{
	struct pfs_snapshot_stats stats;

	pfs_snapshots_stats(tree, &stats);
	return stats.kept_elsewhere[PFS_KEPT_PASTS];
}

/* One that cannot remember what has changed says so; one opened later is not concerned. */
static void test_forgetful(void **state)
{
	const int64_t most = INT64_C(1) << 40;
	struct listing listing, later;

	(void)state;
	assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, "moves", S_IFREG | 0644));
	open_listing(&listing, PFS_ROOT_PRIME);
	assert_int_equal(go_on(&listing), 1);
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, most); /* no room is left */
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "moves", PFS_ROOT_PRIME, "moved", 0),
			 0);
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, -most);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(go_on(&listing), -ENOMEM);
	open_listing(&later, PFS_ROOT_PRIME);
	for (unsigned i = 0; i < 5000; i++)
		change(&seed);
	check_whole(&later);
	close_listing(&later);
	close_listing(&listing);
	assert_int_equal(remembered(), 0);
}

/* Of two the older one goes: what it had remembered is room for the other. */
static void test_oldest_goes(void **state)
{
	struct listing older, later;
	int64_t most = INT64_C(1) << 40;
	uint64_t before;

	(void)state;
	open_listing(&older, PFS_ROOT_PRIME);
	for (unsigned i = 0; i < 5000; i++)
		change(&seed);
	open_listing(&later, PFS_ROOT_PRIME);
	before = remembered();
	assert_true(before > 0);
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, most);
	for (unsigned i = 0; i < 2000; i++)
		change(&seed);
	assert_int_equal(remembered(), before);
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, -most);
	assert_int_equal(go_on(&older), -ENOMEM);
	check_whole(&later);
	close_listing(&older);
	close_listing(&later);
	assert_int_equal(remembered(), 0);
}

/* What was reserved before a change is enough for it, whatever was taken meanwhile. */
static void test_reserved(void **state)
{
	const int64_t most = INT64_C(1) << 40;
	struct listing listings[2];
	uint64_t ino = temp_tree_make(tree, PFS_ROOT_PRIME, "stays or goes", S_IFREG | 0644);
	uint64_t before;

	(void)state;
	assert_true(ino);
	open_listing(&listings[0], PFS_ROOT_PRIME);
	assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, "between", S_IFREG | 0644));
	open_listing(&listings[1], PFS_ROOT_PRIME);
	pfs_place_history_reserve(tree, 1);
	before = remembered();
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, most);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "stays or goes"), 0);
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, -most);
	assert_int_equal(remembered(), before);
	for (size_t i = 0; i < 2; i++)
		check_whole(&listings[i]);
	for (size_t i = 0; i < 2; i++)
		close_listing(&listings[i]);
	assert_int_equal(remembered(), 0);
}

static atomic_bool ended;

static void *read_on(void *arg)
{
	struct listing *listing = arg;
	int error = 0;

	while (!atomic_load(&ended) && error >= 0)
		error = go_on(listing);
	listing->row = error < 0;
	return NULL;
}

static void test_together(void **state)
{
	struct listing listings[3];
	unsigned changes = getenv("PFS_TEST_SMALL") ? 2000 : 20000;
	pthread_t threads[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		open_listing(&listings[i], PFS_ROOT_PRIME);
		for (unsigned k = 0; k < 100; k++)
			change(&seed);
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &listings[i]), 0);
	for (unsigned i = 0; i < changes; i++)
		change(&seed);
	atomic_store(&ended, true);
	for (size_t i = 0; i < 3; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(listings[i].row, 0);
		check_whole(&listings[i]);
		close_listing(&listings[i]);
	}
}

int main(void)
{
	const char *given = getenv("PFS_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_still),	  cmocka_unit_test(test_strays),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_emptied),	  cmocka_unit_test(test_forgetful),
		cmocka_unit_test(test_oldest_goes),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_together),
	};
	const struct CMUnitTest of_sets[] = {cmocka_unit_test(test_sets)};

	seed = given ? strtoull(given, NULL, 10) : seed;
	print_message("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, start, stop_tree) +
	       cmocka_run_group_tests(of_sets, start, stop_tree);
}
