/* SPDX-License-Identifier: MIT */
/* Prints the tables of tests/ref/statements.h, or so many random statements, one a line:
 * `statements`, `statements SEED N`.  "= " in front: the rows have an order. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/ref/statements.h"

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	for (const char *const *table = random_statement_tables; argc == 1 && *table; table++)
		(void)puts(*table);
	while (n-- > 0) {
		char *sql = NULL;
		size_t len;
		FILE *out = open_memstream(&sql, &len);
		bool ordered = out && (n % 4 ? random_statement : random_order)(out, &seed);

		if (!out || fclose(out))
			return 1;
		(void)printf("%s%s\n", ordered ? "= " : "", sql);
		free(sql);
	}
	return 0;
}
