/* SPDX-License-Identifier: MIT */
/* An archive, whatever libarchive reads, in one pass: content goes into the store as it comes. */
#include "tools/import/import.h"

#if PFS_ARCHIVE

#include <stdlib.h>
#include <string.h>

#include "base/acl.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/archive.h"
#include "tools/import/import_archive.h"
#include "tools/import/import_attrs.h"
#include "tools/import/import_paths.h"

/* A further name of a file: its content is copied when the archive ends, or the file is replaced.
 */
struct hard_link {
	uint32_t node, target;
};

struct node_state {
	uint32_t target; /* 1 + the node whose content this one waits for; 0: for none */
	uint32_t attrs;	 /* its group of attributes; 0: none */
	uint32_t file;	 /* 1 + the number of the file that it is a name of, with others; 0: none */
	bool awaited;	 /* some other node waits for this one's content */
	bool filled;	 /* an entry of this archive did; else it was in the store before */
};

/* A file that has had several names. */
struct tar_file {
	uint32_t names; /* now */
	uint64_t link;	/* the prime of the first that was written; 0: none has been */
};

struct tar_entry {
	struct archive_entry *entry;
	const char *name;
	const char *hard, *soft; /* targets, or NULL */
	uint32_t hard_node;
	struct stat attr;
};

struct tar {
	struct archive *archive;
	struct pfs_path_trail trail;
	struct pfs_attr_list attrs;
	uint32_t n_groups; /* of attributes: each entry's are one, which its hard links share */
	struct hard_link *links; /* those whose node's state says the same still wait */
	size_t n_links, links_capacity;
	struct tar_file *files;
	size_t n_files, files_capacity;
	struct node_state *states; /* by node */
	size_t n_states, states_capacity;
	char chunk[PFS_CHUNK_SIZE];
	uint64_t chunk_n; /* its number */
	size_t chunk_len;
	uint64_t n_entries;
};

/* ---- names ---- */

/* Raw bytes where the archive has such, else UTF-8. */
static const char *raw_or(const char *raw, const char *utf8)
{
	return raw ? raw : utf8;
}

/* ---- hard links ---- */

static struct node_state *state_of(struct tar *tar, uint32_t node)
{
	if (pfs_grow(&tar->states, &tar->states_capacity, (size_t)node + 1, sizeof(*tar->states)) !=
	    0)
		return NULL;
	while (tar->n_states <= node)
		tar->states[tar->n_states++] = (struct node_state){0};
	return &tar->states[node];
}

static int add_link(struct pfs_import *import, uint32_t node, uint32_t target)
{
	struct tar *tar = import->state;

	PFS_TRY(pfs_grow(&tar->links, &tar->links_capacity, tar->n_links + 1, sizeof(*tar->links)));
	if (!state_of(tar, PFS_MAX(node, target)))
		return -ENOMEM;
	tar->links[tar->n_links++] = (struct hard_link){.node = node, .target = target};
	tar->states[node].target = target + 1;
	tar->states[target].awaited = true;
	import->report.hard_links++;
	return 0;
}

/* The node is another name of what `target` is one of, if that one is of this archive. */
static int add_name(struct tar *tar, uint32_t node, uint32_t target)
{
	uint32_t *file = &tar->states[target].file;

	if (!tar->states[target].filled)
		return 0;
	if (!*file) {
		PFS_TRY(pfs_grow(&tar->files, &tar->files_capacity, tar->n_files + 1,
				 sizeof(*tar->files)));
		tar->files[tar->n_files++] = (struct tar_file){.names = 1};
		*file = (uint32_t)tar->n_files;
	}
	tar->states[node].file = *file;
	tar->files[*file - 1].names++;
	return 0;
}

/* All entries are known: those whose file has another name here are marked. */
static void mark_names(struct pfs_import *import)
{
	const struct tar *tar = import->state;
	uint32_t node;

	for (node = 0; node < tar->n_states; node++)
		if (tar->states[node].file && tar->files[tar->states[node].file - 1].names > 1)
			pfs_build_set_flags(import->build, node, PFS_NODE_NAMED, 0);
}

static int put_name(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct tar *tar = import->state;
	struct tar_file *file =
		tar->states[node].file ? &tar->files[tar->states[node].file - 1] : NULL;

	if (!file || file->names < 2)
		return 0;
	if (!file->link)
		file->link = prime;
	return pfs_store_put_hard_link(pfs_build_store(import->build), prime, (int64_t)file->link);
}

