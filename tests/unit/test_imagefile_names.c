/* SPDX-License-Identifier: MIT */
/* Names are looked for where they lie in the image file: what is found is what is found without
 * one, also after changes and in a damaged file, and memory is filled only where something may be.
 * PFS_SEED=N: another run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/lazy.h"
#include "base/log.h"
#include "fs/image/imagefile_impl.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"

#define NODES 20000u

#define BELOW 5000u

static struct temp_store temp;
static uint64_t seed, random_state, below;
static size_t asked; /* names, where they lie in the file */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
void __real_pfs_imagefile_leave_out(const struct pfs_image *image, uint64_t *bits, uint32_t slot,
				    size_t words, const struct pfs_image_test *test);
void __wrap_pfs_imagefile_leave_out(const struct pfs_image *image, uint64_t *bits, uint32_t slot,
				    size_t words, const struct pfs_image_test *test);
void __wrap_pfs_imagefile_leave_out(const struct pfs_image *image, uint64_t *bits, uint32_t slot,
				    size_t words, const struct pfs_image_test *test)
{
	for (size_t w = 0; w < words; w++)
		__atomic_fetch_add(&asked, (size_t)__builtin_popcountll(bits[w]), __ATOMIC_RELAXED);
	__real_pfs_imagefile_leave_out(image, bits, slot, words, test);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static const char alphabet[] = "aBbc.-x";

static void name_of(char name[64], uint32_t i)
{
	uint64_t bits = random_mix(i + 77);
	size_t n = 1 + bits % 9;

	for (size_t k = 0; k < n; k++)
		name[k] = alphabet[(bits >> (4 + 3 * k)) % (sizeof(alphabet) - 1)];
	(void)snprintf(name + n, 64 - n, "%x%s", i, i % 1024 == 700 ? "-rare" : "");
}

/* Whose numbers are those of letters, and beside them. */
static const uint8_t lengths[] = {64, 65, 77, 90, 91, 96, 97, 122, 123};

static void long_name_of(char text[256], size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = i % 3 ? 'q' : 'W';
	text[len] = 0;
}

static struct pfs_tree *open_with(bool no_file)
{
	return temp_tree_open_with(
		&temp, &(struct pfs_tree_options){.read_only = true, .no_image_file = no_file});
}

static int start(void **state PFS_UNUSED)
{
	struct pfs_tree *tree;
	char name[64], text[256];

	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	for (uint32_t i = 0; i < NODES; i++) {
		name_of(name, i);
		assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, name,
					   (i % 8 ? S_IFREG : S_IFDIR) | 0600) != 0);
	}
	for (size_t i = 0; i < PFS_COUNT(lengths); i++) {
		long_name_of(text, lengths[i]);
		assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, text, S_IFREG | 0600) != 0);
	}
	for (uint32_t i = 3; i < NODES; i += 64) {
		name_of(name, i);
		assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, name), 0);
	}
	below = temp_tree_make(tree, PFS_ROOT_PRIME, "below", S_IFDIR | 0700);
	for (uint32_t i = 0; i < BELOW; i++) {
		(void)snprintf(name, sizeof(name), "below-%u", i);
		assert_true(temp_tree_make(tree, below, name, S_IFREG | 0600) != 0);
	}
	temp_tree_close(tree);
	tree = open_with(true);
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	return 0;
}

static int stop(void **state PFS_UNUSED)
{
	temp_store_remove(&temp);
	return 0;
}

/* By the name, and by another column beside, so that samples are read. */
static struct pfs_slots find(struct pfs_tree *tree, enum pfs_test test, const char *text,
			     bool negated, bool beside)
{
	const struct pfs_predicate predicates[] = {
		{.field = PFS_FIELD_NAME,
		 .test = test,
		 .text = text,
		 .text_len = strlen(text),
		 .negated = negated},
		{.field = PFS_FIELD_SIZE, .test = PFS_TEST_RANGE, .high = INT64_MAX},
	};
	struct pfs_slots found;

	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_scan_select(tree, &found, predicates, beside ? 2 : 1, NULL, NULL), 0);
	pfs_scan_unlock(tree);
	return found;
}

