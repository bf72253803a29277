/* SPDX-License-Identifier: MIT */
/* Listings of subtrees that are ranges of slots in pre-order, which all cores write, beside what a
 * walk finds; and of others, which they become.  PFS_SEED: another seed. */
#include "tree_util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fs/nodes/scan.h"
#include "fs/image/slotorder.h"
#include "tests/ref/random.h"

#define FOLDERS 700u
#define FILES	100u /* in each, and as many in a folder in it: more than is written ahead */
#define PIECES	(FOLDERS * FILES / 1024) /* at least; how many more depends on how long holds are */

static const struct pfs_tree_options options = {.no_atime = true, .engine = PFS_ENGINE_HOST};

struct name {
	char text[PFS_NAME_MAX + 1];
};

static struct name name_of(const char *before, int digits, unsigned number, const char *after)
{
	struct name name;

	(void)snprintf(name.text, sizeof(name.text), "%s%0*u%s", before, digits, number, after);
	return name;
}

static uint64_t make(uint64_t parent, struct name name, mode_t mode)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(tree, &entry, parent, name.text, mode, 0, &temp_root), 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return entry.attr.st_ino;
}

/* In pre-order, so that slots ascend; some names are as long as names may be. */
static int start(void **state)
{
	(void)state;
	start_tree(&options);
	for (unsigned i = 0; i < FOLDERS; i++) {
		uint64_t folder = make(PFS_ROOT_PRIME, name_of("", 250, i, ""), S_IFDIR | 0755);

		for (unsigned k = 0; k < FILES / 2; k++)
			(void)make(folder, name_of("a", i % 100 ? 2 : 254, k, ""), S_IFREG | 0644);
		folder = make(folder, name_of("b", 0, 0, ""), S_IFDIR | 0755);
		for (unsigned k = 0; k < FILES / 2; k++)
			(void)make(folder, name_of("", 2, k, k % 7 ? "" : ".\n"), S_IFREG | 0644);
	}
	return 0;
}

/* ---- what a walk finds ---- */

struct walked {
	struct text text;
	const char *top;
	unsigned flags;
};

static int append_node(void *arg, const struct pfs_walk_node *node)
{
	struct walked *walked = arg;
	struct text *text = &walked->text;
	char number[32];
	int n = snprintf(number, sizeof(number), "%llu\t",
			 (unsigned long long)node->entry.attr.st_ino);

	if (walked->flags & PFS_LIST_INO)
		(void)append_text(text, number, (size_t)n);
	(void)append_text(text, walked->top, strlen(walked->top));
	if (node->path_len || !*walked->top)
		(void)append_text(text, "/", 1);
	(void)append_text(text, node->path, node->path_len);
	return append_text(text, walked->flags & PFS_LIST_ZERO ? "" : "\n", 1);
}

static void check(uint64_t ino, const char *top, unsigned flags)
{
	const struct pfs_question question = {PFS_SUBTREE, &ino, 1};
	struct walked walked = {.top = top, .flags = flags};
	const struct text *wanted = &walked.text;
	struct text found = {.size = 0};

	assert_int_equal(pfs_tree_walk(tree, ino, append_node, &walked), 0);
	assert_int_equal(pfs_tree_list(tree, &question, flags, append_text, &found), 0);
	assert_int_equal(found.size, wanted->size);
	assert_memory_equal(found.bytes, wanted->bytes, wanted->size);
	free(found.bytes);
	free(wanted->bytes);
}

static bool ascends(void)
{
	bool does;

	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_scan_learn_order(tree, NULL), 0);
	does = pfs_scan_ascends(tree, 0, pfs_scan_end(tree));
	pfs_scan_unlock(tree);
	return does;
}

static uint64_t look_up(uint64_t parent, const char *name)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_lookup(tree, &entry, parent, name), 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return entry.attr.st_ino;
}

static void check_all(void)
{
	uint64_t folder, file;
	char top[PFS_NAME_MAX + 16];

	check(PFS_ROOT_PRIME, "", 0);
	check(PFS_ROOT_PRIME, "", PFS_LIST_INO | PFS_LIST_ZERO);
	(void)snprintf(top, sizeof(top), "/%0250u", 5u);
	folder = look_up(PFS_ROOT_PRIME, top + 1);
	check(folder, top, PFS_LIST_INO);
	file = look_up(folder, "a13");
	(void)snprintf(top, sizeof(top), "/%0250u/a13", 5u);
	check(file, top, PFS_LIST_ZERO);
}

