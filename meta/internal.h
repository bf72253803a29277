/* SPDX-License-Identifier: MIT */
/* meta/internal.h - struct pfs_store: an open store, its connections and its open group. Only files
 * of meta/ include it.
 *
 * meta/db.c logs each error once. A failure in an open group spoils the group: it sets group_error.
 */
#ifndef PFS_META_INTERNAL_H
#define PFS_META_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "meta/db.h"
#include "meta/lock.h"
#include "meta/store.h"

#define PFS_FIRST_OTHER (UINT64_C(1) << 32) /* directories' primes are below it, all others above */
#define PFS_END_PRIME	(UINT64_C(1) << 63)

#define PFS_NAME_CACHE_SIZE 64

/* The row of the table `meta`, as groups change it. */
struct pfs_meta {
	uint64_t seq;
	uint64_t next[2]; /* by enum pfs_prime_kind: numbers from here on were never handed out */
	uint64_t nodes[2];   /* how many records have primes below PFS_FIRST_OTHER, and above */
	uint64_t end_slot;   /* greater than every record's slot */
	uint64_t feed_start; /* the store remembers the changes of groups after this one */
	/* The tokens (struct pfs_store_state) of the groups `seq` and `feed_start`; stores of
	 * earlier versions have none. */
	bool has_token, has_feed_token;
	uint8_t token[PFS_TOKEN_SIZE], feed_token[PFS_TOKEN_SIZE];
};

/* The nodes that the open group has changed so far (change.c). */
struct pfs_group_changes {
	uint64_t *primes;
	size_t count, capacity;
	bool lost; /* there was no memory for them all: the store remembers no change up to this
		      group */
	uint64_t bytes; /* bytes of changes, of all groups, that the store remembers, about */
};

/* The numbers of some attribute names that were used lately. */
struct pfs_name_cache {
	struct {
		uint8_t name[PFS_ATTR_NAME_MAX];
		size_t len; /* 0: free */
		int64_t id;
	} entry[PFS_NAME_CACHE_SIZE];
};

/* What the writing thread knows of the history. */
struct pfs_history_state {
	bool is_known; /* the other members were read from the store */
	int64_t age;   /* these two are the rule (struct pfs_history_rule) */
	uint64_t size;
	/* Groups: the state is known after since_seq; oldest_seq is the first that has rows, or 0.
	 */
	uint64_t since_seq, oldest_seq;
	int64_t since, oldest, last; /* the times of these two, and of the last group */
	uint64_t bytes; /* of former rows, about */
	uint64_t noted; /* former rows of the open group */
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

	/* The open group. Only the writing thread uses these, up to `history`. */
	struct pfs_db *writer; /* NULL in a read-only store, and after a rollback that failed */
	bool in_group;
	int group_error; /* the first failure in this group, which can then only be rolled back */
	bool spoilt; /* a group of a BULK store failed; without a journal the store is unusable */
	uint64_t log_limit; /* a checkpoint is due when the log has so many bytes */
	uint64_t log_bytes; /* bytes in the log after the last commit */
	bool has_moved;	    /* the file was not at `path` any more after a commit */
	struct pfs_name_cache *names;
	struct pfs_bulk_rows *rows; /* rows of node.c that a BULK store collects; NULL: none yet */
	struct pfs_attr_rows *attr_rows; /* the same for attr.c */
	int (*put_rest)(
		struct pfs_store *store); /* writes the collected rows; NULL: there are none */
	struct pfs_group_changes changes;
	size_t feed_primes; /* of struct pfs_store_options */
	struct pfs_history_state history;
	uint64_t pages, free_pages; /* after the last commit; atomic */
	bool keeps_history;	    /* atomic */
	bool told_path_index;	    /* that a row of path_index is none; atomic */
	uint64_t end_slot; /* the highest meta.end_slot so far; readers check rows by it; atomic */

	pthread_mutex_t mutex;
	/* With the open group's changes. Only the writing thread uses it, except for `next`, which
	 * mutex protects. */
	struct pfs_meta meta;
	struct pfs_meta committed;   /* protected by mutex */
	pthread_mutex_t group_mutex; /* recursive; held by a thread that reads through `group` */
	struct pfs_db *group;	   /* UNLOCKED: the only connection, in one transaction */
	struct pfs_db *idle; /* protected by mutex: up to IDLE_READERS connections for reading */
	unsigned n_idle;	   /* protected by mutex */

	/* For a store that shows a past time (meta/history.h). */
	bool is_paused;		 /* `group` is in no transaction */
	uint64_t reads_since_ns; /* when the transaction of `group` began */
	int64_t past_seq;	 /* the last group of that time */
	int64_t taken_seq;	 /* former rows have been taken over up to this group */
};

/* pfs_reader_get takes a connection for one reading call; in a BULK store it is the writer's. Until
 * the same thread gives it back with pfs_reader_put, the thread is in no account (account.h). */
PFS_MUST_CHECK int pfs_reader_get(struct pfs_store *store, struct pfs_db **out);
void pfs_reader_put(struct pfs_store *store, struct pfs_db *db);

struct pfs_reader {
	struct pfs_store *store;
	struct pfs_db *db;
	sqlite3_stmt *row; /* NULL, or one of its statements, which is reset */
};

static inline void pfs_cleanup_reader(struct pfs_reader *reader)
{
	(void)sqlite3_reset(reader->row); /* the step has reported the error that this returns */
	if (reader->db)
		pfs_reader_put(reader->store, reader->db);
}

/* struct pfs_reader r PFS_READER = {.store = store}; error = pfs_reader_get(store, &r.db); */
#define PFS_READER __attribute__((cleanup(pfs_cleanup_reader)))

