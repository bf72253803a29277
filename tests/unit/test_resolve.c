/* SPDX-License-Identifier: MIT */
/* Many paths at once, against one after the other; nodes by their codes. */
#include "resolve_util.h"

#include "fs/image/device_lookup.h"
#include "fs/tree/directories.h"
#include "fs/tree/resolve_lines.h"

static uint64_t seed = 20261122;
static const struct pfs_tree_options options = {.no_atime = true};

/* ---- codes ---- */

/* How many questions for a code were counted, and how many of them timed, wherever they were
 * answered. */
static struct pfs_device_lookup_count count_codes(void)
{
	struct pfs_device_lookup_stats stats;
	const struct pfs_device_lookup_count *host = &stats.host[PFS_QUESTION_CODE],
					     *device = &stats.device[PFS_QUESTION_CODE];

	pfs_device_lookup_stats(model.tree, &stats);
	return (struct pfs_device_lookup_count){host->n + device->n, host->timed + device->timed,
						0};
}

static void check_codes(void)
{
	struct pfs_device_lookup_count before = count_codes(), after;
	uint64_t ino, asked = 0;
	char *code;

	for (size_t i = 0; i < model.n; i++) {
		uint32_t slot;

		assert_int_equal(pfs_tree_code(model.tree, &code, model.seen[i].ino), 0);
		(void)pfs_scan_lock(model.tree, __func__);
		/* the first few by the primes, since the engine is empty; then by the engine */
		assert_int_equal(pfs_relation_of_code(model.tree, &slot, code, strlen(code), NULL),
				 0);
		pfs_scan_unlock(model.tree);
		assert_int_equal(slot, model.seen[i].slot);
		if (i % 7 == 3) {
			assert_int_equal(pfs_tree_node_of_code(model.tree, &ino, code), 0);
			assert_int_equal(ino, model.seen[i].ino);
			asked++;
		}
		asked++;
		free(code);
	}
	after = count_codes();
	assert_int_equal(after.n - before.n, asked);
	assert_int_equal(after.timed - before.timed, asked);
}

/* Numbers that are no node's code: both ways. */
static void check_no_codes(void)
{
	static const char *const none[] = {"0", "1", "4", "14", "90", "-2", "x", "", "2 ",
					   "4294967311", "340282366920938463463374607431768211456"};

	for (size_t i = 0; i < 4 * PFS_COUNT(none); i++) {
		const char *code = none[i % PFS_COUNT(none)];
		uint32_t slot;

		if (strcmp(code, "14") == 0 && model.n > 6) /* may be one */
			continue;
		(void)pfs_scan_lock(model.tree, __func__);
		assert_int_equal(pfs_relation_of_code(model.tree, &slot, code, strlen(code), NULL),
				 0);
		pfs_scan_unlock(model.tree);
		assert_int_equal(slot, PFS_NO_SLOT);
	}
}

/* ---- paths ---- */

static void open_tree(uint64_t at)
{
	random_state = at;
	print_message("seed %llu\n", (unsigned long long)at);
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
}

static void test_random_trees(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 3000};

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		open_tree(seed + i);
		random_tree(model.tree, 400);
		model_look(&model, model.tree);
		random_rights(&model);
		for (size_t k = 0; k < PFS_COUNT(sizes); k++) {
			struct pfs_viewer viewer = {.uid = 1 + rnd(5), .gid = rnd(6)};

			check_paths(NULL, sizes[k]);
			check_paths(&viewer, sizes[k]);
		}
		check_relative();
		random_changes(&model, 10);
		check_paths(NULL, PFS_RESOLVE_HELD + 100);
		check_codes();
		close_tree();
	}
}

static void test_codes_of_a_new_store(void **state)
{
	(void)state;
	open_tree(seed);
	model_look(&model, model.tree);
	check_no_codes();
	check_codes();
	random_tree(model.tree, 30);
	model_look(&model, model.tree);
	check_codes();
	close_tree();
}

