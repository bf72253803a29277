/* SPDX-License-Identifier: MIT */
/* Memory that is filled when it is touched: by several threads, after a fork, neighbours together,
 * and all at once where the system does not help; large pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/lazy.h"

#define BLOCK	((size_t)8192)
#define BLOCKS	100u
#define SIZE	(BLOCKS * BLOCK - 5000)
#define THREADS 4
#define PARTS	2

struct memory {
	struct part {
		struct memory *memory;
		uint8_t *bytes;
		struct pfs_lazy_part *part;
		_Atomic unsigned filled[BLOCKS], calls;
		struct part *other; /* that this is made of */
	} parts[PARTS];
	struct pfs_lazy *lazy;
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / BLOCK + 1);
}

static void fill(void *context, void *to, uint64_t first, uint64_t count, size_t size)
{
	struct part *part = context;
	uint8_t *at = to;

	part->calls++;
	for (uint64_t i = first; i < first + count; i++)
		part->filled[i]++;
	if (!part->other) {
		for (size_t i = 0; i < size; i++)
			at[i] = byte_at(first * BLOCK + i);
		return;
	}
	pfs_lazy_provide(part->other->part, first * BLOCK, size);
	memcpy(to, part->other->bytes + first * BLOCK, size);
}

/* The first part is made of the second. */
static void open_memory(struct memory *memory)
{
	*memory = (struct memory){.lazy = NULL};
	assert_int_equal(pfs_lazy_create(&memory->lazy), 0);
	memory->parts[0].other = &memory->parts[1];
	for (unsigned i = 0; i < PARTS; i++) {
		struct part *part = &memory->parts[i];

		part->bytes = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(part->bytes, MAP_FAILED);
		memset(part->bytes, 0xff, BLOCKS * BLOCK); /* which is forgotten */
		assert_int_equal(pfs_lazy_add(memory->lazy, &part->part, part->bytes, SIZE, BLOCK,
					      fill, part),
				 0);
	}
	assert_int_equal(pfs_lazy_start(memory->lazy), 0);
}

static void close_memory(struct memory *memory)
{
	pfs_lazy_close(memory->lazy);
	for (unsigned i = 0; i < PARTS; i++)
		assert_int_equal(munmap(memory->parts[i].bytes, BLOCKS * BLOCK), 0);
}

static void need_it(void)
{
	if (!pfs_lazy_is_possible())
		skip();
}

static void blocks_are_filled_once(void **state)
{
	struct memory memory;
	struct part *part = &memory.parts[1];

	(void)state;
	need_it();
	open_memory(&memory);
	assert_int_equal(pfs_lazy_filled(memory.lazy), 0);
	for (unsigned i = 0; i < 4; i++) {
		size_t at = (47 - i) * BLOCK + 7;

		assert_int_equal(part->bytes[at], byte_at(at));
		pfs_lazy_provide(part->part, at, 1); /* until who fills it has said so */
		assert_int_equal(pfs_lazy_filled(memory.lazy),
				 i + 1); /* while little is filled, none beside it */
	}
	assert_int_equal(part->bytes[42 * BLOCK], byte_at(42 * BLOCK));
	pfs_lazy_provide(part->part, 42 * BLOCK, 1);
	assert_int_equal(pfs_lazy_filled(memory.lazy), 8); /* after half of them those beside it */
	assert_false(pfs_lazy_is_filled(part->part, 39));
	assert_true(pfs_lazy_is_filled(part->part, 40));
	assert_true(pfs_lazy_is_filled(part->part, 47));
	assert_true(pfs_lazy_is_absent(part->part, 48));
	part->bytes[60 * BLOCK] = 0; /* a write is a touch */
	assert_int_equal(part->bytes[60 * BLOCK + 1], byte_at(60 * BLOCK + 1));
	assert_int_equal(part->bytes[60 * BLOCK], 0);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(part->bytes[i], i == 60 * BLOCK ? 0 : byte_at(i));
	assert_int_equal(part->bytes[SIZE], 0); /* the last page's end */
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_int_equal(part->filled[i], 1);
	assert_in_range(part->calls, 1, BLOCKS / 4); /* neighbours together */
	close_memory(&memory);
}

