/* SPDX-License-Identifier: MIT */
#include "tools/bench/yardstick.h"

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define IO_BYTES (1024 * 1024)

/* Node numbers: 1 the root, 2 big, then the directories, then their files, then what is made. */
#define BIG	  2
#define FIRST_DIR 3

struct server {
	struct pfs_yardstick shape;
	char *zeros;
	_Atomic fuse_ino_t next_made;
};

static const struct pfs_yardstick *shape_of(fuse_req_t req)
{
	return &((struct server *)fuse_req_userdata(req))->shape;
}

static bool is_dir(const struct pfs_yardstick *shape, fuse_ino_t node)
{
	return node == FUSE_ROOT_ID || (node >= FIRST_DIR && node - FIRST_DIR < shape->dirs);
}

static fuse_ino_t file_node(const struct pfs_yardstick *shape, fuse_ino_t dir, uint64_t n)
{
	return FIRST_DIR + shape->dirs + (dir - FIRST_DIR) * (fuse_ino_t)shape->files + n;
}

static void fill_attr(const struct pfs_yardstick *shape, struct stat *attr, fuse_ino_t node)
{
	*attr = (struct stat){
		.st_ino = node,
		.st_mode = is_dir(shape, node) ? S_IFDIR | 0755 : S_IFREG | 0644,
		.st_nlink = 1,
		.st_size = node == BIG ? (off_t)shape->bytes : 0,
		.st_blksize = 4096,
		.st_mtim = {.tv_sec = 1700000000},
	};
}

static void fill_entry(const struct pfs_yardstick *shape, struct fuse_entry_param *entry,
		       fuse_ino_t node)
{
	*entry = (struct fuse_entry_param){
		.ino = node,
		.attr_timeout = shape->timeout,
		.entry_timeout = shape->timeout,
	};
	fill_attr(shape, &entry->attr, node);
}

/* ---- names ---- */

static void init(void *arg PFS_UNUSED, struct fuse_conn_info *conn)
{
	conn->want |= (FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS) & conn->capable;
	conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_SPLICE_READ |
				  FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	conn->max_write = IO_BYTES;
	conn->max_readahead = IO_BYTES;
}

static fuse_ino_t find(const struct pfs_yardstick *shape, fuse_ino_t parent, const char *name)
{
	uint64_t n;

	if (parent == FUSE_ROOT_ID && strcmp(name, "big") == 0)
		return BIG;
	if (pfs_parse_u64(&n, name + (*name != '\0')) != 0)
		return 0;
	if (parent == FUSE_ROOT_ID)
		return *name == 'd' && n < shape->dirs ? FIRST_DIR + n : 0;
	if (is_dir(shape, parent) && *name == 'f' && n < shape->files)
		return file_node(shape, parent, n);
	return 0;
}

static void lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct pfs_yardstick *shape = shape_of(req);
	fuse_ino_t node = find(shape, parent, name);
	struct fuse_entry_param entry;

	if (!node) {
		(void)fuse_reply_err(req, ENOENT);
		return;
	}
	fill_entry(shape, &entry, node);
	(void)fuse_reply_entry(req, &entry);
}

static void forget(fuse_req_t req, fuse_ino_t node PFS_UNUSED, uint64_t n PFS_UNUSED)
{
	fuse_reply_none(req);
}

static void fill_made(fuse_req_t req, struct fuse_entry_param *entry, mode_t mode)
{
	struct server *server = fuse_req_userdata(req);

	fill_entry(&server->shape, entry, atomic_fetch_add(&server->next_made, 1));
	entry->attr.st_mode = mode;
}

static void create(fuse_req_t req, fuse_ino_t parent PFS_UNUSED, const char *name PFS_UNUSED,
		   mode_t mode, struct fuse_file_info *fi)
{
	struct fuse_entry_param entry;

	fill_made(req, &entry, S_IFREG | mode);
	(void)fuse_reply_create(req, &entry, fi);
}

static void remove_name(fuse_req_t req, fuse_ino_t parent PFS_UNUSED, const char *name PFS_UNUSED)
{
	(void)fuse_reply_err(req, 0);
}

/* ---- attributes and listings ---- */

static void getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi PFS_UNUSED)
{
	const struct pfs_yardstick *shape = shape_of(req);
	struct stat attr;

	fill_attr(shape, &attr, node);
	(void)fuse_reply_attr(req, &attr, shape->timeout);
}

static void setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr PFS_UNUSED,
		    int to_set PFS_UNUSED, struct fuse_file_info *fi)
{
	getattr(req, node, fi);
}

