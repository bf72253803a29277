/* SPDX-License-Identifier: MIT */
/* gpu/host/families.h - the functions of the host back end's families (gpu/engine_impl.h says what
 * they do). */
#ifndef PFS_GPU_HOST_FAMILIES_H
#define PFS_GPU_HOST_FAMILIES_H

#include "gpu/engine_impl.h"

/* select.c */
PFS_MUST_CHECK int pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
					struct pfs_rows **out, const struct pfs_source *source,
					const struct pfs_program *program);

/* gather.c */
PFS_MUST_CHECK int pfs_host_gather_column(struct pfs_operator_backend *b, const struct pfs_run *run,
					  struct pfs_vector *out, const struct pfs_source *source,
					  struct pfs_ref ref);
PFS_MUST_CHECK int pfs_host_compute(struct pfs_operator_backend *b, const struct pfs_run *run,
				    struct pfs_tuples **out, const struct pfs_source *source,
				    const struct pfs_program *programs, size_t n_programs,
				    bool alone);
PFS_MUST_CHECK int pfs_host_filter(struct pfs_operator_backend *b, const struct pfs_run *run,
				   struct pfs_tuples **out, const struct pfs_source *source,
				   const struct pfs_program *program);

/* sort.c, window.c, column_index.c */
PFS_MUST_CHECK int pfs_host_sort(struct pfs_operator_backend *b, const struct pfs_run *run,
				 struct pfs_tuples **out, const struct pfs_source *source,
				 const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset,
				 uint64_t limit);
PFS_MUST_CHECK int pfs_host_window(struct pfs_operator_backend *b, const struct pfs_run *run,
				   struct pfs_tuples **out, const struct pfs_source *source,
				   const struct pfs_window *window);
PFS_MUST_CHECK int pfs_host_index(struct pfs_operator_backend *b, const struct pfs_run *run,
				  struct pfs_column_index *index, const struct pfs_source *source);

/* group.c */
PFS_MUST_CHECK int pfs_host_group(struct pfs_operator_backend *b, const struct pfs_run *run,
				  struct pfs_tuples **out, const struct pfs_source *source,
				  const struct pfs_group_key *keys, size_t n_keys,
				  const struct pfs_aggregate *aggregates, size_t n_aggregates);

/* join.c, merge.c */
PFS_MUST_CHECK int pfs_host_join(struct pfs_operator_backend *b, const struct pfs_run *run,
				 struct pfs_tuples **out, const struct pfs_source *left,
				 const struct pfs_source *right, const struct pfs_join *join);
/* partners.c */
PFS_MUST_CHECK int pfs_host_partners(struct pfs_operator_backend *b, const struct pfs_run *run,
				     struct pfs_rows **out, const struct pfs_source *left,
				     const struct pfs_source *right,
				     const struct pfs_join_key *key);
PFS_MUST_CHECK int pfs_host_merge(struct pfs_operator_backend *b, const struct pfs_run *run,
				  struct pfs_tuples **out, const struct pfs_index_fragment *left,
				  const struct pfs_index_fragment *right);

extern const struct pfs_index_family pfs_host_index_family;	   /* index.c; */
extern const struct pfs_index_family
	pfs_host_wide_index_family; /* once more, for values of 64 bits */

#endif
