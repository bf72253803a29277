/* SPDX-License-Identifier: MIT */
#include "fs/tree/resolve.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pool.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/device_lookup.h"
#include "fs/nodes/scan.h"
#include "fs/tree/directories.h"
#include "fs/tree/tree_impl.h"

#define PIECE 512u /* paths that a thread takes at once, or less, of about */
#define PIECE_BYTES (PFS_RESOLVE_HELD_BYTES / 8)
#define GROUP 32u   /* walks side by side */
#define MANY  256u  /* paths that are worth remembering directories for */
#define TRIES  16u /* to find what the viewer sees beside others who change directories */
#define PROBES 8u   /* directories above a path that are looked for among those that are remembered */
#define WORTH  4096u /* paths that are worth sending the device another part of the columns */

/* A path on its way. */
struct walk {
	size_t number;	 /* of the path */
	const char *at;	 /* what is left */
	const char *end;
	const char *dir_end; /* of the directory's path; NULL: it is known, or there is none */
	const char
		*prefix; /* the end of a directory's path that may be known; NULL: there is none */
	uint64_t hash;	    /* of that path */
	const char *name; /* the component that is looked up; NULL: none was since the last look */
	size_t len;
	uint32_t slot; /* where it is; PFS_NO_SLOT: nowhere */
};

struct job {
	struct pfs_tree *tree;
	const struct pfs_visible *visible;
	const struct pfs_path_text *paths;
	size_t n;
	uint32_t *slots;
	uint64_t *inos; /* or NULL: not wanted */
	uint32_t top;
	bool alone; /* no other thread walks */
	struct pfs_directories *known; /* NULL: none is remembered */
};

struct worker {
	const struct job *job;
	size_t next, to; /* the paths that are left */
	size_t n;	 /* walks */
	struct walk walks[GROUP];
	struct walk ready[GROUP]; /* walks that have not begun, the last n_ready of them */
	size_t n_ready;
};

/* ---- directories that are remembered ---- */

/* Returns where a path begins, as the table of directories has it. */
static uint32_t top_for(const struct job *job, const char *path)
{
	return *path == '/' ? PFS_NO_SLOT : job->top;
}

/* A directory on the way to the path's node. */
static void remember(struct worker *worker, const struct walk *walk)
{
	const struct job *job = worker->job;
	const char *bytes = job->paths[walk->number].bytes;
	const struct pfs_directory_path path = {
		.slot = walk->slot,
		.top = top_for(job, bytes),
		.len = (uint32_t)(walk->at - bytes),
	};

	if (path.len <= PFS_DIRECTORY_PATH_MAX)
		pfs_directory_add(job->known, pfs_directory_hash(bytes, path.len), &path, bytes);
}

/* Returns where the path before `end` ends without its last component; NULL: it has no other. */
static const char *without_last(const char *bytes, const char *end)
{
	end = memrchr(bytes, '/', (size_t)(end - bytes));
	while (end && end > bytes && end[-1] == '/')
		end--;
	return end && end > bytes ? end : NULL;
}

/* The directory's path up to `end` is looked for next; its bucket is on the way to the cache then.
 */
static void look_for(const struct job *job, struct walk *walk, const char *end)
{
	while (end && end - walk->at > PFS_DIRECTORY_PATH_MAX)
		end = without_last(walk->at, end);
	walk->prefix = end;
	if (!end)
		return;
	walk->hash = pfs_directory_hash(walk->at, (size_t)(end - walk->at));
	__builtin_prefetch(pfs_directory_bucket(job->known, walk->hash));
}

/* ---- walking ---- */

static void begin(const struct job *job, struct walk *walk, size_t number)
{
	const struct pfs_path_text *path = &job->paths[number];

	*walk = (struct walk){
		.number = number,
		.at = path->bytes,
		.end = path->bytes + path->len,
		.slot = PFS_NO_SLOT,
	};
	if (path->len)
		walk->slot = *path->bytes == '/' ? job->tree->image.root : job->top;
	if (walk->slot == PFS_NO_SLOT || !job->known)
		return;
	walk->dir_end = without_last(walk->at, walk->end);
	look_for(job, walk, walk->dir_end);
}

