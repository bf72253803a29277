/* SPDX-License-Identifier: MIT */
/* Whatever changes a row changes its file's size in the same group: between the two somebody asks
 * for a commit, and each group that is written is looked at. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/import_util.h"

#include "fs/change/change.h"
#include "fs/content/row.h"
#include "fs/tree/dir.h"
#include "tests/ref/temp_store.h"

#define PAUSE_MS 100 /* how long a commit is waited for that must not come */
#define NODES	 4096

/* ---- what the store has; the committer's alone but for `watched` ---- */

static struct stored {
	bool is_row;
	uint64_t parent;
	size_t size, name_len, id_len, note_len;
} nodes[NODES]; /* by prime, modulo */

static _Atomic bool watched;
static _Atomic unsigned n_commits, n_wrong, n_pauses;

static struct stored *node_of(uint64_t prime)
{
	return &nodes[prime % NODES];
}

static size_t size_of_row(const struct stored *node)
{
	return strlen("id: \nparent: \nname: \nnote: \n") + node->id_len +
	       node_of(node->parent)->id_len + node->name_len + node->note_len;
}

static bool sizes_are_right(void)
{
	for (size_t i = 0; i < NODES; i++)
		if (nodes[i].is_row && nodes[i].size != size_of_row(&nodes[i]))
			return false;
	return true;
}

/* name NULL: all attributes. */
static void keep_len(uint64_t prime, const void *name, size_t name_len, size_t len)
{
	if (!name || (name_len == 2 && memcmp(name, "id", 2) == 0))
		node_of(prime)->id_len = len;
	if (!name || (name_len == 4 && memcmp(name, "note", 4) == 0))
		node_of(prime)->note_len = len;
}

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's */

int __real_pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *record);
int __wrap_pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *record);
int __wrap_pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *record)
{
	struct stored *node = node_of(record->prime);

	node->is_row = record->flags & PFS_NODE_ROW && S_ISREG(record->mode);
	node->parent = record->parent;
	node->size = (size_t)record->size;
	node->name_len = record->name_len;
	return __real_pfs_store_put_node(store, record);
}

int __real_pfs_store_put_attr(struct pfs_store *store, uint64_t prime,
			      const struct pfs_attr_record *attr);
int __wrap_pfs_store_put_attr(struct pfs_store *store, uint64_t prime,
			      const struct pfs_attr_record *attr);
int __wrap_pfs_store_put_attr(struct pfs_store *store, uint64_t prime,
			      const struct pfs_attr_record *attr)
{
	size_t len = attr->type == PFS_ATTR_TEXT
			     ? attr->text_len
			     : (size_t)snprintf(NULL, 0, "%" PRId64, attr->integer);

	keep_len(prime, attr->name, attr->name_len, len);
	return __real_pfs_store_put_attr(store, prime, attr);
}

int __real_pfs_store_remove_attr(struct pfs_store *store, uint64_t prime, const void *name,
				 size_t name_len);
int __wrap_pfs_store_remove_attr(struct pfs_store *store, uint64_t prime, const void *name,
				 size_t name_len);
int __wrap_pfs_store_remove_attr(struct pfs_store *store, uint64_t prime, const void *name,
				 size_t name_len)
{
	keep_len(prime, name, name_len, 0);
	return __real_pfs_store_remove_attr(store, prime, name, name_len);
}

int __real_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq)
{
	int error = __real_pfs_store_commit(store, seq);

	if (atomic_load(&watched) && !sizes_are_right())
		n_wrong++;
	n_commits++;
	return error;
}

