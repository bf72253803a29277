/* SPDX-License-Identifier: MIT */
/* primefs optimize - lays out a store anew. */
#include "tools/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/image/imagefile.h"
#include "meta/history.h"
#include "meta/store.h"
#include "tools/client/ready.h"

enum { IMAGE };

static const struct pfs_cmd_option options[] = {
	[IMAGE] = {"image", 0, NULL,
		   "make STORE.img, in the background, and nothing else; STORE may be mounted"},
	{0},
};
static const struct pfs_cmd command = {
	"optimize",
	"STORE",
	"Reassigns primes and slots of a store that is not mounted.",
	options,
	"The heaviest directories get the smallest primes, so that codes become short; slots are\n"
	"laid out in pre-order, so that subtrees become ranges.  Inode numbers change.\n"
	"Needs as much free space as the store takes; interrupted, it leaves the store as it was.",
};

static int make_image(const char *store)
{
	char path[PATH_MAX];
	const char *taken;

	if (!realpath(store, path))
		return pfs_cmd_fail("optimize", "%s: %s", store, strerror(errno));
	taken = pfs_imagefile_taken(path);
	if (taken)
		return pfs_cmd_fail("optimize", "%s: %s", store, taken);
	pfs_imagefile_make_behind(path, pfs_ready_beside);
	return PFS_EXIT_OK;
}

static int fail(const char *store, int error)
{
	char why[512];

	pfs_store_explain(why, sizeof(why), store, error);
	return pfs_cmd_fail("optimize", "%s", why);
}

/* What the command tells of the store, before and after. */
struct told {
	struct pfs_tree_info before, after;
	struct pfs_history history; /* before */
};

static int ask_before(struct told *told, const char *store)
{
	struct pfs_tree *tree;
	int error, status = pfs_ready_tree(&tree, "optimize", store);

	if (status)
		return status;
	error = pfs_tree_info(tree, &told->before);
	if (!error)
		error = pfs_tree_history(tree, &told->history);
	(void)pfs_tree_close(tree);
	return error ? fail(store, error) : PFS_EXIT_OK;
}

static int ask_after(struct told *told, const char *store)
{
	struct pfs_tree *tree;
	int error, status = pfs_ready_tree(&tree, "optimize", store);

	if (status)
		return status;
	error = pfs_tree_info(tree, &told->after);
	(void)pfs_tree_close(tree);
	return error ? pfs_cmd_fail("optimize", "%s: %s", store, strerror(-error)) : PFS_EXIT_OK;
}

static void tell(const struct told *told, const char *store)
{
	(void)printf(
		"%s: %llu nodes; the longest code has %u bits, had %u; inode numbers changed\n",
		store, (unsigned long long)told->after.nodes, told->after.max_code_bits,
		told->before.max_code_bits);
	if (told->history.rule.age || told->history.rule.size)
		(void)printf(
			"%s: its history is gone, and none is kept until it is mounted with -o history\n",
			store);
}

int pfs_cmd_optimize(int argc, char **argv)
{
	struct told told = {.before = {0}};
	struct pfs_cmd_args args;
	char store[PATH_MAX], folder[PATH_MAX];
	bool image = false;
	int error, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while (pfs_cmd_next(&args) == IMAGE)
		image = true;
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	if (image)
		return make_image(args.operands[0]);
	status = pfs_ready_name(store, folder, "optimize", args.operands[0]);
	if (!status)
		status = ask_before(&told, store);
	if (status)
		return status;
	error = pfs_tree_optimize(store, PFS_READY_WAIT_MS);
	if (error)
		return fail(store, error);
	status = ask_after(&told, store);
	if (status)
		return status;
	tell(&told, store);
	return pfs_cmd_flush("optimize", PFS_EXIT_OK);
}
