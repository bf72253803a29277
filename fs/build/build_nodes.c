/* SPDX-License-Identifier: MIT */
/* Nodes of a build: columns, the heap of names, and the table that finds a child by name. */
#include "fs/build/build_impl.h"

#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "fs/image/image.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define TABLE_MIN 1024

static const char query_name[] = ".query";

/* Folds 8 bytes at a time through a 64 x 64 -> 128 bit multiplication. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_name(const struct pfs_build *build, uint32_t parent, const char *name,
			  size_t len)
{
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t hash = fold(build->seed ^ parent, odd), word;

	for (; len >= sizeof(word); name += sizeof(word), len -= sizeof(word)) {
		(void)memcpy(&word, name, sizeof(word));
		hash = fold(hash ^ word, odd);
	}
	word = len;
	(void)memcpy((char *)&word + 1, name, len);
	hash = fold(hash ^ word, odd ^ build->seed);
	return (uint32_t)(hash >> 32);
}

static const char *name_of(const struct pfs_build *build, uint32_t node, size_t *len)
{
	*len = build->name[node] & 0xff;
	return build->heap + (build->name[node] >> 8);
}

/* Returns the entry of that name, or the empty one where it belongs. */
static uint64_t *entry_of(const struct pfs_build *build, uint32_t hash, uint32_t parent,
			  const char *name, size_t len)
{
	size_t mask = build->table_size - 1, at = hash & mask, other_len;

	for (; build->table[at]; at = (at + 1) & mask) {
		uint32_t node = (uint32_t)build->table[at];
		const char *other;

		if (build->table[at] >> 32 != hash || build->parent[node] != parent)
			continue;
		other = name_of(build, node, &other_len);
		if (other_len == len && memcmp(other, name, len) == 0)
			break;
	}
	return &build->table[at];
}

/* Allocates a table of zeros, on huge pages if it is large, since it is accessed in no order. Each
 * page is written before it is read: the kernel replaces a page that was read first when it is
 * written, and interrupts all processors for that, on which the threads of a crawl run. */
static uint64_t *table_of(size_t size)
{
	size_t bytes = size * sizeof(uint64_t);
	uint64_t *table = bytes < HUGE_PAGE ? malloc(bytes)
					    : aligned_alloc(HUGE_PAGE, bytes); /* powers of two */

	if (!table)
		return NULL;
	if (bytes >= HUGE_PAGE)
		(void)madvise(table, bytes,
			      MADV_HUGEPAGE); /* a kernel without huge pages ignores it */
	memset(table, 0, bytes);
	return table;
}

static int grow_table(struct pfs_build *build)
{
	size_t size = PFS_MAX(build->table_size * 2, TABLE_MIN), i;
	uint64_t *table;

	/* The table is at most 3/4 full. */
	if (build->count + 1 <= build->table_size / 4 * 3)
		return 0;
	table = table_of(size);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < build->table_size; i++) {
		uint64_t entry = build->table[i];
		size_t at;

		if (!entry)
			continue;
		for (at = (entry >> 32) & (size - 1); table[at]; at = (at + 1) & (size - 1))
			;
		table[at] = entry;
	}
	free(build->table);
	build->table = table;
	build->table_size = size;
	return 0;
}

static int grow_columns(struct pfs_build *build)
{
	size_t needed = build->count + 1, capacity = 0;
	int error;

	if (needed <= build->capacity)
		return 0;
	if (needed > PFS_SLOT_MAX)
		return -EOVERFLOW;
		/* Each column grows as pfs_grow decides; all grow alike, since they began alike. */
#define GROW(column)                                                                               \
	(capacity = build->capacity,                                                               \
	 pfs_grow(&build->column, &capacity, needed, sizeof(*build->column)))
	error = GROW(parent);
	if (!error)
		error = GROW(name);
	if (!error)
		error = GROW(state);
	if (!error)
		error = GROW(flags);
#undef GROW
	if (!error)
		build->capacity = capacity;
	return error;
}

static int keep(struct pfs_build *build, uint64_t *offset, const void *bytes, size_t len)
{
	/* The heap is never NULL, so that names without bytes have an address, too. */
	int error = pfs_grow(&build->heap, &build->heap_capacity, build->heap_size + len + 1, 1);

	if (error)
		return error;
	*offset = build->heap_size;
	if (len)
		(void)memcpy(build->heap + build->heap_size, bytes, len);
	build->heap_size += len;
	return 0;
}

