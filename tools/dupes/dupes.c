/* SPDX-License-Identifier: MIT */
#include "tools/dupes/dupes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/attr/hash.h"
#include "fs/content/follow.h"

#define BLOCK ((size_t)1 << 20) /* bytes that are read at a time */

struct file {
	uint64_t size, ino;
	uint64_t dev, number;	/* of the original; 0: there is none */
	uint64_t handle, birth; /* hashes of what its birthmark has; 0: not known */
	XXH128_hash_t hash;
	uint32_t root;
	bool readable; /* and it has a hash */
};

struct finding {
	struct pfs_tree *tree;
	const struct pfs_dupes_options *options;
	struct pfs_dupes_report *report;
	struct file *files;
	size_t n, capacity;
	char *block, *other; /* each has BLOCK bytes */
};

/* ---- candidates ---- */

static int take_node(void *arg, const struct pfs_walk_node *node)
{
	struct finding *finding = arg;
	const struct stat *attr = &node->entry.attr;

	if (finding->options->gone(finding->options->arg))
		return -ECANCELED;
	if (!S_ISREG(attr->st_mode) || attr->st_size <= 0 ||
	    (uint64_t)attr->st_size < finding->options->min_size)
		return 0;
	PFS_TRY(pfs_grow(&finding->files, &finding->capacity, finding->n + 1,
			 sizeof(*finding->files)));
	finding->files[finding->n++] =
		(struct file){.size = (uint64_t)attr->st_size, .ino = attr->st_ino};
	return 0;
}

/* Orders files by size, the largest first, and then as they were met. */
static int compare_sizes(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

static int compare_hashes(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	int order = y->readable - x->readable; /* files that could not be read come last */

	if (!order)
		order = XXH128_cmp(&x->hash, &y->hash);
	return order ? order : (x->ino > y->ino) - (x->ino < y->ino);
}

static int count_known(const struct file *file)
{
	return (file->handle != 0) + (file->birth != 0);
}

/* Orders files by their originals' numbers, and those of one number by how much is known of it. */
static int compare_originals(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	int order = count_known(y) - count_known(x);

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return order ? order : (x->ino > y->ino) - (x->ino < y->ino);
}

/* Imports at different times may have met different files of one device and inode number: what was
 * mounted, say, has been another disk. They are told apart as by pfs_birthmark_same; where a mark
 * is empty, those of one import are meant. */
static bool is_same_original(const struct file *a, const struct file *b)
{
	if (a->handle && b->handle)
		return a->handle == b->handle;
	if (a->birth && b->birth)
		return a->birth == b->birth;
	return a->root == b->root && (!count_known(a) || !count_known(b));
}

static void note_mark(struct file *file, const struct pfs_birthmark *mark)
{
	const struct pfs_time *birth = &mark->birth;

	if (mark->handle_len)
		file->handle = XXH3_64bits(mark->handle, mark->handle_len);
	if (mark->has_birth)
		file->birth = XXH3_64bits_withSeed(&birth->sec, sizeof(birth->sec), birth->nsec);
}

static int note_original(const struct finding *finding, struct file *file)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	int error = pfs_follow_record(finding->tree, &record, path, file->ino);

	if (error)
		return error == -ENOENT ? 0 : error;
	file->dev = record.dev;
	file->number = record.ino;
	note_mark(file, &record.mark);
	file->root = record.root;
	return 0;
}

/* Brings the names of the first file's original behind it, from among n files in order of
 * originals, and returns how many names those are. A node comes twice if it was moved meanwhile. */
static size_t gather_names(struct file *files, size_t n)
{
	size_t same = 1;

	for (size_t i = 1;
	     i < n && files[i].dev == files[0].dev && files[i].number == files[0].number &&
	     (files[0].number || files[i].ino == files[0].ino);
	     i++) {
		struct file swapped = files[i];

		if (files[i].ino != files[0].ino && !is_same_original(&files[0], &files[i]))
			continue;
		files[i] = files[same];
		files[same++] = swapped;
	}
	return same;
}

/* ---- hashes ---- */

static bool parse_half(uint64_t *out, const char *digits)
{
	char half[17], *end;

	(void)snprintf(half, sizeof(half), "%.16s", digits);
	*out = strtoull(half, &end, 16);
	return end == half + 16;
}

static bool parse_hash(XXH128_hash_t *out, const char *text)
{
	uint64_t high, low;

	if (strlen(text) != 32 || !parse_half(&high, text) || !parse_half(&low, text + 16))
		return false;
	out->high64 = high;
	out->low64 = low;
	return true;
}

