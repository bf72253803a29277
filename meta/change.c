/* SPDX-License-Identifier: MIT */
/* meta/change.c - remembers which nodes each group has changed, for copies of the store to follow.
 * The primes of a group are one row: sorted, as differences in LEB128. The oldest rows are removed.
 * If a group is too large to be remembered, the remembered changes begin after it. */
#include "meta/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"

/* A copy of the store is read completely if more than an eighth of the nodes have changed. So of a
 * large store at most so many primes of one group are remembered, with about three bytes each. */
#define GROUP_PRIMES ((size_t)1 << 20)
#define KEPT_BYTES   (UINT64_C(4) << 20)
#define NODES_PART   8
#define GROUP_BYTES  UINT32_MAX /* the longest row that is read */
#define SPARE_PRIMES ((size_t)1 << 16) /* memory for so many is kept for the next group */
#define ROW_OVERHEAD 32 /* as the statements CHANGE_SIZE and CHANGE_EXCESS count */

/* ---- writing ---- */

static uint64_t count_nodes(const struct pfs_store *store)
{
	return store->meta.nodes[0] + store->meta.nodes[1];
}

static size_t most_primes(const struct pfs_store *store)
{
	return PFS_MAX(store->feed_primes ? store->feed_primes : GROUP_PRIMES,
		       (size_t)(count_nodes(store) / NODES_PART));
}

static uint64_t most_bytes(const struct pfs_store *store)
{
	return PFS_MAX(KEPT_BYTES, count_nodes(store));
}

void pfs_change_note(struct pfs_store *store, uint64_t prime)
{
	struct pfs_group_changes *changes = &store->changes;

	if (store->flags & PFS_STORE_BULK || changes->lost || prime >= PFS_END_PRIME)
		return;
	if (changes->count && changes->primes[changes->count - 1] == prime)
		return;
	if (changes->count >= most_primes(store) ||
	    pfs_grow(&changes->primes, &changes->capacity, changes->count + 1,
		     sizeof(*changes->primes)))
		changes->lost = true;
	else
		changes->primes[changes->count++] = prime;
}

void pfs_change_end(struct pfs_store *store)
{
	store->changes.count = 0;
	store->changes.lost = false;
	/* after a large group the memory is given back */
	if (store->changes.capacity > SPARE_PRIMES) {
		free(store->changes.primes);
		store->changes.primes = NULL;
		store->changes.capacity = 0;
	}
}

static size_t number_size(uint64_t number)
{
	size_t size = 1;

	while (number >>= 7)
		size++;
	return size;
}

static uint8_t *put_number(uint8_t *out, uint64_t number)
{
	while (number >= 0x80) {
		*out++ = (uint8_t)(number | 0x80);
		number >>= 7;
	}
	*out++ = (uint8_t)number;
	return out;
}

/* Encodes the primes. The caller frees *out, which is NULL if there is no memory. */
static size_t encode(uint8_t **out, struct pfs_group_changes *changes)
{
	uint64_t last = 0;
	size_t size = 0;
	uint8_t *at;

	qsort(changes->primes, changes->count, sizeof(*changes->primes), pfs_compare_u64);
	for (size_t i = 0; i < changes->count; last = changes->primes[i++])
		size += changes->primes[i] == last ? 0 : number_size(changes->primes[i] - last);
	at = *out = malloc(PFS_MAX(size, 1));
	last = 0;
	for (size_t i = 0; at && i < changes->count; last = changes->primes[i++])
		if (changes->primes[i] != last)
			at = put_number(at, changes->primes[i] - last);
	return at ? size : 0;
}

/* Gets the token of a remembered group. Returns 1; 0: the group is not remembered, or has no token.
 */
static int get_token(struct pfs_db *db, uint8_t *out, uint64_t seq)
{
	sqlite3_stmt *row PFS_RESET = db->sql[PFS_SQL_CHANGE_TOKEN];
	const void *token;
	size_t len;
	int got;

	pfs_bind_u64(row, 1, PFS_MIN(seq, (uint64_t)INT64_MAX));
	got = pfs_db_step(db, row);
	if (got <= 0)
		return got;
	if (!pfs_column_blob(&token, &len, row, 0, PFS_TOKEN_SIZE) || len != PFS_TOKEN_SIZE)
		return 0;
	(void)memcpy(out, token, PFS_TOKEN_SIZE);
	return 1;
}