int pfs_build_append(struct pfs_build *build, uint32_t *node, uint32_t parent, const void *name,
		     size_t name_len)
{
	uint64_t offset;
	int error = grow_columns(build);

	if (!error)
		error = keep(build, &offset, name, name_len);
	if (error)
		return error;
	*node = (uint32_t)build->count;
	build->parent[*node] = parent;
	build->name[*node] = offset << 8 | name_len;
	build->state[*node] = 0;
	build->flags[*node] = 0;
	build->count++;
	return 0;
}

int pfs_build_index(struct pfs_build *build)
{
	size_t node, len;
	int error;

	while (build->count + 1 > build->table_size / 4 * 3) {
		error = grow_table(build);
		if (error)
			return error;
	}
	for (node = 1; node < build->count; node++) {
		const char *name = name_of(build, (uint32_t)node, &len);
		uint32_t hash = hash_name(build, build->parent[node], name, len);

		*entry_of(build, hash, build->parent[node], name, len) =
			(uint64_t)hash << 32 | node;
	}
	return 0;
}

static int check_name(const char *name, size_t len)
{
	if (len > PFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) ||
	    memchr(name, '/', len) || memchr(name, 0, len))
		return -EINVAL;
	return 0;
}

static bool is_query(const char *name, size_t len)
{
	return len == sizeof(query_name) - 1 && memcmp(name, query_name, len) == 0;
}

static int take_attr(struct pfs_build *build, uint32_t node, const struct stat *attr)
{
	struct pfs_build_attr *to;
	int error =
		pfs_grow(&build->attr, &build->attr_capacity, build->count, sizeof(*build->attr));

	if (error)
		return error;
	to = &build->attr[node];
	*to = (struct pfs_build_attr){
		.size = S_ISCHR(attr->st_mode) || S_ISBLK(attr->st_mode) ? (int64_t)attr->st_rdev
									 : attr->st_size,
		.blocks = attr->st_blocks,
		.sec = {attr->st_atim.tv_sec, attr->st_mtim.tv_sec, attr->st_ctim.tv_sec},
		.nsec = {(uint32_t)attr->st_atim.tv_nsec, (uint32_t)attr->st_mtim.tv_nsec,
			 (uint32_t)attr->st_ctim.tv_nsec},
		.uid = attr->st_uid,
		.gid = attr->st_gid,
		.mode = (uint16_t)attr->st_mode,
	};
	build->state[node] &= (uint8_t)~BUILD_SPECIAL;
	if (!(build->state[node] & BUILD_PARENT))
		build->state[node] &= (uint8_t)~BUILD_DIRECTORY;
	build->state[node] |= BUILD_ATTR;
	if (S_ISDIR(attr->st_mode))
		build->state[node] |= BUILD_DIRECTORY;
	else if (!S_ISREG(attr->st_mode))
		build->state[node] |= BUILD_SPECIAL;
	return 0;
}

/* Makes the node a directory that gets a child. */
static int make_parent(struct pfs_build *build, uint32_t node)
{
	uint8_t *state = &build->state[node];

	if (!(*state & BUILD_DIRECTORY) && (*state & (BUILD_FIXED | BUILD_SPECIAL)))
		return -ENOTDIR;
	*state |= BUILD_DIRECTORY | BUILD_PARENT;
	if (node < build->n_stored)
		*state |= BUILD_CHANGED | BUILD_GROWN;
	return 0;
}