/* A value that is asked for once fills nothing; the second time it does. */
static void a_value_is_got_without_filling(void **state)
{
	struct memory memory;
	struct part *part = &memory.parts[1];
	uint8_t value[2];

	(void)state;
	need_it();
	open_memory(&memory);
	for (unsigned i = 0; i < 2; i++) {
		memset(value, 0, sizeof(value));
		pfs_lazy_get(part->part, value, 40 * BLOCK + 6, sizeof(value));
		assert_int_equal(value[1], byte_at(40 * BLOCK + 7));
		if (i)
			pfs_lazy_provide(part->part, 40 * BLOCK, 1);
		assert_int_equal(pfs_lazy_is_absent(part->part, 40), !i);
		assert_int_equal(pfs_lazy_filled(memory.lazy), i);
		assert_int_equal(part->filled[40], i + 1);
	}
	pfs_lazy_get(part->part, value, SIZE - 1, 1); /* of a block that is not whole */
	assert_int_equal(value[0], byte_at(SIZE - 1));
	part->bytes[40 * BLOCK + 6] = part->bytes[SIZE - 1] = 0;
	pfs_lazy_get(part->part, value, 40 * BLOCK + 6, sizeof(value));
	assert_int_equal(value[0], 0);
	pfs_lazy_get(part->part, value, SIZE - 1, 1);
	assert_int_equal(value[0], 0);
	assert_int_equal(part->bytes[SIZE - 2], byte_at(SIZE - 2));
	close_memory(&memory);
}

static void fill_large(void *context, void *to, uint64_t first, uint64_t count, size_t size)
{
	uint8_t *at = to;

	(void)context, (void)count;
	for (size_t i = 0; i < size; i++)
		at[i] = byte_at(first * BLOCK + i);
}

#define MANY 8192u /* blocks, after which memory is not spared any more */

static void when_much_is_filled_neighbours_come_with_the_second_block(void **state)
{
	size_t size = (MANY + 16) * BLOCK;
	struct pfs_lazy_part *part;
	struct pfs_lazy *lazy;
	uint8_t *bytes;

	(void)state;
	need_it();
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	assert_int_equal(pfs_lazy_create(&lazy), 0);
	assert_int_equal(pfs_lazy_add(lazy, &part, bytes, size, BLOCK, fill_large, NULL), 0);
	assert_int_equal(pfs_lazy_start(lazy), 0);
	pfs_lazy_provide(part, 0, MANY * BLOCK);
	for (unsigned i = 0; i < 2; i++) {
		size_t at = (MANY + 8 + 4 * i) * BLOCK;

		assert_int_equal(bytes[at], byte_at(at));
		pfs_lazy_provide(part, at, 1);
		assert_int_equal(pfs_lazy_filled(lazy), MANY + (i ? 8 : 1));
	}
	pfs_lazy_close(lazy);
	assert_int_equal(munmap(bytes, size), 0);
}

static void a_part_may_need_another(void **state)
{
	struct memory memory;

	(void)state;
	need_it();
	open_memory(&memory);
	assert_int_equal(memory.parts[0].bytes[7 * BLOCK], byte_at(7 * BLOCK));
	pfs_lazy_provide(memory.parts[0].part, 7 * BLOCK, 1);
	assert_int_equal(pfs_lazy_filled(memory.lazy), 2);
	assert_true(pfs_lazy_is_filled(memory.parts[1].part, 7));
	close_memory(&memory);
}

static void *touch_all(void *arg)
{
	const struct part *part = arg;

	for (size_t i = 0; i < SIZE; i += 512)
		assert_int_equal(part->bytes[i], byte_at(i));
	return NULL;
}

static void threads_see_whole_blocks(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		pthread_t threads[THREADS];
		struct memory memory;

		open_memory(&memory);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, touch_all,
							&memory.parts[i % PARTS]),
					 0);
		if (round % 2)
			pfs_lazy_fill_all(memory.lazy);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		for (unsigned i = 0; i < PARTS; i++)
			pfs_lazy_provide(memory.parts[i].part, 0, SIZE);
		for (unsigned i = 0; i < BLOCKS; i++)
			assert_int_equal(memory.parts[round % PARTS].filled[i], 1);
		assert_int_equal(pfs_lazy_filled(memory.lazy), (uint64_t)PARTS * BLOCKS);
		close_memory(&memory);
	}
}

/* The kernel does not wait. */
static void what_is_touched_can_be_written(void **state)
{
	struct memory memory;
	uint8_t *bytes, read_back[BLOCK];
	int ends[2];

	(void)state;
	need_it();
	open_memory(&memory);
	bytes = memory.parts[0].bytes + 5 * BLOCK;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], bytes, BLOCK), -1);
	assert_int_equal(errno, EFAULT);
	pfs_lazy_touch(bytes, BLOCK);
	assert_int_equal(write(ends[1], bytes, BLOCK), BLOCK);
	assert_int_equal(read(ends[0], read_back, BLOCK), BLOCK);
	assert_memory_equal(read_back, bytes, BLOCK);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
	close_memory(&memory);
}

