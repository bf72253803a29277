/* SPDX-License-Identifier: MIT */
#include "fs/content/register.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/image.h"
#include "fs/image/path.h"
#include "fs/tree/tree_impl.h"

struct pfs_registers {
	struct pfs_register *list; /* in the order of imports */
	size_t n, capacity;
};

/* ---- loading ---- */

static int split(struct pfs_register *of)
{
	const char *at = of->is.columns, *end = at + of->is.columns_len;
	size_t capacity = 0;

	for (; at < end; at += strlen(at) + 1) {
		PFS_TRY(pfs_grow(&of->columns, &capacity, of->n + 1, sizeof(*of->columns)));
		of->columns[of->n++] = at;
	}
	return 0;
}

static int take(void *arg, const struct pfs_register_record *record)
{
	struct pfs_registers *registers = arg;
	struct pfs_register *of;
	char *columns;

	PFS_TRY(pfs_grow(&registers->list, &registers->capacity, registers->n + 1, sizeof(*of)));
	columns = malloc(record->columns_len);
	if (!columns)
		return -ENOMEM;
	memcpy(columns, record->columns, record->columns_len);
	of = &registers->list[registers->n++];
	*of = (struct pfs_register){.is = *record};
	of->is.columns = columns;
	return split(of);
}

int pfs_registers_create(struct pfs_tree *tree)
{
	tree->registers = calloc(1, sizeof(*tree->registers));
	return tree->registers ? pfs_store_scan_registers(tree->store, take, tree->registers)
			       : -ENOMEM;
}

void pfs_registers_destroy(struct pfs_tree *tree)
{
	struct pfs_registers *registers = tree->registers;

	if (!registers)
		return;
	while (registers->n) {
		const struct pfs_register *of = &registers->list[--registers->n];

		free((char *)of->is.columns);
		free(of->columns);
	}
	free(registers->list);
	free(registers);
	tree->registers = NULL;
}

bool pfs_registers_any(const struct pfs_tree *tree)
{
	return tree->registers->n > 0;
}

/* ---- looking ---- */

static bool is_column(const struct pfs_register *of, int column, const char *name, size_t len)
{
	return column != PFS_NO_COLUMN && strlen(of->columns[column]) == len &&
	       memcmp(of->columns[column], name, len) == 0;
}

enum pfs_role pfs_register_role(const struct pfs_register *of, const char *name, size_t len)
{
	if (!of || is_column(of, of->is.id, name, len))
		return PFS_ROLE_NONE;
	if (is_column(of, of->is.path, name, len))
		return PFS_ROLE_PATH;
	if (is_column(of, of->is.parent, name, len))
		return PFS_ROLE_PARENT;
	return is_column(of, of->is.name, name, len) ? PFS_ROLE_NAME : PFS_ROLE_NONE;
}

const struct pfs_register *pfs_registers_computing(const struct pfs_tree *tree, const char *name,
						   size_t len)
{
	const struct pfs_registers *registers = tree->registers;

	for (size_t i = registers->n; i-- > 0;) {
		if (pfs_register_role(&registers->list[i], name, len) != PFS_ROLE_NONE)
			return &registers->list[i];
	}
	return NULL;
}

const struct pfs_register *pfs_register_at(const struct pfs_tree *tree, size_t i)
{
	return i < tree->registers->n ? &tree->registers->list[i] : NULL;
}

static const struct pfs_register *with_root(const struct pfs_registers *registers, uint64_t prime)
{
	for (size_t i = registers->n; i-- > 0;) {
		if (registers->list[i].is.root == prime)
			return &registers->list[i];
	}
	return NULL;
}

const struct pfs_register *pfs_register_of(const struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_registers *registers = tree->registers;
	const struct pfs_image *image = &tree->image;
	bool is_row = image->flags[slot] & PFS_NODE_ROW;

	/* If the only register's root is the tree's, every node belongs to it. */
	if (!registers->n || (registers->n == 1 && registers->list->is.root == PFS_ROOT_PRIME))
		return registers->n ? registers->list : NULL;
	for (; slot != PFS_NO_SLOT; slot = image->parent[slot]) {
		const struct pfs_register *of = with_root(registers, image->prime[slot]);

		if (of)
			return of;
	}
	return is_row ? &registers->list[registers->n - 1] : NULL;
}

/* ---- what follows from the place ---- */

size_t pfs_register_name(const struct pfs_register *of, char *out, const char *name, size_t len)
{
	size_t sign = strlen(of->is.slash), size = 0;
	const char *end = name + len;

	while (name < end) {
		bool slash = sign && (size_t)(end - name) >= sign &&
			     memcmp(name, of->is.slash, sign) == 0;

		out[size++] = slash ? '/' : *name;
		name += slash ? sign : 1;
	}
	return size;
}

int pfs_register_path(const struct pfs_tree *tree, const struct pfs_register *of, char **path,
		      size_t *len, uint32_t slot)
{
	size_t total = pfs_path_write(&tree->image, NULL, of->is.root, slot);
	char *text = malloc(total + 2);

	*path = text;
	if (!text)
		return -ENOMEM;
	(void)pfs_path_write(&tree->image, text + total, of->is.root, slot);
	if (!total)
		text[total++] = '/';
	if (total > 1 && !(of->is.style & PFS_REGISTER_SLASHED))
		memmove(text, text + 1, --total);
	*len = total;
	return 0;
}

int pfs_tree_register(struct pfs_tree *tree, struct pfs_register_record *out, uint64_t ino)
{
	const struct pfs_register *of = NULL;
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		of = pfs_register_of(tree, slot);
	pfs_hold_end(tree);
	if (!of)
		return -ENODATA;
	*out = of->is;
	return 0;
}

bool pfs_tree_has_rows(const struct pfs_tree *tree)
{
	return pfs_registers_any(tree);
}
