/* SPDX-License-Identifier: MIT */
/* base/acl.h - the mode that says what a POSIX ACL really grants. st_mode of a file with an ACL
 * shows the ACL's mask in the group's bits, which may be more than the owning group is granted.
 * Threads: any number of callers; nothing is shared. */
#ifndef PFS_BASE_ACL_H
#define PFS_BASE_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFS_ACL_XATTR "system.posix_acl_access"

/* Says to whom an entry applies; the numbers are the kernel's. */
enum pfs_acl_tag {
	PFS_ACL_OWNER = 1,
	PFS_ACL_USER = 2,
	PFS_ACL_OWNING_GROUP = 4,
	PFS_ACL_GROUP = 8,
	PFS_ACL_MASK = 16,
	PFS_ACL_OTHER = 32,
};

/* What the entries that were added so far grant, in 3 bits each: read, write, execute. */
struct pfs_acl {
	unsigned group, other, mask;
	unsigned users;	 /* what all named users are granted, before the mask */
	unsigned groups; /* the same for named groups */
};
#define PFS_ACL_INIT {.mask = 7, .users = 7, .groups = 7}

/* Adds an entry, which grants the lowest 3 bits of perm. Returns false if there is no such tag. */
bool pfs_acl_add(struct pfs_acl *acl, unsigned tag, unsigned perm);

/* Returns the mode with what the owning group is granted in the group's bits. Of the group's and
 * others' bits it takes away what some entry of the ACL denies to somebody. */
uint32_t pfs_acl_mode(const struct pfs_acl *acl, uint32_t mode);

/* As pfs_acl_mode, for the ACL that is the value of the attribute PFS_ACL_XATTR; the value stays
 * the caller's. If it is no ACL, group and others get nothing. */
uint32_t pfs_acl_value_mode(uint32_t mode, const void *value, size_t size);

/* As pfs_acl_mode, for the file at path, which is no symlink and has st_mode `mode`; a file without
 * an ACL keeps its mode. An O_PATH descriptor is named by its path in /proc/self/fd. */
uint32_t pfs_acl_file_mode(uint32_t mode, const char *path);

#endif