/* The change is made, the size is not: a commit would have one without the other. */
void __real_pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below);
void __wrap_pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below);
void __wrap_pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below)
{
	unsigned before = atomic_load(&n_commits);

	n_pauses++;
	for (int i = 0; i < PAUSE_MS && atomic_load(&n_commits) == before; i++)
		nap();
	__real_pfs_row_changed(tree, ino, below);
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- a tree, and what changes it ---- */

static struct pfs_tree *tree;

static uint64_t ino_of(const char *path)
{
	uint64_t ino;

	assert_int_equal(pfs_tree_resolve(tree, &ino, path), 0);
	return ino;
}

static _Atomic bool syncing;

static void *sync_always(void *arg PFS_UNUSED)
{
	while (atomic_load(&syncing)) {
		assert_int_equal(pfs_tree_sync(tree), 0);
		nap();
	}
	return NULL;
}

static void update(uint64_t ino, unsigned set, const char *name, const char *id)
{
	struct pfs_change change = {.ino = ino, .set = set};
	struct pfs_attr_change attr = {.removed = false};
	struct pfs_change_set changes = {.kind = PFS_CHANGE_UPDATE, .list = &change, .n = 1};
	struct pfs_tree_info info;
	char why[200];

	if (name)
		assert_int_equal(
			pfs_change_set_text(&changes, &change.name, name, strlen(name)), 0);
	if (id) {
		assert_int_equal(pfs_change_set_text(&changes, &attr.name, "id", 2), 0);
		assert_int_equal(pfs_change_set_text(&changes, &attr.value, id, strlen(id)), 0);
		changes.attrs = &attr;
		changes.n_attrs = change.n_attrs = 1;
	}
	assert_int_equal(pfs_tree_info(tree, &info), 0);
	assert_int_equal(pfs_tree_change(tree, &changes,
					 &(struct pfs_change_basis){.epoch = info.epoch},
					 &temp_root, why, sizeof(why)),
			 0);
	free(changes.text);
}

static void change_everything(void)
{
	uint64_t animals = ino_of("/animals"), cats = ino_of("/animals/cats"),
		 dogs = ino_of("/animals/dogs"), lion = ino_of("/animals/cats/lion");

	assert_int_equal(pfs_tree_rename(tree, cats, "lion", cats, "a longer lion", 0), 0);
	assert_int_equal(pfs_tree_rename(tree, cats, "a longer lion", dogs, "lion", 0), 0);
	assert_int_equal(pfs_tree_rename(tree, dogs, "lion", cats, "tiger", RENAME_EXCHANGE), 0);
	assert_int_equal(pfs_tree_setxattr(tree, lion, "user.note", "a note", 6, 0), 0);
	assert_int_equal(pfs_tree_removexattr(tree, lion, "user.note"), 0);
	assert_int_equal(pfs_tree_setxattr(tree, cats, "user.id", "2222", 4, 0), 0);
	assert_int_equal(pfs_tree_rename(tree, animals, "cats", dogs, "felines", 0), 0);
	update(lion, PFS_CHANGE_NAME, "renamed by a statement", NULL);
	update(lion, 0, NULL, "44444");
	update(cats, 0, NULL, "2");
}

/* An attribute that is no column of the register's. */
static void change_another_attribute(void)
{
	uint64_t wolf = ino_of("/animals/dogs/wolf");
	struct pfs_entry before, after;

	assert_int_equal(pfs_tree_getattr(tree, &before, wolf), 0);
	assert_int_equal(pfs_tree_setxattr(tree, wolf, "user.other", "x", 1, 0), 0);
	assert_int_equal(pfs_tree_getattr(tree, &after, wolf), 0);
	assert_memory_equal(&before.attr.st_mtim, &after.attr.st_mtim, sizeof(struct timespec));
}

static void a_row_and_its_size_are_one_group(void **state PFS_UNUSED)
{
	const struct pfs_import_options import = {.format = &pfs_import_csv,
						  .id_column = "id",
						  .parent_column = "parent",
						  .name_column = "name"};
	pthread_t syncer;

	assert_int_equal(import_text(&import, "id,parent,name,note\n1,,animals,\n2,1,cats,\n"
					      "33,1,dogs,\n4,2,lion,x\n5,2,tiger,y\n6,33,wolf,\n"),
			 0);
	assert_true(sizes_are_right());
	assert_int_equal(pfs_tree_open(&tree, test_path, &(struct pfs_tree_options){0}), 0);
	assert_int_equal(pfs_tree_start(tree), 0);
	atomic_store(&watched, true);
	atomic_store(&syncing, true);
	assert_int_equal(pthread_create(&syncer, NULL, sync_always, NULL), 0);
	change_everything();
	change_another_attribute();
	atomic_store(&syncing, false);
	assert_int_equal(pthread_join(syncer, NULL), 0);
	assert_int_equal(pfs_tree_close(tree), 0);
	assert_true(sizes_are_right());
	assert_in_range(atomic_load(&n_pauses), 10, 20);
	assert_int_equal(atomic_load(&n_wrong), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_row_and_its_size_are_one_group, make_folder,
						remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
