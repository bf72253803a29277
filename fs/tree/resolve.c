/* SPDX-License-Identifier: MIT */
#include "fs/tree/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

#define PIECE 1024u /* paths that a thread takes at once */
#define KNOWN 512u  /* directories that it remembers; a power of 2 */
#define GROUP 32u   /* walks side by side */

/* A directory's path, as it is written in the path of a node in it, and where that leads. */
struct known {
	const char *bytes;
	uint32_t len;
	uint32_t slot;
};

/* A path on its way. */
struct walk {
	size_t number;	 /* of the path */
	const char *at;	 /* what is left */
	const char *end;
	const char *dir_end; /* of the directory's path; NULL: it has been passed, or there is none */
	const char *name; /* the component that is looked up */
	size_t len;
	uint32_t slot; /* where it is; PFS_NO_SLOT: nowhere */
	uint32_t hash; /* of the directory's path */
};

struct job {
	struct pfs_tree *tree;
	const struct pfs_visible *visible;
	const struct pfs_path_text *paths;
	uint32_t *slots;
	uint32_t top;
};

struct worker {
	const struct job *job;
	size_t next, to; /* the paths that are left */
	size_t n;	 /* walks */
	struct walk walks[GROUP];
	struct known known[KNOWN];
};

/* ---- directories that are remembered ---- */

static uint32_t hash_of(const char *bytes, size_t len)
{
	const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t hash = len, word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * factor;
		hash ^= hash >> 32;
	}
	word = 0;
	if (len)
		memcpy(&word, bytes, len);
	hash = (hash ^ word) * factor;
	return (uint32_t)(hash >> 32);
}

static void remember(struct worker *worker, const struct walk *walk)
{
	const struct pfs_path_text *path = &worker->job->paths[walk->number];

	worker->known[walk->hash & (KNOWN - 1)] = (struct known){
		.bytes = path->bytes,
		.len = (uint32_t)(walk->dir_end - path->bytes),
		.slot = walk->slot,
	};
}

/* Goes on from the path's directory if that is known; else notes where it ends. */
static void find_known(struct worker *worker, struct walk *walk, const struct pfs_path_text *path)
{
	const char *slash = memrchr(path->bytes, '/', path->len);
	const struct known *known;
	size_t len;

	if (!slash || slash == path->bytes)
		return;
	len = (size_t)(slash - path->bytes);
	if (len > UINT32_MAX)
		return;
	walk->hash = hash_of(path->bytes, len);
	known = &worker->known[walk->hash & (KNOWN - 1)];
	if (known->len == len && memcmp(known->bytes, path->bytes, len) == 0) {
		walk->slot = known->slot;
		walk->at = slash;
	} else {
		walk->dir_end = slash;
	}
}

/* ---- walking ---- */

static void begin(struct worker *worker, struct walk *walk, size_t number)
{
	const struct job *job = worker->job;
	const struct pfs_path_text *path = &job->paths[number];

	*walk = (struct walk){
		.number = number,
		.at = path->bytes,
		.end = path->bytes + path->len,
		.slot = PFS_NO_SLOT,
	};
	if (path->len)
		walk->slot = *path->bytes == '/' ? job->tree->image.root : job->top;
	if (walk->slot != PFS_NO_SLOT)
		find_known(worker, walk, path);
}

static bool is_seen(const struct job *job, uint32_t slot)
{
	return slot != PFS_NO_SLOT && pfs_visible_has(job->visible, job->tree, slot);
}

/* To the next component that has to be looked up; false: the walk is over. */
static bool advance(struct worker *worker, struct walk *walk)
{
	const struct pfs_image *image = &worker->job->tree->image;

	while (walk->slot != PFS_NO_SLOT) {
		if (walk->at == walk->dir_end) {
			if (S_ISDIR(image->mode[walk->slot]))
				remember(worker, walk);
			walk->dir_end = NULL;
		}
		if (walk->at == walk->end)
			return false;
		if (!S_ISDIR(image->mode[walk->slot])) /* "file/" as well */
			break;
		if (*walk->at == '/') {
			walk->at++;
			continue;
		}
		walk->name = walk->at;
		walk->at = memchr(walk->at, '/', (size_t)(walk->end - walk->at));
		if (!walk->at)
			walk->at = walk->end;
		walk->len = (size_t)(walk->at - walk->name);
		if (walk->len == 1 && *walk->name == '.')
			continue;
		if (walk->len > PFS_NAME_MAX)
			break;
		if (walk->len != 2 || memcmp(walk->name, "..", 2) != 0)
			return true;
		if (walk->slot != image->root)
			walk->slot = image->parent[walk->slot];
	}
	walk->slot = PFS_NO_SLOT;
	return false;
}

/* As many walks as there is room for, each at a component. */
static void fill(struct worker *worker)
{
	size_t i = 0;

	while (i < worker->n) {
		struct walk *walk = &worker->walks[i];

		if (advance(worker, walk)) {
			i++;
			continue;
		}
		worker->job->slots[walk->number] = walk->slot;
		if (worker->next < worker->to)
			begin(worker, walk, worker->next++);
		else
			*walk = worker->walks[--worker->n];
	}
}

