/* SPDX-License-Identifier: MIT */
/* gpu/cuda/resident.cu - the kernel that stays on the device and answers single questions. */
#include "gpu/cuda/index.cuh"
#include "gpu/cuda/resident_kernels.h"
#include "gpu/index.h"

#define SERVER_THREADS (PFS_MAILBOX_SLOTS * 32)
#define PAUSE_NS       200 /* between two looks at a slot */

/* ---- memory that the host writes and reads meanwhile ---- */

static __device__ __forceinline__ uint32_t load_acquire(const uint32_t *p)
{
	uint32_t value;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
	return value;
}

static __device__ __forceinline__ void store_release(uint32_t *p, uint32_t value)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(p), "r"(value) : "memory");
}

static __device__ __forceinline__ uint64_t now_ns()
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

/* A word a lane of a slot's line: its question, the number of it, and their sums. */
static __device__ __forceinline__ uint32_t read_line(const pfs_mailbox_slot *slot, uint32_t lane)
{
	const volatile uint32_t *words = reinterpret_cast<const volatile uint32_t *>(slot);

	return lane < PFS_MAILBOX_LINE ? words[lane] : 0;
}

/* Whether all words of the line are of the same question, though nothing orders them. */
static __device__ __forceinline__ bool is_whole(uint32_t line, uint32_t lane)
{
	const bool counts = lane < PFS_MAILBOX_SUMMED;
	bool is = true;

#pragma unroll
	for (uint32_t k = 0; k < PFS_MAILBOX_SUMS; k++) {
		uint32_t term = counts ? pfs_mailbox_term(line, lane, k) : 0;

		is = is && __reduce_add_sync(PFS_ALL_LANES, term) ==
				   __shfl_sync(PFS_ALL_LANES, line, PFS_MAILBOX_SUMMED + k);
	}
	return is;
}

static __device__ __forceinline__ pfs_mailbox_question question_of(uint32_t line)
{
	pfs_mailbox_question q;
	uint32_t *out = reinterpret_cast<uint32_t *>(&q);

#pragma unroll
	for (uint32_t i = 0; i < sizeof(q) / sizeof(uint32_t); i++)
		out[i] = __shfl_sync(PFS_ALL_LANES, line, (int)i);
	return q;
}

/* ---- entries of the index, by a warp ---- */

static __device__ void read_entries(const pfs_device_btree &t, pfs_mailbox_answer *out,
				    const pfs_mailbox_question &q, uint32_t lane)
{
	uint32_t capacity = min(q.capacity, PFS_MAILBOX_ENTRIES), n = 0;
	bool more = capacity != 0 && t.leaves.n != 0;

	for (uint32_t at = more ? pfs_find_leaf(t, q.first, q.value, lane) : 0; more && at < t.leaves.n;
	     at++) {
		uint32_t page = t.leaves.d_page[at];
		size_t entry = (size_t)page * PFS_PAGE + lane;
		uint64_t key = t.pages.d_keys[entry];
		uint32_t value = t.pages.d_values[entry];
		bool is_there = lane < t.pages.d_count[page];
		bool fits =
			is_there && key <= q.last && !pfs_pair_less(key, value, q.first, q.value);
		uint32_t found = __ballot_sync(PFS_ALL_LANES, fits);
		uint32_t place = n + __popc(found & ((1u << lane) - 1));

		if (fits && place < capacity) {
			const_cast<volatile uint64_t *>(out->keys)[place] = key;
			const_cast<volatile uint32_t *>(out->values)[place] = value;
		}
		n += __popc(found);
		more = n < capacity && !__any_sync(PFS_ALL_LANES, is_there && key > q.last);
	}
	if (lane == 0)
		*const_cast<volatile uint32_t *>(&out->n) = min(n, capacity);
}

struct found_path {
	uint32_t slot, parent; /* PFS_MAILBOX_NONE: there is none */
};

/* The node of the path that is the first len bytes of the lanes' words; all lanes compare. */
static __device__ found_path find_path(const pfs_device_names &names, uint64_t hash, uint64_t word,
				       uint32_t len, uint32_t lane)
{
	const pfs_path_table &t = names.table;
	const bool compares = lane < (len + 7) / 8;
	const uint64_t kept = lane == len / 8 ? (UINT64_C(1) << 8 * (len % 8)) - 1 : UINT64_MAX;

	for (uint32_t i = (uint32_t)hash & t.mask; t.mask; i = (i + 1) & t.mask) {
		const pfs_path_entry node = t.nodes[i];
		found_path found;

		if (node.slot == PFS_PATH_NOWHERE)
			break;
		if (node.tag != hash >> 32 || node.len != len)
			continue;
		/* All that depends on the node is read before any of it is waited for. */
		const uint64_t text = compares ? pfs_table_text(&t, &node)[lane] : 0;

		found.slot = pfs_table_slot(&t, &node);
		found.parent =
			node.slot < names.n_parents ? names.d_parent[node.slot] : PFS_MAILBOX_NONE;
		if (__all_sync(PFS_ALL_LANES, !compares || text == (word & kept)))
			return found;
	}
	return {PFS_MAILBOX_NONE, PFS_MAILBOX_NONE};
}

