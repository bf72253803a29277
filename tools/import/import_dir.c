/* SPDX-License-Identifier: MIT */
/* A directory tree: what the crawl finds goes into the build, content into the store.
 *
 * Files whose content is linked or left where it is get their primes with all others, in pre-order;
 * copied ones get them as they come, so that nothing waits in memory. */
#include "tools/import/import.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/filesystem.h"
#include "tools/import/crawl.h"
#include "tools/import/ignore.h"
#include "tools/import/import_attrs.h"
#include "tools/import/import_source.h"

#define NOWHERE	 UINT32_MAX /* a directory that is left out */
#define AHEAD	 8u /* entries: so many are found while memory answers once */
#define PROGRESS 256u /* messages between two looks whether to tell of it */

/* Which original a node has: the rest of what the source record needs is in the build. */
struct original {
	uint64_t dev, ino; /* ino 0: none */
	struct pfs_time birth;
	bool has_birth;
	bool unlisted; /* as that of struct pfs_crawl_dir */
	uint8_t handle_len;
	size_t handle; /* offset in the handles */
};

struct dir {
	struct pfs_crawl *crawl;
	char *root; /* absolute */
	uint32_t root_id;
	struct original *originals; /* by node */
	size_t n_originals, originals_capacity;
	uint8_t *handles;
	size_t n_handle_bytes, handles_capacity;
	struct pfs_attr_list attrs;
	struct names { /* a hash table of the files that have more than one */
		uint64_t key, link; /* key 0: free; link: their number, once there is one */
		uint32_t count;	    /* of those that are imported */
	} * names;
	size_t n_names, names_size;
	struct named { /* an entry that is such a name */
		uint64_t key;
		uint32_t node;
	} * named;
	size_t n_named, named_capacity;
	struct running { /* a file whose chunks are coming */
		const struct pfs_crawl_entry *entry;
		int64_t blocks;
	} * running;
	size_t n_running, running_capacity; /* no more than there are threads */
	uint64_t n_messages;
	bool is_root_new;
};

/* ---- hard links ---- */

/* The place of the file's group, or the free one where it belongs. */
static struct names *find_names(const struct dir *dir, uint64_t key)
{
	size_t mask = dir->names_size - 1, at = key & mask;

	while (dir->names[at].key && dir->names[at].key != key)
		at = (at + 1) & mask;
	return &dir->names[at];
}

