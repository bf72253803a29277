/* SPDX-License-Identifier: MIT */
/* The control socket: answers of every size, and clients that are slow, gone, many or mad. */
#include "control_util.h"

#include "base/cleanup.h"
#include "fs/mount/query/turns.h"

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

static void no_request_waits(void *arg PFS_UNUSED, const struct pfs_turn *turn PFS_UNUSED,
			     void *request PFS_UNUSED, size_t len PFS_UNUSED)
{
	fail();
}

static bool await_waiting(unsigned n)
{
	for (unsigned ms = 0; ms < 20000 && pfs_turns_waiting(d.turns) != n; ms++)
		pause_ms(1);
	return pfs_turns_waiting(d.turns) == n;
}

static void open_with_turn(void)
{
	pfs_control_close(d.control);
	assert_int_equal(pfs_turns_open(&d.turns, 1, no_request_waits, NULL), 0);
	open_with(0);
}

static void close_turn(void)
{
	pfs_control_close(PFS_TAKE(d.control));
	pfs_turns_close(PFS_TAKE(d.turns));
}

/* A verb that runs a statement waits for its turn, the others do not; a client who leaves waits no
 * more. */
static void test_turns(void **state)
{
	static const char run[] = "run";
	struct answer answer = ANSWER;
	int fds[3], status = -1;

	(void)state;
	open_with_turn();
	fds[0] = raw_ask(run, sizeof(run), 1);
	assert_true(becomes(&d.begun, 1));
	fds[1] = raw_ask(run, sizeof(run), 1);
	fds[2] = raw_ask(run, sizeof(run), 1);
	assert_true(await_waiting(2));
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	assert_int_equal(d.begun, 1);
	(void)close(fds[1]);
	assert_true(await_waiting(1));
	atomic_store(&d.released, true);
	assert_true(becomes(&d.ended, 2));
	assert_true(await_waiting(0));
	(void)close(fds[0]);
	(void)close(fds[2]);
	free(answer.bytes);
	close_turn();
}

/* Many that wait for a turn leave the places to the others, and each has its turn. */
static void test_many_wait(void **state)
{
	static const char run[] = "run";
	struct answer answer = ANSWER;
	int fds[41], status = -1;

	(void)state;
	open_with_turn();
	for (size_t i = 0; i < PFS_COUNT(fds); i++)
		fds[i] = raw_ask(run, sizeof(run), 1);
	assert_true(await_waiting(PFS_COUNT(fds) - 1));
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	assert_int_equal(status, 1);
	atomic_store(&d.released, true);
	assert_true(becomes(&d.ended, PFS_COUNT(fds)));
	for (size_t i = 0; i < PFS_COUNT(fds); i++)
		(void)close(fds[i]);
	free(answer.bytes);
	close_turn();
}

/* Those that have had their turn, and have not read what it gave them, leave the places to the
 * others. */
static void test_many_read_later(void **state)
{
	static const char flood[] = "run a flood\0" "16";
	struct answer answer = ANSWER;
	int fds[PFS_CONTROL_CLIENTS + 1], status = -1;

	(void)state;
	open_with_turn();
	for (size_t i = 0; i < PFS_COUNT(fds); i++)
		fds[i] = raw_ask(flood, sizeof(flood), 2);
	assert_true(becomes(&d.ended, PFS_COUNT(fds)));
	assert_true(await_waiting(0));
	assert_int_equal(d.error, 0);
	assert_int_equal(ask(&answer, &status, "echo", NULL), 0);
	assert_int_equal(status, 1);
	for (size_t i = 0; i < PFS_COUNT(fds); i++)
		(void)close(fds[i]);
	free(answer.bytes);
	close_turn();
}

/* Who waits when the turns are stopped, or comes later, is told. */
static void test_turns_stop(void **state)
{
	static const char run[] = "run";
	struct answer answer = ANSWER;
	int fds[2], status = -1;

	(void)state;
	open_with_turn();
	fds[0] = raw_ask(run, sizeof(run), 1);
	assert_true(becomes(&d.begun, 1));
	fds[1] = raw_ask(run, sizeof(run), 1);
	assert_true(await_waiting(1));
	(void)close(fds[0]); /* which ends the verb */
	(void)close(fds[1]);
	pfs_turns_stop(d.turns);
	assert_true(await_waiting(0));
	assert_int_equal(ask(&answer, &status, "run", NULL), 0);
	assert_int_equal(status, 3);
	assert_non_null(strstr(answer.reply.message, "unmounted"));
	free(answer.bytes);
	close_turn();
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
		TEST(test_many_clients), TEST(test_turns),	  TEST(test_turns_stop),
		TEST(test_many_wait),	 TEST(test_many_read_later), TEST(test_mad_clients),
		TEST(test_closing),
	};
	sigset_t all;

	(void)sigemptyset(&all);
	(void)sigaddset(&all, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
