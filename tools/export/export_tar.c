/* SPDX-License-Identifier: MIT */
/* A tar archive (pax) with everything that a store knows of its nodes. */
#include "tools/export/export.h"

#if PFS_ARCHIVE

#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "meta/store.h"
#include "tools/archive.h"
#include "tools/cmd.h"

#define STEP ((size_t)1 << 20)

struct tar {
	struct pfs_export *to;
	struct archive *archive;
	struct archive_entry *entry;
	const struct pfs_walk_node *node;
	struct stat attr;
	char *path;
	size_t path_capacity;
	char bytes[STEP];
	char zeros[STEP];
	char list[PFS_ATTR_VALUE_MAX];
};

static int bad_output(struct tar *tar)
{
	errno = pfs_archive.error_number(tar->archive);
	if (pfs_export_out_failed(tar->to))
		return 1;
	return pfs_export_fail(tar->to, "writing the archive: %s",
			       pfs_archive.error_string(tar->archive));
}

/* Says that the content cannot be read; the entry is written without it. */
static void complain(struct tar *tar, int error)
{
	tar->to->left_out++;
	(void)pfs_export_fail(tar->to, "/%s: %s", tar->node->path,
			      error == -ENODATA	 ? "its content is not here; its entry is empty"
			      : error == -ESTALE ? "its original is gone; its entry is empty"
						 : strerror(-error));
}

static int add_attrs(struct tar *tar)
{
	uint64_t ino = tar->attr.st_ino;
	ssize_t size = pfs_tree_listxattr(tar->to->tree, tar->list, sizeof(tar->list), ino);
	const char *name;

	for (name = tar->list; size > 0 && name < tar->list + size; name += strlen(name) + 1) {
		ssize_t len =
			pfs_tree_getxattr(tar->to->tree, tar->bytes, sizeof(tar->bytes), ino, name);

		if (len < 0)
			return (int)len;
		pfs_archive.entry_xattr_add_entry(tar->entry, name, tar->bytes, (size_t)len);
	}
	return size < 0 && size != -EOPNOTSUPP && size != -EPERM ? (int)size : 0;
}

/* Tells where the data is, if there are holes. The entry's size is set. */
static int add_holes(struct tar *tar)
{
	struct pfs_tree *tree = tar->to->tree;
	int64_t at = 0, size = tar->attr.st_size;

	while (at < size) {
		int64_t data = pfs_tree_seek(tree, tar->attr.st_ino, at, SEEK_DATA), hole;

		if (data == -ENXIO && at == 0)
			/* all of it is a hole */
			pfs_archive.entry_sparse_add_entry(tar->entry, 0, 0);
		if (data == -ENXIO)
			return 0;
		hole = data < 0 ? data : pfs_tree_seek(tree, tar->attr.st_ino, data, SEEK_HOLE);
		if (hole < 0)
			return (int)hole;
		if (data == 0 && hole >= size)
			return 0; /* there are no holes */
		pfs_archive.entry_sparse_add_entry(tar->entry, data, PFS_MIN(hole, size) - data);
		at = hole;
	}
	return 0;
}

/* Writes all bytes in order, zeros for holes, which the format skips. */
static int write_content(struct tar *tar)
{
	int64_t at = 0, size = tar->attr.st_size, data = 0;

	while (at < size) {
		const char *from = tar->zeros;
		ssize_t len;

		if (at >= data)
			data = pfs_tree_seek(tar->to->tree, tar->attr.st_ino, at, SEEK_DATA);
		if (data < 0)
			data = size; /* a hole up to the end; what cannot be read is zeros, too */
		len = (ssize_t)PFS_MIN(size - at, (int64_t)STEP);
		if (data > at) {
			len = (ssize_t)PFS_MIN(data - at, (int64_t)len);
		} else {
			len = pfs_tree_read(tar->to->tree, tar->bytes, (size_t)len,
					    tar->attr.st_ino, at, 0);
			from = tar->bytes;
			data = at + PFS_MAX(len, 0);
		}
		if (len <= 0) {
			complain(tar, len ? (int)len : -EIO);
			return 0; /* libarchive fills the rest of the entry with zeros */
		}
		if (pfs_archive.write_data(tar->archive, from, (size_t)len) < 0)
			return bad_output(tar);
		at += len;
	}
	return 0;
}

static int set_content(struct tar *tar)
{
	struct pfs_entry entry = {.volatile_attr = false};
	bool ignored;
	int error = pfs_tree_open_file(tar->to->tree, &ignored, tar->attr.st_ino, O_RDONLY, false,
				       false);

	/* The original may have changed since the walk. */
	if (!error)
		error = pfs_tree_getattr(tar->to->tree, &entry, tar->attr.st_ino);
	if (!error) {
		tar->attr = entry.attr;
		if (tar->attr.st_size > 0 && pfs_tree_read(tar->to->tree, tar->bytes, 1,
							   tar->attr.st_ino, 0, 0) == -ENODATA)
			error = -ENODATA;
	}
	if (!error) {
		pfs_archive.entry_set_size(tar->entry, tar->attr.st_size);
		return add_holes(tar);
	}
	complain(tar, error);
	tar->attr.st_size = 0;
	return 0;
}

