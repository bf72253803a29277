/* SPDX-License-Identifier: MIT */
/* The daemon's side of the control socket. */
#include "fs/mount/control/control.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/reserve.h"
#include "base/thread.h"
#include "fs/mount/control/control_socket.h"
#include "fs/mount/control/control_wire.h"
#include "fs/mount/query/turns.h"

#define STATUS_FAILURE	3     /* as the commands exit */
#define REQUEST_WAIT_MS 10000 /* for a client to say what it wants */
#define PLACE_WAIT_MS	1000  /* for one of too many to be through */

struct client {
	struct pfs_reply reply; /* first: replies are clients */
	struct pfs_control *control;
	struct client *next; /* the listening thread's, as is `thread`, which it joins in the end */
	bool answering;	     /* protected by control->lock, as is `has_place` */
	bool has_place;	     /* it counts among those that are answered at a time */
	pthread_t thread;
	int fd; /* closed under control->lock; not blocking */
	/* What the client has not read yet: the bytes head..tail of a file in memory. */
	int spool; /* -1: none needed so far */
	off_t head, tail;
};

struct pfs_control {
	struct pfs_control_options options; /* but for the store */
	struct pfs_control_socket socket;
	int stop; /* an eventfd */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t through; /* a client is no longer answered, or has given up its place */
	unsigned n_places;	/* that clients have */
	unsigned n_connected, most_connected;
	struct client *clients;
	_Atomic uint64_t unread; /* bytes, of all clients */
};

/* ---- replies ---- */

static struct client *client_of(struct pfs_reply *reply)
{
	return (struct client *)reply;
}

/* Sends what waits, as far as the client takes it now. */
static int pump(struct client *client)
{
	while (client->head < client->tail) {
		off_t before = client->head;
		ssize_t n = sendfile(client->fd, client->spool, &client->head,
				     (size_t)(client->tail - client->head));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return -EPIPE;
		atomic_fetch_sub(&client->control->unread, (uint64_t)(client->head - before));
	}
	if (client->tail > 0 && ftruncate(client->spool, 0) != 0)
		return -errno;
	client->head = client->tail = 0;
	return 0;
}

