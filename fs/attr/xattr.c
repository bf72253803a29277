/* SPDX-License-Identifier: MIT */
/* Extended attributes: user.* as the store has them, and a few that are computed. */
#include "fs/attr/xattr.h"

#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "fs/attr/xattr_impl.h"
#include "fs/content/row.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

#define PREFIX	    "user."
#define PREFIX_LEN  (sizeof(PREFIX) - 1)
#define OURS	    "primefs." /* names behind the prefix that only this program sets */
#define SUBTREE	    OURS "subtree_"
#define HASH	    OURS "hash"
#define SAVED	    OURS "query."
#define NAME_LIMIT  (XATTR_NAME_MAX - PREFIX_LEN)
#define LIST_LIMIT  ((size_t)XATTR_LIST_MAX)

/* ---- names ---- */

/* Gets the name behind "user.". -EOPNOTSUPP: it is in another namespace; -EINVAL; -ERANGE. */
static int parse_name(const char **out, size_t *len, const char *name)
{
	if (strncmp(name, PREFIX, PREFIX_LEN) != 0)
		return -EOPNOTSUPP;
	*out = name + PREFIX_LEN;
	*len = strlen(*out);
	if (!*len)
		return -EINVAL;
	return *len > NAME_LIMIT ? -ERANGE : 0;
}

bool pfs_attr_is_ours(const char *name, size_t len)
{
	return len >= sizeof(OURS) - 1 && memcmp(name, OURS, sizeof(OURS) - 1) == 0;
}

/* ---- reading ---- */

static ssize_t give(void *value, size_t size, const void *text, size_t len)
{
	if (!size)
		return (ssize_t)len;
	if (len > size)
		return -ERANGE;
	if (len)
		memcpy(value, text, len);
	return (ssize_t)len;
}

/* Gets the text of a total. -ENODATA: there is no such total. */
static int total_text(struct pfs_tree *tree, char number[PFS_NUMBER_SIZE], uint64_t ino,
		      const char *which)
{
	struct pfs_totals totals = {0};
	const uint64_t *value = NULL;

	if (!strcmp(which, "count"))
		value = &totals.count;
	else if (!strcmp(which, "size"))
		value = &totals.size;
	else if (!strcmp(which, "blocks"))
		value = &totals.blocks;
	else if (strcmp(which, "mtime") != 0)
		return -ENODATA;
	PFS_TRY(pfs_tree_totals(tree, &totals, ino));
	if (value)
		(void)snprintf(number, PFS_NUMBER_SIZE, "%llu", (unsigned long long)*value);
	else
		(void)pfs_print_integer(number, totals.mtime);
	return 0;
}

static ssize_t give_ours(struct pfs_tree *tree, void *value, size_t size, uint64_t ino,
			 const char *name)
{
	char number[PFS_NUMBER_SIZE];
	char *text PFS_FREE = NULL;
	size_t len, row_len = SIZE_MAX;
	uint8_t flags;
	mode_t mode;
	int error = pfs_attr_look(tree, &flags, &mode, ino);

	if (error)
		return error;
	if (!strncmp(name, SUBTREE, sizeof(SUBTREE) - 1)) {
		error = total_text(tree, number, ino, name + sizeof(SUBTREE) - 1);
		return error ? error : give(value, size, number, strlen(number));
	}
	if (!strcmp(name, OURS "prime"))
		return give(
			value, size, number,
			(size_t)snprintf(number, sizeof(number), "%llu", (unsigned long long)ino));
	if (!strcmp(name, OURS "code"))
		error = pfs_tree_code(tree, &text, ino);
	else if (!strcmp(name, OURS "ancestors"))
		error = pfs_tree_ancestors(tree, &text, ino);
	else if (!strcmp(name, OURS "path"))
		error = pfs_tree_path(tree, &text, ino);
	else if (!strcmp(name, OURS "row"))
		error = pfs_row_text(tree, &text, &row_len, ino);
	else
		error = -ENODATA;
	if (error)
		return error;
	/* Otherwise the kernel would return ERANGE to a caller who asked for the length first. */
	len = row_len == SIZE_MAX ? strlen(text) : row_len;
	return len > XATTR_SIZE_MAX ? -E2BIG : give(value, size, text, len);
}

