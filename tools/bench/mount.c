/* SPDX-License-Identifier: MIT */
/* primefs-bench mount - measures a mounted store beside a FUSE filesystem that answers from
 * arithmetic, and beside the filesystem on which the store is. Each figure and its yardstick come
 * from the same run, in turns. */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/mount/kernel.h"
#include "fs/mount/options.h"
#include "gpu/engine.h"
#include "tools/bench/server.h"
#include "tools/bench/gen.h"

#define VERB "mount"
#define LONG "86400" /* seconds that the kernel may keep answers */

enum { RUNS, SECONDS, THREADS, NODES, BYTES, FOLDER, NULLFS, JSON };

static const struct pfs_cmd_option options[] = {
	[RUNS] = {"runs", 'r', "N", "of which the median is taken (5)"},
	[SECONDS] = {"seconds", 0, "N", "of each run of one kind of request (2)"},
	[THREADS] = {"threads", 't', "N", "that wait for requests, the yardstick's too (2)"},
	[NODES] = {"nodes", 'n', "N", "of the large store (8000000)"},
	[BYTES] = {"bytes", 'b', "N", "of the large file (4294967296)"},
	[FOLDER] = {"folder", 'd', "DIR", "for stores and mountpoints ($TMPDIR or /tmp)"},
	[NULLFS] = {"nullfs", 0, "PROGRAM", "another yardstick, told its shape by ND, NF, TMO ..."},
	[JSON] = {"json", 0, NULL, "print an array of objects"},
	{0},
};

static const struct pfs_cmd command = {
	VERB,
	"[find | requests | files | stream | large]...",
	"Times a mounted store beside its yardsticks.",
	options,
	"Without an operand all parts run:\n"
	"  find      find -size over 1,000 x 1,000 files, cold and warm\n"
	"  requests  stat, lookup, create and unlink, 1 and 4 clients\n"
	"  files     create and write small files, with and without fsync\n"
	"  stream    write and read one large file\n"
	"  large     mount a large store and list its root; memory a node\n"
	"A ratio is speed beside the yardstick's.\n",
};

struct bench {
	struct pfs_bench_server server;
	uint64_t runs, seconds, nodes;
	unsigned series;
	bool has_device;
	struct pfs_json *json; /* NULL: text */
};

static int print_square(FILE *out, const void *arg PFS_UNUSED)
{
	unsigned i;

	for (i = 0; i < 1000000; i++)
		(void)fprintf(out, "d%u/f%06u\n", i / 1000, i % 1000);
	return ferror(out) ? -EIO : 0;
}

/* ---- find ---- */

static int time_find(struct pfs_figures *cold, struct pfs_figures *warm, const struct bench *bench,
		     void (*add)(struct pfs_figures *figures, double seconds))
{
	const char *argv[] = {"find", bench->server.mountpoint, "-size", "+1000k", NULL};
	double seconds;

	PFS_TRY(pfs_bench_run(VERB, &seconds, argv));
	add(cold, seconds);
	PFS_TRY(pfs_bench_run(VERB, &seconds, argv));
	add(warm, seconds);
	return 0;
}

static int find_in_turns(struct bench *bench, struct pfs_figures *cold, struct pfs_figures *warm)
{
	PFS_TRY(pfs_bench_server_mount_yardstick(&bench->server, LONG));
	PFS_TRY(time_find(cold, warm, bench, pfs_figures_add_yardstick));
	PFS_TRY(pfs_bench_server_unmount_yardstick(&bench->server));
	PFS_TRY(pfs_bench_server_mount(&bench->server, LONG, "auto"));
	PFS_TRY(time_find(cold, warm, bench, pfs_figures_add));
	return pfs_bench_server_unmount(&bench->server);
}

