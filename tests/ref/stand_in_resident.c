/* SPDX-License-Identifier: MIT */
#include "tests/ref/stand_in_resident.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "gpu/path_table.h"
#include "gpu/resident.h"
#include "tests/ref/stand_in.h"

#define TIRED 2000u /* looks at the mailbox before the thread sleeps between two */

struct server {
	struct pfs_resident_backend base;
	struct pfs_btree *index;
	uint32_t *parent;
	size_t n_parents;
	pthread_t thread;
	bool has_thread;
	struct pfs_mailbox_run run;
	long left; /* answers */
	unsigned n_edits;
	struct pfs_resident_paths lists[PFS_RESIDENT_LISTS];
	size_t columns_sent;	    /* bytes; atomic */
	pthread_mutex_t table_lock; /* held by who makes a piece of it, or looks there */
	struct pfs_path_table table; /* its mask is 0 until all of it is there */
	uint64_t seed;		     /* of the table's hashes */
	/* of a table that is being made */
	uint32_t at, mask; /* the first slot of the next piece; the mask that it will have */
	uint32_t n, words; /* nodes, and words of their paths, by PFS_PATH_ALIGN, that are left */
};

/* The patience is generous: a thread waits for a processor, too. */
struct stand_in_resident stand_in_resident = {.silent_after = -1,
					      .patience_ns = UINT64_C(20000000000)};

static struct server *server_of(struct pfs_resident_backend *b)
{
	return (struct server *)b;
}

/* ---- answers ---- */

static void read_entries(const struct server *s, struct pfs_mailbox_answer *out,
			 const struct pfs_mailbox_question *q)
{
	struct pfs_btree_cursor cursor;

	pfs_btree_seek(s->index, &cursor, q->first, q->value);
	out->n = (uint32_t)pfs_btree_read(s->index, &cursor, out->keys, out->values,
					  PFS_MIN(q->capacity, PFS_MAILBOX_ENTRIES), q->last);
}

/* As a device does, which is told the hash. */
static uint32_t find_path(const struct server *s, const struct pfs_mailbox_slot *slot,
			  uint64_t hash, uint32_t len)
{
	const char *path = (const char *)slot->path;

	if (!s->table.mask || pfs_path_hash(s->seed, path, len) != hash)
		return PFS_MAILBOX_NONE;
	return pfs_table_find(&s->table, s->seed, path, len);
}

static void read_by_path(struct server *s, struct pfs_mailbox_slot *slot)
{
	const struct pfs_mailbox_question *q = &slot->question;
	struct pfs_mailbox_question lookup = *q;
	uint32_t found, directory;
	PFS_LOCKED(&s->table_lock);

	found = find_path(s, slot, (uint64_t)q->a_top << 32 | q->a, q->b_top);
	if (found != PFS_MAILBOX_NONE) {
		slot->answer = (struct pfs_mailbox_answer){
			.n = 1, .a = s->parent[found], .values = {found}};
		slot->answer.keys[0] = (uint64_t)s->parent[found] << q->b | q->first;
		return;
	}
	directory = find_path(s, slot, q->last, q->value);
	lookup.first = lookup.last = (uint64_t)directory << q->b | q->first;
	lookup.value = 0;
	lookup.capacity = directory == PFS_MAILBOX_NONE ? 0 : q->capacity;
	read_entries(s, &slot->answer, &lookup);
	slot->answer.a = directory;
}

static uint32_t parent_of(const struct server *s, uint32_t slot)
{
	return slot < s->n_parents ? s->parent[slot] : PFS_MAILBOX_NONE;
}

static void climb(const struct server *s, struct pfs_mailbox_answer *out,
		  const struct pfs_mailbox_question *q)
{
	uint32_t at = q->a;

	*out = (struct pfs_mailbox_answer){.n = 1};
	for (unsigned steps = 0; at != PFS_MAILBOX_NONE && at != q->b; steps++) {
		if (steps == PFS_MAILBOX_STEPS) {
			*out = (struct pfs_mailbox_answer){.a = at, .b = q->b};
			return;
		}
		at = parent_of(s, at);
	}
	out->a = at == q->b;
}

