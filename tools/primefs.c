/* SPDX-License-Identifier: MIT */
/* primefs - the command line: finds the verb and runs it. */
#include <stdio.h>

int main(void)
{
	(void)fputs("primefs: no command given; see primefs help\n", stderr);
	return 2;
}
