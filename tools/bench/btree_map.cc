/* SPDX-License-Identifier: MIT */
/* Abseil's btree_map behind functions of C, for `primefs-bench s5`: tools/setup bench makes a library of it. */
#include <absl/container/btree_map.h>

#include <cstddef>
#include <cstdint>

using map = absl::btree_map<uint64_t, uint32_t>;

extern "C" {

void *pfs_btree_map_create(void)
{
	return new map;
}

void pfs_btree_map_destroy(void *p)
{
	delete static_cast<map *>(p);
}

/* The keys ascend, and lie behind all that are there. */
void pfs_btree_map_append(void *p, const uint64_t *keys, const uint32_t *values, size_t n)
{
	map *m = static_cast<map *>(p);

	for (size_t i = 0; i < n; i++)
		m->insert(m->end(), {keys[i], values[i]});
}

void pfs_btree_map_find(void *p, uint32_t *values, const uint64_t *keys, size_t n)
{
	const map *m = static_cast<map *>(p);

	for (size_t i = 0; i < n; i++) {
		auto found = m->find(keys[i]);

		values[i] = found == m->end() ? UINT32_MAX : found->second;
	}
}

void pfs_btree_map_visit(void *p, uint64_t *keys, uint32_t *values)
{
	for (auto &entry : *static_cast<map *>(p)) {
		*keys++ = entry.first;
		*values++ = entry.second;
	}
}

size_t pfs_btree_map_insert(void *p, const uint64_t *keys, const uint32_t *values, size_t n)
{
	size_t added = 0;

	for (size_t i = 0; i < n; i++)
		added += static_cast<map *>(p)->insert({keys[i], values[i]}).second;
	return added;
}

size_t pfs_btree_map_erase(void *p, const uint64_t *keys, size_t n)
{
	size_t erased = 0;

	for (size_t i = 0; i < n; i++)
		erased += static_cast<map *>(p)->erase(keys[i]);
	return erased;
}
}
