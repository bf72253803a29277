/* SPDX-License-Identifier: MIT */
/* The control socket: answers of every size, clients that are slow, gone, mad or not allowed, and
 * what the file of the socket does. */
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
	_Atomic unsigned begun, ended;
	_Atomic int error; /* of the last write that failed */
	_Atomic bool released;
} d;

static void pause_ms(unsigned ms)
{
	(void)usleep(ms * 1000);
}

/* Up to 20 seconds. */
static bool becomes(const _Atomic unsigned *counter, unsigned wanted)
{
	for (unsigned i = 0; i < 20000 && atomic_load(counter) != wanted; i++)
		pause_ms(1);
	return atomic_load(counter) == wanted;
}

/* Each word, between brackets. */
static int echo(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pfs_reply_print(reply, "[%s]", words[i]) != 0)
			return 3;
	return (int)n;
}

static int refuse(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words,
		  size_t n PFS_UNUSED)
{
	assert_int_equal(pfs_reply_write(reply, "half", 4), 0);
	return pfs_reply_fail(reply, 3, "%s: no", words[1]);
}

/* Writes `words[1]` numbered blocks of 64 KiB; counts when it begins and ends. */
static int flood(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words,
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
static int brood(void *arg PFS_UNUSED, struct pfs_reply *reply, const char *const *words PFS_UNUSED,
		 size_t n PFS_UNUSED)
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
	{"echo", echo}, {"refuse", refuse}, {"flood", flood}, {"brood", brood}, {0},
};

static int try_open(struct pfs_control **out, bool alone, uint64_t unread_limit)
{
	const struct pfs_control_options options = {
		.store = d.store,
		.verbs = verbs,
		.alone = alone,
		.unread_limit = unread_limit,
	};

	return pfs_control_open(out, &options);
}

