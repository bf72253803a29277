/* SPDX-License-Identifier: MIT */
/* tools/import/unpack.h - a compressed file, read as what it was before. */
#ifndef PFS_TOOLS_IMPORT_UNPACK_H
#define PFS_TOOLS_IMPORT_UNPACK_H

#include "base/err.h"
#include "base/input.h"

/* Makes an input that has not been read from yet give what its bytes unpack to, if they begin as
 * gzip, bzip2, xz, lzma, lzip, zstd, lz4 and compress write them.  An error leaves it as good for nothing but closing, with a sentence in input->why:
 * -ENOTSUP without libarchive, else what reading says. */
PFS_MUST_CHECK int pfs_unpack(struct pfs_input_stream *input);

#endif
