/* SPDX-License-Identifier: MIT */
/* A job that holds the tree does not wait for what another job copies to the device; no job copies
 * more than it may, and none reads what is not all there. The device's memory is the host's; builds
 * without CUDA have no mirrors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if __has_include(<cuda_runtime_api.h>)

#include <stdlib.h>

#include "gpu/cuda/cuda_operators.h"

#define BLOCKS 24u
#define N      ((uint64_t)BLOCKS * PFS_BLOCK_ROWS)

static struct pfs_operator_backend *backend;
static void (*copying)(void); /* called amid each copy; NULL: nothing */
static size_t copied;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
cudaError_t __wrap_cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool,
					   cudaStream_t stream);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool,
					   cudaStream_t stream)
{
	(void)pool, (void)stream;
	*out = calloc(1, size);
	return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t __wrap_cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t __wrap_cudaFreeAsync(void *memory, cudaStream_t stream)
{
	(void)stream;
	free(memory);
	return cudaSuccess;
}

cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t size,
				   enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t size,
				   enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)kind, (void)stream;
	memcpy(to, from, size);
	copied += size;
	if (copying)
		copying();
	return cudaSuccess;
}

cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream)
{
	(void)stream;
	return cudaSuccess;
}

cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	(void)flags;
	*stream = (cudaStream_t)&copied;
	return cudaSuccess;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static const struct pfs_run on_device = {.on = PFS_ENGINE_CUDA};
static uint32_t numbers[N];
static uint64_t epochs[BLOCKS];
static struct pfs_stamps stamps = {.id = 7, .block = epochs};
static const struct pfs_array array = {
	.id = 7, .data = numbers, .n = N, .element_bits = 32, .stamps = &stamps};

/* What a job that may copy `most` bytes is told. */
static int ask_as(bool is_hurried, size_t most)
{
	struct pfs_job job;
	const void *d_numbers;
	int error = pfs_job_begin(&job, backend, &on_device);

	assert_int_equal(error, 0);
	job.left = most;
	job.is_hurried = is_hurried;
	error = pfs_job_array(&job, &d_numbers, NULL, &array);
	if (!error)
		assert_memory_equal(d_numbers, numbers, sizeof(numbers));
	return pfs_job_end(&job, error);
}

/* As one that does not wait. */
static int ask(size_t most)
{
	return ask_as(true, most);
}

static int told;

static void ask_amid(void)
{
	copying = NULL;
	told = ask(SIZE_MAX);
}

static int begin(void **state)
{
	static struct pfs_cuda_operators operators = {.mirror_limit = SIZE_MAX / 2};

	(void)state;
	(void)pthread_mutex_init(&operators.lock, NULL);
	(void)pthread_mutex_init(&operators.staging_lock, NULL);
	(void)pthread_cond_init(&operators.changed, NULL);
	backend = &operators.base;
	for (uint64_t i = 0; i < N; i++)
		numbers[i] = (uint32_t)(i * 2654435761u);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pfs_mirrors_drop_all(pfs_cuda_operators_of(backend));
	return 0;
}

static void does_not_wait_for_a_copy(void **state)
{
	(void)state;
	copying = ask_amid;
	assert_int_equal(ask(SIZE_MAX), 0);
	assert_int_equal(told, -EOPNOTSUPP);
	copied = 0;
	assert_int_equal(ask(SIZE_MAX), 0);
	assert_int_equal(copied, 0);
}

static void copies_no_more_than_it_may(void **state)
{
	const size_t block = PFS_BLOCK_ROWS * sizeof(*numbers);

	(void)state;
	for (int hurried = 0; hurried < 2; hurried++) {
		for (unsigned i = 0; i < BLOCKS; i++) {
			numbers[i * PFS_BLOCK_ROWS]++;
			epochs[i]++;
		}
		copied = 0;
		for (unsigned i = 1; i < BLOCKS / 8; i++) {
			assert_int_equal(ask_as(hurried, 8 * block), -EAGAIN);
			assert_int_equal(copied, i * 8 * block);
		}
		assert_int_equal(ask_as(hurried, 0), -EAGAIN);
		assert_int_equal(ask_as(hurried, 8 * block), 0);
		assert_int_equal(copied, sizeof(numbers));
	}
}

/* While a job reads an older state. */
static void does_not_wait_for_a_reader(void **state)
{
	struct pfs_job reader;
	const void *d_numbers;

	(void)state;
	assert_int_equal(pfs_job_begin(&reader, backend, &on_device), 0);
	assert_int_equal(pfs_job_array(&reader, &d_numbers, NULL, &array), 0);
	assert_int_equal(ask(SIZE_MAX), 0);
	epochs[3]++;
	assert_int_equal(ask(SIZE_MAX), -EOPNOTSUPP);
	assert_int_equal(pfs_job_end(&reader, 0), 0);
	assert_int_equal(ask(SIZE_MAX), 0);
}

/* What has changed is looked for when the owner's clock has moved. */
static void goes_by_the_clock(void **state)
{
	static uint64_t clock = 1;

	(void)state;
	stamps.clock = &clock;
	for (unsigned i = 0; i < 3; i++) {
		numbers[i * PFS_BLOCK_ROWS]++;
		epochs[i]++;
		clock++;
		copied = 0;
		for (unsigned again = 0; again < 2; again++)
			assert_int_equal(ask(SIZE_MAX), 0);
		assert_int_equal(copied, PFS_BLOCK_ROWS * sizeof(*numbers));
	}
	/* Not all of it: the next one looks again. */
	for (unsigned i = 0; i < 2; i++)
		epochs[i]++;
	clock++;
	assert_int_equal(ask(1), -EAGAIN);
	copied = 0;
	assert_int_equal(ask(SIZE_MAX), 0);
	assert_int_equal(copied, PFS_BLOCK_ROWS * sizeof(*numbers));
#ifndef PFS_VERIFY
	epochs[0]++; /* nothing is compared */
	assert_int_equal(ask(SIZE_MAX), 0);
	assert_int_equal(copied, PFS_BLOCK_ROWS * sizeof(*numbers));
	epochs[0]--;
#endif
	stamps.clock = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_wait_for_a_copy),
		cmocka_unit_test(copies_no_more_than_it_may),
		cmocka_unit_test(does_not_wait_for_a_reader),
		cmocka_unit_test(goes_by_the_clock),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

#else

int main(void)
{
	return 77;
}

#endif
