/* SPDX-License-Identifier: MIT */
#include "fs/query/output/answer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/temporary.h"
#include "fs/query/output/answer_memory.h"
#include "fs/query/output/format.h"

#define MEMORY_MIN   ((size_t)64 << 10)
#define LEND_MIN     ((size_t)1 << 20) /* less is copied: chunks are to be filled */
#define RESTARTS_MAX 8 /* the query promises one */

struct pfs_answer {
	struct pfs_answer_memory memory; /* what comes first */
	uint64_t in_file;     /* the rest */
	uint64_t limit;
	struct pfs_temporary file; /* not open: no file yet */
	struct pfs_stream *stream; /* NULL: it is written */
	atomic_uint refs;
};

int pfs_answer_create(struct pfs_answer **out, size_t memory, uint64_t limit)
{
	struct pfs_answer *answer = calloc(1, sizeof(*answer));

	*out = answer;
	if (!answer)
		return -ENOMEM;
	pfs_answer_memory_init(&answer->memory, PFS_MAX(memory, MEMORY_MIN));
	answer->file.fd = -1;
	answer->refs = 1;
	answer->limit = limit;
	return 0;
}

void pfs_answer_keep_more(struct pfs_answer *answer)
{
	answer->memory.may_grow = true;
}

struct pfs_answer *pfs_answer_ref(struct pfs_answer *answer)
{
	(void)atomic_fetch_add_explicit(&answer->refs, 1, memory_order_relaxed);
	return answer;
}

void pfs_answer_close(struct pfs_answer *answer)
{
	if (!answer || atomic_fetch_sub(&answer->refs, 1) != 1)
		return;
	pfs_answer_truncate(answer);
	pfs_answer_memory_finish(&answer->memory);
	free(answer);
}

void pfs_answer_truncate(struct pfs_answer *answer)
{
	pfs_stream_close(answer->stream);
	answer->stream = NULL;
	pfs_temporary_close(&answer->file);
	answer->in_file = 0;
	pfs_answer_memory_clear(&answer->memory);
}

uint64_t pfs_answer_size(const struct pfs_answer *answer)
{
	uint64_t size;

	if (answer->stream)
		return pfs_stream_size(answer->stream, &size) ? size : 0;
	return answer->memory.size + answer->in_file;
}

int pfs_answer_set_stream(struct pfs_answer *answer, struct pfs_stream *stream,
			  const struct pfs_stream_wait *wait)
{
	answer->stream = stream;
	return pfs_stream_begin(stream, wait);
}

bool pfs_answer_is_complete(const struct pfs_answer *answer)
{
	uint64_t size;

	return !answer->stream || pfs_stream_size(answer->stream, &size);
}

/* ---- the file ---- */

static int write_file(struct pfs_answer *answer, const char *bytes, size_t size)
{
	int error = answer->file.fd < 0 ? pfs_temporary_open(&answer->file) : 0;

	if (!error)
		error = pfs_temporary_grow(&answer->file, answer->in_file + size);
	while (!error && size) {
		ssize_t n = pwrite(answer->file.fd, bytes, size, (off_t)answer->in_file);

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

/* ---- writing and reading ---- */

static int check_limit(const struct pfs_answer *answer, size_t size)
{
	uint64_t has = pfs_answer_size(answer);

	return answer->limit && size > answer->limit - PFS_MIN(answer->limit, has) ? -EFBIG : 0;
}

int pfs_answer_write(void *arg, const void *bytes, size_t size)
{
	struct pfs_answer *answer = arg;
	const char *from = bytes;

	PFS_TRY(check_limit(answer, size));
	while (size && !answer->in_file) {
		size_t n = pfs_answer_memory_copy(&answer->memory, from, size);

		if (!n)
			break;
		from += n;
		size -= n;
	}
	return size ? write_file(answer, from, size) : 0;
}

char *pfs_answer_lend(struct pfs_answer *answer)
{
	bool is_large = pfs_answer_size(answer) >= LEND_MIN;

	return is_large && !answer->in_file ? pfs_answer_memory_lend(&answer->memory) : NULL;
}

int pfs_answer_add(struct pfs_answer *answer, const char *bytes, size_t size)
{
	PFS_TRY(check_limit(answer, size));
	if (answer->in_file)
		return write_file(answer, bytes, size);
	return size ? pfs_answer_memory_add(&answer->memory, bytes, size) : 0;
}

const char *pfs_answer_view(const struct pfs_answer *answer, size_t *size, uint64_t offset)
{
	return pfs_answer_memory_view(&answer->memory, size, offset);
}

ssize_t pfs_answer_read(const struct pfs_answer *answer, void *data, size_t size, uint64_t offset)
{
	uint64_t in_memory = answer->memory.size, end = pfs_answer_size(answer);
	size_t done = 0;

	size = offset < end ? (size_t)PFS_MIN((uint64_t)size, end - offset) : 0;
	while (done < size) {
		size_t some = size - done;
		const char *kept = pfs_answer_view(answer, &some, offset);
		ssize_t n = (ssize_t)some;

		if (kept)
			memcpy((char *)data + done, kept, some);
		else
			n = pread(answer->file.fd, (char *)data + done, some,
				  (off_t)(offset - in_memory));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
		offset += (uint64_t)n;
	}
	return (ssize_t)done;
}

int pfs_answer_measure(const struct pfs_answer *answer, const struct pfs_stream_wait *wait)
{
	return answer->stream ? pfs_stream_measure(answer->stream, wait) : 0;
}

ssize_t pfs_answer_read_while(const struct pfs_answer *answer, void *data, size_t size,
			      uint64_t offset, const struct pfs_stream_wait *wait)
{
	return answer->stream ? pfs_stream_read(answer->stream, data, size, offset, wait)
			      : pfs_answer_read(answer, data, size, offset);
}

/* ---- running ---- */

/* NOLINTNEXTLINE(readability-function-size): those of pfs_query_start, and where the rows go */
int pfs_answer_run(struct pfs_answer *answer, struct pfs_queries *queries,
		   const struct pfs_query_scope *scope, const char *sql, size_t len,
		   enum pfs_format format, const struct pfs_cancel *cancel,
		   struct pfs_query_error *error)
{
	struct pfs_query *query;
	unsigned tries = 0;
	int rc;

	PFS_TRY(pfs_query_start(&query, queries, scope, sql, len, error));
	if (cancel)
		cancel->running(cancel->arg, query);
	do {
		pfs_answer_truncate(answer);
		rc = pfs_format_answer(query, format, answer, error);
	} while (rc == -EAGAIN && ++tries < RESTARTS_MAX);
	if (cancel)
		cancel->running(cancel->arg, NULL);
	pfs_query_finish(query);
	if (rc)
		pfs_answer_truncate(answer);
	return rc;
}
