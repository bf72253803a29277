/* SPDX-License-Identifier: MIT */
/* gpu/columns.c - the engine's columns: they are made of the image's, and changed record by record.
 */
#include "gpu/engine_impl.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

void pfs_columns_free(struct pfs_columns *c)
{
	free(c->home);
	free(c->prime);
	free(c->directories);
	free(c->directory_slot);
	free(c->span);
	free(c->free_directories);
	memset(c, 0, sizeof(*c));
}

void pfs_changes_clear(struct pfs_changes *changes)
{
	changes->n_slots = 0;
	changes->n_directories = 0;
	changes->has_moves = false;
	changes->everything = false;
}

void pfs_changes_free(struct pfs_changes *changes)
{
	free(changes->slots);
	free(changes->directories);
	*changes = (struct pfs_changes){0};
}

static int grow_slots(struct pfs_columns *c, size_t n)
{
	size_t capacity = c->slot_capacity, other = c->slot_capacity;

	if (pfs_grow(&c->home, &capacity, n, sizeof(*c->home)) ||
	    pfs_grow(&c->prime, &other, n, sizeof(*c->prime)))
		return -ENOMEM;
	c->slot_capacity = (uint32_t)PFS_MIN(PFS_MIN(capacity, other), UINT32_MAX - 1);
	return 0;
}

static int grow_directories(struct pfs_columns *c, size_t n)
{
	size_t a = c->directory_capacity, b = a, d = a;

	if (pfs_grow(&c->directories, &a, n, sizeof(*c->directories)) ||
	    pfs_grow(&c->directory_slot, &b, n, sizeof(*c->directory_slot)) ||
	    pfs_grow(&c->span, &d, n, sizeof(*c->span)))
		return -ENOMEM;
	c->directory_capacity = (uint32_t)PFS_MIN(PFS_MIN(a, PFS_MIN(b, d)), UINT32_MAX - 1);
	return 0;
}

static void clear_slots(struct pfs_columns *c, uint32_t end)
{
	memset(c->home + c->n_slots, 0, (end - c->n_slots) * sizeof(*c->home));
	memset(c->prime + c->n_slots, 0, (end - c->n_slots) * sizeof(*c->prime));
	c->n_slots = end;
}

static void set_directory(struct pfs_columns *c, uint32_t number, uint32_t slot, uint32_t parent,
			  uint64_t prime)
{
	c->directories[number] = (struct pfs_directory){
		.parent = parent,
		.prime = prime == PFS_ROOT_PRIME ? 1 : (uint32_t)prime,
	};
	c->directory_slot[number] = slot;
	c->span[number] = 1;
}

/* Gives every directory a number, in slot order. */
static int number_directories(struct pfs_columns *c, const uint64_t *prime, size_t n)
{
	size_t count = 1;

	for (size_t i = 0; i < n; i++) {
		count += prime[i] != 0 && prime[i] < PFS_FIRST_FILE_PRIME;
		if (prime[i] > PFS_ROOT_PRIME && prime[i] < PFS_FIRST_FILE_PRIME &&
		    prime[i] % 2 == 0)
			return -EINVAL;
	}
	if (grow_directories(c, count))
		return -ENOMEM;
	set_directory(c, 0, PFS_NO_SLOT, 0, 1);
	c->n_directories = 1;
	for (size_t i = 0; i < n; i++) {
		if (prime[i] == 0 || prime[i] >= PFS_FIRST_FILE_PRIME)
			continue;
		c->home[i] = c->n_directories;
		set_directory(c, c->n_directories++, (uint32_t)i, 0, prime[i]);
	}
	return 0;
}

static int link_slots(struct pfs_columns *c, const uint32_t *parent, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t prime = c->prime[i];
		bool is_directory = prime < PFS_FIRST_FILE_PRIME;
		uint32_t p = parent[i];

		if (prime == 0)
			continue;
		if (p == PFS_NO_SLOT) {
			if (prime != PFS_ROOT_PRIME || c->root)
				return -EINVAL;
			c->root = c->home[i];
			continue;
		}
		if (p >= n || p == i || c->prime[p] == 0 || c->prime[p] >= PFS_FIRST_FILE_PRIME ||
		    prime == PFS_ROOT_PRIME)
			return -EINVAL;
		if (is_directory)
			c->directories[c->home[i]].parent = c->home[p];
		else
			c->home[i] = c->home[p];
	}
	return n && !c->root ? -EINVAL : 0;
}