static int copy_link(struct pfs_import *import, const struct hard_link *link)
{
	uint64_t from = pfs_build_prime(import->build, link->target), to;
	struct stat attr, own;

	if (!pfs_build_get(import->build, &attr, link->target) ||
	    !pfs_build_get(import->build, &own, link->node))
		return -EINVAL;
	own.st_size = attr.st_size;
	own.st_blocks = attr.st_blocks;
	PFS_TRY(pfs_build_set(import->build, link->node, &own));
	if (!from)
		return 0; /* an empty file */
	PFS_TRY(pfs_build_fix(import->build, &to, link->node));
	return pfs_store_copy_chunks(pfs_build_store(import->build), to, from);
}

/* Copies to the nodes that wait for *target, NULL: for any. */
static int copy_links(struct pfs_import *import, const uint32_t *target)
{
	struct tar *tar = import->state;
	size_t i, left = 0;

	for (i = 0; i < tar->n_links; i++) {
		const struct hard_link link = tar->links[i];

		if (tar->states[link.node].target != link.target + 1)
			continue; /* it has been replaced itself */
		if (target && *target != link.target) {
			tar->links[left++] = link;
			continue;
		}
		PFS_TRY(copy_link(import, &link));
		tar->states[link.node].target = 0;
	}
	tar->n_links = left;
	return 0;
}

/* Removes what an earlier entry of that name has put into the store. */
static int clear_node(struct pfs_import *import, uint32_t node)
{
	struct tar *tar = import->state;
	uint64_t prime = pfs_build_prime(import->build, node);

	if (node < tar->n_states) {
		if (tar->states[node].awaited)
			PFS_TRY(copy_links(import, &node));
		if (tar->states[node].file)
			tar->files[tar->states[node].file - 1].names--;
		tar->states[node] = (struct node_state){0};
	}
	pfs_build_set_flags(import->build, node, 0, PFS_NODE_ATTRS);
	if (!prime)
		return 0;
	pfs_build_unfix(import->build, node);
	return pfs_store_remove_chunks(pfs_build_store(import->build), prime, 0, UINT64_MAX);
}

/* ---- attributes ---- */

/* libarchive takes "-1.25" for a quarter of a second after -1. */
static struct timespec pax_time(struct timespec time)
{
	if (time.tv_sec >= 0 || time.tv_nsec == 0)
		return time;
	return (struct timespec){time.tv_sec - 1, 1000000000 - time.tv_nsec};
}

