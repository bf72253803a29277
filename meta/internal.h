/* SPDX-License-Identifier: MIT */
/* meta/internal.h - what the files of meta/ share: the struct of an open store, its connections and
 * its open group. Nobody outside meta/ includes it.
 *
 * Errors are logged once, by meta/db.h; whatever fails in an open group spoils the group
 * (group_error). */
#ifndef PFS_META_INTERNAL_H
#define PFS_META_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "meta/db.h"
#include "meta/lock.h"
#include "meta/store.h"

#define PFS_FIRST_OTHER (UINT64_C(1) << 32) /* directories' primes lie below it, all others above */
#define PFS_END_PRIME	(UINT64_C(1) << 63)

#define PFS_NAME_CACHE_SIZE 64

/* The row of the table `meta`, as groups change it. */
struct pfs_meta {
	uint64_t seq;
	uint64_t next[2];    /* by enum pfs_prime_kind: numbers from here on were never handed out */
	uint64_t nodes[2];   /* records with primes below PFS_FIRST_OTHER, and above */
	uint64_t end_slot;   /* greater than every record's slot */
	uint64_t feed_start; /* the store remembers the changes of groups after this one */
	/* Random bytes that name the group `seq` and the group `feed_start`; stores of earlier
	 * versions have none. */
	bool has_token, has_feed_token;
	uint8_t token[PFS_TOKEN_SIZE], feed_token[PFS_TOKEN_SIZE];
};

/* The nodes that the open group has changed so far (change.c). */
struct pfs_group_changes {
	uint64_t *primes;
	size_t count, capacity;
	bool lost;	/* they were too many, or memory was short: the feed begins after this group */
	uint64_t bytes; /* about how many bytes of changes the store remembers in all */
};

/* The numbers of attribute names that were used lately. */
struct pfs_name_cache {
	struct {
		uint8_t name[PFS_ATTR_NAME_MAX];
		size_t len; /* 0: free */
		int64_t id;
	} entry[PFS_NAME_CACHE_SIZE];
};

/* Holds what the writing thread knows of the history. */
struct pfs_history_state {
	bool is_known;
	int64_t age;   /* as struct pfs_history_rule has them */
	uint64_t size;
	uint64_t since_seq, oldest_seq; /* oldest: of what is there; 0: nothing is */
	int64_t since, oldest, last;
	uint64_t bytes;
	uint64_t noted; /* rows of the open group */
};

struct pfs_bulk_rows;
struct pfs_attr_rows;

struct pfs_store {
	char *path; /* absolute, symlinks resolved */
	char *vfs;  /* NULL: SQLite's default */
	unsigned flags;
	uint64_t seed;
	int version; /* of the file's format */
	struct pfs_lock lock;
	enum pfs_db_mode read_mode;

	/* The open group; all of it is the writing thread's alone. */
	struct pfs_db *writer; /* NULL in a read-only store, and after a rollback that failed */
	bool in_group;
	int group_error;    /* the first failure in this group, which can only be rolled back then */
	bool spoilt;	    /* a BULK store has lost a group, which no journal undoes: it is of no more use */
	uint64_t log_limit; /* a checkpoint is due when the log has so many bytes */
	uint64_t log_bytes; /* bytes in the log after the last commit */
	struct pfs_name_cache *names;
	struct pfs_bulk_rows *rows; /* node.c; NULL until they are needed */
	struct pfs_attr_rows *attr_rows; /* attr.c; the same */
	int (*put_rest)(struct pfs_store *store); /* of what a BULK store puts some at a time; NULL: there is nothing */
	struct pfs_group_changes changes;
	size_t feed_primes; /* as the options have it */
	struct pfs_history_state history;
	uint64_t pages, free_pages; /* after the last commit; atomic */
	bool keeps_history;	    /* atomic */
	uint64_t end_slot; /* the highest meta.end_slot so far; readers check rows by it; atomic */

	pthread_mutex_t mutex;
	struct pfs_meta meta;	   /* with the open group's changes; the writing thread's, but
				      `next` is protected by mutex */
	struct pfs_meta committed; /* protected by mutex */
	pthread_mutex_t group_mutex; /* recursive; held while somebody reads through `group` */
	struct pfs_db *group;	   /* UNLOCKED: the only connection, in one transaction */
	struct pfs_db *idle;	   /* protected by mutex: readers at rest, up to IDLE_READERS */
	unsigned n_idle;	   /* protected by mutex */

	/* A past store (meta/history.h): `group` has no transaction; since when it has one; the last group of the time that it shows,
	 * and the one whose former rows have been taken over. */
	bool is_paused;
	uint64_t reads_since_ns;
	int64_t past_seq, taken_seq;
};

/* Takes a connection for one reading call; in a BULK store it is the writer's. Until the same
 * thread puts it back, what that thread allocates is on no account (account.h). */
PFS_MUST_CHECK int pfs_reader_get(struct pfs_store *store, struct pfs_db **out);
void pfs_reader_put(struct pfs_store *store, struct pfs_db *db);

struct pfs_reader {
	struct pfs_store *store;
	struct pfs_db *db;
};

