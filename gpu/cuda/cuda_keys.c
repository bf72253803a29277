/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_keys.c - how the values of keys are made numbers. */
#include "base/checked.h"
#include "gpu/cuda/cuda_operators.h"

#define NUMBERS_MAX ((uint64_t)1 << 62)

/* Where numbers need not follow from the values, these may be replaced by numbers of rows: of texts
 * of a heap, and of elements that differ. */
static int replace_values(struct pfs_job *job, struct pfs_device_key *key,
			  struct pfs_device_bounds *bounds, const struct pfs_key_refs *refs,
			  size_t i, enum pfs_kind kind)
{
	const struct pfs_ref ref = refs->refs[i];
	const struct pfs_table_column *c = pfs_source_column(refs->source, ref);
	struct pfs_device_column *column = &key->value.column;

	key->is_row = true;
	key->is_text = kind == PFS_KIND_PLACE;
	if (key->is_text) {
		*bounds = (struct pfs_device_bounds){
			.most = (long long)PFS_MAX(refs->places->to, UINT64_C(1)) - 1};
		return pfs_job_number_texts(
			job, &key->value,
			c ? c->heap : refs->source->tuples->computed[ref.column].heap,
			refs->collations[i], refs->places);
	}
	*bounds = (struct pfs_device_bounds){.most = c->n_elements};
	*column = (struct pfs_device_column){
		.d_data = column->d_via, .mask = UINT64_MAX, .width = sizeof(*column->d_via)};
	return 0;
}

static int number_values(struct pfs_job *job, struct pfs_device_key *key,
			 struct pfs_device_bounds *bounds, const struct pfs_key_refs *refs,
			 size_t i, enum pfs_kind kind)
{
	if (kind == PFS_KIND_CODE)
		PFS_TRY(pfs_job_fold(job, &key->d_map,
				     pfs_source_dictionary(refs->source, refs->refs[i]),
				     refs->collations[i]));
	PFS_TRY(pfs_job_bounds(job, bounds, refs->source, refs->refs[i], &key->value));
	if (bounds->least > bounds->most) /* nothing but NULL */
		bounds->least = bounds->most = 0;
	return 0;
}

static int add_key(struct pfs_job *job, struct pfs_device_key *key, uint64_t *limit,
		   const struct pfs_key_refs *refs, size_t i)
{
	const struct pfs_table_column *c = pfs_source_column(refs->source, refs->refs[i]);
	struct pfs_device_bounds bounds;
	enum pfs_kind kind;
	bool is_replaced;
	uint64_t range;

	*key = (struct pfs_device_key){.stride = *limit};
	PFS_TRY(pfs_job_value(job, &key->value, &kind, refs->source, refs->refs[i]));
	is_replaced = kind == PFS_KIND_PLACE || (refs->places && c && c->via && c->is_by_via);
	if (kind == PFS_KIND_NUMBER || (kind == PFS_KIND_PLACE && !refs->places))
		return -EOPNOTSUPP;
	PFS_TRY(is_replaced ? replace_values(job, key, &bounds, refs, i, kind)
			    : number_values(job, key, &bounds, refs, i, kind));
	key->least = bounds.least;
	range = (uint64_t)bounds.most - (uint64_t)bounds.least;
	/* One more for NULL, one since both ends count. */
	if (range >= NUMBERS_MAX || __builtin_mul_overflow(*limit, range + 2, limit) ||
	    *limit > NUMBERS_MAX)
		return -EOPNOTSUPP;
	return 0;
}

int pfs_job_keys(struct pfs_job *job, struct pfs_device_keys *keys, uint64_t *limit,
		 const struct pfs_key_refs *refs)
{
	keys->n = 0;
	*limit = 1;
	if (refs->n > PFS_DEVICE_KEYS)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < refs->n; i++)
		PFS_TRY(add_key(job, &keys->key[keys->n++], limit, refs, i));
	return 0;
}
