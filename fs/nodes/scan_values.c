/* SPDX-License-Identifier: MIT */
/* What a node's fields are, one by one and in bulk. */
#include "fs/nodes/scan_impl.h"

#include <string.h>

#include "base/checked.h"
#include "fs/content/compared.h"
#include "fs/content/hardlink.h"
#include "fs/image/names.h"
#include "fs/image/path.h"
#include "fs/image/rare_values.h"
#include "fs/image/totals.h"
#include "fs/tree/dir.h"
#include "fs/tree/tree_impl.h"

#pragma GCC diagnostic error "-Wswitch" /* a source that a switch without default lacks */

#define GRAIN 8192u /* nodes that one thread takes at once */
#define AHEAD 64u    /* nodes fetched ahead ... */
#define SCATTERED 16u /* ... if there are so many others between two of them */
#define BYTES 1024u /* room for so many at least */

/* ---- integers ---- */

static int64_t type_letter(uint16_t mode)
{
	static const char letters[] = "?pc?d?b?f?l?s???"; /* by the type bits */

	return letters[mode >> 12];
}

static int64_t device(const struct pfs_image *image, uint32_t slot)
{
	struct pfs_rare_values values;

	if (!S_ISCHR(image->mode[slot]) && !S_ISBLK(image->mode[slot]))
		return 0;
	return pfs_image_rare(image, &values, slot) ? (int64_t)values.rdev : 0;
}

int64_t pfs_scan_total(const struct pfs_totals *totals, enum pfs_field field)
{
	int64_t value;

	memcpy(&value, (const char *)totals + pfs_fields[field].place, sizeof(value));
	if (pfs_fields[field].source == PFS_SOURCE_TOTAL_TIME)
		value = PFS_MAX(value, INT64_MIN + 1);
	return value;
}

static int64_t total(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot)
{
	struct pfs_totals totals;

	pfs_totals_at(tree, &totals, slot);
	return pfs_scan_total(&totals, field);
}

int64_t pfs_scan_integer(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	const void *array = pfs_field_array(image, field);

	switch (pfs_fields[field].source) {
	case PFS_SOURCE_U16:
		return ((const uint16_t *)array)[slot];
	case PFS_SOURCE_U32:
		return ((const uint32_t *)array)[slot];
	case PFS_SOURCE_I64:
	case PFS_SOURCE_TIME:
	case PFS_SOURCE_INO:
		return ((const int64_t *)array)[slot];
	case PFS_SOURCE_TYPE:
		return type_letter(((const uint16_t *)array)[slot]);
	case PFS_SOURCE_PARENT:
		return slot == image->root ? PFS_FIELD_NONE
					   : (int64_t)image->prime[image->parent[slot]];
	case PFS_SOURCE_DEPTH:
		return pfs_image_depth(image, slot);
	case PFS_SOURCE_LINK:
		return pfs_hard_link_of(tree, slot);
	case PFS_SOURCE_LINKS:
		return pfs_hard_link_names(tree, slot, NULL);
	case PFS_SOURCE_RDEV:
		return device(image, slot);
	case PFS_SOURCE_COMPARED:
		return pfs_compared_ns(tree, slot);
	case PFS_SOURCE_READDIR:
		return slot == image->root ? 0 : pfs_dir_offset(tree, slot);
	case PFS_SOURCE_TOTAL:
	case PFS_SOURCE_TOTAL_TIME:
		return total(tree, field, slot);
	case PFS_SOURCE_NONE:
	case PFS_SOURCE_NAME:
	case PFS_SOURCE_EXT:
	case PFS_SOURCE_TARGET:
	case PFS_SOURCE_PATH:
	case PFS_SOURCE_PREORDER:
		break;
	}
	return PFS_FIELD_NONE; /* it is no integer */
}

struct integers {
	const struct pfs_tree *tree;
	int64_t *out;
	const uint32_t *slots;
	enum pfs_field field;
};

static void gather_16(int64_t *out, const uint16_t *column, const uint32_t *slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = column[slots[i]];
}

static void gather_32(int64_t *out, const uint32_t *column, const uint32_t *slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = column[slots[i]];
}