/* libarchive writes seconds that are rounded down, and behind them the fraction without regard to
 * the sign; other programs read -1.25 as a quarter of a second before -1. */
static struct timespec pax_time(struct timespec time)
{
	if (time.tv_sec >= 0 || time.tv_nsec == 0)
		return time;
	if (time.tv_sec == -1) /* the format has no "-0.25" */
		return (struct timespec){.tv_sec = -1};
	return (struct timespec){time.tv_sec + 1, 1000000000 - time.tv_nsec};
}

static int fill_entry(struct tar *tar)
{
	char target[PATH_MAX];

	PFS_TRY(pfs_grow(&tar->path, &tar->path_capacity, tar->node->path_len + 3, 1));
	(void)snprintf(tar->path, tar->path_capacity, "./%s", tar->node->path);
	(void)pfs_archive.entry_clear(tar->entry);
	pfs_archive.entry_copy_pathname(tar->entry, tar->path);
	if (S_ISREG(tar->attr.st_mode))
		PFS_TRY(set_content(tar));
	if (S_ISLNK(tar->attr.st_mode)) {
		PFS_TRY(pfs_tree_readlink(tar->to->tree, target, tar->attr.st_ino));
		pfs_archive.entry_copy_symlink(tar->entry, target);
	}
	tar->attr.st_atim = pax_time(tar->attr.st_atim);
	tar->attr.st_mtim = pax_time(tar->attr.st_mtim);
	tar->attr.st_ctim = pax_time(tar->attr.st_ctim);
	pfs_archive.entry_copy_stat(tar->entry, &tar->attr);
	pfs_archive.entry_set_nlink(tar->entry, 1);
	if (!S_ISREG(tar->attr.st_mode))
		pfs_archive.entry_set_size(tar->entry, 0);
	return add_attrs(tar);
}

static int visit(void *arg, const struct pfs_walk_node *node)
{
	struct tar *tar = arg;

	tar->node = node;
	tar->attr = node->entry.attr;
	if (S_ISSOCK(tar->attr.st_mode)) {
		tar->to->left_out++;
		(void)pfs_export_fail(tar->to, "/%s: a socket, which tar cannot hold", node->path);
		return 0;
	}
	PFS_TRY(fill_entry(tar));
	if (pfs_archive.write_header(tar->archive, tar->entry) < ARCHIVE_WARN)
		return bad_output(tar);
	if (S_ISREG(tar->attr.st_mode) && tar->attr.st_size > 0)
		PFS_TRY(write_content(tar));
	return pfs_archive.write_finish_entry(tar->archive) < ARCHIVE_WARN ? bad_output(tar) : 0;
}

static int open_archive(struct tar *tar)
{
	tar->archive = pfs_archive.write_new();
	tar->entry = pfs_archive.entry_new();
	if (!tar->archive || !tar->entry)
		return -ENOMEM;
	/* Names that are UTF-8 are written as such, others raw with a note of it, at which some
	 * programs grumble; libarchive asks the locale which are which. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	/* In this way other programs can read extended attributes. */
	if (pfs_archive.write_set_format_pax(tar->archive) < ARCHIVE_WARN ||
	    pfs_archive.write_set_options(tar->archive, "xattrheader=SCHILY") < ARCHIVE_WARN ||
	    pfs_archive.write_open_FILE(tar->archive, tar->to->out) < ARCHIVE_WARN)
		return bad_output(tar);
	return 0;
}

static int write_tar(struct pfs_export *to)
{
	const char *reason;
	char refused[2 * PATH_MAX];
	struct tar *tar;
	int error;

	if (pfs_archive_load(&reason))
		return pfs_export_fail(to, "%s; mount the store and run tar", reason);
	tar = calloc(1, sizeof(*tar));
	if (!tar)
		return -ENOMEM;
	tar->to = to;
	if (pfs_tree_links_refused(to->tree, refused, sizeof(refused)))
		pfs_cmd_say("export", "%s", refused);
	error = open_archive(tar);
	if (!error)
		error = pfs_tree_walk(to->tree, to->root, visit, tar);
	if (!error && pfs_archive.write_close(tar->archive) < ARCHIVE_WARN)
		error = bad_output(tar);
	pfs_archive.entry_free(tar->entry);
	if (tar->archive)
		(void)pfs_archive.write_free(tar->archive);
	free(tar->path);
	free(tar);
	return error > 0 ? 0 : error;
}

const struct pfs_export_format pfs_export_tar = {
	.name = "tar",
	.binary = true,
	.write = write_tar,
};

#else

static int write_tar(struct pfs_export *to)
{
	return pfs_export_fail(
		to, "this primefs was built without libarchive; mount the store and run tar");
}

const struct pfs_export_format pfs_export_tar = {.name = "tar", .binary = true, .write = write_tar};

#endif
