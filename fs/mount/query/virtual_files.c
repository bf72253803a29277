/* SPDX-License-Identifier: MIT */
/* FUSE's operations on open virtual files. The content of a file is complete when its open is
 * answered, or grows afterwards, or is made as it is read. What is written to a file is taken over
 * at close(2), except in `run`, where each write is a statement. */
#include "fs/mount/query/virtual.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/mount/operations.h"
#include "fs/mount/query/growing.h"
#include "fs/mount/query/streamed.h"
#include "fs/mount/respond.h"

/* ---- opening ---- */

static int check_open(const struct pfs_call *call, int flags)
{
	const struct pfs_virtual_kind *kind = call->virtual->kind;
	int access = flags & O_ACCMODE;

	if (S_ISDIR(kind->mode))
		return -EISDIR;
	if (access == O_RDONLY)
		return kind->fill ? 0 : -EACCES;
	if (!kind->write && (!kind->store || !call->scope.sees_all))
		return -EACCES;
	return call->mount->options.flags & MS_RDONLY ? -EROFS : 0;
}

static int open_answers(struct pfs_call *call, struct pfs_handle *handle, int flags)
{
	const struct pfs_virtual_kind *kind = call->virtual->kind;
	struct pfs_answer *answer;

	/* reads of direct I/O end at the size that the kernel knows */
	call->wants_all = flags & O_DIRECT;
	PFS_TRY(pfs_call_room(call, &handle->answer, 0));
	if (kind->store && (flags & O_ACCMODE) != O_RDONLY)
		PFS_TRY(pfs_call_room(call, &handle->written, kind->store_limit));
	answer = handle->written ? handle->written : handle->answer;
	/* An append keeps what the file had, in front of the new bytes. */
	if (kind->fill && !kind->write && !(handle->written && flags & O_TRUNC))
		PFS_TRY(kind->fill(call, call->virtual, answer));
	handle->growing = call->growing;
	handle->appends = flags & O_APPEND;
	handle->emptied = handle->written && flags & O_TRUNC;
	return 0;
}

static int open_file(struct pfs_call *call, struct pfs_handle **out, int flags)
{
	*out = NULL;
	PFS_TRY(check_open(call, flags));
	return pfs_handle_open(out, call, flags, open_answers);
}

void pfs_on_query_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct pfs_virtuals *virtuals = pfs_mount_of(req)->virtuals;
	struct pfs_handle *handle;
	struct pfs_call call;
	int error;

	error = pfs_call_begin(&call, req, node, 0);
	if (!error) {
		error = open_file(&call, &handle, fi->flags);
		pfs_call_end(&call);
	}
	if (error) {
		pfs_respond_error(req, error);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fi->direct_io = 1;
	fi->noflush = (fi->flags & O_ACCMODE) == O_RDONLY;
	if (pfs_respond_open(req, fi) != 0)
		pfs_handle_close(virtuals, handle);
	if (call.growing)
		pfs_growing_go_on(call.growing);
}