static ssize_t give_computed(struct pfs_tree *tree, void *value, size_t size, uint64_t ino,
			     const char *name, size_t name_len)
{
	char *text PFS_FREE = NULL;
	size_t len;
	int error = pfs_row_computed(tree, &text, &len, ino, name, name_len);

	return error ? error : give(value, size, text, len);
}

ssize_t pfs_tree_getxattr(struct pfs_tree *tree, void *value, size_t size, uint64_t ino,
			  const char *name)
{
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_attr attr;
	size_t len;
	int error;

	error = parse_name(&name, &len, name);
	if (error)
		return error;
	if (pfs_attr_is_ours(name, len))
		return give_ours(tree, value, size, ino, name);
	if (pfs_row_is_computed(tree, ino, name, len))
		return give_computed(tree, value, size, ino, name, len);
	error = pfs_attr_set_of(tree, &set, ino);
	if (error)
		return error;
	if (!pfs_attrset_find(set, &attr, name, len))
		return -ENODATA;
	return give(value, size, attr.text, attr.text_len);
}

/* Names that no system call could ask for are not listed. */
static bool is_listed(const struct pfs_attr *attr)
{
	return attr->name_len && attr->name_len <= NAME_LIMIT &&
	       !memchr(attr->name, '\0', attr->name_len) &&
	       !pfs_attr_is_ours(attr->name, attr->name_len);
}

static size_t list_size(const struct pfs_value *set)
{
	struct pfs_attr attr;
	size_t at = 0, size = 0;

	while (pfs_attrset_next(set, &attr, &at))
		if (is_listed(&attr))
			size += PREFIX_LEN + attr.name_len + 1;
	return size;
}

ssize_t pfs_tree_listxattr(struct pfs_tree *tree, char *list, size_t size, uint64_t ino)
{
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_attr attr;
	size_t at = 0, needed;
	int error;

	error = pfs_attr_set_of(tree, &set, ino);
	if (error)
		return error;
	needed = list_size(set);
	if (needed > LIST_LIMIT)
		return -E2BIG;
	if (!size)
		return (ssize_t)needed;
	if (needed > size)
		return -ERANGE;
	while (pfs_attrset_next(set, &attr, &at)) {
		if (!is_listed(&attr))
			continue;
		memcpy(list, PREFIX, PREFIX_LEN);
		memcpy(list + PREFIX_LEN, attr.name, attr.name_len);
		list[PREFIX_LEN + attr.name_len] = '\0';
		list += PREFIX_LEN + attr.name_len + 1;
	}
	return (ssize_t)needed;
}

/* ---- changing ---- */

bool pfs_attr_set_fits(const struct pfs_value *set)
{
	return set->size <= PFS_ATTR_SET_LIMIT && list_size(set) <= LIST_LIMIT;
}

int pfs_attr_allowed(struct pfs_tree *tree, uint64_t ino)
{
	uint8_t flags;
	mode_t mode;

	PFS_TRY(pfs_attr_look(tree, &flags, &mode, ino));
	return S_ISREG(mode) || S_ISDIR(mode) ? 0 : -EPERM;
}

int pfs_attr_base(struct pfs_tree *tree, struct pfs_value **out, bool *flagged, uint64_t ino,
		  enum pfs_records_for purpose)
{
	struct pfs_record *record;
	uint8_t node_flags;
	mode_t mode;

	*out = NULL;
	PFS_TRY(pfs_attr_look(tree, &node_flags, &mode, ino));
	*flagged = node_flags & PFS_NODE_ATTRS;
	if (*flagged)
		return pfs_records_get(tree->attrs->sets, out, ino, purpose);
	/* Unlike pfs_attr_set_of this does not rely on the flag, which may be about to be set. */
	pfs_parts_lock(tree);
	record = pfs_records_find(tree->attrs->sets, ino);
	if (record)
		*out = pfs_value_ref(record->value);
	pfs_parts_unlock(tree);
	return 0;
}

int pfs_attr_record(struct pfs_tree *tree, struct pfs_record **out, uint64_t ino,
		    const struct pfs_value *before, bool flagged)
{
	uint32_t slot = pfs_image_slot(tree, ino);
	/* While the flag is set the store may have a set that memory lacks, so the entry must still
	 * be there. */
	struct pfs_record *record = flagged ? pfs_records_find(tree->attrs->sets, ino)
					    : pfs_records_entry(tree->attrs->sets, ino);

	if (slot == PFS_NO_SLOT)
		return -ESTALE;
	if (!record)
		return flagged ? -EAGAIN : -ENOMEM;
	if (!(tree->image.flags[slot] & PFS_NODE_ATTRS) != !flagged || record->value != before)
		return -EAGAIN;
	*out = record;
	return 0;
}