static void gather_64(int64_t *out, const void *column, const uint32_t *slots, size_t n)
{
	const int64_t *values = column;

	for (size_t i = 0; i < n; i++)
		out[i] = values[slots[i]];
}

static void gather_types(int64_t *out, const uint16_t *mode, const uint32_t *slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = type_letter(mode[slots[i]]);
}

static void gather_totals(int64_t *out, const struct pfs_tree *tree, enum pfs_field field,
			  const uint32_t *slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = total(tree, field, slots[i]);
}

static void gather_integers(void *context, size_t from, size_t to)
{
	const struct integers *integers = context;
	const uint32_t *slots = integers->slots + from;
	int64_t *out = integers->out + from;
	size_t n = to - from;
	const void *array = pfs_field_array(&integers->tree->image, integers->field);

	switch (pfs_fields[integers->field].source) {
	case PFS_SOURCE_U16:
		gather_16(out, array, slots, n);
		return;
	case PFS_SOURCE_U32:
		gather_32(out, array, slots, n);
		return;
	case PFS_SOURCE_I64:
	case PFS_SOURCE_TIME:
	case PFS_SOURCE_INO:
		gather_64(out, array, slots, n);
		return;
	case PFS_SOURCE_TYPE:
		gather_types(out, array, slots, n);
		return;
	case PFS_SOURCE_TOTAL:
	case PFS_SOURCE_TOTAL_TIME:
		gather_totals(out, integers->tree, integers->field, slots, n);
		return;
	default: /* one by one */
		break;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = pfs_scan_integer(integers->tree, integers->field, slots[i]);
}

int pfs_scan_integers(struct pfs_tree *tree, int64_t *out, enum pfs_field field,
		      const uint32_t *slots, size_t n)
{
	struct integers integers = {.tree = tree, .slots = slots, .field = field};

	integers.out = out;
	if (pfs_field_is_bytes(field) || field == PFS_FIELD_OF_NONE)
		return -EINVAL;
	if (field == PFS_FIELD_SUBTREE_COUNT && n == 1 && *slots == tree->image.root) {
		*out = tree->image.nodes; /* needs no totals */
		return 0;
	}
	if (pfs_field_is_total(field))
		PFS_TRY(pfs_totals_prepare(tree, NULL, NULL));
	pfs_scan_run(tree, n, GRAIN, gather_integers, &integers);
	return 0;
}

/* ---- bytes ---- */

const char *pfs_scan_extension(const char *name, size_t *len)
{
	const char *dot = *len > 1 ? memrchr(name + 1, '.', *len - 1) : NULL;

	if (!dot)
		return NULL;
	*len -= (size_t)(dot + 1 - name);
	return dot + 1;
}

static const char *target_of(const struct pfs_image *image, size_t *len, uint32_t slot)
{
	struct pfs_rare_values values = {.target = NULL};

	if (!S_ISLNK(image->mode[slot]))
		return NULL;
	*len = pfs_image_rare(image, &values, slot) && values.target ? values.target_len : 0;
	return *len ? values.target : "";
}

const char *pfs_scan_text(const struct pfs_image *image, size_t *len, enum pfs_field field,
			  uint32_t slot)
{
	const char *name;

	switch (pfs_fields[field].source) {
	case PFS_SOURCE_NAME:
		return pfs_names_get(image->names, image->name[slot], len);
	case PFS_SOURCE_EXT:
		name = pfs_names_get(image->names, image->name[slot], len);
		return pfs_scan_extension(name, len);
	case PFS_SOURCE_TARGET:
		return target_of(image, len, slot);
	case PFS_SOURCE_NONE:
	case PFS_SOURCE_U16:
	case PFS_SOURCE_U32:
	case PFS_SOURCE_I64:
	case PFS_SOURCE_TIME:
	case PFS_SOURCE_INO:
	case PFS_SOURCE_TYPE:
	case PFS_SOURCE_PARENT:
	case PFS_SOURCE_DEPTH:
	case PFS_SOURCE_LINK:
	case PFS_SOURCE_LINKS:
	case PFS_SOURCE_RDEV:
	case PFS_SOURCE_COMPARED:
	case PFS_SOURCE_READDIR:
	case PFS_SOURCE_TOTAL:
	case PFS_SOURCE_TOTAL_TIME:
	case PFS_SOURCE_PATH:
	case PFS_SOURCE_PREORDER:
		break;
	}
	return NULL; /* it has no bytes, or needs a trail (pfs_scan_path) */
}

/* The path's length; the trail is that of the directory that the node lies in. */
static int path_len(struct pfs_trail *trail, const struct pfs_image *image, size_t *len,
		    uint32_t slot, bool keep_bytes)
{
	size_t name_len;

	*len = 1;
	if (slot == image->root)
		return 0;
	PFS_TRY(pfs_trail_to(trail, image, image->parent[slot], keep_bytes));
	(void)pfs_names_get(image->names, image->name[slot], &name_len);
	*len = trail->end[trail->n - 1] + 1 + name_len;
	return 0;
}

/* Puts the path where there is room for it. */
static void put_path(const struct pfs_trail *trail, const struct pfs_image *image, char *out,
		     uint32_t slot)
{
	size_t above, len;
	const char *name;

	*out = '/';
	if (slot == image->root)
		return;
	above = trail->end[trail->n - 1];
	if (above)
		memcpy(out, trail->bytes, above);
	out[above] = '/';
	name = pfs_names_get(image->names, image->name[slot], &len);
	memcpy(out + above + 1, name, len);
}

int pfs_scan_path(struct pfs_scan_worker *worker, const struct pfs_image *image, const char **path,
		  size_t *len, uint32_t slot)
{
	PFS_TRY(path_len(&worker->trail, image, len, slot, true));
	PFS_TRY(pfs_grow(&worker->path, &worker->path_capacity, *len + 1, 1));
	put_path(&worker->trail, image, worker->path, slot);
	worker->path[*len] = '\0';
	*path = worker->path;
	return 0;
}

static void put_preorder(const struct pfs_trail *trail, const struct pfs_image *image, char *out,
			 size_t len, uint32_t slot)
{
	put_path(trail, image, out, slot);
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(out[i] == '/' ? 0 : out[i]);
}

/* First all lengths, by offset; then, there being room, all bytes. */
struct texts {
	const struct pfs_image *image;
	uint64_t *offset;
	uint8_t *is_none;
	char *bytes;
	const uint32_t *slots;
	enum pfs_field field;
	atomic_int error;
};

static void put_made(const struct texts *texts, const struct pfs_trail *trail, char *out,
		     size_t len, uint32_t slot)
{
	if (texts->field == PFS_FIELD_PATH)
		put_path(trail, texts->image, out, slot);
	else
		put_preorder(trail, texts->image, out, len, slot);
}

static void measure(void *context, size_t from, size_t to)
{
	struct texts *texts = context;
	struct pfs_trail trail = {0};
	int error = 0;

	for (size_t i = from; i < to && !error; i++) {
		bool is_none = false;
		size_t len = 0;

		if (pfs_field_is_path(texts->field))
			error = path_len(&trail, texts->image, &len, texts->slots[i], false);
		else
			is_none = !pfs_scan_text(texts->image, &len, texts->field,
						 texts->slots[i]);
		texts->offset[i] = is_none ? 0 : len;
		if (texts->is_none)
			texts->is_none[i] = is_none;
	}
	if (error)
		atomic_store(&texts->error, error);
	pfs_trail_finish(&trail);
}

static void put(void *context, size_t from, size_t to)
{
	struct texts *texts = context;
	struct pfs_trail trail = {0};
	int error = 0;

	for (size_t i = from; i < to && !error; i++) {
		char *out = texts->bytes + texts->offset[i];
		uint32_t slot = texts->slots[i];
		size_t len;

		if (pfs_field_is_path(texts->field)) {
			error = path_len(&trail, texts->image, &len, slot, true);
			if (!error)
				put_made(texts, &trail, out, len, slot);
		} else {
			const char *text = pfs_scan_text(texts->image, &len, texts->field, slot);

			if (text && len)
				memcpy(out, text, len);
		}
	}
	if (error)
		atomic_store(&texts->error, error);
	pfs_trail_finish(&trail);
}

/* Has what paths of scattered nodes are made of come from memory at once, level by level, rather
 * than one after the other as it is met. */
static void fetch_ahead(const struct texts *texts, size_t from, size_t to)
{
	const struct pfs_image *image = texts->image;
	uint32_t at[AHEAD];
	size_t n = to - from;

	if (!pfs_field_is_path(texts->field) ||
	    texts->slots[to - 1] - texts->slots[from] < SCATTERED * n)
		return;
	memcpy(at, texts->slots + from, n * sizeof(*at));
	for (size_t i = 0; i < n; i++) {
		__builtin_prefetch(&image->name[at[i]]);
		__builtin_prefetch(&image->parent[at[i]]);
	}
	while (n > 0) {
		size_t kept = 0;

		for (size_t i = 0; i < n; i++) {
			uint32_t parent = image->parent[at[i]];

			pfs_names_prefetch(image->names, image->name[at[i]]);
			if (parent == PFS_NO_SLOT || (kept && at[kept - 1] == parent))
				continue;
			__builtin_prefetch(&image->name[parent]);
			__builtin_prefetch(&image->parent[parent]);
			at[kept++] = parent;
		}
		n = kept;
	}
}

/* The next one, where the one before ends. */
static int put_next(struct texts *texts, struct pfs_trail *trail, char **bytes, size_t *capacity,
		    size_t i)
{
	bool is_path = pfs_field_is_path(texts->field);
	uint32_t slot = texts->slots[i];
	uint64_t at = texts->offset[i];
	const char *text = NULL;
	size_t len = 0;

	if (is_path)
		PFS_TRY(path_len(trail, texts->image, &len, slot, true));
	else
		text = pfs_scan_text(texts->image, &len, texts->field, slot);
	len = is_path || text ? len : 0;
	PFS_TRY(pfs_grow(bytes, capacity, PFS_MAX(at + len + 1, BYTES), 1));
	if (is_path)
		put_made(texts, trail, *bytes + at, len, slot);
	else if (text)
		memcpy(*bytes + at, text, len);
	if (texts->is_none)
		texts->is_none[i] = !is_path && !text;
	texts->offset[i + 1] = at + len;
	return 0;
}

/* Few of them at once, by one thread. */
static int put_few(struct texts *texts, char **bytes, size_t *capacity, size_t n)
{
	struct pfs_trail trail = {0};
	int error = 0;

	texts->offset[0] = 0;
	for (size_t i = 0; i < n && !error; i++) {
		if (i % AHEAD == 0)
			fetch_ahead(texts, i, PFS_MIN(i + AHEAD, n));
		error = put_next(texts, &trail, bytes, capacity, i);
	}
	pfs_trail_finish(&trail);
	return error;
}

/* NOLINTNEXTLINE(readability-function-size): a column is its four arrays */
int pfs_scan_bytes(struct pfs_tree *tree, char **bytes, size_t *capacity, uint64_t *offset,
		   uint8_t *is_none, enum pfs_field field, const uint32_t *slots, size_t n)
{
	struct texts texts = {
		.image = &tree->image,
		.offset = offset,
		.slots = slots,
		.field = field,
	};
	uint64_t end = 0;

	texts.is_none = is_none;
	if (!pfs_field_is_bytes(field))
		return -EINVAL;
	if (n <= GRAIN)
		return put_few(&texts, bytes, capacity, n);
	pfs_scan_run(tree, n, GRAIN, measure, &texts);
	if (atomic_load(&texts.error))
		return atomic_load(&texts.error);
	for (size_t i = 0; i < n; i++) {
		uint64_t len = offset[i];

		offset[i] = end;
		end += len;
	}
	offset[n] = end;
	PFS_TRY(pfs_grow(bytes, capacity, end + 1, 1));
	texts.bytes = *bytes;
	pfs_scan_run(tree, n, GRAIN, put, &texts);
	return atomic_load(&texts.error);
}
