/* SPDX-License-Identifier: MIT */
#include "tools/bench/resolve_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/device_lookup.h"
#include "tools/bench/bench.h"
#include "tools/client/pathpipe.h"

#define COPIED	      ((size_t)1 << 20) /* bytes that a plain copy moves at once */
#define PATH_MAX_SIZE ((size_t)4 << 20) /* bytes of a path, at most */

static int open_memory_file(int *fd)
{
	*fd = memfd_create("primefs-bench", MFD_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);

		if (written < 0)
			return -errno;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}

/* Lines, in a file that is mapped: its pages are made where threads first write. */
struct answer {
	struct pfs_tree *tree; /* that answers */
	bool by_device;
	int fd;
	char *bytes;
	size_t size, room;
};

static int open_answer(struct answer *answer, size_t room)
{
	answer->room = room;
	PFS_TRY(open_memory_file(&answer->fd));
	if (ftruncate(answer->fd, (off_t)room))
		return -errno;
	answer->bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, answer->fd, 0);
	return answer->bytes == MAP_FAILED ? -ENOMEM : 0;
}

static void close_answer(const struct answer *answer)
{
	if (answer->bytes && answer->bytes != MAP_FAILED)
		(void)munmap(answer->bytes, answer->room);
	if (answer->fd >= 0)
		(void)close(answer->fd);
}

/* Makes the pages for a text at once, which takes less than a fault for each. */
static void make_pages(const struct answer *answer, const struct pfs_resolve_text *text,
		       uint64_t offset)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), from = offset / page * page;
	size_t to = offset;

	for (size_t i = 0; i < text->n_parts; i++)
		to += text->parts[i].iov_len;
	if (to <= answer->room)
		(void)madvise(answer->bytes + from, to - from, MADV_POPULATE_WRITE);
}

static int put_lines(void *arg, const struct pfs_resolve_text *text, uint64_t offset)
{
	const struct answer *answer = arg;

	make_pages(answer, text, offset);
	for (size_t i = 0; i < text->n_parts; i++) {
		const struct iovec *part = &text->parts[i];

		if (offset > answer->room || part->iov_len > answer->room - offset)
			return -ENOSPC;
		memcpy(answer->bytes + offset, part->iov_base, part->iov_len);
		offset += part->iov_len;
	}
	return 0;
}

/* Each line begins with the number that is wanted. */
static int check_answer(const char *verb, const struct pfs_resolve_files *files,
			const struct answer *answer)
{
	struct pfs_path_text line;
	size_t at = 0, i = 0;

	while (i < files->n && pfs_path_next(&line, answer->bytes, answer->size, &at, 0) &&
	       strtoull(line.bytes, NULL, 10) == files->wanted[i])
		i++;
	if (i == files->n && at == answer->size)
		return 0;
	(void)pfs_cmd_fail(verb, "a line has another number than the listing");
	return -EUCLEAN;
}

static int resolve_batch(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n)
{
	const struct answer *answer = arg;
	const struct pfs_resolve_from from = {.alone = true};

	return pfs_tree_resolve_many(answer->tree, inos, paths, n, &from);
}

/* As primefs resolve does, but that all threads write the file, through its mapping. */
static int answer_file(struct pfs_resolve_stages *stages, struct answer *answer, int in)
{
	struct pfs_pathpipe pipe = {.in = in,
				    .at_once = answer->by_device ? PFS_RESIDENT_LISTS : 0,
				    .path_max = PATH_MAX_SIZE,
				    .arg = answer,
				    .resolve = resolve_batch,
				    .put = put_lines};
	struct pfs_device_lookup_stats before, after;
	double started;
	int error;

	pfs_device_lookup_stats(answer->tree, &before);
	started = pfs_bench_now();
	error = pfs_pathpipe_run(&pipe);
	stages->all = pfs_bench_now() - started;
	answer->size = pipe.put_bytes;
	pfs_device_lookup_stats(answer->tree, &after);
	for (unsigned i = 0; i < PFS_PATHPIPE_STAGES; i++)
		stages->busy[i] = (double)pipe.busy_ns[i] / 1e9;
	stages->bus = (double)(after.info.bus_ns - before.info.bus_ns) / 1e9;
	stages->kernel = (double)(after.info.kernel_ns - before.info.kernel_ns) / 1e9;
	return error;
}

/* What it takes to read the paths, and to write the answer into a file, one after the other in one
 * thread. */
static int time_copy(double *seconds, int in, const struct answer *answer)
{
	char *bytes PFS_FREE = malloc(COPIED);
	int out PFS_CLOSE = -1;
	double started;

	PFS_TRY(open_memory_file(&out));
	(void)lseek(in, 0, SEEK_SET);
	started = pfs_bench_now();
	while (bytes && read(in, bytes, COPIED) > 0)
		continue;
	PFS_TRY(write_all(out, answer->bytes, answer->size));
	*seconds = pfs_bench_now() - started;
	return bytes ? 0 : -ENOMEM;
}

int pfs_resolve_files_time(struct pfs_resolve_stages *stages, const char *verb,
			   const struct pfs_resolve_files *files)
{
	struct answer answer = {.tree = files->tree, .by_device = files->by_device, .fd = -1};
	int in PFS_CLOSE = -1;
	int error = open_memory_file(&in);

	if (!error)
		error = open_answer(&answer, files->size + files->n * 32);
	if (!error)
		error = write_all(in, files->text, files->size);
	(void)lseek(in, 0, SEEK_SET);
	if (!error)
		error = answer_file(stages, &answer, in);
	if (!error)
		error = check_answer(verb, files, &answer);
	if (!error)
		error = time_copy(&stages->copy, in, &answer);
	close_answer(&answer);
	return error;
}

void pfs_resolve_stages_print(const char *by, const struct pfs_resolve_stages *s)
{
	const double all = PFS_MAX(s->all, 1e-9);

	(void)printf("from file to file by %s, the last round: %.2f threads on average read and "
		     "found lines, %.2f resolved",
		     by, s->busy[PFS_PATHPIPE_READ] / all, s->busy[PFS_PATHPIPE_RESOLVE] / all);
	if (s->kernel > 0)
		(void)printf(" (%.2f lists of paths were on the bus on average, %.2f in or before "
			     "a kernel)",
			     s->bus / all, s->kernel / all);
	(void)printf(", %.2f printed and wrote\n", s->busy[PFS_PATHPIPE_WRITE] / all);
}