static bool is_tar(const struct pfs_import *import)
{
	const struct tar *tar = import->state;

	return (pfs_archive.format(tar->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
}

static unsigned acl_tag(int tag)
{
	switch (tag) {
	case ARCHIVE_ENTRY_ACL_USER_OBJ:
		return PFS_ACL_OWNER;
	case ARCHIVE_ENTRY_ACL_USER:
		return PFS_ACL_USER;
	case ARCHIVE_ENTRY_ACL_GROUP_OBJ:
		return PFS_ACL_OWNING_GROUP;
	case ARCHIVE_ENTRY_ACL_GROUP:
		return PFS_ACL_GROUP;
	case ARCHIVE_ENTRY_ACL_MASK:
		return PFS_ACL_MASK;
	default:
		return PFS_ACL_OTHER;
	}
}

/* libarchive's mode has what the entries for the owning group and for others say, whatever the
 * mask and the other entries take from that. */
static void narrow(struct stat *attr, struct pfs_import *import, struct archive_entry *entry)
{
	const int type = ARCHIVE_ENTRY_ACL_TYPE_ACCESS;
	struct pfs_acl acl = PFS_ACL_INIT;
	int is, perm, tag, id;
	const char *name;
	mode_t shown;

	if (pfs_archive.entry_acl_reset(entry, type) <= 0)
		return;
	while (pfs_archive.entry_acl_next(entry, type, &is, &perm, &tag, &id, &name) == ARCHIVE_OK)
		(void)pfs_acl_add(&acl, acl_tag(tag), (unsigned)perm);
	shown = (attr->st_mode & ~(mode_t)S_IRWXG) | acl.mask << 3;
	attr->st_mode = pfs_acl_mode(&acl, attr->st_mode);
	import->report.narrowed += attr->st_mode != shown;
}

static void take_stat(struct stat *attr, struct pfs_import *import, struct archive_entry *entry)
{
	*attr = *pfs_archive.entry_stat(entry);
	if (!(attr->st_mode & S_IFMT))
		attr->st_mode |= S_IFREG;
	narrow(attr, import, entry);
	if (!pfs_archive.entry_mtime_is_set(entry))
		attr->st_mtim = import->defaults.st_mtim;
	if (!pfs_archive.entry_atime_is_set(entry))
		attr->st_atim = attr->st_mtim;
	if (!pfs_archive.entry_ctime_is_set(entry))
		attr->st_ctim = import->defaults.st_ctim;
	if (is_tar(import)) {
		attr->st_atim = pax_time(attr->st_atim);
		attr->st_mtim = pax_time(attr->st_mtim);
		attr->st_ctim = pax_time(attr->st_ctim);
	}
	attr->st_size = 0;
	attr->st_blocks = 0;
}

static void set_attrs(struct pfs_import *import, uint32_t node, uint32_t group)
{
	struct tar *tar = import->state;

	tar->states[node].attrs = group;
	pfs_build_set_flags(import->build, node, PFS_NODE_ATTRS, 0);
}

static int take_attrs(struct pfs_import *import, struct archive_entry *entry, uint32_t node)
{
	struct tar *tar = import->state;
	const char *name;
	const void *value;
	size_t size;
	bool any = false;

	if (pfs_archive.entry_xattr_reset(entry) == 0)
		return 0;
	if (!state_of(tar, node))
		return -ENOMEM;
	tar->n_groups++;
	while (pfs_archive.entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		int error;

		if (!name || strncmp(name, "user.", 5) != 0 ||
		    strncmp(name, "user.primefs.", 13) == 0)
			continue;
		error = pfs_attr_list_add(&tar->attrs, tar->n_groups, name + 5, strlen(name + 5),
					  value, size);
		if (error && error != -EINVAL)
			return error;
		any |= !error;
	}
	if (any)
		set_attrs(import, node, tar->n_groups);
	return 0;
}

/* ---- content ---- */

static int flush_chunk(struct pfs_import *import, uint32_t node, struct stat *attr)
{
	struct tar *tar = import->state;
	uint64_t prime;

	if (!tar->chunk_len)
		return 0;
	PFS_TRY(pfs_build_fix(import->build, &prime, node));
	PFS_TRY(pfs_store_put_chunk(pfs_build_store(import->build), prime, tar->chunk_n, tar->chunk,
				    tar->chunk_len));
	attr->st_blocks += pfs_import_blocks(tar->chunk_len);
	tar->chunk_len = 0;
	return 0;
}

/* Bytes at an offset that is never before those of the last call. */
static int take_bytes(struct pfs_import *import, uint32_t node, struct stat *attr,
		      const char *bytes, size_t len, uint64_t offset)
{
	struct tar *tar = import->state;

	while (len) {
		uint64_t n = offset / PFS_CHUNK_SIZE;
		size_t at = offset % PFS_CHUNK_SIZE, part = PFS_MIN(len, PFS_CHUNK_SIZE - at);

		if (n != tar->chunk_n)
			PFS_TRY(flush_chunk(import, node, attr));
		tar->chunk_n = n;
		if (at > tar->chunk_len)
			(void)memset(tar->chunk + tar->chunk_len, 0, at - tar->chunk_len);
		(void)memcpy(tar->chunk + at, bytes, part);
		tar->chunk_len = PFS_MAX(tar->chunk_len, at + part);
		bytes += part;
		len -= part;
		offset += part;
	}
	return 0;
}

/* The content of the entry at hand; sets size and blocks of *attr. */
static int take_content(struct pfs_import *import, const struct tar_entry *of, uint32_t node,
			struct stat *attr)
{
	struct tar *tar = import->state;
	uint64_t end = 0;
	int got;

	tar->chunk_len = 0;
	tar->chunk_n = 0;
	for (;;) {
		const void *bytes;
		size_t len;
		la_int64_t offset;

		got = pfs_archive.read_data_block(tar->archive, &bytes, &len, &offset);
		if (got == ARCHIVE_EOF)
			break;
		if (got < ARCHIVE_WARN)
			return pfs_import_fail(import, "%s: entry '%s': %s", import->input.name,
					       of->name, pfs_archive.error_string(tar->archive));
		PFS_TRY(take_bytes(import, node, attr, bytes, len, (uint64_t)offset));
		end = PFS_MAX(end, (uint64_t)offset + len);
	}
	PFS_TRY(flush_chunk(import, node, attr));
	/* a hole at the end is in no block */
	if (pfs_archive.entry_size_is_set(of->entry) && pfs_archive.entry_size(of->entry) > 0)
		end = PFS_MAX(end, (uint64_t)pfs_archive.entry_size(of->entry));
	attr->st_size = (off_t)end;
	return 0;
}

/* ---- entries ---- */

/* NULL, or why there can be no such node. */
static const char *check_entry(const struct pfs_import *import, struct tar_entry *of)
{
	const struct tar *tar = import->state;
	struct stat target;
	size_t len;

	if (of->hard) {
		if (pfs_path_find(import->build, &of->hard_node, of->hard, strlen(of->hard)) != 0 ||
		    !pfs_build_get(import->build, &target, of->hard_node) ||
		    !S_ISREG(target.st_mode))
			return "is a hard link to no file that comes before it in the archive";
		/* the file itself, if that is but another name */
		if (of->hard_node < tar->n_states && tar->states[of->hard_node].target)
			of->hard_node = tar->states[of->hard_node].target - 1;
	} else if (S_ISLNK(of->attr.st_mode)) {
		len = of->soft ? strlen(of->soft) : 0;
		if (len == 0 || len > PFS_TARGET_MAX)
			return "a symlink's target has 1 to 4,095 bytes";
	}
	return NULL;
}

/* The node of the name, without what it may have been before. */
static int find_place(struct pfs_import *import, struct pfs_path_node *at,
		      const struct tar_entry *of)
{
	struct tar *tar = import->state;
	bool directory = S_ISDIR(of->attr.st_mode) && !of->hard;
	size_t len = strlen(of->name);

	/* the entry's type says what it is, not the slash: it may take a file's place */
	while (len && of->name[len - 1] == '/')
		len--;
	PFS_TRY(pfs_path_add(&tar->trail, at, import->build, of->name, len));
	if (at->node == PFS_BUILD_ROOT)
		return directory ? 0 : -EISDIR;
	if (at->seen == PFS_BUILD_STORED)
		return directory && pfs_build_is_directory(import->build, at->node) ? 0 : -EEXIST;
	if (pfs_build_has_children(import->build, at->node))
		return directory ? 0 : -EISDIR;
	if (at->seen == PFS_BUILD_NEW)
		return 0;
	import->report.repeated++;
	return clear_node(import, at->node);
}

/* In some formats the content comes with the last name of a file, for all of them. */
static int take_link(struct pfs_import *import, struct tar_entry *of, uint32_t node)
{
	const struct tar *tar = import->state;
	uint64_t prime = pfs_build_prime(import->build, of->hard_node);
	struct stat target;

	PFS_TRY(pfs_build_set(import->build, node, &of->attr));
	PFS_TRY(add_link(import, node, of->hard_node));
	PFS_TRY(add_name(import->state, node, of->hard_node));
	/* tar(1) writes them with the first name alone */
	if (!tar->states[node].attrs && tar->states[of->hard_node].attrs)
		set_attrs(import, node, tar->states[of->hard_node].attrs);
	if (!pfs_archive.entry_size_is_set(of->entry) || pfs_archive.entry_size(of->entry) <= 0 ||
	    !pfs_build_get(import->build, &target, of->hard_node))
		return 0;
	if (prime)
		PFS_TRY(pfs_store_remove_chunks(pfs_build_store(import->build), prime, 0,
						UINT64_MAX));
	target.st_blocks = 0;
	PFS_TRY(take_content(import, of, of->hard_node, &target));
	return pfs_build_set(import->build, of->hard_node, &target);
}

static int fill_node(struct pfs_import *import, struct tar_entry *of, uint32_t node)
{
	struct tar *tar = import->state;

	PFS_TRY(take_attrs(import, of->entry, node));
	if (!state_of(tar, node))
		return -ENOMEM;
	tar->states[node].filled = true;
	if (of->hard)
		return take_link(import, of, node);
	PFS_TRY(pfs_build_set(import->build, node, &of->attr));
	if (S_ISLNK(of->attr.st_mode))
		return pfs_build_set_target(import->build, node, of->soft, strlen(of->soft));
	if (!S_ISREG(of->attr.st_mode))
		return 0;
	PFS_TRY(take_content(import, of, node, &of->attr));
	return pfs_build_set(import->build, node, &of->attr);
}

static int take_entry(struct pfs_import *import, struct archive_entry *entry)
{
	struct tar_entry of = {
		.entry = entry,
		.name = raw_or(pfs_archive.entry_pathname(entry),
			       pfs_archive.entry_pathname_utf8(entry)),
		.hard = raw_or(pfs_archive.entry_hardlink(entry),
			       pfs_archive.entry_hardlink_utf8(entry)),
		.soft = raw_or(pfs_archive.entry_symlink(entry),
			       pfs_archive.entry_symlink_utf8(entry)),
	};
	struct pfs_path_node at;
	const char *why;
	uint32_t self;
	int error = 0;

	if (!of.name || !*of.name)
		return pfs_import_problem(import, "%s: an entry has no name", import->input.name);
	take_stat(&of.attr, import, entry);
	why = check_entry(import, &of);
	if (!why && of.hard && pfs_path_find(import->build, &self, of.name, strlen(of.name)) == 0 &&
	    self == of.hard_node)
		return 0; /* a link to itself */
	if (!why)
		error = find_place(import, &at, &of);
	if (error == -EISDIR)
		why = "is a directory with something in it elsewhere in the archive";
	else if (error == -ENOTDIR || error == -EINVAL || error == -ENAMETOOLONG ||
		 error == -ELOOP || error == -EEXIST)
		why = pfs_import_name_error(error);
	else if (error)
		return error;
	if (why)
		return pfs_import_problem(import, "%s: entry '%s': %s", import->input.name, of.name,
					  why);
	if (at.seen == PFS_BUILD_STORED ||
	    (at.node == PFS_BUILD_ROOT && pfs_import_root_stored(import)))
		return 0; /* as it is */
	return fill_node(import, &of, at.node);
}

static int read_tar(struct pfs_import *import)
{
	struct archive_entry *entry;
	bool damaged = false;
	struct tar *tar;
	int got;

	tar = import->state = calloc(1, sizeof(*tar));
	if (!tar)
		return -ENOMEM;
	PFS_TRY(pfs_archive_open(&tar->archive, import));
	while ((got = pfs_archive.read_next_header(tar->archive, &entry)) >= ARCHIVE_WARN &&
	       got != ARCHIVE_EOF) {
		/* no entry here; what follows on it is the same problem */
		if (got == ARCHIVE_RETRY && !damaged)
			PFS_TRY(pfs_import_problem(import, "%s: %s", import->input.name,
						   pfs_archive.error_string(tar->archive)));
		damaged = got == ARCHIVE_RETRY;
		if (!damaged)
			PFS_TRY(take_entry(import, entry));
		if (++tar->n_entries % 1024 == 0)
			pfs_import_progress(import);
	}
	if (got != ARCHIVE_EOF)
		return pfs_import_fail(import, "%s: %s", import->input.name,
				       pfs_archive.error_string(tar->archive));
	mark_names(import);
	return copy_links(import, NULL);
}

static int tar_written(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	struct tar *tar = import->state;

	if (node >= tar->n_states)
		return 0;
	PFS_TRY(put_name(import, node, prime));
	return tar->states[node].attrs
		       ? pfs_attr_list_put(&tar->attrs, pfs_build_store(import->build),
					   tar->states[node].attrs, prime)
		       : 0;
}

static void close_tar(struct pfs_import *import)
{
	struct tar *tar = import->state;

	if (!tar)
		return;
	if (tar->archive)
		(void)pfs_archive.read_free(tar->archive);
	pfs_path_free(&tar->trail);
	pfs_attr_list_free(&tar->attrs);
	free(tar->links);
	free(tar->files);
	free(tar->states);
	free(tar);
}

const struct pfs_import_format pfs_import_tar = {
	.name = "tar",
	.read = read_tar,
	.written = tar_written,
	.close = close_tar,
};

#else

static int read_tar(struct pfs_import *import)
{
	return pfs_import_fail(import,
			       "%s: this primefs was built without libarchive; unpack the "
			       "archive and import the directory",
			       import->input.name);
}

const struct pfs_import_format pfs_import_tar = {
	.name = "tar",
	.read = read_tar,
};

#endif
