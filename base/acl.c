/* SPDX-License-Identifier: MIT */
#include "base/acl.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

/* The layout is the kernel's (linux/posix_acl_xattr.h); all numbers are little-endian. */
#define VERSION	    2
#define HEADER_SIZE 4
#define ENTRY_SIZE  8

#define CLASSES 077u /* the bits of group and others */

bool pfs_acl_add(struct pfs_acl *acl, unsigned tag, unsigned perm)
{
	perm &= 7;
	switch (tag) {
	case PFS_ACL_OWNER:
		return true; /* the mode's own bits say it */
	case PFS_ACL_USER:
		acl->users &= perm;
		return true;
	case PFS_ACL_OWNING_GROUP:
		acl->group = perm;
		return true;
	case PFS_ACL_GROUP:
		acl->groups &= perm;
		return true;
	case PFS_ACL_MASK:
		acl->mask = perm;
		return true;
	case PFS_ACL_OTHER:
		acl->other = perm;
		return true;
	default:
		return false;
	}
}

/* For a named user the entry with that name decides, also if the user is in the owning group or one
 * of the others. Members of a named group do not count as others. */
uint32_t pfs_acl_mode(const struct pfs_acl *acl, uint32_t mode)
{
	unsigned users = acl->users & acl->mask, groups = acl->groups & acl->mask;

	return (mode & ~CLASSES) | (acl->group & users) << 3 | (acl->other & users & groups);
}

uint32_t pfs_acl_value_mode(uint32_t mode, const void *value, size_t size)
{
	struct pfs_acl acl = PFS_ACL_INIT;
	const uint8_t *bytes = value;
	uint16_t tag, perm;
	uint32_t version = 0;
	size_t at;

	if (size >= HEADER_SIZE)
		(void)memcpy(&version, bytes, sizeof(version));
	if (le32toh(version) != VERSION || (size - HEADER_SIZE) % ENTRY_SIZE)
		return mode & ~CLASSES;
	for (at = HEADER_SIZE; at < size; at += ENTRY_SIZE) {
		(void)memcpy(&tag, bytes + at, sizeof(tag));
		(void)memcpy(&perm, bytes + at + sizeof(tag), sizeof(perm));
		if (!pfs_acl_add(&acl, le16toh(tag), le16toh(perm)))
			return mode & ~CLASSES;
	}
	return pfs_acl_mode(&acl, mode);
}

/* An ACL that is longer than the space for it, or that cannot be read, lets nobody in. */
uint32_t pfs_acl_file_mode(uint32_t mode, const char *path)
{
	char value[1024];
	ssize_t size;

	if (!(mode & CLASSES))
		return mode; /* nobody but the owner has any rights */
	size = getxattr(path, PFS_ACL_XATTR, value, sizeof(value));
	if (size >= 0)
		return pfs_acl_value_mode(mode, value, (size_t)size);
	return errno == ENODATA || errno == EOPNOTSUPP ? mode : mode & ~CLASSES;
}
