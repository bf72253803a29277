/* SPDX-License-Identifier: MIT */
/* Reads a file in a way that shells' tools do not, and writes what it read to standard output:
 *
 *	reads read FILE			as programs do that size their buffer by fstat
 *	reads sendfile FILE		and by reading where that sends nothing
 *	reads copy FILE OUT		copy_file_range, and by reading where that copies nothing, to
 *OUT reads direct FILE		O_DIRECT
 *	reads uring FILE		the same by io_uring, several reads at a time; status 77: there
 *is none reads alarm FILE		under SIGALRM every 10 ms, once it is open reads preadv FILE
 *WHOLE		pieces anywhere, compared with WHOLE
 *	reads wait N OFFSET		N threads read standard input from there on, until it ends or
 *they do reads interrupt N OFFSET	one does, N times, and is interrupted each time; prints the
 *most microseconds that a read took beyond the period of the alarm reads kill N OFFSET		N
 *processes do, one after the other, and are killed; prints the most microseconds that one took to
 *be gone reads scatter N SIZE		N threads read standard input anywhere below SIZE, and one
 *more under alarms, until SIGTERM, a minute at most; prints how often that one was interrupted, and
 *how late at most, as `interrupt` */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK ((size_t)64 << 10)
#define DEPTH 8u

static char block[DEPTH][BLOCK] __attribute__((aligned(4096)));

static long must(const char *what, long value)
{
	if (value >= 0)
		return value;
	perror(what);
	exit(1);
}

static void put(const char *bytes, size_t size)
{
	while (size) {
		size_t n = (size_t)must("write", write(1, bytes, size));

		bytes += n;
		size -= n;
	}
}

static void read_rest(int fd)
{
	long n;

	while ((n = must("read", read(fd, block[0], BLOCK))) > 0)
		put(block[0], (size_t)n);
}

static void read_sized(int fd)
{
	struct stat stat;
	size_t room, used = 0;
	char *data;
	long n;

	(void)must("fstat", fstat(fd, &stat));
	(void)must("lseek", lseek(fd, 0, SEEK_CUR));
	room = (size_t)stat.st_size + 1;
	data = malloc(room);
	while (data && (n = must("read", read(fd, data + used, room - used))) > 0) {
		used += (size_t)n;
		if (used == room)
			data = realloc(data, room *= 2);
	}
	put(data, used);
	free(data);
}

static void send_all(int fd)
{
	struct stat stat;

	(void)must("fstat", fstat(fd, &stat));
	while (must("sendfile", sendfile(1, fd, NULL, 1 << 20)) > 0)
		continue;
	read_rest(fd);
}

static void copy(int fd, const char *to)
{
	int out = (int)must(to, open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644));

	while (must("copy_file_range", copy_file_range(fd, NULL, out, NULL, 1 << 20, 0)) > 0)
		continue;
	(void)must("dup2", dup2(out, 1));
	read_rest(fd);
}

/* ---- io_uring, without a library ---- */

struct ring {
	int fd;
	_Atomic unsigned *sq_tail, *cq_head, *cq_tail;
	unsigned sq_mask, cq_mask, *sq_array;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void *map(int fd, size_t size, uint64_t offset)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (at == MAP_FAILED)
		exit(77);
	return at;
}

