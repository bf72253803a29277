/* SPDX-License-Identifier: MIT */
#include "tools/import/import_archive.h"

#include <string.h>

#include "tools/import/import_recognise.h"

#define TAR_MAGIC 257 /* where it lies in a tar file's first block */

/* The commonest archives, so that reading one can say what is missing. */
static bool is_common(const void *data, size_t size)
{
	return (size > TAR_MAGIC + 5 && memcmp((const char *)data + TAR_MAGIC, "ustar", 5) == 0) ||
	       (size > 4 && (memcmp(data, "\x1f\x8b", 2) == 0 || memcmp(data, "PK\3\4", 4) == 0 ||
			     memcmp(data, "\xfd\67zXZ", 5) == 0));
}

#if PFS_ARCHIVE

#include "tools/archive.h"

/* All formats but mtree, which lists files without having them, and takes many a text for its own.
 */
static struct archive *new_archive(void)
{
	int (*const support[])(struct archive *) = {
		pfs_archive.read_support_filter_all,  pfs_archive.read_support_format_tar,
		pfs_archive.read_support_format_cpio, pfs_archive.read_support_format_zip,
		pfs_archive.read_support_format_7zip, pfs_archive.read_support_format_ar,
		pfs_archive.read_support_format_cab,  pfs_archive.read_support_format_lha,
		pfs_archive.read_support_format_rar,  pfs_archive.read_support_format_rar5,
		pfs_archive.read_support_format_xar,  pfs_archive.read_support_format_iso9660,
		pfs_archive.read_support_format_warc, pfs_archive.read_support_format_empty,
	};
	struct archive *archive = pfs_archive.read_new();
	size_t i;

	for (i = 0; archive && i < PFS_COUNT(support); i++)
		/* a format that this libarchive was built without is a warning */
		if (support[i](archive) == ARCHIVE_FATAL) {
			(void)pfs_archive.read_free(archive);
			archive = NULL;
		}
	return archive;
}

/* Their directories are at the end: libarchive has to go to and fro in them. */
static bool needs_seeking(const void *data, size_t size)
{
	static const char *const heads[] = {"7z\xbc\xaf\x27\x1c", "MSCF", "xar!", "Rar!", "PK"};
	size_t i;

	for (i = 0; i < PFS_COUNT(heads); i++)
		if (size > strlen(heads[i]) && memcmp(data, heads[i], strlen(heads[i])) == 0)
			return true;
	return false;
}

bool pfs_looks_like_archive(const void *data, size_t size)
{
	struct archive_entry *entry;
	struct archive *archive;
	bool known = needs_seeking(data, size) && memchr(data, 0, size);

	if (pfs_archive_load(NULL))
		return is_common(data, size);
	archive = new_archive();
	if (archive && !known && pfs_archive.read_open_memory(archive, data, size) >= ARCHIVE_WARN)
		/* compressed: what is inside may begin beyond the bytes at hand */
		known = pfs_archive.filter_code(archive, 0) != ARCHIVE_FILTER_NONE ||
			(pfs_archive.read_next_header(archive, &entry) >= ARCHIVE_WARN &&
			 pfs_archive.format(archive) != ARCHIVE_FORMAT_EMPTY);
	if (archive)
		(void)pfs_archive.read_free(archive);
	return known;
}

static la_ssize_t read_more(struct archive *archive, void *arg, const void **data)
{
	struct pfs_input_stream *input = arg;
	ssize_t n = pfs_input_need(input, 1);

	if (n < 0) {
		pfs_archive.set_error(archive, (int)-n, "%s", strerror((int)-n));
		return -1;
	}
	*data = input->buffer + input->next;
	input->next = input->size;
	return n;
}

static la_int64_t seek_to(struct archive *archive PFS_UNUSED, void *arg, la_int64_t offset,
			  int whence)
{
	struct pfs_input_stream *input = arg;
	off_t size = lseek(input->fd, 0, SEEK_END);

	if (size < 0)
		return ARCHIVE_FATAL;
	if (whence == SEEK_CUR)
		offset += (la_int64_t)pfs_input_tell(input);
	else if (whence == SEEK_END)
		offset += size;
	if (offset < 0 || pfs_input_seek(input, (uint64_t)offset) != 0)
		return ARCHIVE_FATAL;
	return offset;
}

static int open_input(struct pfs_import *import)
{
	struct pfs_input_stream *input = &import->input;
	ssize_t n = pfs_input_need(input, 8);
	int error = n < 0 ? (int)n : 0;

	if (!error && needs_seeking(input->buffer + input->next, (size_t)n)) {
		PFS_TRY(pfs_import_keep(import));
		error = pfs_input_keep_all(input);
	}
	return error ? pfs_import_unreadable(import, error) : 0;
}

int pfs_archive_open(struct archive **opened, struct pfs_import *import)
{
	struct archive *archive;
	const char *reason;

	*opened = NULL;
	if (pfs_archive_load(&reason))
		return pfs_import_fail(import,
				       "%s: %s; unpack the archive and import the directory",
				       import->input.name, reason);
	PFS_TRY(open_input(import));
	archive = *opened = new_archive();
	if (!archive)
		return -ENOMEM;
	(void)pfs_archive.read_set_callback_data(archive, &import->input);
	(void)pfs_archive.read_set_read_callback(archive, read_more);
	if (import->input.regular)
		(void)pfs_archive.read_set_seek_callback(archive, seek_to);
	if (pfs_archive.read_open1(archive) < ARCHIVE_WARN)
		return pfs_import_fail(import, "%s: %s", import->input.name,
				       pfs_archive.error_string(archive));
	return 0;
}

#else

bool pfs_looks_like_archive(const void *data, size_t size)
{
	return is_common(data, size);
}

#endif
