/* SPDX-License-Identifier: MIT */
/* The half of bench query that needs a mount: measures primefs find and the files of .query beside
 * other programs with the same answers. */
#include "tools/bench/query.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PIECE	   ((size_t)1 << 20)
#define ALIGNMENT  4096 /* that O_DIRECT requires */
#define WORDS_MAX  12
#define PEERS_MAX  3
#define KEPT	   "86400" /* seconds that the kernel may keep names and attributes */
#define LONG	   4.0	   /* seconds: one run that takes so long is enough */
#define PATHS_RATE 1e7	   /* paths a second: fast enough, whatever the yardstick does */

/* ---- commands; in their words $dir is the tree as a directory, $mnt the mount, $db plocate's ----
 *
 * The first peer is GNU's; it is run on the mount and, with --beside, on the directory, too. */

struct peer {
	const char *name;
	const char *words[WORDS_MAX];
};

static const struct command {
	const char *what;
	const char *ours[WORDS_MAX];
	double wanted[PEERS_MAX];
	struct peer peers[PEERS_MAX];
} commands[] = {
	{"find -name of a prefix",
	 {"find", "$mnt", "-name", "$prefix*"},
	 {20, 1},
	 {{"find", {"find", "$dir", "-name", "$prefix*"}},
	  {"plocate", {"plocate", "-d", "$db", "-b", "$prefix*"}},
	  {"fd", {"fdfind", "-u", "-g", "$prefix*", "$dir"}}}},
	{"find -name of a part",
	 {"find", "$mnt", "-name", "*$part*"},
	 {20, 1},
	 {{"find", {"find", "$dir", "-name", "*$part*"}},
	  {"plocate", {"plocate", "-d", "$db", "-b", "*$part*"}},
	  {"fd", {"fdfind", "-u", "-F", "$part", "$dir"}}}},
	{"find -size",
	 {"find", "$mnt", "-type", "f", "-size", "+1000k"},
	 {20},
	 {{"find", {"find", "$dir", "-type", "f", "-size", "+1000k"}},
	  {"fd", {"fdfind", "-u", "-t", "f", "-S", "+1000k", ".", "$dir"}}}},
	{"find of everything", {"find", "$mnt"}, {20}, {{"find", {"find", "$dir"}}}},
	{"find -ls of directories",
	 {"find", "$mnt", "-type", "d", "-ls"},
	 {20},
	 {{"find", {"find", "$dir", "-type", "d", "-ls"}}}},
	{"du -s", {"du", "-s", "$mnt"}, {20}, {{"du", {"du", "-s", "$dir"}}}},
	{"du -h -d 1",
	 {"du", "-h", "-d", "1", "$mnt"},
	 {20},
	 {{"du", {"du", "-h", "-d", "1", "$dir"}}}},
	{"du of every directory", {"du", "$mnt"}, {20}, {{"du", {"du", "$dir"}}}},
	{"ls -R", {"ls", "-R", "$mnt"}, {20}, {{"ls", {"ls", "-R", "$dir"}}}},
	{"ls -lR", {"ls", "-lR", "$mnt"}, {20}, {{"ls", {"ls", "-lR", "$dir"}}}},
};

struct words {
	const char *argv[WORDS_MAX + 2];
	char text[WORDS_MAX][PATH_MAX + 64];
};

/* Puts the values in place of the words; `beside` comes first if the command is not this program's.
 */
static void spell(struct words *out, const struct pfs_bench_query *bench, const char *const *from,
		  const char *beside)
{
	char db[PATH_MAX];
	const char *const values[][2] = {
		{"$dir", beside ? beside : bench->server.mountpoint},
		{"$mnt", bench->server.mountpoint},
		{"$db", db},
		{"$prefix", bench->prefix},
		{"$part", bench->part},
	};
	size_t n = 0;

	(void)snprintf(db, sizeof(db), "%s/plocate.db", bench->server.folder);
	for (; n < WORDS_MAX && from[n]; n++) {
		const char *dollar = strchr(from[n], '$');
		size_t i = 0;

		while (dollar && i < PFS_COUNT(values) &&
		       strncmp(dollar, values[i][0], strlen(values[i][0])) != 0)
			i++;
		if (!dollar || i == PFS_COUNT(values))
			(void)snprintf(out->text[n], sizeof(out->text[n]), "%s", from[n]);
		else
			(void)snprintf(out->text[n], sizeof(out->text[n]), "%.*s%s%s",
				       (int)(dollar - from[n]), from[n], values[i][1],
				       dollar + strlen(values[i][0]));
		out->argv[n] = out->text[n];
	}
	out->argv[n] = NULL;
}

