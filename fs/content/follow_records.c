/* SPDX-License-Identifier: MIT */
/* What the store has written about the originals of nodes, and about the folders on the way. */
#include "fs/content/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/attr/attrset.h"
#include "fs/attr/xattr.h"
#include "fs/content/content_impl.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

/* ---- roots ---- */

struct wanted_root {
	struct pfs_source_root root;
	char path[PATH_MAX];
	uint32_t id;
	bool found;
};

static int take_root(void *arg, const struct pfs_source_root *root)
{
	struct wanted_root *wanted = arg;

	if (root->id != wanted->id)
		return 0;
	wanted->root = *root;
	(void)snprintf(wanted->path, sizeof(wanted->path), "%s", root->path);
	wanted->found = true;
	return 0;
}

int pfs_follow_root_record(struct pfs_tree *tree, struct pfs_source_root *out, char path[PATH_MAX],
			   uint32_t id)
{
	struct wanted_root wanted = {.id = id};

	PFS_TRY(pfs_store_scan_source_roots(tree->store, take_root, &wanted));
	if (!wanted.found)
		return -ENOENT;
	(void)memcpy(path, wanted.path, sizeof(wanted.path));
	*out = wanted.root;
	out->path = path;
	return 0;
}

/* ---- records ---- */

int pfs_follow_record(struct pfs_tree *tree, struct pfs_source_record *out, char path[PATH_MAX],
		      uint64_t ino)
{
	struct pfs_value *value PFS_UNREF = NULL;

	PFS_TRY(pfs_records_get(pfs_links_sources(tree), &value, ino, PFS_RECORDS_LOOK));
	if (!value)
		return -ENOENT;
	*out = *pfs_links_record(value);
	out->prime = ino;
	memcpy(path, out->path, out->path_len + 1);
	out->path = path;
	return 0;
}

int pfs_follow_paths(struct pfs_tree *tree, uint32_t root,
		     int (*fn)(void *arg, uint64_t ino, const char *path, size_t path_len),
		     void *arg)
{
	return pfs_store_scan_sources(tree->store, root, fn, arg);
}

int pfs_follow_folder(struct pfs_tree *tree, struct pfs_source_dir *out, uint32_t root,
		      const char *path)
{
	return pfs_store_get_source_dir(tree->store, out, root, path, strlen(path));
}

int pfs_follow_left_out(struct pfs_tree *tree, char **out, size_t *size, uint64_t ino)
{
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_attr attr;

	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	if (!pfs_attrset_find(set, &attr, PFS_LEFT_OUT, sizeof(PFS_LEFT_OUT) - 1))
		return -ENODATA;
	*out = strndup(attr.text, attr.text_len);
	*size = *out ? strlen(*out) : 0;
	return *out ? 0 : -ENOMEM;
}

static bool may_have_record(const struct pfs_image *image, uint32_t slot)
{
	return image->prime[slot] && !(image->state[slot] & PFS_SLOT_UNLINKED) &&
	       (image->flags[slot] & PFS_NODE_LINKED || S_ISDIR(image->mode[slot]));
}

int pfs_follow_find(struct pfs_tree *tree,
		    int (*fn)(void *arg, uint64_t ino, const struct pfs_source_record *record),
		    void *arg)
{
	uint32_t slot = 0, end;
	bool has_any;
	int error = pfs_store_has_originals(tree->store, &has_any);

	if (error || !has_any)
		return error;
	pfs_hold_read(tree, __func__);
	end = tree->image.end;
	pfs_hold_end(tree);
	for (; slot < end && !error; slot++) {
		struct pfs_source_record record;
		char path[PATH_MAX];
		uint64_t ino = 0;

		pfs_hold_read(tree, __func__);
		if (may_have_record(&tree->image, slot))
			ino = tree->image.prime[slot];
		pfs_hold_end(tree);
		if (!ino)
			continue;
		error = pfs_follow_record(tree, &record, path, ino);
		if (!error)
			error = fn(arg, ino, &record);
		else if (error == -ENOENT)
			error = 0;
	}
	return error;
}

/* ---- folders ---- */

static int put_folders(struct pfs_store *store, const struct pfs_follow_folders *folders)
{
	if (folders->root) {
		uint32_t id;

		PFS_TRY(pfs_store_put_source_root(store, &id, folders->root));
	}
	for (size_t i = 0; i < folders->n_dirs; i++)
		PFS_TRY(pfs_store_put_source_dir(store, &folders->dirs[i]));
	return 0;
}

static int write_folders(void *arg, struct pfs_store *store)
{
	return put_folders(store, arg);
}

int pfs_follow_put_folders(struct pfs_tree *tree, const struct pfs_follow_folders *folders)
{
	struct pfs_follow_folders copy = *folders;
	struct pfs_errand errand = {
		.part = &pfs_sources_part, .write = write_folders, .arg = &copy};

	if (!folders->n_dirs && !folders->root)
		return 0;
	return pfs_journal_send(tree, &errand);
}
