/* SPDX-License-Identifier: MIT */
/* tests/vfs/fault_start.c - linked into primefs-fault: the real program, on the VFS that fails. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/vfs/faultvfs.h"

__attribute__((constructor)) static void start(void)
{
	if (fault_register(true)) {
		(void)fputs("primefs-fault: PFS_FAULT holds no plan of faults\n", stderr);
		exit(2);
	}
}