/* The entry's slot, if its key is that one; its name is on the way to the cache then. */
static uint32_t candidate(const struct pfs_image *image, const struct pfs_btree_entry *entry,
			  uint64_t key)
{
	if (entry->slot == PFS_BTREE_NONE || entry->key != key)
		return PFS_NO_SLOT;
	__builtin_prefetch(&image->name[entry->slot]);
	__builtin_prefetch(&image->mode[entry->slot]);
	return entry->slot;
}

/* The next one of several names with the same hash. */
static uint32_t next_candidate(const struct pfs_image *image, uint32_t slot, uint64_t key)
{
	struct pfs_btree_entry entry;

	pfs_btree_find(image->by_name, &entry, &key, slot + 1, 1);
	return candidate(image, &entry, key);
}

static bool has_name(const struct pfs_image *image, uint32_t slot, const struct walk *walk)
{
	size_t len;
	const char *name = pfs_names_get(image->names, image->name[slot], &len);

	return len == walk->len && memcmp(name, walk->name, len) == 0;
}

/* One component of each walk. */
static void step(struct worker *worker)
{
	const struct job *job = worker->job;
	const struct pfs_image *image = &job->tree->image;
	struct pfs_btree_entry entries[GROUP];
	uint64_t keys[GROUP];
	uint32_t found[GROUP];

	for (size_t i = 0; i < worker->n; i++) {
		const struct walk *walk = &worker->walks[i];

		keys[i] = pfs_image_key(walk->slot,
					pfs_image_hash(job->tree, walk->name, walk->len));
	}
	pfs_btree_find(image->by_name, entries, keys, 0, worker->n);
	for (size_t i = 0; i < worker->n; i++)
		found[i] = candidate(image, &entries[i], keys[i]);
	for (size_t i = 0; i < worker->n; i++)
		if (found[i] != PFS_NO_SLOT)
			pfs_names_prefetch(image->names, image->name[found[i]]);
	for (size_t i = 0; i < worker->n; i++) {
		struct walk *walk = &worker->walks[i];

		while (found[i] != PFS_NO_SLOT && !has_name(image, found[i], walk))
			found[i] = next_candidate(image, found[i], keys[i]);
		walk->slot = is_seen(job, found[i]) ? found[i] : PFS_NO_SLOT;
	}
}

static void resolve_piece(void *arg, size_t from, size_t to)
{
	const struct job *job = arg;
	struct worker worker = {.job = job, .next = from, .to = to};

	while (worker.n < GROUP && worker.next < to)
		begin(&worker, &worker.walks[worker.n++], worker.next++);
	for (fill(&worker); worker.n; fill(&worker))
		step(&worker);
}

void pfs_resolve_held(struct pfs_tree *tree, const struct pfs_visible *visible, uint32_t top,
		      uint32_t *slots, const struct pfs_path_text *paths, size_t n)
{
	struct job job = {.tree = tree, .visible = visible, .paths = paths, .top = top};

	job.slots = slots;
	pfs_scan_run(tree, n, PIECE, resolve_piece, &job);
}

/* The node of an inode number, if it has a name and is seen. */
static uint32_t top_of(const struct pfs_tree *tree, const struct pfs_visible *visible, uint64_t ino)
{
	uint32_t slot = ino ? pfs_scan_slot_of(tree, ino) : tree->image.root;

	return slot != PFS_NO_SLOT && pfs_visible_has(visible, tree, slot) ? slot : PFS_NO_SLOT;
}

/* A part of the paths, in one hold of the tree. */
static int resolve_part(struct pfs_tree *tree, uint64_t *inos, uint32_t *slots,
			const struct pfs_path_text *paths, size_t n,
			const struct pfs_resolve_from *from)
{
	struct pfs_visible *visible = NULL;
	int error = 0;

	(void)pfs_scan_lock(tree);
	if (from->viewer)
		error = pfs_visible_get(&visible, tree, from->viewer);
	if (!error) {
		pfs_resolve_held(tree, visible, top_of(tree, visible, from->ino), slots, paths, n);
		for (size_t i = 0; i < n; i++)
			inos[i] = slots[i] == PFS_NO_SLOT ? 0 : tree->image.prime[slots[i]];
	}
	pfs_scan_unlock(tree);
	pfs_visible_unref(visible);
	return error;
}

int pfs_tree_resolve_many(struct pfs_tree *tree, uint64_t *inos, const struct pfs_path_text *paths,
			  size_t n, const struct pfs_resolve_from *from)
{
	size_t room = PFS_MIN(n, PFS_RESOLVE_HELD);
	uint32_t *slots PFS_FREE = malloc(PFS_MAX(room, 1) * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t at = 0; at < n; at += PFS_MIN(n - at, room)) {
		if (from->gone && from->gone(from->arg))
			return -EINTR;
		PFS_TRY(resolve_part(tree, inos + at, slots, paths + at, PFS_MIN(n - at, room),
				     from));
	}
	return 0;
}

/* ---- lists of paths ---- */

bool pfs_path_next(struct pfs_path_text *out, const char *text, size_t size, size_t *at,
		   char delimiter)
{
	const char *end;

	if (*at >= size)
		return false;
	out->bytes = text + *at;
	end = memchr(out->bytes, delimiter, size - *at);
	out->len = end ? (size_t)(end - out->bytes) : size - *at;
	*at += out->len + (end != NULL);
	return true;
}