static bool is_same(const struct job *job, const struct walk *walk,
		    const struct pfs_directory_path *found)
{
	size_t len = (size_t)(walk->prefix - walk->at);

	return found->len == len && found->top == top_for(job, walk->at) &&
	       memcmp(found->bytes, walk->at, len) == 0;
}

/* Looks for a directory of each walk; true if some, not found, have one above that may be. */
static bool probe(const struct job *job, struct walk *walks, size_t n)
{
	const struct pfs_directory_path *found[GROUP] = {NULL};
	bool again = false;

	for (size_t i = 0; i < n; i++) {
		found[i] = walks[i].prefix ? pfs_directory_find(job->known, walks[i].hash) : NULL;
		if (found[i])
			__builtin_prefetch(found[i]->bytes + 64);
		__builtin_prefetch(found[i]);
	}
	for (size_t i = 0; i < n; i++) {
		struct walk *walk = &walks[i];

		if (!walk->prefix)
			continue;
		if (!found[i] || !is_same(job, walk, found[i])) {
			look_for(job, walk, without_last(walk->at, walk->prefix));
			again |= walk->prefix != NULL;
			continue;
		}
		walk->slot = found[i]->slot;
		__builtin_prefetch(&job->tree->image.mode[walk->slot]);
		walk->at = walk->prefix;
		walk->prefix = NULL;
		if (walk->at == walk->dir_end)
			walk->dir_end = NULL;
	}
	return again;
}

/* Begins the next walks, each at the deepest directory of its path that is remembered. Memory that
 * they read is first fetched for all of them, and then read. */
static void prepare(struct worker *worker)
{
	const struct job *job = worker->job;
	size_t n = PFS_MIN(GROUP, worker->to - worker->next);
	struct walk *walks = worker->ready + GROUP - n;

	for (size_t i = worker->next + n; i < PFS_MIN(worker->next + 2 * n, job->n); i++) {
		__builtin_prefetch(job->paths[i].bytes);
		__builtin_prefetch(job->paths[i].bytes + 64);
	}
	for (size_t i = 0; i < n; i++)
		begin(job, &walks[i], worker->next++);
	for (unsigned i = 0; job->known && i < PROBES && probe(job, walks, n); i++)
		continue;
	worker->n_ready = n;
}

/* The next walk; false: there is none. */
static bool take_walk(struct worker *worker, struct walk *walk)
{
	if (worker->n_ready == 0 && worker->next < worker->to)
		prepare(worker);
	if (worker->n_ready == 0)
		return false;
	*walk = worker->ready[GROUP - worker->n_ready--];
	return true;
}

static bool is_seen(const struct job *job, uint32_t slot)
{
	/* pfs_visible_has reads the parent, which is seldom in the cache. */
	return slot != PFS_NO_SLOT &&
	       (!job->visible || pfs_visible_has(job->visible, job->tree, slot));
}

