/* SPDX-License-Identifier: MIT */
#include "tools/import/unpack.h"

#include <stdlib.h>
#include <string.h>

#include "tools/archive.h"
#include "tools/import/gzip.h"

static bool is_packed(const void *data, size_t size)
{
	static const struct {
		const char *bytes;
		size_t n;
	} heads[] = {
		{"\x1f\x8b\x08", 3},		 /* gzip */
		{"\x1f\x9d", 2},		 /* compress */
		{"\xfd\x37zXZ\0", 6},		 /* xz */
		{"\x5d\0\0", 3},		 /* lzma */
		{"LZIP\1", 5},			 /* lzip */
		{"\x28\xb5\x2f\xfd", 4},	 /* zstd */
		{"\x04\x22\x4d\x18", 4},	 /* lz4 */
	};
	const char *at = data;
	size_t i;

	for (i = 0; i < PFS_COUNT(heads); i++)
		if (size > heads[i].n && memcmp(data, heads[i].bytes, heads[i].n) == 0)
			return true;
	/* bzip2: BZh, a digit, and what a block or the end of none begins with */
	return size > 10 && memcmp(at, "BZh", 3) == 0 && at[3] >= '1' && at[3] <= '9' &&
	       (memcmp(at + 4, "1AY&SY", 6) == 0 ||
		memcmp(at + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

#if PFS_ARCHIVE

struct packed {
	struct pfs_input_stream input;
	struct archive *archive;
	struct pfs_gzip_check gzip;
	bool empty;
};

static la_ssize_t read_packed(struct archive *archive, void *arg, const void **data)
{
	struct packed *packed = arg;
	struct pfs_input_stream *input = &packed->input;
	ssize_t n = pfs_input_need(input, 1);

	if (n < 0) {
		pfs_archive.set_error(archive, (int)-n, "%s", strerror((int)-n));
		return -1;
	}
	*data = input->buffer + input->next;
	pfs_gzip_packed(&packed->gzip, *data, (size_t)n);
	input->next = input->size;
	return n;
}

/* What comes after the end of what was packed has not been read. */
static bool is_checked(struct packed *packed)
{
	const void *rest;

	while (read_packed(packed->archive, packed, &rest) > 0)
		;
	return pfs_gzip_is_right(&packed->gzip);
}

static const char *reason(struct archive *archive)
{
	const char *why = archive ? pfs_archive.error_string(archive) : NULL;

	return why ? why : "it is damaged, or ends early";
}

static ssize_t read_unpacked(void *made_of, const char **why, char *to, size_t room)
{
	struct packed *packed = made_of;
	la_ssize_t n = packed->empty ? 0 : pfs_archive.read_data(packed->archive, to, room);

	if (n > 0)
		pfs_gzip_unpacked(&packed->gzip, to, (size_t)n);
	if (n > 0 || (n == 0 && is_checked(packed)))
		return n;
	*why = n < 0 ? reason(packed->archive)
		     : "it is damaged: what it unpacks to is not what its checksum is of";
	return -EIO;
}

static void close_packed(void *made_of)
{
	struct packed *packed = made_of;

	if (packed->archive)
		(void)pfs_archive.read_free(packed->archive);
	pfs_input_close(&packed->input);
	free(packed);
}

static const struct pfs_input_maker unpacker = {.read = read_unpacked, .close = close_packed};

/* As an archive of one entry, the raw format's, or of none. */
static int open_packed(struct packed *packed, const char **why)
{
	struct archive_entry *entry;
	struct archive *archive = packed->archive = pfs_archive.read_new();
	int got = ARCHIVE_FATAL;

	if (!archive || pfs_archive.read_support_filter_all(archive) == ARCHIVE_FATAL ||
	    pfs_archive.read_support_format_raw(archive) == ARCHIVE_FATAL ||
	    pfs_archive.read_support_format_empty(archive) == ARCHIVE_FATAL)
		return -ENOMEM;
	(void)pfs_archive.read_set_callback_data(archive, packed);
	(void)pfs_archive.read_set_read_callback(archive, read_packed);
	if (pfs_archive.read_open1(archive) >= ARCHIVE_WARN)
		got = pfs_archive.read_next_header(archive, &entry);
	packed->empty = got == ARCHIVE_EOF;
	if (got >= ARCHIVE_WARN)
		return 0;
	*why = reason(archive);
	return -EIO;
}

static int unpack(struct pfs_input_stream *input)
{
	struct packed *packed;
	const char *why = NULL;
	int error;

	if (pfs_archive_load(&input->why))
		return -ENOTSUP;
	packed = calloc(1, sizeof(*packed));
	if (!packed)
		return -ENOMEM;
	packed->input = *input;
	pfs_gzip_begin(&packed->gzip);
	error = open_packed(packed, &why);
	pfs_input_open_made(input, packed->input.name, &unpacker, packed);
	input->why = why;
	return error;
}

#else

static int unpack(struct pfs_input_stream *input)
{
	input->why = "built without libarchive, which reads compressed files; decompress it first";
	return -ENOTSUP;
}

#endif

int pfs_unpack(struct pfs_input_stream *input)
{
	ssize_t n = pfs_input_need(input, 1);

	/* a list that somebody types is not waited for */
	if (n > 0 && strchr("\x1f\xfd\x5dL\x28\x04" "B", input->buffer[input->next]))
		n = pfs_input_need(input, 16);
	if (n < 0)
		return (int)n;
	return is_packed(input->buffer + input->next, (size_t)n) ? unpack(input) : 0;
}
