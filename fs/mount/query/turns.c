/* SPDX-License-Identifier: MIT */
#include "fs/mount/query/turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define OVERTAKEN 64 /* numbers withdrawn that are remembered */

struct waiting {
	struct waiting *next;
	struct pfs_turn turn;
	size_t len;
	void *request;
};

/* Whoever has a turn, or waits for one. */
struct user {
	uid_t uid;
	bool sees_all;
	unsigned running, n_waiting;
	uint64_t served; /* when he last got a turn, 0: not yet */
	struct waiting *first, **last;
};

struct pfs_turns {
	pthread_mutex_t lock;
	unsigned slots;
	/* protected by lock */
	unsigned running, others_running, n_waiting;
	uint64_t clock; /* turns given */
	struct user **users;
	size_t n, capacity;
	uint64_t overtaken[OVERTAKEN];
	unsigned next_overtaken;
};

int pfs_turns_open(struct pfs_turns **out, unsigned slots)
{
	struct pfs_turns *turns = calloc(1, sizeof(*turns));

	*out = turns;
	if (!turns)
		return -ENOMEM;
	turns->slots = slots;
	(void)pthread_mutex_init(&turns->lock, NULL);
	return 0;
}

static void free_waiting(struct waiting *waiting)
{
	free(waiting->request);
	free(waiting);
}

void pfs_turns_close(struct pfs_turns *turns)
{
	if (!turns)
		return;
	for (size_t i = 0; i < turns->n; i++) {
		while (turns->users[i]->first) {
			struct waiting *waiting = turns->users[i]->first;

			turns->users[i]->first = waiting->next;
			free_waiting(waiting);
		}
		free(turns->users[i]);
	}
	free(turns->users);
	(void)pthread_mutex_destroy(&turns->lock);
	free(turns);
}

/* ---- with the lock ---- */

static struct user *find_user(struct pfs_turns *turns, const struct pfs_turn *turn)
{
	struct user *user;

	for (size_t i = 0; i < turns->n; i++)
		if (turns->users[i]->uid == turn->uid)
			return turns->users[i];
	if (pfs_grow(&turns->users, &turns->capacity, turns->n + 1, sizeof(struct user *)))
		return NULL;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	*user = (struct user){.uid = turn->uid, .sees_all = turn->sees_all};
	user->last = &user->first;
	turns->users[turns->n++] = user;
	return user;
}

static void forget_idle(struct pfs_turns *turns, struct user *user)
{
	size_t i = 0;

	if (user->running || user->first)
		return;
	while (turns->users[i] != user)
		i++;
	turns->users[i] = turns->users[--turns->n];
	free(user);
}

static bool may_run(const struct pfs_turns *turns, const struct user *user)
{
	return turns->running < turns->slots &&
	       (user->sees_all || turns->others_running < PFS_MAX(turns->slots / 2, 1));
}

static void give(struct pfs_turns *turns, struct user *user)
{
	user->running++;
	user->served = ++turns->clock;
	turns->running++;
	turns->others_running += !user->sees_all;
}

static void give_back(struct pfs_turns *turns, struct user *user)
{
	user->running--;
	turns->running--;
	turns->others_running -= !user->sees_all;
}

static struct user *next_user(const struct pfs_turns *turns)
{
	struct user *best = NULL;

	for (size_t i = 0; i < turns->n; i++) {
		struct user *user = turns->users[i];

		if (!user->first || !may_run(turns, user))
			continue;
		if (!best || user->running < best->running ||
		    (user->running == best->running && user->served < best->served))
			best = user;
	}
	return best;
}

static int wait_for_turn(struct pfs_turns *turns, struct user *user, const struct pfs_turn *turn,
			 const void *request, size_t len)
{
	struct waiting *waiting;

	if (!user->sees_all && user->n_waiting == PFS_WAITING_OTHERS)
		return -EAGAIN;
	waiting = malloc(sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	*waiting = (struct waiting){.turn = *turn, .len = len, .request = malloc(len)};
	if (!waiting->request) {
		free(waiting);
		return -ENOMEM;
	}
	memcpy(waiting->request, request, len);
	*user->last = waiting;
	user->last = &waiting->next;
	user->n_waiting++;
	turns->n_waiting++;
	return 0;
}

static struct waiting *unlink_waiting(struct pfs_turns *turns, struct user *user, struct waiting **link)
{
	struct waiting *waiting = *link;

	*link = waiting->next;
	if (!*link)
		user->last = link;
	user->n_waiting--;
	turns->n_waiting--;
	return waiting;
}

static bool was_overtaken(struct pfs_turns *turns, uint64_t number)
{
	for (size_t i = 0; i < OVERTAKEN; i++) {
		if (turns->overtaken[i] != number)
			continue;
		turns->overtaken[i] = 0;
		return number != 0;
	}
	return false;
}

/* ---- */

int pfs_turns_take(struct pfs_turns *turns, const struct pfs_turn *turn, const void *request, size_t len)
{
	struct user *user;
	int error = 1;
	PFS_LOCKED(&turns->lock);

	if (was_overtaken(turns, turn->number))
		return -EINTR;
	user = find_user(turns, turn);
	if (!user)
		return -ENOMEM;
	if (!user->first && may_run(turns, user)) {
		give(turns, user);
		return 1;
	}
	error = wait_for_turn(turns, user, turn, request, len);
	forget_idle(turns, user);
	return error;
}

void *pfs_turns_end(struct pfs_turns *turns, struct pfs_turn *turn, size_t *len)
{
	struct user *user, *next;
	void *request = NULL;
	PFS_LOCKED(&turns->lock);

	user = find_user(turns, turn); /* is there: he has a turn */
	if (user)
		give_back(turns, user);
	next = next_user(turns);
	if (next) {
		struct waiting *waiting = unlink_waiting(turns, next, &next->first);

		give(turns, next);
		*turn = waiting->turn;
		*len = waiting->len;
		request = waiting->request;
		free(waiting);
	}
	if (user)
		forget_idle(turns, user);
	return request;
}

bool pfs_turns_withdraw(struct pfs_turns *turns, uint64_t number)
{
	PFS_LOCKED(&turns->lock);

	for (size_t i = 0; i < turns->n; i++) {
		struct user *user = turns->users[i];

		for (struct waiting **link = &user->first; *link; link = &(*link)->next) {
			if ((*link)->turn.number != number)
				continue;
			free_waiting(unlink_waiting(turns, user, link));
			forget_idle(turns, user);
			return true;
		}
	}
	turns->overtaken[turns->next_overtaken++ % OVERTAKEN] = number;
	return false;
}

unsigned pfs_turns_waiting(struct pfs_turns *turns)
{
	PFS_LOCKED(&turns->lock);

	return turns->n_waiting;
}