static void make_store(const char *name)
{
	int fd;

	(void)snprintf(d.store, sizeof(d.store), "%s/%s", d.folder, name);
	(void)snprintf(d.socket, sizeof(d.socket), "%s" PFS_CONTROL_SUFFIX, d.store);
	fd = open(d.store, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

static void open_with(uint64_t unread_limit)
{
	d.begun = d.ended = 0;
	d.error = 0;
	d.released = false;
	assert_int_equal(try_open(&d.control, true, unread_limit), 0);
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(d.folder, sizeof(d.folder), "%s", "/tmp/pfs-control-XXXXXX");
	assert_non_null(mkdtemp(d.folder));
	make_store("s.pfs");
	open_with(0);
	return 0;
}

static int teardown(void **state)
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

static int take(struct pfs_reply *reply, const void *bytes, size_t size)
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

static bool never_gone(struct pfs_reply *reply PFS_UNUSED)
{
	return false;
}

#define ANSWER                                                                                     \
	{                                                                                          \
		.reply = {.write = take, .gone = never_gone }                                      \
	}

static int ask(struct answer *answer, int *status, const char *first, const char *second)
{
	const char *const words[] = {first, second};

	return pfs_control_ask(status, &answer->reply, d.store, words, second ? 2 : 1);
}

/* A connection that says what it likes. */
static int raw_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", d.socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int raw_ask(const char *words, size_t size, uint32_t n_words)
{
	const struct pfs_wire_request request = {PFS_WIRE_MAGIC, (uint32_t)size, n_words};
	int fd = raw_connect();

	assert_int_equal(send(fd, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
	assert_int_equal(send(fd, words, size, MSG_NOSIGNAL), size);
	return fd;
}

/* ---- tests ---- */

static void test_answers(void **state)
{
	const char *const words[] = {"echo", "", "two words", "line\nline", "\xff\xfe", ""};
	struct answer answer = ANSWER, refused = ANSWER, unknown = ANSWER;
	int status = -1;

	(void)state;
	assert_int_equal(pfs_control_ask(&status, &answer.reply, d.store, words, PFS_COUNT(words)),
			 0);
	assert_int_equal(status, PFS_COUNT(words));
	assert_string_equal(answer.bytes, "[echo][][two words][line\nline][\xff\xfe][]");
	assert_string_equal(answer.reply.message, "");
	assert_int_equal(ask(&refused, &status, "refuse", "me"), 0);
	assert_int_equal(status, 3);
	assert_string_equal(refused.bytes, "half");
	assert_string_equal(refused.reply.message, "me: no");
	assert_int_equal(ask(&unknown, &status, "sing", NULL), 0);
	assert_int_equal(status, 3);
	assert_non_null(strstr(unknown.reply.message, "does not know 'sing'"));
	free(answer.bytes);
	free(refused.bytes);
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = {1, 4095, 65536, 1 << 20, PFS_CONTROL_REQUEST_MAX - 6};
	char *word = malloc(PFS_CONTROL_REQUEST_MAX + 1);
	struct answer longer = ANSWER;
	int status;

	(void)state;
	assert_non_null(word);
	memset(word, 'w', PFS_CONTROL_REQUEST_MAX);
	word[PFS_CONTROL_REQUEST_MAX] = '\0';
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		struct answer answer = ANSWER;

		word[sizes[i]] = '\0';
		assert_int_equal(ask(&answer, &status, "echo", word), 0);
		assert_int_equal(answer.size, 8 + sizes[i]);
		assert_memory_equal(answer.bytes + 7, word, sizes[i]);
		word[sizes[i]] = 'w';
		free(answer.bytes);
	}
	word[PFS_CONTROL_REQUEST_MAX - 5] = '\0';
	assert_int_equal(ask(&longer, &status, "echo", word), -E2BIG);
	free(word);
}

static void check_flood(const struct answer *answer, uint64_t blocks)
{
	const uint64_t *numbers = (const uint64_t *)answer->bytes;

	assert_int_equal(answer->size, blocks * 65536);
	for (uint64_t i = 0; i < blocks; i++)
		for (size_t k = 0; k < 65536 / sizeof(*numbers); k += 511)
			assert_int_equal(numbers[i * 8192 + k], i * 65536 + k);
}

/* The verb is through before its client has read a byte. */
static void test_slow_client(void **state)
{
	static const char words[] = "flood\0"
				    "1000";
	struct answer answer = ANSWER;
	int fd = raw_ask(words, sizeof(words), 2);
	struct pfs_wire_frame frame;
	char byte;

	(void)state;
	assert_true(becomes(&d.ended, 1));
	assert_int_equal(d.error, 0);
	for (;;) {
		assert_int_equal(recv(fd, &frame, sizeof(frame), MSG_WAITALL), sizeof(frame));
		if (frame.kind == PFS_WIRE_END)
			break;
		while (frame.size > 0) {
			char piece[50000];
			ssize_t n = recv(fd, piece, PFS_MIN(frame.size, sizeof(piece)), 0);

			assert_true(n > 0);
			assert_int_equal(take(&answer.reply, piece, (size_t)n), 0);
			frame.size -= (uint32_t)n;
		}
	}
	check_flood(&answer, 1000);
	assert_int_equal(frame.size, sizeof(int32_t));
	assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), 1);
	(void)close(fd);
	free(answer.bytes);
}

static void test_large_answer(void **state)
{
	struct answer answer = ANSWER;
	int status = -1;

	(void)state;
	assert_int_equal(ask(&answer, &status, "flood", "3000"), 0);
	assert_int_equal(status, 0);
	check_flood(&answer, 3000);
	free(answer.bytes);
}

/* What a client leaves unread is bounded; the others' room comes back when he is gone. */
static void test_unread_limit(void **state)
{
	static const char words[] = "flood\0"
				    "1000";
	struct answer answer = ANSWER;
	int fd, status = -1;

	(void)state;
	pfs_control_close(d.control);
	open_with(8 << 20);
	fd = raw_ask(words, sizeof(words), 2);
	assert_true(becomes(&d.ended, 1));
	assert_int_equal(d.error, -ENOBUFS);
	(void)close(fd);
	while (ask(&answer, &status, "flood", "4000") == 0 && status == 3) { /* it may lag, too */
		free(answer.bytes);
		answer = (struct answer)ANSWER;
	}
	free(answer.bytes);
}

/* A client that was killed ends the work, be it writing or not. */
static void test_gone_client(void **state)
{
	static const char endless[] = "flood\0"
				      "100000000",
			  silent[] = "brood";
	struct answer answer = ANSWER;
	int status, fd = raw_ask(endless, sizeof(endless), 2);

	(void)state;
	assert_true(becomes(&d.begun, 1));
	(void)close(fd);
	assert_true(becomes(&d.ended, 1));
	assert_int_equal(d.error, -EPIPE);
	fd = raw_ask(silent, sizeof(silent), 1);
	assert_true(becomes(&d.begun, 2));
	(void)close(fd);
	assert_true(becomes(&d.ended, 2));
	assert_int_equal(d.error, -EPIPE);
	answer.stop_at = 1; /* and one whose own output fails */
	assert_int_equal(ask(&answer, &status, "flood", "100000000"), -EIO);
	assert_true(becomes(&d.ended, 3));
	free(answer.bytes);
}

static void *ask_echo(void *arg)
{
	for (unsigned i = 0; i < 200; i++) {
		struct answer answer = ANSWER;
		char word[32], wanted[64];
		int status = -1;

		(void)snprintf(word, sizeof(word), "%p-%u", arg, i);
		(void)snprintf(wanted, sizeof(wanted), "[echo][%s]", word);
		assert_int_equal(ask(&answer, &status, "echo", word), 0);
		assert_string_equal(answer.bytes, wanted);
		free(answer.bytes);
	}
	return NULL;
}

/* One that broods holds up nobody; more than there is room for are told so. */
static void test_many_clients(void **state)
{
	static const char silent[] = "brood";
	pthread_t threads[8];
	int brooding[PFS_CONTROL_CLIENTS];
	struct answer refused = ANSWER;
	int status = -1;

	(void)state;
	brooding[0] = raw_ask(silent, sizeof(silent), 1);
	for (size_t i = 0; i < PFS_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_echo, &brooding[i]), 0);
	for (size_t i = 0; i < PFS_COUNT(threads); i++)
		(void)pthread_join(threads[i], NULL);
	for (size_t i = 1; i < PFS_CONTROL_CLIENTS; i++)
		brooding[i] = raw_ask(silent, sizeof(silent), 1);
	assert_true(becomes(&d.begun, PFS_CONTROL_CLIENTS));
	assert_int_equal(ask(&refused, &status, "echo", NULL), 0);
	assert_int_equal(status, 3);
	assert_non_null(strstr(refused.reply.message, "too many"));
	atomic_store(&d.released, true);
	assert_true(becomes(&d.ended, PFS_CONTROL_CLIENTS));
	for (size_t i = 0; i < PFS_CONTROL_CLIENTS; i++)
		(void)close(brooding[i]);
}

