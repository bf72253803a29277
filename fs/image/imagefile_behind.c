/* SPDX-License-Identifier: MIT */
/* Writing the image file by a process of its own, which nobody waits for. */
#include "fs/image/imagefile.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/lazy.h"
#include "base/log.h"
#include "fs/image/imagefile_impl.h"
#include "fs/tree/tree_impl.h"

#define NICE 10
#define FEW_ROWS 2 /* that opening reads as soon as none: what a refresh that changed nothing leaves, and another */
/* The descriptors that are kept: of the file that is written, which a daemon locks before there is
 * a process for it, so that whoever waits for it never finds it missing; and of the old one. */
enum { PART = 3, KEPT };

static bool is_wanted(struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_store_state state;

	if (image->nodes < PFS_IMAGE_FILE_NODES || pfs_store_state(tree->store, &state))
		return false;
	if (tree->extras && image->file && tree->extras->is_wanted(tree))
		return true;
	return !image->file || atomic_load(&image->file->bad) ||
	       image->file_state.seq != state.seq ||
	       memcmp(image->file_state.token, state.token, PFS_TOKEN_SIZE) != 0;
}

/* Lets go of the store's lock, of the terminal and of whoever waits for the end of a pipe, but not
 * of the file that is to be written, if it has been begun, nor of the image file that the image
 * still is in, in part. */
static void let_go(struct pfs_image_file *file, int part)
{
	sigset_t none;
	int fd = part < 0 ? -1 : fcntl(part, F_DUPFD_CLOEXEC, KEPT + 1);

	pfs_log_open(PFS_LOG_NOTHING, false);
	if (file) {
		file->fd = dup2(file->fd, KEPT);
		file->load_rows = NULL;
	}
	if (part >= 0 && (fd < 0 || dup3(fd, PART, O_CLOEXEC) < 0))
		_exit(EXIT_FAILURE); /* what PART is would be written to */
	(void)close_range(0, PART - 1, 0);
	(void)close_range(file ? KEPT + 1 : part >= 0 ? KEPT : PART, ~0U, 0);
	for (fd = 0; fd < PART; fd++)
		if (open("/dev/null", O_RDWR) < 0)
			break;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) { /* where memory ends, this goes before any daemon */
		(void)!write(fd, "1000", 4);
		(void)close(fd);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

/* Forks; returns true in the child, which is to write; part: or -1. */
static bool is_child(const char *store, struct pfs_image_file *file, int part)
{
	pid_t writer = file ? pfs_lazy_fork(file->lazy) : fork();

	if (writer < 0)
		pfs_warning("%s" PFS_IMAGE_FILE_SUFFIX ": not written: %s", store, strerror(errno));
	if (writer < 0 && part >= 0)
		pfs_imagefile_give_up(store);
	if (writer)
		return false;
	let_go(file, part);
	if (file)
		pfs_lazy_fill_all(file->lazy);
	return true;
}

/* Returns true in the child, which is to write to PART. */
static bool is_writer(const char *store, struct pfs_image_file *file)
{
	int part = pfs_imagefile_begin(store);
	bool is;

	if (part < 0) /* another process writes it, or it cannot be written */
		return false;
	is = is_child(store, file, part);
	if (!is)
		(void)close(part);
	return is;
}

/* Next to nothing has changed since the file was written. */
static bool is_near(struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;

	return image->file && image->n_behind <= FEW_ROWS && !atomic_load(&image->file->bad) &&
	       (!tree->extras || !tree->extras->is_wanted(tree));
}

void pfs_imagefile_write_behind(struct pfs_tree *tree)
{
	const char *store, *taken;

	if (!is_wanted(tree) || is_near(tree)) /* nor of a store that could not be opened */
		return;
	store = pfs_store_path(tree->store);
	taken = pfs_imagefile_taken(store);
	if (taken) /* nobody hears the process that writes */
		pfs_warning("%s: %s", store, taken);
	else if (is_writer(store, tree->image.file))
		_exit(pfs_imagefile_write_to(tree, PART) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Nobody is held up, so that the store is not locked and others may have written to it while it was
 * read: then what was read is of no use, unless it is of one group all the same. */
static bool is_unchanged(const struct pfs_tree *tree)
{
	const struct pfs_store_options how = {.flags = PFS_STORE_READ_ONLY | PFS_STORE_UNLOCKED};
	struct pfs_store_state then, now;
	struct pfs_store *store;
	bool same;

	if (pfs_store_is_steady(tree->store))
		return true;
	if (pfs_store_state(tree->store, &then) ||
	    pfs_store_open(&store, pfs_store_path(tree->store), &how))
		return false;
	same = !pfs_store_state(store, &now) && now.seq == then.seq &&
	       memcmp(now.token, then.token, PFS_TOKEN_SIZE) == 0;
	(void)pfs_store_close(store);
	return same;
}

/* The file is begun when all has been read: a daemon that ends meanwhile writes its own. */
void pfs_imagefile_make_behind(const char *store, struct pfs_tree *(*open)(const char *store))
{
	char path[PATH_MAX];
	struct pfs_tree *tree;
	int part;

	if (!realpath(store, path) || !is_child(path, NULL, -1))
		return;
	tree = open(path);
	if (!tree)
		_exit(EXIT_FAILURE);
	if (!is_wanted(tree) || !is_unchanged(tree))
		_exit(EXIT_SUCCESS);
	part = pfs_imagefile_begin(path);
	_exit(part < 0 || pfs_imagefile_write_to(tree, part) ? EXIT_FAILURE : EXIT_SUCCESS);
}
