/* SPDX-License-Identifier: MIT */
/* Statements as trees: whatever the text, it is taken or not, and what was taken says the same when
 * it is written out with all its brackets and read again. */
#undef NDEBUG /* what is asserted is what is looked for */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/unparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Allocated; NULL: not taken. */
static char *written(const char *sql, size_t len)
{
	struct pfs_parsed *parsed;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (pfs_parse(&parsed, sql, len, NULL) != 0) {
		assert(!parsed);
		return NULL;
	}
	out = open_memstream(&text, &size);
	if (!out)
		abort();
	unparse_statement(out, pfs_parsed_statement(parsed));
	(void)fclose(out);
	pfs_parsed_free(parsed);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = written((const char *)data, size), *again;

	if (!text)
		return 0;
	again = written(text,
			strlen(text)); /* not where the brackets are too many, and for windows */
	assert(!again || strcmp(text, again) == 0);
	free(again);
	free(text);
	return 0;
}
