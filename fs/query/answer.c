/* SPDX-License-Identifier: MIT */
#include "fs/query/answer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"

#define MEMORY_MIN   ((size_t)64 << 10)
#define CHUNK	     ((size_t)2 << 20) /* a huge page: one fault in place of 512 */
#define BUDGET_PART  32 /* that much of the machine's memory, for all answers together, */
#define BUDGET_MAX   ((uint64_t)512 << 20) /* at most */
#define RESTARTS_MAX 8 /* the query promises one */

/* First come the bytes of head, which grows, then those of chunks, which stay where they are, then those
 * of the file. */
struct pfs_answer {
	char *head;
	size_t in_head, capacity, head_max;
	char **chunks;
	size_t n_chunks, chunks_capacity;
	uint64_t in_chunks, in_file;
	size_t memory;
	bool may_grow;
	uint64_t taken; /* of the budget */
	uint64_t limit;
	int fd; /* -1: no file yet */
	atomic_uint refs;
};

/* ---- the budget ---- */

static _Atomic uint64_t budget_taken;
static _Atomic uint64_t budget; /* 0: not known yet */

static uint64_t budget_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || size <= 0)
		return 1;
	return PFS_MIN((uint64_t)pages * (uint64_t)size / BUDGET_PART, BUDGET_MAX);
}

void pfs_answers_set_budget(uint64_t bytes)
{
	atomic_store(&budget, bytes);
}

uint64_t pfs_answers_taken(void)
{
	return atomic_load(&budget_taken);
}

static bool take(struct pfs_answer *answer, uint64_t bytes)
{
	uint64_t all = atomic_load_explicit(&budget, memory_order_relaxed);

	if (!all) {
		all = budget_of_machine();
		atomic_store(&budget, all);
	}
	if (atomic_fetch_add(&budget_taken, bytes) + bytes > all) {
		(void)atomic_fetch_sub(&budget_taken, bytes);
		return false;
	}
	answer->taken += bytes;
	return true;
}

static void give_back(struct pfs_answer *answer)
{
	(void)atomic_fetch_sub(&budget_taken, answer->taken);
	answer->taken = 0;
}

/* ---- chunks ---- */

/* Aligned to its size.  NULL: no memory. */
static char *map_chunk(void)
{
	char *pages = mmap(NULL, 2 * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	size_t before;

	if (pages == MAP_FAILED)
		return NULL;
	before = (CHUNK - (uintptr_t)pages % CHUNK) % CHUNK;
	if (before)
		(void)munmap(pages, before);
	(void)munmap(pages + before + CHUNK, CHUNK - before);
	(void)madvise(pages + before, CHUNK, MADV_HUGEPAGE); /* a kernel without them has none */
	return pages + before;
}

/* False: what follows is for the file. */
static bool add_chunk(struct pfs_answer *answer)
{
	bool free_of_charge = answer->in_head + answer->in_chunks + CHUNK <= answer->memory;
	char *chunk;

	if (pfs_grow(&answer->chunks, &answer->chunks_capacity, answer->n_chunks + 1,
		     sizeof(*answer->chunks)) ||
	    (!free_of_charge && (!answer->may_grow || !take(answer, CHUNK))))
		return false;
	chunk = map_chunk();
	if (!chunk)
		return false;
	answer->chunks[answer->n_chunks++] = chunk;
	return true;
}

static void drop_chunks(struct pfs_answer *answer)
{
	for (size_t i = 0; i < answer->n_chunks; i++)
		(void)munmap(answer->chunks[i], CHUNK);
	answer->n_chunks = 0;
	answer->in_chunks = 0;
	give_back(answer);
}

/* ---- answers ---- */

int pfs_answer_create(struct pfs_answer **out, size_t memory, uint64_t limit)
{
	struct pfs_answer *answer = calloc(1, sizeof(*answer));

	*out = answer;
	if (!answer)
		return -ENOMEM;
	answer->fd = -1;
	answer->refs = 1;
	answer->memory = PFS_MAX(memory, MEMORY_MIN);
	/* what is left of it is whole chunks */
	answer->head_max = answer->memory < 2 * CHUNK ? answer->memory
						      : CHUNK + answer->memory % CHUNK;
	answer->limit = limit;
	return 0;
}

void pfs_answer_keep_more(struct pfs_answer *answer)
{
	answer->may_grow = true;
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
	free(answer->chunks);
	free(answer->head);
	free(answer);
}

void pfs_answer_truncate(struct pfs_answer *answer)
{
	if (answer->fd >= 0)
		(void)close(answer->fd);
	answer->fd = -1;
	answer->in_file = 0;
	answer->in_head = 0;
	drop_chunks(answer);
}

uint64_t pfs_answer_size(const struct pfs_answer *answer)
{
	return answer->in_head + answer->in_chunks + answer->in_file;
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

/* ---- writing and reading ---- */

/* As much of it as the head, or a chunk, has room for; 0: memory has none. */
static size_t keep_some(struct pfs_answer *answer, const char *bytes, size_t size)
{
	size_t at = (size_t)(answer->in_chunks % CHUNK);
	size_t n = PFS_MIN(size, answer->head_max - answer->in_head);

	if (n && !answer->n_chunks &&
	    !pfs_grow(&answer->head, &answer->capacity, answer->in_head + n, 1)) {
		memcpy(answer->head + answer->in_head, bytes, n);
		answer->in_head += n;
		return n;
	}
	if (answer->in_chunks == answer->n_chunks * (uint64_t)CHUNK && !add_chunk(answer))
		return 0;
	n = PFS_MIN(size, CHUNK - at);
	memcpy(answer->chunks[answer->n_chunks - 1] + at, bytes, n);
	answer->in_chunks += n;
	return n;
}

int pfs_answer_write(void *arg, const void *bytes, size_t size)
{
	struct pfs_answer *answer = arg;
	const char *from = bytes;

	if (answer->limit && size > answer->limit - PFS_MIN(answer->limit, pfs_answer_size(answer)))
		return -EFBIG;
	while (size && !answer->in_file) {
		size_t n = keep_some(answer, from, size);

		if (!n)
			break;
		from += n;
		size -= n;
	}
	return size ? write_file(answer, from, size) : 0;
}

const char *pfs_answer_view(const struct pfs_answer *answer, size_t *size, uint64_t offset)
{
	uint64_t in_chunks;

	if (offset < answer->in_head) {
		*size = PFS_MIN(*size, answer->in_head - (size_t)offset);
		return answer->head + offset;
	}
	in_chunks = offset - answer->in_head;
	if (in_chunks >= answer->in_chunks)
		return NULL;
	*size = (size_t)PFS_MIN((uint64_t)*size, PFS_MIN(answer->in_chunks - in_chunks,
							 CHUNK - in_chunks % CHUNK));
	return answer->chunks[in_chunks / CHUNK] + in_chunks % CHUNK;
}

ssize_t pfs_answer_read(const struct pfs_answer *answer, void *data, size_t size, uint64_t offset)
{
	uint64_t in_memory = answer->in_head + answer->in_chunks, end = pfs_answer_size(answer);
	size_t done = 0;

	size = offset < end ? (size_t)PFS_MIN((uint64_t)size, end - offset) : 0;
	while (done < size) {
		size_t some = size - done;
		const char *kept = pfs_answer_view(answer, &some, offset);
		ssize_t n = (ssize_t)some;

		if (kept)
			memcpy((char *)data + done, kept, some);
		else
			n = pread(answer->fd, (char *)data + done, some,
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