static void meet(const struct server *s, struct pfs_mailbox_answer *out,
		 const struct pfs_mailbox_question *q)
{
	uint32_t a = q->a, b = q->b;
	unsigned steps = 0;

	for (; a != b && steps < PFS_MAILBOX_STEPS; steps++) {
		a = parent_of(s, a);
		b = parent_of(s, b);
		if (a == b)
			break; /* both ways ended, or met */
		a = a == PFS_MAILBOX_NONE ? q->b_top : a;
		b = b == PFS_MAILBOX_NONE ? q->a_top : b;
	}
	*out = (struct pfs_mailbox_answer){.n = a == b, .a = a, .b = b};
}

static void mark_changed(struct server *s, uint32_t slot)
{
	if (slot < s->table.n_slots)
		s->table.changed[slot / 32] |= UINT32_C(1) << slot % 32;
}

/* Every third edit is left to a batch. */
static void edit(struct server *s, struct pfs_mailbox_answer *out,
		 const struct pfs_mailbox_question *q)
{
	*out = (struct pfs_mailbox_answer){.n = q->value < s->n_parents && s->n_edits++ % 3 != 2};
	if (!out->n)
		return;
	out->a = q->op == PFS_MAILBOX_ADD ? pfs_btree_insert(s->index, q->first, q->value) == 0
					  : pfs_btree_remove(s->index, q->first, q->value);
	s->parent[q->value] = q->a;
	mark_changed(s, q->value);
}

static void falsify(struct pfs_mailbox_answer *out, const struct pfs_mailbox_question *q)
{
	if (q->op <= PFS_MAILBOX_PATH)
		out->n = 0;
	else if (q->op == PFS_MAILBOX_COMMON)
		out->a = q->a_top;
	else
		out->a = !out->a;
}

static void answer(struct server *s, struct pfs_mailbox_slot *slot)
{
	const struct pfs_mailbox_question *q = &slot->question;
	struct pfs_mailbox_answer *out = &slot->answer;

	if (q->op == PFS_MAILBOX_PATH)
		read_by_path(s, slot);
	else if (q->op <= PFS_MAILBOX_LIST)
		read_entries(s, out, q);
	else if (q->op >= PFS_MAILBOX_ADD)
		edit(s, out, q);
	else if (q->op == PFS_MAILBOX_COMMON)
		meet(s, out, q);
	else if (q->op == PFS_MAILBOX_CHILD)
		*out = (struct pfs_mailbox_answer){.n = 1, .a = parent_of(s, q->a) == q->b};
	else
		climb(s, out, q);
	if (q->falsify)
		falsify(out, q);
}

