/* SPDX-License-Identifier: MIT */
/* Records of what a store was imported from: folders, files and hard links; and the store's stamp,
 * by which a copy of it is recognised (meta/store.h). */
#include "meta/internal.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "meta/birthmark.h"

static bool path_valid(const char *path, size_t len)
{
	return len < PATH_MAX && (len == 0 || !memchr(path, 0, len));
}

/* ---- birthmarks: two columns, the handle and the birth ---- */

/* text: memory that lasts until the statement has run. */
static void bind_mark(sqlite3_stmt *put, int parameter, const struct pfs_birthmark *mark,
		      char text[PFS_TIME_TEXT_SIZE])
{
	if (mark->handle_len)
		pfs_bind_blob(put, parameter, mark->handle, mark->handle_len);
	else
		(void)sqlite3_bind_null(put, parameter);
	if (mark->has_birth)
		pfs_bind_time(put, parameter + 1, &mark->birth, text);
	else
		(void)sqlite3_bind_null(put, parameter + 1);
}

static bool mark_from_row(struct pfs_birthmark *out, sqlite3_stmt *row, int column)
{
	const void *bytes;
	size_t len = 0;

	*out = (struct pfs_birthmark){.has_birth = false};
	if (sqlite3_column_type(row, column) != SQLITE_NULL) {
		if (!pfs_column_blob(&bytes, &len, row, column, PFS_HANDLE_MAX))
			return false;
		(void)memcpy(out->handle, bytes, len);
		out->handle_len = (uint8_t)len;
	}
	out->has_birth = sqlite3_column_type(row, column + 1) != SQLITE_NULL;
	return !out->has_birth || pfs_column_time(&out->birth, row, column + 1);
}

static bool mark_valid(const struct pfs_birthmark *mark)
{
	return mark->handle_len <= PFS_HANDLE_MAX &&
	       (!mark->has_birth || mark->birth.nsec < 1000000000);
}

/* ---- the stamp ---- */

int pfs_store_stamp(struct pfs_store *store)
{
	char birth[PFS_TIME_TEXT_SIZE];
	int error = pfs_group_ready(store);
	struct pfs_birthmark own;

	if (error)
		return error;
	pfs_birthmark_of(&own, store->lock.fd);
	bind_mark(store->writer->sql[PFS_SQL_STAMP_PUT], 1, &own, birth);
	return pfs_group_run(store, PFS_SQL_STAMP_PUT);
}

/* -ENOENT: there is none. */
static int get_stamp(struct pfs_store *store, struct pfs_birthmark *out)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_STAMP_GET));
	got = pfs_reader_step(&reader);
	if (got <= 0)
		return got ? got : -ENOENT;
	if (!mark_from_row(out, reader.row, 0))
		return pfs_db_damaged(reader.db, "stamp", 0, "it is no handle, or no time");
	return pfs_birthmark_is_empty(out) ? -ENOENT : 0;
}

/* Both handle and birth must agree: some filesystems number the uses of an inode so that they can
 * be guessed, and none numbers births. */
static bool is_stamp(const struct pfs_birthmark *stamp, const struct pfs_birthmark *own)
{
	return stamp->handle_len == own->handle_len && stamp->has_birth == own->has_birth &&
	       pfs_birthmark_same(stamp, own) &&
	       (!own->has_birth ||
		(stamp->birth.sec == own->birth.sec && stamp->birth.nsec == own->birth.nsec));
}

int pfs_store_trust(struct pfs_store *store, enum pfs_store_trust *out)
{
	struct pfs_birthmark stamp, own;
	struct stat attr;
	int error;

	if (fstat(store->lock.fd, &attr))
		return -errno;
	*out = attr.st_uid != geteuid()		    ? PFS_TRUST_NOT_OWN
	       : attr.st_mode & (S_IWGRP | S_IWOTH) ? PFS_TRUST_SHARED
						    : PFS_TRUST_UNSTAMPED;
	if (*out != PFS_TRUST_UNSTAMPED)
		return 0;
	error = get_stamp(store, &stamp);
	if (error)
		return error == -ENOENT ? 0 : error;
	pfs_birthmark_of(&own, store->lock.fd);
	if (is_stamp(&stamp, &own))
		*out = PFS_TRUST_OWN;
	return 0;
}

