/* SPDX-License-Identifier: MIT */
/* tools/import/unpack.h - a compressed file, read as what it was before. */
#ifndef PFS_TOOLS_IMPORT_UNPACK_H
#define PFS_TOOLS_IMPORT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/input.h"

/* Returns true if data begins as gzip, bzip2, xz, lzma, lzip, zstd, lz4 and compress write it. */
bool pfs_is_packed(const void *data, size_t size);

/* Makes an input that has not been read from yet give what its bytes unpack to, if they are
 * packed.  An error leaves it as good for nothing but closing, with a sentence in input->why:
 * -ENOTSUP without libarchive, else what reading says. */
PFS_MUST_CHECK int pfs_unpack(struct pfs_input_stream *input);

#endif
