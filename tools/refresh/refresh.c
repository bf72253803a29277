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

/* ---- telling what is going to be done ---- */

static int tell_found(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	char *from PFS_FREE = NULL;

	switch (found->kind) {
	case PFS_FOUND_NEW:
		return pfs_refresh_tell_found(refresh, PFS_REFRESH_ADDED, found, NULL, NULL);
	case PFS_FOUND_MOVED:
		PFS_TRY(pfs_tree_path(refresh->tree, &from, found->ino));
		return pfs_refresh_tell_found(refresh, PFS_REFRESH_MOVED, found, from, NULL);
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

			if (!gone->present && !gone->claimed && !gone->stays)
				list[n++] = gone;
		}
	}
	qsort((void *)list, n, sizeof(struct pfs_gone *), compare_inos);
	for (size_t i = 0; i < n; i++) {
		uint64_t ino = list[i]->by_prime.prime;

		if (refresh->options->keep && pfs_refresh_is_marked(refresh, ino))
			continue; /* told before */
		PFS_TRY(pfs_refresh_tell(refresh, PFS_REFRESH_REMOVED, ino, NULL, NULL, NULL));
	}
	return 0;
}

static int tell_all(struct pfs_refresh *refresh)
{
	for (const struct pfs_finding *found = refresh->found; found; found = found->following)
		PFS_TRY(tell_found(refresh, found));
	PFS_TRY(pfs_refresh_note_staying(refresh));
	return tell_gone(refresh);
}

/* ---- a root ---- */

/* What it takes to follow originals has changed, or was not known when the store was made. */
static int compare_root(struct pfs_refresh *refresh)
{
	struct pfs_source_root *record = &refresh->source;
	struct pfs_crawl_batch *batch;
	const struct stat *now;

	PFS_TRY(pfs_refresh_look_at_directory(refresh, &batch, ""));
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
	PFS_TRY(pfs_refresh_set_out(refresh));
	PFS_TRY(pfs_refresh_walk(refresh));
	PFS_TRY(pfs_refresh_match(refresh));
	PFS_TRY(tell_all(refresh));
	return refresh->options->dry_run ? 0 : pfs_refresh_apply(refresh);
}

