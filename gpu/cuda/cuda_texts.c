/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_texts.c - what operators want to know of texts.
 *
 * Of a dictionary's codes: the host makes an array by code once, and it stays, here and as a mirror
 * on the device, while the dictionaries stay as they are.  Of a heap's texts: kernels make numbers
 * of them, for a job.
 *
 * Lock: o->lock guards the list; nobody makes an array or copies one under it. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "gpu/host/dictionary.h"

#define KEPT_MAX 32u

enum what { TRANSLATE, FOLD, RANK, ORDER };

/* Of which dictionaries, how large they were, and what for. */
struct subject {
	enum what what;
	enum pfs_collation collation;
	uint64_t from_id, to_id;
	uint32_t from_n, to_n;
};

struct pfs_codes_copy {
	struct pfs_codes_copy *next;
	struct subject subject;
	uint64_t id; /* as a mirror */
	uint32_t *of; /* subject.from_n of them */
	unsigned users; /* protected by o->lock */
};

static void free_copy(struct pfs_codes_copy *copy)
{
	free(copy->of);
	free(copy);
}

void pfs_codes_drop_all(struct pfs_cuda_operators *o)
{
	while (o->codes) {
		struct pfs_codes_copy *copy = o->codes;

		o->codes = copy->next;
		free_copy(copy);
	}
}

/* ---- making ---- */

static int invert(struct pfs_codes_map *map)
{
	uint32_t *codes = malloc(map->n * sizeof(*codes) + 1);

	if (!codes)
		return -ENOMEM;
	for (uint32_t code = 0; code < map->n; code++)
		codes[map->of[code]] = code;
	free(map->made);
	map->of = map->made = codes;
	return 0;
}

static int make(struct pfs_codes_map *map, const struct subject *subject,
		const struct pfs_dictionary *from, const struct pfs_dictionary *to)
{
	const struct pfs_run run = {0}; /* it outlives the statement, which does not pay for it */
	struct pfs_dictionary unranked = *from;
	int error;

	unranked.rank = NULL; /* so that the array is made, and ours */
	switch (subject->what) {
	case TRANSLATE:
		return pfs_codes_translate(map, &run, from, to, subject->collation);
	case FOLD:
		return pfs_codes_fold(map, &run, from, subject->collation);
	case RANK:
		return pfs_codes_rank(map, &run, &unranked, subject->collation);
	case ORDER:
		break;
	}
	PFS_TRY(pfs_codes_rank(map, &run, &unranked, PFS_BINARY));
	error = invert(map);
	if (error)
		pfs_codes_map_close(&run, map);
	return error;
}

static int make_copy(struct pfs_codes_copy **out, const struct subject *subject,
		     const struct pfs_dictionary *from, const struct pfs_dictionary *to)
{
	struct pfs_codes_copy *copy = calloc(1, sizeof(*copy));
	struct pfs_codes_map map;
	int error = copy ? make(&map, subject, from, to) : -ENOMEM;

	if (error) {
		free(copy);
		return error;
	}
	*copy = (struct pfs_codes_copy){
		.subject = *subject, .id = pfs_table_new_id(), .of = map.made, .users = 1};
	*out = copy;
	return 0;
}

/* ---- keeping ---- */

static bool is_same(const struct subject *a, const struct subject *b)
{
	return a->what == b->what && a->collation == b->collation && a->from_id == b->from_id &&
	       a->to_id == b->to_id;
}

static bool is_current(const struct subject *a, const struct subject *b)
{
	return a->from_n == b->from_n && a->to_n == b->to_n;
}

/* Takes out what nobody uses of these: of the same subject, but of smaller dictionaries; or, with
 * subject NULL, the longest unused.  NULL: none. */
static struct pfs_codes_copy *take_unused(struct pfs_cuda_operators *o,
					  const struct subject *subject)
{
	struct pfs_codes_copy **found = NULL, *copy;

	for (struct pfs_codes_copy **at = &o->codes; *at; at = &(*at)->next)
		if (!(*at)->users &&
		    (!subject || (is_same(&(*at)->subject, subject) &&
				  !is_current(&(*at)->subject, subject))))
			found = at;
	if (!found)
		return NULL;
	copy = *found;
	*found = copy->next;
	return copy;
}

static void drop(struct pfs_cuda_operators *o, const struct subject *subject)
{
	struct pfs_codes_copy *copy;

	{
		PFS_LOCKED(&o->lock);
		copy = take_unused(o, subject);
	}
	if (!copy)
		return;
	pfs_mirror_forget(o, copy->id);
	free_copy(copy);
}

/* One more user; the one used last comes first.  NULL: there is none. */
static struct pfs_codes_copy *find_copy(struct pfs_cuda_operators *o, const struct subject *subject,
					size_t *n)
{
	PFS_LOCKED(&o->lock);

	*n = 0;
	for (struct pfs_codes_copy **at = &o->codes; *at; at = &(*at)->next, ++*n) {
		struct pfs_codes_copy *copy = *at;

		if (!is_same(&copy->subject, subject) || !is_current(&copy->subject, subject))
			continue;
		*at = copy->next;
		copy->next = o->codes;
		o->codes = copy;
		copy->users++;
		return copy;
	}
	return NULL;
}

static int upload(struct pfs_job *job, const uint32_t **d_map, uint64_t id, const uint32_t *of,
		  uint32_t n)
{
	const struct pfs_array array = {.id = id, .data = of, .n = n, .element_bits = 32};

	return pfs_job_array(job, (const void **)d_map, NULL, &array);
}

