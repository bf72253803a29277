/* SPDX-License-Identifier: MIT */
/* The memory of prefix trees: sections that grow, and batches of keys that are made ready. */
#include "base/checked.h"
#include "gpu/prefix_impl.h"

#define GIB   ((size_t)1 << 30)
#define LARGE ((size_t)8 << 20)

/* The largest size that 31 bits can address. */
static const size_t limits[PFS_PREFIX_SECTIONS] = {
	[PFS_PREFIX_WORDS] = 32 * GIB,	 [PFS_PREFIX_GROUPS] = 16 * GIB,
	[PFS_PREFIX_BLOCKS] = 16 * GIB,	 [PFS_PREFIX_RECORDS] = 16 * GIB,
	[PFS_PREFIX_PARTS] = 16 * GIB,	 [PFS_PREFIX_SPARES] = 16 * GIB,
	[PFS_PREFIX_OPEN] = GIB / 4,	 [PFS_PREFIX_ENTRIES] = 96 * GIB,
};

int pfs_prefix_sections_open(struct pfs_prefix_tree *tree)
{
	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++) {
		struct pfs_prefix_section *section = &tree->sections[i];

		PFS_TRY(pfs_reserve_open(&section->memory, limits[i]));
		PFS_TRY(pfs_reserve_open(&section->stale, limits[i] / PFS_PREFIX_PAGE));
	}
	return 0;
}

void pfs_prefix_sections_close(struct pfs_prefix_tree *tree)
{
	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++) {
		pfs_reserve_close(&tree->sections[i].memory);
		pfs_reserve_close(&tree->sections[i].stale);
	}
}

int pfs_prefix_reserve(struct pfs_prefix_tree *tree, enum pfs_prefix_section_name name, size_t size)
{
	struct pfs_prefix_section *section = &tree->sections[name];
	uint64_t wanted = section->used + size;

	if (wanted > limits[name])
		return -EOVERFLOW;
	if (wanted <= section->memory.committed)
		return 0;
	if (wanted > LARGE) /* in steps that huge pages fit into */
		wanted = PFS_MIN(pfs_div_round_up(wanted, LARGE) * LARGE, limits[name]);
	PFS_TRY(pfs_reserve_grow(&section->memory, wanted));
	pfs_expect_filled(section->memory.base, section->memory.committed);
	return pfs_reserve_grow(&section->stale,
				section->memory.committed / PFS_PREFIX_PAGE + 1);
}

uint64_t pfs_prefix_take(struct pfs_prefix_tree *tree, enum pfs_prefix_section_name name,
			 size_t size)
{
	struct pfs_prefix_section *section = &tree->sections[name];
	uint64_t at = section->used;

	PFS_VERIFY_CHECK(at + size <= section->memory.committed);
	pfs_prefix_touch(tree, name, at, size);
	section->used += size;
	return at;
}

/* ---- keys ---- */

static uint32_t size_of(const struct pfs_prefix_tree *tree)
{
	return tree->head.shape.type == PFS_PREFIX_U32 ? 4 : 8;
}

int pfs_prefix_check_keys(const struct pfs_prefix_tree *tree, const struct pfs_prefix_keys *keys)
{
	bool is_bytes = tree->head.shape.type == PFS_PREFIX_BYTES;

	if (keys->n > PFS_PREFIX_BATCH_MAX || (keys->n && is_bytes != (keys->at != NULL)))
		return -EINVAL;
	for (size_t i = 0; is_bytes && i < keys->n; i++)
		if (keys->at[i + 1] - keys->at[i] > PFS_PREFIX_KEY_MAX)
			return -ENAMETOOLONG;
	return 0;
}

static struct pfs_prefix_text integer(const struct pfs_prefix_tree *tree, uint64_t *room,
				      const void *keys, size_t i)
{
	uint32_t size = size_of(tree);

	if (size == sizeof(uint32_t)) {
		uint32_t key = __builtin_bswap32(((const uint32_t *)keys)[i]);

		memcpy(room, &key, sizeof(key));
	} else {
		*room = __builtin_bswap64(((const uint64_t *)keys)[i]);
	}
	return (struct pfs_prefix_text){(const uint8_t *)room, size,
					pfs_prefix_levels_of(size, tree->view.bits)};
}

void pfs_prefix_texts_make(const struct pfs_prefix_tree *tree, struct pfs_prefix_text *texts,
			   uint64_t *integers, const struct pfs_prefix_keys *keys, size_t from,
			   size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t *at = keys->at + from + i;
		uint32_t len;

		if (tree->head.shape.type != PFS_PREFIX_BYTES) {
			texts[i] = integer(tree, &integers[i], keys->keys, from + i);
			continue;
		}
		len = (uint32_t)(at[1] - at[0]);
		texts[i] = (struct pfs_prefix_text){(const uint8_t *)keys->keys + at[0], len,
						    pfs_prefix_levels_of(len, tree->view.bits)};
	}
}