/* ---- roots ---- */

#define HAS_MOUNTS 0x10000u /* in a root's mode, above what st_mode has */

int pfs_store_put_source_root(struct pfs_store *store, uint32_t *id,
			      const struct pfs_source_root *root)
{
	int error = pfs_group_ready(store);
	char birth[PFS_TIME_TEXT_SIZE];
	sqlite3_stmt *put;
	int64_t chosen;
	int i;

	if (error)
		return error;
	if (root->path[0] != '/' || strlen(root->path) >= PATH_MAX || !mark_valid(&root->mark))
		return -EINVAL;
	put = store->writer->sql[PFS_SQL_ROOT_PUT];
	if (root->id)
		pfs_bind_int(put, 1, root->id);
	else
		(void)sqlite3_bind_null(put, 1);
	pfs_bind_blob(put, 2, root->path, strlen(root->path));
	pfs_bind_u64(put, 3, root->dev);
	pfs_bind_u64(put, 4, root->ino);
	bind_mark(put, 5, &root->mark, birth);
	for (i = 0; i < 3; i++) {
		const uint32_t rights[] = {root->mode | (root->has_mounts ? HAS_MOUNTS : 0),
					   root->uid, root->gid};

		if (root->has_rights)
			pfs_bind_int(put, 7 + i, rights[i]);
		else
			(void)sqlite3_bind_null(put, 7 + i);
	}
	error = pfs_group_run(store, PFS_SQL_ROOT_PUT);
	if (error)
		return error;
	chosen = root->id ? root->id : sqlite3_last_insert_rowid(store->writer->handle);
	if (chosen < 1 || chosen > UINT32_MAX)
		return pfs_db_damaged(store->writer, "source root", 0,
				      "its number is out of range");
	*id = (uint32_t)chosen;
	return 0;
}

static bool root_from_row(struct pfs_source_root *out, char path[PATH_MAX], sqlite3_stmt *row)
{
	const void *bytes;
	size_t len;

	*out = (struct pfs_source_root){.has_rights = sqlite3_column_type(row, 6) != SQLITE_NULL};
	if (!pfs_column_u32(&out->id, row, 0) || out->id == 0 ||
	    !pfs_column_blob(&bytes, &len, row, 1, PATH_MAX - 1) || len == 0 ||
	    *(const char *)bytes != '/' || memchr(bytes, 0, len) ||
	    !pfs_column_u64(&out->dev, row, 2) || !pfs_column_u64(&out->ino, row, 3) ||
	    !mark_from_row(&out->mark, row, 4))
		return false;
	if (out->has_rights &&
	    (!pfs_column_u32(&out->mode, row, 6) || !pfs_column_u32(&out->uid, row, 7) ||
	     !pfs_column_u32(&out->gid, row, 8)))
		return false;
	out->has_mounts = out->mode & HAS_MOUNTS;
	out->mode &= ~HAS_MOUNTS;
	(void)memcpy(path, bytes, len);
	path[len] = 0;
	out->path = path;
	return true;
}

bool pfs_root_row_sound(sqlite3_stmt *row)
{
	struct pfs_source_root root;
	char path[PATH_MAX];

	return root_from_row(&root, path, row);
}

int pfs_store_scan_source_roots(struct pfs_store *store,
				int (*fn)(void *arg, const struct pfs_source_root *root), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_ROOT_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct pfs_source_root root;
		char path[PATH_MAX];

		if (!root_from_row(&root, path, reader.row))
			return pfs_db_damaged(reader.db, "source root", 0,
					      "its path or number is not one");
		got = fn(arg, &root);
	}
	return got;
}

/* ---- folders ---- */

int pfs_store_put_source_dir(struct pfs_store *store, const struct pfs_source_dir *dir)
{
	char birth[PFS_TIME_TEXT_SIZE];
	int error = pfs_group_ready(store);
	sqlite3_stmt *put;

	if (error)
		return error;
	if (dir->root == 0 || dir->path_len == 0 || memchr(dir->path, 0, dir->path_len) ||
	    !mark_valid(&dir->mark))
		return -EINVAL;
	put = store->writer->sql[PFS_SQL_DIR_PUT];
	pfs_bind_int(put, 1, dir->root);
	pfs_bind_blob(put, 2, dir->path, dir->path_len);
	pfs_bind_u64(put, 3, dir->dev);
	pfs_bind_u64(put, 4, dir->ino);
	bind_mark(put, 5, &dir->mark, birth);
	pfs_bind_int(put, 7, dir->mode);
	pfs_bind_int(put, 8, dir->uid);
	pfs_bind_int(put, 9, dir->gid);
	return pfs_group_run(store, PFS_SQL_DIR_PUT);
}