void pfs_attr_put(struct pfs_tree *tree, struct pfs_record *record, uint32_t slot, uint64_t ino,
		  struct pfs_value *set, struct pfs_time now)
{
	pfs_attr_columns_note(tree->attrs->by_name, ino, set);
	if (record->value)
		pfs_journal_replaced(tree, record->value->size);
	pfs_records_set(tree->attrs->sets, record, set, true);
	pfs_image_set_flags(tree, slot, PFS_NODE_ATTRS, set ? PFS_NODE_ATTRS : 0);
	pfs_stamp(tree, slot, PFS_COLUMN_CTIME, now);
}

/* Returns true for attributes that only this program sees. Saved queries are not among them: people
 * write them. */
static bool is_silent(const struct pfs_attr *attr)
{
	return pfs_attr_is_ours(attr->name, attr->name_len) &&
	       (attr->name_len < sizeof(SAVED) - 1 ||
		memcmp(attr->name, SAVED, sizeof(SAVED) - 1) != 0);
}

/* Puts the new set in the place of the old one. -EAGAIN: the node's set is no longer the old one.
 */
static int replace(struct pfs_tree *tree, uint64_t ino, const struct pfs_value *before,
		   struct pfs_value *set, bool flagged, const struct pfs_attr *attr)
{
	struct pfs_record *record;
	struct pfs_time now = pfs_now();
	uint32_t slot;
	int error;

	pfs_parts_lock(tree);
	pfs_hold_write(tree, __func__);
	error = pfs_attr_record(tree, &record, ino, before, flagged);
	if (!error && attr->text)
		error = pfs_attr_name_add(&tree->attrs->names, attr->name, attr->name_len,
					  PFS_ATTR_TEXT);
	slot = pfs_image_slot(tree, ino);
	if (!error) /* a silent attribute changes nothing that anybody sees, and so not the ctime */
		now = is_silent(attr) ? pfs_image_time(tree, tree->image.ctime, slot)
				      : pfs_stamp_ctime(tree, slot, now);
	if (!error)
		pfs_attr_put(tree, record, slot, ino, set, now);
	pfs_hold_end(tree);
	pfs_parts_unlock(tree);
	return error;
}

/* Changes one attribute; attr->text NULL: removes it. */
static int change_once(struct pfs_tree *tree, uint64_t ino, const struct pfs_attr *attr, int flags)
{
	struct pfs_value *before PFS_UNREF = NULL, *set PFS_UNREF = NULL;
	struct pfs_attr old;
	bool found, flagged;
	int error;

	PFS_TRY(pfs_attr_base(tree, &before, &flagged, ino, PFS_RECORDS_LOOK));
	found = pfs_attrset_find(before, &old, attr->name, attr->name_len);
	if (found && flags & XATTR_CREATE)
		return -EEXIST;
	if (!found && flags & XATTR_REPLACE)
		return -ENODATA;
	error = pfs_attrset_change(&set, before, attr);
	if (error)
		return error;
	if (attr->text && !pfs_attr_set_fits(set))
		return -ENOSPC;
	error = replace(tree, ino, before, set, flagged, attr);
	if (!error)
		set = NULL; /* the record owns it now */
	return error;
}

static int change(struct pfs_tree *tree, uint64_t ino, const struct pfs_attr *attr, int flags)
{
	int error;

	pfs_rows_hold(tree);
	error = pfs_journal_reserve(tree, 1,
				    attr->name_len + attr->text_len +
					    pfs_journal_former(tree, PFS_ATTR_VALUE_MAX),
				    false);
	if (!error) {
		do
			error = change_once(tree, ino, attr, flags);
		while (error == -EAGAIN);
	}
	if (!error && pfs_row_shows(tree, ino, attr->name, attr->name_len))
		pfs_row_changed(tree, ino,
				pfs_row_is_id(tree, ino, attr->name, attr->name_len));
	pfs_rows_let_go(tree);
	return error;
}

