/* SPDX-License-Identifier: MIT */
#include "base/acl.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

/* As the kernel keeps it (linux/posix_acl_xattr.h), all little-endian. */
#define VERSION	    2
#define HEADER_SIZE 4
#define ENTRY_SIZE  8

enum tag {
	USER_OWNER = 1,
	USER = 2,
	GROUP_OWNER = 4,
	GROUP = 8,
	MASK = 16,
	OTHER = 32,
};

struct granted {
	unsigned group, other; /* the entries' own */
	unsigned mask;
	unsigned users, groups; /* what every named one is granted, but for the mask */
	bool has_users, has_groups;
};

static bool take(struct granted *granted, const uint8_t *entry)
{
	uint16_t tag, perm;

	(void)memcpy(&tag, entry, sizeof(tag));
	(void)memcpy(&perm, entry + sizeof(tag), sizeof(perm));
	perm = le16toh(perm) & 7;
	switch (le16toh(tag)) {
	case USER_OWNER:
		return true; /* the mode's own bits */
	case USER:
		granted->users &= perm;
		granted->has_users = true;
		return true;
	case GROUP_OWNER:
		granted->group = perm;
		return true;
	case GROUP:
		granted->groups &= perm;
		granted->has_groups = true;
		return true;
	case MASK:
		granted->mask = perm;
		return true;
	case OTHER:
		granted->other = perm;
		return true;
	default:
		return false;
	}
}

/* A member of the owning group who is a named user gets what that entry says, and so does one of
 * the others; a member of a named group is none of the others. */
uint32_t pfs_acl_mode(uint32_t mode, const void *acl, size_t size)
{
	struct granted granted = {.mask = 7, .users = 7, .groups = 7};
	const uint8_t *bytes = acl;
	uint32_t version = 0;
	size_t at;

	if (size >= HEADER_SIZE)
		(void)memcpy(&version, bytes, sizeof(version));
	if (le32toh(version) != VERSION || (size - HEADER_SIZE) % ENTRY_SIZE)
		return mode & ~077u;
	for (at = HEADER_SIZE; at < size; at += ENTRY_SIZE)
		if (!take(&granted, bytes + at))
			return mode & ~077u;
	granted.users &= granted.mask;
	granted.groups &= granted.mask;
	if (granted.users & 8)
		return mode;
	if (granted.has_users)
		granted.users &= granted.mask;
	if (granted.has_groups)
		granted.groups &= granted.mask;
	return (mode & ~077u) | (granted.group & granted.mask & granted.users) << 3 |
	       (granted.other & granted.users & granted.groups);
}
