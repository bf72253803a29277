/* SPDX-License-Identifier: MIT */
#include "fs/attr/attrset.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/order.h"
#include "fs/tree/tree_impl.h"

/* The head of an attribute in a set; the name and the text follow. It is unaligned. */
struct head {
	uint32_t text_len;
	uint16_t name_len;
	uint8_t type;
};

static size_t size_of(const struct pfs_attr *attr)
{
	return sizeof(struct head) + attr->name_len + attr->text_len;
}

bool pfs_attrset_next(const struct pfs_value *set, struct pfs_attr *attr, size_t *at)
{
	struct head head;

	if (!set || *at >= set->size)
		return false;
	memcpy(&head, set->data + *at, sizeof(head));
	attr->name = (const char *)set->data + *at + sizeof(head);
	attr->name_len = head.name_len;
	attr->text = attr->name + head.name_len;
	attr->text_len = head.text_len;
	attr->type = (enum pfs_attr_type)head.type;
	*at += size_of(attr);
	return true;
}

static int compare(const struct pfs_attr *attr, const char *name, size_t name_len)
{
	return pfs_compare_bytes(attr->name, attr->name_len, name, name_len);
}

bool pfs_attrset_find(const struct pfs_value *set, struct pfs_attr *attr, const char *name,
		      size_t name_len)
{
	size_t at = 0;

	while (pfs_attrset_next(set, attr, &at))
		if (!compare(attr, name, name_len))
			return true;
	return false;
}

static uint8_t *put(uint8_t *out, const struct pfs_attr *attr)
{
	struct head head = {.text_len = attr->text_len,
			    .name_len = attr->name_len,
			    .type = (uint8_t)attr->type};

	memcpy(out, &head, sizeof(head));
	out += sizeof(head);
	memcpy(out, attr->name, attr->name_len);
	out += attr->name_len;
	if (attr->text_len)
		memcpy(out, attr->text, attr->text_len);
	return out + attr->text_len;
}

int pfs_attrset_change(struct pfs_value **out, const struct pfs_value *set,
		       const struct pfs_attr *attr)
{
	size_t size = (set ? set->size : 0) + (attr->text ? size_of(attr) : 0), at = 0;
	bool is_put = !attr->text;
	struct pfs_attr old;
	uint8_t *end;

	if (pfs_attrset_find(set, &old, attr->name, attr->name_len))
		size -= size_of(&old);
	*out = NULL;
	if (!size)
		return 0;
	*out = pfs_value_create(size);
	if (!*out)
		return -ENOMEM;
	end = (*out)->data;
	while (pfs_attrset_next(set, &old, &at)) {
		int order = compare(&old, attr->name, attr->name_len);

		if (order >= 0 && !is_put) {
			end = put(end, attr);
			is_put = true;
		}
		if (order)
			end = put(end, &old);
	}
	if (!is_put)
		(void)put(end, attr);
	return 0;
}

/* ---- the store ---- */

struct loading {
	uint8_t *data;
	size_t size, capacity;
};

static int load_one(void *arg, const struct pfs_attr_record *record)
{
	struct loading *loading = arg;
	struct pfs_attr attr = {
		.name = record->name, .type = record->type, .name_len = (uint16_t)record->name_len};
	char number[PFS_NUMBER_SIZE];
	int error;

	attr.text = number;
	switch (record->type) {
	case PFS_ATTR_INTEGER:
		attr.text_len = (uint32_t)pfs_print_integer(number, record->integer);
		break;
	case PFS_ATTR_REAL: /* old stores have -0.0, which would come back as a text */
		attr.text_len = (uint32_t)pfs_print_real(number, record->real + 0.0);
		break;
	case PFS_ATTR_TEXT:
		attr.text = record->text;
		attr.text_len = (uint32_t)record->text_len;
		break;
	}
	error = pfs_grow(&loading->data, &loading->capacity, loading->size + size_of(&attr), 1);
	if (error)
		return error;
	(void)put(loading->data + loading->size, &attr);
	loading->size += size_of(&attr);
	return 0;
}

int pfs_attrset_load(struct pfs_tree *tree, struct pfs_value **out, uint64_t prime)
{
	struct loading loading = {0};
	int error = pfs_store_scan_attrs(tree->store, prime, load_one, &loading);

	*out = NULL;
	if (!error && loading.size) {
		*out = pfs_value_create(loading.size);
		if (*out)
			memcpy((*out)->data, loading.data, loading.size);
		else
			error = -ENOMEM;
	}
	free(loading.data);
	return error;
}

static int store_one(struct pfs_store *store, uint64_t prime, const struct pfs_attr *attr)
{
	struct pfs_attr_record record = {
		.name = attr->name, .name_len = attr->name_len, .type = attr->type};

	/* A number that does not print as this text would come back as another text. */
	if ((attr->type == PFS_ATTR_INTEGER &&
	     !pfs_is_integer(&record.integer, attr->text, attr->text_len)) ||
	    (attr->type == PFS_ATTR_REAL && !pfs_is_real(&record.real, attr->text, attr->text_len)))
		record.type = PFS_ATTR_TEXT;
	record.text = attr->text;
	record.text_len = attr->text_len;
	return pfs_store_put_attr(store, prime, &record);
}

int pfs_attrset_store(struct pfs_tree *tree, uint64_t prime, const struct pfs_value *set)
{
	struct pfs_attr attr;
	size_t at = 0;
	int error = pfs_store_remove_attr(tree->store, prime, NULL, 0);

	while (!error && pfs_attrset_next(set, &attr, &at))
		error = store_one(tree->store, prime, &attr);
	return error;
}