/* Goes on to the next component that has to be looked up; false: the walk is over. */
static bool advance(struct worker *worker, struct walk *walk)
{
	const struct pfs_image *image = &worker->job->tree->image;

	while (walk->slot != PFS_NO_SLOT) {
		if (walk->name && walk->dir_end && walk->at <= walk->dir_end &&
		    S_ISDIR(image->mode[walk->slot]))
			remember(worker, walk);
		walk->name = NULL;
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
		if (walk->len == 1 && *walk->name == '.') {
			walk->name = NULL;
			continue;
		}
		if (walk->len > PFS_NAME_MAX)
			break;
		if (walk->len != 2 || memcmp(walk->name, "..", 2) != 0)
			return true;
		walk->name = NULL;
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
		if (worker->job->inos && walk->slot != PFS_NO_SLOT)
			__builtin_prefetch(&worker->job->tree->image.prime[walk->slot]);
		if (!take_walk(worker, walk))
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
static uint32_t next_candidate(const struct pfs_tree *tree, uint32_t slot, uint64_t key)
{
	struct pfs_btree_entry entry;

	pfs_btree_find(pfs_image_index(tree), &entry, &key, slot + 1, 1);
	return candidate(&tree->image, &entry, key);
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
	pfs_btree_find(pfs_image_index(job->tree), entries, keys, 0, worker->n);
	for (size_t i = 0; i < worker->n; i++)
		found[i] = candidate(image, &entries[i], keys[i]);
	for (size_t i = 0; i < worker->n; i++)
		if (found[i] != PFS_NO_SLOT)
			pfs_names_prefetch(image->names, image->name[found[i]]);
	for (size_t i = 0; i < worker->n; i++) {
		struct walk *walk = &worker->walks[i];

		while (found[i] != PFS_NO_SLOT && !has_name(image, found[i], walk))
			found[i] = next_candidate(job->tree, found[i], keys[i]);
		walk->slot = is_seen(job, found[i]) ? found[i] : PFS_NO_SLOT;
	}
}

static void resolve_piece(void *arg, size_t from, size_t to)
{
	const struct job *job = arg;
	struct worker worker = {.job = job, .next = from, .to = to};

	while (worker.n < GROUP && take_walk(&worker, &worker.walks[worker.n]))
		worker.n++;
	for (fill(&worker); worker.n; fill(&worker))
		step(&worker);
	for (size_t i = from; i < to && job->inos; i++)
		job->inos[i] = job->slots[i] == PFS_NO_SLOT ? 0
							    : job->tree->image.prime[job->slots[i]];
}

static size_t bytes_of(const struct pfs_path_text *paths, size_t n)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++)
		size += paths[i].len;
	return size;
}

/* Returns how many paths a thread takes at once. */
static size_t grain_of(const struct job *job)
{
	size_t fit = job->n * PIECE_BYTES / PFS_MAX(bytes_of(job->paths, job->n), 1);

	return PFS_MAX(GROUP, PFS_MIN(PIECE, fit));
}

/* Uses remembered directories only if the viewer sees all: for others each directory on a path has
 * to be checked each time. */
static void run_job(struct job *job)
{
	const uint64_t began = pfs_now_ns();

	if (job->n >= MANY && !job->visible)
		job->known = pfs_directories_take(job->tree);
	pfs_pool_run(job->alone ? NULL : pfs_scan_pool(job->tree), job->n, grain_of(job),
		     resolve_piece, job);
	pfs_device_lookup_count_many(job->tree, PFS_QUESTION_PATH, false, job->n,
				     pfs_now_ns() - began);
	if (job->known)
		pfs_directories_return(job->tree, job->known);
}

/* The node of an inode number, if it has a name and is seen. */
static uint32_t top_of(const struct pfs_tree *tree, const struct pfs_visible *visible, uint64_t ino)
{
	uint32_t slot = ino ? pfs_scan_slot_of(tree, ino) : tree->image.root;

	return slot != PFS_NO_SLOT && pfs_visible_has(visible, tree, slot) ? slot : PFS_NO_SLOT;
}

/* ---- by a device ---- */

struct packing {
	struct pfs_resident_paths *to;
	const struct pfs_path_text *paths;
};

static void pack_piece(void *arg, size_t from, size_t to)
{
	const struct packing *packing = arg;
	const struct pfs_resident_paths *packed = packing->to;
	size_t at = from ? packed->ends[from - 1] : 0;

	for (size_t i = from; i < to; at = packed->ends[i++])
		if (packing->paths[i].len)
			memcpy(packed->text + at, packing->paths[i].bytes, packing->paths[i].len);
}

/* The first of n paths, as many as there is room for, up to one that is so long that a thread of
 * the device would take long for it. */