static bool look(struct server *s)
{
	bool found = false;

	for (unsigned i = 0; i < PFS_MAILBOX_SLOTS; i++) {
		struct pfs_mailbox_slot *slot = &s->base.mailbox->slots[i];
		uint32_t asked = __atomic_load_n(&slot->asked, __ATOMIC_ACQUIRE);

		if (asked == slot->answered || s->left == 0)
			continue;
		found = true;
		s->left -= s->left > 0;
		answer(s, slot);
		__atomic_store_n(&slot->answered, asked, __ATOMIC_RELEASE);
	}
	return found;
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct pfs_mailbox *mailbox = s->base.mailbox;
	uint64_t began = pfs_now_ns(), last = began;
	unsigned idle = 0;

	__atomic_store_n(&mailbox->entered, s->run.number, __ATOMIC_RELEASE);
	for (;;) {
		uint64_t now;
		bool found = look(s);

		now = pfs_now_ns();
		if (found)
			last = now;
		idle = found ? 0 : idle + 1;
		if (__atomic_load_n(&mailbox->stop, __ATOMIC_ACQUIRE) == s->run.number ||
		    now - began > s->run.limit_ns || (!found && now - last >= s->run.idle_ns))
			break;
		if (idle > TIRED)
			(void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	__atomic_store_n(&mailbox->left, s->run.number, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- the back end ---- */

static bool fails(void)
{
	return stand_in.calls_left <= 0 ||
	       (stand_in.calls_left != LONG_MAX && --stand_in.calls_left <= 0);
}

static void join(struct server *s)
{
	if (s->has_thread)
		(void)pthread_join(s->thread, NULL);
	s->has_thread = false;
}

static int start(struct pfs_resident_backend *b, const struct pfs_mailbox_run *run)
{
	struct server *s = server_of(b);

	if (fails())
		return stand_in.failure;
	join(s);
	s->run = *run;
	if (pthread_create(&s->thread, NULL, serve, s))
		return -EIO;
	s->has_thread = true;
	return 0;
}

static int set_parents(struct server *s, const uint32_t *slots, const uint32_t *parents, size_t n,
		       size_t end)
{
	if (end > s->n_parents) {
		uint32_t *larger = realloc(s->parent, (end + end / 2) * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		s->parent = larger;
		for (size_t i = s->n_parents; i < end + end / 2; i++)
			larger[i] = PFS_MAILBOX_NONE;
		s->n_parents = end + end / 2;
	}
	for (size_t i = 0; i < n; i++) {
		s->parent[slots ? slots[i] : i] = parents[i];
		mark_changed(s, slots ? slots[i] : (uint32_t)i);
	}
	return 0;
}

/* A device's memory for large arrays is pinned, for which all of the device is waited for. */
static void wait_for_all(void)
{
	pfs_resident_keep_away();
	pfs_resident_come_back();
}

static void drop_table(struct server *s)
{
	__atomic_store_n(&s->base.paths, PFS_PATHS_UNKNOWN, __ATOMIC_RELEASE);
	free(s->table.nodes);
	free(s->table.text);
	free(s->table.changed);
	s->table = (struct pfs_path_table){.mask = 0};
}

static int load(struct pfs_resident_backend *b, const struct pfs_resident_load *load)
{
	struct server *s = server_of(b);

	wait_for_all();
	drop_table(s);
	if (fails())
		return stand_in.failure;
	pfs_btree_destroy(s->index);
	PFS_TRY(pfs_btree_create(&s->index));
	if (stand_in_resident.loading)
		stand_in_resident.loading();
	PFS_TRY(pfs_btree_load(s->index, NULL, load->keys, load->values, load->n));
	return set_parents(s, NULL, load->parent, load->n_slots, load->n_slots);
}

static int apply(struct pfs_resident_backend *b, const struct pfs_resident_changes *c)
{
	struct server *s = server_of(b);

	wait_for_all();
	if (c->moves_directories)
		drop_table(s);
	if (fails())
		return stand_in.failure;
	for (size_t i = 0; i < c->n_gone; i++)
		(void)pfs_btree_remove(s->index, c->gone_keys[i], c->gone_values[i]);
	for (size_t i = 0; i < c->n_new; i++) {
		int error = pfs_btree_insert(s->index, c->new_keys[i], c->new_values[i]);

		if (error && error != -EEXIST)
			return error;
	}
	return set_parents(s, c->slots, c->parents, c->n_slots, c->end);
}

static int make_paths(struct pfs_resident_backend *b, struct pfs_resident_paths **out,
		      unsigned list)
{
	struct pfs_resident_paths *paths = &server_of(b)->lists[list];
	const size_t n = PFS_RESIDENT_PATHS;

	(void)__atomic_add_fetch(&stand_in_resident.asked, 1, __ATOMIC_RELAXED);
	if (fails())
		return stand_in.failure;
	if (list >= PFS_RESIDENT_LISTS - stand_in_resident.refused)
		return -ENOMEM;
	paths->text = malloc(PFS_RESIDENT_TEXT);
	paths->ends = calloc(n, sizeof(*paths->ends));
	paths->slots = calloc(n, sizeof(*paths->slots));
	paths->primes = calloc(n, sizeof(*paths->primes));
	if (!paths->text || !paths->ends || !paths->slots || !paths->primes)
		return -ENOMEM;
	*out = paths;
	return 0;
}

/* ---- paths ---- */

static void add_node(struct server *s, const struct pfs_path_columns *c, uint32_t slot,
		     uint32_t len)
{
	const struct pfs_path_table *t = &s->table;
	uint64_t *text, hash;
	uint32_t i;

	assert(s->n > 0 && s->words >= pfs_table_path_size(len));
	s->n--;
	s->words -= pfs_table_path_size(len);
	text = t->text + (size_t)s->words * PFS_PATH_ALIGN;
	pfs_table_path_write(c, slot, text, len);
	hash = pfs_path_hash(c->seed, (const char *)text, len);
	for (i = (uint32_t)hash & s->mask; t->nodes[i].slot != PFS_PATH_NOWHERE;)
		i = (i + 1) & s->mask;
	t->nodes[i] = (struct pfs_path_entry){slot, (uint32_t)(hash >> 32), len, s->words};
}

static int begin_table(struct server *s, const struct pfs_path_columns *c)
{
	uint32_t *changed = calloc((size_t)c->n_slots / 32 + 1, sizeof(*changed));

	if (!changed)
		return -ENOMEM;
	s->table = (struct pfs_path_table){.changed = changed, .n_slots = c->n_slots};
	s->seed = c->seed;
	s->at = s->n = s->words = 0;
	__atomic_store_n(&s->base.paths, PFS_PATHS_LEARNT, __ATOMIC_RELEASE);
	return 0;
}

static int make_table_room(struct server *s)
{
	struct pfs_path_table *t = &s->table;
	size_t size;

	for (s->mask = 1; s->mask < 2 * s->n;)
		s->mask = 2 * s->mask + 1;
	size = ((size_t)s->mask + 1) * sizeof(*t->nodes);
	t->nodes = aligned_alloc(_Alignof(struct pfs_path_entry), size);
	t->text = calloc((size_t)s->words + 1, PFS_PATH_ALIGN * sizeof(*t->text));
	if (!t->nodes || !t->text)
		return -ENOMEM;
	memset(t->nodes, 0xff, size);
	s->at = 0;
	return 0;
}

/* Measures slots while there is no room, else puts them into the table. */
static void look_through(struct server *s, const struct pfs_path_columns *c, uint32_t to)
{
	stand_in_resident.looked_most = PFS_MAX(stand_in_resident.looked_most, to - s->at);
	for (; s->at < to; s->at++) {
		const uint32_t slot = s->at;
		const uint32_t len = slot < c->n_slots ? pfs_table_path_length(c, slot) : 0;

		if (!s->table.nodes) {
			s->n += len != 0;
			s->words += pfs_table_path_size(len);
		} else if (len && !pfs_table_is_marked(&s->table, slot)) {
			add_node(s, c, slot, len);
		}
	}
}

/* A piece, as a device makes it; n paths are asked for. */
static int make_piece(struct server *s, const struct pfs_path_columns *c, size_t n)
{
	struct pfs_path_table *t = &s->table;

	if (!t->changed)
		PFS_TRY(begin_table(s, c));
	if (s->at == t->n_slots)
		return make_table_room(s);
	look_through(s, c, pfs_table_piece_end(t, s->at, n));
	if (s->at < t->n_slots || !t->nodes)
		return 0;
	t->mask = s->mask;
	__atomic_store_n(&s->base.paths, PFS_PATHS_KNOWN, __ATOMIC_RELEASE);
	return 0;
}

static int use_table(struct server *s, struct pfs_path_table *out, const struct pfs_path_columns *c,
		     size_t n)
{
	PFS_LOCKED(&s->table_lock);

	if (!s->table.mask)
		PFS_TRY(make_piece(s, c, n));
	*out = s->table;
	return 0;
}

static uint32_t find_child(const struct server *s, const struct pfs_path_columns *c,
			   const struct pfs_path_way *walk)
{
	const uint64_t key = pfs_path_key(walk, c);
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_seek(s->index, &cursor, key, 0);
	while (pfs_btree_next(s->index, &cursor, &entry) && entry.key == key)
		if (pfs_path_is_named(walk, c, entry.slot))
			return entry.slot;
	return PFS_PATH_NOWHERE;
}

/* The columns are not copied, but it takes as many calls as if they were. */
static int resolve(struct pfs_resident_backend *b, struct pfs_resident_paths *paths,
		   const struct pfs_resident_columns *columns, size_t most, bool is_false)
{
	struct server *s = server_of(b);
	const struct pfs_names_view *names = columns->names;
	const struct pfs_path_columns c = {
		.heap = names->heap,
		.place = names->place,
		.prime = columns->prime,
		.parent = s->parent,
		.seed = columns->seed,
		.hash_bits = columns->hash_bits,
		.place_shift = names->place_shift,
		.n_slots = (uint32_t)PFS_MIN(names->n_slots, s->n_parents),
		.root = columns->root,
		.top = columns->top,
	};

	struct pfs_path_table table;

	if (fails())
		return stand_in.failure;
	if (stand_in_resident.is_full)
		return -ENOMEM;
	if (__atomic_load_n(&s->columns_sent, __ATOMIC_RELAXED) < names->heap_size) {
		(void)__atomic_add_fetch(&s->columns_sent, most, __ATOMIC_RELAXED);
		return -EAGAIN;
	}
	PFS_TRY(use_table(s, &table, &c, paths->n));
	for (size_t i = 0; i < paths->n; i++) {
		const uint32_t from = i ? paths->ends[i - 1] : 0;
		struct pfs_path_way walk =
			pfs_path_begin(&c, paths->text + from, paths->ends[i] - from);

		if (is_false)
			walk.slot = PFS_PATH_NOWHERE;
		pfs_path_jump(&walk, &table, &c);
		while (pfs_path_go_on(&walk, &c))
			walk.slot = find_child(s, &c, &walk);
		if (paths->slots)
			paths->slots[i] = walk.slot;
		if (paths->primes)
			paths->primes[i] = walk.slot < c.n_slots ? c.prime[walk.slot] : 0;
	}
	(void)__atomic_add_fetch(&stand_in_resident.paths, paths->n, __ATOMIC_RELAXED);
	return 0;
}

static void edited(struct pfs_resident_backend *b, uint64_t key, bool is_new)
{
	(void)b, (void)key, (void)is_new; /* the tree counts for itself */
}

static void describe(struct pfs_resident_backend *b, struct pfs_resident_info *info)
{
	const struct server *s = server_of(b);

	(void)snprintf(info->device, sizeof(info->device), "stand-in");
	info->bytes =
		s->n_parents * sizeof(*s->parent) + (s->index ? pfs_btree_memory(s->index) : 0);
}

static void close_server(struct pfs_resident_backend *b)
{
	struct server *s = server_of(b);

	join(s);
	pfs_btree_destroy(s->index);
	free(s->parent);
	drop_table(s);
	(void)pthread_mutex_destroy(&s->table_lock);
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++) {
		free(s->lists[i].text);
		free(s->lists[i].ends);
		free(s->lists[i].slots);
		free(s->lists[i].primes);
	}
	free(s->base.mailbox);
	free(s);
}

static const struct pfs_resident_ops ops = {
	.close = close_server,
	.describe = describe,
	.load = load,
	.apply = apply,
	.edited = edited,
	.start = start,
	.paths = make_paths,
	.resolve = resolve,
};

int stand_in_resident_open(struct pfs_resident_backend **out)
{
	struct server *s = calloc(1, sizeof(*s));
	struct pfs_mailbox *mailbox = aligned_alloc(64, sizeof(*mailbox));

	*out = NULL;
	if (!s || !mailbox) {
		free(s);
		free(mailbox);
		return -ENOMEM;
	}
	memset(mailbox, 0, sizeof(*mailbox));
	s->base = (struct pfs_resident_backend){
		.ops = &ops,
		.mailbox = mailbox,
		.patience_ns = stand_in_resident.patience_ns,
		.in_slices = stand_in_resident.in_slices,
	};
	(void)pthread_mutex_init(&s->table_lock, NULL);
	s->left = stand_in_resident.silent_after;
	*out = &s->base;
	return 0;
}