/* Whoever waits is looked after however long the number is. */
static int count_look(void *arg)
{
	(*(unsigned *)arg)++;
	return 0;
}

static void test_long_codes(void **state)
{
	static _Atomic bool stop;
	unsigned looks = 0;
	const struct pfs_scan_watch watch = {&stop, count_look, &looks};
	uint64_t inos[300], ino = PFS_ROOT_PRIME;
	char *digits = malloc(1000001), *code;
	uint32_t slot;
	size_t len;

	(void)state;
	open_tree(seed);
	for (size_t i = 0; i < PFS_COUNT(inos); i++) {
		ino = inos[i] = temp_tree_make(model.tree, ino, "d", S_IFDIR | 0755);
		assert_int_not_equal(ino, 0);
	}
	for (size_t i = PFS_COUNT(inos) - 1; i > 250; i--) {
		assert_int_equal(pfs_tree_code(model.tree, &code, inos[i]), 0);
		len = strlen(code);
		assert_true(len > 500 && len < 100000);
		(void)memcpy(digits, code, len + 1);
		free(code);
		(void)pfs_scan_lock(model.tree, __func__);
		looks = 0;
		assert_int_equal(pfs_relation_of_code(model.tree, &slot, digits, len, &watch), 0);
		assert_int_equal(slot, pfs_scan_slot_of(model.tree, inos[i]));
		assert_true(looks > i); /* as it was divided by each prime */
		digits[len - 1] = digits[len - 1] == '4' ? '6' : '4';
		assert_int_equal(pfs_relation_of_code(model.tree, &slot, digits, len, &watch), 0);
		assert_int_equal(slot, PFS_NO_SLOT);
		pfs_scan_unlock(model.tree);
	}
	(void)memset(digits, '9', 1000000);
	(void)pfs_scan_lock(model.tree, __func__);
	looks = 0;
	assert_int_equal(pfs_relation_of_code(model.tree, &slot, digits, 1000000, &watch), 0);
	assert_true(slot == PFS_NO_SLOT && looks == 1); /* and it was divided by none */
	atomic_store(&stop, true);
	assert_int_equal(pfs_relation_of_code(model.tree, &slot, digits, 1000000, &watch), -EINTR);
	pfs_scan_unlock(model.tree);
	close_tree();
	free(digits);
}

/* So many names in a directory that some have the same hash. */
static void test_equal_hashes(void **state)
{
	const size_t n = 150000;
	struct pfs_path_text *paths = calloc(n, sizeof(*paths));
	uint64_t *made = calloc(n, sizeof(*made)), *inos = calloc(n, sizeof(*inos));
	const struct pfs_resolve_from from = {0};
	struct pfs_entry entry;

	(void)state;
	open_tree(seed);
	for (size_t i = 0; i < n; i++) {
		char *path;

		assert_true(asprintf(&path, "/%zu", i) > 0);
		paths[i] = (struct pfs_path_text){path, strlen(path)};
		assert_int_equal(pfs_tree_make(model.tree, &entry, PFS_ROOT_PRIME, path + 1,
					       S_IFREG | 0644, 0, &temp_root),
				 0);
		made[i] = entry.attr.st_ino;
		pfs_tree_forget(model.tree, made[i], 1);
	}
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, n, &from), 0);
	assert_memory_equal(inos, made, n * sizeof(*made));
	close_tree();
	for (size_t i = 0; i < n; i++)
		free((char *)paths[i].bytes);
	free(paths);
	free(made);
	free(inos);
}

/* ---- directories that are remembered ---- */

#define FOLDERS 20u
#define FILES	30u
#define ASKED	(FOLDERS * FILES)

static uint64_t make(uint64_t parent, mode_t mode, const char *kind, unsigned i)
{
	uint64_t ino;
	char name[32];

	(void)snprintf(name, sizeof(name), "%s%u", kind, i);
	ino = temp_tree_make(model.tree, parent, name, mode);
	assert_int_not_equal(ino, 0);
	return ino;
}

