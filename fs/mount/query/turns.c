/* SPDX-License-Identifier: MIT */
#include "fs/mount/query/turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define OVERTAKEN 64 /* numbers withdrawn that are remembered */
#define GONE_MS	  100 /* after which a call that waits is asked again whether anybody wants it */

/* A request that waits, or a call, which is on its thread's stack. */
struct waiting {
	struct waiting *next;
	struct pfs_turn turn;
	size_t len;
	void *request; /* NULL: it is a call */
	/* Of a call: */
	pthread_cond_t changed; /* it has its turn, or the turns are stopped */
	bool has_turn;		/* protected by the turns' lock */
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
	pthread_cond_t ended; /* no call is left */
	unsigned slots;
	pfs_turns_go_on *go_on;
	void *arg;
	/* protected by lock */
	unsigned refs;
	unsigned calls; /* that wait for a turn or have one */
	bool is_stopped;
	unsigned running, others_running, n_waiting;
	uint64_t clock; /* turns given */
	struct user **users;
	size_t n, capacity;
	uint64_t overtaken[OVERTAKEN];
	unsigned next_overtaken;
};

int pfs_turns_open(struct pfs_turns **out, unsigned slots, pfs_turns_go_on *go_on, void *arg)
{
	struct pfs_turns *turns = calloc(1, sizeof(*turns));

	*out = turns;
	if (!turns)
		return -ENOMEM;
	turns->slots = slots;
	turns->go_on = go_on;
	turns->arg = arg;
	turns->refs = 1;
	(void)pthread_mutex_init(&turns->lock, NULL);
	(void)pthread_cond_init(&turns->ended, NULL);
	return 0;
}

struct pfs_turns *pfs_turns_ref(struct pfs_turns *turns)
{
	if (turns) {
		PFS_LOCKED(&turns->lock);
		turns->refs++;
	}
	return turns;
}

static bool unref(struct pfs_turns *turns)
{
	PFS_LOCKED(&turns->lock);

	return --turns->refs == 0;
}

static void free_waiting(struct waiting *waiting)
{
	free(waiting->request);
	free(waiting);
}

void pfs_turns_close(struct pfs_turns *turns)
{
	if (!turns || !unref(turns))
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
	(void)pthread_cond_destroy(&turns->ended);
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

static int link_waiting(struct pfs_turns *turns, struct user *user, struct waiting *waiting)
{
	if (!user->sees_all && user->n_waiting == PFS_WAITING_OTHERS)
		return -EAGAIN;
	*user->last = waiting;
	user->last = &waiting->next;
	user->n_waiting++;
	turns->n_waiting++;
	return 0;
}

static int wait_for_turn(struct pfs_turns *turns, struct user *user, const struct pfs_turn *turn,
			 const void *request, size_t len)
{
	struct waiting *waiting;
	int error;

	waiting = malloc(sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	*waiting = (struct waiting){.turn = *turn, .len = len, .request = malloc(len)};
	if (!waiting->request) {
		free(waiting);
		return -ENOMEM;
	}
	memcpy(waiting->request, request, len);
	error = link_waiting(turns, user, waiting);
	if (error)
		free_waiting(waiting);
	return error;
}

static struct waiting *unlink_waiting(struct pfs_turns *turns, struct user *user,
				      struct waiting **link)
{
	struct waiting *waiting = *link;

	*link = waiting->next;
	if (!*link)
		user->last = link;
	user->n_waiting--;
	turns->n_waiting--;
	return waiting;
}

/* Gives a turn that is free to whoever is next. Returns the request that has it now; NULL: none
 * has, or a call, whose thread goes on. */
static struct waiting *give_next(struct pfs_turns *turns)
{
	struct user *next = next_user(turns);
	struct waiting *waiting;

	if (!next)
		return NULL;
	waiting = unlink_waiting(turns, next, &next->first);
	give(turns, next);
	if (waiting->request)
		return waiting;
	waiting->has_turn = true;
	(void)pthread_cond_signal(&waiting->changed);
	return NULL;
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

int pfs_turns_take(struct pfs_turns *turns, const struct pfs_turn *turn, const void *request,
		   size_t len)
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
	struct waiting *waiting;
	struct user *user;
	void *request = NULL;
	PFS_LOCKED(&turns->lock);

	user = find_user(turns, turn); /* is there: he has a turn */
	if (user)
		give_back(turns, user);
	waiting = give_next(turns);
	if (waiting) {
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

/* ---- calls ---- */

/* Waits until the call has its turn, or nobody wants it any more. The caller holds the lock, which
 * is let go of meanwhile. */
static int wait_as_call(struct pfs_turns *turns, struct user *user, struct waiting *waiting,
			const struct pfs_turn_call *call)
{
	struct waiting **link = &user->first;

	PFS_TRY(link_waiting(turns, user, waiting));
	while (!waiting->has_turn && !turns->is_stopped && !call->gone(call->arg)) {
		const struct timespec until = pfs_clock_in_ms(CLOCK_REALTIME, GONE_MS);

		(void)pthread_cond_timedwait(&waiting->changed, &turns->lock, &until);
	}
	if (waiting->has_turn)
		return 0;
	while (*link != waiting)
		link = &(*link)->next;
	(void)unlink_waiting(turns, user, link);
	return -EINTR;
}

/* The caller holds the lock. */
static void leave(struct pfs_turns *turns)
{
	if (--turns->calls == 0)
		(void)pthread_cond_broadcast(&turns->ended);
}

static int begin_call(struct pfs_turns *turns, const struct pfs_turn *turn,
		      const struct pfs_turn_call *call)
{
	struct waiting waiting = {.turn = *turn};
	struct user *user;
	int error;
	PFS_LOCKED(&turns->lock);

	if (turns->is_stopped)
		return -EINTR;
	user = find_user(turns, turn);
	if (!user)
		return -ENOMEM;
	turns->calls++;
	if (!user->first && may_run(turns, user)) {
		give(turns, user);
		return 0;
	}
	(void)pthread_cond_init(&waiting.changed, NULL);
	error = wait_as_call(turns, user, &waiting, call);
	(void)pthread_cond_destroy(&waiting.changed);
	forget_idle(turns, user);
	if (error)
		leave(turns);
	return error;
}

static void end_call(struct pfs_turns *turns, struct pfs_turn *turn)
{
	size_t len = 0;
	void *request = pfs_turns_end(turns, turn, &len);

	if (request)
		turns->go_on(turns->arg, turn, request, len);
	PFS_LOCKED(&turns->lock);
	leave(turns);
}

int pfs_turns_call(struct pfs_turns *turns, const struct pfs_turn_call *call)
{
	struct pfs_turn turn = {.uid = call->uid, .sees_all = call->sees_all};

	PFS_TRY(begin_call(turns, &turn, call));
	call->run(call->arg);
	end_call(turns, &turn);
	return 0;
}

void pfs_turns_stop(struct pfs_turns *turns)
{
	if (!turns)
		return;
	PFS_LOCKED(&turns->lock);
	turns->is_stopped = true;
	for (size_t i = 0; i < turns->n; i++)
		for (struct waiting *one = turns->users[i]->first; one; one = one->next)
			if (!one->request)
				(void)pthread_cond_signal(&one->changed);
	while (turns->calls)
		(void)pthread_cond_wait(&turns->ended, &turns->lock);
}

/* ---- */

unsigned pfs_turns_waiting(struct pfs_turns *turns)
{
	PFS_LOCKED(&turns->lock);

	return turns->n_waiting;
}