/* The path belongs to the row. */
static bool dir_from_row(struct pfs_source_dir *out, sqlite3_stmt *row)
{
	return pfs_column_u32(&out->root, row, 0) && out->root != 0 &&
	       pfs_column_blob(&out->path, &out->path_len, row, 1, INT32_MAX) &&
	       out->path_len > 0 && pfs_column_u64(&out->dev, row, 2) &&
	       pfs_column_u64(&out->ino, row, 3) && mark_from_row(&out->mark, row, 4) &&
	       pfs_column_u32(&out->mode, row, 6) && pfs_column_u32(&out->uid, row, 7) &&
	       pfs_column_u32(&out->gid, row, 8);
}

bool pfs_dir_row_sound(sqlite3_stmt *row)
{
	struct pfs_source_dir dir;

	return dir_from_row(&dir, row);
}

int pfs_store_get_source_dir(struct pfs_store *store, struct pfs_source_dir *out, uint32_t root,
			     const void *path, size_t path_len)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	struct pfs_source_dir dir;
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_DIR_GET));
	pfs_bind_int(reader.row, 1, root);
	pfs_bind_blob(reader.row, 2, path, path_len);
	got = pfs_reader_step(&reader);
	if (got <= 0)
		return got ? got : -ENOENT;
	if (!dir_from_row(&dir, reader.row))
		return pfs_db_damaged(reader.db, "folder of source root", root,
				      "a value is of the wrong type or out of range");
	*out = dir;
	out->path = path;
	return 0;
}

int pfs_store_scan_source_dirs(struct pfs_store *store,
			       int (*fn)(void *arg, const struct pfs_source_dir *dir), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_DIR_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct pfs_source_dir dir;

		if (!dir_from_row(&dir, reader.row))
			return pfs_db_damaged(reader.db, "folder of source root", 0,
					      "a value is of the wrong type or out of range");
		got = fn(arg, &dir);
	}
	return got;
}

/* ---- sources ---- */

int pfs_store_put_source(struct pfs_store *store, const struct pfs_source_record *source)
{
	char mtime[PFS_TIME_TEXT_SIZE], ctime[PFS_TIME_TEXT_SIZE], birth[PFS_TIME_TEXT_SIZE];
	int error = pfs_group_ready(store);
	sqlite3_stmt *put;

	if (error)
		return error;
	if (source->prime >= PFS_END_PRIME || !path_valid(source->path, source->path_len) ||
	    source->size < 0 || source->root == 0 || source->mtime.nsec >= 1000000000 ||
	    source->ctime.nsec >= 1000000000 || !mark_valid(&source->mark))
		return -EINVAL;
	pfs_change_note(store, source->prime);
	put = store->writer->sql[PFS_SQL_SOURCE_PUT];
	pfs_bind_u64(put, 1, source->prime);
	pfs_bind_int(put, 2, source->root);
	pfs_bind_blob(put, 3, source->path, source->path_len);
	pfs_bind_u64(put, 4, source->dev);
	pfs_bind_u64(put, 5, source->ino);
	pfs_bind_int(put, 6, source->size);
	pfs_bind_time(put, 7, &source->mtime, mtime);
	pfs_bind_time(put, 8, &source->ctime, ctime);
	pfs_bind_int(put, 9, source->mode);
	pfs_bind_int(put, 10, source->uid);
	pfs_bind_int(put, 11, source->gid);
	bind_mark(put, 12, &source->mark, birth);
	return pfs_group_run(store, PFS_SQL_SOURCE_PUT);
}

int pfs_store_remove_source(struct pfs_store *store, uint64_t prime)
{
	int error = pfs_group_ready(store);

	if (error)
		return error;
	pfs_change_note(store, prime);
	return pfs_group_run_for(store, PFS_SQL_SOURCE_DELETE, prime);
}