static int bench_find(struct bench *bench)
{
	struct pfs_figures cold = {
		.what = "find -size over 1,000 x 1,000 files, nothing cached",
		.unit = "s",
		.yardstick = "nullfs",
		.less_is_better = true,
		.wanted_ratio = 0.8,
	};
	struct pfs_figures warm = cold;
	uint64_t i;

	warm.what = "the same again";
	warm.wanted_ratio = 1;
	PFS_TRY(pfs_bench_server_fill(&bench->server, NULL, print_square, NULL));
	for (i = 0; i < bench->runs; i++)
		PFS_TRY(find_in_turns(bench, &cold, &warm));
	pfs_figures_print(&cold, bench->json);
	pfs_figures_print(&warm, bench->json);
	return 0;
}

/* ---- requests ---- */

static int run_load(double *rate, struct bench *bench, enum pfs_load_kind kind, const char *folder,
		    unsigned clients)
{
	const struct pfs_load load = {
		.kind = kind,
		.folder = folder,
		.threads = clients,
		.seconds = (double)bench->seconds,
		.series = bench->series++,
	};
	int error = pfs_load_run(rate, &load);

	if (error)
		(void)pfs_cmd_fail(VERB, "%s: %s", folder, strerror(-error));
	return error;
}

static int load_store(double *rate, struct bench *bench, enum pfs_load_kind kind, unsigned clients,
		      const char *timeout, const char *engine)
{
	PFS_TRY(pfs_bench_server_mount(&bench->server, timeout, engine));
	PFS_TRY(run_load(rate, bench, kind, bench->server.mountpoint, clients));
	return pfs_bench_server_unmount(&bench->server);
}

static int load_yardstick(double *rate, struct bench *bench, enum pfs_load_kind kind,
			  unsigned clients, const char *timeout)
{
	PFS_TRY(pfs_bench_server_mount_yardstick(&bench->server, timeout));
	PFS_TRY(run_load(rate, bench, kind, bench->server.mountpoint, clients));
	return pfs_bench_server_unmount_yardstick(&bench->server);
}

/* Measures one kind of request: the yardstick, and the store with each engine, in turns. */
static int bench_request(struct bench *bench, enum pfs_load_kind kind, const char *name,
			 const char *timeout, unsigned clients)
{
	static const char *const engines[] = {"auto", "host", "cuda"};
	const size_t n = PFS_COUNT(engines) - !bench->has_device;
	struct pfs_figures figures[PFS_COUNT(engines)];
	char what[PFS_COUNT(engines)][96];
	double ours = 0, theirs = 0;
	uint64_t i;
	size_t e;

	for (e = 0; e < n; e++) {
		(void)snprintf(what[e], sizeof(what[e]), "%s, %u client%s, --engine=%s", name,
			       clients, clients > 1 ? "s" : "", engines[e]);
		figures[e] = (struct pfs_figures){
			.what = what[e], .unit = "/s", .yardstick = "nullfs", .wanted_ratio = 0.8};
	}
	for (i = 0; i < bench->runs; i++) {
		PFS_TRY(load_yardstick(&theirs, bench, kind, clients, timeout));
		for (e = 0; e < n; e++) {
			PFS_TRY(load_store(&ours, bench, kind, clients, timeout, engines[e]));
			pfs_figures_add(&figures[e], ours);
			pfs_figures_add_yardstick(&figures[e], theirs);
		}
	}
	for (e = 0; e < n; e++)
		pfs_figures_print(&figures[e], bench->json);
	return 0;
}

