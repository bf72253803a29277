/* SPDX-License-Identifier: MIT */
#include "tools/import/import_attrs.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/search.h"

int pfs_attr_list_add(struct pfs_attr_list *list, uint32_t group, const void *name, size_t name_len,
		      const void *value, size_t value_len)
{
	const struct pfs_attr_item item = {
		.offset = list->n_bytes,
		.group = group,
		.name_len = (uint8_t)name_len,
		.value_len = (uint32_t)value_len,
	};
	size_t size = name_len + value_len;

	if (name_len == 0 || name_len > PFS_ATTR_NAME_MAX || memchr(name, 0, name_len) ||
	    value_len > PFS_ATTR_VALUE_MAX)
		return -EINVAL;
	PFS_TRY(pfs_grow(&list->bytes, &list->bytes_capacity, list->n_bytes + size, 1));
	PFS_TRY(pfs_grow(&list->items, &list->capacity, list->n + 1, sizeof(*list->items)));
	list->items[list->n++] = item;
	(void)memcpy(list->bytes + list->n_bytes, name, name_len);
	if (value_len)
		(void)memcpy(list->bytes + list->n_bytes + name_len, value, value_len);
	list->n_bytes += size;
	return 0;
}

/* Compares so that those of a group stay in the order of adding. */
static int compare(const void *a, const void *b)
{
	const struct pfs_attr_item *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

int pfs_attr_list_put(struct pfs_attr_list *list, struct pfs_store *store, uint32_t group,
		      uint64_t prime)
{
	size_t i;

	if (!list->sorted && list->n)
		qsort(list->items, list->n, sizeof(*list->items), compare);
	list->sorted = true;
	i = PFS_SEARCH(at, 0, list->n, list->items[at].group < group);
	for (; i < list->n && list->items[i].group == group; i++) {
		const struct pfs_attr_item *item = &list->items[i];
		const char *bytes = list->bytes + item->offset;
		const struct pfs_attr_record attr = {
			.name = bytes,
			.name_len = item->name_len,
			.type = PFS_ATTR_TEXT,
			.text = bytes + item->name_len,
			.text_len = item->value_len,
		};

		PFS_TRY(pfs_store_put_attr(store, prime, &attr));
	}
	return 0;
}

void pfs_attr_list_free(struct pfs_attr_list *list)
{
	free(list->items);
	free(list->bytes);
	*list = (struct pfs_attr_list){0};
}
