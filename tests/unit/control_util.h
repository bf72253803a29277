/* SPDX-License-Identifier: MIT */
/* tests/unit/control_util.h - a daemon's socket whose verbs misbehave, and clients of it. */
#ifndef PFS_TESTS_CONTROL_UTIL_H
#define PFS_TESTS_CONTROL_UTIL_H

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/mount/control/control.h"
#include "fs/mount/control/control_wire.h"

/* ---- the daemon ---- */

static struct {
	char folder[40], store[64], socket[100];
	struct pfs_control *control;
	struct pfs_turns *turns; /* NULL: verbs take none */
	_Atomic unsigned begun, ended;
	_Atomic int error; /* of the last write that failed */
	_Atomic bool released;
} d;

static inline void pause_ms(unsigned ms)
{
	(void)usleep(ms * 1000);
}

/* Up to 20 seconds. */
static inline bool becomes(const _Atomic unsigned *counter, unsigned wanted)
{
	for (unsigned i = 0; i < 20000 && atomic_load(counter) != wanted; i++)
		pause_ms(1);
	return atomic_load(counter) == wanted;
}

/* Each word, between brackets. */
static inline int echo(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words,
		       size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pfs_reply_print(reply, "[%s]", words[i]) != 0)
			return 3;
	return (int)n;
}

static inline int refuse(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words,
			 size_t n PFS_UNUSED)
{
	assert_int_equal(pfs_reply_write(reply, "half", 4), 0);
	return pfs_reply_fail(reply, 3, "%s: no", words[1]);
}

/* Writes `words[1]` numbered blocks of 64 KiB; counts when it begins and ends. */
static inline int flood(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words,
			size_t n PFS_UNUSED)
{
	uint64_t blocks = strtoull(words[1], NULL, 10);
	uint64_t *block = malloc(65536);
	int error = 0;

	atomic_fetch_add(&d.begun, 1);
	for (uint64_t i = 0; i < blocks && !error && block; i++) {
		for (size_t k = 0; k < 65536 / sizeof(*block); k++)
			block[k] = i * 65536 + k;
		error = pfs_reply_write(reply, block, 65536);
	}
	free(block);
	atomic_store(&d.error, error);
	atomic_fetch_add(&d.ended, 1);
	return error ? pfs_reply_fail(reply, 3, "flooded: %s", strerror(-error)) : 0;
}

/* Works without a word until its client is gone, or it is let go. */
static inline int brood(void *arg PFS_UNUSED, struct pfs_reply *reply,
			const char *const *words PFS_UNUSED, size_t n PFS_UNUSED)
{
	bool gone = false;

	atomic_fetch_add(&d.begun, 1);
	while (!atomic_load(&d.released) && !gone) {
		pause_ms(1);
		gone = pfs_reply_gone(reply);
	}
	atomic_store(&d.error, gone ? -EPIPE : 0);
	atomic_fetch_add(&d.ended, 1);
	return 0;
}

static const struct pfs_verb verbs[] = {
	{"echo", echo, false},	 {"refuse", refuse, false}, {"flood", flood, false},
	{"brood", brood, false}, {"run", brood, true},	    {"run a flood", flood, true},
	{0},
};

static inline int try_open(struct pfs_control **out, bool alone, uint64_t unread_limit)
{
	const struct pfs_control_options options = {
		.store = d.store,
		.verbs = verbs,
		.turns = d.turns,
		.alone = alone,
		.unread_limit = unread_limit,
	};

	return pfs_control_open(out, &options);
}

static inline void make_store(const char *name)
{
	int fd;

	(void)snprintf(d.store, sizeof(d.store), "%s/%s", d.folder, name);
	(void)snprintf(d.socket, sizeof(d.socket), "%s" PFS_CONTROL_SUFFIX, d.store);
	fd = open(d.store, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

static inline void open_with(uint64_t unread_limit)
{
	d.begun = d.ended = 0;
	d.error = 0;
	d.released = false;
	assert_int_equal(try_open(&d.control, true, unread_limit), 0);
}

static inline int setup(void **state)
{
	(void)state;
	(void)snprintf(d.folder, sizeof(d.folder), "%s", "/tmp/pfs-control-XXXXXX");
	assert_non_null(mkdtemp(d.folder));
	make_store("s.pfs");
	open_with(0);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	pfs_control_close(d.control);
	d.control = NULL;
	assert_int_equal(access(d.socket, F_OK), -1); /* it has gone with the daemon */
	assert_int_equal(unlink(d.store), 0);
	assert_int_equal(rmdir(d.folder), 0); /* and nothing else is left */
	return 0;
}

/* ---- clients ---- */

struct answer {
	struct pfs_reply reply;
	char *bytes;
	size_t size, capacity;
	size_t stop_at; /* writing fails then; 0: never */
};

static inline int take(struct pfs_reply *reply, const void *bytes, size_t size)
{
	struct answer *answer = (struct answer *)reply;

	if (answer->stop_at && answer->size >= answer->stop_at)
		return -EIO;
	assert_int_equal(pfs_grow(&answer->bytes, &answer->capacity, answer->size + size + 1, 1),
			 0);
	if (!answer->bytes)
		return -ENOMEM;
	memcpy(answer->bytes + answer->size, bytes, size);
	answer->size += size;
	answer->bytes[answer->size] = '\0';
	return 0;
}

static inline bool never_gone(struct pfs_reply *reply PFS_UNUSED)
{
	return false;
}

#define ANSWER                                                                                     \
	{                                                                                          \
		.reply = {.write = take, .gone = never_gone }                                      \
	}

static inline int ask(struct answer *answer, int *status, const char *first, const char *second)
{
	const char *const words[] = {first, second};

	return pfs_control_ask(status, &answer->reply, d.store, words, second ? 2 : 1);
}

/* A connection that says what it likes. */
static inline int raw_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", d.socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline int raw_ask(const char *words, size_t size, uint32_t n_words)
{
	const struct pfs_wire_request request = {PFS_WIRE_MAGIC, (uint32_t)size, n_words};
	int fd = raw_connect();

	assert_int_equal(send(fd, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
	assert_int_equal(send(fd, words, size, MSG_NOSIGNAL), size);
	return fd;
}

#endif
