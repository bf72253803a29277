/* SPDX-License-Identifier: MIT */
/* Tables, by path or by parent as their headers say.  The first byte chooses the options. */
#include "tests/fuzz/import_fuzz.h"
#include "tools/import/import_recognise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pfs_import_options options = {.format = &pfs_import_csv};

	if (size == 0)
		return 0;
	options.skip = data[0] & 1;
	if (data[0] & 2)
		options.path_column = "p";
	if (data[0] & 4)
		options.id_column = "i";
	if (size > 1)
		(void)pfs_find_delimiter((const char *)data + 1, size - 1, true);
	import_input(&options, data + 1, size - 1);
	return 0;
}
