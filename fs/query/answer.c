/* SPDX-License-Identifier: MIT */
#include "fs/query/answer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"

#define MEMORY_MIN   ((size_t)64 << 10)
#define DIRECT	     ((size_t)64 << 10) /* so much at once goes to the file as it is, once there is one */
#define RESTARTS_MAX 8 /* the query promises one */

struct pfs_answer {
	char *data; /* what follows the file's bytes */
	size_t used, capacity, memory;
	uint64_t in_file;
	uint64_t limit;
	int fd; /* -1: no file yet */
};

int pfs_answer_create(struct pfs_answer **out, size_t memory, uint64_t limit)
{
	struct pfs_answer *answer = calloc(1, sizeof(*answer));

	*out = answer;
	if (!answer)
		return -ENOMEM;
	answer->fd = -1;
	answer->memory = PFS_MAX(memory, MEMORY_MIN);
	answer->limit = limit;
	return 0;
}

void pfs_answer_close(struct pfs_answer *answer)
{
	if (!answer)
		return;
	if (answer->fd >= 0)
		(void)close(answer->fd);
	free(answer->data);
	free(answer);
}

void pfs_answer_truncate(struct pfs_answer *answer)
{
	if (answer->fd >= 0)
		(void)close(answer->fd);
	answer->fd = -1;
	answer->in_file = 0;
	answer->used = 0;
}

uint64_t pfs_answer_size(const struct pfs_answer *answer)
{
	return answer->in_file + answer->used;
}

/* ---- the file ---- */

static int open_file(struct pfs_answer *answer)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	int n;

	if (!folder || !*folder)
		folder = "/tmp";
	answer->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (answer->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return answer->fd < 0 ? -errno : 0;
	/* Not all filesystems have files without a name. */
	n = snprintf(path, sizeof(path), "%s/primefs-XXXXXX", folder);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	answer->fd = mkostemp(path, O_CLOEXEC);
	if (answer->fd < 0)
		return -errno;
	(void)unlink(path);
	return 0;
}

static int write_file(struct pfs_answer *answer, const char *bytes, size_t size)
{
	int error = answer->fd < 0 ? open_file(answer) : 0;

	while (!error && size) {
		ssize_t n = pwrite(answer->fd, bytes, size, (off_t)answer->in_file);

		if (n < 0) {
			error = errno == EINTR ? 0 : -errno;
			continue;
		}
		answer->in_file += (uint64_t)n;
		bytes += n;
		size -= (size_t)n;
	}
	if (error)
		pfs_warning("temporary file for an answer: %s", strerror(-error));
	return error;
}

static int empty_memory(struct pfs_answer *answer)
{
	size_t used = answer->used;

	answer->used = 0;
	return write_file(answer, answer->data, used);
}

int pfs_answer_write(void *arg, const void *bytes, size_t size)
{
	struct pfs_answer *answer = arg;

	if (answer->limit && size > answer->limit - PFS_MIN(answer->limit, pfs_answer_size(answer)))
		return -EFBIG;
	if (size > answer->memory - answer->used)
		PFS_TRY(empty_memory(answer));
	if (!answer->used && size > (answer->in_file ? DIRECT : answer->memory))
		return write_file(answer, bytes, size);
	PFS_TRY(pfs_grow(&answer->data, &answer->capacity, answer->used + size, 1));
	if (size)
		memcpy(answer->data + answer->used, bytes, size);
	answer->used += size;
	return 0;
}

ssize_t pfs_answer_read(const struct pfs_answer *answer, void *data, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size && offset < answer->in_file) {
		size_t wanted = (size_t)PFS_MIN((uint64_t)(size - done), answer->in_file - offset);
		ssize_t n = pread(answer->fd, (char *)data + done, wanted, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
		offset += (uint64_t)n;
	}
	if (done < size && offset - answer->in_file < answer->used) {
		size_t from = (size_t)(offset - answer->in_file);
		size_t n = PFS_MIN(size - done, answer->used - from);

		memcpy((char *)data + done, answer->data + from, n);
		done += n;
	}
	return (ssize_t)done;
}

/* ---- running ---- */

/* NOLINTNEXTLINE(readability-function-size): those of pfs_query_start, and where the rows go */
int pfs_answer_run(struct pfs_answer *answer, struct pfs_queries *queries,
		   const struct pfs_query_scope *scope, const char *sql, size_t len,
		   enum pfs_format format, const struct pfs_cancel *cancel,
		   struct pfs_query_error *error)
{
	struct pfs_sink sink = {answer, pfs_answer_write};
	struct pfs_query *query;
	unsigned tries = 0;
	int rc;

	PFS_TRY(pfs_query_start(&query, queries, scope, sql, len, error));
	if (cancel)
		cancel->running(cancel->arg, query);
	do {
		pfs_answer_truncate(answer);
		rc = pfs_format_rows(query, format, &sink, error);
	} while (rc == -EAGAIN && ++tries < RESTARTS_MAX);
	if (cancel)
		cancel->running(cancel->arg, NULL);
	pfs_query_finish(query);
	if (rc)
		pfs_answer_truncate(answer);
	return rc;
}