/* From now on the store remembers no changes up to this group, but its token. */
static int start_after(struct pfs_store *store, struct pfs_meta *meta, uint64_t seq)
{
	int got = 1;

	if (seq == meta->seq)
		(void)memcpy(meta->feed_token, meta->token, PFS_TOKEN_SIZE);
	else
		got = get_token(store->writer, meta->feed_token, seq);
	meta->has_feed_token = got == 1;
	meta->feed_start = seq;
	return got < 0 ? got : 0;
}

/* Forgets all up to and including the group. */
static int forget(struct pfs_store *store, struct pfs_meta *meta, uint64_t seq)
{
	if (seq > meta->feed_start)
		PFS_TRY(start_after(store, meta, seq));
	return pfs_group_run_for(store, PFS_SQL_CHANGE_DELETE, seq);
}

static int total_size(struct pfs_store *store)
{
	sqlite3_stmt *row PFS_RESET = store->writer->sql[PFS_SQL_CHANGE_SIZE];
	int got = pfs_db_step(store->writer, row);

	if (got < 0)
		return got;
	store->changes.bytes = (uint64_t)sqlite3_column_int64(row, 0);
	return 0;
}

/* Forgets the oldest groups until half of what may be kept is left, so that it is seldom done. */
static int trim(struct pfs_store *store, struct pfs_meta *meta)
{
	sqlite3_stmt *row = store->writer->sql[PFS_SQL_CHANGE_EXCESS];
	uint64_t seq = 0;
	int got;

	pfs_bind_u64(row, 1, most_bytes(store) / 2);
	got = pfs_db_step(store->writer, row);
	if (got == 1 && sqlite3_column_type(row, 0) == SQLITE_INTEGER)
		seq = (uint64_t)sqlite3_column_int64(row, 0);
	(void)sqlite3_reset(row);
	if (got >= 0)
		got = forget(store, meta, seq);
	return got < 0 ? got : total_size(store);
}

int pfs_change_load(struct pfs_store *store)
{
	return total_size(store);
}

int pfs_change_write(struct pfs_store *store, struct pfs_meta *meta)
{
	static const uint8_t none[1];
	struct pfs_group_changes *changes = &store->changes;
	uint8_t *bytes PFS_FREE = NULL;
	size_t len = 0;
	int error;

	if (store->flags & PFS_STORE_BULK) /* readers of an import read everything */
		return start_after(store, meta, meta->seq);
	if (changes->count && !changes->lost)
		len = encode(&bytes, changes);
	if (changes->lost || (changes->count && !bytes)) {
		changes->bytes = 0;
		return forget(store, meta, meta->seq);
	}
	/* A group without changes has a row, too, so that a copy of this state finds its token. */
	pfs_bind_u64(store->writer->sql[PFS_SQL_CHANGE_PUT], 1, meta->seq);
	pfs_bind_blob(store->writer->sql[PFS_SQL_CHANGE_PUT], 2, len ? bytes : none, len);
	pfs_bind_blob(store->writer->sql[PFS_SQL_CHANGE_PUT], 3, meta->token, PFS_TOKEN_SIZE);
	error = pfs_group_run(store, PFS_SQL_CHANGE_PUT);
	changes->bytes += len + ROW_OVERHEAD;
	return error || changes->bytes <= most_bytes(store) ? error : trim(store, meta);
}

/* ---- reading ---- */

struct feed {
	struct pfs_db *db;
	int (*fn)(void *arg, uint64_t seq, uint64_t prime, const struct pfs_node_record *node);
	void *arg;
};

/* Gets the next number of the row. Returns false at its end, or if what follows is no number. */
static bool get_number(uint64_t *out, const uint8_t **at, const uint8_t *end)
{
	uint64_t number = 0;
	unsigned shift;

	for (shift = 0; shift < 64 && *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = number;
			return true;
		}
	}
	return false;
}