static void pack(struct pfs_tree *tree, struct pfs_resident_paths *to,
		 const struct pfs_path_text *paths, size_t n, bool alone)
{
	struct packing packing = {to, paths};
	size_t size = 0, i = 0;

	for (; i < PFS_MIN(n, PFS_RESIDENT_PATHS) &&
	       paths[i].len <= PFS_MIN((size_t)PATH_MAX, PFS_RESIDENT_TEXT - size); i++) {
		size += paths[i].len;
		to->ends[i] = (uint32_t)size;
	}
	to->n = i;
	pfs_pool_run(alone ? NULL : pfs_scan_pool(tree), i, PIECE, pack_piece, &packing);
}

/* Sends the device what it lacks as long as that takes less than the host would for the paths. */
static int ask_device(struct pfs_tree *tree, struct pfs_resident_paths *paths, uint64_t top_ino)
{
	int error = -EAGAIN;

	for (size_t tries = 0; tries <= paths->n / WORTH && error == -EAGAIN; tries++) {
		(void)pfs_scan_lock(tree, __func__);
		error = pfs_device_paths_resolve(tree, paths, top_of(tree, NULL, top_ino));
		pfs_scan_unlock(tree);
	}
	return error;
}

/* Has the device resolve the first *n paths; *n is set in any case. False: the host has to resolve
 * these. */
static bool resolve_by_device(struct pfs_tree *tree, uint64_t *inos, size_t *n,
			      const struct pfs_path_text *paths,
			      const struct pfs_resolve_from *from)
{
	struct pfs_resident_paths *packed, asked;
	bool is_done;

	if (!pfs_device_paths_take(tree, &packed))
		return false;
	pack(tree, packed, paths, *n, from->alone);
	asked = *packed;
	asked.slots = NULL;
	is_done = packed->n && !ask_device(tree, &asked, from->ino);
	if (is_done)
		memcpy(inos, packed->primes, packed->n * sizeof(*inos));
	*n = PFS_MAX(packed->n, 1);
	pfs_device_paths_return(tree, packed);
	return is_done;
}

static bool resolve_held_by_device(struct pfs_tree *tree, uint32_t top, uint32_t *slots,
				   const struct pfs_path_text *paths, size_t n)
{
	struct pfs_resident_paths *packed, asked;
	bool is_done;

	if (n == 0 || !pfs_device_paths_take(tree, &packed))
		return false;
	pack(tree, packed, paths, n, false);
	asked = *packed;
	asked.primes = NULL;
	is_done = packed->n == n && !pfs_device_paths_resolve(tree, &asked, top);
	if (is_done)
		memcpy(slots, packed->slots, n * sizeof(*slots));
	pfs_device_paths_return(tree, packed);
	return is_done;
}

/* ---- either ---- */

void pfs_resolve_held(struct pfs_tree *tree, const struct pfs_visible *visible, uint32_t top,
		      uint32_t *slots, const struct pfs_path_text *paths, size_t n)
{
	struct job job = {.tree = tree, .visible = visible, .paths = paths, .n = n, .top = top};

	if (!visible && resolve_held_by_device(tree, top, slots, paths, n))
		return;
	job.slots = slots;
	run_job(&job);
}

/* Takes the tree, and finds what the viewer sees then. */
static int hold(struct pfs_tree *tree, struct pfs_visible **visible,
		const struct pfs_viewer *viewer)
{
	int error = -EAGAIN;

	*visible = NULL;
	for (unsigned tries = 0; tries < TRIES && error == -EAGAIN; tries++) {
		if (viewer)
			PFS_TRY(pfs_visible_make(tree, viewer));
		(void)pfs_scan_lock(tree, __func__);
		error = viewer ? pfs_visible_get(visible, tree, viewer) : 0;
		if (error)
			pfs_scan_unlock(tree);
	}
	return error;
}

