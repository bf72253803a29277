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
PFS_MUST_CHECK int pfs_host_select_count(struct pfs_operator_backend *b, const struct pfs_run *run,
					 uint64_t *count, const struct pfs_source *source,
					 const struct pfs_program *program);

/* gather.c */
PFS_MUST_CHECK int pfs_host_gather_column(struct pfs_operator_backend *b, const struct pfs_run *run,
					  struct pfs_vector *out, const struct pfs_source *source,
					  struct pfs_ref ref);
PFS_MUST_CHECK int pfs_host_compute(struct pfs_operator_backend *b, const struct pfs_run *run,
				    struct pfs_tuples **out, const struct pfs_source *source,
				    const struct pfs_program *programs, size_t n_programs);
PFS_MUST_CHECK int pfs_host_filter(struct pfs_operator_backend *b, const struct pfs_run *run,
				   struct pfs_tuples **out, const struct pfs_source *source,
				   const struct pfs_program *program);

/* sort.c, column_index.c */
PFS_MUST_CHECK int pfs_host_sort(struct pfs_operator_backend *b, const struct pfs_run *run,
				 struct pfs_tuples **out, const struct pfs_source *source,
				 const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset,
				 uint64_t limit);
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
PFS_MUST_CHECK int pfs_host_merge(struct pfs_operator_backend *b, const struct pfs_run *run,
				  struct pfs_tuples **out, const struct pfs_index_fragment *left,
				  const struct pfs_index_fragment *right);

/* index.c */
PFS_MUST_CHECK int pfs_host_index_build(struct pfs_operator_backend *b, const struct pfs_run *run,
					struct pfs_index_tree **out, enum pfs_index_kind kind,
					const uint64_t *keys, const uint32_t *values, size_t n);
void pfs_host_index_close(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_index_tree *tree);
PFS_MUST_CHECK int pfs_host_index_find(struct pfs_operator_backend *b, const struct pfs_run *run,
				       const struct pfs_index_tree *tree,
				       const struct pfs_index_query *query);
PFS_MUST_CHECK int pfs_host_index_read(struct pfs_operator_backend *b, const struct pfs_run *run,
				       const struct pfs_index_tree *tree, struct pfs_index_cursor *cursor,
				       struct pfs_index_list *out, enum pfs_index_direction direction);
PFS_MUST_CHECK int pfs_host_index_range(struct pfs_operator_backend *b, const struct pfs_run *run,
					const struct pfs_index_tree *tree,
					struct pfs_index_list *out, uint64_t first, uint64_t last);
PFS_MUST_CHECK int pfs_host_index_insert(struct pfs_operator_backend *b, const struct pfs_run *run,
					 struct pfs_index_tree *tree, uint64_t *n_added,
					 const struct pfs_index_change *change);
PFS_MUST_CHECK int pfs_host_index_remove(struct pfs_operator_backend *b, const struct pfs_run *run,
					 struct pfs_index_tree *tree, uint64_t *n_removed,
					 const struct pfs_index_change *change);
void pfs_host_index_describe(const struct pfs_index_tree *tree, struct pfs_index_info *info);
PFS_MUST_CHECK int pfs_host_index_verify(struct pfs_operator_backend *b, const struct pfs_run *run,
					 const struct pfs_index_tree *tree);

#endif