static int time_command(void *arg, double *seconds)
{
	return pfs_bench_run(PFS_BENCH_QUERY, seconds, arg);
}

/* The first run finds caches in any state, and does not count, unless it takes so long that this
 * does not matter and there is no second one. */
static int time_often(const struct pfs_bench_query *bench, struct pfs_figures *figures,
		      void (*add)(struct pfs_figures *figures, double value), struct words *words)
{
	double seconds;
	int error = pfs_bench_run(PFS_BENCH_QUERY, &seconds, words->argv);

	if (error)
		return error;
	if (seconds < LONG)
		return pfs_bench_repeat(bench, figures, add, time_command, words->argv);
	add(figures, seconds * 1e3);
	return 0;
}

static int time_both(struct pfs_bench_query *bench, struct pfs_figures *figures, struct words *mine,
		     struct words *others)
{
	PFS_TRY(time_often(bench, figures, pfs_figures_add, mine));
	if (time_often(bench, figures, pfs_figures_add_yardstick, others))
		return 0; /* which has been said: plocate that finds nothing */
	return pfs_bench_query_print(bench, figures);
}

static int beside_peer(struct pfs_bench_query *bench, const struct command *command, size_t number,
		       const char *beside)
{
	const struct peer *peer = &command->peers[number];
	const char *ours[WORDS_MAX + 1] = {pfs_bench_primefs()};
	struct words mine, others;
	char name[64];
	struct pfs_figures figures = {
		.what = command->what,
		.unit = "ms",
		.yardstick = name,
		.less_is_better = true,
		.wanted_ratio = command->wanted[number],
	};

	if (!pfs_bench_is_installed(peer->words[0])) {
		pfs_bench_query_lacks(bench, peer->words[0]);
		return 0;
	}
	(void)snprintf(name, sizeof(name), "%s%s", peer->name, beside ? " on the original" : "");
	for (size_t i = 0; i + 1 < WORDS_MAX && command->ours[i]; i++)
		ours[i + 1] = command->ours[i];
	spell(&mine, bench, ours, beside);
	spell(&others, bench, peer->words, beside);
	return time_both(bench, &figures, &mine, &others);
}

static int index_for_plocate(const struct pfs_bench_query *bench)
{
	static const char *const from[] = {"updatedb",	   "-l", "0",  "--prunefs", "",
					   "--prunepaths", "",	 "-U", "$dir",	    "-o",
					   "$db",	   NULL};
	struct words words;

	if (!pfs_bench_is_installed(from[0]))
		return 0;
	spell(&words, bench, from, bench->beside);
	return pfs_bench_run(PFS_BENCH_QUERY, NULL, words.argv);
}

/* The first command is run in both places; programs that have an index of their own, or read
 * everything themselves, run where the files are. */
static int beside_command(struct pfs_bench_query *bench, const struct command *command,
			  size_t number)
{
	if (number == 0 || !bench->beside)
		PFS_TRY(beside_peer(bench, command, number, NULL));
	return bench->beside ? beside_peer(bench, command, number, bench->beside) : 0;
}

static int bench_commands(struct pfs_bench_query *bench)
{
	PFS_TRY(index_for_plocate(bench));
	for (size_t i = 0; i < PFS_COUNT(commands); i++)
		for (size_t k = 0; k < PEERS_MAX && commands[i].peers[k].name; k++)
			PFS_TRY(beside_command(bench, &commands[i], k));
	return 0;
}

/* ---- .query ---- */

static int fail(const char *path)
{
	int error = -errno;

	(void)pfs_cmd_fail(PFS_BENCH_QUERY, "%s: %s", path, strerror(-error));
	return error;
}

