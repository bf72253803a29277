/* SPDX-License-Identifier: MIT */
/* The attributes that a set changes. */
#include "fs/change/change_impl.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/attr/attredit.h"
#include "fs/attr/attrvalue.h"
#include "fs/attr/xattr.h"
#include "fs/journal/journal.h"

static int edit_attributes(struct pfs_changing *changing, size_t row,
			   const struct pfs_attr_change **attr)
{
	const struct pfs_change_set *changes = changing->changes;
	const struct pfs_change *change = &changes->list[row];
	const struct pfs_change_basis *basis = changing->basis;
	struct pfs_attr_edit *edit = &changing->edits[row];

	if (change->n_attrs)
		PFS_TRY(pfs_attr_edit_begin(changing->tree, edit,
					    changes->kind == PFS_CHANGE_CREATE ? 0 : change->ino));
	for (size_t i = 0; i < change->n_attrs; i++) {
		const struct pfs_attr_change *one = *attr = &changes->attrs[change->first_attr + i];

		const char *name = pfs_change_text(changing, &one->name);
		bool is_theirs = false;

		if (basis->is_last && basis->frozen)
			PFS_TRY(pfs_attrs_frozen_differ(basis->frozen, changing->tree, &is_theirs,
							change->ino, edit->before, name,
							one->name.len));
		if (!is_theirs)
			PFS_TRY(pfs_attr_edit_set(
				changing->tree, edit, name, one->name.len,
				one->removed ? NULL : pfs_change_text(changing, &one->value),
				one->value.len));
	}
	return 0;
}

static int prepare_edit(struct pfs_changing *changing, size_t row)
{
	const struct pfs_attr_change *attr = NULL;
	int error = edit_attributes(changing, row, &attr);

	if (error == -ENOTSUP && attr)
		return pfs_change_fail_path(
			changing, -EINVAL, pfs_change_text(changing, &attr->name), attr->name.len,
			"it follows from where the node is: change its name, parent or path");
	if (error == -EPERM)
		return pfs_change_fail_path(changing, error, "an attribute", 12,
					    "only files and directories have any");
	/* the node is gone, which is found out later */
	if (error == -ESTALE && changing->basis->frozen) {
		pfs_attr_edit_finish(&changing->edits[row]);
		return 0;
	}
	return error == -ESTALE ? -EAGAIN : error;
}

int pfs_change_prepare_edits(struct pfs_changing *changing)
{
	const struct pfs_change_set *changes = changing->changes;

	if (!changes->n_attrs)
		return 0;
	changing->edits = calloc(changes->n, sizeof(*changing->edits));
	if (!changing->edits)
		return -ENOMEM;
	changing->n_edits = changes->n;
	for (size_t row = 0; row < changes->n; row++)
		PFS_TRY(prepare_edit(changing, row));
	return 0;
}

int pfs_change_renew_edits(struct pfs_changing *changing)
{
	for (size_t row = 0; row < changing->changes->n; row++) {
		if (!changing->edits[row].is_outdated)
			continue;
		pfs_attr_edit_finish(&changing->edits[row]);
		PFS_TRY(prepare_edit(changing, row));
	}
	return 0;
}

int pfs_change_check_edits(struct pfs_changing *changing)
{
	for (size_t row = 0; changing->edits && row < changing->changes->n; row++) {
		int error = pfs_attr_edit_check(changing->tree, &changing->edits[row]);

		changing->has_outdated |= changing->edits[row].is_outdated;
		if (error && error != -EAGAIN)
			return error;
	}
	return changing->has_outdated ? -EAGAIN : 0;
}

void pfs_change_apply_edits(struct pfs_changing *changing)
{
	for (size_t row = 0; changing->edits && row < changing->changes->n; row++)
		pfs_attr_edit_apply(changing->tree, &changing->edits[row], changing->slots[row],
				    changing->now);
}

static int measure_removed(struct pfs_changing *changing)
{
	for (size_t row = 0; row < changing->changes->n; row++) {
		struct pfs_value *set PFS_UNREF = NULL;
		int error = pfs_attr_set_of(changing->tree, &set, changing->changes->list[row].ino);

		if (error && error != -ESTALE) /* if the node is gone, that is found out later */
			return error;
		changing->former += set ? set->size : 0;
	}
	return 0;
}

int pfs_change_measure(struct pfs_changing *changing)
{
	if (!pfs_journal_former(changing->tree, 1))
		return 0;
	if (changing->changes->kind == PFS_CHANGE_REMOVE)
		return measure_removed(changing);
	for (size_t row = 0; row < changing->n_edits; row++) {
		const struct pfs_attr_edit *edit = &changing->edits[row];

		if (edit->before && edit->after != edit->before)
			changing->former += edit->before->size;
	}
	return 0;
}

void pfs_change_finish_edits(struct pfs_changing *changing)
{
	for (size_t row = 0; row < changing->n_edits; row++)
		pfs_attr_edit_finish(&changing->edits[row]);
	free(changing->edits);
}
