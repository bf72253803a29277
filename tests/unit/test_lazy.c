/* SPDX-License-Identifier: MIT */
/* Memory that is filled when it is touched: by several threads, after a fork, and neighbours together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lazy.h"

#define BLOCK	((size_t)8192)
#define BLOCKS	100u
#define SIZE	(BLOCKS * BLOCK - 5000)
#define THREADS 4

struct memory {
	uint8_t *bytes;
	struct pfs_lazy *lazy;
	_Atomic unsigned filled[BLOCKS], calls;
	struct memory *other; /* that is touched while this is filled */
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / BLOCK + 1);
}

static void fill(void *context, void *to, uint64_t first, uint64_t count, size_t size)
{
	struct memory *memory = context;
	uint8_t *at = to;

	memory->calls++;
	for (uint64_t i = first; i < first + count; i++)
		memory->filled[i]++;
	for (size_t i = 0; i < size; i++)
		at[i] = byte_at(first * BLOCK + i);
	if (memory->other)
		assert_int_equal(memory->other->bytes[first * BLOCK], byte_at(first * BLOCK));
}

static void open_memory(struct memory *memory)
{
	*memory = (struct memory){.bytes = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	assert_ptr_not_equal(memory->bytes, MAP_FAILED);
	assert_int_equal(pfs_lazy_open(&memory->lazy, memory->bytes, SIZE, BLOCK, fill, memory), 0);
}

static void close_memory(struct memory *memory)
{
	pfs_lazy_close(memory->lazy);
	assert_int_equal(munmap(memory->bytes, BLOCKS * BLOCK), 0);
}

static void blocks_are_filled_once(void **state)
{
	struct memory memory;

	(void)state;
	open_memory(&memory);
	assert_int_equal(memory.bytes[40 * BLOCK + 7], byte_at(40 * BLOCK + 7));
	assert_int_equal(pfs_lazy_filled(memory.lazy), 1);
	assert_true(pfs_lazy_is_filled(memory.lazy, 40));
	assert_false(pfs_lazy_is_filled(memory.lazy, 39));
	memory.bytes[60 * BLOCK] = 0; /* a write is a touch */
	assert_int_equal(memory.bytes[60 * BLOCK + 1], byte_at(60 * BLOCK + 1));
	assert_int_equal(memory.bytes[60 * BLOCK], 0);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(memory.bytes[i], i == 60 * BLOCK ? 0 : byte_at(i));
	assert_int_equal(memory.bytes[SIZE], 0); /* the last page's end */
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_int_equal(memory.filled[i], 1);
	assert_in_range(memory.calls, 1, BLOCKS / 4); /* neighbours together */
	close_memory(&memory);
}

/* As many as there were mappings of the process. */
static unsigned count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned n = 0;

	assert_non_null(file);
	for (int c = getc(file); c != EOF; c = getc(file))
		n += c == '\n';
	assert_int_equal(fclose(file), 0);
	return n;
}

static void neighbours_are_one_mapping(void **state)
{
	struct memory memory;
	unsigned before;

	(void)state;
	open_memory(&memory);
	before = count_mappings();
	for (size_t i = 0; i < BLOCKS; i += 3)
		assert_int_equal(memory.bytes[i * BLOCK], byte_at(i * BLOCK));
	pfs_lazy_touch(memory.bytes, SIZE);
	assert_int_equal(pfs_lazy_filled(memory.lazy), BLOCKS);
	assert_in_range(count_mappings(), 1, before + 8);
	close_memory(&memory);
}

static void *touch_all(void *arg)
{
	struct memory *memory = arg;

	for (size_t i = 0; i < SIZE; i += 512)
		assert_int_equal(memory->bytes[i], byte_at(i));
	return NULL;
}

static void threads_see_whole_blocks(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		pthread_t threads[THREADS];
		struct memory memory, other;

		open_memory(&other);
		open_memory(&memory);
		memory.other = &other;
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, touch_all, &memory), 0);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		for (unsigned i = 0; i < BLOCKS; i++)
			assert_int_equal(memory.filled[i], 1);
		close_memory(&memory);
		close_memory(&other);
	}
}

static void a_child_fills_its_own(void **state)
{
	struct memory memory;
	int status;
	pid_t child;

	(void)state;
	open_memory(&memory);
	memory.bytes[3 * BLOCK] = 1;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		for (size_t i = 0; i < SIZE; i++)
			if (memory.bytes[i] != (i == 3 * BLOCK ? 1 : byte_at(i)))
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(pfs_lazy_filled(memory.lazy), 1);
	close_memory(&memory);
}

/* What is none of it is as without it. */
static void other_faults_end_the_process(void **state)
{
	struct memory memory;
	int status;
	pid_t child;

	(void)state;
	assert_ptr_not_equal(signal(SIGSEGV, SIG_DFL), SIG_ERR);
	open_memory(&memory);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		uint8_t *nothing = mmap(NULL, BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		(void)*(volatile uint8_t *)nothing;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	close_memory(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_filled_once),
		cmocka_unit_test(neighbours_are_one_mapping),
		cmocka_unit_test(threads_see_whole_blocks),
		cmocka_unit_test(a_child_fills_its_own),
		cmocka_unit_test(other_faults_end_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
