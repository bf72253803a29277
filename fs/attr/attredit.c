/* SPDX-License-Identifier: MIT */
#include "fs/attr/attredit.h"

#include <string.h>

#include "base/cleanup.h"
#include "fs/attr/xattr_impl.h"
#include "fs/content/register.h"
#include "fs/content/row.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

int pfs_attr_edit_begin(struct pfs_tree *tree, struct pfs_attr_edit *edit, uint64_t ino)
{
	*edit = (struct pfs_attr_edit){.tree = tree, .ino = ino, .in_use = true};
	if (!ino)
		return 0;
	PFS_TRY(pfs_attr_allowed(tree, ino));
	PFS_TRY(pfs_attr_base(tree, &edit->before, &edit->flagged, ino, PFS_RECORDS_HOLD));
	edit->is_held = edit->flagged;
	edit->after = pfs_value_ref(edit->before);
	return 0;
}

/* Returns true if the attribute cannot be set, since it is computed. A node that is being made has
 * no register yet, so any register counts. */
static bool is_computed(struct pfs_tree *tree, const struct pfs_attr_edit *edit, const char *name,
			size_t name_len)
{
	return edit->ino ? pfs_row_is_computed(tree, edit->ino, name, name_len)
			 : pfs_registers_computing(tree, name, name_len) != NULL;
}

int pfs_attr_edit_set(struct pfs_tree *tree, struct pfs_attr_edit *edit, const char *name,
		      size_t name_len, const char *value, size_t size)
{
	struct pfs_attr attr = {
		.name = name,
		.name_len = (uint16_t)name_len,
		.text = value,
		.text_len = (uint32_t)size,
	}, old;
	bool found = pfs_attrset_find(edit->after, &old, name, name_len);
	struct pfs_value *after;
	int error;

	if (pfs_attr_is_ours(name, name_len))
		return -EPERM;
	if (is_computed(tree, edit, name, name_len))
		return -ENOTSUP;
	if (size > PFS_ATTR_VALUE_MAX)
		return -E2BIG;
	if (value ? found && old.text_len == size && memcmp(old.text, value, size) == 0 : !found)
		return 0;
	if (value) {
		attr.type = pfs_attr_type_of(tree->attrs, &attr);
		pfs_parts_lock(tree);
		error = pfs_attr_name_add(&tree->attrs->names, name, name_len, PFS_ATTR_TEXT);
		pfs_parts_unlock(tree);
		PFS_TRY(error);
	}
	PFS_TRY(pfs_attrset_change(&after, edit->after, &attr));
	pfs_value_unref(edit->after);
	edit->after = after;
	return !value || pfs_attr_set_fits(after) ? 0 : -ENOSPC;
}

int pfs_attr_edit_check(struct pfs_tree *tree, struct pfs_attr_edit *edit)
{
	int error;

	if (!edit->in_use || edit->after == edit->before)
		return 0;
	error = pfs_attr_record(tree, &edit->record, edit->ino, edit->before, edit->flagged);
	edit->is_outdated = error == -EAGAIN;
	return error;
}

void pfs_attr_edit_apply(struct pfs_tree *tree, struct pfs_attr_edit *edit, uint32_t slot,
			 struct pfs_time now)
{
	if (!edit->in_use || edit->after == edit->before)
		return;
	pfs_attr_put(tree, edit->record, slot, edit->ino, PFS_TAKE(edit->after),
		     pfs_stamp_ctime(tree, slot, now));
}

void pfs_attr_edit_finish(struct pfs_attr_edit *edit)
{
	if (edit->is_held) {
		pfs_parts_lock(edit->tree);
		pfs_records_release(edit->tree->attrs->sets, edit->ino);
		pfs_parts_unlock(edit->tree);
	}
	pfs_value_unref(edit->before);
	pfs_value_unref(edit->after);
	*edit = (struct pfs_attr_edit){.in_use = false};
}