/* This asks in a process of its own: CUDA does not survive a fork, and the yardstick is one. */
static bool has_device(void)
{
	pid_t child = fork();
	int status = 1;

	if (child == 0) {
		struct pfs_engine *engine;
		struct pfs_engine_info info = {.degraded = true};

		if (pfs_engine_open(&engine, PFS_ENGINE_CUDA) == 0)
			pfs_engine_describe(engine, &info);
		_exit(info.degraded);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

static int bench_requests(struct bench *bench)
{
	unsigned clients;

	bench->has_device = has_device();
	PFS_TRY(pfs_bench_server_fill(&bench->server, NULL, print_square, NULL));
	for (clients = 1; clients <= 4; clients += 3) {
		PFS_TRY(bench_request(bench, PFS_LOAD_STAT, "stat, not cached", "0", clients));
		PFS_TRY(bench_request(bench, PFS_LOAD_MISS, "lookup", LONG, clients));
		PFS_TRY(bench_request(bench, PFS_LOAD_PAIR, "create and unlink", LONG, clients));
	}
	return 0;
}

/* ---- files ---- */

static int bench_write(struct bench *bench)
{
	struct pfs_figures figures = {
		.what = "create, write 1 KB, close; 1 client",
		.unit = "/s",
		.yardstick = "nullfs",
		.wanted = 10000,
	};
	double rate = 0;
	uint64_t i;

	for (i = 0; i < bench->runs; i++) {
		PFS_TRY(load_yardstick(&rate, bench, PFS_LOAD_WRITE, 1, LONG));
		pfs_figures_add_yardstick(&figures, rate);
		PFS_TRY(load_store(&rate, bench, PFS_LOAD_WRITE, 1, LONG, "auto"));
		pfs_figures_add(&figures, rate);
	}
	pfs_figures_print(&figures, bench->json);
	return 0;
}

/* Makes plain files in the store's folder; the directories d0 ... are in one of their own. */
static int load_plain(double *rate, struct bench *bench, unsigned clients)
{
	char plain[PATH_MAX], path[PATH_MAX + 16];
	const char *argv[] = {"rm", "-rf", plain, NULL};
	unsigned c;

	(void)snprintf(plain, sizeof(plain), "%s/plain", bench->server.folder);
	if (mkdir(plain, 0755) != 0)
		return -errno;
	for (c = 0; c < clients; c++) {
		(void)snprintf(path, sizeof(path), "%s/d%u", plain, c);
		if (mkdir(path, 0755) != 0)
			return -errno;
	}
	PFS_TRY(run_load(rate, bench, PFS_LOAD_SYNC, plain, clients));
	return pfs_bench_run(VERB, NULL, argv);
}

static int bench_sync(struct bench *bench, unsigned clients)
{
	char what[96];
	struct pfs_figures figures = {.what = what, .unit = "/s", .yardstick = "plain files"};
	double rate = 0;
	uint64_t i;

	(void)snprintf(what, sizeof(what), "create, write 1 KB, fsync, close; %u client%s", clients,
		       clients > 1 ? "s" : "");
	for (i = 0; i < bench->runs; i++) {
		PFS_TRY(load_plain(&rate, bench, clients));
		pfs_figures_add_yardstick(&figures, rate);
		PFS_TRY(load_store(&rate, bench, PFS_LOAD_SYNC, clients, LONG, "auto"));
		pfs_figures_add(&figures, rate);
	}
	pfs_figures_print(&figures, bench->json);
	return 0;
}

static int bench_files(struct bench *bench)
{
	PFS_TRY(pfs_bench_server_fill(&bench->server, NULL, print_square, NULL));
	PFS_TRY(bench_write(bench));
	PFS_TRY(bench_sync(bench, 1));
	PFS_TRY(bench_sync(bench, 4));
	return bench_sync(bench, 16);
}

/* ---- stream ---- */

#define PIECE (1024 * 1024)

/* Measures writing `path` once and reading it back, in MB/s, with none of it cached. */
static int stream(double rates[2], const char *path, uint64_t bytes)
{
	char *data PFS_FREE = malloc(PIECE);
	int fd PFS_CLOSE = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	double started = pfs_bench_now();
	uint64_t done;
	ssize_t n;

	if (!data || fd < 0)
		return fd < 0 ? -errno : -ENOMEM;
	for (done = 0; done < PIECE; done++)
		data[done] = (char)(done * 7 + done / 4096);
	for (done = 0; done < bytes; done += (uint64_t)n) {
		n = write(fd, data, PIECE);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	if (fsync(fd) != 0)
		return -errno;
	rates[0] = (double)done / 1e6 / (pfs_bench_now() - started);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (lseek(fd, 0, SEEK_SET) != 0)
		return -errno;
	started = pfs_bench_now();
	for (done = 0; (n = read(fd, data, PIECE)) > 0; done += (uint64_t)n)
		;
	rates[1] = (double)done / 1e6 / (pfs_bench_now() - started);
	return n < 0 ? -errno : 0;
}

static int stream_once(double rates[2], const char *folder, uint64_t bytes)
{
	char path[PATH_MAX + 16];
	int error;

	(void)snprintf(path, sizeof(path), "%s/stream", folder);
	error = stream(rates, path, bytes);
	if (error)
		(void)pfs_cmd_fail(VERB, "%s: %s", path, strerror(-error));
	(void)unlink(path);
	return error;
}

static int print_nothing(FILE *out PFS_UNUSED, const void *arg PFS_UNUSED)
{
	return 0;
}

static int stream_in_turns(struct bench *bench, struct pfs_figures figures[2])
{
	double rates[2] = {0, 0};
	int k;

	PFS_TRY(stream_once(rates, bench->server.folder, bench->server.bytes));
	for (k = 0; k < 2; k++)
		pfs_figures_add_yardstick(&figures[k], rates[k]);
	PFS_TRY(pfs_bench_server_fill(&bench->server, NULL, print_nothing, NULL));
	PFS_TRY(pfs_bench_server_mount(&bench->server, LONG, "auto"));
	PFS_TRY(stream_once(rates, bench->server.mountpoint, bench->server.bytes));
	for (k = 0; k < 2; k++)
		pfs_figures_add(&figures[k], rates[k]);
	return pfs_bench_server_unmount(&bench->server);
}

static int bench_stream(struct bench *bench)
{
	char what[2][96];
	struct pfs_figures figures[2];
	uint64_t i;
	int k;

	for (k = 0; k < 2; k++) {
		(void)snprintf(what[k], sizeof(what[k]), "%s %.1f GB, %s",
			       k ? "read" : "write and fsync", (double)bench->server.bytes / 1e9,
			       k ? "nothing cached by the filesystem" : "1 MiB at a time");
		figures[k] = (struct pfs_figures){.what = what[k],
						  .unit = "MB/s",
						  .yardstick = "a plain file",
						  .wanted = 300};
	}
	for (i = 0; i < bench->runs; i++)
		PFS_TRY(stream_in_turns(bench, figures));
	for (k = 0; k < 2; k++)
		pfs_figures_print(&figures[k], bench->json);
	return 0;
}

/* ---- large ---- */

static int print_large(FILE *out, const void *arg)
{
	return pfs_gen_paths(out, *(const uint64_t *)arg, 1);
}

/* Bytes of memory that the daemon holds. */
static int resident(double *bytes, const char *mountpoint)
{
	struct pfs_kernel_daemon daemon;
	unsigned long pages = 0;
	char path[64];
	FILE *file PFS_FCLOSE = NULL;

	PFS_TRY(pfs_kernel_daemon(&daemon, mountpoint));
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)daemon.pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*u %lu", &pages) != 1) /* NOLINT(cert-err34-c): the kernel's */
		return -EIO;
	*bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
	return 0;
}

static int large_in_turns(struct bench *bench, struct pfs_figures *start,
			  struct pfs_figures *memory, uint64_t nodes, uint64_t name_bytes)
{
	const char *ls[] = {"ls", bench->server.mountpoint, NULL};
	const char *cat[] = {"cat", bench->server.store, NULL};
	double seconds, bytes;

	PFS_TRY(pfs_bench_run(VERB, &seconds, cat));
	pfs_figures_add_yardstick(start, seconds);
	seconds = pfs_bench_now();
	PFS_TRY(pfs_bench_server_mount(&bench->server, LONG, "auto"));
	PFS_TRY(pfs_bench_run(VERB, NULL, ls));
	pfs_figures_add(start, pfs_bench_now() - seconds);
	PFS_TRY(resident(&bytes, bench->server.mountpoint));
	pfs_figures_add(memory, (bytes - (double)name_bytes) / (double)nodes);
	return pfs_bench_server_unmount(&bench->server);
}

static int bench_large(struct bench *bench)
{
	struct pfs_figures start = {
		.what = "mount the large store and list its root",
		.unit = "s",
		.yardstick = "cat of its file",
		.less_is_better = true,
		.wanted = 5,
	};
	struct pfs_figures memory = {
		.what = "resident memory a node, without names",
		.unit = "bytes",
		.less_is_better = true,
		.wanted = 128,
	};
	uint64_t nodes, name_bytes;
	uint64_t i;

	PFS_TRY(pfs_bench_server_fill(&bench->server, NULL, print_large, &bench->nodes));
	PFS_TRY(pfs_bench_sum_names(&nodes, &name_bytes, bench->server.store));
	for (i = 0; i < bench->runs; i++)
		PFS_TRY(large_in_turns(bench, &start, &memory, nodes, name_bytes));
	pfs_figures_print(&start, bench->json);
	pfs_figures_print(&memory, bench->json);
	return 0;
}

/* ---- */

static const struct part {
	const char *name;
	int (*run)(struct bench *bench);
} parts[] = {
	{"find", bench_find},	  {"requests", bench_requests}, {"files", bench_files},
	{"stream", bench_stream}, {"large", bench_large},
};

static bool is_part(const char *name)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(parts); i++)
		if (strcmp(parts[i].name, name) == 0)
			return true;
	return false;
}