static __device__ void read_by_path(const pfs_device_names &names, pfs_mailbox_slot *slot,
				    const pfs_mailbox_question &q, uint32_t lane)
{
	/* It is on its way while the table is looked at. */
	const uint64_t word = *const_cast<const volatile uint64_t *>(&slot->path[lane]);
	const uint64_t hash = (uint64_t)q.a_top << 32 | q.a;
	const found_path found = find_path(names, hash, word, q.b_top, lane);
	uint32_t directory = found.parent;
	volatile pfs_mailbox_answer *out = &slot->answer;

	if (found.slot != PFS_MAILBOX_NONE && directory != PFS_MAILBOX_NONE) {
		if (lane == 0) {
			out->n = 1;
			out->keys[0] = (uint64_t)directory << q.b | q.first;
			out->values[0] = found.slot;
		}
	} else {
		pfs_mailbox_question lookup = q;

		directory = find_path(names, q.last, word, q.value, lane).slot;
		lookup.first = lookup.last = (uint64_t)directory << q.b | q.first;
		lookup.value = 0;
		lookup.capacity = directory == PFS_MAILBOX_NONE ? 0 : q.capacity;
		read_entries(names.index, &slot->answer, lookup, lane);
	}
	if (lane == 0)
		out->a = directory;
}

/* ---- single changes, by a warp; nobody reads meanwhile ---- */

static __device__ __forceinline__ void mark_changed(const pfs_path_table &table, uint32_t slot)
{
	if (slot < table.n_slots)
		(void)atomicOr(&table.changed[slot / 32], 1u << slot % 32);
}

static __device__ bool remove_pair(const pfs_device_btree &t, uint32_t page,
				   const pfs_mailbox_question &q, uint32_t lane, bool *is_last)
{
	size_t entry = (size_t)page * PFS_PAGE + lane;
	uint32_t count = t.pages.d_count[page], value = t.pages.d_values[entry];
	uint64_t key = t.pages.d_keys[entry];
	bool same = lane < count && key == q.first && value == q.value;
	uint32_t found = __ballot_sync(PFS_ALL_LANES, same), place = __ffs(found) - 1;
	uint64_t key_after = __shfl_down_sync(PFS_ALL_LANES, key, 1);
	uint32_t value_after = __shfl_down_sync(PFS_ALL_LANES, value, 1);
	bool is_end = lane + 1 == count;

	*is_last = found && count == 1 && t.leaves.n > 1;
	if (!found || *is_last)
		return found;
	if (lane >= place && lane < count) {
		t.pages.d_keys[entry] = is_end ? UINT64_MAX : key_after;
		t.pages.d_values[entry] = is_end ? PFS_INDEX_NONE : value_after;
	}
	if (lane == 0)
		t.pages.d_count[page] = count - 1;
	return true;
}

static __device__ void edit(const pfs_device_names &names, volatile pfs_mailbox_answer *out,
			    const pfs_mailbox_question &q, uint32_t lane)
{
	const pfs_device_btree &t = names.index;
	bool fails = q.value >= names.n_parents || t.leaves.n == 0, was_there = false;

	if (!fails) {
		uint32_t page = t.leaves.d_page[pfs_find_leaf(t, q.first, q.value, lane)];

		if (q.op == PFS_MAILBOX_ADD)
			was_there = pfs_add_pair(t, page, q.first, q.value, lane, &fails);
		else
			was_there = remove_pair(t, page, q, lane, &fails);
	}
	if (lane)
		return;
	if (!fails) {
		names.d_parent[q.value] = q.a;
		mark_changed(names.table, q.value);
	}
	out->n = !fails;
	out->a = was_there == (q.op == PFS_MAILBOX_REMOVE);
}

/* ---- ways up, by one lane ---- */

struct way_answer {
	uint32_t n, a, b;
};

static __device__ __forceinline__ uint32_t parent_of(const pfs_device_names &names, uint32_t slot)
{
	return slot < names.n_parents ? names.d_parent[slot] : PFS_MAILBOX_NONE;
}

static __device__ way_answer climb(const pfs_device_names &names, const pfs_mailbox_question &q)
{
	uint32_t at = q.a;

	for (uint32_t steps = 0; at != PFS_MAILBOX_NONE && at != q.b; steps++) {
		if (steps == PFS_MAILBOX_STEPS)
			return {0, at, q.b};
		at = parent_of(names, at);
	}
	return {1, at == q.b, 0};
}

