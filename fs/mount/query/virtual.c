/* SPDX-License-Identifier: MIT */
/* The table of virtual nodes, and the open files and directories. */
#include "fs/mount/query/growing.h"
#include "fs/mount/query/shares.h"
#include "fs/mount/query/virtual.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/siphash.h"
#include "fs/mount/notify.h"

#define BUCKETS	  (1u << 16)
#define LOOKED_AT 4 /* at so many of the oldest nodes, for each new node while there are too many */
#define LISTED	  16 /* directories that keep their last listing */

struct pfs_virtuals {
	pthread_mutex_t lock;
	uint64_t last;	 /* the number that was given out last */
	/* shares of users who do not see all: open files; statements */
	struct pfs_shares open, running;
	size_t n;
	struct pfs_virtual *oldest, *newest;
	struct pfs_virtual *listed[LISTED]; /* directories that keep links; NULL: none */
	unsigned next_listed;
	/* of its own, since the kernel keeps notices about a directory waiting during a long lookup
	 * in it */
	struct pfs_notifier *notifier;
	struct pfs_virtual *by_node[BUCKETS];
	struct pfs_virtual *by_name[BUCKETS];
};

int pfs_virtuals_open(struct pfs_virtuals **out,
		      void (*tell)(void *arg, uint64_t dir, const char *name), void *arg)
{
	struct pfs_virtuals *virtuals = calloc(1, sizeof(*virtuals));
	int error;

	*out = NULL;
	if (!virtuals)
		return -ENOMEM;
	error = pfs_notifier_start(&virtuals->notifier, tell, arg);
	if (error) {
		free(virtuals);
		return error;
	}
	*out = virtuals;
	virtuals->last = PFS_VIRTUAL_FIRST;
	(void)pthread_mutex_init(&virtuals->lock, NULL);
	pfs_shares_init(&virtuals->open, PFS_HANDLES_OTHERS);
	pfs_shares_init(&virtuals->running, PFS_RUNNING_OTHERS);
	return 0;
}

struct pfs_shares *pfs_virtuals_running(struct pfs_virtuals *virtuals)
{
	return &virtuals->running;
}

/* ---- names of a listing ---- */

int pfs_virtual_names_add(struct pfs_virtual_names *names, const char *name, size_t len,
			  mode_t type)
{
	PFS_TRY(pfs_grow(&names->names, &names->capacity, names->n + 1, sizeof(*names->names)));
	PFS_TRY(pfs_grow(&names->bytes, &names->bytes_capacity, names->used + len + 1, 1));
	names->names[names->n++] = (struct pfs_virtual_name){names->used, type, 0};
	memcpy(names->bytes + names->used, name, len);
	names->bytes[names->used + len] = '\0';
	names->used += len + 1;
	return 0;
}

void pfs_virtual_names_clear(struct pfs_virtual_names *names)
{
	names->n = names->used = 0;
}

void pfs_virtual_names_finish(struct pfs_virtual_names *names)
{
	free(names->names);
	free(names->bytes);
	*names = (struct pfs_virtual_names){.names = NULL};
}

/* ---- finding ---- */

uint64_t pfs_virtual_st_ino(const struct pfs_virtual *dir, uint64_t ino, const char *name)
{
	uint64_t hash = pfs_siphash(name, strlen(name), dir ? dir->st_ino : ino, 0);

	return PFS_VIRTUAL_FIRST | (hash & ~UINT64_C(1));
}

static struct pfs_virtual **node_bucket(struct pfs_virtuals *virtuals, uint64_t node)
{
	return &virtuals->by_node[node / 2 % BUCKETS];
}

static struct pfs_virtual **name_bucket(struct pfs_virtuals *virtuals, uint64_t st_ino)
{
	return &virtuals->by_name[st_ino / 2 % BUCKETS];
}

/* The lock is held, as in all functions that follow. */
static struct pfs_virtual *find_node(struct pfs_virtuals *virtuals, uint64_t node)
{
	struct pfs_virtual *virtual = *node_bucket(virtuals, node);