/* A part of the paths, in one hold of the tree. */
static int resolve_part(struct pfs_tree *tree, uint64_t *inos, uint32_t *slots,
			const struct pfs_path_text *paths, size_t n,
			const struct pfs_resolve_from *from)
{
	struct job job = {.tree = tree, .paths = paths, .n = n, .alone = from->alone};
	struct pfs_visible *visible;

	PFS_TRY(hold(tree, &visible, from->viewer));
	job.visible = visible;
	job.slots = slots;
	job.inos = inos;
	job.top = top_of(tree, visible, from->ino);
	run_job(&job);
	pfs_scan_unlock(tree);
	pfs_visible_unref(visible);
	return 0;
}

static bool is_gone(const struct pfs_resolve_from *from)
{
	return from->gone && from->gone(from->arg);
}

/* A path that is too long for one hold. Between two pieces the node is known by its number. */
static int resolve_long(struct pfs_tree *tree, uint64_t *ino, const struct pfs_path_text *path,
			const struct pfs_resolve_from *from)
{
	struct pfs_resolve_from here = *from;
	struct pfs_path_text rest = *path;
	uint32_t slot;

	do {
		const struct pfs_path_text piece = pfs_path_piece(&rest);

		if (is_gone(from))
			return -EINTR;
		PFS_TRY(resolve_part(tree, ino, &slot, &piece, 1, &here));
		here.ino = *ino;
	} while (*ino && rest.len);
	return 0;
}

/* Returns how many of the paths one hold resolves, or 1 if the first one is too long for it. */
static size_t part_of(const struct pfs_path_text *paths, size_t n)
{
	size_t left = PFS_RESOLVE_HELD_BYTES, i = 0;

	for (; i < PFS_MIN(n, PFS_RESOLVE_HELD) && paths[i].len <= left; i++)
		left -= paths[i].len;
	return PFS_MAX(i, 1);
}

static int resolve_by_host(struct pfs_tree *tree, uint64_t *inos, const struct pfs_path_text *paths,
			   size_t n, const struct pfs_resolve_from *from)
{
	uint32_t *slots PFS_FREE =
		malloc(PFS_MAX(PFS_MIN(n, PFS_RESOLVE_HELD), 1) * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t at = 0, some; at < n; at += some) {
		some = part_of(paths + at, n - at);
		if (paths[at].len > PFS_RESOLVE_HELD_BYTES)
			PFS_TRY(resolve_long(tree, inos + at, paths + at, from));
		else if (is_gone(from))
			return -EINTR;
		else
			PFS_TRY(resolve_part(tree, inos + at, slots, paths + at, some, from));
	}
	return 0;
}

int pfs_tree_resolve_many(struct pfs_tree *tree, uint64_t *inos, const struct pfs_path_text *paths,
			  size_t n, const struct pfs_resolve_from *from)
{
	for (size_t at = 0, some; at < n; at += some) {
		if (is_gone(from))
			return -EINTR;
		some = n - at;
		if (from->viewer ||
		    !resolve_by_device(tree, inos + at, &some, paths + at, from))
			PFS_TRY(resolve_by_host(tree, inos + at, paths + at, some, from));
	}
	return 0;
}

/* ---- lists of paths ---- */

struct pfs_path_text pfs_path_piece(struct pfs_path_text *rest)
{
	struct pfs_path_text piece = *rest;
	const char *slash;

	if (piece.len > PFS_RESOLVE_HELD_BYTES) {
		/* without a slash there is a component that is longer than any name: no node's */
		slash = memrchr(piece.bytes, '/', PFS_RESOLVE_HELD_BYTES);
		piece.len = slash ? (size_t)(slash - piece.bytes) + 1 : PFS_RESOLVE_HELD_BYTES;
	}
	rest->bytes += piece.len;
	rest->len -= piece.len;
	for (; rest->len && *rest->bytes == '/'; rest->len--) /* it would begin at the root */
		rest->bytes++;
	return piece;
}

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
