/* SPDX-License-Identifier: MIT */
/* What is known while a source is compared. */
#include "tools/refresh/refresh_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/siphash.h"
#include "meta/birthmark.h"

/* ---- places ---- */

int pfs_refresh_place(struct pfs_refresh *refresh, struct pfs_refresh_place **out, const char *path,
		   const char *name)
{
	size_t above = strlen(path), len = name ? strlen(name) : 0;
	size_t slash = name && above ? 1 : 0;
	struct pfs_refresh_place *place = calloc(1, sizeof(*place));
	struct pfs_crawl_dir *dir = calloc(1, sizeof(*dir) + above + slash + len + 1);

	if (!place || !dir) {
		free(place);
		free(dir);
		return -ENOMEM;
	}
	dir->path_len = above + slash + len;
	(void)snprintf(dir->path, dir->path_len + 1, "%s%s%s", path, slash ? "/" : "",
		       name ? name : "");
	place->dir = dir;
	place->listed.sec = INT64_MIN;
	place->next = refresh->todo;
	refresh->todo = place;
	*out = place;
	return 0;
}

int pfs_refresh_where(struct pfs_refresh *refresh, struct pfs_refresh_place **out, const char *path,
		      uint64_t ino)
{
	PFS_TRY(pfs_refresh_place(refresh, out, path, NULL));
	refresh->todo = (*out)->next;
	if (!refresh->kept)
		refresh->kept_end = &(*out)->next;
	(*out)->next = refresh->kept;
	refresh->kept = *out;
	(*out)->ino = ino;
	return 0;
}

int pfs_refresh_note(struct pfs_byprime_table *table, bool *first, uint64_t ino)
{
	struct pfs_byprime *entry;

	*first = !pfs_byprime_find(table, ino);
	if (!*first)
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->prime = ino;
	pfs_byprime_add(table, entry);
	return 0;
}

int pfs_refresh_begin(struct pfs_refresh *refresh, bool *first, uint64_t ino)
{
	*first = true;
	return refresh->options->shallow || refresh->options->n_inos > 1
		       ? pfs_refresh_note(&refresh->begun, first, ino)
		       : 0;
}

int pfs_refresh_note_read(struct pfs_refresh *refresh, uint64_t ino, dev_t source_dev,
			  uint64_t source_ino)
{
	struct pfs_read_directories *last = refresh->read_last;

	if (!last || last->n == PFS_READ_AT_ONCE) {
		struct pfs_read_directories *more = malloc(sizeof(*more));

		if (!more)
			return -ENOMEM;
		more->next = NULL;
		more->n = more->n_listed = 0;
		*(last ? &last->next : &refresh->read) = more;
		refresh->read_last = last = more;
	}
	last->list[last->n++] = (struct pfs_read_directory){{.prime = source_ino}, source_dev, ino};
	return 0;
}

/* Few refreshes ask, so that this is done for those that do. */
static void list_read(struct pfs_refresh *refresh)
{
	struct pfs_read_directories *read =
		refresh->read_listed ? refresh->read_listed : refresh->read;

	for (; read; read = read->next) {
		for (; read->n_listed < read->n; read->n_listed++) {
			struct pfs_byprime *entry = &read->list[read->n_listed].by_source;

			if (!pfs_byprime_find(&refresh->read_by_source, entry->prime))
				pfs_byprime_add(&refresh->read_by_source, entry);
		}
		refresh->read_listed = read;
	}
}

uint64_t pfs_refresh_read_as(struct pfs_refresh *refresh, dev_t source_dev, uint64_t source_ino)
{
	const struct pfs_read_directory *read;

	list_read(refresh);
	read = (struct pfs_read_directory *)pfs_byprime_find(&refresh->read_by_source, source_ino);
	return read && read->dev == source_dev ? read->ino : 0;
}

static void forget_read(struct pfs_refresh *refresh)
{
	free(refresh->read_by_source.chains);
	while (refresh->read) {
		struct pfs_read_directories *next = refresh->read->next;

		free(refresh->read);
		refresh->read = next;
	}
}

int pfs_refresh_enter(struct pfs_refresh *refresh, struct pfs_refresh_place *place, int fd)
{
	const struct pfs_crawl_dir *dir = place->dir;
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;

	if (watcher)
		place->number = watcher->enter(watcher->arg, fd, place->ino, &place->was);
	if (place->ino)
		return pfs_refresh_note_read(refresh, place->ino, dir->dev, dir->ino);
	if (!place->was)
		place->was = pfs_refresh_read_as(refresh, dir->dev, dir->ino);
	return 0;
}

