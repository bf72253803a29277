/* SPDX-License-Identifier: MIT */
/* primefs import --trust: whoever runs it vouches for the roots of a copied, restored or old store.
 */
#include "tools/import/import.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "meta/store.h"
#include "tools/client/ready.h"

struct shown {
	struct pfs_store *store;
	struct pfs_json *json; /* NULL: text */
	uint64_t roots;
};

static int show_root(void *arg, const struct pfs_source_root *root)
{
	struct shown *shown = arg;
	uint64_t files;

	PFS_TRY(pfs_store_count_sources(shown->store, &files, root->id));
	shown->roots++;
	if (!shown->json) {
		(void)printf("  %s (%llu files)\n", root->path, (unsigned long long)files);
		return 0;
	}
	pfs_json_open(shown->json, NULL, '{');
	pfs_json_bytes(shown->json, "path", root->path, strlen(root->path));
	pfs_json_u64(shown->json, "files", files);
	pfs_json_close(shown->json, '}');
	return 0;
}

static int show(struct pfs_store *store, const char *path, bool as_json)
{
	struct pfs_json json = {.out = stdout};
	struct shown shown = {.store = store, .json = as_json ? &json : NULL};

	if (!as_json) {
		(void)printf("%s: content is read through from\n", path);
		PFS_TRY(pfs_store_scan_source_roots(store, show_root, &shown));
		if (!shown.roots)
			(void)printf("  nowhere\n");
		return 0;
	}
	pfs_json_open(&json, NULL, '{');
	pfs_json_open(&json, "roots", '[');
	PFS_TRY(pfs_store_scan_source_roots(store, show_root, &shown));
	pfs_json_close(&json, ']');
	pfs_json_close(&json, '}');
	return 0;
}

static int stamp(struct pfs_store *store)
{
	PFS_TRY(pfs_store_begin(store));
	PFS_TRY(pfs_store_stamp(store));
	return pfs_store_commit(store, NULL);
}

/* A stamp counts for a store that is this user's, and nobody else's to write: no other gets one. */
static int vouch(struct pfs_store *open, const char *store, bool json)
{
	enum pfs_store_trust state;

	PFS_TRY(pfs_store_trust(open, &state));
	if (state == PFS_TRUST_NOT_OWN)
		return pfs_cmd_fail("import",
				    "%s: belongs to another user; only its owner can "
				    "vouch for it: make a copy, or give it to this user",
				    store);
	if (state == PFS_TRUST_SHARED)
		return pfs_cmd_fail("import",
				    "%s: others than its owner may write it; first run "
				    "chmod go-w %s",
				    store, store);
	PFS_TRY(show(open, store, json));
	if (state == PFS_TRUST_OWN)
		return 0;
	PFS_TRY(stamp(open));
	PFS_TRY(pfs_store_trust(open, &state));
	if (state != PFS_TRUST_OWN)
		return pfs_cmd_fail("import", "%s: its filesystem has neither handles nor times of "
					      "birth to know the file by; mount it with "
					      "-o links=yes",
				    store);
	return 0;
}

int pfs_import_trust(const char *store, bool json)
{
	const struct pfs_store_options options = {.wait_ms = PFS_READY_WAIT_MS};
	struct pfs_store *open = NULL;
	char why[PATH_MAX + 512];
	int error, closed, status = pfs_ready_unmounted("import", store);

	if (status)
		return status;
	pfs_log_open(PFS_LOG_WARNING, false);
	error = pfs_store_open(&open, store, &options);
	if (!error)
		error = vouch(open, store, json);
	closed = pfs_store_close(open);
	if (error > 0)
		return error;
	if (!error)
		error = closed;
	if (!error)
		return pfs_cmd_flush("import", PFS_EXIT_OK);
	pfs_store_explain(why, sizeof(why), store, error);
	return pfs_cmd_fail("import", "%s", why);
}