/* Gets the reader's connection and one of its statements. */
PFS_MUST_CHECK static inline int pfs_reader_begin(struct pfs_reader *reader,
						  enum pfs_store_statement sql)
{
	PFS_TRY(pfs_reader_get(reader->store, &reader->db));
	reader->row = reader->db->sql[sql];
	return 0;
}

/* Returns 1: there is a row; 0: there is none; or a negative errno. */
PFS_MUST_CHECK static inline int pfs_reader_step(struct pfs_reader *reader)
{
	return pfs_db_step(reader->db, reader->row);
}

/* Returns 0 if the open group can take a change. -EROFS; -EINVAL: there is no group; or what made
 * the group fail. */
PFS_MUST_CHECK int pfs_group_ready(const struct pfs_store *store);

/* Writes the rows that a BULK store has collected. Called before they are read, removed or
 * committed. */
static inline int pfs_group_settle(struct pfs_store *store)
{
	return store->put_rest ? store->put_rest(store) : 0;
}

void pfs_attr_rows_free(struct pfs_attr_rows *rows); /* NULL is allowed */

/* Notes that the open group changes something of the node, for pfs_store_scan_changes. */
void pfs_change_note(struct pfs_store *store, uint64_t prime);

/* pfs_change_load reads at the opening what the store remembers of changes. pfs_change_write writes
 * the changes of the open group before its commit; it may raise meta->feed_start. pfs_change_end
 * forgets the group's changes, after a commit and after a rollback. */
PFS_MUST_CHECK int pfs_change_load(struct pfs_store *store);
PFS_MUST_CHECK int pfs_change_write(struct pfs_store *store, struct pfs_meta *meta);
void pfs_change_end(struct pfs_store *store);

/* ---- history (meta/history.h) ---- */

/* Returns 1 if the store has history now, else 0. */
PFS_MUST_CHECK int pfs_history_is_there(struct pfs_db *db);

/* Returns the statement to bind, or NULL if no history is kept. A group is open. */
sqlite3_stmt *pfs_history_statement(const struct pfs_store *store,
				    enum pfs_history_statement which);
/* Runs that statement, if history is kept; a failure spoils the group. */
PFS_MUST_CHECK int pfs_history_note(struct pfs_store *store, enum pfs_history_statement which);

/* Called at the beginning of a group, before its commit, and at its end, also after a rollback. */
PFS_MUST_CHECK int pfs_history_begin(struct pfs_store *store);
PFS_MUST_CHECK int pfs_history_write(struct pfs_store *store, uint64_t seq);
void pfs_history_end(struct pfs_store *store, bool committed);

/* Makes statements of this connection, which is in a transaction that it keeps, find nodes and
 * attributes as they were at the time `at`. -ENODATA: the store keeps no history; -ESTALE: its
 * history begins later. */
PFS_MUST_CHECK int pfs_history_dress(struct pfs_store *store, struct pfs_db *db, int64_t at);

/* Runs the text of a statement, with two numbers as its parameters, and gets n numbers from its
 * first row. Returns 1, or 0 if there is no row. */
PFS_MUST_CHECK int pfs_history_ask(struct pfs_db *db, int64_t *values, int n, const char *text,
				   int64_t first, int64_t second);
/* Returns the time that a group gets if it is committed now. */
int64_t pfs_history_now(const struct pfs_store *store);
int64_t pfs_history_clock(void); /* the clock's time, whatever times the groups have */

/* Runs a statement of the writer, whose parameters are bound; a failure spoils the group. */
PFS_MUST_CHECK int pfs_group_run(struct pfs_store *store, enum pfs_store_statement sql);

/* As pfs_group_run, with the number (mostly a node's prime) as the statement's first parameter. */
PFS_MUST_CHECK int pfs_group_run_for(struct pfs_store *store, enum pfs_store_statement sql,
				     uint64_t prime);

/* pfs_writer_open opens the writing connection. pfs_writer_finish moves the log into the main file,
 * before the connection is closed. */
PFS_MUST_CHECK int pfs_writer_open(struct pfs_store *store, enum pfs_db_mode mode);
PFS_MUST_CHECK int pfs_writer_finish(struct pfs_store *store);

/* Looks up how many pages the file has now. */
void pfs_count_pages(struct pfs_store *store);

/* Returns a bound that is greater than every slot that a store of this size can have, whatever the
 * file says of itself. */
uint64_t pfs_slots_believed(struct pfs_db *db);

/* pfs_meta_read reads the row of the table `meta`. pfs_meta_load does so when the store is opened,
 * and sets the store's members. -EMEDIUMTYPE: there is no such row, or it is damaged. */
PFS_MUST_CHECK int pfs_meta_read(struct pfs_meta *out, uint64_t *seed, struct pfs_db *db);
PFS_MUST_CHECK int pfs_meta_load(struct pfs_store *store, struct pfs_db *db);

static inline int pfs_prime_kind_of(uint64_t prime)
{
	return prime < PFS_FIRST_OTHER ? PFS_PRIME_DIRECTORY : PFS_PRIME_OTHER;
}

/* Gets a node's record from a row of NODE_SCAN. -EUCLEAN: the row is damaged, and *why says how. */
PFS_MUST_CHECK int pfs_node_from_row(struct pfs_node_record *out, const char **why,
				     sqlite3_stmt *row);

/* Return true if a row of SOURCE_GET, ROOT_SCAN, DIR_GET or REGISTER_SCAN is not damaged. */
bool pfs_source_row_sound(sqlite3_stmt *row);
bool pfs_root_row_sound(sqlite3_stmt *row);
bool pfs_dir_row_sound(sqlite3_stmt *row);
bool pfs_register_row_sound(sqlite3_stmt *row);

#endif