/* Checks that every chain of parents ends at the root. In a tree in pre-order that takes one step
 * for each directory. */
static int find_circles(const struct pfs_columns *c)
{
	uint8_t *ends PFS_FREE = calloc(c->n_directories, 1);

	if (!ends)
		return -ENOMEM;
	ends[0] = 2;
	for (uint32_t d = 1; d < c->n_directories; d++) {
		uint32_t a = d;

		for (; ends[a] == 0; a = c->directories[a].parent)
			ends[a] = 1;
		if (ends[a] == 1)
			return -EINVAL;
		for (a = d; ends[a] == 1; a = c->directories[a].parent)
			ends[a] = 2;
	}
	return 0;
}

struct extent {
	uint32_t last;	  /* highest slot; UINT32_MAX: a slot lies before the directory's own */
	uint32_t pending; /* subdirectories that have not been added yet */
};

/* Decides whether the subtree of a complete directory is a range, and adds it to the directory
 * above. */
static uint32_t finish_extent(struct pfs_columns *c, struct extent *extents, uint32_t d)
{
	uint32_t up = c->directories[d].parent, first = c->directory_slot[d];

	if (c->span[d] == 0 || extents[d].last - first != c->span[d] - 1) {
		c->span[d] = 0;
		c->span[up] = 0;
	} else if (c->span[up]) {
		c->span[up] += c->span[d];
	}
	if (first < c->directory_slot[up])
		extents[up].last = UINT32_MAX;
	extents[up].last = PFS_MAX(extents[up].last, extents[d].last);
	return --extents[up].pending == 0 ? up : 0;
}

/* Sets `span` to the size of each subtree that is exactly the slots from its directory's own on, if
 * the same is true of every directory in it; else to 0. */
static int find_ranges(struct pfs_columns *c)
{
	struct extent *extents PFS_FREE = calloc(c->n_directories, sizeof(*extents));

	if (!extents)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_slots; i++) {
		uint32_t d = c->home[i];

		if (c->directory_slot[d] == i)
			extents[c->directories[d].parent].pending++;
		else if (d)
			c->span[d]++;
		if (extents[d].last != UINT32_MAX)
			extents[d].last = i < c->directory_slot[d] ? UINT32_MAX : i;
	}
	extents[0].pending = UINT32_MAX; /* directory number 0 is never complete */
	for (uint32_t d = c->n_directories; d-- > 1;) {
		uint32_t a = extents[d].pending ? 0 : d;

		if (a)
			extents[a].pending = UINT32_MAX;
		while (a) {
			a = finish_extent(c, extents, a);
			if (a)
				extents[a].pending = UINT32_MAX;
		}
	}
	c->span[0] = 0;
	return 0;
}

int pfs_columns_load(struct pfs_columns *c, const uint32_t *parent, const uint64_t *prime, size_t n)
{
	int error;

	if (n > UINT32_MAX - (1u << 17))
		return -EOVERFLOW;
	/* Bitmaps cover the capacity: what an earlier, larger tree left would slow every query. */
	pfs_columns_free(c);
	error = grow_slots(c, n + PFS_MIN(n / 64 + 64, (size_t)1 << 16));
	if (error == 0 && n) {
		memset(c->home, 0, n * sizeof(*c->home));
		memcpy(c->prime, prime, n * sizeof(*prime));
		c->n_slots = (uint32_t)n;
	}
	error = error ? error : number_directories(c, prime, n);
	error = error ? error : link_slots(c, parent, n);
	error = error ? error : find_circles(c);
	error = error ? error : find_ranges(c);
	if (error)
		pfs_columns_free(c);
	return error;
}

/* Marks this directory and all above it: their subtrees are no ranges any more. */
static void spoil_ranges(struct pfs_columns *c, uint32_t directory)
{
	for (; directory && c->span[directory]; directory = c->directories[directory].parent)
		c->span[directory] = 0;
}