static int problem(void *arg, const char *path, const char *what)
{
	struct pfs_refresh *refresh = arg;
	const struct pfs_refresh_options *options = refresh->options;
	bool first;

	refresh->report->count[PFS_REFRESH_UNREAD]++;
	if (refresh->reading)
		PFS_TRY(pfs_refresh_note(&refresh->unread_inos, &first, refresh->reading));
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

static int open_folder(struct pfs_refresh *refresh, const struct pfs_crawl_options *options)
{
	PFS_TRY(pfs_follow_find_root(refresh->tree, &refresh->root));
	PFS_TRY(pfs_crawl_look_open(&refresh->look, options));
	return compare_root(refresh);
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

/* Returns true if the node, or one that it lies in, was told as unread. */
static bool is_unread(const struct pfs_refresh *refresh, uint64_t ino)
{
	while (ino && !pfs_byprime_find(&refresh->unread_inos, ino))
		ino = pfs_follow_parent(refresh->tree, ino);
	return ino;
}

static int note(const struct pfs_refresh *refresh, uint64_t ino,
		const struct pfs_compared_times *times)
{
	int error = pfs_compared_note(refresh->tree, ino, times, !refresh->options->repeated);

	return error == -ESTALE || error == -ENOENT ? 0 : error;
}

static int note_above(struct pfs_refresh *refresh, uint64_t ino)
{
	bool first = true;

	while (first && (ino = pfs_follow_parent(refresh->tree, ino)))
		PFS_TRY(pfs_refresh_note(&refresh->partly, &first, ino));
	return 0;
}

/* Lists the directories that something lies in which was told as unread. */
static int find_partly(struct pfs_refresh *refresh)
{
	const struct pfs_byprime_table *table = &refresh->unread_inos;

	for (size_t i = 0; i < PFS_MAX(table->size, 1); i++) {
		const struct pfs_byprime *at = table->chains ? table->chains[i] : table->only;

		for (; at; at = at->next)
			PFS_TRY(note_above(refresh, at->prime));
	}
	return 0;
}

/* Directories that are still to be noted. */
struct to_note {
	uint64_t *list;
	size_t n, capacity;
};

/* Notes that what lies in the directory itself was compared, unless some of it was unread, and adds
 * the directories in it to those that are to be noted. */
static int note_flat(struct pfs_refresh *refresh, struct to_note *todo, uint64_t ino,
		     const struct pfs_compared_times *times)
{
	const struct pfs_compared_times flat = {.flat_s = times->full_s};
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, ino, false);
	bool whole = flat.flat_s;

	for (size_t i = 0; i < children.n && !error; i++) {
		const struct pfs_follower *child = &children.list[i];

		whole &= !pfs_byprime_find(&refresh->unread_inos, child->ino);
		if (!S_ISDIR(child->attr.st_mode))
			continue;
		error = pfs_grow(&todo->list, &todo->capacity, todo->n + 1, sizeof(*todo->list));
		if (!error)
			todo->list[todo->n++] = child->ino;
	}
	pfs_followers_finish(&children);
	if (!error && whole)
		error = note(refresh, ino, &flat);
	return error == -ESTALE ? 0 : error;
}

/* A stamp counts for all below it, so that one that something unread lies below is divided among
 * the directories that it does not lie below. */
static int note_directory(struct pfs_refresh *refresh, uint64_t top,
			  const struct pfs_compared_times *times)
{
	struct to_note todo = {.n = 0};
	uint64_t ino = top;
	int error = 0;

	for (;;) {
		bool unread = pfs_byprime_find(&refresh->unread_inos, ino);

		if (!unread && is_of_root(refresh, ino))
			error = !times->flat_s && pfs_byprime_find(&refresh->partly, ino)
					? note_flat(refresh, &todo, ino, times)
					: note(refresh, ino, times);
		if (error || !todo.n)
			break;
		ino = todo.list[--todo.n];
	}
	free(todo.list);
	return error;
}

/* Files were compared with all that is in their directory, unless the store has moved them. */
static int note_node(struct pfs_refresh *refresh, uint64_t ino,
		     const struct pfs_compared_times *times)
{
	const struct pfs_compared_times flat = {.flat_s = times->full_s};
	struct pfs_follower node;
	bool in_place;

	if (pfs_follow_node(refresh->tree, &node, ino) || !is_of_root(refresh, ino) ||
	    is_unread(refresh, ino))
		return 0;
	if (S_ISDIR(node.attr.st_mode))
		return note_directory(refresh, ino, times);
	PFS_TRY(pfs_refresh_is_in_place(refresh, &in_place, ino));
	ino = pfs_follow_parent(refresh->tree, ino);
	return in_place && flat.flat_s && is_of_root(refresh, ino) ? note(refresh, ino, &flat) : 0;
}

/* The root was added to a directory that has more in it than came with the root. */
static int note_children(struct pfs_refresh *refresh, const struct pfs_compared_times *times)
{
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, refresh->root_ino, true);

	for (size_t i = 0; i < children.n && !error; i++)
		error = note_node(refresh, children.list[i].ino, times);
	pfs_followers_finish(&children);
	return error == -ESTALE ? 0 : error;
}

static int note_compared(struct pfs_refresh *refresh, time_t begun)
{
	const struct pfs_refresh_options *options = refresh->options;
	const struct pfs_compared_times times = {
		.full_s = options->quick ? 0 : begun,
		.quick_s = options->quick ? begun : 0,
	};
	const struct pfs_compared_times flat = {.flat_s = times.full_s};

	if (options->shallow || options->dry_run)
		return 0;
	PFS_TRY(find_partly(refresh));
	if (pfs_refresh_begins_at_root(refresh))
		return is_of_root(refresh, refresh->root_ino)
			       ? note_node(refresh, refresh->root_ino, &times)
			       : note_children(refresh, &times);
	for (size_t i = 0; i < options->n_inos; i++)
		PFS_TRY(note_node(refresh, options->inos[i],
				  i + options->n_flat < options->n_inos ? &times : &flat));
	return 0;
}

/* ---- all of a root ---- */

