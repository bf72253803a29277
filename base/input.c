/* SPDX-License-Identifier: MIT */
#include "base/input.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/temporary.h"

#define STEP_MAX ((size_t)1 << 20)
/* Bytes that are read after a jump, a power of two: more if several records are read there, fewer
 * if one is. */
#define JUMP_MIN   ((size_t)1 << 10)
#define JUMP_FIRST ((size_t)16 << 10)
#define JUMP_MAX   ((size_t)64 << 10)

int pfs_input_open(struct pfs_input_stream *input, const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	struct stat attr;

	*input = (struct pfs_input_stream){
		.name = standard ? "standard input" : path,
		.fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY),
		.kept_fd = -1,
		.step = STEP_MAX,
	};
	if (input->fd < 0 || fstat(input->fd, &attr) < 0)
		return -errno;
	if (S_ISDIR(attr.st_mode))
		return -EISDIR;
	/* Standard input may begin in the middle of a file. */
	input->regular = S_ISREG(attr.st_mode) && lseek(input->fd, 0, SEEK_CUR) == 0;
	if (input->regular)
		(void)posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

int pfs_input_open_memory(struct pfs_input_stream *input, const void *data, size_t size)
{
	*input = (struct pfs_input_stream){
		.name = "memory",
		.fd = -1,
		.kept_fd = -1,
		.regular = true,
		.end = true,
		.size = size,
		.capacity = size,
		.buffer = malloc(size + 1),
	};
	if (!input->buffer)
		return -ENOMEM;
	if (size)
		(void)memcpy(input->buffer, data, size);
	return 0;
}

void pfs_input_open_made(struct pfs_input_stream *input, const char *name,
			 const struct pfs_input_maker *maker, void *made_of)
{
	*input = (struct pfs_input_stream){
		.name = name,
		.fd = -1,
		.kept_fd = -1,
		.step = STEP_MAX,
		.maker = maker,
		.made_of = made_of,
	};
}

void pfs_input_close(struct pfs_input_stream *input)
{
	if (input->maker)
		input->maker->close(input->made_of);
	if (input->fd > STDIN_FILENO)
		(void)close(input->fd);
	if (input->kept_fd >= 0)
		(void)close(input->kept_fd);
	free(input->buffer);
	*input = (struct pfs_input_stream){.fd = -1, .kept_fd = -1};
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int pfs_input_keep(struct pfs_input_stream *input)
{
	if (input->regular || input->kept_fd >= 0)
		return 0;
	if (input->offset)
		return -ESPIPE;
	input->kept_fd = pfs_temporary_descriptor();
	if (input->kept_fd < 0)
		return input->kept_fd;
	return write_all(input->kept_fd, input->buffer, input->size);
}

/* A pipe has been read completely; from now on its copy is read as any file. */
static void turn_to_kept(struct pfs_input_stream *input)
{
	if (input->fd > STDIN_FILENO)
		(void)close(input->fd);
	input->fd = input->kept_fd;
	input->kept_fd = -1;
	input->regular = true;
}

/* Reads at the offset or, with -1, at the file's own position. */
static ssize_t read_file(struct pfs_input_stream *input, char *to, size_t room, off_t at)
{
	ssize_t n;

	do {
		n = at >= 0 ? pread(input->fd, to, room, at) : read(input->fd, to, room);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Appends to the buffer, which has room. */
static int fill(struct pfs_input_stream *input)
{
	bool again = input->regular;
	uint64_t at = input->offset + input->size;
	char *to = input->buffer + input->size;
	size_t room = PFS_MIN(input->capacity - input->size, input->step);
	ssize_t n;

	n = again || !input->maker ? read_file(input, to, room, again ? (off_t)at : -1)
				   : input->maker->read(input->made_of, &input->why, to, room);
	if (n < 0)
		return (int)n;
	if (!again && input->kept_fd >= 0)
		PFS_TRY(write_all(input->kept_fd, to, (size_t)n));
	input->end = n == 0;
	input->size += (size_t)n;
	input->step = PFS_MIN(input->step * 2, STEP_MAX);
	return 0;
}

ssize_t pfs_input_need(struct pfs_input_stream *input, size_t wanted)
{
	while (input->size - input->next < wanted && !input->end) {
		int error;

		if (input->next && (input->next == input->size ||
				    input->capacity - input->size < input->step / 2)) {
			(void)memmove(input->buffer, input->buffer + input->next,
				      input->size - input->next);
			input->offset += input->next;
			input->size -= input->next;
			input->next = 0;
		}
		error = pfs_grow(&input->buffer, &input->capacity,
				 PFS_MAX(input->size + input->step / 2, wanted + 1), 1);
		if (!error)
			error = fill(input);
		if (error)
			return error;
	}
	return (ssize_t)(input->size - input->next);
}

int pfs_input_keep_all(struct pfs_input_stream *input)
{
	uint64_t place = pfs_input_tell(input);

	if (input->regular)
		return 0;
	PFS_TRY(pfs_input_keep(input));
	while (!input->end) {
		ssize_t n = pfs_input_need(input, input->size - input->next + 1);

		if (n < 0)
			return (int)n;
		input->next = input->size;
	}
	turn_to_kept(input);
	return pfs_input_seek(input, place);
}

uint64_t pfs_input_tell(const struct pfs_input_stream *input)
{
	return input->offset + input->next;
}

/* A program that jumps often jumps to a place near by, and as often back as forward: so bytes
 * before the place are read, too. */
static int jump(struct pfs_input_stream *input, uint64_t offset)
{
	size_t before;
	ssize_t n;

	if (!input->jump)
		input->jump = JUMP_FIRST;
	else if (input->records > 1)
		input->jump = PFS_MIN(input->jump * 2, JUMP_MAX);
	else
		input->jump = PFS_MAX(input->jump / 2, JUMP_MIN);
	input->records = 0;
	input->step = input->jump;
	input->end = false;
	before = offset % input->jump;
	input->offset = offset - before;
	input->next = input->size = 0;
	n = before ? pfs_input_need(input, before) : 0;
	if (n < 0)
		return (int)n;
	if ((size_t)n >= before) {
		input->next = before;
	} else { /* behind the end */
		input->offset = offset;
		input->size = 0;
	}
	return 0;
}

int pfs_input_seek(struct pfs_input_stream *input, uint64_t offset)
{
	if (offset >= input->offset && offset <= input->offset + input->size) {
		input->next = (size_t)(offset - input->offset);
		return 0;
	}
	if (input->fd < 0 && !input->maker)
		return -EINVAL;
	if (!input->regular) {
		if (input->kept_fd < 0 || !input->end)
			return -ESPIPE;
		turn_to_kept(input);
	}
	return jump(input, offset);
}

int pfs_input_record(struct pfs_input_stream *input, const char **record, size_t *len,
		     char delimiter)
{
	size_t seen = 0;

	for (;;) {
		size_t size = input->size - input->next;
		const char *start = input->buffer + input->next;
		const char *end = size > seen ? memchr(start + seen, delimiter, size - seen) : NULL;
		ssize_t n;

		if (end || (input->end && size)) {
			*record = start;
			*len = end ? (size_t)(end - start) : size;
			input->next += *len + (end != NULL);
			input->records++;
			return 1;
		}
		if (input->end)
			return 0;
		if (size > PFS_INPUT_RECORD_MAX)
			return -EMSGSIZE;
		seen = size;
		n = pfs_input_need(input, size + 1);
		if (n < 0)
			return (int)n;
	}
}
