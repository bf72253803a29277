/* SPDX-License-Identifier: MIT */
/* Writes prefix trees as bytes and reads them: the sections as they are in memory, with a checksum
 * for each page. */
#include "gpu/prefix.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/siphash.h"
#include "gpu/prefix_impl.h"

#define MAGIC UINT64_C(0x3265657254786650) /* "PfxTree2" */

struct bytes_head {
	uint64_t magic;
	uint64_t size; /* of everything */
	uint64_t used[PFS_PREFIX_SECTIONS];
	struct pfs_prefix_head head;
};

static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
	return pfs_siphash(bytes, size, MAGIC, PFS_PREFIX_PAGE);
}

static uint64_t whole_size(const uint64_t *used)
{
	uint64_t size = sizeof(struct bytes_head);

	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++)
		size += pfs_div_round_up(used[i], 8) * 8;
	return size;
}

/* Adds the checksums that follow at the end, one for each page. */
static uint64_t with_sums(uint64_t size)
{
	return size + pfs_div_round_up(size, PFS_PREFIX_PAGE) * sizeof(uint64_t);
}

int pfs_prefix_write(const struct pfs_run *run, struct pfs_prefix *index, uint8_t **bytes,
		     size_t *size)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	struct bytes_head head = {.magic = MAGIC};
	uint8_t *out, *at;
	uint64_t sum;
	int error = pfs_run_poll(run);

	*bytes = NULL;
	PFS_TRY(error);
	(void)pthread_rwlock_rdlock(&index->lock);
	head.head = tree->head;
	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++)
		head.used[i] = tree->sections[i].used;
	head.size = whole_size(head.used);
	out = calloc(1, with_sums(head.size));
	if (out) {
		memcpy(out, &head, sizeof(head));
		at = out + sizeof(head);
		for (int i = 0; i < PFS_PREFIX_SECTIONS; i++) {
			if (head.used[i])
				memcpy(at, tree->sections[i].memory.base, head.used[i]);
			at += pfs_div_round_up(head.used[i], 8) * 8;
		}
		for (size_t from = 0; from < head.size; from += PFS_PREFIX_PAGE) {
			sum = sum_of(out + from, PFS_MIN(PFS_PREFIX_PAGE, head.size - from));
			memcpy(at, &sum, sizeof(sum));
			at += sizeof(sum);
		}
	}
	(void)pthread_rwlock_unlock(&index->lock);
	if (!out)
		return -ENOMEM;
	*bytes = out;
	*size = with_sums(head.size);
	return 0;
}

static int damaged(const char *what, uint64_t page)
{
	pfs_error("a prefix tree: page %llu: %s", (unsigned long long)page, what);
	return -EUCLEAN;
}

static int check_sums(struct bytes_head *head, const uint8_t *bytes, size_t size)
{
	const uint8_t *sums;

	if (size < sizeof(*head))
		return damaged("there is no whole head", 0);
	memcpy(head, bytes, sizeof(*head));
	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++)
		if (head->used[i] > size)
			return damaged("a section is larger than all", 0);
	if (head->magic != MAGIC || head->size > size || head->size < sizeof(*head) ||
	    with_sums(head->size) != size || whole_size(head->used) != head->size)
		return damaged("its head is no prefix tree's of this size", 0);
	sums = bytes + head->size;
	for (uint64_t from = 0; from < head->size; from += PFS_PREFIX_PAGE) {
		uint64_t sum = sum_of(bytes + from, PFS_MIN(PFS_PREFIX_PAGE, head->size - from));

		if (memcmp(sums + from / PFS_PREFIX_PAGE * sizeof(sum), &sum, sizeof(sum)) != 0)
			return damaged("its sum is another", from / PFS_PREFIX_PAGE);
	}
	return 0;
}

static int take_sections(struct pfs_prefix_tree *tree, const struct bytes_head *head,
			 const uint8_t *at)
{
	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++) {
		enum pfs_prefix_section_name name = (enum pfs_prefix_section_name)i;

		if (head->used[i] == 0)
			continue;
		PFS_TRY(pfs_prefix_reserve(tree, name, head->used[i]));
		(void)pfs_prefix_take(tree, name, head->used[i]);
		memcpy(tree->sections[i].memory.base, at, head->used[i]);
		at += pfs_div_round_up(head->used[i], 8) * 8;
	}
	return 0;
}

/* Checks the numbers from which changes take memory, as far as they could lead out of the sections.
 */
static bool is_head_sound(const struct pfs_prefix_tree *tree)
{
	const struct pfs_prefix_head *head = &tree->head;
	uint64_t n_units =
		tree->sections[PFS_PREFIX_WORDS].used / (PFS_PREFIX_UNIT * sizeof(uint32_t));
	uint64_t n_groups = pfs_prefix_n_groups(tree);

	if (tree->sections[PFS_PREFIX_ENTRIES].used < sizeof(struct pfs_prefix_payload) ||
	    n_units == 0)
		return false;
	if (!tree->view.is_compact &&
	    (n_groups == 0 ||
	     tree->sections[PFS_PREFIX_SPARES].used != n_groups * sizeof(struct pfs_prefix_spare) ||
	     tree->sections[PFS_PREFIX_PARTS].used !=
		     n_groups * tree->view.width * sizeof(struct pfs_prefix_part)))
		return false;
	for (size_t i = 0; i < PFS_COUNT(head->free_nodes); i++)
		if (head->free_nodes[i] >= n_units)
			return false;
	return true;
}

int pfs_prefix_read(const struct pfs_run *run, struct pfs_prefix **out, const uint8_t *bytes,
		    size_t size)
{
	struct bytes_head head;
	struct pfs_prefix *index;
	int error;

	*out = NULL;
	PFS_TRY(pfs_run_poll(run));
	PFS_TRY(check_sums(&head, bytes, size));
	error = pfs_prefix_open_empty(run, &index, &head.head.shape);
	if (error)
		return error == -EINVAL ? damaged("there is no such shape", 0) : error;
	error = take_sections(&index->tree, &head, bytes + sizeof(head));
	index->tree.head = head.head;
	pfs_prefix_set_view(&index->tree);
	if (!error && !is_head_sound(&index->tree))
		error = damaged("its sections do not fit together", 0);
	error = error ? error : pfs_prefix_verify_tree(&index->tree);
	if (error)
		pfs_prefix_close(run, index);
	else
		*out = index;
	return error;
}