/* Gets the hash that the store keeps, if it is that of the present content. */
static bool recall(const struct finding *finding, struct file *file, const struct stat *attr)
{
	char kept[PFS_HASH_TEXT_SIZE];
	ssize_t len = pfs_tree_get_hash(finding->tree, kept, sizeof(kept) - 1, file->ino);
	const char *digits;

	if (len < 0)
		return false;
	kept[len] = 0;
	digits = pfs_hash_of(kept, (size_t)len, attr->st_size, attr->st_mtim);
	return digits && parse_hash(&file->hash, digits);
}

/* A store that cannot be written keeps no hash. */
static int keep(const struct finding *finding, const struct file *file, const struct stat *attr)
{
	char text[PFS_HASH_TEXT_SIZE];
	int size = pfs_hash_describe(text, attr->st_size, attr->st_mtim), error;

	if (pfs_tree_is_read_only(finding->tree))
		return 0;
	size += snprintf(text + size, sizeof(text) - (size_t)size, "%016" PRIx64 "%016" PRIx64,
			 (uint64_t)file->hash.high64, (uint64_t)file->hash.low64);
	error = pfs_tree_set_hash(finding->tree, file->ino, text, (size_t)size);
	return error == -ENOMEM ? error : 0;
}

static int read_all(struct finding *finding, struct file *file)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t at = 0;
	ssize_t got = 0;

	if (!state)
		return -ENOMEM;
	(void)XXH3_128bits_reset(state);
	while (at < file->size) {
		got = pfs_tree_read(finding->tree, finding->block, BLOCK, file->ino, (int64_t)at,
				    PFS_READ_NOATIME);
		if (got <= 0)
			break;
		(void)XXH3_128bits_update(state, finding->block, (size_t)got);
		at += (uint64_t)got;
		if (finding->options->gone(finding->options->arg)) {
			got = -ECANCELED;
			break;
		}
	}
	file->hash = XXH3_128bits_digest(state);
	(void)XXH3_freeState(state);
	if (got < 0)
		return (int)got;
	finding->report->hashed++;
	return at < file->size ? -EAGAIN : 0;
}

static bool is_same_state(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* -EAGAIN: the file changes while it is read. */
static int hash_content(struct finding *finding, struct file *file)
{
	struct pfs_entry before, after;
	bool volatile_attr;

	if (file->number && pfs_follow_allowed(finding->tree))
		return -ENODATA; /* a kept hash does not make it readable */
	PFS_TRY(pfs_tree_open_file(finding->tree, &volatile_attr, file->ino, O_RDONLY, false,
				   false));
	PFS_TRY(pfs_tree_getattr(finding->tree, &before, file->ino));
	if ((uint64_t)before.attr.st_size != file->size)
		return -EAGAIN;
	if (recall(finding, file, &before.attr)) {
		file->readable = true;
		return 0;
	}
	PFS_TRY(read_all(finding, file));
	PFS_TRY(pfs_tree_getattr(finding->tree, &after, file->ino));
	if (!is_same_state(&before.attr, &after.attr))
		return -EAGAIN;
	file->readable = true;
	return keep(finding, file, &after.attr);
}

/* True of what asking about a node returns that was removed, even if somebody has it open. */
static bool is_gone(int error)
{
	return error == -ESTALE || error == -ENOENT;
}

/* A file that changes, is gone, or was imported without content need not be read. */
static int tell_unread(struct finding *finding, const struct file *file, int error)
{
	struct pfs_follower node;
	char *path PFS_FREE = NULL;
	int gone;

	if (error == -ENOMEM || error == -ECANCELED)
		return error;
	if (error == -EAGAIN)
		return 0;
	gone = pfs_follow_node(finding->tree, &node, file->ino);
	if (!gone && node.flags & PFS_NODE_NODATA)
		return 0;
	if (!gone)
		gone = pfs_tree_path(finding->tree, &path, file->ino);
	if (gone)
		return is_gone(gone) ? 0 : gone;
	finding->report->unread++;
	return finding->options->unread(finding->options->arg, path, error);
}

/* Hashes what the n names are of. The first of them becomes one that can be read. */
static int hash_original(struct finding *finding, struct file *names, size_t n)
{
	int first = 0;

	for (size_t i = 0; i < n; i++) {
		int error = hash_content(finding, &names[i]);

		if (!error) {
			names[0] = names[i];
			return 0;
		}
		if (error == -ENOMEM || error == -ECANCELED)
			return error;
		if (!i)
			first = error;
	}
	return tell_unread(finding, &names[0], first);
}

/* ---- bytes ---- */

/* Reads BLOCK bytes, or what there is of them. A file whose hash was kept may turn out here to be
 * one that cannot be read: it is told of, once, and *got is 0. */
static int read_piece(struct finding *finding, size_t *got, char *block, struct file *file,
		      uint64_t at)
{
	ssize_t n = pfs_tree_read(finding->tree, block, BLOCK, file->ino, (int64_t)at,
				  PFS_READ_NOATIME);

	*got = n < 0 ? 0 : (size_t)n;
	if (n >= 0)
		return 0;
	file->readable = false;
	return tell_unread(finding, file, (int)n);
}

static int compare_bytes(struct finding *finding, bool *equal, struct file *a, struct file *b)
{
	uint64_t at = 0;

	*equal = false;
	while (at < a->size) {
		size_t got, other = 0;

		PFS_TRY(read_piece(finding, &got, finding->block, a, at));
		if (got)
			PFS_TRY(read_piece(finding, &other, finding->other, b, at));
		if (finding->options->gone(finding->options->arg))
			return -ECANCELED;
		if (!got || got != other || memcmp(finding->block, finding->other, got) != 0)
			return 0; /* or one of them has just changed */
		at += got;
	}
	*equal = true;
	return 0;
}

static int tell_group(struct finding *finding, const struct file *files, size_t n)
{
	char **paths PFS_FREE = calloc(n, sizeof(char *));
	size_t left = 0;
	int error = paths ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !error; i++) {
		error = pfs_tree_path(finding->tree, &paths[left], files[i].ino);
		left += !error;
		if (is_gone(error))
			error = 0;
	}
	if (!error && left > 1) {
		finding->report->groups++;
		finding->report->files += left;
		finding->report->spare += (left - 1) * files[0].size;
		error = finding->options->group(finding->options->arg, files[0].size, paths, left);
	}
	for (size_t i = 0; i < left; i++)
		free(paths[i]);
	return error;
}