static int use(struct pfs_job *job, const uint32_t **d_map, const struct subject *subject,
	       const struct pfs_dictionary *from, const struct pfs_dictionary *to)
{
	struct pfs_cuda_operators *o = job->o;
	struct pfs_codes_copy *copy;
	int error;
	size_t n;

	copy = find_copy(o, subject, &n);
	if (!copy) {
		PFS_TRY(make_copy(&copy, subject, from, to));
		drop(o, subject);
		if (n >= KEPT_MAX)
			drop(o, NULL);
		PFS_LOCKED(&o->lock);
		copy->next = o->codes;
		o->codes = copy;
	}
	error = upload(job, d_map, copy->id, copy->of, subject->from_n);
	PFS_LOCKED(&o->lock);
	copy->users--; /* the mirror is leased */
	return error;
}

/* For dictionaries that nobody will know again. */
static int use_once(struct pfs_job *job, const uint32_t **d_map, const struct subject *subject,
		    const struct pfs_dictionary *from, const struct pfs_dictionary *to)
{
	const struct pfs_run run = {0};
	struct pfs_codes_map map;
	int error;

	PFS_TRY(make(&map, subject, from, to));
	error = pfs_job_upload(job, d_map, map.of, map.n * sizeof(*map.of));
	if (!error)
		error = PFS_CUDA(cudaStreamSynchronize(job->stream));
	pfs_codes_map_close(&run, &map);
	return error;
}

static int of_codes(struct pfs_job *job, const uint32_t **d_map, enum what what,
		    const struct pfs_dictionary *from, const struct pfs_dictionary *to,
		    enum pfs_collation collation)
{
	const struct subject subject = {.what = what,
					.collation = collation,
					.from_id = from->id,
					.to_id = to->id,
					.from_n = from->n,
					.to_n = to->n};

	PFS_TRY(pfs_run_check(job->run));
	return from->id && to->id ? use(job, d_map, &subject, from, to)
				  : use_once(job, d_map, &subject, from, to);
}

int pfs_job_translate(struct pfs_job *job, const uint32_t **d_map,
		      const struct pfs_dictionary *from, const struct pfs_dictionary *to,
		      enum pfs_collation collation)
{
	return of_codes(job, d_map, TRANSLATE, from, to, collation);
}

int pfs_job_fold(struct pfs_job *job, const uint32_t **d_map,
		 const struct pfs_dictionary *dictionary, enum pfs_collation collation)
{
	*d_map = NULL;
	if (collation == PFS_BINARY)
		return 0;
	return of_codes(job, d_map, FOLD, dictionary, dictionary, collation);
}

int pfs_job_rank(struct pfs_job *job, const uint32_t **d_rank,
		 const struct pfs_dictionary *dictionary, enum pfs_collation collation)
{
	return of_codes(job, d_rank, RANK, dictionary, dictionary, collation);
}

int pfs_job_order(struct pfs_job *job, const uint32_t **d_codes,
		  const struct pfs_dictionary *dictionary)
{
	return of_codes(job, d_codes, ORDER, dictionary, dictionary, PFS_BINARY);
}

/* ---- texts of a heap ---- */

#define HEAP_ONCE ((uint64_t)16 << 20) /* bytes that are copied for one job */
#define SLOTS_MAX ((uint64_t)1 << 31)

int pfs_job_heap(struct pfs_job *job, struct pfs_device_heap *out, const struct pfs_heap *heap)
{
	unsigned shift = heap->stamps ? heap->place_shift : 0;
	const struct pfs_array array = {.id = heap->stamps ? heap->stamps->id : heap->id,
					.data = heap->bytes,
					.n = heap->size >> shift,
					.element_bits = 8u << shift,
					.stamps = heap->stamps};

	out->place_shift = heap->place_shift;
	out->length_size = heap->length_size;
	return pfs_job_array(job, (const void **)&out->d_bytes, NULL, &array);
}

static int number_texts(struct pfs_job *job, uint32_t **d_numbers,
			const struct pfs_device_texts *texts,
			const struct pfs_device_places *places)
{
	struct pfs_device_table table;

	PFS_TRY(pfs_job_table(job, &table, places->to - places->from, SLOTS_MAX));
	PFS_TRY(pfs_job_alloc(job, d_numbers, places->to * sizeof(**d_numbers)));
	PFS_TRY(pfs_cuda_number_texts(*d_numbers, &table, texts, places, job->stream));
	return pfs_job_table_check(job, &table);
}

int pfs_job_number_texts(struct pfs_job *job, struct pfs_device_value *value,
			 const struct pfs_heap *heap, enum pfs_collation collation,
			 const struct pfs_device_places *places)
{
	struct pfs_device_texts texts = {.value = *value, .collation = (uint8_t)collation};
	uint32_t *d_numbers;

	if (!heap->stamps && !heap->id && heap->size > HEAP_ONCE)
		return -EOPNOTSUPP; /* the host is done before they are there */
	PFS_TRY(pfs_run_check(job->run));
	PFS_TRY(pfs_job_heap(job, &texts.heap, heap));
	PFS_TRY(number_texts(job, &d_numbers, &texts, places));
	*value = (struct pfs_device_value){
		.column = {.d_data = d_numbers, .mask = UINT64_MAX, .width = sizeof(*d_numbers)}};
	return 0;
}