static inline void pfs_cleanup_reader(struct pfs_reader *reader)
{
	if (reader->db)
		pfs_reader_put(reader->store, reader->db);
}

/* struct pfs_reader r PFS_READER = {.store = store}; error = pfs_reader_get(store, &r.db); */
#define PFS_READER __attribute__((cleanup(pfs_cleanup_reader)))

/* Returns 0 if the open group can take a change. -EROFS; -EINVAL: there is no group; or what made
 * the group fail. */
PFS_MUST_CHECK int pfs_group_ready(const struct pfs_store *store);

/* Puts what a BULK store was given and has not put yet, before it is read, removed or committed. */
static inline int pfs_group_settle(struct pfs_store *store)
{
	return store->put_rest ? store->put_rest(store) : 0;
}

void pfs_attr_rows_free(struct pfs_attr_rows *rows); /* NULL is allowed */

/* Notes, for the feed, that the open group changes something of the node. */
void pfs_change_note(struct pfs_store *store, uint64_t prime);

/* Read what the store remembers of changes, when it is opened; write the open group's part of them
 * before its commit, which may raise meta->feed_start; and forget them at the group's end, however
 * it ends. */
PFS_MUST_CHECK int pfs_change_load(struct pfs_store *store);
PFS_MUST_CHECK int pfs_change_write(struct pfs_store *store, struct pfs_meta *meta);
void pfs_change_end(struct pfs_store *store);

/* ---- history (meta/history.h) ---- */

/* Returns 1 if the store has history now, else 0. */
PFS_MUST_CHECK int pfs_history_is_there(struct pfs_db *db);

/* The statement to bind, or NULL: no history is kept.  In a group. */
sqlite3_stmt *pfs_history_statement(const struct pfs_store *store, enum pfs_history_statement which);
/* Runs it; a failure spoils the group. */
PFS_MUST_CHECK int pfs_history_note(struct pfs_store *store, enum pfs_history_statement which);

/* The beginning of a group, its last rows, and its end, however it ends. */
PFS_MUST_CHECK int pfs_history_begin(struct pfs_store *store);
PFS_MUST_CHECK int pfs_history_write(struct pfs_store *store, uint64_t seq);
void pfs_history_end(struct pfs_store *store, bool committed);

/* Makes statements of this connection, which is in a transaction that it keeps, find nodes and attributes as
 * they were at the time.  -ENODATA: the store keeps no history; -ESTALE: none that goes so far back. */
PFS_MUST_CHECK int pfs_history_dress(struct pfs_store *store, struct pfs_db *db, int64_t at);

/* Runs a statement that is seldom needed, with two numbers, and takes n from its first row: 1; 0: there is none. */
PFS_MUST_CHECK int pfs_history_ask(struct pfs_db *db, int64_t *values, int n, const char *text, int64_t first,
				   int64_t second);
/* The time of a group that is committed now. */
int64_t pfs_history_now(const struct pfs_store *store);
int64_t pfs_history_clock(void); /* what the clock says, whatever the store does */

/* Runs a statement of the writer, whose parameters are bound; a failure spoils the group. */
PFS_MUST_CHECK int pfs_group_run(struct pfs_store *store, enum pfs_store_statement sql);

/* As pfs_group_run, with the number (mostly a node's prime) as the statement's first parameter. */
PFS_MUST_CHECK int pfs_group_run_for(struct pfs_store *store, enum pfs_store_statement sql,
				     uint64_t prime);

/* Open the writing connection; and move everything into the main file, before the connection is
 * closed. */
PFS_MUST_CHECK int pfs_writer_open(struct pfs_store *store, enum pfs_db_mode mode);
PFS_MUST_CHECK int pfs_writer_finish(struct pfs_store *store);

/* Looks up how many pages the file has now. */
void pfs_count_pages(struct pfs_store *store);

/* Returns a bound that no slot of a store of this size can have reached, whatever the file says of
 * itself. */
uint64_t pfs_slots_believed(struct pfs_db *db);

/* Read the row of `meta` (-EMEDIUMTYPE: there is none that is right); and take it over when the
 * store is opened. */
PFS_MUST_CHECK int pfs_meta_read(struct pfs_meta *out, uint64_t *seed, struct pfs_db *db);
PFS_MUST_CHECK int pfs_meta_load(struct pfs_store *store, struct pfs_db *db);

static inline int pfs_prime_kind_of(uint64_t prime)
{
	return prime < PFS_FIRST_OTHER ? PFS_PRIME_DIRECTORY : PFS_PRIME_OTHER;
}

/* Takes a node's record out of a row of NODE_SCAN. -EUCLEAN: the row is damaged, and *why says
 * how. */
PFS_MUST_CHECK int pfs_node_from_row(struct pfs_node_record *out, const char **why,
				     sqlite3_stmt *row);

/* Return true if a row of SOURCE_GET, ROOT_SCAN, DIR_GET or REGISTER_SCAN holds what such a row has
 * to. */
bool pfs_source_row_sound(sqlite3_stmt *row);
bool pfs_root_row_sound(sqlite3_stmt *row);
bool pfs_dir_row_sound(sqlite3_stmt *row);
bool pfs_register_row_sound(sqlite3_stmt *row);

#endif
