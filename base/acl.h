/* SPDX-License-Identifier: MIT */
/* base/acl.h - what a POSIX ACL grants in terms of a mode: where a file has one, st_mode's group
 * bits are its mask, not what the group may do. */
#ifndef PFS_BASE_ACL_H
#define PFS_BASE_ACL_H

#include <stddef.h>
#include <stdint.h>

#define PFS_ACL_XATTR "system.posix_acl_access"
#define PFS_ACL_SIZE  65536 /* bytes that the attribute has at most */

/* The mode with the group's bits as its owning group is really granted, and the group's and all
 * others' without anything that an entry of the ACL denies to somebody.  acl is the attribute's
 * value; of one that cannot be read group and others get nothing. */
uint32_t pfs_acl_mode(uint32_t mode, const void *acl, size_t size);

#endif