bool pfs_refresh_has_moved(struct pfs_refresh *refresh, const struct pfs_finding *found,
			   uint64_t was)
{
	struct pfs_source_record record;
	struct pfs_follower node;
	char path[PATH_MAX];

	return was && was != found->over && !found->entry->mounted && !found->place->in_mount &&
	       !pfs_follow_node(refresh->tree, &node, was) &&
	       !pfs_follow_record(refresh->tree, &record, path, was) &&
	       record.root == refresh->root.id && pfs_refresh_same(refresh, found->batch, &record);
}

bool pfs_refresh_path_of(char out[PATH_MAX], const struct pfs_finding *found, size_t *len)
{
	const struct pfs_crawl_dir *dir = found->place->dir;
	const char *slash = dir->path_len && *found->name ? "/" : "";
	int size = snprintf(out, PATH_MAX, "%s%s%s", dir->path, slash, found->name);

	*len = (size_t)size;
	return size < PATH_MAX;
}

static void free_found(struct pfs_finding *found)
{
	while (found) {
		struct pfs_finding *next = found->following;

		pfs_crawl_look_free(found->batch);
		free(found);
		found = next;
	}
}

void pfs_refresh_place_free(struct pfs_refresh_place *place)
{
	if (!place)
		return;
	free(place->dir);
	free(place->old_path);
	free(place);
}

static void free_places(struct pfs_refresh_place *place)
{
	while (place) {
		struct pfs_refresh_place *next = place->next;

		pfs_refresh_place_free(place);
		place = next;
	}
}

int pfs_refresh_visit(struct pfs_refresh *refresh, struct pfs_refresh_place **out, int *fd,
		      const char *path)
{
	int error;

	PFS_TRY(pfs_refresh_place(refresh, out, path, NULL));
	refresh->todo = (*out)->next;
	error = pfs_crawl_look_enter(refresh->look, fd, (*out)->dir);
	if (error)
		pfs_refresh_place_free(*out);
	return error;
}

void pfs_refresh_leave(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	pfs_crawl_look_leave(refresh->look);
	pfs_refresh_place_free(place);
}

int pfs_refresh_found(struct pfs_refresh *refresh, struct pfs_finding **out,
		      struct pfs_refresh_place *place, struct pfs_crawl_batch *batch,
		      const char *name)
{
	size_t len = strlen(name);
	struct pfs_finding *found = calloc(1, sizeof(*found) + len + 1);

	if (!found) {
		pfs_crawl_look_free(batch);
		return -ENOMEM;
	}
	memcpy(found->name, name, len + 1);
	found->batch = batch;
	found->entry = &batch->entries[0];
	found->place = place;
	place->in_use = true;
	*refresh->found_end = found;
	refresh->found_end = &found->following;
	*out = found;
	return 0;
}

const char *pfs_refresh_name(const char *name)
{
	return strcmp(name, ".query") == 0 ? ".query~" : name;
}

/* ---- what files are known by ---- */

/* Returns the key by which files that may be the same are found: the number, which goes with the
 * handle. */
static uint64_t key_of(uint64_t ino)
{
	return ino + (ino == 0);
}

bool pfs_refresh_same(const struct pfs_refresh *refresh, const struct pfs_crawl_batch *batch,
		   const struct pfs_source_record *record)
{
	const struct pfs_crawl_entry *entry = &batch->entries[0];
	bool on_roots = entry->attr.st_dev == refresh->root.dev;
	struct pfs_birthmark mark;

	pfs_crawl_mark(batch, &mark, entry);
	return on_roots == (record->dev == refresh->root.stored_dev) &&
	       pfs_birthmark_same(&mark, &record->mark) &&
	       ((mark.handle_len && record->mark.handle_len) || record->ino == entry->attr.st_ino);
}

/* ---- what is gone ---- */

struct marks {
	struct pfs_byprime by_key;
	struct pfs_gone *first;
};

struct pfs_gone *pfs_refresh_find(const struct pfs_refresh *refresh, uint64_t ino)
{
	return (struct pfs_gone *)pfs_byprime_find(&refresh->gone, ino);
}

static int list_mark(struct pfs_refresh *refresh, struct pfs_gone *gone)
{
	uint64_t key = key_of(gone->record.ino);
	struct marks *marks = (struct marks *)pfs_byprime_find(&refresh->marks, key);

	if (!marks) {
		marks = calloc(1, sizeof(*marks));
		if (!marks)
			return -ENOMEM;
		marks->by_key.prime = key;
		pfs_byprime_add(&refresh->marks, &marks->by_key);
	}
	gone->alike = marks->first;
	marks->first = gone;
	return 0;
}

