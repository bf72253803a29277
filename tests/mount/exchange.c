/* SPDX-License-Identifier: MIT */
/* exchange A B: each gets the other's name, which mv of Debian 12 has no option for. */
#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