/* /dI/fJ, with this in front. */
static void ask(uint64_t inos[ASKED], const char *front)
{
	const struct pfs_resolve_from from = {0};
	struct pfs_path_text paths[ASKED];

	for (unsigned i = 0; i < ASKED; i++) {
		char *path;
		int len = asprintf(&path, "%s/d%u/f%u", front, i / FILES, i % FILES);

		assert_true(len > 0);
		paths[i] = (struct pfs_path_text){path, (size_t)len};
	}
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, ASKED, &from), 0);
	for (unsigned i = 0; i < ASKED; i++)
		free((char *)paths[i].bytes);
}

/* What is remembered of directories is compared with the path, given up when one moves, and not
 * missed when there is no room for it. */
static void test_remembered_directories(void **state)
{
	uint64_t made[ASKED], inos[ASKED], none[ASKED] = {0};
	struct pfs_directories *table;
	char front[400];
	struct pfs_directory_path wrong = {.slot = 0, .top = PFS_NO_SLOT, .len = 3};

	(void)state;
	open_tree(seed);
	for (unsigned i = 0; i < FOLDERS; i++) {
		uint64_t folder = make(PFS_ROOT_PRIME, S_IFDIR | 0755, "d", i);

		for (unsigned j = 0; j < FILES; j++)
			made[i * FILES + j] = make(folder, S_IFREG | 0644, "f", j);
	}
	(void)pfs_scan_lock(model.tree, __func__);
	table = pfs_directories_take(model.tree);
	assert_non_null(table);
	pfs_directory_add(table, pfs_directory_hash("/d1", 3), &wrong, "/d2");
	pfs_directories_return(model.tree, table);
	pfs_scan_unlock(model.tree);
	ask(inos, "");
	assert_memory_equal(inos, made, sizeof(made));
	memset(front, '/', sizeof(front));
	for (size_t len = sizeof(front) - 1; len >= 4;
	     len -= 4) { /* more texts than there is room for */
		front[len] = 0;
		ask(inos, front);
		assert_memory_equal(inos, made, sizeof(made));
	}
	assert_int_equal(pfs_tree_rename(model.tree, PFS_ROOT_PRIME, "d0", PFS_ROOT_PRIME, "x", 0),
			 0);
	assert_int_equal(pfs_tree_rename(model.tree, PFS_ROOT_PRIME, "d1", PFS_ROOT_PRIME, "d0", 0),
			 0);
	ask(inos, "");
	assert_memory_equal(inos, made + FILES, FILES * sizeof(*inos));
	assert_memory_equal(inos + FILES, none, FILES * sizeof(*inos));
	assert_memory_equal(inos + 2 * FILES, made + 2 * FILES,
			    (FOLDERS - 2) * FILES * sizeof(*inos));
	close_tree();
}

/* Each directory on the way is remembered, once: a path below none that was met goes on from the
 * last one that was. */
static void test_directories_on_the_way(void **state)
{
	static const struct pfs_resolve_from from = {0};
	static const char *const deep = "/d0/d1/d2/d3/f";
	uint64_t folder = PFS_ROOT_PRIME, file, *inos = calloc(ASKED, sizeof(*inos));
	struct pfs_path_text paths[ASKED];
	struct pfs_directories *table;
	size_t used;

	(void)state;
	open_tree(seed);
	for (unsigned i = 0; i < 4; i++)
		folder = make(folder, S_IFDIR | 0755, "d", i);
	file = temp_tree_make(model.tree, folder, "f", S_IFREG | 0644);
	for (size_t i = 0; i < ASKED; i++)
		paths[i] = (struct pfs_path_text){deep, strlen(deep)};
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, ASKED, &from), 0);
	for (size_t i = 0; i < ASKED; i++)
		assert_int_equal(inos[i], file);
	(void)pfs_scan_lock(model.tree, __func__);
	table = pfs_directories_take(model.tree);
	assert_non_null(table);
	for (size_t len = 3; len <= 12; len += 3) {
		const struct pfs_directory_path *known =
			pfs_directory_find(table, pfs_directory_hash(deep, len));

		assert_non_null(known);
		assert_int_equal(known->len, len);
		assert_memory_equal(known->bytes, deep, len);
	}
	used = atomic_load(&table->paths_used); /* threads may have added one side by side */
	assert_true(used <= 8 + 4 * 32 * 4);
	pfs_directories_return(model.tree, table);
	pfs_scan_unlock(model.tree);
	close_tree();
	free(inos);
}

