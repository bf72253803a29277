/* SPDX-License-Identifier: MIT */
/* base/acl.h - what a POSIX ACL really grants, as a mode. A file that has an ACL shows the ACL's
 * mask in the group's bits of st_mode, which may be more than its group may do.
 * Threads: any number of callers; nothing is shared. */
#ifndef PFS_BASE_ACL_H
#define PFS_BASE_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFS_ACL_XATTR "system.posix_acl_access"

/* Says whom an entry is about; the numbers are the kernel's. */
enum pfs_acl_tag {
	PFS_ACL_OWNER = 1,
	PFS_ACL_USER = 2,
	PFS_ACL_OWNING_GROUP = 4,
	PFS_ACL_GROUP = 8,
	PFS_ACL_MASK = 16,
	PFS_ACL_OTHER = 32,
};

/* Holds what the entries that were added so far grant, in 3 bits each: read, write, execute. */
struct pfs_acl {
	unsigned group, other, mask;
	unsigned users, groups; /* what each named user, each named group is granted, before the mask */
};
#define PFS_ACL_INIT {.mask = 7, .users = 7, .groups = 7}

/* Adds an entry; of perm the lowest 3 bits count. Returns false if there is no such tag. */
bool pfs_acl_add(struct pfs_acl *acl, unsigned tag, unsigned perm);

/* Returns the mode with what the owning group is really granted in its group's bits, and without
 * anything in the group's and others' bits that an entry of the ACL denies to somebody. */
uint32_t pfs_acl_mode(const struct pfs_acl *acl, uint32_t mode);

/* As pfs_acl_mode, from the attribute's value, which stays the caller's. If the value cannot be
 * read, group and others get nothing. */
uint32_t pfs_acl_value_mode(uint32_t mode, const void *value, size_t size);

/* As pfs_acl_mode, for the file at path, whose st_mode is mode and which is no symlink; a file
 * without an ACL keeps its mode. For an O_PATH descriptor give its path in /proc/self/fd. */
uint32_t pfs_acl_file_mode(uint32_t mode, const char *path);

#endif