static void check_child(struct memory *memory)
{
	pfs_lazy_fill_all(memory->lazy);
	for (unsigned k = 0; k < PARTS; k++)
		for (size_t i = 0; i < SIZE; i++)
			if (memory->parts[k].bytes[i] !=
			    (i == 3 * BLOCK && k == 0 ? 1 : byte_at(i)))
				_exit(1);
	_exit(0);
}

static void a_child_fills_its_own(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		struct memory memory;
		pthread_t thread;
		int status;
		pid_t child;

		open_memory(&memory);
		memory.parts[0].bytes[3 * BLOCK] = 1;
		assert_int_equal(pthread_create(&thread, NULL, touch_all, &memory.parts[1]), 0);
		child = pfs_lazy_fork(memory.lazy);
		assert_true(child >= 0);
		if (!child)
			check_child(&memory);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		close_memory(&memory);
	}
}

/* In a process that may open nothing more. */
/* What cannot be filled is not tried for ever: else whoever fills a memory that somebody unmaps
 * would never end. */
static void memory_that_is_gone_is_given_up(void **state)
{
	struct memory memory;
	uint8_t *gone;

	(void)state;
	open_memory(&memory);
	gone = memory.parts[1].bytes + 4 * BLOCK;
	assert_int_equal(munmap(gone, BLOCK), 0);
	(void)alarm(60); /* ends the program */
	pfs_lazy_provide(memory.parts[1].part, 4 * BLOCK, BLOCK);
	(void)alarm(0);
	assert_true(memory.parts[1].filled[4]);
	assert_ptr_equal(mmap(gone, BLOCK, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 gone);
	assert_int_equal(memory.parts[1].bytes[5 * BLOCK], byte_at(5 * BLOCK));
	close_memory(&memory);
}

static void it_is_filled_at_once_elsewhere(void **state)
{
	struct rlimit before;
	struct memory memory;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max}), 0);
	assert_false(pfs_lazy_is_possible());
	open_memory(&memory);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(pfs_lazy_filled(memory.lazy), (uint64_t)PARTS * BLOCKS);
	for (unsigned k = 0; k < PARTS; k++) {
		(void)touch_all(&memory.parts[k]);
		for (unsigned i = 0; i < BLOCKS; i++)
			assert_int_equal(memory.parts[k].filled[i], 1);
	}
	close_memory(&memory);
}

/* ---- large pages ---- */

#define LARGE ((size_t)2 << 20)
#define TRIES 3000 /* of 10 ms */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static uint8_t *map_large(size_t size)
{
	uint8_t *memory = mmap(NULL, size + LARGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static uint8_t *align(uint8_t *memory)
{
	return memory + (size_t)(-(uintptr_t)memory % LARGE);
}

/* What the kernel counts of the mappings that begin in this memory; what: the word of smaps. */
static size_t mapped_bytes(const uint8_t *memory, size_t size, const char *what)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long begin, end, kib;
	bool is_in = false;
	size_t sum = 0;
	char line[512], word[64];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) /* NOLINT(cert-err34-c): the kernel wrote it */
			is_in = begin >= (uintptr_t)memory && begin < (uintptr_t)memory + size;
		else if (is_in && sscanf(line, "%63[^:]: %lu kB", word, &kib) == 2 && !strcmp(word, what)) /* NOLINT(cert-err34-c) */
			sum += kib << 10;
	}
	assert_int_equal(fclose(maps), 0);
	return sum;
}

/* Bytes in large pages. */
static size_t large_bytes(const uint8_t *memory, size_t size)
{
	return mapped_bytes(memory, size, "AnonHugePages");
}

static bool has_large_pages(void)
{
	uint8_t *memory = map_large(LARGE);
	bool has;

	memset(align(memory), 1, LARGE);
	has = madvise(align(memory), LARGE, MADV_COLLAPSE) == 0 &&
	      large_bytes(memory, 2 * LARGE) > 0;
	assert_int_equal(munmap(memory, 2 * LARGE), 0);
	return has;
}

/* Of three stretches the first is touched once, the second is filled, and the third but for a
 * block: only the second can be a large page. */
