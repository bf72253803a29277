/* SPDX-License-Identifier: MIT */
/* The roots, one after the other: what is compared, what is told, what is done. */
#include "tools/refresh/refresh.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/compared.h"
#include "tools/import/ignore.h"
#include "tools/refresh/refresh_impl.h"

/* ---- where a root is in the store ---- */

/* A node whose path in the store ends as the one in the source is below where the root was put. */
static int find_root(void *arg, uint64_t ino, const struct pfs_source_record *record)
{
	struct pfs_refresh *refresh = arg;
	char *path PFS_FREE = NULL;
	size_t len, end;
	int error;

	if (record->root != refresh->root.id)
		return 0;
	if (!record->path_len) {
		refresh->root_ino = ino;
		return 1;
	}
	error = pfs_tree_path(refresh->tree, &path, ino);
	if (error)
		return error == -ESTALE ? 0 : error;
	len = strlen(path);
	end = record->path_len;
	if (len <= end || memcmp(path + len - end, record->path, end) != 0 ||
	    path[len - end - 1] != '/')
		return 0;
	path[len - end - (len - end > 1)] = 0;
	error = pfs_tree_resolve(refresh->tree, &refresh->root_ino, path);
	return error ? error : 1;
}

/* ---- where to begin ---- */

/* The node of the directory above, if it is that of the source's directory above; 0: not. */
static uint64_t find_above(struct pfs_refresh *refresh, const char *path, uint64_t ino)
{
	uint64_t above = pfs_follow_parent(refresh->tree, ino);
	const char *slash = strrchr(path, '/');
	struct pfs_source_record record;
	char above_path[PATH_MAX];

	if (!*path || !above)
		return 0;
	if (above == refresh->root_ino) /* which need not have a record */
		return slash ? 0 : above;
	if (pfs_follow_record(refresh->tree, &record, above_path, above) != 0 ||
	    record.root != refresh->root.id ||
	    record.path_len != (slash ? (size_t)(slash - path) : 0) ||
	    memcmp(path, above_path, record.path_len) != 0)
		return 0;
	return above;
}

/* Looks at the source's directory of the path itself. *batch is NULL if it cannot be looked at. */
static int look_at_directory(struct pfs_refresh *refresh, struct pfs_crawl_batch **batch,
			     const char *path)
{
	struct pfs_refresh_place *place;
	int error, fd;

	*batch = NULL;
	PFS_TRY(pfs_refresh_place(refresh, &place, path, NULL));
	refresh->todo = place->next;
	error = pfs_crawl_look_enter(refresh->look, &fd, place->dir);
	if (!error) {
		error = pfs_crawl_look_at(refresh->look, batch, NULL);
		pfs_crawl_look_leave(refresh->look);
	}
	pfs_refresh_place_free(place);
	return error;
}

/* Notes that nothing is mounted over the node's directory. *first is false if that was known. */
static int pass(struct pfs_refresh *refresh, bool *first, uint64_t ino)
{
	struct pfs_byprime *entry = NULL;

	*first = refresh->cut || !pfs_byprime_find(&refresh->passed, ino);
	if (!*first || refresh->cut)
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->prime = ino;
	pfs_byprime_add(&refresh->passed, entry);
	return 0;
}

/* Sets *unseen if the node's directory is not what is where it was, and something is or was mounted
 * there. */
static int look_above(struct pfs_refresh *refresh, bool *unseen, const char *path, uint64_t ino,
		      uint64_t above)
{
	struct pfs_source_record record;
	struct pfs_follower node;
	struct pfs_there there = {.was = false};
	char recorded[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, &record, recorded, ino), was;

	*unseen = false;
	if (!error)
		error = pfs_follow_node(refresh->tree, &node, ino);
	if (error)
		return error == -ENOENT || error == -ESTALE ? 0 : error;
	was = pfs_refresh_was_mounted(refresh, &record, node.flags, above);
	if (was < 0)
		return was;
	there.was = was;
	error = pfs_refresh_look_there(refresh, &there, path, &record, ino);
	if (error == -ENOMEM)
		return error;
	*unseen = !refresh->options->unmounted && !there.same && (was || there.mounted);
	return 0;
}

/* If something else is mounted in one of the directories above than was, or nothing, the refresh
 * begins there: sets *ino and cuts the path. What lies below there now is of another. The directory
 * itself is looked at when it is walked. */
