/* SPDX-License-Identifier: MIT */
#include "meta/birthmark.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define TYPE_SIZE 4 /* bytes for a handle's type, in front of the handle's own */

void pfs_birthmark_handle(struct pfs_birthmark *out, int dir, const char *name)
{
	union {
		struct file_handle handle;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} found = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
	int mount, i;

	out->handle_len = 0;
	if (name_to_handle_at(dir, name, &found.handle, &mount, *name ? 0 : AT_EMPTY_PATH) < 0)
		return; /* a filesystem without handles, or a sandbox */
	for (i = 0; i < TYPE_SIZE; i++)
		out->handle[i] = (uint8_t)((unsigned)found.handle.handle_type >> 8 * i);
	(void)memcpy(out->handle + TYPE_SIZE, found.room + sizeof(struct file_handle),
		     found.handle.handle_bytes);
	out->handle_len = (uint8_t)(TYPE_SIZE + found.handle.handle_bytes);
}

void pfs_birthmark_of(struct pfs_birthmark *out, int fd)
{
	struct statx from;

	*out = (struct pfs_birthmark){.has_birth = false};
	pfs_birthmark_handle(out, fd, "");
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &from) < 0 || !(from.stx_mask & STATX_BTIME))
		return;
	out->has_birth = true;
	out->birth = (struct pfs_time){from.stx_btime.tv_sec, from.stx_btime.tv_nsec};
}

static bool same_birth(const struct pfs_birthmark *a, const struct pfs_birthmark *b)
{
	return a->birth.sec == b->birth.sec && a->birth.nsec == b->birth.nsec;
}

bool pfs_birthmark_same(const struct pfs_birthmark *a, const struct pfs_birthmark *b)
{
	if (a->handle_len && b->handle_len)
		return a->handle_len == b->handle_len &&
		       memcmp(a->handle, b->handle, a->handle_len) == 0;
	if (a->has_birth && b->has_birth)
		return same_birth(a, b);
	return pfs_birthmark_is_empty(a) || pfs_birthmark_is_empty(b);
}

bool pfs_birthmark_is_empty(const struct pfs_birthmark *mark)
{
	return !mark->handle_len && !mark->has_birth;
}