int pfs_build_add(struct pfs_build *build, uint32_t *node, enum pfs_build_seen *seen,
		  uint32_t parent, const void *name, size_t name_len, const struct stat *attr)
{
	bool query = is_query(name, name_len);
	uint64_t *entry;
	uint32_t hash;
	int error = check_name(name, name_len);

	if (!error)
		error = grow_table(build);
	if (error)
		return error;
	if (query) {
		name = ".query~";
		name_len++;
	}
	parent = pfs_build_node(build, parent);
	hash = hash_name(build, parent, name, name_len);
	entry = entry_of(build, hash, parent, name, name_len);
	if (*entry) {
		uint32_t found = (uint32_t)*entry;
		bool renamed = build->state[found] & BUILD_QUERY;

		if (found >= build->n_stored && renamed != query)
			return -ENOTUNIQ;
		*node = found;
		*seen = found < build->n_stored ? PFS_BUILD_STORED : PFS_BUILD_AGAIN;
		return 0;
	}
	error = make_parent(build, parent);
	if (!error)
		error = pfs_build_append(build, node, parent, name, name_len);
	if (!error && attr) {
		error = take_attr(build, *node, attr);
		if (error)
			build->count--;
	}
	if (error)
		return error;
	*entry = (uint64_t)hash << 32 | *node;
	*seen = PFS_BUILD_NEW;
	if (query) {
		build->state[*node] |= BUILD_QUERY;
		build->report.renamed_query++;
	}
	return 0;
}

void pfs_build_expect(const struct pfs_build *build, uint32_t parent, const void *name,
		      size_t name_len)
{
	uint32_t hash = hash_name(build, pfs_build_node(build, parent), name, name_len);

	if (build->table_size)
		__builtin_prefetch(&build->table[hash & (build->table_size - 1)], 1);
}

int pfs_build_find(const struct pfs_build *build, uint32_t *node, uint32_t parent, const void *name,
		   size_t name_len)
{
	uint64_t entry;
	uint32_t hash;

	if (check_name(name, name_len) != 0 || !build->table_size)
		return -ENOENT;
	if (is_query(name, name_len)) {
		name = ".query~";
		name_len++;
	}
	parent = pfs_build_node(build, parent);
	hash = hash_name(build, parent, name, name_len);
	entry = *entry_of(build, hash, parent, name, name_len);
	if (!entry)
		return -ENOENT;
	*node = (uint32_t)entry;
	return 0;
}

int pfs_build_set(struct pfs_build *build, uint32_t node, const struct stat *attr)
{
	node = pfs_build_node(build, node);
	if (node < build->n_stored)
		return 0; /* nodes that the store has stay as they are */
	if (!S_ISDIR(attr->st_mode) && (node == 0 || (build->state[node] & BUILD_PARENT)))
		return -EISDIR;
	if (S_ISDIR(attr->st_mode) && (build->state[node] & BUILD_FIXED))
		return -ENOTDIR;
	return take_attr(build, node, attr);
}

int pfs_build_set_directory(struct pfs_build *build, uint32_t node)
{
	uint8_t *state = &build->state[pfs_build_node(build, node)];

	if (!(*state & BUILD_DIRECTORY) && (*state & (BUILD_FIXED | BUILD_SPECIAL)))
		return -ENOTDIR;
	*state |= BUILD_DIRECTORY;
	return 0;
}

int pfs_build_set_target(struct pfs_build *build, uint32_t node, const void *target, size_t len)
{
	uint64_t offset;
	int error;

	if (len > PFS_TARGET_MAX)
		return -ENAMETOOLONG;
	error = pfs_grow(&build->targets, &build->targets_capacity, build->n_targets + 1,
			 sizeof(*build->targets));
	if (!error)
		error = keep(build, &offset, target, len);
	if (error)
		return error;
	build->targets[build->n_targets++] = (struct pfs_build_target){
		.node = pfs_build_node(build, node),
		.len = (uint32_t)len,
		.offset = offset,
	};
	return 0;
}

void pfs_build_set_flags(struct pfs_build *build, uint32_t node, uint32_t set, uint32_t clear)
{
	uint8_t flags;

	node = pfs_build_node(build, node);
	flags = (uint8_t)((build->flags[node] & ~clear) | set);
	if (node < build->n_stored)
		build->state[node] |= BUILD_CHANGED;
	build->flags[node] = flags;
}

ssize_t pfs_build_path(const struct pfs_build *build, char *out, size_t size, uint32_t node)
{
	size_t at = size;

	if (size == 0)
		return -ENAMETOOLONG;
	out[--at] = 0;
	for (node = pfs_build_node(build, node); node != build->at && node;
	     node = build->parent[node]) {
		size_t len = build->name[node] & 0xff;
		const char *name = build->heap + (build->name[node] >> 8);

		len -= (build->state[node] & BUILD_QUERY) != 0; /* the '~' */
		if (at < len + (out[at] != 0))
			return -ENAMETOOLONG;
		if (out[at])
			out[--at] = '/';
		at -= len;
		(void)memcpy(out + at, name, len);
	}
	(void)memmove(out, out + at, size - at);
	return (ssize_t)(size - at - 1);
}