static void open_ring(struct ring *ring)
{
	struct io_uring_params p = {.flags = 0};
	char *sq, *cq;

	ring->fd = (int)syscall(SYS_io_uring_setup, DEPTH, &p);
	if (ring->fd < 0)
		exit(77);
	sq = map(ring->fd, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = map(ring->fd, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		 IORING_OFF_CQ_RING);
	ring->sqes = map(ring->fd, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring->sq_tail = (_Atomic unsigned *)(void *)(sq + p.sq_off.tail);
	ring->sq_mask = *(unsigned *)(void *)(sq + p.sq_off.ring_mask);
	ring->sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
	ring->cq_head = (_Atomic unsigned *)(void *)(cq + p.cq_off.head);
	ring->cq_tail = (_Atomic unsigned *)(void *)(cq + p.cq_off.tail);
	ring->cq_mask = *(unsigned *)(void *)(cq + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

static void submit(struct ring *ring, int fd, unsigned i, uint64_t offset, uint64_t end)
{
	unsigned tail = atomic_load(ring->sq_tail), at = tail & ring->sq_mask;

	ring->sqes[at] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.fd = fd,
		.off = offset,
		.addr = (uintptr_t)block[i],
		.len = (unsigned)(offset + BLOCK < end ? BLOCK : offset < end ? end - offset : 0),
		.user_data = i,
	};
	ring->sq_array[at] = at;
	atomic_store(ring->sq_tail, tail + 1);
}

/* DEPTH reads at once; what each has read is put in their order. */
static void read_round(struct ring *ring, int fd, uint64_t offset, uint64_t end)
{
	long n[DEPTH] = {0};

	for (unsigned i = 0; i < DEPTH; i++)
		submit(ring, fd, i, offset + i * BLOCK, end);
	(void)must("io_uring_enter", syscall(SYS_io_uring_enter, ring->fd, DEPTH, DEPTH,
					     IORING_ENTER_GETEVENTS, NULL, 0));
	for (unsigned i = 0; i < DEPTH; i++) {
		unsigned head = atomic_load(ring->cq_head);

		if (head == atomic_load(ring->cq_tail)) {
			(void)must("io_uring_enter", syscall(SYS_io_uring_enter, ring->fd, 0, 1,
							     IORING_ENTER_GETEVENTS, NULL, 0));
			i--;
			continue;
		}
		n[ring->cqes[head & ring->cq_mask].user_data] =
			ring->cqes[head & ring->cq_mask].res;
		atomic_store(ring->cq_head, head + 1);
	}
	for (unsigned i = 0; i < DEPTH; i++) {
		errno = n[i] < 0 ? (int)-n[i] : 0;
		put(block[i], (size_t)must("read", n[i] < 0 ? -1 : n[i]));
	}
}

static void read_ring(int fd)
{
	struct ring ring;
	uint64_t end;

	open_ring(&ring);
	end = (uint64_t)must(
		"lseek", lseek(fd, 0, SEEK_END)); /* these reads end at what the kernel knows of */
	for (uint64_t offset = 0; offset < end; offset += DEPTH * BLOCK)
		read_round(&ring, fd, offset, end);
}

/* ---- anywhere ---- */

static void compare(int fd, const char *with)
{
	int whole = (int)must(with, open(with, O_RDONLY));
	long size = must("lseek", lseek(whole, 0, SEEK_END));
	unsigned seed = (unsigned)getpid();

	(void)fprintf(stderr, "seed %u\n", seed);
	for (int i = 0; i < 300; i++) {
		long at = rand_r(&seed) % (size + 1000), a, b;
		size_t one = (size_t)rand_r(&seed) % BLOCK + 1,
		       two = (size_t)rand_r(&seed) % BLOCK + 1;
		struct iovec parts[] = {{block[0], one}, {block[1], two}};
		struct iovec same[] = {{block[2], one}, {block[3], two}};

		a = must("preadv", preadv(fd, parts, 2, at));
		b = must("preadv", preadv(whole, same, 2, at));
		if (a == b &&
		    memcmp(block[0], block[2], (size_t)(a < (long)one ? a : (long)one)) == 0 &&
		    (a <= (long)one || memcmp(block[1], block[3], (size_t)a - one) == 0))
			continue;
		(void)fprintf(stderr, "%ld bytes at %ld are others, or not %ld\n", a, at, b);
		exit(1);
	}
}

/* ---- signals ---- */

#define PERIOD_US 10000

static void on_signal(int number)
{
	(void)number;
}

static void alarms(void)
{
	const struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
	const struct itimerval every = {{0, PERIOD_US}, {0, PERIOD_US}};

	(void)must("sigaction", sigaction(SIGALRM, &action, NULL));
	(void)must("setitimer", setitimer(ITIMER_REAL, &every, NULL));
}

static long now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Reads standard input at the offset, where an alarm may interrupt it; true if one has. Fails at
 * any other error. */
static bool is_interrupted(long offset, long *latest_us)
{
	long start = now_us(), n = pread(0, block[0], BLOCK, offset),
	     late = now_us() - start - PERIOD_US;

	if (n >= 0)
		return false;
	if (errno != EINTR)
		(void)must("read", n);
	if (late > *latest_us)
		*latest_us = late;
	return true;
}

static void read_alarmed(int fd)
{
	long n;

	alarms();
	while ((n = read(fd, block[0], BLOCK)) != 0) {
		if (n < 0 && errno != EINTR)
			(void)must("read", n);
		for (long at = 0, done; at < n; at += done > 0 ? done : 0)
			done = write(1, block[0] + at, (size_t)(n - at));
	}
}

static void interrupt(long times, long offset)
{
	long latest_us = 0;

	alarms();
	while (times-- > 0) {
		if (is_interrupted(offset, &latest_us))
			continue;
		(void)fprintf(stderr, "a read was not interrupted\n");
		exit(1);
	}
	(void)printf("%ld\n", latest_us);
}

/* Whether the process is in pread(2). */
static bool is_reading(pid_t pid)
{
	char name[64], text[32] = "";
	int fd;

	(void)snprintf(name, sizeof(name), "/proc/%d/syscall", (int)pid);
	fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		(void)usleep(20000); /* it is not told: it should be by now */
	if (fd < 0)
		return true;
	(void)close(fd);
	return !*text || strtol(text, NULL, 10) == SYS_pread64;
}

static void kill_readers(long times, long offset)
{
	long latest_us = 0;

	while (times-- > 0) {
		pid_t pid = (pid_t)must("fork", fork());
		int tries = 2000, status;
		long start;

		if (!pid)
			_exit(pread(0, block[0], BLOCK, offset) < 0);
		while (!is_reading(pid) && tries-- > 0)
			(void)usleep(1000);
		start = now_us();
		(void)must("kill", kill(pid, SIGKILL));
		(void)must("waitpid", waitpid(pid, &status, 0));
		if (now_us() - start > latest_us)
			latest_us = now_us() - start;
	}
	(void)printf("%ld\n", latest_us);
}

static void *read_one(void *offset)
{
	char byte;

	return pread(0, &byte, 1, *(long *)offset) < 0 ? offset : NULL;
}

static void wait_all(long n, long offset)
{
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	pthread_attr_t attr;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 0; threads && i < n; i++)
		(void)must("pthread_create",
			   -pthread_create(&threads[i], &attr, read_one, &offset));
	for (long i = 0; threads && i < n; i++)
		(void)pthread_join(threads[i], NULL);
	free(threads);
}

/* ---- anywhere, by many ---- */

static _Atomic bool stops;
static long scatter_size;

static void on_term(int number)
{
	(void)number;
	atomic_store(&stops, true);
}

static void *read_anywhere(void *seed)
{
	unsigned random = *(unsigned *)seed;
	char byte;

	while (!atomic_load(&stops))
		(void)must("read", pread(0, &byte, 1, rand_r(&random) % scatter_size));
	return NULL;
}

static void scatter(long n)
{
	const struct sigaction action = {.sa_handler = on_term};
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	unsigned *seeds = calloc((size_t)n, sizeof(*seeds)), seed = (unsigned)getpid();
	long end_us = now_us() + 60000000, latest_us = 0, times = 0;
	sigset_t both;

	(void)sigemptyset(&both);
	(void)sigaddset(&both, SIGALRM);
	(void)sigaddset(&both, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &both, NULL);
	(void)must("sigaction", sigaction(SIGTERM, &action, NULL));
	for (long i = 0; threads && seeds && i < n; i++) {
		seeds[i] = seed + (unsigned)i;
		(void)must("pthread_create",
			   -pthread_create(&threads[i], NULL, read_anywhere, &seeds[i]));
	}
	alarms();
	(void)pthread_sigmask(SIG_UNBLOCK, &both, NULL);
	while (!atomic_load(&stops) && now_us() < end_us)
		times += is_interrupted(rand_r(&seed) % scatter_size, &latest_us);
	atomic_store(&stops, true);
	for (long i = 0; threads && seeds && i < n; i++)
		(void)pthread_join(threads[i], NULL);
	free(threads);
	free(seeds);
	(void)printf("%ld %ld\n", times, latest_us);
}

/* Of those that read standard input. */
static bool reads_input(const char *how, char **arguments)
{
	long n = strtol(arguments[0], NULL, 10), at = strtol(arguments[1], NULL, 10);

	if (strcmp(how, "wait") == 0)
		wait_all(n, at);
	else if (strcmp(how, "interrupt") == 0)
		interrupt(n, at);
	else if (strcmp(how, "kill") == 0)
		kill_readers(n, at);
	else if (strcmp(how, "scatter") == 0 && (scatter_size = at) > 0)
		scatter(n);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";
	int flags = strcmp(how, "direct") == 0 || strcmp(how, "uring") == 0 ? O_DIRECT : 0, fd;

	if (argc > 3 && reads_input(how, argv + 2))
		return 0;
	fd = (int)must(argc > 2 ? argv[2] : "reads",
		       argc > 2 ? open(argv[2], O_RDONLY | flags) : -1);
	if (strcmp(how, "read") == 0)
		read_sized(fd);
	else if (strcmp(how, "sendfile") == 0)
		send_all(fd);
	else if (strcmp(how, "copy") == 0 && argc > 3)
		copy(fd, argv[3]);
	else if (strcmp(how, "preadv") == 0 && argc > 3)
		compare(fd, argv[3]);
	else if (strcmp(how, "alarm") == 0)
		read_alarmed(fd);
	else if (strcmp(how, "uring") == 0)
		read_ring(fd);
	else
		read_rest(fd);
	return 0;
}
