/* SPDX-License-Identifier: MIT */
/* Lists of paths.  The first byte chooses the options. */
#include "tests/fuzz/import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pfs_import_options options = {.format = &pfs_import_paths};

	if (size == 0)
		return 0;
	options.nul_ended = data[0] & 1;
	options.skip = data[0] & 2;
	if (data[0] & 4)
		options.columns = data[0] & 8 ? "a:int,b:real,c:text" : "a,b,c";
	import_input(&options, data + 1, size - 1);
	return 0;
}
