/* SPDX-License-Identifier: MIT */
/* tests/vfs/faultrecord.c - what reached the disk, and what a crash may leave of it.
 *
 * Model: a sync makes all earlier writes and truncates of its file durable, and the file's name
 * when the file is new.  Anything later may or may not have happened, in any order, and writes
 * may be torn; bytes outside a write are never harmed (SQLite's "powersafe overwrite"). */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tests/ref/random.h"
#include "tests/vfs/fault_impl.h"
#include "tests/vfs/faultvfs.h"

#define SECTOR 512

enum entry_kind {
	ENTRY_MAKE,
	ENTRY_WRITE,
	ENTRY_TRUNCATE,
	ENTRY_SYNC,
	ENTRY_DELETE,
	ENTRY_FOLDER,
	ENTRY_MARK
};

struct entry {
	enum entry_kind kind;
	int file;
	int64_t offset; /* WRITE; TRUNCATE: the size; MARK: the number */
	size_t len;
	uint8_t *data;
};

struct life {
	char name[NAME_MAX + 1];
	bool deleted;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool recording; /* all protected by lock */
static struct entry *entries;
static size_t n_entries, entry_capacity;
static struct life *lives;
static size_t n_lives, life_capacity;

/* ---- recording ---- */

static void need(int error)
{
	if (error) {
		(void)fputs("faultvfs: no memory for the recording\n", stderr);
		abort(); /* a test's own failure, not the program's */
	}
}

static struct entry *add_entry(enum entry_kind kind, int file, int64_t offset)
{
	need(pfs_grow(&entries, &entry_capacity, n_entries + 1, sizeof(*entries)));
	entries[n_entries] = (struct entry){.kind = kind, .file = file, .offset = offset};
	return &entries[n_entries++];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int find_life(const char *name)
{
	size_t i;

	for (i = n_lives; i-- > 0;) {
		if (strcmp(lives[i].name, name) == 0)
			return lives[i].deleted ? -1 : (int)i;
	}
	return -1;
}

int fault_note_open(const char *path, bool made)
{
	PFS_LOCKED(&lock);
	int file = find_life(base_name(path));

	if (!recording)
		return -1;
	if (file >= 0 && !made)
		return file;
	need(pfs_grow(&lives, &life_capacity, n_lives + 1, sizeof(*lives)));
	lives[n_lives].deleted = false;
	(void)snprintf(lives[n_lives].name, sizeof(lives[0].name), "%s", base_name(path));
	(void)add_entry(ENTRY_MAKE, (int)n_lives, 0);
	return (int)n_lives++;
}

void fault_note_write(int file, const void *data, size_t len, int64_t offset)
{
	PFS_LOCKED(&lock);
	struct entry *entry;

	if (!recording || file < 0)
		return;
	entry = add_entry(ENTRY_WRITE, file, offset);
	entry->data = malloc(len);
	need(!entry->data);
	(void)memcpy(entry->data, data, len);
	entry->len = len;
}

void fault_note_truncate(int file, int64_t size)
{
	PFS_LOCKED(&lock);

	if (recording && file >= 0)
		(void)add_entry(ENTRY_TRUNCATE, file, size);
}

void fault_note_sync(int file)
{
	PFS_LOCKED(&lock);

	if (recording && file >= 0)
		(void)add_entry(ENTRY_SYNC, file, 0);
}

void fault_note_delete(const char *path)
{
	PFS_LOCKED(&lock);
	int file = find_life(base_name(path));

	if (!recording || file < 0)
		return;
	lives[file].deleted = true;
	(void)add_entry(ENTRY_DELETE, file, 0);
}

void fault_mark(uint64_t number)
{
	PFS_LOCKED(&lock);

	if (recording)
		(void)add_entry(ENTRY_MARK, -1, (int64_t)number);
}

void fault_folder_synced(void)
{
	PFS_LOCKED(&lock);

	if (recording)
		(void)add_entry(ENTRY_FOLDER, -1, 0);
}

static void clear(void)
{
	size_t i;

	for (i = 0; i < n_entries; i++)
		free(entries[i].data);
	free(entries);
	free(lives);
	entries = NULL;
	lives = NULL;
	n_entries = entry_capacity = n_lives = life_capacity = 0;
}

void fault_record(void)
{
	PFS_LOCKED(&lock);

	clear();
	recording = true;
}

void fault_stop(void)
{
	PFS_LOCKED(&lock);

	recording = false;
}

size_t fault_length(void)
{
	PFS_LOCKED(&lock);

	return n_entries;
}

uint64_t fault_last_mark(size_t length)
{
	PFS_LOCKED(&lock);
	size_t i;

	for (i = PFS_MIN(length, n_entries); i-- > 0;) {
		if (entries[i].kind == ENTRY_MARK)
			return (uint64_t)entries[i].offset;
	}
	return 0;
}

/* ---- playing back ---- */

struct crash {
	enum fault_crash kind;
	size_t length;
	uint64_t random;
};

static uint64_t next_random(struct crash *crash)
{
	return random_next(&crash->random);
}

/* One after the last entry that syncs the file; 0 when none does. */
static size_t synced_until(int file, size_t length)
{
	size_t i;

	for (i = length; i > 0; i--) {
		if (entries[i - 1].kind == ENTRY_SYNC && entries[i - 1].file == file)
			return i;
	}
	return 0;
}

static int write_all(int fd, const uint8_t *data, size_t len, int64_t offset)
{
	while (len) {
		ssize_t done = pwrite(fd, data, len, offset);

		if (done < 0)
			return -errno;
		data += done;
		len -= (size_t)done;
		offset += done;
	}
	return 0;
}

/* Of each sector that the write touches: the new bytes, the old ones, or noise. */
static int write_torn(int fd, const struct entry *entry, struct crash *crash)
{
	size_t at = 0;
	int error = 0;

	while (at < entry->len && !error) {
		size_t len = SECTOR - (size_t)(((uint64_t)entry->offset + at) % SECTOR);
		uint64_t fate = next_random(crash) % 8;
		uint8_t noise[SECTOR];

		len = PFS_MIN(len, entry->len - at);
		if (fate < 4) {
			error = write_all(fd, entry->data + at, len, entry->offset + (int64_t)at);
		} else if (fate == 4) {
			(void)memset(noise, (int)next_random(crash), sizeof(noise));
			error = write_all(fd, noise, len, entry->offset + (int64_t)at);
		}
		at += len;
	}
	return error;
}

static int apply(int fd, const struct entry *entry, bool synced, struct crash *crash)
{
	bool certain = synced || crash->kind == FAULT_KILLED;

	if (entry->kind == ENTRY_TRUNCATE) {
		if (!certain && next_random(crash) % 2)
			return 0;
		return ftruncate(fd, entry->offset) ? -errno : 0;
	}
	if (entry->kind != ENTRY_WRITE)
		return 0;
	if (!certain && crash->kind == FAULT_TORN)
		return write_torn(fd, entry, crash);
	if (!certain && next_random(crash) % 2)
		return 0;
	return write_all(fd, entry->data, entry->len, entry->offset);
}

static int replay_file(const char *folder, int file, struct crash *crash)
{
	size_t synced = synced_until(file, crash->length), i;
	char path[PATH_MAX];
	int fd PFS_CLOSE = -1;
	int error = 0;

	if (snprintf(path, sizeof(path), "%s/%s", folder, lives[file].name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (i = 0; i < crash->length && !error; i++) {
		if (entries[i].file == file)
			error = apply(fd, &entries[i], i < synced, crash);
	}
	return error;
}

/* The entry makes a later life of the same name durable, in whose place no earlier one can be. */
static bool is_superseded_by(int file, const struct entry *entry)
{
	return entry->kind == ENTRY_SYNC && entry->file > file &&
	       strcmp(lives[entry->file].name, lives[file].name) == 0;
}

/* Whether the folder still, or already, has this life of its name: a making is durable with the
 * file's first sync, a delete with a sync of the folder or of the name's next life.  A later life
 * that is there replaces an earlier one. */
static bool shown(int file, struct crash *crash)
{
	bool exists = false, certain = crash->kind == FAULT_KILLED;
	size_t i;

	for (i = 0; i < crash->length; i++) {
		if (entries[i].kind == ENTRY_FOLDER)
			certain = true;
		if (is_superseded_by(file, &entries[i]))
			return false;
		if (entries[i].file != file)
			continue;
		if (entries[i].kind == ENTRY_SYNC)
			certain = true;
		if (entries[i].kind != ENTRY_MAKE && entries[i].kind != ENTRY_DELETE)
			continue;
		exists = entries[i].kind == ENTRY_MAKE;
		certain = crash->kind == FAULT_KILLED || file == 0; /* the store is made before */
	}
	return certain ? exists : next_random(crash) % 2;
}

int fault_replay(const char *folder, size_t length, enum fault_crash kind, uint64_t seed)
{
	PFS_LOCKED(&lock);
	struct crash crash = {.kind = kind, .length = PFS_MIN(length, n_entries), .random = seed};
	int file, error = 0;

	for (file = 0; file < (int)n_lives && !error; file++) {
		if (shown(file, &crash))
			error = replay_file(folder, file, &crash);
	}
	return error;
}
