/* SPDX-License-Identifier: MIT */
/* primefs check: is everything in a store as it has to be? */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "meta/store.h"
#include "tools/cmd.h"
#include "tools/ready.h"

enum { JSON };

static const struct pfs_cmd_option options[] = {
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
	struct pfs_json *json; /* NULL: text */
	bool started; /* the JSON, with the first finding or at the end: not when there is no answer
		       */
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

static void print_finding(void *arg, const char *finding)
{
	struct findings *findings = arg;

	findings->n++;
	if (!findings->json) {
		(void)printf("%s: %s\n", findings->store, finding);
		return;
	}
	start_json(findings);
	pfs_json_bytes(findings->json, NULL, finding, strlen(finding));
}

static int check(struct findings *findings)
{
	const struct pfs_tree_options tree_options = {.wait_ms = PFS_READY_WAIT_MS};
	char why[PATH_MAX + 512];
	int error = pfs_tree_check(findings->store, &tree_options, print_finding, findings);

	if (error == -EUCLEAN) {
		if (!findings->n)
			print_finding(findings, "damaged beyond opening; restore it from a copy or "
						"import again");
	} else if (error) {
		pfs_store_explain(why, sizeof(why), findings->store, error);
		return pfs_cmd_fail("check", "%s", why);
	}
	return findings->n ? PFS_EXIT_NO : PFS_EXIT_OK;
}

int pfs_cmd_check(int argc, char **argv)
{
	struct pfs_json json = {.out = stdout};
	struct findings findings = {0};
	struct pfs_cmd_args args;
	int status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while (pfs_cmd_next(&args) == JSON)
		findings.json = &json;
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	findings.store = args.operands[0];
	status = pfs_ready_unmounted("check", findings.store);
	if (status)
		return status;
	status = check(&findings);
	if (findings.json && (findings.started || status != PFS_EXIT_FAILURE))
		end_json(&findings);
	return pfs_cmd_flush("check", status);
}
