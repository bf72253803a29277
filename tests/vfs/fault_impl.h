/* SPDX-License-Identifier: MIT */
/* tests/vfs/fault_impl.h - between the VFS and its recorder. */
#ifndef PFS_TESTS_FAULT_IMPL_H
#define PFS_TESTS_FAULT_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in the recording is one life of a name: made anew after a delete, it is another. */
int fault_note_open(const char *path, bool made); /* -1: nothing is being recorded */
void fault_note_write(int file, const void *data, size_t len, int64_t offset);
void fault_note_truncate(int file, int64_t size);
void fault_note_sync(int file);
void fault_note_delete(const char *path);

#endif
