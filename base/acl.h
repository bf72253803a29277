/* SPDX-License-Identifier: MIT */
/* base/acl.h - what a POSIX ACL grants in terms of a mode: where a file has one, st_mode's group
 * bits are its mask, not what the group may do. */
#ifndef PFS_BASE_ACL_H
#define PFS_BASE_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFS_ACL_XATTR "system.posix_acl_access"
#define PFS_ACL_SIZE  65536 /* bytes that the attribute has at most */

/* Whom an entry is about, with the kernel's numbers. */
enum pfs_acl_tag {
	PFS_ACL_OWNER = 1,
	PFS_ACL_USER = 2,
	PFS_ACL_OWNING_GROUP = 4,
	PFS_ACL_GROUP = 8,
	PFS_ACL_MASK = 16,
	PFS_ACL_OTHER = 32,
};

/* What the entries seen so far grant, 3 bits each. */
struct pfs_acl {
	unsigned group, other, mask;
	unsigned users, groups; /* what every named one is granted, but for the mask */
};
#define PFS_ACL_INIT {.mask = 7, .users = 7, .groups = 7}

/* One entry more; of perm the lowest 3 bits count.  False: there is no such tag. */
bool pfs_acl_add(struct pfs_acl *acl, unsigned tag, unsigned perm);

/* The mode with the group's bits as its owning group is really granted, and the group's and all
 * others' without anything that an entry of the ACL denies to somebody. */
uint32_t pfs_acl_mode(const struct pfs_acl *acl, uint32_t mode);

/* The same of the attribute's value; of one that cannot be read group and others get nothing. */
uint32_t pfs_acl_value_mode(uint32_t mode, const void *value, size_t size);

/* The same of a file, whose st_mode is mode, and which is no symlink: without an ACL, mode.  A
 * descriptor that is O_PATH has a path in /proc/self/fd. */
uint32_t pfs_acl_file_mode(uint32_t mode, const char *path);

#endif