	while (virtual && virtual->node != node)
		virtual = virtual->next_node;
	return virtual;
}

static struct pfs_virtual *find_name(struct pfs_virtuals *virtuals,
				     const struct pfs_virtual *parent, uint64_t ino,
				     const char *name)
{
	struct pfs_virtual *virtual = *name_bucket(virtuals, pfs_virtual_st_ino(parent, ino, name));

	while (virtual && (virtual->parent != parent || virtual->ino != ino ||
			   strcmp(virtual->name, name) != 0))
		virtual = virtual->next_name;
	return virtual;
}

/* From now on a lookup of its name makes another node. */
static void unname(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	struct pfs_virtual **link = name_bucket(virtuals, virtual->st_ino);

	if (!virtual->named)
		return;
	while (*link != virtual)
		link = &(*link)->next_name;
	*link = virtual->next_name;
	virtual->named = false;
}

/* ---- age ---- */

static void unlink_age(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	*(virtual->older ? &virtual->older->newer : &virtuals->oldest) = virtual->newer;
	*(virtual->newer ? &virtual->newer->older : &virtuals->newest) = virtual->older;
}

static void link_newest(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	virtual->newer = NULL;
	virtual->older = virtuals->newest;
	*(virtuals->newest ? &virtuals->newest->newer : &virtuals->oldest) = virtual;
	virtuals->newest = virtual;
}

static void make_newest(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	unlink_age(virtuals, virtual);
	link_newest(virtuals, virtual);
}

/* Tells the kernel to forget the oldest nodes that nobody has open and that have no children. */
static void tell_oldest(struct pfs_virtuals *virtuals)
{
	for (int i = 0; i < LOOKED_AT && virtuals->n > PFS_VIRTUALS_KEPT; i++) {
		struct pfs_virtual *oldest = virtuals->oldest;

		make_newest(virtuals, oldest);
		if (oldest->holds || oldest->is_told)
			continue;
		oldest->is_told = true;
		pfs_notifier_push(virtuals->notifier,
				  oldest->parent ? oldest->parent->node : oldest->ino,
				  oldest->name);
	}
}

/* ---- making and freeing ---- */

static void free_links(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	for (size_t i = 0; i < LISTED; i++)
		if (virtuals->listed[i] == virtual)
			virtuals->listed[i] = NULL;
	pfs_virtual_names_finish(&virtual->links);
}

static void free_virtual(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	free_links(virtuals, virtual);
	unlink_age(virtuals, virtual);
	virtuals->n--;
	free(virtual->data);
	free(virtual->name);
	free(virtual);
}

/* Frees nodes that nobody has any more, from this one up. */
static void reap(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	while (virtual && !virtual->holds && !virtual->lookups) {
		struct pfs_virtual *parent = virtual->parent;
		struct pfs_virtual **link = node_bucket(virtuals, virtual->node);

		unname(virtuals, virtual);
		while (*link != virtual)
			link = &(*link)->next_node;
		*link = virtual->next_node;
		free_virtual(virtuals, virtual);
		virtual = parent;
		if (virtual)
			virtual->holds--;
	}
}

struct pfs_virtual *pfs_virtual_get(struct pfs_virtuals *virtuals, uint64_t node)
{
	struct pfs_virtual *virtual;

	PFS_LOCKED(&virtuals->lock);
	virtual = find_node(virtuals, node);
	if (virtual)
		virtual->holds++;
	return virtual;
}

static bool runs(const struct pfs_virtual_kind *kind, enum pfs_virtual_use use, bool sees_all)
{
	if (use == PFS_VIRTUAL_SEARCHED)
		return kind->finds;
	return (kind->runs || (kind->runs_for_others && !sees_all)) &&
	       (use == PFS_VIRTUAL_WRITTEN) == (kind->write != NULL);
}

