/* SPDX-License-Identifier: MIT */
/* The device that answers single questions is filled, and sent many changes, while nobody waits:
 * the image answers meanwhile, also whoever changes the tree, and then the device has what came and
 * went. The device is a stand-in, which stops in the middle until it is told to go on. */
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/tree_util.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/image/device_lookup_impl.h"
#include "fs/image/hold.h"
#include "fs/image/watch.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/stand_in_resident.h"

#define FOLDERS 40u
#define MANY	5000u /* changes, more than whoever asks sends himself */
#define TOO_MANY ((1u << 20) + 1) /* more than are gathered */
#define WAIT_MS 20000

/* Calls that fill or change the device wait here. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct pfs_resident_ops *ops; /* of the stand-in */
	unsigned begun, allowed;	    /* calls */
	bool was_late;			    /* one was not allowed in time */
	unsigned loads, applies;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass(unsigned *count)
{
	const struct timespec end = pfs_clock_in_ms(CLOCK_REALTIME, WAIT_MS);
	unsigned number;
	PFS_LOCKED(&gate.lock);

	++*count;
	number = ++gate.begun;
	(void)pthread_cond_broadcast(&gate.changed);
	while (number > gate.allowed && !gate.was_late)
		gate.was_late = pthread_cond_timedwait(&gate.changed, &gate.lock, &end) != 0;
}

static int load(struct pfs_resident_backend *b, const struct pfs_resident_load *from)
{
	pass(&gate.loads);
	return gate.ops->load(b, from);
}

static int apply(struct pfs_resident_backend *b, const struct pfs_resident_changes *changes)
{
	pass(&gate.applies);
	return gate.ops->apply(b, changes);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __wrap_pfs_cuda_resident_open(struct pfs_resident_backend **out);
int __wrap_pfs_cuda_resident_open(struct pfs_resident_backend **out)
{
	static struct pfs_resident_ops ops;

	PFS_TRY(stand_in_resident_open(out));
	gate.ops = (*out)->ops;
	ops = *gate.ops;
	ops.load = load;
	ops.apply = apply;
	(*out)->ops = &ops;
	return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void allow(unsigned calls)
{
	PFS_LOCKED(&gate.lock);

	gate.allowed = calls;
	(void)pthread_cond_broadcast(&gate.changed);
}

static void wait_until_begun(unsigned calls)
{
	const struct timespec end = pfs_clock_in_ms(CLOCK_REALTIME, WAIT_MS);
	PFS_LOCKED(&gate.lock);

	while (gate.begun < calls)
		assert_int_equal(pthread_cond_timedwait(&gate.changed, &gate.lock, &end), 0);
}

/* Lookups that were answered; pfs_device_lookup_stats would wait for the device. */
static uint64_t count(bool on_device)
{
	const struct pfs_device_lookup *single = tree->single;

	return atomic_load(&(on_device ? single->device : single->host)[PFS_QUESTION_LOOKUP].n);
}

static bool finds(uint64_t parent, const char *name)
{
	struct pfs_entry entry;
	int error = pfs_tree_lookup(tree, &entry, parent, name);

	if (!error)
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	else
		assert_int_equal(error, -ENOENT);
	return !error;
}

/* Asks until the device is what answers. */
static void wait_for_device(void)
{
	uint64_t before = count(true);

	for (unsigned ms = 0; ms < WAIT_MS && count(true) == before; ms++) {
		(void)finds(PFS_ROOT_PRIME, "nothing");
		(void)usleep(1000);
	}
	assert_true(count(true) > before);
}

/* All that the device has is what the image has. */
static void check_device(void)
{
	uint64_t host;

	wait_for_device();
	host = count(false);
	for (unsigned i = 0; i < FOLDERS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "d%u", i);
		assert_int_equal(finds(PFS_ROOT_PRIME, name), i % 3 != 0);
		(void)snprintf(name, sizeof(name), "moved%u", i);
		assert_int_equal(finds(PFS_ROOT_PRIME, name), i % 3 == 0);
	}
	assert_int_equal(count(false), host);
	pfs_hold_read(tree, __func__);
	assert_null(pfs_watch_check(tree));
	pfs_hold_end(tree);
}

/* Nothing may be sent to the device yet. */
static void start_with_folders(void)
{
	const struct pfs_tree_options options = {.engine = PFS_ENGINE_CUDA};

	gate.begun = gate.allowed = gate.loads = gate.applies = 0;
	gate.was_late = false;
	start_tree(&options);
	assert_int_equal(gate.begun, 0); /* nobody has asked */
	assert_false(finds(PFS_ROOT_PRIME, "d1"));
	wait_until_begun(1);
	for (unsigned i = 0; i < FOLDERS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "d%u", i);
		assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, name, S_IFDIR | 0755));
	}
}

static void move_some(void)
{
	for (unsigned i = 0; i < FOLDERS; i += 3) {
		char from[16], to[16];

		(void)snprintf(from, sizeof(from), "d%u", i);
		(void)snprintf(to, sizeof(to), "moved%u", i);
		assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, from, PFS_ROOT_PRIME, to, 0),
				 0);
	}
}

static void end(void)
{
	allow(UINT_MAX);
	check_device();
	assert_false(gate.was_late);
	(void)stop_tree(NULL);
}

static void nobody_waits_while_it_is_filled(void **state PFS_UNUSED)
{
	start_with_folders();
	move_some();
	assert_true(finds(PFS_ROOT_PRIME, "d1"));
	assert_int_equal(count(true), 0);
	assert_true(count(false) > 0);
	end();
	assert_int_equal(gate.loads, 1);
}

static void nobody_waits_while_many_changes_are_sent(void **state PFS_UNUSED)
{
	start_with_folders();
	for (unsigned i = 0; i < MANY; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i);
		assert_true(temp_tree_make(tree, PFS_ROOT_PRIME, name, S_IFREG | 0644));
	}
	allow(1);
	wait_until_begun(2);
	assert_int_equal(gate.applies, 1);
	move_some();
	assert_true(finds(PFS_ROOT_PRIME, "f1"));
	assert_int_equal(count(true), 0);
	end();
	assert_int_equal(gate.loads, 1);
}

static void it_is_filled_again_after_too_many_changes(void **state PFS_UNUSED)
{
	const struct pfs_device_change change = {.parent = PFS_MAILBOX_NONE, .is_gone = true};

	start_with_folders();
	pfs_hold_write(tree, __func__);
	for (unsigned i = 0; i < TOO_MANY; i++)
		pfs_device_follow_note(tree->single, &change);
	pfs_hold_end(tree);
	move_some();
	end();
	assert_int_equal(gate.loads, 2);
}

/* A tree is closed before its device has what it is to have. */
static void it_is_closed_while_it_is_filled(void **state PFS_UNUSED)
{
	start_with_folders();
	allow(UINT_MAX);
	(void)stop_tree(NULL);
	assert_false(gate.was_late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_waits_while_it_is_filled),
		cmocka_unit_test(nobody_waits_while_many_changes_are_sent),
		cmocka_unit_test(it_is_filled_again_after_too_many_changes),
		cmocka_unit_test(it_is_closed_while_it_is_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
