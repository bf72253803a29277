/* SPDX-License-Identifier: MIT */
/* primefs check: checks whether everything in a store is as it has to be. */
#include "tools/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "fs/attr/attrfile.h"
#include "fs/image/imagefile.h"
#include "meta/store.h"
#include "tools/client/ready.h"

enum { ENGINE, JSON };

static const struct pfs_cmd_option options[] = {
	[ENGINE] = {"engine", 0, "NAME", "whose codes to compare: auto, host or cuda"},
	[JSON] = {"json", 0, NULL, "as JSON"},
	{0},
};

static const struct pfs_cmd command = {
	"check",
	"STORE",
	"Looks for damage; prints a line for each finding.",
	options,
	"Exit status: 0 sound, 1 damaged, 3 when it could not be looked at.\n",
};

struct findings {
	const char *store;
	enum pfs_engine_kind engine;
	struct pfs_json *json; /* NULL: text */
	/* the JSON has begun: with the first finding, or at the end if there was an answer */
	bool started;
	uint64_t n;
};

static void start_json(struct findings *findings)
{
	if (!findings->started) {
		pfs_json_open(findings->json, NULL, '{');
		pfs_json_open(findings->json, "findings", '[');
	}
	findings->started = true;
}

static void end_json(struct findings *findings)
{
	start_json(findings);
	pfs_json_close(findings->json, ']');
	pfs_json_bool(findings->json, "sound", !findings->n);
	pfs_json_close(findings->json, '}');
}

/* Prints a note, which is about no damage. */
static void print_note(struct findings *findings, const char *finding)
{
	if (!findings->json) {
		(void)printf("%s: %s\n", findings->store, finding);
		return;
	}
	start_json(findings);
	pfs_json_bytes(findings->json, NULL, finding, strlen(finding));
}

static void print_finding(void *arg, const char *finding)
{
	struct findings *findings = arg;

	findings->n++;
	print_note(findings, finding);
}

static int explain(const struct findings *findings, int error)
{
	char why[PATH_MAX + 512];

	if (error == -ENODEV)
		return pfs_cmd_fail("check", PFS_CMD_NO_DEVICE);
	pfs_store_explain(why, sizeof(why), findings->store, error);
	return pfs_cmd_fail("check", "%s", why);
}

/* Finds nodes whose links a mount would not follow. The tree's lines begin with the store's name
 * already. */
static void check_links(struct findings *findings, struct pfs_tree *tree)
{
	char line[PATH_MAX + 2048];
	size_t len = strlen(findings->store);

	if (!pfs_tree_links_refused(tree, line, sizeof(line)))
		return;
	if (strncmp(line, findings->store, len) == 0 && strncmp(line + len, ": ", 2) == 0)
		print_note(findings, line + len + 2);
	else
		print_note(findings, line);
}

/* Compares the code of each directory for which queries use one with GMP's product of the primes,
 * and checks whether links would be followed. */
static int check_image(struct findings *findings)
{
	const struct pfs_tree_options tree_options = {
		.read_only = true,
		.wait_ms = PFS_READY_WAIT_MS,
		.engine = findings->engine,
	};
	struct pfs_engine_info info = {.directories = 0};
	struct pfs_tree *tree;
	char finding[128];
	uint64_t wrong = 0;
	int error;

	PFS_TRY(pfs_tree_open(&tree, findings->store, &tree_options));
	check_links(findings, tree);
	error = pfs_tree_check_codes(tree, &wrong);
	if (!error)
		error = pfs_tree_engine(tree, &info);
	(void)pfs_tree_close(tree);
	if (!error && wrong) {
		(void)snprintf(finding, sizeof(finding),
			       "%llu of %llu codes on the engine %s are wrong: its memory or this "
			       "program is at fault, not the store",
			       (unsigned long long)wrong, (unsigned long long)info.directories,
			       info.engine);
		print_finding(findings, finding);
	}
	return error;
}

static int compare_image_file(struct findings *findings, struct pfs_tree *tree,
			      struct pfs_tree *rows)
{
	uint64_t nodes = 0, values = 0;
	char finding[160];

	PFS_TRY(pfs_imagefile_compare(tree, rows, &nodes));
	PFS_TRY(pfs_attrfile_compare(tree, rows, &values));
	if (!nodes && !values)
		return 0;
	(void)snprintf(finding, sizeof(finding),
		       "its image file has %llu nodes and %llu values of attributes otherwise, and "
		       "is removed; the store is sound",
		       (unsigned long long)nodes, (unsigned long long)values);
	pfs_imagefile_remove(tree);
	print_finding(findings, finding);
	return 0;
}

/* Checks the image file, if there is one of the present state, against the store, which alone is
 * the truth. */
static int check_image_file(struct findings *findings)
{
	struct pfs_tree_options how = {.read_only = true, .wait_ms = PFS_READY_WAIT_MS};
	const char *taken = pfs_imagefile_taken(findings->store);
	struct pfs_tree *tree, *rows;
	int error;

	if (taken)
		print_note(findings, taken);
	PFS_TRY(pfs_tree_open(&tree, findings->store, &how));
	how.no_image_file = true;
	error = pfs_tree_open(&rows, findings->store, &how);
	if (error) {
		(void)pfs_tree_close(tree);
		return error;
	}
	error = compare_image_file(findings, tree, rows);
	if (error == -EUCLEAN)
		print_finding(findings,
			      "its image file was damaged, and is removed; the store is sound");
	(void)pfs_tree_close(rows);
	(void)pfs_tree_close(tree);
	return error == -EUCLEAN || error == -ENOENT ? 0 : error;
}

/* No codes are computed of a store that is damaged. */
static int check(struct findings *findings)
{
	const struct pfs_tree_options tree_options = {.wait_ms = PFS_READY_WAIT_MS};
	int error = pfs_tree_check(findings->store, &tree_options, print_finding, findings);

	if (!error && findings->n == 0)
		error = check_image_file(findings);
	if (!error && findings->n == 0)
		error = check_image(findings);
	if (error && error != -EUCLEAN)
		return explain(findings, error);
	if (error && !findings->n)
		print_finding(findings, "damaged beyond opening; restore it from a copy or "
					"import again");
	return findings->n ? PFS_EXIT_NO : PFS_EXIT_OK;
}

int pfs_cmd_check(int argc, char **argv)
{
	struct pfs_json json = {.out = stdout};
	struct findings findings = {0};
	struct pfs_cmd_args args;
	char store[PATH_MAX], folder[PATH_MAX];
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == JSON)
			findings.json = &json;
		else
			pfs_cmd_engine(&args, &findings.engine);
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	findings.store = store;
	status = pfs_ready_name(store, folder, "check", args.operands[0]);
	if (!status)
		status = pfs_ready_unmounted("check", store);
	if (status)
		return status;
	status = check(&findings);
	if (findings.json && (findings.started || status != PFS_EXIT_FAILURE))
		end_json(&findings);
	return pfs_cmd_flush("check", status);
}