static int tell_node(struct feed *feed, uint64_t seq, uint64_t prime)
{
	sqlite3_stmt *row PFS_RESET = feed->db->sql[PFS_SQL_NODE_SCAN];
	struct pfs_node_record node = {.prime = prime};
	const char *why;
	int got;

	pfs_bind_u64(row, 1, prime);
	pfs_bind_u64(row, 2, prime + 1);
	got = pfs_db_step(feed->db, row);
	if (got < 0)
		return got;
	if (got && pfs_node_from_row(&node, &why, row))
		return pfs_db_damaged(feed->db, "node", prime, why);
	return feed->fn(feed->arg, seq, prime, got ? &node : NULL);
}

static int tell_group(struct feed *feed, sqlite3_stmt *row)
{
	const uint8_t *at, *end;
	const void *bytes;
	uint64_t prime = 0;
	int64_t seq;
	size_t len;
	int got = 0;

	if (!pfs_column_int(&seq, row, 0, 1, INT64_MAX) ||
	    !pfs_column_blob(&bytes, &len, row, 1, GROUP_BYTES))
		return pfs_db_damaged(feed->db, "changes of group", 0, "they are none");
	for (at = bytes, end = at + len; at < end && !got;) {
		uint64_t step;

		if (!get_number(&step, &at, end) || __builtin_add_overflow(prime, step, &prime) ||
		    prime >= PFS_END_PRIME)
			return pfs_db_damaged(feed->db, "changes of group", (uint64_t)seq,
					      "they are none");
		got = tell_node(feed, (uint64_t)seq, prime);
	}
	return got;
}

static int scan_feed(struct feed *feed, uint64_t since)
{
	sqlite3_stmt *row PFS_RESET = feed->db->sql[PFS_SQL_CHANGE_SCAN];
	struct pfs_meta meta;
	uint64_t seed;
	int got = pfs_meta_read(&meta, &seed, feed->db);

	if (got)
		return got == -EMEDIUMTYPE ? -EUCLEAN : got;
	if (since < meta.feed_start)
		return -ESTALE;
	pfs_bind_u64(row, 1, PFS_MIN(since, (uint64_t)INT64_MAX));
	while ((got = pfs_db_step(feed->db, row)) == 1) {
		got = tell_group(feed, row);
		if (got)
			break;
	}
	return got;
}

int pfs_store_scan_changes(struct pfs_store *store, uint64_t since,
			   int (*fn)(void *arg, uint64_t seq, uint64_t prime,
				     const struct pfs_node_record *node),
			   void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	struct feed feed = {.fn = fn, .arg = arg};
	int got;

	if (store->flags & PFS_STORE_BULK)
		return -ESTALE;
	got = pfs_reader_get(store, &reader.db);
	if (!got)
		got = pfs_db_begin_reading(reader.db);
	if (got)
		return got;
	feed.db = reader.db;
	got = scan_feed(&feed, since);
	(void)pfs_db_end_reading(reader.db);
	return got;
}

/* Gets the token of a former group. Returns 1; 0: it is not remembered. */
static int past_token(struct pfs_store *store, uint8_t *out, const struct pfs_meta *meta,
		      uint64_t seq)
{
	struct pfs_reader reader PFS_READER = {.store = store};

	if (seq == meta->seq && meta->has_token) {
		(void)memcpy(out, meta->token, PFS_TOKEN_SIZE);
		return 1;
	}
	if (seq == meta->feed_start && meta->has_feed_token) {
		(void)memcpy(out, meta->feed_token, PFS_TOKEN_SIZE);
		return 1;
	}
	if (seq <= meta->feed_start || seq >= meta->seq)
		return 0;
	PFS_TRY(pfs_reader_get(store, &reader.db));
	return get_token(reader.db, out, seq);
}

int pfs_store_follows(struct pfs_store *store, const struct pfs_store_state *state)
{
	uint8_t token[PFS_TOKEN_SIZE];
	struct pfs_meta meta;
	int got;

	(void)pthread_mutex_lock(&store->mutex);
	meta = store->committed;
	(void)pthread_mutex_unlock(&store->mutex);
	got = past_token(store, token, &meta, state->seq);
	if (got < 0)
		return got;
	return got && memcmp(token, state->token, PFS_TOKEN_SIZE) == 0 ? 0 : -ESTALE;
}