/* Sets *is if the entry found, which has the mark of the gone node, is in the same filesystem. */
static int is_in_same(struct pfs_refresh *refresh, bool *is, const struct pfs_finding *found,
		      const struct pfs_gone *gone)
{
	const struct pfs_crawl_dir *dir = found->place->dir;
	const struct pfs_crawl_entry *entry = found->entry;
	struct pfs_there there = {.was = true, .elsewhere = true};
	char path[PATH_MAX];
	int size;

	*is = pfs_refresh_may_be_on(refresh, gone->record.dev, entry->attr.st_dev);
	if (!*is || !entry->mounted)
		return 0;
	size = snprintf(path, sizeof(path), "%s%s%s", dir->path, dir->path_len ? "/" : "",
			found->name);
	*is = (size_t)size < sizeof(path);
	if (!*is)
		return 0;
	PFS_TRY(pfs_refresh_look_there(refresh, &there, path, &gone->record, gone->by_prime.prime));
	*is = there.same;
	return 0;
}

int pfs_refresh_twin(struct pfs_refresh *refresh, struct pfs_gone **out,
		     const struct pfs_finding *found)
{
	const struct marks *marks = (struct marks *)pfs_byprime_find(
		&refresh->marks, key_of(found->entry->attr.st_ino));
	struct pfs_gone *gone = marks ? marks->first : NULL;
	bool is = false;

	if (found->removed)
		gone = NULL;
	for (; gone && !is; gone = is ? gone : gone->alike)
		if (!gone->present && !gone->claimed &&
		    (gone->mode & S_IFMT) == (found->entry->attr.st_mode & S_IFMT) &&
		    pfs_refresh_same(refresh, found->batch, &gone->record))
			PFS_TRY(is_in_same(refresh, &is, found, gone));
	*out = gone;
	return 0;
}

/* If it is a directory that the store has changed, what that has moved out of it is sought. */
static int note_gone(struct pfs_refresh *refresh, struct pfs_gone **out, uint64_t ino,
		     const struct pfs_source_record *record, const struct stat *node)
{
	struct pfs_gone *gone = calloc(1, sizeof(*gone) + record->path_len + 1);

	if (!gone)
		return -ENOMEM;
	memcpy(gone->path, record->path, record->path_len);
	gone->record = *record;
	gone->record.path = gone->path;
	gone->mode = node->st_mode;
	gone->by_prime.prime = ino;
	gone->parent = pfs_follow_parent(refresh->tree, ino);
	pfs_byprime_add(&refresh->gone, &gone->by_prime);
	*out = gone;
	PFS_TRY(list_mark(refresh, gone));
	return S_ISDIR(node->st_mode) && !pfs_is_time(record->ctime, node->st_ctim)
		       ? pfs_refresh_seek(refresh, gone->path)
		       : 0;
}

/* A directory below one that is gone. */
struct below {
	uint64_t ino;
	const char *path; /* in the record of the lowest one, among it and those above it, that the
			   * store has moved, or of the one that is gone */
};

/* Those that are still to be listed. */
struct to_list {
	struct below *list;
	size_t n, capacity;
};

static int add_to_list(struct to_list *todo, uint64_t ino, const char *path)
{
	PFS_TRY(pfs_grow(&todo->list, &todo->capacity, todo->n + 1, sizeof(*todo->list)));
	todo->list[todo->n++] = (struct below){ino, path};
	return 0;
}

static bool is_below(const struct pfs_source_record *record, const char *path)
{
	const char *recorded = record->path;
	size_t len = strlen(path);

	return record->path_len > len && recorded[len] == '/' && memcmp(recorded, path, len) == 0;
}

/* Returns true if the record is of an entry of the directory of that path. */
static bool is_in(const struct pfs_source_record *record, const char *path)
{
	const char *recorded = record->path;

	return is_below(record, path) && !strchr(recorded + strlen(path) + 1, '/');
}

/* Notes that the store has moved the child by itself. *path: its own, as long as the refresh. */
static int displace_below(struct pfs_refresh *refresh, const struct pfs_follower *child,
			  const struct pfs_source_record *record, const char **path)
{
	const struct pfs_displaced *displaced;

	PFS_TRY(pfs_refresh_displaced(refresh, child->ino, record->path, NULL));
	displaced = (struct pfs_displaced *)pfs_byprime_find(&refresh->displaced_inos, child->ino);
	*path = displaced->path;
	return 0;
}

/* *above is the path in the record of the directory that the child came there with, "" if the
 * store has made that, and NULL if it came with another root; if the store has moved the child by
 * itself, its own. */
static int note_below_one(struct pfs_refresh *refresh, const struct pfs_follower *child,
			  const struct pfs_gone *top, const char **above)
{
	struct pfs_source_record record;
	struct pfs_gone *gone = pfs_refresh_find(refresh, child->ino);
	const char *came_with = *above;
	char path[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, &record, path, child->ino);

	if (error || record.root != refresh->root.id) {
		*above = error ? "" : NULL;
		return error == -ENOENT ? 0 : error;
	}
	if (!is_below(&record, top->path))
		return is_below(&record, came_with ? came_with : top->path)
			       ? 0
			       : displace_below(refresh, child, &record, above);
	if (!gone)
		PFS_TRY(note_gone(refresh, &gone, child->ino, &record, &child->attr));
	*above = gone->path;
	return !came_with || is_in(&record, came_with)
		       ? 0
		       : displace_below(refresh, child, &record, above);
}