/* Reads to the end, or `limit` bytes; lines may be NULL. */
static int read_file(const char *path, int flags, uint64_t limit, uint64_t *bytes, uint64_t *lines)
{
	int fd PFS_CLOSE = open(path, O_RDONLY | O_CLOEXEC | flags);
	char *piece PFS_FREE = aligned_alloc(ALIGNMENT, PIECE);
	ssize_t got = 0;

	*bytes = 0;
	if (!piece)
		errno = ENOMEM;
	if (fd < 0 || !piece)
		return fail(path);
	while (*bytes < limit && (got = read(fd, piece, PIECE)) > 0) {
		*bytes += (uint64_t)got;
		for (const char *at = piece;
		     lines && (at = memchr(at, '\n', (size_t)(piece + got - at))); at++)
			++*lines;
	}
	return got < 0 ? fail(path) : 0;
}

struct reading {
	char path[PATH_MAX + 16];
	int flags;
	uint64_t limit, bytes;
};

static int time_reading(void *arg, double *seconds)
{
	struct reading *reading = arg;
	double started = pfs_bench_now();

	PFS_TRY(read_file(reading->path, reading->flags, reading->limit, &reading->bytes, NULL));
	*seconds = pfs_bench_now() - started;
	return 0;
}

static int bench_paths(struct pfs_bench_query *bench)
{
	struct reading paths = {.limit = UINT64_MAX}, big = {.flags = O_DIRECT};
	char what[128];
	struct pfs_figures figures = {
		.what = what,
		.unit = "ms",
		.yardstick = "nullfs, as many bytes",
		.less_is_better = true,
		.wanted_ratio = 0.8,
	};
	uint64_t lines = 0;

	(void)snprintf(paths.path, sizeof(paths.path), "%s/.query/paths", bench->server.mountpoint);
	(void)snprintf(big.path, sizeof(big.path), "%s/big", bench->server.mountpoint);
	PFS_TRY(read_file(paths.path, 0, UINT64_MAX, &big.limit, &lines));
	PFS_TRY(pfs_bench_repeat(bench, &figures, pfs_figures_add, time_reading, &paths));
	PFS_TRY(pfs_bench_server_unmount(&bench->server));
	bench->server.bytes = big.limit;
	PFS_TRY(pfs_bench_server_mount_yardstick(&bench->server, KEPT));
	PFS_TRY(pfs_bench_repeat(bench, &figures, pfs_figures_add_yardstick, time_reading, &big));
	PFS_TRY(pfs_bench_server_unmount_yardstick(&bench->server));
	(void)snprintf(what, sizeof(what), ".query/paths read: %llu lines, %llu bytes",
		       (unsigned long long)lines, (unsigned long long)big.limit);
	figures.wanted = (double)lines / PATHS_RATE * 1e3;
	return pfs_bench_query_print(bench, &figures);
}

/* Measures a statement's way through .query/run, which is opened and closed. */
static int time_virtual(void *arg, double *seconds)
{
	static const char sql[] = "SELECT 1";
	double started = pfs_bench_now();
	int fd PFS_CLOSE = open(arg, O_RDWR | O_CLOEXEC);
	char row[64];

	if (fd < 0 || write(fd, sql, strlen(sql)) < 0 || read(fd, row, sizeof(row)) < 0)
		return fail(arg);
	*seconds = pfs_bench_now() - started;
	return 0;
}

static int bench_overhead(struct pfs_bench_query *bench, double bare_ms)
{
	char path[PATH_MAX + 16];
	struct pfs_figures figures = {
		.what = "SELECT 1 through .query/run",
		.unit = "ms",
		.yardstick = "without a mount",
		.less_is_better = true,
		.wanted = 1 + bare_ms,
	};

	(void)snprintf(path, sizeof(path), "%s/.query/run", bench->server.mountpoint);
	PFS_TRY(pfs_bench_repeat(bench, &figures, pfs_figures_add, time_virtual, path));
	pfs_figures_add_yardstick(&figures, bare_ms);
	return pfs_bench_query_print(bench, &figures);
}

int pfs_bench_query_mount(struct pfs_bench_query *bench, double bare_ms)
{
	char db[PATH_MAX];
	int error;

	bench->server.other = bench->store;
	PFS_TRY(pfs_bench_server_mount(&bench->server, KEPT, "auto"));
	error = bench_commands(bench);
	(void)snprintf(db, sizeof(db), "%s/plocate.db", bench->server.folder);
	(void)unlink(db);
	PFS_TRY(error);
	PFS_TRY(bench_overhead(bench, bare_ms));
	return bench_paths(bench);
}