static int make_room(struct dir *dir)
{
	struct names *old = dir->names;
	size_t n = dir->names_size, i;

	if (dir->n_names + 1 <= n / 2)
		return 0;
	dir->names_size = PFS_MAX(n * 2, 1024);
	dir->names = calloc(dir->names_size, sizeof(*dir->names));
	if (!dir->names) {
		dir->names = old;
		dir->names_size = n;
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		if (old[i].key)
			*find_names(dir, old[i].key) = old[i];
	free(old);
	return 0;
}

/* A file with several names in the source: whether this one is another of them, and whose it is. */
static int take_name(struct dir *dir, bool *seen, uint32_t node, const struct stat *attr)
{
	uint64_t key = (attr->st_ino ^ (uint64_t)attr->st_dev << 40) * UINT64_C(0x9e3779b97f4a7c15);
	struct names *names;

	key += key == 0;
	PFS_TRY(make_room(dir));
	PFS_TRY(pfs_grow(&dir->named, &dir->named_capacity, dir->n_named + 1,
			 sizeof(*dir->named)));
	names = find_names(dir, key);
	*seen = names->key == key;
	dir->n_names += !*seen;
	names->key = key;
	names->count++;
	dir->named[dir->n_named++] = (struct named){.node = node, .key = key};
	return 0;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

/* All entries are known: those whose file has another name here are marked. */
static void mark_names(struct pfs_import *import)
{
	struct dir *dir = import->state;

	if (dir->n_named)
		qsort(dir->named, dir->n_named, sizeof(*dir->named), compare_nodes);
	for (size_t i = 0; i < dir->n_named; i++)
		if (find_names(dir, dir->named[i].key)->count > 1)
			pfs_build_set_flags(import->build, dir->named[i].node, PFS_NODE_NAMED, 0);
}

/* The prime of the first name is the number of all of them. */
static int put_name(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct dir *dir = import->state;
	const struct named key = {.node = node}, *named;
	struct names *names;

	named = dir->n_named ? bsearch(&key, dir->named, dir->n_named, sizeof(key), compare_nodes)
			     : NULL;
	names = named ? find_names(dir, named->key) : NULL;
	if (!names || names->count < 2)
		return 0;
	if (!names->link)
		names->link = prime;
	return pfs_store_put_hard_link(pfs_build_store(import->build), prime,
				       (int64_t)names->link);
}

/* ---- entries ---- */

static int problem(void *arg, const char *path, const char *what)
{
	return pfs_import_problem(arg, "%s: %s", path, what);
}

static void show_path(char *out, size_t size, const struct pfs_import *import,
		      const struct pfs_crawl_batch *batch, const struct pfs_crawl_entry *entry)
{
	pfs_crawl_path(out, size, import->options.source, entry->parent, batch->bytes + entry->name,
		       entry->name_len);
}

static int entry_problem(struct pfs_import *import, const struct pfs_crawl_batch *batch,
			 struct pfs_crawl_entry *entry, const char *what)
{
	char path[2 * PATH_MAX];

	entry->left_out = true;
	show_path(path, sizeof(path), import, batch, entry);
	return pfs_import_problem(import, "%s: %s", path, what);
}

static int take_attrs(struct pfs_import *import, const struct pfs_crawl_batch *batch,
		      const struct pfs_crawl_entry *entry)
{
	struct dir *dir = import->state;
	size_t at = entry->attrs;
	uint32_t i;

	for (i = 0; i < entry->n_attrs; i++) {
		struct pfs_crawl_attr attr;

		pfs_crawl_attr(batch, &attr, &at);
		PFS_TRY(pfs_attr_list_add(&dir->attrs, entry->node, attr.name, attr.name_len,
					  attr.value, attr.value_len));
	}
	if (entry->n_attrs)
		pfs_build_set_flags(import->build, entry->node, PFS_NODE_ATTRS, 0);
	return 0;
}

static int note_original(struct pfs_import *import, const struct pfs_crawl_batch *batch,
			 const struct pfs_crawl_entry *entry)
{
	struct dir *dir = import->state;
	const uint32_t node = entry->node;
	struct pfs_birthmark mark;

	pfs_crawl_mark(batch, &mark, entry);
	PFS_TRY(pfs_grow(&dir->originals, &dir->originals_capacity, (size_t)node + 1,
			 sizeof(*dir->originals)));
	PFS_TRY(pfs_grow(&dir->handles, &dir->handles_capacity,
			 dir->n_handle_bytes + mark.handle_len, 1));
	while (dir->n_originals <= node)
		dir->originals[dir->n_originals++] = (struct original){0};
	dir->originals[node] = (struct original){
		.dev = entry->attr.st_dev,
		.ino = entry->attr.st_ino,
		.birth = mark.birth,
		.has_birth = mark.has_birth,
		.handle_len = mark.handle_len,
		.handle = dir->n_handle_bytes,
	};
	(void)memcpy(dir->handles + dir->n_handle_bytes, mark.handle, mark.handle_len);
	dir->n_handle_bytes += mark.handle_len;
	return 0;
}

static int take_file(struct pfs_import *import, const struct pfs_crawl_batch *batch,
		     struct pfs_crawl_entry *entry)
{
	struct dir *dir = import->state;
	bool seen = false;

	if (entry->attr.st_nlink > 1)
		PFS_TRY(take_name(dir, &seen, entry->node, &entry->attr));
	import->report.hard_links += seen;
	switch (import->options.content) {
	case PFS_CONTENT_NONE:
		pfs_build_set_flags(import->build, entry->node, PFS_NODE_NODATA, 0);
		return 0;
	case PFS_CONTENT_COPY:
		return 0;
	default:
		break;
	}
	if (entry->parent->path_len + 1 + entry->name_len >= PATH_MAX) {
		pfs_build_set_flags(import->build, entry->node, PFS_NODE_NODATA, 0);
		return entry_problem(import, batch, entry,
				     "its path is too long for a link; it is there without its "
				     "content, which --content=copy has");
	}
	pfs_build_set_flags(import->build, entry->node, PFS_NODE_LINKED, 0);
	return note_original(import, batch, entry);
}

static int take_filesystem(struct dir *dir, const struct pfs_crawl_entry *entry)
{
	char text[PFS_FILESYSTEM_TEXT_SIZE];

	pfs_filesystem_print(text, entry->filesystem);
	return pfs_attr_list_add(&dir->attrs, entry->node, PFS_FILESYSTEM,
				 sizeof(PFS_FILESYSTEM) - 1, text, sizeof(text) - 1);
}

/* What has no content: refreshing knows it again. */
static int take_other(struct pfs_import *import, const struct pfs_crawl_batch *batch,
		      const struct pfs_crawl_entry *entry)
{
	size_t len = entry->parent ? entry->parent->path_len + 1 + entry->name_len : 0;

	if (import->options.content != PFS_CONTENT_LINK || len >= PATH_MAX)
		return 0;
	pfs_build_set_flags(import->build, entry->node,
			    (entry->settled ? PFS_NODE_SETTLED : 0u) |
				    (entry->mounted ? PFS_NODE_MOUNT : 0u) |
				    (entry->filesystem ? PFS_NODE_ATTRS : 0u),
			    0);
	if (entry->filesystem)
		PFS_TRY(take_filesystem(import->state, entry));
	return note_original(import, batch, entry);
}

/* The store's word about originals becomes this import's, unless it has others already. */
static int put_root(struct pfs_import *import, const struct pfs_source_root *root)
{
	struct pfs_store *store = pfs_build_store(import->build);
	struct dir *dir = import->state;
	bool has_others;

	PFS_TRY(pfs_store_has_originals(store, &has_others));
	if (!has_others)
		PFS_TRY(pfs_store_stamp(store));
	return pfs_store_put_source_root(store, &dir->root_id, root);
}

static int take_root(struct pfs_import *import, const struct pfs_crawl_batch *batch,
		     struct pfs_crawl_entry *entry)
{
	struct dir *dir = import->state;
	struct pfs_source_root root = {
		.path = dir->root,
		.dev = entry->attr.st_dev,
		.ino = entry->attr.st_ino,
		.has_rights = true,
		.mode = entry->attr.st_mode,
		.uid = entry->attr.st_uid,
		.gid = entry->attr.st_gid,
		.has_mounts = true,
	};

	pfs_crawl_mark(batch, &root.mark, entry);
	entry->node = PFS_BUILD_ROOT;
	entry->dir->node = PFS_BUILD_ROOT;
	dir->is_root_new = !pfs_import_root_stored(import);
	if (pfs_leaving_out_given(import->options.leaving_out))
		pfs_build_set_flags(import->build, PFS_BUILD_ROOT, PFS_NODE_ATTRS, 0);
	if (dir->is_root_new) {
		PFS_TRY(pfs_build_set(import->build, PFS_BUILD_ROOT, &entry->attr));
		import->report.narrowed += entry->narrowed;
		PFS_TRY(take_attrs(import, batch, entry));
		PFS_TRY(take_other(import, batch, entry));
	}
	return import->options.content == PFS_CONTENT_LINK ? put_root(import, &root) : 0;
}

/* A folder whose files may be linked. */
static int put_dir(struct pfs_import *import, const struct pfs_crawl_batch *batch,
		   const struct pfs_crawl_entry *entry)
{
	const struct dir *dir = import->state;
	struct pfs_source_dir record = {
		.root = dir->root_id,
		.path = entry->dir->path,
		.path_len = entry->dir->path_len,
		.dev = entry->attr.st_dev,
		.ino = entry->attr.st_ino,
		.mode = entry->attr.st_mode,
		.uid = entry->attr.st_uid,
		.gid = entry->attr.st_gid,
	};

	if (record.path_len >= PATH_MAX)
		return 0; /* nothing below it is linked */
	pfs_crawl_mark(batch, &record.mark, entry);
	return pfs_store_put_source_dir(pfs_build_store(import->build), &record);
}

/* In a directory that is left out, which has been said. */
static int leave_out(struct pfs_import *import, struct pfs_crawl_entry *entry)
{
	entry->left_out = true;
	(void)__atomic_fetch_add(&import->report.skipped, 1, __ATOMIC_RELAXED);
	return 0;
}

static int take_entry(struct pfs_import *import, const struct pfs_crawl_batch *batch,
		      struct pfs_crawl_entry *entry)
{
	enum pfs_build_seen seen;
	int error;

	if (!entry->parent)
		return take_root(import, batch, entry);
	if (entry->dir)
		entry->dir->node = NOWHERE;
	if (entry->parent->node == NOWHERE)
		return leave_out(import, entry);
	error = pfs_build_add(import->build, &entry->node, &seen, entry->parent->node,
			      batch->bytes + entry->name, entry->name_len, &entry->attr);
	if (error == -ENOMEM || error == -EOVERFLOW)
		return error;
	if (!error && seen == PFS_BUILD_STORED &&
	    (!S_ISDIR(entry->attr.st_mode) || !pfs_build_is_directory(import->build, entry->node)))
		error = -EEXIST;
	if (error)
		return entry_problem(import, batch, entry, pfs_import_name_error(error));
	import->report.narrowed += entry->narrowed;
	if (entry->dir)
		entry->dir->node = entry->node;
	if (entry->dir && import->options.content == PFS_CONTENT_LINK)
		PFS_TRY(put_dir(import, batch, entry));
	PFS_TRY(take_attrs(import, batch, entry));
	if (S_ISREG(entry->attr.st_mode))
		return take_file(import, batch, entry);
	if (S_ISLNK(entry->attr.st_mode))
		PFS_TRY(pfs_build_set_target(import->build, entry->node,
					     batch->bytes + entry->target, entry->target_len));
	return seen == PFS_BUILD_STORED ? 0 : take_other(import, batch, entry);
}

/* ---- copied content ---- */

/* The blocks that the file's chunks have taken so far; files of several threads mingle. */
static int blocks_of(struct dir *dir, struct running **out, const struct pfs_crawl_entry *entry)
{
	size_t i;

	for (i = 0; i < dir->n_running; i++)
		if (dir->running[i].entry == entry)
			break;
	if (i == dir->n_running) {
		PFS_TRY(pfs_grow(&dir->running, &dir->running_capacity, i + 1,
				 sizeof(*dir->running)));
		dir->running[dir->n_running++] = (struct running){.entry = entry};
	}
	*out = &dir->running[i];
	return 0;
}

static int take_chunk(struct pfs_import *import, const struct pfs_crawl_message *message)
{
	struct running *running;
	uint64_t prime;

	PFS_TRY(blocks_of(import->state, &running, message->entry));
	PFS_TRY(pfs_build_fix(import->build, &prime, message->entry->node));
	running->blocks += pfs_import_blocks(message->len);
	return pfs_store_put_chunk(pfs_build_store(import->build), prime, message->n, message->data,
				   message->len);
}

static int take_content(struct pfs_import *import, const struct pfs_crawl_message *message)
{
	struct dir *dir = import->state;
	struct stat attr = message->attr;
	struct running *running;
	char path[2 * PATH_MAX];

	PFS_TRY(blocks_of(dir, &running, message->entry));
	attr.st_blocks = running->blocks;
	*running = dir->running[--dir->n_running];
	if (message->changed) {
		import->report.changed++;
		show_path(path, sizeof(path), import, message->batch, message->entry);
		pfs_import_warn(import, "%s: changed while it was copied", path);
	}
	if (!message->readable)
		pfs_build_set_flags(import->build, message->entry->node, PFS_NODE_NODATA, 0);
	return pfs_build_set(import->build, message->entry->node, &attr);
}

/* ---- all of it ---- */

/* Fetches the place where it will be looked for into the processor's cache. */
static void expect(struct pfs_import *import, const struct pfs_crawl_batch *batch, size_t i)
{
	const struct pfs_crawl_entry *entry = i < batch->n_entries ? &batch->entries[i] : NULL;

	if (entry && entry->parent && entry->parent->node != NOWHERE)
		pfs_build_expect(import->build, entry->parent->node, batch->bytes + entry->name,
				 entry->name_len);
}

static int take_message(struct pfs_import *import, const struct pfs_crawl_message *message)
{
	size_t i;

	switch (message->kind) {
	case PFS_CRAWL_ENTRIES:
		for (i = 0; i < message->batch->n_entries; i++) {
			expect(import, message->batch, i + AHEAD);
			PFS_TRY(take_entry(import, message->batch, &message->batch->entries[i]));
		}
		return 0;
	case PFS_CRAWL_CHUNK:
		return message->entry->left_out ? 0 : take_chunk(import, message);
	case PFS_CRAWL_CONTENT:
		return message->entry->left_out ? 0 : take_content(import, message);
	default:
		return 0;
	}
}

/* Refreshes read these directories again, whatever their times say. */
static void mark_unread(struct pfs_import *import)
{
	struct dir *dir = import->state;
	const struct pfs_crawl_dir *unread;

	for (unread = pfs_crawl_unread(dir->crawl); unread; unread = unread->next)
		if (unread->node < dir->n_originals) {
			pfs_build_set_flags(import->build, unread->node, 0, PFS_NODE_SETTLED);
			dir->originals[unread->node].unlisted = unread->unlisted;
		}
}

static int open_dir(struct pfs_import *import)
{
	struct dir *dir = calloc(1, sizeof(*dir));
	const struct pfs_crawl_options options = {
		.root = import->options.source,
		.cross_mounts = import->options.cross_mounts,
		.leaving_out = import->options.leaving_out,
		.content = import->options.content == PFS_CONTENT_COPY,
		.marks = import->options.content == PFS_CONTENT_LINK,
		.store = import->options.store,
		.problem = problem,
		.arg = import,
	};
	int error;

	if (!dir)
		return -ENOMEM;
	import->state = dir;
	dir->root = realpath(import->options.source, NULL);
	error = dir->root ? pfs_crawl_open(&dir->crawl, &options) : -errno;
	if (error && error != -ENOMEM)
		return pfs_import_fail(import, "%s: %s", import->options.source, strerror(-error));
	return error;
}

static int read_dir(struct pfs_import *import)
{
	struct pfs_crawl_message *message;
	int error = open_dir(import);
	struct dir *dir = import->state;

	while (!error && (message = pfs_crawl_next(dir->crawl)) != NULL) {
		error = take_message(import, message);
		if (++dir->n_messages % PROGRESS == 0)
			pfs_import_progress(import);
	}
	if (!error)
		error = pfs_crawl_error(dir->crawl);
	if (!error) {
		mark_names(import);
		mark_unread(import);
	}
	if (dir) {
		pfs_crawl_close(dir->crawl);
		dir->crawl = NULL;
	}
	return error;
}

static int put_source(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct dir *dir = import->state;
	char path[PATH_MAX];
	ssize_t len = pfs_build_path(import->build, path, sizeof(path), node);
	const struct original *original = &dir->originals[node];
	const struct pfs_time none = {.sec = 0};
	struct pfs_source_record source;
	struct stat attr;

	if (len < 0 || !pfs_build_get(import->build, &attr, node))
		return -EINVAL;
	source = (struct pfs_source_record){
		.prime = prime,
		.root = dir->root_id,
		.path = path,
		.path_len = (size_t)len,
		.dev = original->dev,
		.ino = original->ino,
		.mark = {.birth = original->birth,
			 .has_birth = original->has_birth,
			 .handle_len = original->handle_len},
		.size = attr.st_size,
		.mtime = original->unlisted ? none : pfs_time_of(attr.st_mtim),
		.ctime = original->unlisted ? none : pfs_time_of(attr.st_ctim),
		.mode = attr.st_mode,
		.uid = attr.st_uid,
		.gid = attr.st_gid,
	};
	(void)memcpy(source.mark.handle, dir->handles + original->handle, original->handle_len);
	return pfs_store_put_source(pfs_build_store(import->build), &source);
}

static int dir_written(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct dir *dir = import->state;

	if (node == PFS_BUILD_ROOT && pfs_leaving_out_given(import->options.leaving_out))
		PFS_TRY(pfs_import_put_left_out(import, prime));
	if (node < dir->n_originals && dir->originals[node].ino)
		PFS_TRY(put_source(import, node, prime));
	PFS_TRY(put_name(import, node, prime));
	if (!dir->attrs.n)
		return 0;
	return pfs_attr_list_put(&dir->attrs, pfs_build_store(import->build), node, prime);
}

static void close_dir(struct pfs_import *import)
{
	struct dir *dir = import->state;

	if (!dir)
		return;
	pfs_crawl_close(dir->crawl);
	pfs_attr_list_free(&dir->attrs);
	free(dir->root);
	free(dir->originals);
	free(dir->handles);
	free(dir->names);
	free(dir->named);
	free(dir->running);
	free(dir);
}

const struct pfs_import_format pfs_import_dir = {
	.name = "dir",
	.skips = true,
	.read = read_dir,
	.written = dir_written,
	.close = close_dir,
};