/* There is room for each directory once, however long their paths are. */
static void test_long_directories(void **state)
{
	enum { LONG = 1000 };
	static const struct pfs_resolve_from from = {0};
	struct pfs_path_text *paths = calloc(LONG, sizeof(*paths));
	uint64_t *inos = calloc(LONG, sizeof(*inos));
	struct pfs_directories *table;

	(void)state;
	open_tree(seed);
	for (size_t i = 0; i < LONG; i++) {
		char *path;
		int len = asprintf(&path, "/%0160zu/x", i);

		assert_true(len > 0);
		path[len - 2] = 0;
		assert_int_not_equal(
			temp_tree_make(model.tree, PFS_ROOT_PRIME, path + 1, S_IFDIR | 0755), 0);
		path[len - 2] = '/';
		paths[i] = (struct pfs_path_text){path, (size_t)len};
	}
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, LONG, &from), 0);
	(void)pfs_scan_lock(model.tree, __func__);
	table = pfs_directories_take(model.tree);
	assert_non_null(table);
	assert_true(atomic_load(&table->paths_used) >
		    LONG * 160); /* it is the table that they were added to */
	for (size_t i = 0; i < LONG; i++) {
		assert_non_null(pfs_directory_find(
			table, pfs_directory_hash(paths[i].bytes, paths[i].len - 2)));
		free((char *)paths[i].bytes);
	}
	pfs_directories_return(model.tree, table);
	pfs_scan_unlock(model.tree);
	close_tree();
	free(paths);
	free(inos);
}

static bool is_gone(void *arg)
{
	return --*(int *)arg < 0;
}

static void test_nobody_waits(void **state)
{
	const size_t n = 3 * PFS_RESOLVE_HELD;
	struct pfs_path_text *paths = calloc(n, sizeof(*paths));
	uint64_t *inos = calloc(n, sizeof(*inos));
	int left = 2;
	const struct pfs_resolve_from from = {.gone = is_gone, .arg = &left};

	(void)state;
	open_tree(seed);
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, n, &from), -EINTR);
	close_tree();
	free(paths);
	free(inos);
}

/* ---- long paths ---- */

static bool count_parts(void *arg)
{
	++*(size_t *)arg;
	return false;
}

/* Adds ways to random nodes and back to the root, with more slashes than are needed, up to `size`
 * bytes, and then a way to a node, or something like one. */
static char *long_path(size_t *len, size_t size)
{
	char *path = malloc(size + 2 * PFS_RESOLVE_HELD_BYTES);
	size_t n = 0, tail;

	assert_non_null(path);
	while (n < size) {
		const struct seen *node = &model.seen[rnd((uint32_t)model.n)];
		size_t depth = 0, slashes = rnd(2000) ? 1 : 1 + rnd(PFS_RESOLVE_HELD_BYTES / 2);

		if (!S_ISDIR(node->attr.st_mode))
			continue;
		memset(path + n, '/', slashes);
		n += slashes;
		n += (size_t)sprintf(path + n, "%s", node->path);
		for (const char *at = node->path; *at; at++)
			depth += *at == '/' && at[1];
		for (size_t i = 0; i < depth; i++)
			n += (size_t)sprintf(path + n, "/..");
	}
	path[n++] = '/';
	*len = n;
	if (rnd(8)) {
		char *end = random_path(&tail);

		memcpy(path + n, end, tail);
		*len = n + tail;
		free(end);
	}
	return path;
}