/* Runs the parts that are named, or all. */
static int run_parts(struct bench *bench, char *const *names, int n_names)
{
	size_t i;
	int k;

	for (i = 0; i < PFS_COUNT(parts); i++) {
		for (k = 0; k < n_names && strcmp(names[k], parts[i].name) != 0; k++)
			;
		if (n_names == 0 || k < n_names)
			PFS_TRY(parts[i].run(bench));
	}
	return 0;
}

static void read_option(struct bench *bench, struct pfs_cmd_args *args, int option)
{
	uint64_t threads;

	if (option == RUNS)
		pfs_cmd_number(args, &bench->runs, RUNS, 1, PFS_BENCH_RUNS_MAX);
	else if (option == SECONDS)
		pfs_cmd_number(args, &bench->seconds, SECONDS, 1, 3600);
	else if (option == NODES)
		pfs_cmd_number(args, &bench->nodes, NODES, 2, UINT32_MAX - 1);
	else if (option == BYTES)
		pfs_cmd_number(args, &bench->server.bytes, BYTES, 1, INT64_MAX);
	else if (option == NULLFS)
		bench->server.nullfs = args->value;
	else if (option == THREADS) {
		pfs_cmd_number(args, &threads, THREADS, 1, PFS_MOUNT_THREADS_MAX);
		bench->server.threads = (unsigned)threads;
	}
}