static int note(struct pfs_changes *changes, uint32_t slot, uint32_t directory)
{
	if (changes->everything)
		return 0;
	if (pfs_grow(&changes->slots, &changes->slot_capacity, changes->n_slots + 1,
		     sizeof(*changes->slots)) ||
	    pfs_grow(&changes->directories, &changes->directory_capacity,
		     changes->n_directories + 1, sizeof(*changes->directories)))
		return -ENOMEM;
	changes->slots[changes->n_slots++] = slot;
	if (directory)
		changes->directories[changes->n_directories++] = directory;
	return 0;
}

static int take_number(struct pfs_columns *c, uint32_t *number)
{
	if (c->n_free) {
		*number = c->free_directories[--c->n_free];
		return 0;
	}
	if (grow_directories(c, (size_t)c->n_directories + 1))
		return -ENOMEM;
	*number = c->n_directories++;
	return 0;
}

static int add(struct pfs_columns *c, struct pfs_changes *changes, const struct pfs_delta *delta)
{
	bool is_directory = delta->prime < PFS_FIRST_FILE_PRIME;
	uint32_t home, number = 0;
	int error;

	if (pfs_slot_live(c, delta->slot) || delta->slot >= UINT32_MAX - (1u << 16) ||
	    !pfs_slot_live(c, delta->parent) || !pfs_slot_is_directory(c, delta->parent) ||
	    delta->prime <= PFS_ROOT_PRIME || (is_directory && delta->prime % 2 == 0))
		return -EINVAL;
	if (delta->slot >= c->n_slots) {
		if (grow_slots(c, (size_t)delta->slot + 1))
			return -ENOMEM;
		clear_slots(c, delta->slot + 1);
	}
	home = c->home[delta->parent];
	if (is_directory) {
		error = take_number(c, &number);
		if (error)
			return error;
		set_directory(c, number, delta->slot, home, delta->prime);
	}
	c->home[delta->slot] = number ? number : home;
	c->prime[delta->slot] = delta->prime;
	spoil_ranges(c, home);
	return note(changes, delta->slot, number);
}

static int remove_node(struct pfs_columns *c, struct pfs_changes *changes, uint32_t slot)
{
	uint32_t number = 0;

	if (!pfs_slot_live(c, slot) || c->prime[slot] == PFS_ROOT_PRIME)
		return -EINVAL;
	spoil_ranges(c, c->home[slot]);
	if (pfs_slot_is_directory(c, slot)) {
		number = c->home[slot];
		spoil_ranges(c, c->directories[number].parent);
		if (pfs_grow(&c->free_directories, &c->free_capacity, c->n_free + 1,
			     sizeof(*c->free_directories)))
			return -ENOMEM;
		c->free_directories[c->n_free++] = number;
		c->directory_slot[number] = PFS_NO_SLOT;
		c->span[number] = 0;
		c->directories[number] = (struct pfs_directory){.parent = 0, .prime = 1};
	}
	c->home[slot] = 0;
	c->prime[slot] = 0;
	return note(changes, slot, number);
}

static int move_node(struct pfs_columns *c, struct pfs_changes *changes,
		     const struct pfs_delta *delta)
{
	uint32_t number = 0, home;

	if (!pfs_slot_live(c, delta->slot) || c->prime[delta->slot] == PFS_ROOT_PRIME ||
	    !pfs_slot_live(c, delta->parent) || !pfs_slot_is_directory(c, delta->parent))
		return -EINVAL;
	home = c->home[delta->parent];
	if (pfs_slot_is_directory(c, delta->slot)) {
		number = c->home[delta->slot];
		for (uint32_t up = home; up; up = c->directories[up].parent)
			if (up == number)
				return -EINVAL;
		spoil_ranges(c, c->directories[number].parent);
		c->directories[number].parent = home;
		changes->has_moves = true;
	} else {
		spoil_ranges(c, c->home[delta->slot]);
		c->home[delta->slot] = home;
	}
	spoil_ranges(c, home);
	return note(changes, delta->slot, number);
}

int pfs_columns_apply(struct pfs_columns *c, struct pfs_changes *changes,
		      const struct pfs_delta *delta)
{
	switch (delta->op) {
	case PFS_DELTA_ADD:
		return add(c, changes, delta);
	case PFS_DELTA_REMOVE:
		return remove_node(c, changes, delta->slot);
	case PFS_DELTA_MOVE:
		return move_node(c, changes, delta);
	case PFS_DELTA_NAME:
		return 0; /* listings take care of names */
	}
	return -EINVAL;
}