bool pfs_virtual_runs(struct pfs_virtuals *virtuals, uint64_t node, enum pfs_virtual_use use,
		      bool sees_all)
{
	const struct pfs_virtual *virtual;

	PFS_LOCKED(&virtuals->lock);
	virtual = find_node(virtuals, node);
	return virtual && runs(virtual->kind, use, sees_all);
}

static void hold_virtual(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	PFS_LOCKED(&virtuals->lock);
	virtual->holds++;
}

void pfs_virtual_drop(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	PFS_LOCKED(&virtuals->lock);
	virtual->holds--;
	reap(virtuals, virtual);
}

void pfs_virtual_forget(struct pfs_virtuals *virtuals, uint64_t node, uint64_t n)
{
	struct pfs_virtual *virtual;

	PFS_LOCKED(&virtuals->lock);
	virtual = find_node(virtuals, node);
	if (!virtual)
		return;
	virtual->lookups -= PFS_MIN(n, virtual->lookups);
	reap(virtuals, virtual);
}

/* ---- making ---- */

static struct pfs_virtual *create(struct pfs_virtual *parent, uint64_t ino, const char *name,
				  const struct pfs_virtual_found *found)
{
	struct pfs_virtual *virtual = calloc(1, sizeof(*virtual));

	if (!virtual)
		return NULL;
	virtual->name = strdup(name);
	if (!virtual->name) {
		free(virtual);
		return NULL;
	}
	virtual->st_ino = pfs_virtual_st_ino(parent, ino, name);
	virtual->ino = ino;
	virtual->kind = found->kind;
	virtual->parent = parent;
	virtual->data = found->data;
	return virtual;
}

static void insert(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual)
{
	struct pfs_virtual **link;

	virtuals->last += 2;
	virtual->node = virtuals->last;
	link = node_bucket(virtuals, virtual->node);
	virtual->next_node = *link;
	*link = virtual;
	link = name_bucket(virtuals, virtual->st_ino);
	virtual->next_name = *link;
	*link = virtual;
	virtual->named = true;
	if (virtual->parent)
		virtual->parent->holds++;
	link_newest(virtuals, virtual);
	virtuals->n++;
}

static bool can_be_shared(const struct pfs_virtual *virtual, uid_t uid,
			  const struct pfs_virtual_found *found)
{
	if (S_ISREG(found->kind->mode) && virtual->uid != uid)
		return false;
	if (virtual->kind != found->kind || (virtual->handles && !S_ISDIR(found->kind->mode)))
		return false;
	return !found->kind->differ || !found->kind->differ(virtual->data, found->data);
}

int pfs_virtual_find(struct pfs_virtuals *virtuals, struct pfs_virtual **out,
		     struct pfs_virtual *parent, uint64_t ino, const char *name, uid_t uid,
		     const struct pfs_virtual_found *found)
{
	struct pfs_virtual *virtual;

	PFS_LOCKED(&virtuals->lock);
	*out = NULL;
	virtual = find_name(virtuals, parent, ino, name);
	if (virtual && can_be_shared(virtual, uid, found)) {
		free(found->data);
	} else {
		if (virtual)
			unname(virtuals, virtual);
		virtual = create(parent, ino, name, found);
		if (!virtual) {
			free(found->data);
			return -ENOMEM;
		}
		virtual->uid = uid;
		insert(virtuals, virtual);
	}
	virtual->lookups++;
	virtual->holds++;
	virtual->is_told = false;
	make_newest(virtuals, virtual);
	tell_oldest(virtuals);
	*out = virtual;
	return 0;
}

/* ---- handles ---- */

static void free_handle(struct pfs_handle *handle)
{
	pfs_growing_leave(handle->growing);
	pfs_answer_close(handle->answer);
	pfs_answer_close(handle->written);
	pfs_virtual_names_finish(&handle->names);
	(void)pthread_mutex_destroy(&handle->lock);
	free(handle->groups);
	free(handle->rest);
	free(handle);
}