bool pfs_build_get(const struct pfs_build *build, struct stat *out, uint32_t node)
{
	const struct pfs_build_attr *attr;
	bool device;

	node = pfs_build_node(build, node);
	if (!(build->state[node] & BUILD_ATTR))
		return false;
	attr = &build->attr[node];
	device = S_ISCHR(attr->mode) || S_ISBLK(attr->mode);
	*out = (struct stat){
		.st_mode = attr->mode,
		.st_uid = attr->uid,
		.st_gid = attr->gid,
		.st_rdev = device ? (dev_t)attr->size : 0,
		.st_size = device ? 0 : attr->size,
		.st_blocks = attr->blocks,
		.st_atim = {attr->sec[0], attr->nsec[0]},
		.st_mtim = {attr->sec[1], attr->nsec[1]},
		.st_ctim = {attr->sec[2], attr->nsec[2]},
	};
	return true;
}

bool pfs_build_is_directory(const struct pfs_build *build, uint32_t node)
{
	return build->state[pfs_build_node(build, node)] & BUILD_DIRECTORY;
}

bool pfs_build_has_children(const struct pfs_build *build, uint32_t node)
{
	return build->state[pfs_build_node(build, node)] & BUILD_PARENT;
}

bool pfs_build_is_top(const struct pfs_build *build, uint32_t node)
{
	node = pfs_build_node(build, node);
	if (build->into_empty)
		return node == build->at && build->state[node] & BUILD_GROWN;
	return node >= build->n_stored && build->state[node] & BUILD_DIRECTORY &&
	       (node == 0 || build->parent[node] < build->n_stored);
}

bool pfs_build_is_grown(const struct pfs_build *build, uint32_t node)
{
	/* If `at` is new, only the directory that it was made in has grown. */
	return build->at < build->n_stored &&
	       build->state[pfs_build_node(build, node)] & BUILD_GROWN;
}

bool pfs_build_next_place(const struct pfs_build *build, uint32_t *node, uint32_t *from)
{
	size_t end = build->n_stored ? build->count : 1; /* below a new root there is no other */

	while (*from < end) {
		*node = (*from)++;
		if (pfs_build_is_top(build, *node) || pfs_build_is_grown(build, *node))
			return true;
	}
	return false;
}

uint64_t pfs_build_count(const struct pfs_build *build)
{
	return build->count - build->n_stored;
}

int pfs_build_need_primes(struct pfs_build *build)
{
	return pfs_grow(&build->prime, &build->prime_capacity, build->count, sizeof(*build->prime));
}

int pfs_build_fix(struct pfs_build *build, uint64_t *prime, uint32_t node)
{
	int error;

	node = pfs_build_node(build, node);
	if (build->state[node] & BUILD_DIRECTORY)
		return -EISDIR;
	if (!(build->state[node] & BUILD_FIXED)) {
		error = pfs_build_need_primes(build);
		if (!error)
			error = pfs_grow(&build->fixed, &build->fixed_capacity, build->n_fixed + 1,
					 sizeof(*build->fixed));
		if (!error)
			error = pfs_build_next_prime(build, &build->prime[node], PFS_PRIME_OTHER,
						     1);
		if (error)
			return error;
		build->fixed[build->n_fixed++] = (struct pfs_build_fixed){
			.prime = build->prime[node],
			.node = node,
		};
		build->state[node] |= BUILD_FIXED;
	}
	*prime = build->prime[node];
	return 0;
}

void pfs_build_unfix(struct pfs_build *build, uint32_t node)
{
	node = pfs_build_node(build, node);
	if (node >= build->n_stored)
		build->state[node] &= (uint8_t)~BUILD_FIXED;
}

uint64_t pfs_build_prime(const struct pfs_build *build, uint32_t node)
{
	node = pfs_build_node(build, node);
	if (node == 0)
		return PFS_ROOT_PRIME;
	if (build->finished || node < build->n_stored || (build->state[node] & BUILD_FIXED))
		return build->prime[node];
	return 0;
}