static size_t compare(struct pfs_tree *a, struct pfs_tree *b, enum pfs_test test, const char *text)
{
	bool negated = !random_below(&random_state, 4), beside = random_below(&random_state, 2);
	struct pfs_slots in_a = find(a, test, text, negated, beside),
			 in_b = find(b, test, text, negated, beside);
	size_t n = in_a.n;

	if (in_a.n != in_b.n || (n && memcmp(in_a.slot, in_b.slot, n * sizeof(*in_a.slot)) != 0))
		fail_msg("%d %s: %zu, not %zu", test, text, in_a.n, in_b.n);
	pfs_slots_finish(&in_a);
	pfs_slots_finish(&in_b);
	return n;
}

/* A piece of a name that there is, or was, with wildcards. */
static enum pfs_test any_pattern(char text[64])
{
	static const enum pfs_test tests[] = {PFS_TEST_GLOB,	 PFS_TEST_LIKE,	  PFS_TEST_EQUAL,
					      PFS_TEST_CONTAINS, PFS_TEST_PREFIX, PFS_TEST_SUFFIX};
	enum pfs_test test = tests[random_below(&random_state, PFS_COUNT(tests))];
	char name[64];
	size_t len;

	name_of(name, random_below(&random_state, NODES));
	len = strlen(name);
	for (size_t i = 0; i < len && (test == PFS_TEST_GLOB || test == PFS_TEST_LIKE); i++)
		if (!random_below(&random_state, 5))
			name[i] = (test == PFS_TEST_GLOB ? "*?"
							 : "%_")[random_below(&random_state, 2)];
	if (test == PFS_TEST_PREFIX || test == PFS_TEST_CONTAINS)
		name[len - random_below(&random_state, 2)] = 0;
	(void)snprintf(text, 64, "%s",
		       test == PFS_TEST_SUFFIX || test == PFS_TEST_CONTAINS
			       ? name + random_below(&random_state, 2)
			       : name);
	return test;
}

static void the_same_is_found(void **state PFS_UNUSED)
{
	struct pfs_tree *rows = open_with(true), *file = NULL;
	char text[64];

	for (unsigned i = 0; i < 300; i++) {
		enum pfs_test test = any_pattern(text);

		if (i % 10 == 0) {
			temp_tree_close(file);
			file = open_with(false);
			assert_true(file->image.from_file);
		}
		(void)compare(file, rows, test, text);
	}
	temp_tree_close(file);
	temp_tree_close(rows);
}

static void names_of_any_length_are_found(void **state PFS_UNUSED)
{
	struct pfs_tree *rows = open_with(true);
	char text[256];

	for (size_t i = 0; i < PFS_COUNT(lengths); i++) {
		struct pfs_tree *file = open_with(false);

		long_name_of(text, lengths[i]);
		text[0] = 'w';
		(void)compare(file, rows, PFS_TEST_LIKE, text);
		temp_tree_close(file);
	}
	temp_tree_close(rows);
}

static void what_is_not_there_fills_nothing(void **state PFS_UNUSED)
{
	struct pfs_tree *tree;
	uint64_t filled;

	if (!pfs_lazy_is_possible())
		skip();
	tree = open_with(false);
	pfs_lazy_settle(tree->image.file->lazy); /* what opening has touched is counted */
	filled = pfs_lazy_filled(tree->image.file->lazy);
	assert_int_equal(find(tree, PFS_TEST_EQUAL, "nowhere", false, false).n, 0);
	assert_int_equal(find(tree, PFS_TEST_SUFFIX, "nowhere", false, false).n, 0);
	assert_int_equal(find(tree, PFS_TEST_GLOB, "*no?where*", false, false).n, 0);
	assert_int_equal(find(tree, PFS_TEST_LIKE, "%NOwhere", false, false).n, 0);
	/* letters that are everywhere, but not where they are looked for */
	assert_int_equal(find(tree, PFS_TEST_PREFIX, "rare", false, false).n, 0);
	assert_int_equal(find(tree, PFS_TEST_GLOB, "r?re", false, false).n, 0);
	assert_int_equal(pfs_lazy_filled(tree->image.file->lazy), filled);
	temp_tree_close(tree);
}

