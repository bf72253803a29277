/* SPDX-License-Identifier: MIT */
#include "tools/import/gzip.h"

#include <string.h>

#include "base/checked.h"

#define POLYNOMIAL 0xedb88320u

void pfs_gzip_begin(struct pfs_gzip_check *check)
{
	*check = (struct pfs_gzip_check){.crc = UINT32_MAX};
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		check->table[0][byte] = crc;
	}
	for (int i = 1; i < 4; i++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = check->table[i - 1][byte];

			check->table[i][byte] = crc >> 8 ^ check->table[0][crc & 255];
		}
}

static bool has_head(const unsigned char *bytes, size_t size)
{
	return size >= 3 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0;
}

/* A head other than the file's first bytes; `size` of them are here. */
static bool has_inner_head(const unsigned char *bytes, size_t size)
{
	const unsigned char *at = bytes, *end = bytes + size;

	while ((at = memchr(at, 0x1f, (size_t)(end - at)))) {
		if (has_head(at, (size_t)(end - at)))
			return true;
		at++;
	}
	return false;
}

void pfs_gzip_packed(struct pfs_gzip_check *check, const void *bytes, size_t size)
{
	const size_t n_last = sizeof(check->last);
	size_t skipped = check->n_packed ? 0 : 1, n = PFS_MIN(size, n_last);
	unsigned char seam[4];

	if (!size)
		return;
	if (!check->n_packed)
		check->is_gzip = has_head(bytes, size);
	if (check->is_gzip && !check->may_have_members) {
		memcpy(seam, check->last + n_last - 2, 2);
		memcpy(seam + 2, bytes, PFS_MIN(size, 2));
		check->may_have_members =
			(check->n_packed > 2 && has_inner_head(seam, 2 + PFS_MIN(size, 2))) ||
			has_inner_head((const unsigned char *)bytes + skipped, size - skipped);
	}
	memmove(check->last, check->last + n, n_last - n);
	memcpy(check->last + n_last - n, (const unsigned char *)bytes + size - n, n);
	check->n_packed += size;
}

void pfs_gzip_unpacked(struct pfs_gzip_check *check, const void *bytes, size_t size)
{
	const unsigned char *at = bytes, *end = at + size;
	uint32_t crc = check->crc;

	if (!check->is_gzip || check->may_have_members)
		return;
	for (; end - at >= 4; at += 4) {
		crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
		crc = check->table[3][crc & 255] ^ check->table[2][crc >> 8 & 255] ^
		      check->table[1][crc >> 16 & 255] ^ check->table[0][crc >> 24];
	}
	for (; at < end; at++)
		crc = crc >> 8 ^ check->table[0][(crc ^ *at) & 255];
	check->crc = crc;
	check->n_unpacked += size;
}

static uint32_t little_endian(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool pfs_gzip_is_right(const struct pfs_gzip_check *check)
{
	return !check->is_gzip || check->may_have_members ||
	       (little_endian(check->last) == ~check->crc &&
		little_endian(check->last + 4) == (uint32_t)check->n_unpacked);
}
