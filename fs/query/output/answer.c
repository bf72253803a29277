/* SPDX-License-Identifier: MIT */
#include "fs/query/output/answer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/temporary.h"
#include "fs/query/output/answer_memory.h"

#define MEMORY_MIN   ((size_t)64 << 10)
#define LEND_MIN     ((size_t)1 << 20) /* less is copied: chunks are to be filled */

/* Who writes alone changes what the lock protects, and looks at it without. */
struct pfs_answer {
	pthread_mutex_t lock;
	struct pfs_answer_memory memory; /* what comes first; protected by lock */
	_Atomic uint64_t made;	  /* bytes in all; grows with the lock, after what they are in */
	_Atomic uint64_t in_file; /* of them, behind those in memory, which are not added to from
				     then on; the same */
	_Atomic bool is_growing;
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
	(void)pthread_mutex_init(&answer->lock, NULL);
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
	(void)pthread_mutex_destroy(&answer->lock);
	free(answer);
}

void pfs_answer_truncate(struct pfs_answer *answer)
{
	pfs_stream_close(answer->stream);
	answer->stream = NULL;
	pfs_temporary_close(&answer->file);
	answer->in_file = answer->made = 0;
	pfs_answer_memory_clear(&answer->memory);
}

uint64_t pfs_answer_size(const struct pfs_answer *answer)
{
	uint64_t size;

	if (answer->stream)
		return pfs_stream_size(answer->stream, &size) ? size : 0;
	return answer->is_growing ? 0 : answer->made;
}

void pfs_answer_set_growing(struct pfs_answer *answer, bool is_growing)
{
	answer->is_growing = is_growing;
}

uint64_t pfs_answer_made(const struct pfs_answer *answer)
{
	return answer->made;
}

bool pfs_answer_is_in_file(const struct pfs_answer *answer)
{
	return answer->in_file != 0;
}

int pfs_answer_set_stream(struct pfs_answer *answer, struct pfs_stream *stream,
			  const struct pfs_stream_wait *wait)
{
	answer->stream = stream;
	return pfs_stream_begin(stream, wait);
}

bool pfs_answer_is_stream(const struct pfs_answer *answer)
{
	return answer->stream;
}

bool pfs_answer_is_complete(const struct pfs_answer *answer)
{
	uint64_t size;

	return answer->stream ? pfs_stream_size(answer->stream, &size) : !answer->is_growing;
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
		PFS_LOCKED(&answer->lock);
		answer->in_file += (uint64_t)n;
		answer->made += (uint64_t)n;
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
	return answer->limit && size > answer->limit - PFS_MIN(answer->limit, answer->made) ? -EFBIG
											    : 0;
}

/* Returns how many of the bytes memory has taken. */
static size_t write_memory(struct pfs_answer *answer, const char *bytes, size_t size)
{
	size_t done = 0, n = 1;
	PFS_LOCKED(&answer->lock);

	while (done < size && n) {
		n = pfs_answer_memory_copy(&answer->memory, bytes + done, size - done);
		done += n;
	}
	answer->made += done;
	return done;
}

int pfs_answer_write(void *arg, const void *bytes, size_t size)
{
	struct pfs_answer *answer = arg;
	size_t done;

	PFS_TRY(check_limit(answer, size));
	done = answer->in_file ? 0 : write_memory(answer, bytes, size);
	return done < size ? write_file(answer, (const char *)bytes + done, size - done) : 0;
}

char *pfs_answer_lend(struct pfs_answer *answer)
{
	bool is_large = answer->made >= LEND_MIN;

	return is_large && !answer->in_file ? pfs_answer_memory_lend(&answer->memory) : NULL;
}

static int add_memory(struct pfs_answer *answer, const char *bytes, size_t size)
{
	PFS_LOCKED(&answer->lock);

	PFS_TRY(pfs_answer_memory_add(&answer->memory, bytes, size));
	answer->made += size;
	return 0;
}

int pfs_answer_add(struct pfs_answer *answer, const char *bytes, size_t size)
{
	PFS_TRY(check_limit(answer, size));
	if (answer->in_file)
		return write_file(answer, bytes, size);
	return size ? add_memory(answer, bytes, size) : 0;
}

const char *pfs_answer_view(const struct pfs_answer *answer, size_t *size, uint64_t offset)
{
	return pfs_answer_memory_view(&answer->memory, size, offset);
}

/* Some of the bytes, if they are in memory, *in_memory of which there are; else 0. */
static size_t copy_kept(struct pfs_answer *answer, char *data, size_t size, uint64_t offset,
			uint64_t *in_memory)
{
	const char *kept;
	PFS_LOCKED(&answer->lock);

	*in_memory = answer->memory.size;
	kept = pfs_answer_memory_view(&answer->memory, &size, offset);
	if (!kept)
		return 0;
	memcpy(data, kept, size);
	return size;
}

ssize_t pfs_answer_read(struct pfs_answer *answer, void *data, size_t size, uint64_t offset)
{
	uint64_t end = answer->made, in_memory;
	size_t done = 0;

	size = offset < end ? (size_t)PFS_MIN((uint64_t)size, end - offset) : 0;
	while (done < size) {
		char *to = (char *)data + done;
		ssize_t n = (ssize_t)copy_kept(answer, to, size - done, offset, &in_memory);

		if (!n)
			n = pread(answer->file.fd, to, size - done, (off_t)(offset - in_memory));
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

void pfs_answer_measure_some(const struct pfs_answer *answer)
{
	if (answer->stream)
		pfs_stream_measure_some(answer->stream);
}

ssize_t pfs_answer_read_there(struct pfs_answer *answer, void *data, size_t size, uint64_t offset)
{
	return answer->stream ? pfs_stream_read_kept(answer->stream, data, size, offset)
			      : pfs_answer_read(answer, data, size, offset);
}

ssize_t pfs_answer_read_while(struct pfs_answer *answer, void *data, size_t size,
			      uint64_t offset, const struct pfs_stream_wait *wait)
{
	return answer->stream ? pfs_stream_read(answer->stream, data, size, offset, wait)
			      : pfs_answer_read(answer, data, size, offset);
}