void pfs_on_query_create(fuse_req_t req, fuse_ino_t parent, const char *name,
			 mode_t mode PFS_UNUSED, struct fuse_file_info *fi)
{
	struct pfs_virtuals *virtuals = pfs_mount_of(req)->virtuals;
	struct pfs_handle *handle = NULL;
	struct fuse_entry_param param;
	struct pfs_call call;
	int error;

	error = pfs_call_begin(&call, req, parent, 0);
	if (!error) {
		error = pfs_virtual_make(&call, &param, name, S_IFREG);
		if (!error)
			error = pfs_call_move(&call, param.ino);
		if (!error)
			error = open_file(&call, &handle, fi->flags | O_TRUNC);
		pfs_call_end(&call);
	}
	if (error) {
		pfs_respond_error(req, error);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fi->direct_io = 1;
	if (pfs_respond_create(req, &param, fi) != 0) {
		pfs_handle_close(virtuals, handle);
		pfs_virtual_forget(virtuals, param.ino, 1);
	}
}

/* ---- reading and writing ---- */

/* Returns where in the answer a read at `offset` begins. After a write the answer begins at the
 * offset where the write ended or, if the reader has gone back, at 0. */
static uint64_t place(struct pfs_handle *handle, uint64_t offset)
{
	if (offset < handle->base)
		handle->base = 0;
	return offset - handle->base;
}

#define VIEWS_MAX 64 /* pieces of a read: each piece of an answer has at least 16 KiB */

/* Replies with what is in memory, without a copy of it; false: not all of it is there. */
static bool reply_kept(fuse_req_t req, const struct pfs_answer *answer, size_t size,
		       uint64_t offset)
{
	uint64_t end = pfs_answer_size(answer);
	struct iovec views[VIEWS_MAX];
	int n = 0;

	while (size && offset < end) {
		const char *bytes;
		size_t some = size;

		bytes = n < VIEWS_MAX ? pfs_answer_view(answer, &some, offset) : NULL;
		if (!bytes)
			return false;
		views[n++] = (struct iovec){.iov_base = (void *)bytes, .iov_len = some};
		offset += some;
		size -= some;
	}
	(void)pfs_respond_views(req, views, n);
	return true;
}

/* The lock is held. */
static struct pfs_growing *growing_of(struct pfs_handle *handle)
{
	bool grows = handle->growing && !pfs_answer_is_complete(handle->answer);

	return grows ? pfs_growing_ref(handle->growing) : NULL;
}

/* Returns the answer that reads get now, and sets *growing if it still grows; the caller releases
 * both. *offset becomes the place in the answer. */
static struct pfs_answer *answer_at(struct pfs_handle *handle, struct pfs_growing **growing,
				    uint64_t *offset)
{
	PFS_LOCKED(&handle->lock);

	*offset = place(handle, *offset);
	*growing = growing_of(handle);
	return pfs_answer_ref(handle->answer);
}

bool pfs_handle_measure(struct pfs_handle *handle, fuse_req_t req, struct stat *attr)
{
	struct pfs_growing *growing;
	struct pfs_answer *answer;
	bool is_known;

	(void)pthread_mutex_lock(&handle->lock);
	answer = pfs_answer_ref(handle->answer);
	is_known = pfs_answer_is_complete(answer);
	growing = growing_of(handle);
	attr->st_size = (off_t)(handle->base + (is_known ? pfs_answer_size(answer) : 0));
	attr->st_blocks = (attr->st_size + 511) / 512;
	(void)pthread_mutex_unlock(&handle->lock);
	if (growing)
		pfs_growing_measure(growing, req, attr);
	else if (!is_known)
		pfs_streamed_measure(pfs_mount_of(req)->streamed, req, handle, answer, attr);
	pfs_growing_unref(growing);
	pfs_answer_close(answer);
	return growing || !is_known;
}

/* Answers a last line without its newline. The lock is held. */
static int settle(fuse_req_t req, struct pfs_handle *handle)
{
	struct pfs_call call;
	int error;

	if (!handle->n_rest)
		return 0;
	PFS_TRY(pfs_call_begin(&call, req, handle->virtual->node, 0));
	pfs_handle_act(handle, &call);
	error = handle->virtual->kind->settle(&call, handle);
	pfs_call_end(&call);
	return error;
}

/* A file that is being written may change, so its bytes are copied with the lock held. */
static void reply_written(fuse_req_t req, struct pfs_handle *handle, size_t size, uint64_t offset)
{
	char *data = pfs_dispatch_scratch(size);
	ssize_t n = -ENOMEM;

	(void)pthread_mutex_lock(&handle->lock);
	if (data)
		n = settle(req, handle);
	if (!n)
		n = pfs_answer_read(handle->written ? handle->written : handle->answer, data, size,
				    place(handle, offset));
	if (n > 0)
		handle->end = UINT64_MAX;
	(void)pthread_mutex_unlock(&handle->lock);
	if (n < 0)
		pfs_respond_error(req, (int)n);
	else
		(void)pfs_respond_bytes(req, data, (size_t)n);
}

void pfs_on_query_read(fuse_req_t req, fuse_ino_t node PFS_UNUSED, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	struct pfs_handle *handle;
	struct pfs_growing *growing;
	struct pfs_answer *answer;
	uint64_t at = (uint64_t)offset;

	handle = pfs_handle_of(fi);
	if (handle->written || handle->virtual->kind->settle) {
		reply_written(req, handle, size, (uint64_t)offset);
		return;
	}
	/* After the reply the handle may be closed, and even before it another answer may replace
	 * this one: so it is held. */
	answer = answer_at(handle, &growing, &at);
	if (growing)
		pfs_growing_read(growing, req, size, at);
	else if (pfs_answer_is_stream(answer) || !reply_kept(req, answer, size, at))
		pfs_streamed_read(pfs_mount_of(req)->streamed, req, handle, answer, size, at);
	pfs_growing_unref(growing);
	pfs_answer_close(answer);
}

/* Files are only written whole, from the front to the end, as shells and programs do. */
static int append(struct pfs_call *call, struct pfs_handle *handle, const char *data, size_t size,
		  off_t offset)
{
	PFS_LOCKED(&handle->lock);
	if (!handle->appends && (uint64_t)offset != pfs_answer_size(handle->written)) {
		if (offset != 0)
			return pfs_call_fail(
				call, -EINVAL,
				"%s: is written as a whole, from its beginning to its end",
				call->virtual->name);
		pfs_answer_truncate(handle->written);
	}
	handle->changed = true;
	handle->emptied = false;
	handle->error = pfs_answer_write(handle->written, data, size);
	if (handle->error == -EFBIG)
		return pfs_call_fail(call, -EFBIG, "%s: more than %zu bytes", call->virtual->name,
				     call->virtual->kind->store_limit);
	return handle->error;
}

void pfs_on_query_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size,
			off_t offset, struct fuse_file_info *fi)
{
	struct pfs_handle *handle;
	struct pfs_call call;
	int error;

	error = pfs_call_begin(&call, req, node, 0);
	if (!error) {
		handle = pfs_handle_of(fi);
		if (call.virtual->kind->write && call.scope.uid != handle->uid)
			/* a program with more rights was given the descriptor to write to */
			error = -EACCES;
		else if (call.virtual->kind->write)
			error = call.virtual->kind->write(&call, handle, data, size, offset);
		else
			error = append(&call, handle, data, size, offset);
		pfs_call_end(&call);
	}
	if (error)
		pfs_respond_error(req, error);
	else
		(void)pfs_respond_written(req, size);
	if (!error && call.growing)
		pfs_growing_go_on(call.growing);
}