/* Whatever is sent, the daemon goes on. */
static void test_mad_clients(void **state)
{
	static const struct {
		struct pfs_wire_request request;
		const char *rest;
		size_t size;
	} mad[] = {
		{{0x0a544547, 4, 1}, "/\r\n", 4},
		{{PFS_WIRE_MAGIC, UINT32_MAX, 1}, "echo", 5},
		{{PFS_WIRE_MAGIC, 5, UINT32_MAX}, "echo", 5},
		{{PFS_WIRE_MAGIC, 5, 0}, "echo", 5},
		{{PFS_WIRE_MAGIC, 5, 2}, "echo", 5},
		{{PFS_WIRE_MAGIC, 4, 1}, "echo", 4}, /* no NUL */
		{{PFS_WIRE_MAGIC, 10, 1}, "echo\0echo", 10},
		{{PFS_WIRE_MAGIC, 0, 0}, "", 0},
		{{PFS_WIRE_MAGIC, 100, 1}, "echo", 5}, /* and then hangs up */
	};
	struct answer answer = ANSWER;
	int status = -1;

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(mad); i++) {
		struct pfs_wire_frame frame = {0};
		int32_t number = 0;
		int fd = raw_connect();

		(void)send(fd, &mad[i].request, sizeof(mad[i].request), MSG_NOSIGNAL);
		(void)send(fd, mad[i].rest, mad[i].size, MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
		assert_int_equal(recv(fd, &frame, sizeof(frame), MSG_WAITALL), sizeof(frame));
		assert_int_equal(frame.kind, PFS_WIRE_END);
		assert_int_equal(recv(fd, &number, sizeof(number), MSG_WAITALL), sizeof(number));
		assert_int_equal(number, 3);
		(void)close(fd);
	}
	(void)close(raw_connect());
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	free(answer.bytes);
}