static __device__ way_answer meet(const pfs_device_names &names, const pfs_mailbox_question &q)
{
	uint32_t a = q.a, b = q.b;

	for (uint32_t steps = 0; a != b && steps < PFS_MAILBOX_STEPS; steps++) {
		a = parent_of(names, a);
		b = parent_of(names, b);
		if (a == b)
			break; /* both ways have ended, or they met */
		a = a == PFS_MAILBOX_NONE ? q.b_top : a;
		b = b == PFS_MAILBOX_NONE ? q.a_top : b;
	}
	return {a == b, a, b};
}

static __device__ way_answer walk(const pfs_device_names &names, const pfs_mailbox_question &q)
{
	way_answer answer = {1, parent_of(names, q.a) == q.b, 0};

	if (q.op == PFS_MAILBOX_COMMON)
		answer = meet(names, q);
	else if (q.op != PFS_MAILBOX_CHILD)
		answer = climb(names, q);
	if (q.falsify)
		answer.a = q.op == PFS_MAILBOX_COMMON ? q.a_top : !answer.a;
	return answer;
}

/* ---- the server ---- */

static __device__ void answer_slot(pfs_mailbox_slot *slot, const pfs_device_names &names,
				   const pfs_mailbox_question &q, uint32_t asked, uint32_t lane)
{
	volatile pfs_mailbox_answer *out = &slot->answer;

	if (q.op <= PFS_MAILBOX_PATH) {
		if (q.op == PFS_MAILBOX_PATH)
			read_by_path(names, slot, q, lane);
		else
			read_entries(names.index, &slot->answer, q, lane);
		if (q.falsify && lane == 0)
			out->n = 0;
	} else if (q.op >= PFS_MAILBOX_ADD) {
		edit(names, out, q, lane);
	} else if (lane == 0) {
		way_answer answer = walk(names, q);

		out->n = answer.n;
		out->a = answer.a;
		out->b = answer.b;
	}
	__syncwarp(); /* each lane's part before the word that says that it is there */
	if (lane == 0)
		store_release(&slot->answered, asked);
}

static __global__ void __launch_bounds__(SERVER_THREADS)
	serve_kernel(pfs_mailbox *mailbox, const pfs_device_names names, const pfs_mailbox_run run)
{
	__shared__ uint32_t leave;
	__shared__ unsigned long long last; /* when there was a question */
	const uint32_t lane = threadIdx.x & 31;
	pfs_mailbox_slot *slot = &mailbox->slots[threadIdx.x / 32];
	const uint64_t began = now_ns();
	uint32_t answered = 0;

	if (threadIdx.x == 0) {
		leave = 0;
		last = began;
		store_release(&mailbox->entered, run.number);
	}
	__syncthreads();
	if (lane == 0)
		answered = load_acquire(&slot->answered);
	for (;;) {
		uint32_t asked, line, end = 0;

		if (lane == 0)
			end = atomicOr(&leave, 0u); /* what is asked after this the next run finds */
		__syncwarp();
		line = read_line(slot, lane);
		asked = __shfl_sync(PFS_ALL_LANES, line, PFS_MAILBOX_ASKED);
		end = __shfl_sync(PFS_ALL_LANES, end, 0);
		answered = __shfl_sync(PFS_ALL_LANES, answered, 0);
		if (asked != answered && is_whole(line, lane)) {
			answer_slot(slot, names, question_of(line), asked, lane);
			answered = asked;
			if (lane == 0)
				(void)atomicExch(&last, now_ns());
		}
		if (end)
			break;
		if (threadIdx.x == 0) {
			uint64_t now = now_ns(), seen = atomicMax(&last, 0ull);

			if (load_acquire(&mailbox->stop) == run.number ||
			    now - began > run.limit_ns || (now > seen && now - seen > run.idle_ns))
				(void)atomicExch(&leave, 1u);
		}
		if (lane == 0)
			__nanosleep(PAUSE_NS);
		__syncwarp();
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence_system();
		store_release(&mailbox->left, run.number);
	}
}

static __global__ void parents_kernel(uint32_t *parent, const pfs_path_table table,
				      const uint32_t *__restrict__ slots,
				      const uint32_t *__restrict__ values, size_t n)
{
	PFS_EACH(i, n)
	{
		parent[slots[i]] = values[i];
		mark_changed(table, slots[i]);
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_resident_serve(struct pfs_mailbox *d_mailbox,
				       const struct pfs_device_names *names,
				       const struct pfs_mailbox_run *run, cudaStream_t stream)
{
	serve_kernel<<<1, SERVER_THREADS, 0, stream>>>(d_mailbox, *names, *run);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_resident_parents(uint32_t *d_parent, const struct pfs_path_table *table,
					 const uint32_t *d_slots, const uint32_t *d_values,
					 size_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	parents_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_parent, *table, d_slots, d_values, n);
	return PFS_CUDA(cudaGetLastError());
}