static void test_ranges(void **state)
{
	(void)state;
	assert_true(ascends());
	check_all();
	for (unsigned i = 7; i < FOLDERS; i += 50) { /* leaves holes */
		struct name name = name_of("", 250, i, "");

		assert_int_equal(pfs_tree_unlink(tree, look_up(PFS_ROOT_PRIME, name.text), "a11"),
				 0);
	}
	assert_true(ascends());
	check_all();
}

static void test_missing(void **state)
{
	const uint64_t nowhere = 4;
	const struct pfs_question question = {PFS_SUBTREE, &nowhere, 1};

	(void)state;
	assert_int_equal(pfs_tree_list(tree, &question, 0, append_text, NULL), -ENOENT);
}

/* ---- who listens ---- */

struct listener {
	pthread_t thread;
	size_t pieces, last; /* fails after so many; 0: never */
};

static int listen_slowly(void *arg, const char *bytes, size_t size)
{
	struct listener *listener = arg;

	assert_true(pthread_equal(listener->thread, pthread_self()));
	assert_int_equal(bytes[size - 1], '\n');
	(void)usleep(2000); /* the others get ahead, as far as they may */
	return ++listener->pieces == listener->last ? -EPIPE : 0;
}

static void test_listeners(void **state)
{
	const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question question = {PFS_SUBTREE, &root, 1};
	struct listener listener = {.thread = pthread_self()};

	(void)state;
	assert_int_equal(pfs_tree_list(tree, &question, 0, listen_slowly, &listener), 0);
	assert_true(listener.pieces >= PIECES);
	for (size_t last = 1; last <= PIECES; last += 1 + PIECES / 5) {
		listener = (struct listener){.thread = pthread_self(), .last = last};
		assert_int_equal(pfs_tree_list(tree, &question, 0, listen_slowly, &listener),
				 -EPIPE);
		assert_int_equal(listener.pieces, last);
	}
}

/* ---- while others list, and the tree changes ---- */

static atomic_bool stopping;

static int count_lines(void *arg, const char *bytes, size_t size)
{
	size_t *lines = arg;

	for (size_t i = 0; i < size; i++)
		*lines += !bytes[i];
	return 0;
}

/* A file is there under the one name or the other. */
static void *list_on(void *arg)
{
	const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question question = {PFS_SUBTREE, &root, 1};
	size_t *wrong = arg, wanted = 0;

	for (unsigned i = 0; i < 12; i++) {
		size_t lines = 0;

		if (pfs_tree_list(tree, &question, PFS_LIST_ZERO, count_lines, &lines))
			++*wrong;
		wanted = wanted ? wanted : lines;
		*wrong += lines != wanted;
	}
	return NULL;
}

static void *rename_on(void *arg)
{
	for (unsigned i = 0; !atomic_load(&stopping); i++) {
		(void)!pfs_tree_rename(tree, PFS_ROOT_PRIME, i % 2 ? "x" : arg, PFS_ROOT_PRIME,
				       i % 2 ? arg : "x", 0);
		(void)usleep(1000);
	}
	return NULL;
}

static void test_together(void **state)
{
	pthread_t listing[2], renaming;
	size_t wrong[2] = {0};
	struct name name = name_of("", 250, 100, "");

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&listing[i], NULL, list_on, &wrong[i]), 0);
	assert_int_equal(pthread_create(&renaming, NULL, rename_on, name.text), 0);
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(listing[i], NULL);
	atomic_store(&stopping, true);
	(void)pthread_join(renaming, NULL);
	assert_int_equal(wrong[0] + wrong[1], 0);
}

/* ---- when names come that break the order ---- */

static uint64_t seed = 20261121;

static unsigned below(unsigned n)
{
	return random_below(&seed, n);
}

static enum pfs_slot_order order(void)
{
	(void)ascends(); /* looks, if it is not known */
	return pfs_slotorder(tree);
}

static uint64_t random_folder(void)
{
	struct name name = name_of("", 250, 200 + below(300), "");

	return look_up(PFS_ROOT_PRIME, name.text);
}

/* Of a file, or of an empty folder, most of the time with a file in it afterwards. */
static void change(unsigned number)
{
	uint64_t from = random_folder(), to = random_folder();
	struct name old = name_of("a", 2, below(FILES / 2), ""), new = name_of("", 1, number, "");

	switch (below(4)) {
	case 0:
		(void)!pfs_tree_unlink(tree, from, old.text);
		break;
	case 1:
		(void)!pfs_tree_rename(tree, from, old.text, to, new.text, 0);
		break;
	case 2:
		(void)make(to, new, S_IFREG | 0644);
		break;
	default:
		to = make(to, new, S_IFDIR | 0755);
		if (below(3))
			(void)make(to, old, S_IFREG | 0644);
	}
}