/* In a child of its own, as `user`. */
static int ask_as(uid_t user)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct answer answer = ANSWER;
		int verb_status = -1, error;

		if (setuid(user) != 0)
			_exit(100);
		error = ask(&answer, &verb_status, "echo", NULL);
		_exit(error ? -error : 200 + verb_status);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void test_who_may(void **state)
{
	struct stat attr;
	int lock;

	(void)state;
	assert_int_equal(stat(d.socket, &attr), 0);
	assert_true(S_ISSOCK(attr.st_mode));
	assert_int_equal(attr.st_mode & 07777, 0600);
	if (geteuid() != 0) {
		print_message("not root: other users' part skipped\n");
		return;
	}
	assert_int_equal(chmod(d.folder, 0755), 0);
	assert_int_equal(chmod(d.store, 0644), 0);
	assert_int_equal(ask_as(0), 201);
	assert_int_equal(ask_as(65534), ENOENT); /* nobody has the store: no daemon's socket */
	lock = open(d.store, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(ask_as(65534), EACCES);
	assert_int_equal(chmod(d.socket, 0666), 0); /* then the daemon itself refuses */
	assert_int_equal(ask_as(65534), 203);
	/* A user's socket beside somebody else's store is not believed. */
	pfs_control_close(d.control);
	assert_int_equal(chmod(d.folder, 0777), 0);
	assert_int_equal(seteuid(65534), 0);
	open_with(0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(ask_as(0), EACCES);
	(void)close(lock);
	assert_int_equal(ask_as(0), ENOENT);
	assert_int_equal(chown(d.store, 65534, 65534), 0);
	assert_int_equal(ask_as(0), 201);
}

static void test_the_file(void **state)
{
	struct pfs_control *other;
	struct answer answer = ANSWER;
	int status, fd;

	(void)state;
	/* Another reader listens: leave him his socket. */
	assert_int_equal(try_open(&other, false, 0), -EADDRINUSE);
	assert_null(other);
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	free(answer.bytes);
	/* Whose place was taken leaves the other's alone. */
	assert_int_equal(try_open(&other, true, 0), 0);
	pfs_control_close(d.control);
	d.control = other;
	answer = (struct answer)ANSWER;
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	free(answer.bytes);
	pfs_control_close(d.control);
	assert_int_equal(ask(&answer, &status, "echo", NULL), -ENOENT);
	/* What a dead daemon left: nobody listens, and it is replaced. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	for (int alone = 0; alone < 2; alone++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", d.socket);
		(void)close(fd);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(ask(&answer, &status, "echo", NULL), -ENOENT);
		assert_int_equal(try_open(&d.control, alone, 0), 0);
		answer = (struct answer)ANSWER;
		assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
		free(answer.bytes);
		if (!alone)
			pfs_control_close(d.control);
	}
	(void)close(fd);
}

/* Addresses of sockets have 107 bytes, paths of stores 4,095. */
static void test_long_path(void **state)
{
	char name[NAME_MAX + 1], wide[2 * NAME_MAX];
	const char *const words[] = {"echo"};
	struct pfs_control *control;
	struct pfs_control_options options = {.store = wide, .verbs = verbs, .alone = true};
	int fd;

	(void)state;
	for (size_t len = 245; len <= 255; len += 5) {
		struct answer answer = ANSWER;
		int status = -1;

		memset(name, 'n', len);
		name[len] = '\0';
		(void)snprintf(wide, sizeof(wide), "%s/%s", d.folder, name);
		fd = open(wide, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		(void)close(fd);
		if (len <= 250) {
			assert_int_equal(pfs_control_open(&control, &options), 0);
			assert_int_equal(pfs_control_ask(&status, &answer.reply, wide, words, 1),
					 0);
			assert_string_equal(answer.bytes, "[echo]");
			pfs_control_close(control);
			free(answer.bytes);
		} else {
			options.alone = false;
			assert_int_equal(pfs_control_open(&control, &options), -ENAMETOOLONG);
			options.alone = true;
			assert_int_equal(pfs_control_open(&control, &options), 0);
			assert_true(*pfs_control_name(control)); /* which a mountpoint would tell */
			assert_int_equal(pfs_control_ask(&status, &answer.reply, wide, words, 1),
					 -ENOENT);
			pfs_control_close(control);
		}
		assert_int_equal(unlink(wide), 0);
	}
}

/* Closing does not wait for clients, working or reading. */
static void test_closing(void **state)
{
	static const char endless[] = "flood\0"
				      "100000000",
			  silent[] = "brood";
	static const char some[] = "flood\0"
				   "500";
	int fds[3];

	(void)state;
	fds[0] = raw_ask(endless, sizeof(endless), 2);
	fds[1] = raw_ask(silent, sizeof(silent), 1);
	fds[2] = raw_ask(some, sizeof(some), 2);
	assert_true(becomes(&d.begun, 3));
	pfs_control_close(d.control);
	d.control = NULL;
	assert_int_equal(d.ended, 3);
	for (size_t i = 0; i < PFS_COUNT(fds); i++)
		(void)close(fds[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_answers),	 TEST(test_sizes),	  TEST(test_slow_client),
		TEST(test_large_answer), TEST(test_unread_limit), TEST(test_gone_client),
		TEST(test_many_clients), TEST(test_mad_clients),  TEST(test_who_may),
		TEST(test_the_file),	 TEST(test_long_path),	  TEST(test_closing),
	};
	sigset_t all;

	(void)sigemptyset(&all);
	(void)sigaddset(&all, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
