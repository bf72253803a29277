/* SPDX-License-Identifier: MIT */
#include "tests/mount/twin.h"

#include <dirent.h>
#include <limits.h>
#include <sys/xattr.h>

int root[SIDES];
char context[512];

uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, (const char *)bytes + at, size - at < 8 ? size - at : 8);
		hash = (hash ^ word) * 1099511628211u;
	}
	return hash;
}

struct seen {
	char *path;
	struct stat st;
	uint64_t content;
};

struct tree {
	struct seen *nodes;
	size_t count, room;
};

static uint64_t content_of(const char *path, const struct stat *st)
{
	static char buffer[65536];
	char list[512], value[256];
	uint64_t hash = 14695981039346656037u, attributes = 0;
	ssize_t n;
	int fd;

	if (S_ISLNK(st->st_mode)) {
		n = readlink(path, buffer, sizeof(buffer));
		return n < 0 ? (uint64_t)errno : mix(hash, buffer, (size_t)n);
	}
	if (S_ISREG(st->st_mode)) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return (uint64_t)errno;
		while ((n = read(fd, buffer, sizeof(buffer))) > 0)
			hash = mix(hash, buffer, (size_t)n);
		(void)close(fd);
	}
	n = S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? listxattr(path, list, sizeof(list)) : 0;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(list + at) + 1) { /* in any order */
		ssize_t size = getxattr(path, list + at, value, sizeof(value));

		if (strncmp(list + at, "user.", 5) == 0 && size >= 0)
			attributes +=
				mix(mix(1, list + at, strlen(list + at)), value, (size_t)size);
	}
	return hash + attributes;
}

static void collect(struct tree *tree, const char *path, bool contents)
{
	struct seen *node;
	struct dirent *entry;
	struct stat st;
	char child[PATH_MAX];
	DIR *dir;

	if (lstat(path, &st) != 0) {
		if (errno != EACCES)
			probe_fail(__FILE__, __LINE__, "%s: listed but lstat %s: %s", context, path,
				   strerror(errno));
		st = (struct stat){0}; /* in a folder that lets this user list, not search */
	}
	if (tree->count == tree->room) {
		tree->room = tree->room ? 2 * tree->room : 256;
		tree->nodes = realloc(tree->nodes, tree->room * sizeof(*tree->nodes));
		if (!tree->nodes)
			probe_fail(__FILE__, __LINE__, "out of memory");
	}
	node = &tree->nodes[tree->count++];
	*node = (struct seen){strdup(path), st, contents ? content_of(path, &st) : 0};
	if (!node->path)
		probe_fail(__FILE__, __LINE__, "out of memory");
	dir = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		(void)snprintf(child, sizeof(child), "%.4000s/%.50s", path, entry->d_name);
		collect(tree, child, contents);
	}
	(void)closedir(dir);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct seen *)a)->path, ((const struct seen *)b)->path);
}

static void look(struct tree *tree, int side, bool contents)
{
	(void)OK(fchdir(root[side]));
	while (tree->count > 0)
		free(tree->nodes[--tree->count].path);
	collect(tree, ".", contents);
	qsort(tree->nodes, tree->count, sizeof(*tree->nodes), by_path);
}

#define EQUAL(field)                                                                           \
	do {                                                                                   \
		if ((long long)a->st.field != (long long)b->st.field)                          \
			probe_fail(__FILE__, __LINE__,                                         \
				   "%s: %s: " #field " is %lld (0%llo), wanted %lld (0%llo)",  \
				   context, a->path, (long long)b->st.field,                   \
				   (unsigned long long)b->st.field, (long long)a->st.field,    \
				   (unsigned long long)a->st.field);                           \
	} while (0)

static void compare_nodes(const struct seen *a, const struct seen *b)
{
	EQUAL(st_mode);
	EQUAL(st_nlink);
	EQUAL(st_uid);
	EQUAL(st_gid);
	EQUAL(st_rdev);
	if (!S_ISDIR(a->st.st_mode))
		EQUAL(st_size);
	if (a->content != b->content)
		probe_fail(__FILE__, __LINE__, "%s: %s: content or attributes differ", context,
			   a->path);
}

static void compare_trees(const struct tree *a, const struct tree *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		if (strcmp(a->nodes[i].path, b->nodes[i].path) != 0)
			probe_fail(__FILE__, __LINE__, "%s: %s here, %s there", context,
				   b->nodes[i].path, a->nodes[i].path);
		compare_nodes(&a->nodes[i], &b->nodes[i]);
	}
	if (a->count != b->count)
		probe_fail(__FILE__, __LINE__, "%s: %zu nodes, wanted %zu", context, b->count,
			   a->count);
}

void compare(bool contents)
{
	static struct tree trees[SIDES];

	for (int side = 0; side < SIDES; side++)
		look(&trees[side], side, contents);
	compare_trees(&trees[0], &trees[1]);
}

/* Which of a node's times changed since the last look: bit 0 mtime, bit 1 ctime; 4 for a new
 * one. */
static int stamps(const struct tree *before, const struct seen *now)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct stat *st = &before->nodes[i].st;

		if (st->st_ino == now->st.st_ino)
			return (probe_equal(st->st_mtim, now->st.st_mtim) ? 0 : 1) |
			       (probe_equal(st->st_ctim, now->st.st_ctim) ? 0 : 2);
	}
	return 4;
}

static struct tree stamped[SIDES];

void begin_times(void)
{
	for (int side = 0; side < SIDES; side++)
		look(&stamped[side], side, false);
}

void compare_times(void)
{
	static struct tree now[SIDES];
	int what[SIDES];

	for (int side = 0; side < SIDES; side++)
		look(&now[side], side, false);
	compare_trees(&now[0], &now[1]);
	for (size_t i = 0; i < now[0].count; i++) {
		for (int side = 0; side < SIDES; side++)
			what[side] = stamps(&stamped[side], &now[side].nodes[i]);
		if (what[0] != what[1])
			probe_fail(
				__FILE__, __LINE__,
				"%s: times of %s: changed %d, wanted %d (1 mtime, 2 ctime, 4 new)",
				context, now[0].nodes[i].path, what[1], what[0]);
	}
	for (int side = 0; side < SIDES; side++) {
		struct tree old = stamped[side];

		stamped[side] = now[side];
		now[side] = old;
	}
}