/* All with a record below a directory that is gone; what the store has moved there is not gone with
 * it, nor is what came there with that. */
static int note_below(struct pfs_refresh *refresh, struct pfs_gone *gone)
{
	struct pfs_followers children = {.n = 0};
	struct to_list todo = {.n = 0};
	int error = add_to_list(&todo, gone->by_prime.prime, gone->path);

	while (!error && todo.n) {
		const struct below above = todo.list[--todo.n];

		error = pfs_follow_list(refresh->tree, &children, above.ino, false);
		gone->n_below += children.n;
		for (size_t i = 0; i < children.n && !error; i++) {
			const struct pfs_follower *child = &children.list[i];
			const char *path = above.path;

			error = note_below_one(refresh, child, gone, &path);
			if (!error)
				error = pfs_follow_former(refresh->tree, &gone->former, child->ino);
			if (!error && S_ISDIR(child->attr.st_mode))
				error = add_to_list(&todo, child->ino, path);
		}
	}
	pfs_followers_finish(&children);
	free(todo.list);
	return error;
}

int pfs_refresh_gone(struct pfs_refresh *refresh, struct pfs_gone **out,
		     struct pfs_refresh_place *place, uint64_t ino,
		     const struct pfs_source_record *record)
{
	struct pfs_gone *gone = pfs_refresh_find(refresh, ino);
	struct pfs_gone **list = place ? &place->gone : &refresh->loose;
	struct pfs_follower node;

	if (!gone) {
		PFS_TRY(pfs_follow_node(refresh->tree, &node, ino));
		PFS_TRY(note_gone(refresh, &gone, ino, record, &node.attr));
	}
	*out = gone;
	if (gone->top)
		return 0;
	if (S_ISDIR(gone->mode))
		PFS_TRY(note_below(refresh, gone));
	PFS_TRY(pfs_follow_former(refresh->tree, &gone->former, ino));
	gone->top = true;
	gone->next = *list;
	*list = gone;
	if (place)
		place->in_use = true;
	return 0;
}

/* ---- telling ---- */

int pfs_refresh_tell(struct pfs_refresh *refresh, enum pfs_refresh_event event, uint64_t ino,
		  const char *name, const char *from, const char *why)
{
	const struct pfs_refresh_options *options = refresh->options;
	char *folder PFS_FREE = NULL, *path PFS_FREE = NULL;
	bool first;
	int error;

	refresh->report->count[event]++;
	if (event == PFS_REFRESH_UNREAD)
		PFS_TRY(pfs_refresh_note(&refresh->unread_inos, &first, ino));
	if (!options->event || !ino)
		return 0;
	error = pfs_tree_path(refresh->tree, &folder, ino);
	if (error)
		return error == -ESTALE ? 0 : error;
	if (!name)
		return options->event(options->arg, event, folder, from, why);
	if (asprintf(&path, "%s/%s", folder[1] ? folder : "", name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return options->event(options->arg, event, path, from, why);
}

int pfs_refresh_tell_found(struct pfs_refresh *refresh, enum pfs_refresh_event event,
			const struct pfs_finding *found, const char *from, const char *why)
{
	const struct pfs_refresh_place *place = found->place;
	const char *name = pfs_refresh_name(found->name), *below = place->dir->path;
	char *path PFS_FREE = NULL;

	if (place->ino)
		return pfs_refresh_tell(refresh, event, place->ino, name, from, why);
	while (!place->ino)
		place = place->from->place;
	below += place->dir->path_len;
	if (asprintf(&path, "%s/%s", below + (*below == '/'), name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return pfs_refresh_tell(refresh, event, place->ino, path, from, why);
}

/* ---- the end ---- */

static void free_gone(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	free(entry);
}

void pfs_refresh_finish(struct pfs_refresh *refresh)
{
	refresh->reading = 0;
	free_found(refresh->found);
	free_places(refresh->todo);
	free_places(refresh->kept);
	pfs_byprime_drain(&refresh->gone, free_gone, NULL);
	pfs_byprime_drain(&refresh->marks, free_gone, NULL);
	forget_read(refresh);
	pfs_byprime_drain(&refresh->begun, free_gone, NULL);
	pfs_byprime_drain(&refresh->unread_inos, free_gone, NULL);
	pfs_byprime_drain(&refresh->partly, free_gone, NULL);
	pfs_refresh_displaced_finish(refresh);
	free(refresh->devices);
	pfs_byprime_drain(&refresh->passed, free_gone, NULL);
	pfs_followers_finish(&refresh->children);
	pfs_pool_close(refresh->pool);
}
