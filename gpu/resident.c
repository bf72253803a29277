/* SPDX-License-Identifier: MIT */
/* The clients' side of the mailbox, and the starting and stopping of the kernel on the other side.
 */
#include "gpu/resident.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define MILLISECOND UINT64_C(1000000)
#define SPINS	    2000u /* how often an answer is looked at before others get the processor */
#define START_NS    (1000 * MILLISECOND) /* the longest time that a run may take to begin */
#define LEAVE_NS    (100 * MILLISECOND)
#define RETRY_NS    (30000 * MILLISECOND) /* after this, refused memory is asked for again */

/* Memory for the paths of a list. Where it was refused, or the device's own for them, the list is
 * not to be had for RETRY_NS. */
struct list {
	pthread_mutex_t lock; /* held by the thread that uses the memory */
	/* NULL until it is first needed; protected by lock */
	struct pfs_resident_paths *paths;
	uint64_t refused_ns; /* when the memory was refused; 0: it was not; protected by lock */
};

struct pfs_resident {
	struct pfs_resident_backend *backend;
	struct pfs_resident *next; /* in `residents` */
	pthread_mutex_t data; /* guards what the kernel reads; taken before the locks of runs */
	struct list lists[PFS_RESIDENT_LISTS];
	/* guards runs: held to start one, or to prevent it */
	pthread_mutex_t lock;
	uint32_t number;      /* of the last run; written under lock, read by any thread */
	uint64_t started;     /* when that run was started; written and read likewise */
	int failed;	      /* 0, or the error that each call returns */
	uint32_t taken;	      /* a bit for each slot that has a client */
	uint32_t falsify;     /* a bit for each operation */
	size_t n_directories; /* new ones since all were known by path; only of who applies */
	/* loads and batches: protected by data */
	uint64_t runs, loads, batches, edits, change_ns, leave_ns, asked;
	/* the part that `data` protects, as it was last described; protected by lock */
	struct pfs_resident_info told;
};

/* All residents, and how many callers need that no kernel stays. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pfs_resident *residents;
static unsigned n_away; /* changed under all_lock, read by any thread */

