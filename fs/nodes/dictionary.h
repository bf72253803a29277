/* SPDX-License-Identifier: MIT */
/* fs/nodes/dictionary.h - texts that repeat, each with a code (a small number); gpu/table.h has
 * what is lent to the operators. Threads: one at a time. */
#ifndef PFS_FS_NODES_DICTIONARY_H
#define PFS_FS_NODES_DICTIONARY_H

#include "gpu/table.h"

struct pfs_dictionary_builder {
	struct pfs_dictionary shown; /* what is there; arrays move as it grows */
	uint8_t *bytes;
	uint64_t *offset;
	uint32_t *table; /* 1 + code, by hash; 0: none */
	size_t bytes_capacity, offset_capacity;
	uint32_t table_mask;
};

/* Sets *code to the text's code, adding the text if it is new. The builder is all zero at first.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_dictionary_add(struct pfs_dictionary_builder *builder, uint32_t *code,
				      const char *text, size_t len);
/* Adds a text that is not there, without looking for it. A builder that texts are appended to does
 * not find them, and is given no others. -ENOMEM. */
PFS_MUST_CHECK int pfs_dictionary_append(struct pfs_dictionary_builder *builder, uint32_t *code,
					 const char *text, size_t len);
/* Gets the text's code, if it is there.  Several threads may ask while nothing is added. */
bool pfs_dictionary_find(const struct pfs_dictionary_builder *builder, uint32_t *code,
			 const char *text, size_t len);
/* Makes something to lend even before there are texts. -ENOMEM. */
PFS_MUST_CHECK int pfs_dictionary_begin(struct pfs_dictionary_builder *builder);
void pfs_dictionary_finish(struct pfs_dictionary_builder *builder);
uint64_t pfs_dictionary_memory(const struct pfs_dictionary_builder *builder); /* bytes */

#endif