int pfs_bench_mount(int argc, char **argv)
{
	struct bench bench = {
		.server = {.verb = VERB, .threads = 2, .bytes = UINT64_C(4) << 30},
		.runs = 5,
		.seconds = 2,
		.nodes = 8000000,
	};
	struct pfs_json json = {.out = stdout};
	const char *folder = getenv("TMPDIR");
	struct pfs_cmd_args args;
	int option, error, i;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == FOLDER)
			folder = args.value;
		else if (option == JSON)
			bench.json = &json;
		else
			read_option(&bench, &args, option);
	}
	for (i = 0; i < args.n_operands; i++)
		if (!is_part(args.operands[i]))
			pfs_cmd_reject(&args, "unknown part '%s'", args.operands[i]);
	if (pfs_cmd_end(&args, 0, -1))
		return args.status;
	if (pfs_bench_server_open(&bench.server, folder ? folder : "/tmp") != 0)
		return PFS_EXIT_FAILURE;
	if (bench.json)
		pfs_json_open(&json, NULL, '[');
	error = run_parts(&bench, args.operands, args.n_operands);
	if (bench.json)
		pfs_json_close(&json, ']');
	pfs_bench_server_close(&bench.server);
	return pfs_cmd_flush(VERB, error ? PFS_EXIT_FAILURE : PFS_EXIT_OK);
}