static uint32_t load_word(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the builtin writes there */
static void store_word(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Rests between two looks at a word that another processor or a device is about to write. */
static void rest(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

static int failure_of(const struct pfs_resident *r)
{
	return __atomic_load_n(&r->failed, __ATOMIC_ACQUIRE);
}

static int fail(struct pfs_resident *r, int error, const char *why)
{
	int none = 0;

	if (__atomic_compare_exchange_n(&r->failed, &none, error == -ENOMEM ? error : -EIO, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		pfs_warning("the device failed (%s); single questions go on on the processor", why);
	return failure_of(r);
}

static bool is_running(const struct pfs_resident *r)
{
	return load_word(&r->backend->mailbox->left) != load_word(&r->number);
}

/* ---- runs; r->lock is held ---- */

/* Tells the run to leave, and waits until it has. */
static int stop(struct pfs_resident *r)
{
	struct pfs_mailbox *mailbox = r->backend->mailbox;
	uint64_t began = pfs_now_ns();
	bool has_entered = load_word(&mailbox->entered) == r->number;

	if (!is_running(r))
		return failure_of(r);
	store_word(&mailbox->stop, r->number);
	for (unsigned spins = 0; is_running(r); spins++) {
		if (spins > SPINS)
			(void)sched_yield();
		if (pfs_now_ns() - began > r->backend->patience_ns + LEAVE_NS + START_NS)
			return fail(r, -EIO, "its kernel does not leave");
	}
	if (has_entered) /* else it had not begun yet, which takes longer */
		r->leave_ns = PFS_MAX(r->leave_ns, pfs_now_ns() - began);
	return failure_of(r);
}

static int start(struct pfs_resident *r)
{
	bool stays = !r->backend->in_slices && !__atomic_load_n(&n_away, __ATOMIC_ACQUIRE);
	const struct pfs_mailbox_run run = {
		.number = r->number + 1,
		.idle_ns = stays ? PFS_RESIDENT_IDLE_MS * MILLISECOND : 0,
		.limit_ns = (stays ? PFS_RESIDENT_LIMIT_MS : 1) * MILLISECOND,
	};
	int error = failure_of(r);

	if (error || is_running(r))
		return error;
	__atomic_store_n(&r->started, pfs_now_ns(), __ATOMIC_RELEASE);
	store_word(&r->number, run.number); /* before the run can leave */
	error = r->backend->ops->start(r->backend, &run);
	if (error) {
		store_word(&r->backend->mailbox->left, run.number);
		return fail(r, error, strerror(-error));
	}
	r->runs++;
	return 0;
}

void pfs_resident_keep_away(void)
{
	PFS_LOCKED(&all_lock);

	(void)__atomic_add_fetch(&n_away, 1, __ATOMIC_ACQ_REL);
	for (struct pfs_resident *r = residents; r; r = r->next) {
		(void)pthread_mutex_lock(&r->lock);
		(void)stop(r);
		(void)pthread_mutex_unlock(&r->lock);
	}
}

void pfs_resident_come_back(void)
{
	(void)__atomic_sub_fetch(&n_away, 1, __ATOMIC_ACQ_REL);
}

/* ---- opening and closing ---- */

int pfs_resident_open_backend(struct pfs_resident **out, struct pfs_resident_backend *backend)
{
	struct pfs_resident *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r) {
		backend->ops->close(backend);
		return -ENOMEM;
	}
	r->backend = backend;
	(void)pthread_mutex_init(&r->data, NULL);
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++)
		(void)pthread_mutex_init(&r->lists[i].lock, NULL);
	(void)pthread_mutex_init(&r->lock, NULL);
	PFS_LOCKED(&all_lock);
	r->next = residents;
	residents = r;
	*out = r;
	return 0;
}

static void forget(struct pfs_resident *r)
{
	PFS_LOCKED(&all_lock);

	for (struct pfs_resident **at = &residents; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			break;
		}
}

void pfs_resident_close(struct pfs_resident *r)
{
	if (!r)
		return;
	forget(r);
	(void)pthread_mutex_lock(&r->lock);
	(void)stop(r);
	(void)pthread_mutex_unlock(&r->lock);
	/* A kernel that does not leave goes on using the memory that it was given. */
	if (!is_running(r))
		r->backend->ops->close(r->backend);
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_mutex_destroy(&r->data);
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++)
		(void)pthread_mutex_destroy(&r->lists[i].lock);
	free(r);
}

/* ---- what the kernel reads ---- */

/* Nobody asks until what the kernel reads has changed. Meanwhile the back end may keep kernels
 * away. */
static int stop_run(struct pfs_resident *r)
{
	PFS_LOCKED(&r->lock);

	return stop(r);
}

int pfs_resident_load(struct pfs_resident *r, const struct pfs_resident_load *load)
{
	PFS_LOCKED(&r->data);
	int error;

	PFS_TRY(stop_run(r));
	error = r->backend->ops->load(r->backend, load);
	r->loads++;
	return error ? fail(r, error, strerror(-error)) : 0;
}

/* ---- questions ---- */

static unsigned take_slot(struct pfs_resident *r)
{
	const uint32_t all = (uint32_t)((UINT64_C(1) << PFS_MAILBOX_SLOTS) - 1);

	for (;;) {
		uint32_t taken = load_word(&r->taken), free_slots = ~taken & all;

		if (!free_slots) {
			(void)sched_yield();
			continue;
		}
		if (__atomic_compare_exchange_n(&r->taken, &taken,
						taken | (free_slots & -free_slots), true,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return (unsigned)__builtin_ctz(free_slots);
	}
}

static void return_slot(struct pfs_resident *r, unsigned i)
{
	(void)__atomic_and_fetch(&r->taken, ~(UINT32_C(1) << i), __ATOMIC_ACQ_REL);
}

/* Returns true if a question that was asked at `began` has waited for too long. */
static bool is_late(struct pfs_resident *r, uint64_t began)
{
	const struct pfs_mailbox *mailbox = r->backend->mailbox;
	uint64_t now = pfs_now_ns(), started = __atomic_load_n(&r->started, __ATOMIC_ACQUIRE);

	if (now - began <= r->backend->patience_ns)
		return false;
	/* The time that a run takes to begin does not count. */
	return load_word(&mailbox->entered) == load_word(&r->number) || now - started > START_NS;
}

static int wait_for(struct pfs_resident *r, const struct pfs_mailbox_slot *slot, uint32_t asked)
{
	uint64_t began = pfs_now_ns();

	for (unsigned spins = 1; load_word(&slot->answered) != asked; spins++) {
		if (!is_running(r)) {
			PFS_LOCKED(&r->lock);

			if (load_word(&slot->answered) == asked)
				return 0;
			PFS_TRY(start(r));
		}
		if (spins % 64 == 0 && is_late(r, began))
			return fail(r, -EIO, "no answer in time");
		if (spins > SPINS)
			(void)sched_yield();
		else
			rest();
	}
	return 0;
}

static void sum_up(struct pfs_mailbox_slot *slot, uint32_t asked)
{
	uint32_t words[PFS_MAILBOX_SUMMED] = {[PFS_MAILBOX_ASKED] = asked};

	memcpy(words, &slot->question, sizeof(slot->question));
	for (uint32_t k = 0; k < PFS_MAILBOX_SUMS; k++) {
		slot->sums[k] = 0;
		for (uint32_t i = 0; i < PFS_MAILBOX_SUMMED; i++)
			slot->sums[k] += pfs_mailbox_term(words[i], i, k);
	}
}

int pfs_resident_ask(struct pfs_resident *r, struct pfs_mailbox_answer *answer,
		     const struct pfs_mailbox_question *question, const char *path)
{
	struct pfs_mailbox_slot *slot;
	uint32_t asked;
	unsigned i;
	int error = failure_of(r);

	if (error)
		return error;
	i = take_slot(r);
	slot = &r->backend->mailbox->slots[i];
	slot->question = *question;
	if (question->op == PFS_MAILBOX_PATH)
		memcpy(slot->path, path, PFS_MAX(question->value, question->b_top));
	slot->question.falsify = load_word(&r->falsify) >> question->op & 1;
	asked = slot->asked + 1;
	sum_up(slot, asked);
	store_word(&slot->asked, asked);
	error = wait_for(r, slot, asked);
	if (error) /* the slot stays taken, since the kernel may still write there */
		return error;
	answer->n = slot->answer.n;
	answer->a = slot->answer.a;
	answer->b = slot->answer.b;
	if (question->op <= PFS_MAILBOX_PATH) {
		answer->n = answer->n < question->capacity ? answer->n : question->capacity;
		memcpy(answer->keys, slot->answer.keys, answer->n * sizeof(*answer->keys));
		memcpy(answer->values, slot->answer.values, answer->n * sizeof(*answer->values));
	}
	return_slot(r, i);
	(void)__atomic_add_fetch(&r->asked, 1, __ATOMIC_RELAXED);
	return 0;
}

static int climb(struct pfs_resident *r, struct pfs_mailbox_answer *answer,
		 struct pfs_mailbox_question *question)
{
	do {
		PFS_TRY(pfs_resident_ask(r, answer, question, NULL));
		question->a = answer->a;
		question->b = answer->b;
	} while (!answer->n);
	return 0;
}

int pfs_resident_is_under(struct pfs_resident *r, bool *under, enum pfs_mailbox_op op,
			  uint32_t slot, uint32_t top)
{
	struct pfs_mailbox_question question = {.op = op, .a = slot, .b = top};
	struct pfs_mailbox_answer answer;

	PFS_TRY(climb(r, &answer, &question));
	*under = answer.a;
	return 0;
}

int pfs_resident_common(struct pfs_resident *r, uint32_t *common, uint32_t a, uint32_t b)
{
	struct pfs_mailbox_question question = {
		.op = PFS_MAILBOX_COMMON, .a = a, .b = b, .a_top = a, .b_top = b};
	struct pfs_mailbox_answer answer;

	PFS_TRY(climb(r, &answer, &question));
	*common = answer.a;
	return 0;
}

/* ---- changes ---- */

static uint32_t parent_in(const struct pfs_resident_changes *c, uint32_t slot)
{
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slots[i] == slot)
			return c->parents[i];
	return PFS_MAILBOX_NONE;
}

static bool has(const uint32_t *slots, size_t n, uint32_t slot)
{
	for (size_t i = 0; i < n; i++)
		if (slots[i] == slot)
			return true;
	return false;
}

/* Returns true if the kernel can make the changes: they are few, none changes only a parent, and
 * all paths that were right are. */
static bool are_edits(const struct pfs_resident_changes *c)
{
	if (c->moves_directories || c->n_gone + c->n_new > PFS_RESIDENT_EDITS)
		return false;
	for (size_t i = 0; i < c->n_slots; i++)
		if (!has(c->gone_values, c->n_gone, c->slots[i]) &&
		    !has(c->new_values, c->n_new, c->slots[i]))
			return false;
	return true;
}

/* Returns 0 if the change is made; 1: it needs a batch; or an error. */
static int edit_one(struct pfs_resident *r, const struct pfs_resident_changes *c,
		    enum pfs_mailbox_op op, size_t i)
{
	bool is_new = op == PFS_MAILBOX_ADD;
	const struct pfs_mailbox_question question = {
		.op = op,
		.first = is_new ? c->new_keys[i] : c->gone_keys[i],
		.value = is_new ? c->new_values[i] : c->gone_values[i],
		.a = parent_in(c, is_new ? c->new_values[i] : c->gone_values[i]),
	};
	struct pfs_mailbox_answer answer;

	PFS_TRY(pfs_resident_ask(r, &answer, &question, NULL));
	if (answer.n && answer.a)
		r->backend->ops->edited(r->backend, question.first, is_new);
	(void)__atomic_add_fetch(&r->edits, answer.n, __ATOMIC_RELAXED);
	return !answer.n;
}

/* Does so for all changes. A batch that repeats some of them does no harm. */
static int edit(struct pfs_resident *r, const struct pfs_resident_changes *c)
{
	if (!are_edits(c))
		return 1;
	for (size_t i = 0; i < c->n_gone; i++)
		PFS_TRY(edit_one(r, c, PFS_MAILBOX_REMOVE, i));
	for (size_t i = 0; i < c->n_new; i++)
		PFS_TRY(edit_one(r, c, PFS_MAILBOX_ADD, i));
	return 0;
}

static int apply_batch(struct pfs_resident *r, const struct pfs_resident_changes *changes)
{
	PFS_LOCKED(&r->data);
	int error;

	PFS_TRY(stop_run(r));
	error = r->backend->ops->apply(r->backend, changes);
	r->batches++;
	return error ? fail(r, error, strerror(-error)) : 0;
}

bool pfs_resident_knows_paths(const struct pfs_resident *r)
{
	return load_word(&r->backend->paths) == PFS_PATHS_KNOWN;
}

int pfs_resident_apply(struct pfs_resident *r, const struct pfs_resident_changes *changes)
{
	const bool has_paths = load_word(&r->backend->paths) != PFS_PATHS_UNKNOWN;
	struct pfs_resident_changes c = *changes;
	uint64_t began = pfs_now_ns();
	int error;

	r->n_directories += c.n_directories;
	c.moves_directories =
		has_paths && (c.moves_directories || r->n_directories > PFS_RESIDENT_NEW);
	if (c.moves_directories || !has_paths)
		r->n_directories = 0;
	error = edit(r, &c);
	if (error > 0)
		error = apply_batch(r, &c);
	(void)__atomic_add_fetch(&r->change_ns, pfs_now_ns() - began, __ATOMIC_RELAXED);
	return error;
}

/* ---- many paths ---- */

/* Asking for memory makes the kernel leave the device, so it is not done for each batch of paths
 * where memory is short. The list's lock is held. */
static int get_memory(struct pfs_resident *r, struct list *list, unsigned i)
{
	int error;

	if (list->refused_ns && pfs_now_ns() - list->refused_ns < RETRY_NS)
		return -ENOMEM;
	error = list->paths ? 0 : r->backend->ops->paths(r->backend, &list->paths, i);
	list->refused_ns = error == -ENOMEM ? pfs_now_ns() : 0;
	return error;
}

static int take_list(struct pfs_resident *r, struct pfs_resident_paths **out, unsigned i)
{
	struct list *list = &r->lists[i];
	int error;

	if (pthread_mutex_trylock(&list->lock))
		return -EBUSY;
	error = get_memory(r, list, i);
	if (error) {
		(void)pthread_mutex_unlock(&list->lock);
		return error == -ENOMEM && i ? -EBUSY : error;
	}
	list->paths->list = i;
	*out = list->paths;
	return 0;
}

int pfs_resident_paths_take(struct pfs_resident *r, struct pfs_resident_paths **out)
{
	int error = failure_of(r);

	*out = NULL;
	if (error)
		return error;
	error = -EBUSY;
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS && error == -EBUSY; i++)
		error = take_list(r, out, i);
	return error == -EIO ? fail(r, error, strerror(-error)) : error;
}

void pfs_resident_paths_return(struct pfs_resident *r, const struct pfs_resident_paths *paths)
{
	(void)pthread_mutex_unlock(&r->lists[paths->list].lock);
}

int pfs_resident_resolve(struct pfs_resident *r, struct pfs_resident_paths *paths,
			 const struct pfs_resident_columns *columns, size_t most)
{
	int error = failure_of(r);

	if (error)
		return error;
	error = r->backend->ops->resolve(r->backend, paths, columns, most,
					 load_word(&r->falsify) >> PFS_MAILBOX_OPS & 1);
	if (error == -ENOMEM && paths->list < PFS_RESIDENT_LISTS)
		r->lists[paths->list].refused_ns = pfs_now_ns();
	return error == -EIO ? fail(r, error, strerror(-error)) : error;
}

/* ---- the rest ---- */

/* `data` is held, which a load keeps for long. */
static void describe_data(struct pfs_resident *r)
{
	struct pfs_resident_info told = {.loads = r->loads, .batches = r->batches};

	r->backend->ops->describe(r->backend, &told);
	PFS_LOCKED(&r->lock);
	r->told = told;
}

void pfs_resident_describe(struct pfs_resident *r, struct pfs_resident_info *info)
{
	if (!pthread_mutex_trylock(&r->data)) {
		describe_data(r);
		(void)pthread_mutex_unlock(&r->data);
	}
	PFS_LOCKED(&r->lock);
	*info = r->told;
	info->failed = failure_of(r);
	info->is_running = is_running(r);
	info->knows_paths = pfs_resident_knows_paths(r);
	info->runs = r->runs;
	info->edits = __atomic_load_n(&r->edits, __ATOMIC_RELAXED);
	info->change_ns = __atomic_load_n(&r->change_ns, __ATOMIC_RELAXED);
	info->leave_ns = r->leave_ns;
	info->asked = __atomic_load_n(&r->asked, __ATOMIC_RELAXED);
}

void pfs_resident_falsify(struct pfs_resident *r, uint32_t operations)
{
	store_word(&r->falsify, operations);
}