/* Sets *away to true if it is the folder that fails: it is gone, another one or cannot be read. */
static int refresh_root(struct pfs_refresh *refresh, bool *away)
{
	char path[PATH_MAX];
	struct pfs_crawl_options options = {
		.root = path,
		.cross_mounts = refresh->options->cross_mounts,
		.marks = true,
		.store = refresh->store,
		.problem = problem,
		.arg = refresh,
	};
	time_t begun = time(NULL);
	int error;

	PFS_TRY(pfs_follow_root_record(refresh->tree, &refresh->source, path, refresh->root.id));
	refresh->unread = refresh->report->count[PFS_REFRESH_UNREAD];
	error = find_left_out(refresh, &options.leaving_out);
	if (!error) {
		error = open_folder(refresh, &options);
		*away = error && !pfs_crawl_is_own(error);
	}
	if (!error)
		error = refresh_compared(refresh);
	if (!error)
		error = note_compared(refresh, begun);
	pfs_refresh_finish(refresh);
	pfs_crawl_look_close(refresh->look);
	pfs_ignore_finish(&refresh->left_out.rules);
	return error;
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
	case -EACCES:
		(void)snprintf(out, size,
			       "the folder that was imported cannot be read: %s; let the user who "
			       "refreshes read it",
			       strerror(-error));
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

/* A folder that is not there, and the node that stands for it. */
struct away {
	uint32_t id;
	uint64_t root_ino;
	int error;
};

/* What has become of the folders that the refresh is about. */
struct outcome {
	size_t n_done;
	struct away *away;
	size_t n_away, capacity;
};

static int refresh_one(struct pfs_refresh *refresh, struct outcome *outcome)
{
	const struct pfs_refresh_options *options = refresh->options;
	bool asked, away = false;
	int error;

	PFS_TRY(pfs_refresh_is_asked(refresh, &asked));
	if (!asked)
		return 0;
	PFS_TRY(pfs_refresh_find_root(refresh));
	if (!refresh->root_ino) { /* nothing of it is left */
		outcome->n_done++;
		return 0;
	}
	error = refresh_root(refresh, &away);
	if (away) {
		PFS_TRY(pfs_grow(&outcome->away, &outcome->capacity, outcome->n_away + 1,
				 sizeof(*outcome->away)));
		outcome->away[outcome->n_away++] =
			(struct away){refresh->root.id, refresh->root_ino, error};
		return 0;
	}
	PFS_TRY(error);
	outcome->n_done++;
	if (!options->shallow && !options->dry_run && !options->quick &&
	    pfs_refresh_begins_at_root(refresh))
		pfs_follow_set_followed(refresh->tree, refresh->root.id);
	return 0;
}

/* Others than these are there, and have been refreshed. */
static int tell_away(struct pfs_refresh *refresh, const struct outcome *outcome)
{
	for (size_t i = 0; i < outcome->n_away; i++) {
		const struct away *away = &outcome->away[i];
		char why[PFS_REFRESH_EXPLAINED], path[PATH_MAX], *text PFS_FREE = NULL;
		char *node PFS_FREE = NULL;
		struct pfs_source_root record;
		int error;

		PFS_TRY(pfs_follow_root_record(refresh->tree, &record, path, away->id));
		pfs_refresh_explain(why, sizeof(why), away->error);
		if (asprintf(&text, "%s: %s", path, why) < 0) {
			text = NULL;
			return -ENOMEM;
		}
		error = pfs_tree_path(refresh->tree, &node, away->root_ino);
		if (!error)
			error = problem(refresh, node, text);
		if (error && error != -ESTALE)
			return error;
	}
	return 0;
}

/* What comes of the folders that are not there, once all others have been refreshed. */
static int conclude(struct pfs_refresh *refresh, const struct outcome *outcome, char *why,
		    size_t why_size)
{
	struct pfs_source_root record;
	char path[PATH_MAX], *node PFS_FREE = NULL;
	int error;

	if (outcome->n_done)
		return tell_away(refresh, outcome);
	if (outcome->n_away) {
		PFS_TRY(pfs_follow_root_record(refresh->tree, &record, path, outcome->away->id));
		(void)snprintf(why, why_size, "%s", path);
		return outcome->away->error;
	}
	if (refresh->options->shallow)
		return 0;
	error = pfs_tree_path(refresh->tree, &node, refresh->options->inos[0]);
	(void)snprintf(why, why_size, "%s", error ? "" : node);
	return -ENODATA;
}

int pfs_refresh(struct pfs_tree *tree, const struct pfs_refresh_options *options,
		struct pfs_refresh_report *report, char *why, size_t why_size)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	struct outcome outcome = {.n_done = 0};
	struct pfs_refresh refresh = {.tree = tree, .options = options};
	struct pfs_original_root root;
	int error = pfs_refresh_possible(tree);
	PFS_LOCKED(&one_at_a_time);

	*report = (struct pfs_refresh_report){.looked_at = 0};
	for (size_t i = 0; !error && pfs_follow_root(tree, &root, i); i++) {
		refresh = (struct pfs_refresh){
			.tree = tree,
			.options = options,
			.report = report,
			.root = root,
			.store = options->store,
			.why = why,
			.why_size = why_size,
		};
		refresh.kept_end = &refresh.kept;
		refresh.displaced_end = &refresh.displaced;
		refresh.found_end = &refresh.found;
		error = refresh_one(&refresh, &outcome);
	}
	if (!error)
		error = conclude(&refresh, &outcome, why, why_size);
	free(outcome.away);
	return error;
}
