/* SPDX-License-Identifier: MIT */
#include "fs/nodes/fields.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "fs/image/image.h"

#define ORDERED	  true
#define UNORDERED false
#define INDEXED	  true
#define UNINDEXED false
#define OWN	  true
#define ALIKE	  false

#define MADE(from) .source = PFS_SOURCE_##from
#define ARRAY(from, array)                                                                         \
	.is_array = true, .source = PFS_SOURCE_##from, .place = offsetof(struct pfs_image, array)
#define TOTAL(from, total) .source = PFS_SOURCE_##from, .place = offsetof(struct pfs_totals, total)

const struct pfs_field_info pfs_fields[PFS_FIELD_COUNT] = {
/* The source is passed on as it is written: it names two members. */
#define FIELD(id, column, type, of_kind, from, columns, operators, different, order, index, viewers,  \
	      setter)                                                                              \
	[PFS_FIELD_##id] = {                                                                       \
		.name = (column),                                                                  \
		.kind = PFS_NODE_##of_kind,                                                        \
		from,                                                                              \
		.made_of = (columns),                                                              \
		.operand = PFS_OPERAND_##operators,                                                \
		.values = PFS_VALUES_##different,                                                  \
		.is_ordered = (order),                                                             \
		.is_indexed = (index),                                                             \
		.is_viewers = (viewers),                                                           \
		.index_name = "index of " column,                                                  \
	},
	PFS_FIELDS(FIELD, PFS_NO_ALIAS)
#undef FIELD
};

/* What the store keeps of a node is a column of `nodes`, of the same name. */
#define NUMBER(id, name, ...)                                                                      \
	_Static_assert(PFS_FIELD_##id > PFS_FIELD_OF_NONE, #name ": fields.h has no line for it");
PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER

/* An element of an array is as large as its source says. */
#define SIZE_OF_U16  sizeof(uint16_t)
#define SIZE_OF_U32  sizeof(uint32_t)
#define SIZE_OF_I64  sizeof(int64_t)
#define SIZE_OF_TIME sizeof(int64_t)
#define SIZE_OF_INO  sizeof(uint64_t)
#define SIZE_OF_TYPE sizeof(uint16_t)
#undef MADE
#undef ARRAY
#undef TOTAL
#define MADE(from) true
#define ARRAY(from, array) sizeof(*((struct pfs_image *)0)->array) == SIZE_OF_##from
#define TOTAL(from, total) sizeof(((struct pfs_totals *)0)->total) == sizeof(uint64_t)
/* Names are the only bytes that have keys of an index (fs/nodes/index_impl.h). */
#define FIELD(id, column, type, of_kind, from, columns, operators, different, order, index, viewers,  \
	      setter)                                                                              \
	_Static_assert((from), column ": its elements have another size");                         \
	_Static_assert(!(index) || PFS_NODE_##of_kind != PFS_NODE_BYTES ||                         \
			       PFS_FIELD_##id == PFS_FIELD_NAME,                                   \
		       column ": such bytes cannot have an index");
PFS_FIELDS(FIELD, PFS_NO_ALIAS)
#undef FIELD

const void *pfs_field_array(const struct pfs_image *image, enum pfs_field field)
{
	const void *array;

	if (!pfs_fields[field].is_array)
		return NULL;
	memcpy(&array, (const char *)image + pfs_fields[field].place, sizeof(array));
	return array;
}

enum pfs_field pfs_field_named(const char *name, size_t len)
{
	for (enum pfs_field field = 1; field < PFS_FIELD_COUNT; field++)
		if (strncasecmp(pfs_fields[field].name, name, len) == 0 &&
		    !pfs_fields[field].name[len])
			return field;
	return PFS_FIELD_OF_NONE;
}