static bool source_from_row(struct pfs_source_record *out, char *path, sqlite3_stmt *row)
{
	const void *bytes;

	if (!pfs_column_u32(&out->root, row, 0) || out->root == 0 ||
	    !pfs_column_blob(&bytes, &out->path_len, row, 1, PATH_MAX - 1) ||
	    !path_valid(bytes, out->path_len) || !pfs_column_u64(&out->dev, row, 2) ||
	    !pfs_column_u64(&out->ino, row, 3) ||
	    !pfs_column_int(&out->size, row, 4, 0, INT64_MAX) ||
	    !pfs_column_time(&out->mtime, row, 5) || !pfs_column_time(&out->ctime, row, 6) ||
	    !pfs_column_u32(&out->mode, row, 7) || !pfs_column_u32(&out->uid, row, 8) ||
	    !pfs_column_u32(&out->gid, row, 9) || !mark_from_row(&out->mark, row, 10))
		return false;
	if (out->path_len)
		(void)memcpy(path, bytes, out->path_len);
	path[out->path_len] = 0;
	out->path = path;
	return true;
}

bool pfs_source_row_sound(sqlite3_stmt *row)
{
	struct pfs_source_record source;
	char path[PATH_MAX];

	return source_from_row(&source, path, row);
}

int pfs_store_get_source(struct pfs_store *store, struct pfs_source_record *out, char *path,
			 uint64_t prime)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	struct pfs_source_record source = {.prime = prime};
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_SOURCE_GET));
	pfs_bind_u64(reader.row, 1, prime);
	got = pfs_reader_step(&reader);
	if (got <= 0)
		return got ? got : -ENOENT;
	if (!source_from_row(&source, path, reader.row))
		return pfs_db_damaged(reader.db, "source of node", prime,
				      "a value is of the wrong type or out of range");
	*out = source;
	return 0;
}

int pfs_store_scan_sources(struct pfs_store *store, uint32_t root,
			   int (*fn)(void *arg, uint64_t prime, const char *path, size_t path_len),
			   void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_SOURCE_SCAN));
	pfs_bind_int(reader.row, 1, root);
	for (got = 0; !got && (got = pfs_reader_step(&reader)) == 1;) {
		const void *path;
		uint64_t prime;
		size_t len;

		if (!pfs_column_u64(&prime, reader.row, 0) ||
		    !pfs_column_blob(&path, &len, reader.row, 1, PATH_MAX - 1))
			return pfs_db_damaged(reader.db, "source of root", root,
					      "a value is of the wrong type or out of range");
		got = fn(arg, prime, path, len);
	}
	return got;
}

int pfs_store_count_sources(struct pfs_store *store, uint64_t *count, uint32_t root)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_SOURCE_COUNT));
	pfs_bind_int(reader.row, 1, root);
	got = pfs_reader_step(&reader);
	*count = got == 1 ? (uint64_t)sqlite3_column_int64(reader.row, 0) : 0;
	return got < 0 ? got : 0;
}

int pfs_store_has_originals(struct pfs_store *store, bool *out)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_SOURCE_ANY));
	got = pfs_reader_step(&reader);
	if (got < 0)
		return got;
	*out = got == 1;
	return 0;
}

/* ---- hard links ---- */

int pfs_store_put_hard_link(struct pfs_store *store, uint64_t prime, int64_t link)
{
	int error = pfs_group_ready(store);

	if (error)
		return error;
	if (prime >= PFS_END_PRIME)
		return -EINVAL;
	pfs_change_note(store, prime);
	pfs_bind_u64(store->writer->sql[PFS_SQL_HARD_LINK_PUT], 1, prime);
	pfs_bind_int(store->writer->sql[PFS_SQL_HARD_LINK_PUT], 2, link);
	return pfs_group_run(store, PFS_SQL_HARD_LINK_PUT);
}

int pfs_store_scan_hard_links(struct pfs_store *store,
			      int (*fn)(void *arg, uint64_t prime, int64_t link), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_HARD_LINK_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1)
		got = fn(arg, (uint64_t)sqlite3_column_int64(reader.row, 0),
			 sqlite3_column_int64(reader.row, 1));
	return got;
}