/* Holds of the tree are bounded by bytes, too: those of one path and those of many. */
static void check_long(const struct pfs_viewer *viewer, size_t n, size_t size)
{
	struct pfs_path_text paths[400];
	uint64_t inos[PFS_COUNT(paths)];
	struct pfs_visible *visible = NULL;
	size_t parts = 0, bytes = 0;
	const struct pfs_resolve_from from = {
		.viewer = viewer, .alone = rnd(2), .gone = count_parts, .arg = &parts};

	for (size_t i = 0; i < n; i++) {
		paths[i].bytes = long_path(&paths[i].len, size);
		bytes += paths[i].len;
	}
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, n, &from), 0);
	if (viewer)
		assert_int_equal(pfs_visible_make(model.tree, viewer), 0);
	else
		assert_in_range(parts, bytes / PFS_RESOLVE_HELD_BYTES, SIZE_MAX);
	(void)pfs_scan_lock(model.tree, __func__);
	if (viewer)
		assert_int_equal(pfs_visible_get(&visible, model.tree, viewer), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(inos[i], expected_of(visible, &paths[i]));
	pfs_scan_unlock(model.tree);
	pfs_visible_unref(visible);
	for (size_t i = 0; i < n; i++)
		free((char *)paths[i].bytes);
}

static void test_long_paths(void **state)
{
	const struct pfs_viewer viewer = {.uid = 1, .gid = 1};
	char *name = calloc(1, 2 * PFS_RESOLVE_HELD_BYTES);
	const struct pfs_path_text longer = {memset(name, 'a', 2 * PFS_RESOLVE_HELD_BYTES),
					     2 * PFS_RESOLVE_HELD_BYTES};
	const struct pfs_resolve_from from = {0};
	uint64_t ino = 1;

	(void)state;
	open_tree(seed);
	random_tree(model.tree, 400);
	model_look(&model, model.tree);
	for (unsigned i = 0; i < 20; i++) {
		check_long(NULL, 1, 5 * PFS_RESOLVE_HELD_BYTES);
		check_long(NULL, 3, PFS_RESOLVE_HELD_BYTES - rnd(200));
	}
	check_long(NULL, 400, 4000);
	random_rights(&model);
	check_long(&viewer, 3, PFS_RESOLVE_HELD_BYTES);
	assert_int_equal(pfs_tree_resolve_many(model.tree, &ino, &longer, 1, &from), 0);
	assert_int_equal(ino, 0);
	close_tree();
	free(name);
}

static void test_lists(void **state)
{
	static const char text[] = "a\n\nb/c";
	struct pfs_path_text path;
	size_t at = 0;

	(void)state;
	assert_true(pfs_path_next(&path, text, 6, &at, '\n'));
	assert_int_equal(path.len, 1);
	assert_true(pfs_path_next(&path, text, 6, &at, '\n'));
	assert_int_equal(path.len, 0);
	assert_true(pfs_path_next(&path, text, 6, &at, '\n'));
	assert_memory_equal(path.bytes, "b/c", 3);
	assert_int_equal(path.len, 3);
	assert_false(pfs_path_next(&path, text, 6, &at, '\n'));
	at = 0;
	assert_true(pfs_path_next(&path, text, 2, &at, '\n'));
	assert_false(
		pfs_path_next(&path, text, 2, &at, '\n')); /* nothing behind the last newline */
}

/* ---- answers as text ---- */

static void share(void *tree, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context)
{
	pfs_scan_run(tree, n, grain, work, context);
}

/* The lines that have been found, against one path after the other; returns how many there are. */
static size_t check_found(const struct pfs_resolve_lines *lines, const char *text, size_t size,
			  char delimiter)
{
	struct pfs_path_text path;
	size_t at = 0, n = 0;

	while (n < lines->n && pfs_path_next(&path, text, size, &at, delimiter)) {
		assert_ptr_equal(lines->paths[n].bytes, path.bytes);
		assert_int_equal(lines->paths[n].len, path.len);
		n++;
	}
	assert_int_equal(n, lines->n);
	return at;
}