static int create_handle(struct pfs_handle **out, const struct pfs_call *call)
{
	const struct pfs_query_scope *scope = &call->scope;
	struct pfs_handle *handle = calloc(1, sizeof(*handle));

	*out = NULL;
	if (!handle)
		return -ENOMEM;
	handle->groups = malloc((scope->n_groups + 1) * sizeof(*handle->groups));
	if (!handle->groups ||
	    (!scope->sees_all && !pfs_shares_take(&call->mount->virtuals->open, scope->uid))) {
		int error = handle->groups ? -ENFILE : -ENOMEM;

		free(handle->groups);
		free(handle);
		return error;
	}
	if (scope->n_groups)
		memcpy(handle->groups, scope->groups, scope->n_groups * sizeof(*handle->groups));
	handle->n_groups = scope->n_groups;
	handle->virtual = call->virtual;
	handle->pid = call->pid;
	handle->uid = scope->uid;
	handle->gid = scope->gid;
	handle->sees_all = scope->sees_all;
	(void)pthread_mutex_init(&handle->lock, NULL);
	hold_virtual(call->mount->virtuals, call->virtual);
	*out = handle;
	return 0;
}

void pfs_handle_act(const struct pfs_handle *handle, struct pfs_call *call)
{
	call->scope.sees_all = handle->sees_all;
	call->scope.uid = handle->uid;
	call->scope.gid = handle->gid;
	call->scope.groups = handle->groups;
	call->scope.n_groups = handle->n_groups;
}

static uint64_t find_link(const struct pfs_virtual_names *links, const char *name)
{
	const struct pfs_virtual_name *names = links->names;
	uint64_t at = PFS_SEARCH(i, 0, links->n, strcmp(links->bytes + names[i].at, name) < 0);

	return at < links->n && !strcmp(links->bytes + names[at].at, name) ? names[at].ino : 0;
}

uint64_t pfs_virtual_listed(struct pfs_virtuals *virtuals, const struct pfs_virtual *dir,
			    const char *name, uint64_t epoch)
{
	const struct pfs_handle *handle;

	PFS_LOCKED(&virtuals->lock);
	for (handle = dir->handles; handle; handle = handle->next)
		if (handle->sees_all && handle->names.n && handle->names.epoch == epoch)
			return find_link(&handle->names, name);
	return dir->links.n && dir->links.epoch == epoch ? find_link(&dir->links, name) : 0;
}

/* Keeps the listing after the handle is closed: shells list, close, and then look up each entry. */
static void keep_links(struct pfs_virtuals *virtuals, struct pfs_handle *handle)
{
	struct pfs_virtual *virtual = handle->virtual, **place;

	if (!handle->sees_all || !handle->names.n || !handle->names.names[0].ino)
		return;
	free_links(virtuals, virtual);
	virtual->links = handle->names;
	handle->names = (struct pfs_virtual_names){.names = NULL};
	place = &virtuals->listed[virtuals->next_listed++ % LISTED];
	if (*place)
		free_links(virtuals, *place);
	*place = virtual;
}

void pfs_handle_close(struct pfs_virtuals *virtuals, struct pfs_handle *handle)
{
	struct pfs_handle **link;

	(void)pthread_mutex_lock(&virtuals->lock);
	link = &handle->virtual->handles;
	while (handle->shown && *link != handle)
		link = &(*link)->next;
	if (handle->shown)
		*link = handle->next;
	keep_links(virtuals, handle);
	if (!handle->sees_all)
		pfs_shares_give(&virtuals->open, handle->uid);
	handle->virtual->holds--;
	reap(virtuals, handle->virtual);
	(void)pthread_mutex_unlock(&virtuals->lock);
	free_handle(handle);
}

int pfs_handle_open(struct pfs_handle **out, struct pfs_call *call, int flags,
		    int (*fill)(struct pfs_call *call, struct pfs_handle *handle, int flags))
{
	struct pfs_virtuals *virtuals = call->mount->virtuals;
	struct pfs_handle *handle;
	int error;

	*out = NULL;
	PFS_TRY(create_handle(&handle, call));
	error = fill(call, handle, flags);
	if (error) {
		pfs_handle_close(virtuals, handle);
		return error;
	}
	*out = handle;
	PFS_LOCKED(&virtuals->lock);
	handle->next = handle->virtual->handles;
	handle->virtual->handles = handle;
	handle->shown = true;
	return 0;
}

