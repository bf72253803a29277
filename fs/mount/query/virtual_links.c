/* SPDX-License-Identifier: MIT */
/* Directories of symlinks to the nodes of a statement. If several nodes have one name, each link is
 * called name~prime; the root, whose name is empty, is an encoded slash. */
#include "fs/mount/query/virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/facet.h"
#include "fs/nodes/scan.h"

#define ROOT_NAME "%2F"

/* ---- what a link is: its data is the target ---- */

static bool targets_differ(const void *data, const void *found)
{
	return strcmp(data, found) != 0;
}

static const struct pfs_virtual_kind link_kind = {
	.mode = S_IFLNK | 0777,
	.differ = targets_differ,
};

/* ---- listing ---- */

static int add(struct pfs_virtual_names *names, const char *name, size_t len, int64_t ino)
{
	PFS_TRY(pfs_virtual_names_add(names, name, len, S_IFLNK));
	names->names[names->n - 1].ino = (uint64_t)ino;
	return 0;
}

static int add_link(void *arg, const struct pfs_query *query)
{
	struct pfs_virtual_names *names = arg;
	struct pfs_sql_value name;
	char longer[PFS_FACET_NAME_MAX + 1], suffix[32] = "";
	size_t suffix_len = 0, len;
	int64_t ino;

	if (!query) {
		pfs_virtual_names_clear(names);
		return 0;
	}
	pfs_query_value(query, 0, &name);
	ino = pfs_query_integer(query, 1);
	if (!name.size) {
		name.bytes = ROOT_NAME;
		name.size = strlen(ROOT_NAME);
	}
	if (pfs_query_integer(query, 2) == 1)
		return add(names, name.bytes, name.size, ino);
	suffix_len = (size_t)snprintf(suffix, sizeof(suffix), "~%lld", (long long)ino);
	len = PFS_MIN(name.size, PFS_FACET_NAME_MAX - suffix_len);
	memcpy(longer, name.bytes, len);
	memcpy(longer + len, suffix, suffix_len);
	return add(names, longer, len + suffix_len, ino);
}

static int compare_names(const void *a, const void *b, void *bytes)
{
	const struct pfs_virtual_name *x = a, *y = b;

	return strcmp((const char *)bytes + x->at, (const char *)bytes + y->at);
}

int pfs_links_list(struct pfs_call *call, struct pfs_virtual_names *names, const char *from)
{
	char *sql PFS_FREE = NULL;

	if (asprintf(&sql, "SELECT name, ino, count(*) OVER (PARTITION BY name) FROM (%s\n)",
		     from) < 0) {
		sql = NULL;
		return -ENOMEM;
	}
	PFS_TRY(pfs_call_rows(call, sql, strlen(sql), add_link, names));
	if (names->n)
		qsort_r(names->names, names->n, sizeof(*names->names), compare_names, names->bytes);
	names->epoch = call->epoch;
	return 0;
}

/* ---- looking up ---- */

struct target {
	char *path;
	size_t n; /* how many rows there are */
};

static int take_path(void *arg, const struct pfs_query *query)
{
	struct target *target = arg;
	struct pfs_sql_value path;

	free(target->path);
	target->path = NULL;
	target->n = query ? target->n + 1 : 0;
	if (!query || target->n > 1)
		return 0;
	pfs_query_value(query, 0, &path);
	target->path = strndup(path.size ? path.bytes : "", path.size);
	return target->path ? 0 : -ENOMEM;
}

/* Finds the path of the only node that the statement has under this name. */
static int find_one(struct pfs_call *call, struct target *target, const char *from,
		    const char *name, const char *ino)
{
	size_t len = ino ? (size_t)(ino - 1 - name) : strlen(name), size;
	char *sql = NULL;
	FILE *out = open_memstream(&sql, &size);
	int error = -ENOMEM;

	if (!out)
		return -ENOMEM;
	(void)fprintf(out, "SELECT path FROM (%s\n) WHERE ", from);
	if (ino)
		(void)fprintf(out, "ino = %s AND substr(CAST(name AS BLOB), 1, %zu) = CAST(", ino,
			      len);
	else
		(void)fputs("name = CAST(", out);
	if (len == strlen(ROOT_NAME) && memcmp(name, ROOT_NAME, len) == 0)
		(void)fputs("''", out);
	else
		pfs_sql_literal(out, name, len);
	(void)fputs(ino ? " AS BLOB) LIMIT 2" : " AS TEXT) LIMIT 2", out);
	if (fclose(out) == 0)
		error = pfs_call_rows(call, sql, strlen(sql), take_path, target);
	free(sql);
	return error;
}

/* Returns the digits after the last tilde, or NULL. */
static const char *suffix_of(const char *name)
{
	const char *tilde = strrchr(name, '~');

	if (!tilde || !tilde[1] || strlen(tilde) > 20 ||
	    strspn(tilde + 1, "0123456789") != strlen(tilde + 1))
		return NULL;
	return tilde + 1;
}

/* Makes *out the way to `path` from a directory that is `up` levels below `base`. */
static int make_relative(char **out, const char *base, const char *path, unsigned up)
{
	size_t base_len = strcmp(base, "/") == 0 ? 0 : strlen(base), rest;
	char *at;

	if (strncmp(path, base, base_len) != 0 || (path[base_len] && path[base_len] != '/'))
		return -ESTALE; /* it was moved away meanwhile */
	path += base_len;
	rest = strlen(path);
	if (up * 3 + rest >= PATH_MAX)
		return -ENAMETOOLONG;
	*out = malloc(up * (size_t)3 + rest + 1);
	if (!*out)
		return -ENOMEM;
	at = *out;
	while (up--)
		at = stpcpy(at, "../");
	if (rest > 1)
		memcpy(at, path + 1, rest);
	else
		at[-1] = '\0'; /* it is the directory itself */
	return 0;
}

static int find_path(struct pfs_call *call, char **path, const char *name, const char *from)
{
	struct target target = {.path = NULL};
	const char *ino = suffix_of(name);
	int error = find_one(call, &target, from, name, NULL);

	if (!error && target.n == 0 && ino)
		error = find_one(call, &target, from, name, ino);
	if (!error && target.n != 1)
		error = -ENOENT;
	if (error)
		free(target.path);
	else
		*path = target.path;
	return error;
}

int pfs_links_known(struct pfs_call *call, struct pfs_virtual_found *found,
		    const struct pfs_virtual *dir, const char *name, unsigned up)
{
	struct pfs_tree *tree = call->mount->tree;
	char *path PFS_FREE = NULL, *base PFS_FREE = NULL;
	uint64_t epoch, ino;

	if (!call->scope.sees_all)
		return -ENOENT;
	epoch = pfs_scan_lock(tree, __func__);
	pfs_scan_unlock(tree);
	ino = pfs_virtual_listed(call->mount->virtuals, dir, name, epoch);
	if (!ino)
		return -ENOENT;
	PFS_TRY(pfs_tree_path(tree, &path, ino));
	PFS_TRY(pfs_tree_path(tree, &base, call->scope.ino));
	found->kind = &link_kind;
	return make_relative((char **)&found->data, base, path, up);
}

int pfs_links_lookup(struct pfs_call *call, struct pfs_virtual_found *found, const char *name,
		     const char *from, unsigned up)
{
	char *base PFS_FREE = NULL, *path PFS_FREE = NULL;

	PFS_TRY(find_path(call, &path, name, from));
	PFS_TRY(pfs_tree_path(call->mount->tree, &base, call->scope.ino));
	found->kind = &link_kind;
	return make_relative((char **)&found->data, base, path, up);
}
