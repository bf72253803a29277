/* SPDX-License-Identifier: MIT */
#include "fs/attr/attrvalue.h"

#include <string.h>

#include "base/number.h"
#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

void pfs_attr_value_in(struct pfs_attr_value *out, const struct pfs_value *set, const char *name,
		       size_t name_len)
{
	struct pfs_attr attr;

	*out = (struct pfs_attr_value){.is_set = pfs_attrset_find(set, &attr, name, name_len)};
	if (!out->is_set)
		return;
	if (attr.type == PFS_ATTR_INTEGER &&
	    pfs_is_integer(&out->integer, attr.text, attr.text_len)) {
		out->type = PFS_ATTR_INTEGER;
	} else if (attr.type == PFS_ATTR_REAL &&
		   pfs_is_real(&out->real, attr.text, attr.text_len)) {
		out->type = PFS_ATTR_REAL;
	} else {
		out->type = PFS_ATTR_TEXT;
		out->text = attr.text;
		out->text_len = attr.text_len;
	}
}

static bool is_equal(const struct pfs_attr_value *a, const struct pfs_attr_value *b)
{
	if (!a->is_set || !b->is_set)
		return a->is_set == b->is_set;
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case PFS_ATTR_INTEGER:
		return a->integer == b->integer;
	case PFS_ATTR_REAL:
		return a->real == b->real;
	case PFS_ATTR_TEXT:
		break;
	}
	return a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0;
}

int pfs_attrs_frozen_differ(struct pfs_tree *frozen, struct pfs_tree *live, bool *differ,
			    uint64_t prime, const struct pfs_value *set, const char *name,
			    size_t name_len)
{
	struct pfs_attr_value was, now;
	struct pfs_attr_reader *reader;
	uint32_t slot;
	int error = pfs_attr_reader_open(&reader, frozen, name, name_len);

	*differ = false;
	if (error)
		return error == -EOPNOTSUPP ? 0 : error;
	pfs_hold_read(live, __func__);
	slot = pfs_image_slot(live, prime);
	pfs_hold_end(live);
	if (slot < frozen->image.end) { /* else the node is gone, which is found out later */
		error = pfs_attr_read(reader, &was, &slot, 1);
		pfs_attr_value_in(&now, set, name, name_len);
		*differ = !error && !is_equal(&was, &now);
	}
	pfs_attr_reader_close(reader);
	return error;
}