void pfs_handle_replace(struct pfs_handle *handle, struct pfs_answer *answer,
			struct pfs_growing *growing, uint64_t base)
{
	pfs_growing_leave(handle->growing);
	pfs_answer_close(handle->answer);
	handle->growing = growing;
	handle->answer = answer;
	handle->base = base;
}

/* Returns the size of the handle's answer, as far as it is known. If it is not, *answer is the
 * answer, with a reference; else NULL. */
static uint64_t size_of(struct pfs_handle *handle, struct pfs_answer **answer)
{
	PFS_LOCKED(&handle->lock);

	*answer = NULL;
	if (!handle->answer)
		return 0;
	if (pfs_answer_is_complete(handle->answer))
		return handle->base + pfs_answer_size(handle->answer);
	*answer = pfs_answer_ref(handle->answer);
	return 0;
}

static bool is_of(const struct pfs_handle *handle, const struct pfs_query_scope *scope)
{
	return handle->uid == scope->uid &&
	       (scope->sees_all ||
		(handle->gid == scope->gid && handle->n_groups == scope->n_groups &&
		 (!scope->n_groups || memcmp(handle->groups, scope->groups,
					     scope->n_groups * sizeof(*scope->groups)) == 0)));
}

/* If there are several answers, nobody knows which one is meant, and the size is 0: then programs
 * read to the end. */
static uint64_t size_of_only(const struct pfs_call *call, struct pfs_answer **answer)
{
	struct pfs_virtuals *virtuals = call->mount->virtuals;
	struct pfs_handle *handle, *his = NULL, *some = NULL;
	unsigned n_his = 0, n = 0;

	*answer = NULL;
	PFS_LOCKED(&virtuals->lock);
	for (handle = call->virtual->handles; handle; handle = handle->next) {
		if (!is_of(handle, &call->scope))
			continue;
		some = handle;
		n++;
		if (handle->pid == call->pid) {
			his = handle;
			n_his++;
		}
	}
	if (n_his != 1)
		his = n == 1 ? some : NULL;
	return his ? size_of(his, answer) : 0;
}

uint64_t pfs_handles_size(const struct pfs_call *call, struct pfs_handle *handle)
{
	struct pfs_answer *answer;
	uint64_t size = handle ? size_of(handle, &answer) : size_of_only(call, &answer);

	if (answer && !handle) {
		pfs_answer_measure_some(answer);
		size += pfs_answer_size(answer);
	}
	pfs_answer_close(answer);
	return size;
}

size_t pfs_virtuals_count(struct pfs_virtuals *virtuals)
{
	PFS_LOCKED(&virtuals->lock);
	return virtuals->n;
}

void pfs_virtuals_stop(struct pfs_virtuals *virtuals)
{
	if (!virtuals)
		return;
	pfs_notifier_close(virtuals->notifier);
	virtuals->notifier = NULL;
}

void pfs_virtuals_close(struct pfs_virtuals *virtuals)
{
	size_t i;

	if (!virtuals)
		return;
	/* At an unmount the kernel neither forgets its nodes nor releases its open files. */
	for (i = 0; i < BUCKETS; i++) {
		while (virtuals->by_node[i]) {
			struct pfs_virtual *virtual = virtuals->by_node[i];

			virtuals->by_node[i] = virtual->next_node;
			while (virtual->handles) {
				struct pfs_handle *handle = virtual->handles;

				virtual->handles = handle->next;
				free_handle(handle);
			}
			free_virtual(virtuals, virtual);
		}
	}
	pfs_shares_finish(&virtuals->open);
	pfs_shares_finish(&virtuals->running);
	(void)pthread_mutex_destroy(&virtuals->lock);
	free(virtuals);
}