static int begin_at_mount(struct pfs_refresh *refresh, uint64_t *ino, char *path)
{
	char at_path[PATH_MAX];
	uint64_t at = *ino, above;
	bool first = true, unseen = false, own = true;

	(void)snprintf(at_path, sizeof(at_path), "%s", path);
	while (first && (above = find_above(refresh, at_path, at))) {
		char *slash = strrchr(at_path, '/');

		if (!own)
			PFS_TRY(pass(refresh, &first, at));
		if (!own && first)
			PFS_TRY(look_above(refresh, &unseen, at_path, at, above));
		own = false;
		if (unseen) {
			*ino = at;
			path[strlen(at_path)] = 0;
			refresh->cut = true;
		}
		*(slash ? slash : at_path) = 0;
		at = above;
	}
	return 0;
}

/* What is no longer there needs none. */
static int begin_at(struct pfs_refresh *refresh, uint64_t ino)
{
	struct pfs_source_record record;
	struct pfs_follower node;
	struct pfs_refresh_place *place;
	char path[PATH_MAX];
	uint64_t asked = ino;
	bool first;
	int error = pfs_follow_node(refresh->tree, &node, ino);

	if (error)
		return error == -ESTALE ? 0 : error;
	error = pfs_follow_record(refresh->tree, &record, path, ino);
	if (error && error != -ENOENT)
		return error;
	if (ino == refresh->root_ino)
		*path = 0; /* whatever came to the same directory before */
	else if (error || record.root != refresh->root.id)
		return 0;
	if (!S_ISDIR(node.attr.st_mode)) { /* with what is beside it */
		char *slash = strrchr(path, '/');

		*(slash ? slash : path) = 0;
		ino = pfs_follow_parent(refresh->tree, ino);
	}
	PFS_TRY(begin_at_mount(refresh, &ino, path));
	PFS_TRY(pfs_refresh_begin(refresh, &first, ino));
	if (!first)
		return 0;
	PFS_TRY(pfs_refresh_place(refresh, &place, path, NULL));
	place->ino = ino;
	place->above = find_above(refresh, path, ino);
	place->flat = refresh->options->shallow || ino != asked; /* a file is not begun at */
	return 0;
}

static bool begins_at_root(const struct pfs_refresh *refresh)
{
	const struct pfs_refresh_options *options = refresh->options;

	for (size_t i = 0; i < options->n_inos && !options->shallow; i++)
		if (options->inos[i] == refresh->root_ino)
			return true;
	return !options->n_inos;
}

static int begin_at_root(struct pfs_refresh *refresh)
{
	struct pfs_refresh_place *place;

	PFS_TRY(pfs_refresh_place(refresh, &place, "", NULL));
	place->ino = refresh->root_ino;
	return 0;
}

static int begin(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_options *options = refresh->options;

	if (begins_at_root(refresh))
		return begin_at_root(refresh);
	refresh->unlooked = true;
	for (size_t i = 0; i < options->n_inos; i++)
		PFS_TRY(begin_at(refresh, options->inos[i]));
	return refresh->todo || options->shallow ? 0 : begin_at_root(refresh);
}

/* ---- telling what is going to be done ---- */

static int tell_found(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	char *from PFS_FREE = NULL;

	switch (found->kind) {
	case PFS_FOUND_NEW:
		return pfs_refresh_tell_found(refresh, PFS_REFRESH_ADDED, found, NULL);
	case PFS_FOUND_MOVED:
		PFS_TRY(pfs_tree_path(refresh->tree, &from, found->ino));
		return pfs_refresh_tell_found(refresh, PFS_REFRESH_MOVED, found, from);
	case PFS_FOUND_CHANGED:
		if (found->silent || found->as)
			return 0;
		return pfs_refresh_tell(refresh, PFS_REFRESH_CHANGED, found->ino, NULL, NULL, NULL);
	case PFS_FOUND_LEFT:
		break;
	}
	return 0;
}

static int compare_inos(const void *a, const void *b)
{
	const struct pfs_gone *const *x = a, *const *y = b;

	return ((*x)->by_prime.prime > (*y)->by_prime.prime) -
	       ((*x)->by_prime.prime < (*y)->by_prime.prime);
}