int pfs_tree_setxattr(struct pfs_tree *tree, uint64_t ino, const char *name, const void *value,
		      size_t size, int flags)
{
	struct pfs_attr attr = {.text = size ? value : "", .text_len = (uint32_t)size};
	size_t len;
	int error = parse_name(&attr.name, &len, name);

	if (error)
		return error;
	if (flags & ~(XATTR_CREATE | XATTR_REPLACE) || flags == (XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (pfs_attr_is_ours(attr.name, len) || pfs_row_is_computed(tree, ino, attr.name, len))
		return -EPERM;
	if (size > PFS_ATTR_VALUE_MAX)
		return -E2BIG;
	PFS_TRY(pfs_attr_allowed(tree, ino));
	attr.name_len = (uint16_t)len;
	attr.type = pfs_attr_type_of(tree->attrs, &attr);
	return change(tree, ino, &attr, flags);
}

int pfs_tree_removexattr(struct pfs_tree *tree, uint64_t ino, const char *name)
{
	struct pfs_attr attr = {.text = NULL};
	size_t len;
	int error = parse_name(&attr.name, &len, name);

	if (error)
		return error;
	if (pfs_attr_is_ours(attr.name, len) || pfs_row_is_computed(tree, ino, attr.name, len))
		return -EPERM;
	PFS_TRY(pfs_attr_allowed(tree, ino));
	attr.name_len = (uint16_t)len;
	return change(tree, ino, &attr, XATTR_REPLACE);
}

/* ---- attributes of ours, which no system call reaches: the hash of content, saved queries ---- */

static ssize_t get_ours(struct pfs_tree *tree, void *value, size_t size, uint64_t ino,
			const char *name)
{
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_attr attr;

	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	if (!pfs_attrset_find(set, &attr, name, strlen(name)))
		return -ENODATA;
	return give(value, size, attr.text, attr.text_len);
}

int pfs_attr_change_ours(struct pfs_tree *tree, uint64_t ino, const struct pfs_attr *attr)
{
	return change(tree, ino, attr, 0);
}

ssize_t pfs_tree_get_hash(struct pfs_tree *tree, void *value, size_t size, uint64_t ino)
{
	return get_ours(tree, value, size, ino, HASH);
}

int pfs_tree_set_hash(struct pfs_tree *tree, uint64_t ino, const void *value, size_t size)
{
	const struct pfs_attr attr = {
		.name = HASH,
		.name_len = sizeof(HASH) - 1,
		.text = value,
		.text_len = (uint32_t)size,
		.type = PFS_ATTR_TEXT,
	};

	return pfs_attr_change_ours(tree, ino, &attr);
}

/* Makes the name of the attribute that keeps a saved query. -EINVAL, -ERANGE. */
static int saved_name(char out[NAME_LIMIT + 1], const char *name)
{
	if (!*name)
		return -EINVAL;
	return (size_t)snprintf(out, NAME_LIMIT + 1, SAVED "%s", name) > NAME_LIMIT ? -ERANGE : 0;
}

ssize_t pfs_tree_get_saved(struct pfs_tree *tree, void *value, size_t size, uint64_t ino,
			   const char *name)
{
	char full[NAME_LIMIT + 1];

	PFS_TRY(saved_name(full, name));
	return get_ours(tree, value, size, ino, full);
}

int pfs_tree_set_saved(struct pfs_tree *tree, uint64_t ino, const char *name, const void *value,
		       size_t size, int flags)
{
	struct pfs_attr attr = {.text = value, .text_len = (uint32_t)size, .type = PFS_ATTR_TEXT};
	char full[NAME_LIMIT + 1];

	PFS_TRY(saved_name(full, name));
	if (size > PFS_ATTR_VALUE_MAX)
		return -E2BIG;
	attr.name = full;
	attr.name_len = (uint16_t)strlen(full);
	return change(tree, ino, &attr, flags);
}

int pfs_tree_list_saved(struct pfs_tree *tree, uint64_t ino,
			int (*fn)(void *arg, const char *name, size_t len), void *arg)
{
	const size_t prefix = sizeof(SAVED) - 1;
	struct pfs_value *set PFS_UNREF = NULL;
	struct pfs_attr attr;
	size_t at = 0;

	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	while (pfs_attrset_next(set, &attr, &at))
		if (attr.name_len > prefix && memcmp(attr.name, SAVED, prefix) == 0)
			PFS_TRY(fn(arg, attr.name + prefix, attr.name_len - prefix));
	return 0;
}