static void filled_stretches_become_large_pages(void **state)
{
	const struct timespec soon = {.tv_nsec = 10000000};
	uint8_t *memory, *bytes;
	struct pfs_lazy_part *part;
	struct pfs_lazy *lazy;

	(void)state;
	need_it();
	if (!has_large_pages())
		skip();
	memory = map_large(3 * LARGE);
	bytes = align(memory);
	assert_int_equal(pfs_lazy_create(&lazy), 0);
	assert_int_equal(pfs_lazy_add(lazy, &part, bytes, 3 * LARGE, BLOCK, fill_large, NULL), 0);
	assert_int_equal(pfs_lazy_start(lazy), 0);
	pfs_lazy_provide(part, LARGE, LARGE);
	pfs_lazy_provide(part, 2 * LARGE, LARGE - BLOCK);
	assert_int_equal(bytes[0],
			 byte_at(0)); /* whoever fills this looks for stretches afterwards */
	for (unsigned i = 0; i < TRIES && large_bytes(memory, 4 * LARGE) == 0; i++)
		(void)nanosleep(&soon, NULL);
	assert_int_equal(large_bytes(memory, 4 * LARGE), LARGE);
	assert_true(pfs_lazy_is_absent(part, 3 * LARGE / BLOCK - 1));
	for (size_t i = 0; i < 3 * LARGE; i++)
		assert_int_equal(bytes[i], byte_at(i));
	pfs_lazy_close(lazy);
	assert_int_equal(munmap(memory, 4 * LARGE), 0);
}

/* ---- zeros ---- */

/* Of two stretches the first is zeros, and a block of the second. */
#define ZEROS_END (LARGE + BLOCK)

static void fill_rest(void *context, void *to, uint64_t first, uint64_t count, size_t size)
{
	uint8_t *at = to;

	(void)context, (void)count;
	for (size_t i = 0; i < size; i++)
		at[i] = first * BLOCK + i < ZEROS_END ? 0 : byte_at(first * BLOCK + i);
}

/* Zeros take no memory before the second stretch is a large page, and those of the first none
 * afterwards. */
static void zeros_take_no_memory(void **state)
{
	const struct timespec soon = {.tv_nsec = 10000000};
	bool has_large = has_large_pages();
	uint8_t *memory, *bytes;
	struct pfs_lazy_part *part;
	struct pfs_lazy *lazy;

	(void)state;
	need_it();
	memory = map_large(2 * LARGE);
	bytes = align(memory);
	assert_int_equal(pfs_lazy_create(&lazy), 0);
	assert_int_equal(pfs_lazy_add(lazy, &part, bytes, 2 * LARGE, BLOCK, fill_rest, NULL), 0);
	assert_int_equal(pfs_lazy_start(lazy), 0);
	pfs_lazy_provide(part, 0, 2 * LARGE - BLOCK);
	assert_int_equal(bytes[2 * LARGE - 1],
			 byte_at(2 * LARGE - 1)); /* as above, for the stretches */
	pfs_lazy_provide(part, 0, 2 * LARGE); /* until who fills it has said so */
	assert_int_equal(pfs_lazy_filled(lazy), 2 * LARGE / BLOCK);
	assert_int_equal(mapped_bytes(memory, 3 * LARGE, "Anonymous"), 2 * LARGE - ZEROS_END);
	assert_int_equal(bytes[BLOCK], 0); /* which nobody has to fill */
	pfs_lazy_touch(bytes, 2 * LARGE);
	for (unsigned i = 0; has_large && i < TRIES && large_bytes(memory, 3 * LARGE) == 0; i++)
		(void)nanosleep(&soon, NULL);
	if (has_large) {
		assert_int_equal(large_bytes(memory, 3 * LARGE), LARGE);
		assert_int_equal(mapped_bytes(memory, 3 * LARGE, "Anonymous"), LARGE);
	}
	bytes[BLOCK + 1] = 1;
	for (size_t i = 0; i < 2 * LARGE; i++)
		assert_int_equal(bytes[i], i < ZEROS_END ? i == BLOCK + 1 : byte_at(i));
	pfs_lazy_close(lazy);
	assert_int_equal(munmap(memory, 3 * LARGE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_filled_once),
		cmocka_unit_test(when_much_is_filled_neighbours_come_with_the_second_block),
		cmocka_unit_test(a_value_is_got_without_filling),
		cmocka_unit_test(a_part_may_need_another),
		cmocka_unit_test(threads_see_whole_blocks),
		cmocka_unit_test(what_is_touched_can_be_written),
		cmocka_unit_test(a_child_fills_its_own),
		cmocka_unit_test(memory_that_is_gone_is_given_up),
		cmocka_unit_test(it_is_filled_at_once_elsewhere),
		cmocka_unit_test(filled_stretches_become_large_pages),
		cmocka_unit_test(zeros_take_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