static int keep(struct client *client, const char *bytes, size_t size)
{
	struct pfs_control *control = client->control;

	if (client->spool < 0)
		client->spool = memfd_create("primefs answer", MFD_CLOEXEC);
	if (client->spool < 0)
		return -errno;
	if (atomic_load(&control->unread) + size > control->options.unread_limit)
		return -ENOBUFS;
	while (size > 0) {
		ssize_t n = pwrite(client->spool, bytes, size, client->tail);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		atomic_fetch_add(&control->unread, (uint64_t)n);
		client->tail += n;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static int put(struct client *client, const void *bytes, size_t size)
{
	const char *left = bytes;
	ssize_t n;

	if (client->tail > 0)
		PFS_TRY(pump(client));
	while (client->tail == 0 && size > 0) {
		n = send(client->fd, left, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -EPIPE;
		if (n <= 0)
			break;
		left += n;
		size -= (size_t)n;
	}
	return size ? keep(client, left, size) : 0;
}

static int write_reply(struct pfs_reply *reply, const void *bytes, size_t size)
{
	const char *left = bytes;

	while (size > 0) {
		struct pfs_wire_frame frame = {
			.kind = PFS_WIRE_BYTES,
			.size = (uint32_t)PFS_MIN(size, UINT32_MAX),
		};

		PFS_TRY(put(client_of(reply), &frame, sizeof(frame)));
		PFS_TRY(put(client_of(reply), left, frame.size));
		left += frame.size;
		size -= frame.size;
	}
	return 0;
}

static bool is_gone(struct pfs_reply *reply)
{
	struct pollfd event = {.fd = client_of(reply)->fd, .events = POLLRDHUP};

	return poll(&event, 1, 0) > 0;
}

/* The end of the answer; waits for the client to have read it all. */
static void finish_reply(struct client *client, int status)
{
	const char *message = client->reply.message;
	struct pfs_wire_frame frame = {.kind = PFS_WIRE_END};
	struct pollfd event = {.fd = client->fd, .events = POLLOUT};
	int32_t number = status;
	int error;

	frame.size = (uint32_t)(sizeof(number) + strlen(message));
	error = put(client, &frame, sizeof(frame));
	if (!error)
		error = put(client, &number, sizeof(number));
	if (!error)
		error = put(client, message, strlen(message));
	while (!error && client->tail > 0) {
		(void)poll(&event, 1, -1);
		error = pump(client);
	}
}

/* ---- requests ---- */

static int receive(int fd, void *bytes, size_t size, int64_t end_ms)
{
	struct pollfd event = {.fd = fd, .events = POLLIN};
	char *to = bytes;

	while (size > 0) {
		int64_t left = end_ms - (int64_t)pfs_now_ms();
		ssize_t n;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&event, 1, (int)left) <= 0)
			continue;
		n = recv(fd, to, size, 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

/* *text holds the words one after another; both are allocated. */
static int receive_words(int fd, char **text, const char ***words, size_t *n)
{
	int64_t end_ms = (int64_t)pfs_now_ms() + REQUEST_WAIT_MS;
	struct pfs_wire_request request;
	size_t at = 0;

	PFS_TRY(receive(fd, &request, sizeof(request), end_ms));
	if (request.magic != PFS_WIRE_MAGIC)
		return -EPROTO;
	if (request.size > PFS_CONTROL_REQUEST_MAX || request.n_words > PFS_CONTROL_WORDS_MAX)
		return -E2BIG;
	*text = malloc(request.size + (size_t)1);
	*words = calloc(request.n_words + (size_t)1, sizeof(**words));
	if (!*text || !*words)
		return -ENOMEM;
	PFS_TRY(receive(fd, *text, request.size, end_ms));
	(*text)[request.size] = '\0';
	for (*n = 0; *n < request.n_words && at < request.size; ++*n) {
		(*words)[*n] = *text + at;
		at += strlen(*text + at) + 1;
	}
	return *n == request.n_words && *n > 0 && at == request.size ? 0 : -EPROTO;
}

static bool is_allowed(int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	*uid = peer.uid;
	return peer.uid == geteuid() || peer.uid == 0;
}

struct question {
	const struct pfs_verb *verb;
	struct client *client;
	const char *const *words;
	size_t n;
	int status;
};

static void ask_verb(void *arg)
{
	struct question *question = arg;
	struct client *client = question->client;

	question->status = question->verb->answer(client->control->options.arg, &client->reply,
						  question->words, question->n);
}

static bool has_left(void *arg)
{
	const struct question *question = arg;

	return is_gone(&question->client->reply);
}

/* The caller holds the lock. */
static void give_up_place(struct client *client)
{
	client->control->n_places -= client->has_place;
	client->has_place = false;
	(void)pthread_cond_signal(&client->control->through);
}

/* Turns bound how many statements run. So the client needs its place no more, nor does it
 * afterwards, when it may take its time to read the answer. */
static int answer_in_turn(struct question *question, uid_t uid)
{
	const struct pfs_turn_call call = {uid, true, ask_verb, has_left, question};
	struct pfs_control *control = question->client->control;
	int error;

	(void)pthread_mutex_lock(&control->lock);
	give_up_place(question->client);
	(void)pthread_mutex_unlock(&control->lock);
	error = pfs_turns_call(control->options.turns, &call);
	if (!error)
		return question->status;
	return pfs_reply_fail(&question->client->reply, STATUS_FAILURE,
			      error == -EINTR ? "the store is being unmounted"
					      : "the daemon has no memory for this");
}

static int answer(struct client *client)
{
	const struct pfs_verb *verb = client->control->options.verbs;
	struct question question = {.client = client};
	char *text PFS_FREE = NULL;
	const char **words PFS_FREE = NULL;
	uid_t uid;
	size_t n = 0;
	int error;

	if (!is_allowed(client->fd, &uid))
		return pfs_reply_fail(&client->reply, STATUS_FAILURE,
				      "only the user who mounted the store and root are answered");
	error = receive_words(client->fd, &text, &words, &n);
	if (error)
		return pfs_reply_fail(&client->reply, STATUS_FAILURE,
				      "the request cannot be read: %s", strerror(-error));
	while (verb->name && strcmp(verb->name, words[0]) != 0)
		verb++;
	if (!verb->name)
		return pfs_reply_fail(&client->reply, STATUS_FAILURE,
				      "the daemon of the mounted store does not know '%s'; it may "
				      "be an older version: mount again",
				      words[0]);
	question.verb = verb;
	question.words = words;
	question.n = n;
	if (verb->runs && client->control->options.turns)
		return answer_in_turn(&question, uid);
	ask_verb(&question);
	return question.status;
}

static void *client_main(void *arg)
{
	struct client *client = arg;
	struct pfs_control *control = client->control;

	finish_reply(client, answer(client));
	if (client->spool >= 0)
		(void)close(client->spool);
	atomic_fetch_sub(&control->unread, (uint64_t)(client->tail - client->head));
	PFS_LOCKED(&control->lock);
	(void)close(client->fd);
	client->fd = -1;
	client->answering = false;
	give_up_place(client);
	return NULL;
}

/* ---- accepting ---- */

/* Frees clients that are through; true if there is room for another. Their threads need the lock,
 * which is held, no more. */
static bool has_place(struct pfs_control *control)
{
	for (struct client **link = &control->clients; *link;) {
		struct client *client = *link;

		if (client->answering) {
			link = &client->next;
			continue;
		}
		*link = client->next;
		control->n_connected--;
		(void)pthread_join(client->thread, NULL);
		free(client);
	}
	return control->n_places < PFS_CONTROL_CLIENTS &&
	       control->n_connected < control->most_connected;
}

static int add_client(struct pfs_control *control, int fd)
{
	static const struct pfs_thread_kind kind = {"pfs-client", 0, PFS_THREAD_STACK};
	struct client *client = malloc(sizeof(*client));
	int error;

	if (!client)
		return -ENOMEM;
	*client = (struct client){.control = control,
				  .next = control->clients,
				  .answering = true,
				  .has_place = true,
				  .fd = fd,
				  .spool = -1};
	client->reply = (struct pfs_reply){.write = write_reply, .gone = is_gone};
	error = pfs_thread_start(&client->thread, &kind, client_main, client);
	control->clients = error ? client->next : client;
	control->n_connected += !error;
	control->n_places += !error;
	if (error)
		free(client);
	return error;
}

/* -EBUSY: there are as many as may be. */
static int start_client(struct pfs_control *control, int fd)
{
	const struct timespec end = pfs_clock_in_ms(CLOCK_REALTIME, PLACE_WAIT_MS);
	int error = 0;

	PFS_LOCKED(&control->lock);
	while (!has_place(control) && !error)
		error = pthread_cond_timedwait(&control->through, &control->lock, &end);
	return has_place(control) ? add_client(control, fd) : -EBUSY;
}

static void refuse(struct pfs_control *control, int fd, int error)
{
	struct client client = {.control = control, .fd = fd, .spool = -1};

	(void)pfs_reply_fail(&client.reply, STATUS_FAILURE,
			     error == -EBUSY ? "the daemon answers too many at a time already; wait"
					     : "the daemon has no memory for this");
	finish_reply(&client, STATUS_FAILURE); /* fits the socket's buffer: does not wait */
	(void)close(fd);
}

static void accept_client(struct pfs_control *control)
{
	int fd = accept4(control->socket.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct pollfd stop = {.fd = control->stop, .events = POLLIN};
	int error;

	if (fd < 0) {
		if (errno != EINTR && errno != EAGAIN && errno != ECONNABORTED)
			(void)poll(&stop, 1, 100); /* no descriptors, no memory: not for ever */
		return;
	}
	error = start_client(control, fd);
	if (error)
		refuse(control, fd, error);
}

static void *listener_main(void *arg)
{
	struct pfs_control *control = arg;
	struct pollfd events[] = {
		{.fd = control->socket.listener, .events = POLLIN},
		{.fd = control->stop, .events = POLLIN},
	};

	for (;;) {
		if (poll(events, PFS_COUNT(events), -1) < 0)
			continue;
		if (events[1].revents)
			return NULL;
		if (events[0].revents)
			accept_client(control);
	}
}

/* ---- opening and closing ---- */

static int start(struct pfs_control *control, const char *store)
{
	static const struct pfs_thread_kind kind = {"pfs-control", 0, 0};
	int error;

	PFS_TRY(pfs_control_socket_open(&control->socket, store, control->options.alone));
	control->stop = eventfd(0, EFD_CLOEXEC);
	if (control->stop < 0)
		return -errno;
	error = pfs_thread_start(&control->thread, &kind, listener_main, control);
	control->has_thread = !error;
	return error;
}

/* Files of the mount need descriptors, too. */
static unsigned most_connected(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 4 >= PFS_CONTROL_CONNECTED)
		return PFS_CONTROL_CONNECTED;
	return PFS_MAX((unsigned)files.rlim_cur / 4, PFS_CONTROL_CLIENTS + 1u);
}

int pfs_control_open(struct pfs_control **out, const struct pfs_control_options *options)
{
	struct pfs_control *control = calloc(1, sizeof(*control));
	int error;

	*out = NULL;
	if (!control)
		return -ENOMEM;
	control->options = *options;
	control->options.store = NULL;
	if (!control->options.unread_limit)
		control->options.unread_limit = pfs_quarter_of_memory();
	control->most_connected = most_connected();
	control->socket.listener = control->socket.folder = control->stop = -1;
	(void)pthread_mutex_init(&control->lock, NULL);
	(void)pthread_cond_init(&control->through, NULL);
	error = start(control, options->store);
	if (error)
		pfs_control_close(control);
	else
		*out = control;
	return error;
}

const char *pfs_control_name(const struct pfs_control *control)
{
	return control->socket.nameless;
}

/* Their verbs find that nobody reads any more. */
static void cut_off(struct pfs_control *control)
{
	PFS_LOCKED(&control->lock);

	for (const struct client *client = control->clients; client; client = client->next)
		if (client->answering)
			(void)shutdown(client->fd, SHUT_RDWR);
}

void pfs_control_close(struct pfs_control *control)
{
	if (!control)
		return;
	pfs_control_socket_remove(&control->socket);
	if (control->has_thread) {
		if (eventfd_write(control->stop, 1) != 0)
			pfs_warning("the control socket's thread cannot be stopped");
		(void)pthread_join(control->thread, NULL);
	}
	cut_off(control);
	for (struct client *client = control->clients, *next; client; client = next) {
		next = client->next;
		(void)pthread_join(client->thread, NULL);
		free(client);
	}
	pfs_control_socket_close(&control->socket);
	if (control->stop >= 0)
		(void)close(control->stop);
	(void)pthread_cond_destroy(&control->through);
	(void)pthread_mutex_destroy(&control->lock);
	free(control);
}
