/* SPDX-License-Identifier: MIT */
/* Runs a fuzzer's inputs again: every file named, and every file in the folders named. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static int replay_file(const char *path)
{
	FILE *file PFS_FCLOSE = fopen(path, "re");
	uint8_t *data PFS_FREE = NULL;
	struct stat attr;
	size_t size;

	if (!file || fstat(fileno(file), &attr) != 0) {
		perror(path);
		return 1;
	}
	/* exactly as large as the input, so that sanitizers see what is read beyond it */
	size = (size_t)attr.st_size;
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, file) != size) {
		perror(path);
		return 1;
	}
	(void)LLVMFuzzerTestOneInput(data, size);
	return 0;
}

static int replay_folder(const char *path, unsigned *count)
{
	DIR *dir PFS_CLOSEDIR = opendir(path);
	struct dirent *entry;
	int failed = 0;

	if (!dir) {
		perror(path);
		return 1;
	}
	while ((entry = readdir(dir)) != NULL) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		failed |= replay_file(name);
		++*count;
	}
	return failed;
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	int failed = 0, i;

	if (LLVMFuzzerInitialize)
		(void)LLVMFuzzerInitialize(&argc, &argv);
	for (i = 1; i < argc; i++) {
		struct stat attr;

		if (stat(argv[i], &attr) == 0 && S_ISDIR(attr.st_mode)) {
			failed |= replay_folder(argv[i], &count);
		} else {
			failed |= replay_file(argv[i]);
			count++;
		}
	}
	(void)printf("%u inputs\n", count);
	return failed || !count;
}
