/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_probe.c - what benchmarks time, by events around it. */
#include "gpu/probe_impl.h"

#include "gpu/cuda/cuda_engine.h"

#define COPY_SIZE    ((size_t)2 << 30)
#define TO_HOST_SIZE ((size_t)64 << 20)

static int run_probe(struct pfs_cuda_job *job, enum pfs_probe what,
		     const struct pfs_divisor *divisors, size_t n, void *pinned)
{
	struct pfs_cuda *g = job->g;

	switch (what) {
	case PFS_PROBE_COPY:
		return PFS_CUDA(cudaMemcpyAsync(g->probe[0].d_memory, g->probe[1].d_memory,
						COPY_SIZE, cudaMemcpyDeviceToDevice, job->stream));
	case PFS_PROBE_READ:
		return -ENOTSUP;
	case PFS_PROBE_TO_HOST:
		return PFS_CUDA(cudaMemcpyAsync(pinned, g->probe[0].d_memory, TO_HOST_SIZE,
						cudaMemcpyDeviceToHost, job->stream));
	case PFS_PROBE_SCAN:
		return pfs_cuda_scan_rows(job, divisors, n);
	case PFS_PROBE_BUILD:
		return pfs_cuda_codes_build(job);
	}
	return -EINVAL;
}

static int prepare(struct pfs_cuda_job *job, enum pfs_probe what, void **pinned, uint64_t *bytes)
{
	struct pfs_cuda *g = job->g;
	size_t size = what == PFS_PROBE_COPY ? COPY_SIZE : TO_HOST_SIZE;
	bool fresh = g->probe[0].size < size;
	int error = 0;

	*bytes = g->n_limbs * sizeof(uint32_t);
	if (what == PFS_PROBE_BUILD)
		*bytes += g->n_directories * sizeof(struct pfs_directory);
	if (what != PFS_PROBE_COPY && what != PFS_PROBE_TO_HOST)
		return 0;
	*bytes = what == PFS_PROBE_COPY ? 2 * COPY_SIZE : TO_HOST_SIZE;
	for (unsigned i = 0; i < 2 && error == 0; i++) {
		error = pfs_device_reserve(job, &g->probe[i], size);
		if (error == 0 && fresh)
			error = PFS_CUDA(
				cudaMemsetAsync(g->probe[i].d_memory, 0x5a, size, job->stream));
	}
	if (error == 0 && what == PFS_PROBE_TO_HOST)
		error = PFS_CUDA(cudaMallocHost(pinned, TO_HOST_SIZE));
	return error;
}

int pfs_cuda_probe(struct pfs_codes_job *base, double *seconds, uint64_t *bytes,
		   enum pfs_probe what, const struct pfs_divisor *divisors, size_t n)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	cudaEvent_t start = NULL, stop = NULL;
	void *pinned = NULL;
	float ms = 0;
	int error = prepare(job, what, &pinned, bytes);

	error = error ? error : PFS_CUDA(cudaEventCreate(&start));
	error = error ? error : PFS_CUDA(cudaEventCreate(&stop));
	error = error ? error : PFS_CUDA(cudaEventRecord(start, job->stream));
	error = error ? error : run_probe(job, what, divisors, n, pinned);
	error = error ? error : PFS_CUDA(cudaEventRecord(stop, job->stream));
	error = error ? error : PFS_CUDA(cudaEventSynchronize(stop));
	error = error ? error : PFS_CUDA(cudaEventElapsedTime(&ms, start, stop));
	if (start)
		(void)cudaEventDestroy(start);
	if (stop)
		(void)cudaEventDestroy(stop);
	if (pinned)
		(void)cudaFreeHost(pinned);
	*seconds = ms / 1e3;
	return error;
}