static size_t asked_for(struct pfs_tree *tree, const struct pfs_predicate *beside)
{
	const struct pfs_predicate predicates[] = {*beside,
						   {.field = PFS_FIELD_NAME,
						    .test = PFS_TEST_CONTAINS,
						    .text = "nowhere",
						    .text_len = 7}};
	struct pfs_slots found;

	asked = 0;
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(
		pfs_scan_select(tree, &found, predicates, PFS_COUNT(predicates), NULL, NULL), 0);
	pfs_scan_unlock(tree);
	assert_int_equal(found.n, 0);
	return asked;
}

/* Neither what other tests leave out, nor what is not in the range that is looked at. */
static void what_is_left_out_is_not_asked_for(void **state PFS_UNUSED)
{
	struct pfs_tree *tree = open_with(false);
	const struct pfs_predicate some = {.field = PFS_FIELD_SIZE,
					   .test = PFS_TEST_RANGE,
					   .low = 1,
					   .high = INT64_MAX},
				   in_range = {.test = PFS_TEST_UNDER, .low = (int64_t)below};

	assert_int_equal(asked_for(tree, &some), 0);
	assert_in_range(asked_for(tree, &in_range), 1, BELOW + 1);
	temp_tree_close(tree);
}

/* What changed after the file was written is found as it is, before and after its slots are
 * read. */
static void changes_are_found(void **state PFS_UNUSED)
{
	struct pfs_tree *tree = temp_tree_open(&temp);
	char was[64], is[64];

	assert_true(tree->image.from_file);
	for (uint32_t i = 0; i < NODES; i += 500) {
		struct pfs_slots found;

		name_of(was, i);
		(void)snprintf(is, sizeof(is), "moved-%u", i);
		if (i % 64 == 3)
			continue;
		assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, was, PFS_ROOT_PRIME, is, 0),
				 0);
		found = find(tree, PFS_TEST_EQUAL, is, false, false);
		assert_int_equal(found.n, 1);
		pfs_slots_finish(&found);
		assert_int_equal(find(tree, PFS_TEST_EQUAL, was, false, false).n, 0);
		assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, is, PFS_ROOT_PRIME, was, 0),
				 0);
	}
	temp_tree_close(tree);
}

/* The bytes of a name are others, and the checksum is not. */
static void damage_is_no_answer(void **state PFS_UNUSED)
{
	struct pfs_tree *rows = open_with(true), *file = open_with(false);
	const struct pfs_image_file *in_use = file->image.file;
	char path[160], names[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s" PFS_IMAGE_FILE_SUFFIX, temp.path);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	for (size_t at = 0; at < in_use->layout.size[PFS_SECTION_HEAP]; at += sizeof(names)) {
		off_t place = (off_t)(in_use->layout.offset[PFS_SECTION_HEAP] + at);
		char *rare;

		assert_true(pread(fd, names, sizeof(names), place) > 0);
		rare = memmem(names, sizeof(names), "-rare", 5);
		if (!rare)
			continue;
		*rare = '+';
		assert_int_equal(pwrite(fd, names, sizeof(names), place), sizeof(names));
	}
	assert_int_equal(close(fd), 0);
	random_state = 1;
	assert_true(compare(file, rows, PFS_TEST_SUFFIX, "-rare") > 0);
	temp_tree_close(file);
	temp_tree_close(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_is_found),
		cmocka_unit_test(names_of_any_length_are_found),
		cmocka_unit_test(what_is_not_there_fills_nothing),
		cmocka_unit_test(what_is_left_out_is_not_asked_for),
		cmocka_unit_test(changes_are_found),
		cmocka_unit_test(damage_is_no_answer), /* the file is removed */
	};
	const char *text = getenv("PFS_SEED");

	seed = random_state = text ? strtoull(text, NULL, 0) : 1;
	print_message("PFS_SEED=%llu\n", (unsigned long long)seed);
	pfs_log_open(PFS_LOG_NOTHING, false);
	return cmocka_run_group_tests(tests, start, stop);
}