/* Adds entry n of the directory; its length. */
static size_t add_entry(fuse_req_t req, char *data, size_t size, fuse_ino_t dir, uint64_t n,
			bool plus)
{
	const struct pfs_yardstick *shape = shape_of(req);
	bool top = dir == FUSE_ROOT_ID;
	struct fuse_entry_param entry;
	char name[32];

	(void)snprintf(name, sizeof(name), top ? "d%u" : "f%06u", (unsigned)n);
	fill_entry(shape, &entry, top ? FIRST_DIR + n : file_node(shape, dir, n));
	if (plus)
		return fuse_add_direntry_plus(req, data, size, name, &entry, (off_t)n + 1);
	return fuse_add_direntry(req, data, size, name, &entry.attr, (off_t)n + 1);
}

static void list(fuse_req_t req, fuse_ino_t dir, size_t size, off_t offset, bool plus)
{
	const struct pfs_yardstick *shape = shape_of(req);
	uint64_t n, end = dir == FUSE_ROOT_ID ? shape->dirs : shape->files;
	char *data PFS_FREE = malloc(size);
	size_t used = 0;

	if (!data) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	for (n = (uint64_t)offset; n < end; n++) {
		size_t len = add_entry(req, data + used, size - used, dir, n, plus);

		if (len > size - used)
			break;
		used += len;
	}
	(void)fuse_reply_buf(req, data, used);
}

static void readdir_(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		     struct fuse_file_info *fi PFS_UNUSED)
{
	list(req, node, size, offset, false);
}

static void readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
			struct fuse_file_info *fi PFS_UNUSED)
{
	list(req, node, size, offset, true);
}

/* ---- content ---- */

static void open_(fuse_req_t req, fuse_ino_t node PFS_UNUSED, struct fuse_file_info *fi)
{
	fi->keep_cache = 1;
	fi->cache_readdir = 1;
	(void)fuse_reply_open(req, fi);
}

static void read_(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		  struct fuse_file_info *fi PFS_UNUSED)
{
	struct server *server = fuse_req_userdata(req);
	uint64_t end = node == BIG ? server->shape.bytes : 0;
	uint64_t left = (uint64_t)offset < end ? end - (uint64_t)offset : 0;

	(void)fuse_reply_buf(req, server->zeros, PFS_MIN(PFS_MIN(size, left), IO_BYTES));
}

static void write_(fuse_req_t req, fuse_ino_t node PFS_UNUSED, const char *data PFS_UNUSED,
		   size_t size, off_t offset PFS_UNUSED, struct fuse_file_info *fi PFS_UNUSED)
{
	(void)fuse_reply_write(req, size);
}

static void succeed(fuse_req_t req, fuse_ino_t node PFS_UNUSED,
		    struct fuse_file_info *fi PFS_UNUSED)
{
	(void)fuse_reply_err(req, 0);
}

static void fsync_(fuse_req_t req, fuse_ino_t node PFS_UNUSED, int data_only PFS_UNUSED,
		   struct fuse_file_info *fi PFS_UNUSED)
{
	(void)fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.init = init,
	.lookup = lookup,
	.forget = forget,
	.create = create,
	.unlink = remove_name,
	.rmdir = remove_name,
	.getattr = getattr,
	.setattr = setattr,
	.opendir = open_,
	.readdir = readdir_,
	.readdirplus = readdirplus,
	.open = open_,
	.read = read_,
	.write = write_,
	.flush = succeed,
	.release = succeed,
	.fsync = fsync_,
};

static int serve(struct fuse_session *session, unsigned threads)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int error;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(config, threads);
	fuse_loop_cfg_set_idle_threads(config, threads);
	error = fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	return error ? -EIO : 0;
}

int pfs_yardstick_serve(const struct pfs_yardstick *yardstick, const char *mountpoint)
{
	char program[] = "primefs", dash_o[] = "-o";
	char options[] = "default_permissions,fsname=nullfs,subtype=nullfs";
	char *argv[] = {program, dash_o, options, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct server server = {.shape = *yardstick, .next_made = (fuse_ino_t)1 << 40};
	struct fuse_session *session;
	int error = -EIO;

	server.zeros = mmap(NULL, IO_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (server.zeros == MAP_FAILED)
		return -ENOMEM;
	session = fuse_session_new(&args, &operations, sizeof(operations), &server);
	if (session && fuse_set_signal_handlers(session) == 0) {
		if (fuse_session_mount(session, mountpoint) == 0) {
			error = serve(session, yardstick->threads);
			fuse_session_unmount(session);
		}
		fuse_remove_signal_handlers(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	(void)munmap(server.zeros, IO_BYTES);
	return error;
}
