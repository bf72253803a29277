/* SPDX-License-Identifier: MIT */
/* meta/internal.h - the store's insides, for meta/ alone. */
#ifndef PFS_META_INTERNAL_H
#define PFS_META_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "meta/db.h"
#include "meta/lock.h"
#include "meta/store.h"

#define PFS_FIRST_OTHER (UINT64_C(1) << 32) /* directories' primes lie below, all others above */
#define PFS_END_PRIME	(UINT64_C(1) << 63)

#define PFS_NAME_CACHE_SIZE 64

/* The row of the meta table that groups change. */
struct pfs_meta {
	uint64_t seq;
	uint64_t next[2];    /* by enum pfs_prime_kind: never handed out from here on */
	uint64_t nodes[2];   /* records below and above PFS_FIRST_OTHER */
	uint64_t end_slot;   /* no record's slot reaches it */
	uint64_t feed_start; /* changes of the groups after this one are remembered */
	/* Random: of group `seq`, and of group `feed_start`; stores of earlier versions have none. */
	bool has_token, has_feed_token;
	uint8_t token[PFS_TOKEN_SIZE], feed_token[PFS_TOKEN_SIZE];
};

/* The nodes that the open group has changed (change.c). */
struct pfs_changes {
	uint64_t *primes;
	size_t count, capacity;
	bool lost;	/* too many, or no memory for them: the feed starts after this group */
	uint64_t bytes; /* about what the store remembers in all */
};

/* Numbers of attribute names met lately. */
struct pfs_name_cache {
	struct {
		uint8_t name[PFS_ATTR_NAME_MAX];
		size_t len; /* 0: free */
		int64_t id;
	} entry[PFS_NAME_CACHE_SIZE];
};

struct pfs_store {
	char *path; /* absolute, symlinks resolved */
	char *vfs;  /* NULL: SQLite's default */
	unsigned flags;
	uint64_t seed;
	int version; /* of the file's format */
	struct pfs_lock lock;
	enum pfs_db_mode read_mode;

	/* The open group; the writing thread's alone. */
	struct pfs_db *writer; /* NULL in a read-only store, and after a rollback that failed */
	bool in_group;
	int group_error;    /* the first failure in this group: it can only be rolled back */
	bool spoilt;	    /* a BULK store that lost a group, which has no journal to undo it */
	uint64_t log_limit; /* bytes from which on a checkpoint is due */
	uint64_t log_bytes; /* in the log after the last commit */
	struct pfs_name_cache *names;
	struct pfs_changes changes;
	uint64_t pages, free_pages; /* after the last commit; atomic */
	uint64_t end_slot; /* the highest meta.end_slot so far, which readers check rows by; atomic */

	pthread_mutex_t mutex;
	struct pfs_meta meta;	   /* with the open group's changes; the writing thread's, but
				      `next` is protected by mutex */
	struct pfs_meta committed; /* protected by mutex */
	pthread_mutex_t group_mutex; /* recursive; held by who reads through `group` */
	struct pfs_db *group;	   /* UNLOCKED: the only connection, in one transaction */
	struct pfs_db *idle;	   /* protected by mutex: readers at rest, up to IDLE_READERS */
	unsigned n_idle;	   /* protected by mutex */
};

/* A connection for one reading call.  In a BULK store it is the writer's.  Until it is put back, by the
 * same thread, what that allocates is on no account (account.h). */
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

/* 0 when the open group can take a change; -EROFS, -EINVAL without a group, or what made it
 * fail. */
PFS_MUST_CHECK int pfs_group_ready(const struct pfs_store *store);

/* Notes for the feed that the open group changes something of the node's. */
void pfs_change_note(struct pfs_store *store, uint64_t prime);

/* What the store remembers at open; the open group's part, before its commit, which may raise
 * meta->feed_start; and the end of the group, however it ends. */
PFS_MUST_CHECK int pfs_change_load(struct pfs_store *store);
PFS_MUST_CHECK int pfs_change_write(struct pfs_store *store, struct pfs_meta *meta);
void pfs_change_end(struct pfs_store *store);

/* Runs a bound statement of the writer; a failure spoils the group. */
PFS_MUST_CHECK int pfs_group_run(struct pfs_store *store, enum pfs_statement sql);

/* The same with the prime, or another number, bound to the statement's first parameter. */
PFS_MUST_CHECK int pfs_group_run_for(struct pfs_store *store, enum pfs_statement sql,
				     uint64_t prime);

/* The writing connection: opened; and before it is closed, everything moved to the main file. */
PFS_MUST_CHECK int pfs_writer_open(struct pfs_store *store, enum pfs_db_mode mode);
PFS_MUST_CHECK int pfs_writer_finish(struct pfs_store *store);

/* Looks how many pages there are now. */
void pfs_count_pages(struct pfs_store *store);

/* No slot of a store of this size can have reached it, whatever the file says of itself. */
uint64_t pfs_slots_believed(struct pfs_db *db);

/* The meta row: read, -EMEDIUMTYPE when it is none; and taken over when the store is opened. */
PFS_MUST_CHECK int pfs_meta_read(struct pfs_meta *out, uint64_t *seed, struct pfs_db *db);
PFS_MUST_CHECK int pfs_meta_load(struct pfs_store *store, struct pfs_db *db);

static inline int pfs_prime_kind_of(uint64_t prime)
{
	return prime < PFS_FIRST_OTHER ? PFS_PRIME_DIRECTORY : PFS_PRIME_OTHER;
}

/* Takes a node record out of a row of NODE_SCAN; *why says what is wrong with it on -EUCLEAN. */
PFS_MUST_CHECK int pfs_node_from_row(struct pfs_node_record *out, const char **why,
				     sqlite3_stmt *row);

/* A row as SOURCE_GET, ROOT_SCAN, DIR_GET or REGISTER_SCAN has it holds what it has to. */
bool pfs_source_row_sound(sqlite3_stmt *row);
bool pfs_root_row_sound(sqlite3_stmt *row);
bool pfs_dir_row_sound(sqlite3_stmt *row);
bool pfs_register_row_sound(sqlite3_stmt *row);

#endif