/* Takes over at close(2) what was written; the error becomes that of close. */
void pfs_on_query_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct pfs_handle *handle;
	struct pfs_call call;
	int error;

	handle = pfs_handle_of(fi);
	error = pfs_call_begin(&call, req, node, 0);
	if (!error) {
		(void)pthread_mutex_lock(&handle->lock);
		pfs_handle_act(handle, &call);
		error = handle->error;
		if (!error && handle->written && handle->changed)
			error = handle->virtual->kind->store(&call, handle->virtual,
							     handle->written);
		handle->changed = false;
		(void)pthread_mutex_unlock(&handle->lock);
		pfs_call_end(&call);
	}
	pfs_respond_error(req, error);
}

/* Truncates a file that was opened with O_TRUNC and never written to. That waits until here, since
 * a shell closes one descriptor of the file before it writes to the other. */
void pfs_on_query_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct pfs_handle *handle;
	struct pfs_call call;

	handle = pfs_handle_of(fi);
	if (handle->emptied && pfs_call_begin(&call, req, node, 0) == 0) {
		pfs_handle_act(handle, &call); /* the kernel does not say which process closes */
		(void)handle->virtual->kind->store(&call, handle->virtual, handle->written);
		pfs_call_end(&call);
	}
	pfs_handle_close(pfs_mount_of(req)->virtuals, handle);
	pfs_respond_error(req, 0);
}

void pfs_on_query_fsync(fuse_req_t req, fuse_ino_t node PFS_UNUSED, int data_only PFS_UNUSED,
			struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_respond_error(req, 0);
}

void pfs_on_query_fallocate(fuse_req_t req, fuse_ino_t node PFS_UNUSED, int mode PFS_UNUSED,
			    off_t offset PFS_UNUSED, off_t length PFS_UNUSED,
			    struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_respond_error(req, -EOPNOTSUPP);
}

/* A file has no holes. */
void pfs_on_query_lseek(fuse_req_t req, fuse_ino_t node PFS_UNUSED, off_t offset, int whence,
			struct fuse_file_info *fi)
{
	struct pfs_handle *handle;
	bool is_complete;
	off_t size;

	handle = pfs_handle_of(fi);
	(void)pthread_mutex_lock(&handle->lock);
	is_complete = pfs_answer_is_complete(handle->answer);
	size = (off_t)(handle->base + pfs_answer_size(handle->answer));
	(void)pthread_mutex_unlock(&handle->lock);
	if (!is_complete && whence == SEEK_HOLE)
		pfs_respond_error(req, -EINVAL); /* its end is not known yet */
	else if (offset < 0 || (is_complete && offset >= size))
		pfs_respond_error(req, -ENXIO);
	else
		(void)pfs_respond_place(req, whence == SEEK_DATA ? offset : size);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libfuse's */
void pfs_on_query_copy_file_range(fuse_req_t req, fuse_ino_t from PFS_UNUSED,
				  off_t from_offset PFS_UNUSED,
				  struct fuse_file_info *from_fi PFS_UNUSED,
				  fuse_ino_t to PFS_UNUSED, off_t to_offset PFS_UNUSED,
				  struct fuse_file_info *to_fi PFS_UNUSED, size_t size PFS_UNUSED,
				  int flags PFS_UNUSED)
{
	pfs_respond_error(req, -EXDEV); /* so that the kernel copies */
}
