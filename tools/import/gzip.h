/* SPDX-License-Identifier: MIT */
/* tools/import/gzip.h - the checksum at the end of what gzip wrote, which libarchive passes by. */
#ifndef PFS_TOOLS_IMPORT_GZIP_H
#define PFS_TOOLS_IMPORT_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pfs_gzip_check {
	bool is_gzip, may_have_members;
	uint64_t n_packed, n_unpacked; /* bytes */
	uint32_t crc;		       /* of what was unpacked, inverted */
	uint32_t table[4][256];
	unsigned char last[8]; /* packed bytes, the newest last */
};

void pfs_gzip_begin(struct pfs_gzip_check *check);
/* Take all bytes of the file, and all that they unpack to, each in order; the calls mix as they
 * come. */
void pfs_gzip_packed(struct pfs_gzip_check *check, const void *bytes, size_t size);
void pfs_gzip_unpacked(struct pfs_gzip_check *check, const void *bytes, size_t size);
/* To be called after the last of both. Returns false if the checksum or the size is another one. A
 * file that may be several, one after the other, is taken as it is, for nobody tells where each of
 * them ends. */
bool pfs_gzip_is_right(const struct pfs_gzip_check *check);

#endif