/* Directories first, as their primes are the smaller ones. */
static int tell_gone(struct pfs_refresh *refresh)
{
	const struct pfs_byprime_table *table = &refresh->gone;
	const struct pfs_gone **list PFS_FREE = 
		calloc(PFS_MAX(table->count, 1), sizeof(struct pfs_gone *));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < PFS_MAX(table->size, 1); i++) {
		const struct pfs_byprime *at = table->chains ? table->chains[i] : table->only;

		for (; at; at = at->next) {
			const struct pfs_gone *gone = (const struct pfs_gone *)at;

			if (!gone->present && !gone->claimed)
				list[n++] = gone;
		}
	}
	qsort((void *)list, n, sizeof(struct pfs_gone *), compare_inos);
	for (size_t i = 0; i < n; i++) {
		uint64_t ino = list[i]->by_prime.prime;

		if (refresh->options->keep &&
		    pfs_tree_getxattr(refresh->tree, NULL, 0, ino, PFS_REFRESH_GONE) >= 0)
			continue; /* told before */
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_REMOVED, ino, NULL, NULL, NULL));
	}
	return 0;
}

static int tell_all(struct pfs_refresh *refresh)
{
	for (const struct pfs_finding *found = refresh->found; found; found = found->following)
		PFS_TRY(tell_found(refresh, found));
	return tell_gone(refresh);
}

/* ---- a root ---- */

/* What it takes to follow originals has changed, or was not known when the store was made. */
static int compare_root(struct pfs_refresh *refresh, struct pfs_source_root *record)
{
	struct pfs_crawl_batch *batch;
	const struct stat *now;

	PFS_TRY(look_at_directory(refresh, &batch, ""));
	if (!batch)
		return -ESTALE;
	now = &batch->entries[0].attr;
	if (!record->has_rights || record->mode != now->st_mode || record->uid != now->st_uid ||
	    record->gid != now->st_gid) {
		record->has_rights = true;
		record->mode = now->st_mode;
		record->uid = now->st_uid;
		record->gid = now->st_gid;
		pfs_crawl_mark(batch, &record->mark, &batch->entries[0]);
		refresh->source_changed = true;
	}
	pfs_crawl_look_free(batch);
	return 0;
}

static int refresh_compared(struct pfs_refresh *refresh)
{
	PFS_TRY(begin(refresh));
	PFS_TRY(pfs_refresh_walk(refresh));
	PFS_TRY(pfs_refresh_match(refresh));
	PFS_TRY(tell_all(refresh));
	return refresh->options->dry_run ? 0 : pfs_refresh_apply(refresh);
}

static int problem(void *arg, const char *path, const char *what)
{
	struct pfs_refresh *refresh = arg;
	const struct pfs_refresh_options *options = refresh->options;

	refresh->report->count[PFS_REFRESH_UNREAD]++;
	return options->event ? options->event(options->arg, PFS_REFRESH_UNREAD, path, NULL, what)
			      : 0;
}

/* What is left out: as said, or as the import was told. */
static int find_left_out(struct pfs_refresh *refresh, const struct pfs_leaving_out **out)
{
	char *text PFS_FREE = NULL;
	size_t size;
	int error;

	*out = refresh->options->leaving_out;
	refresh->otherwise = pfs_leaving_out_given(*out);
	if (refresh->otherwise)
		return 0;
	*out = &refresh->left_out;
	error = pfs_follow_left_out(refresh->tree, &text, &size, refresh->root_ino);
	if (error)
		return error == -ENODATA ? 0 : error;
	return pfs_leaving_out_read(&refresh->left_out, text, size);
}

static int refresh_root(struct pfs_refresh *refresh, char *why, size_t why_size)
{
	struct pfs_source_root record;
	char path[PATH_MAX];
	struct pfs_crawl_options options = {
		.root = path,
		.cross_mounts = refresh->options->cross_mounts,
		.marks = true,
		.store = refresh->store,
		.problem = problem,
		.arg = refresh,
	};
	int error;

	PFS_TRY(pfs_follow_root_record(refresh->tree, &record, path, refresh->root.id));
	if (refresh->root.fd < 0) {
		(void)snprintf(why, why_size, "%s", path);
		return -ESTALE;
	}
	error = pfs_follow_find(refresh->tree, find_root, refresh);
	if (error != 1)
		return error; /* nothing of it is left */
	refresh->source = &record;
	refresh->unread = refresh->report->count[PFS_REFRESH_UNREAD];
	error = find_left_out(refresh, &options.leaving_out);
	if (!error)
		error = pfs_crawl_look_open(&refresh->look, &options);
	if (!error)
		error = compare_root(refresh, &record);
	if (!error)
		error = refresh_compared(refresh);
	pfs_refresh_finish(refresh);
	pfs_crawl_look_close(refresh->look);
	pfs_ignore_finish(&refresh->left_out.rules);
	return error;
}