/* Files of one hash: those equal to the first, then those equal to the first of the rest, and so
 * on. */
static int split(struct finding *finding, struct file *files, size_t n)
{
	while (n > 1) {
		size_t same = 1;

		for (size_t i = 1; i < n && files[0].readable; i++) {
			struct file swapped = files[i];
			bool equal = false;

			if (files[i].readable)
				PFS_TRY(compare_bytes(finding, &equal, &files[0], &files[i]));
			if (!equal)
				continue;
			files[i] = files[same];
			files[same++] = swapped;
		}
		if (same > 1)
			PFS_TRY(tell_group(finding, files, same));
		files += same;
		n -= same;
	}
	return 0;
}

/* ---- all of it ---- */

static int compare_run(struct finding *finding, struct file *files, size_t n)
{
	size_t n_originals = 0;

	for (size_t i = 0; i < n; i++)
		PFS_TRY(note_original(finding, &files[i]));
	qsort(files, n, sizeof(*files), compare_originals);
	for (size_t i = 0, names; i < n; i += names) {
		names = gather_names(files + i, n - i);
		if (names == n)
			return 0; /* all are one file */
		PFS_TRY(hash_original(finding, files + i, names));
		files[n_originals++] = files[i];
	}
	n = n_originals;
	qsort(files, n, sizeof(*files), compare_hashes);
	for (size_t i = 0, end; i < n && files[i].readable; i = end) {
		for (end = i + 1; end < n && files[end].readable &&
				  XXH128_isEqual(files[i].hash, files[end].hash);)
			end++;
		PFS_TRY(split(finding, files + i, end - i));
	}
	return 0;
}

static int find(struct finding *finding)
{
	PFS_TRY(pfs_tree_walk(finding->tree, finding->options->ino, take_node, finding));
	if (finding->n)
		qsort(finding->files, finding->n, sizeof(*finding->files), compare_sizes);
	for (size_t i = 0, end; i < finding->n; i = end) {
		for (end = i + 1;
		     end < finding->n && finding->files[end].size == finding->files[i].size;)
			end++;
		if (end - i > 1)
			PFS_TRY(compare_run(finding, finding->files + i, end - i));
	}
	return 0;
}

int pfs_find_dupes(struct pfs_tree *tree, const struct pfs_dupes_options *options,
		   struct pfs_dupes_report *report)
{
	struct finding finding = {
		.tree = tree,
		.options = options,
		.report = report,
		.block = malloc(BLOCK),
		.other = malloc(BLOCK),
	};
	int error = finding.block && finding.other ? 0 : -ENOMEM;

	*report = (struct pfs_dupes_report){.groups = 0};
	if (!error)
		error = find(&finding);
	free(finding.files);
	free(finding.block);
	free(finding.other);
	return error;
}