static void test_strays(void **state)
{
	(void)state;
	(void)make(PFS_ROOT_PRIME, name_of("", 1, 0, ""), S_IFREG | 0644);
	assert_false(ascends());
	assert_int_equal(order(), PFS_ORDER_ASCENDING);
	check_all();
	for (unsigned i = 0; i < 1000; i++) {
		change(i);
		if (i % 100 == 0)
			check(PFS_ROOT_PRIME, "", PFS_LIST_INO);
	}
	assert_int_equal(order(), PFS_ORDER_ASCENDING);
	temp_tree_close(tree); /* found again, without having seen them come */
	tree = temp_tree_open_with(&temp, &options);
	check(PFS_ROOT_PRIME, "", PFS_LIST_INO);
	assert_int_equal(order(), PFS_ORDER_ASCENDING);
	assert_false(ascends());
}

/* A few changes, between two pieces of a look. */
static int change_between(void *arg)
{
	unsigned *number = arg;

	pfs_scan_unlock(tree);
	for (unsigned i = below(4); i > 0; i--)
		change((*number)++);
	(void)pfs_scan_lock(tree, __func__);
	return 0;
}

/* The order of slots is found out in a tree that has just been opened, in small pieces. */
static void learn_anew(const struct pfs_scan_watch *watch)
{
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &options);
	pfs_scan_set_piece(512);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_scan_learn_order(tree, watch), 0);
	pfs_scan_unlock(tree);
	pfs_scan_set_piece(UINT32_MAX);
}

static void test_changes_between(void **state)
{
	static const _Atomic bool never;
	unsigned number = 100000;
	const struct pfs_scan_watch watch = {&never, change_between, &number};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		unsigned before = number;

		learn_anew(&watch);
		assert_true(number > before + 100);
		assert_int_equal(pfs_slotorder(tree), PFS_ORDER_ASCENDING);
		check(PFS_ROOT_PRIME, "", PFS_LIST_INO);
	}
}

/* A folder that moves with what is in it, meanwhile: nothing is known then, and it is found out
 * again. */
static int move_folder(void *arg)
{
	struct name old = name_of("", 250, 3, ""), new = name_of("moved", 0, 3, "");

	(void)arg;
	pfs_scan_unlock(tree);
	(void)!pfs_tree_rename(tree, PFS_ROOT_PRIME, old.text, PFS_ROOT_PRIME, new.text, 0);
	(void)pfs_scan_lock(tree, __func__);
	return 0;
}

static void test_moved_between(void **state)
{
	static const _Atomic bool never;
	const struct pfs_scan_watch watch = {&never, move_folder, NULL};

	(void)state;
	learn_anew(&watch);
	assert_int_equal(pfs_slotorder(tree), PFS_ORDER_UNKNOWN);
	check(PFS_ROOT_PRIME, "", PFS_LIST_INO);
	assert_int_equal(pfs_slotorder(tree), PFS_ORDER_ASCENDING);
}

/* More than are remembered; a folder, with all that is in it; and the other way round. */
static void test_disorder(void **state)
{
	struct name name = name_of("", 250, 1, "");
	uint64_t folder = make(PFS_ROOT_PRIME, name_of("!", 1, 0, ""), S_IFDIR | 0755);

	(void)state;
	for (unsigned i = 0; i <= PFS_STRAYS_MAX; i++)
		(void)make(folder, name_of("", 1, i * 7919 % 10007, ""), S_IFREG | 0644);
	assert_int_equal(pfs_slotorder(tree), PFS_ORDER_UNKNOWN);
	check_all();
	assert_int_equal(order(), PFS_ORDER_OTHER);
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &options);
	check(folder, "/!0", PFS_LIST_INO);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, name.text, folder, "moved", 0), 0);
	check_all();
	check(folder, "/!0", 0);
}

int main(void)
{
	const char *given = getenv("PFS_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),	  cmocka_unit_test(test_missing),
		cmocka_unit_test(test_listeners), cmocka_unit_test(test_together),
		cmocka_unit_test(test_strays),	  cmocka_unit_test(test_changes_between),
		cmocka_unit_test(test_moved_between), cmocka_unit_test(test_disorder),
	};

	seed = given ? strtoull(given, NULL, 10) : seed;
	print_message("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);

	return cmocka_run_group_tests(tests, start, stop_tree);
}
