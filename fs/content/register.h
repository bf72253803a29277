/* SPDX-License-Identifier: MIT */
/* fs/content/register.h - registers: imported tables whose rows are nodes.
 *
 * The columns of a register are attributes of its nodes. Three columns are not kept but computed
 * from the node's place: its name (with the slashes that it had in the table), the id of its
 * parent, and its path. Registers never change while a tree is open.
 *
 * Locks: those that each function names; registers themselves need none. */
#ifndef PFS_FS_CONTENT_REGISTER_H
#define PFS_FS_CONTENT_REGISTER_H

#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_register {
	struct pfs_register_record is; /* columns: its own copy */
	const char **columns;
	size_t n;
};

/* Says which computed column an attribute's name stands for in a register. */
enum pfs_role {
	PFS_ROLE_NONE, /* none: it is an ordinary attribute */
	PFS_ROLE_PATH,
	PFS_ROLE_PARENT,
	PFS_ROLE_NAME,
};
enum pfs_role pfs_register_role(const struct pfs_register *of, const char *name, size_t len);

/* Returns a register that has a computed column of this name; NULL: none has. */
const struct pfs_register *pfs_registers_computing(const struct pfs_tree *tree, const char *name,
						   size_t len);

/* Reads the registers; for pfs_tree_open, before anything asks for attributes. */
PFS_MUST_CHECK int pfs_registers_create(struct pfs_tree *tree);
void pfs_registers_destroy(struct pfs_tree *tree);
/* Returns register i, in the order of imports; NULL behind the last. */
const struct pfs_register *pfs_register_at(const struct pfs_tree *tree, size_t i);
bool pfs_registers_any(const struct pfs_tree *tree); /* true if there is a register */

/* Returns the register with the nearest root at or above the node; for a row that was moved out of
 * all registers, the last register; NULL: there is none. Any lock on the tree is held. */
const struct pfs_register *pfs_register_of(const struct pfs_tree *tree, uint32_t slot);

/* Writes the name as the table had it into `out`, which has room for PFS_NAME_MAX bytes. Returns
 * its length. */
size_t pfs_register_name(const struct pfs_register *of, char *out, const char *name, size_t len);

/* Gets the node's path below the register's root, which the caller frees. Any lock on the tree is
 * held. -ENOMEM. */
PFS_MUST_CHECK int pfs_register_path(const struct pfs_tree *tree, const struct pfs_register *of,
				     char **path, size_t *len, uint32_t slot);

#endif