/* The text, against a line after the other. */
static void check_printed(const struct pfs_resolve_lines *lines,
			  const struct pfs_resolve_text *text, bool with_paths, char delimiter)
{
	size_t part = 0, at = 0;

	for (size_t i = 0; i < lines->n; i++) {
		const struct pfs_path_text *path = &lines->paths[i];
		char number[32] = "-";
		const char *bytes;

		if (part < text->n_parts && at == text->parts[part].iov_len) {
			part++;
			at = 0;
		}
		assert_true(part < text->n_parts);
		bytes = text->parts[part].iov_base;
		if (lines->inos[i])
			(void)snprintf(number, sizeof(number), "%llu",
				       (unsigned long long)lines->inos[i]);
		assert_true(at + strlen(number) + 1 + (with_paths ? 1 + path->len : 0) <=
			    text->parts[part].iov_len);
		assert_memory_equal(bytes + at, number, strlen(number));
		at += strlen(number);
		if (with_paths) {
			assert_int_equal(bytes[at++], '\t');
			assert_memory_equal(bytes + at, path->bytes, path->len);
			at += path->len;
		}
		assert_int_equal(bytes[at++], delimiter);
	}
	assert_int_equal(part + 1, text->n_parts);
	assert_int_equal(at, text->parts[part].iov_len);
}

/* Texts without a tree: the numbers are made up, some as long as numbers can be. */
static void check_lines(const char *text, size_t size, char delimiter, bool with_paths)
{
	const struct pfs_resolve_threads threads = {share, model.tree};
	struct pfs_resolve_lines lines = {0};
	struct pfs_resolve_text out = {0};

	for (size_t at = 0, used; at < size; at += used) {
		assert_int_equal(pfs_resolve_lines_find(&lines, &used, text + at, size - at,
							delimiter, &threads),
				 0);
		assert_int_equal(check_found(&lines, text + at, size - at, delimiter), used);
		assert_in_range(lines.n, 1, PFS_RESOLVE_LINES_MAX);
		for (size_t i = 0; i < lines.n; i++)
			lines.inos[i] = i % 3 ? UINT64_MAX >> (i * 7 + used) % 64 : 0;
		assert_int_equal(
			pfs_resolve_lines_print(&lines, &out, with_paths, delimiter, &threads), 0);
		check_printed(&lines, &out, with_paths, delimiter);
	}
	pfs_resolve_lines_free(&lines);
	pfs_resolve_text_free(&out);
}

/* Some of the texts are found and printed in many pieces; some lines are longer than a piece, or
 * empty, and some texts have more lines than are found at once. */
static void test_answers_as_text(void **state)
{
	static const size_t sizes[] = {1, 2, 4095, 4096, 4097, 131071, 131072, 131073, 3000000};
	const size_t room = (size_t)20 << 20;
	char *text = malloc(room);
	size_t size = 0;

	(void)state;
	open_tree(seed);
	random_tree(model.tree, 400);
	model_look(&model, model.tree);
	while (size < 400000) {
		size_t len;
		char *path = random_path(&len);

		memcpy(text + size, path, len);
		size += len;
		text[size++] = '\n';
		free(path);
	}
	for (unsigned i = 0; i < 200; i++) {
		check_lines(text, rnd(300), '\n', i % 2);
		check_lines(text + i, 131072 - 100 + i, '\n', i % 2);
	}
	check_lines(text, size, '\n', true);
	check_lines(text, size, 0, false);
	memset(text, '\n', room);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++)
		check_lines(text, sizes[i], '\n', i % 2);
	memset(text, '/', room);
	for (size_t i = 0; i < room; i += 3000000)
		text[i] = '\n';
	check_lines(text, room, '\n', true);
	check_lines(text, room, 0, true);
	close_tree();
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_trees),
		cmocka_unit_test(test_codes_of_a_new_store),
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_remembered_directories),
		cmocka_unit_test(test_directories_on_the_way),
		cmocka_unit_test(test_answers_as_text),
		cmocka_unit_test(test_long_paths),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_long_codes),
		cmocka_unit_test(test_equal_hashes),
		cmocka_unit_test(test_long_directories),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