/* ---- when it was compared ---- */

/* True if the node came with the root. */
static bool is_of_root(const struct pfs_refresh *refresh, uint64_t ino)
{
	struct pfs_source_record record;
	char path[PATH_MAX];

	return !pfs_follow_record(refresh->tree, &record, path, ino) &&
	       record.root == refresh->root.id;
}

static int note(const struct pfs_refresh *refresh, uint64_t ino,
		const struct pfs_compared_times *times)
{
	int error = pfs_compared_note(refresh->tree, ino, times, !refresh->options->repeated);

	return error == -ESTALE || error == -ENOENT ? 0 : error;
}

/* Files were compared with all that is in their directory. */
static int note_node(const struct pfs_refresh *refresh, uint64_t ino,
		     const struct pfs_compared_times *times)
{
	const struct pfs_compared_times flat = {.flat_s = times->full_s};
	struct pfs_follower node;

	if (pfs_follow_node(refresh->tree, &node, ino) || !is_of_root(refresh, ino))
		return 0;
	if (S_ISDIR(node.attr.st_mode))
		return note(refresh, ino, times);
	ino = pfs_follow_parent(refresh->tree, ino);
	return flat.flat_s && is_of_root(refresh, ino) ? note(refresh, ino, &flat) : 0;
}

/* The root was added to a directory that has more in it than came with the root. */
static int note_children(const struct pfs_refresh *refresh, const struct pfs_compared_times *times)
{
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, refresh->root_ino, true);

	for (size_t i = 0; i < children.n && !error; i++)
		error = note_node(refresh, children.list[i].ino, times);
	pfs_followers_finish(&children);
	return error == -ESTALE ? 0 : error;
}

static int note_compared(const struct pfs_refresh *refresh, time_t begun)
{
	const struct pfs_refresh_options *options = refresh->options;
	const struct pfs_compared_times times = {
		.full_s = options->quick ? 0 : begun,
		.quick_s = options->quick ? begun : 0,
	};

	for (size_t i = 0; i < options->n_inos; i++)
		PFS_TRY(note_node(refresh, options->inos[i], &times));
	if (options->n_inos || !refresh->root_ino)
		return 0;
	return is_of_root(refresh, refresh->root_ino) ? note(refresh, refresh->root_ino, &times)
						      : note_children(refresh, &times);
}

int pfs_refresh_possible(const struct pfs_tree *tree)
{
	struct pfs_original_root root;

	return pfs_follow_root(tree, &root, 0) ? pfs_follow_allowed(tree) : -ENODATA;
}

void pfs_refresh_explain(char *out, size_t size, int error)
{
	switch (error) {
	case -EPERM:
		(void)snprintf(out, size,
			       "its word about where originals are is not to be trusted, "
			       "or it is mounted with -o links=no; if you trust it, run "
			       "primefs import --trust on it");
		break;
	case -ENODATA:
		(void)snprintf(out, size,
			       "nothing in it was imported from a folder whose files are "
			       "linked; import it again");
		break;
	case -ESTALE:
		(void)snprintf(out, size,
			       "no longer the folder that was imported; bring it back, "
			       "then refresh, or import again");
		break;
	case -EROFS:
		(void)snprintf(out, size,
			       "read-only, or changes cannot be written; mount it for "
			       "writing");
		break;
	default:
		(void)snprintf(out, size, "refreshing: %s", strerror(-error));
	}
}

int pfs_refresh(struct pfs_tree *tree, const struct pfs_refresh_options *options,
		struct pfs_refresh_report *report, char *why, size_t why_size)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	struct pfs_original_root root;
	size_t n = 0;
	PFS_LOCKED(&one_at_a_time);

	*report = (struct pfs_refresh_report){.looked_at = 0};
	PFS_TRY(pfs_refresh_possible(tree));
	for (; pfs_follow_root(tree, &root, n); n++) {
		struct pfs_refresh refresh = {
			.tree = tree,
			.options = options,
			.report = report,
			.root = root,
			.store = options->store,
		};
		time_t begun = time(NULL);

		refresh.kept_end = &refresh.kept;
		refresh.found_end = &refresh.found;
		PFS_TRY(refresh_root(&refresh, why, why_size));
		if (!options->shallow && !options->dry_run)
			PFS_TRY(note_compared(&refresh, begun));
	}
	return 0;
}
