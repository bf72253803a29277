/* SPDX-License-Identifier: MIT */
/* primefs mount - serves a store as a filesystem until it is unmounted. */
#include "tools/cmd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/later.h"
#include "base/log.h"
#include "fs/mount/kernel.h"
#include "fs/mount/mount.h"
#include "fs/mount/query/turns.h"
#include "fs/mount/powers.h"
#include "meta/account.h"
#include "meta/store.h"
#include "tools/client/answer.h"
#include "tools/refresh/sourcewatch.h"

#define LOCK_WAIT_MS 10000 /* time for the daemon of an earlier mount to commit and end */

enum { FOREGROUND, DEBUG, SINGLE, OPTIONS, ENGINE };

static const struct pfs_cmd_option options[] = {
	[FOREGROUND] = {"foreground", 'f', NULL, "do not become a daemon; log to stderr"},
	[DEBUG] = {"debug", 'd', NULL, "log every request; implies -f"},
	[SINGLE] = {"single", 's', NULL, "one thread, one request at a time"},
	[OPTIONS] = {"options", 'o', "LIST", "mount options, separated by commas"},
	[ENGINE] = {"engine", 0, "NAME", "auto, host or cuda"},
	{0},
};

static const struct pfs_cmd command = {
	"mount",
	"STORE MOUNTPOINT",
	"Mounts a store; returns when the filesystem can be used.",
	options,
	"Mount options:\n"
	"  ro, rw                    read only, or not\n"
	"  allow_other               for users other than the one who mounts\n"
	"  noatime                   leave access times alone; else as relatime\n"
	"  nosuid nodev noexec sync dirsync nosymfollow, and suid dev exec async for root\n"
	"  writeback                 let the kernel gather writes before it sends them\n"
	"  threads=N                 threads that wait for requests\n"
	"  readdirplus=WHEN          auto, always or never: attributes with listings\n"
	"  timeout=SECONDS           how long the kernel may keep names and attributes\n"
	"  links=WHEN                auto, no or yes: read the originals of linked files\n"
	"  snapshot=WHEN             yes or no: use and leave STORE.img, to open it in a moment\n"
	"  history=HOW               keep what was before: for an age (12h, 2d, 8w), up to a size (500M), or no\n"
	"  watch[=HOW]               follow imported folders as they change: auto, fanotify, inotify, no\n"
	"  watch_limit=N             directories that inotify may watch\n"
	"  refresh=SECONDS           refresh from imported folders: now, and so long after each time\n"
	"  query_others              .query answers others, too, of what each may reach\n"
	"  query_memory=SIZE         that a statement may need; a sixteenth of the machine's, or 1G\n"
	"  query_memory_total=SIZE   that all statements together may; a quarter of the machine's\n"
	"  query_value=SIZE          that a value may have; 16M\n"
	"  query_time=SECONDS        that a statement may take; 0 is no limit\n"
	"  query_measure=WHEN        yes or no: measure the machine, to choose how statements run\n"
	"  default_permissions       always on\n"
	"  engine=NAME               as --engine\n"
	"  remount,ro  remount,rw    change a mount that is there\n"
	"\nprimefs umount MOUNTPOINT unmounts and waits until all is committed.\n",
};

struct job {
	struct pfs_mount_options options;
	bool foreground;
	char store[PATH_MAX];
	char mountpoint[PATH_MAX];
	int ready; /* a pipe to the process that waits, or -1 */
};

/* ---- checks ---- */

/* -ENOTCONN: it is a mount whose daemon is gone, even if the kernel still answers for it. */
static int resolve_mountpoint(char *out, const char *path)
{
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;
	struct stat stat_buffer;

	if (!realpath(path, out) || stat(out, &stat_buffer) != 0)
		return -errno;
	if (pfs_kernel_find(&found, out, NULL) == 0 && pfs_kernel_daemon(&daemon, out) == -ENOTCONN)
		return -ENOTCONN;
	return S_ISDIR(stat_buffer.st_mode) ? 0 : -ENOTDIR;
}

static int check_paths(struct job *job, char *const *operands)
{
	size_t len;
	int error;

	if (!realpath(operands[0], job->store))
		return pfs_cmd_fail("mount", "%s: %s", operands[0], strerror(errno));
	error = resolve_mountpoint(job->mountpoint, operands[1]);
	if (error == -ENOTCONN)
		return pfs_cmd_fail("mount",
				    "%s: a mount whose daemon is gone; first run primefs umount %s",
				    operands[1], operands[1]);
	if (error)
		return pfs_cmd_fail("mount", "%s: %s; mount on a directory", operands[1],
				    strerror(-error));
	len = strlen(job->mountpoint);
	if (strncmp(job->store, job->mountpoint, len) == 0 &&
	    (job->store[len] == '/' || job->mountpoint[len - 1] == '/'))
		return pfs_cmd_fail("mount",
				    "%s: lies below its own mountpoint %s; mount elsewhere",
				    operands[0], job->mountpoint);
	return PFS_EXIT_OK;
}

/* Fails if the store is mounted: then it will not be free soon, and waiting for its lock is of no
 * use. */
static int check_mounted(const struct job *job)
{
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;

	if (pfs_kernel_find(&found, NULL, job->store) != 0 ||
	    pfs_kernel_daemon(&daemon, found.mountpoint) != 0 ||
	    (daemon.read_only && (job->options.flags & MS_RDONLY)))
		return PFS_EXIT_OK;
	return pfs_cmd_fail("mount", "%s: mounted on %s by process %d; unmount it first",
			    job->store, found.mountpoint, (int)daemon.pid);
}

/* fusermount3 grants other users than root neither suid nor dev. */
static int check_powers(unsigned long flags, const char *store)
{
	char why[PATH_MAX + 256];

	if ((flags & MS_NOSUID && flags & MS_NODEV) || geteuid() != 0 ||
	    pfs_powers_check(why, sizeof(why), store) == 0)
		return PFS_EXIT_OK;
	return pfs_cmd_fail("mount", "%s", why);
}

/* ---- serving ---- */

/* Tries the device here, in the process that will use it. */
static int check_engine(const struct job *job)
{
	struct pfs_engine *engine;
	struct pfs_engine_info info = {.degraded = true};

	if (job->options.engine != PFS_ENGINE_CUDA)
		return PFS_EXIT_OK;
	if (pfs_engine_open(&engine, PFS_ENGINE_CUDA) == 0) {
		pfs_engine_describe(engine, &info);
		pfs_engine_close(engine);
	}
	return info.degraded ? pfs_cmd_fail("mount", PFS_CMD_NO_DEVICE) : PFS_EXIT_OK;
}

/* Only some users may give an option by which a store is trusted. */
static int check_links(const struct job *job)
{
	struct stat attr;

	if (job->options.links != PFS_LINKS_YES || geteuid() == 0 ||
	    (stat(job->store, &attr) == 0 && attr.st_uid == geteuid()))
		return PFS_EXIT_OK;
	return pfs_cmd_fail("mount", "%s: -o links=yes is for its owner and root alone",
			    job->store);
}

/* This process has threads and locks, so another program reads the store: it is started anew,
 * leaves a process of its own at the work, and ends. */
static void make_image_file(const char *store)
{
	char verb[] = "primefs", what[] = "optimize", option[] = "--image", path[PATH_MAX];
	char *words[] = {verb, what, option, path, NULL};
	posix_spawn_file_actions_t nowhere;
	posix_spawnattr_t alike;
	sigset_t none;
	pid_t child;

	(void)snprintf(path, sizeof(path), "%s", store);
	(void)sigemptyset(&none);
	(void)posix_spawnattr_init(&alike);
	(void)posix_spawnattr_setsigmask(&alike, &none);
	(void)posix_spawnattr_setflags(&alike, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawn_file_actions_init(&nowhere);
	for (int fd = 0; fd < 3; fd++)
		(void)posix_spawn_file_actions_addopen(&nowhere, fd, "/dev/null", O_RDWR, 0);
	if (!posix_spawn(&child, "/proc/self/exe", &nowhere, &alike, words, environ))
		(void)waitpid(child, NULL, 0);
	(void)posix_spawn_file_actions_destroy(&nowhere);
	(void)posix_spawnattr_destroy(&alike);
}

static int load(struct pfs_tree **tree, const struct job *job)
{
	bool leaves = !job->options.no_image_file && !(job->options.flags & MS_RDONLY);
	const struct pfs_tree_options tree_options = {
		.read_only = job->options.flags & MS_RDONLY,
		.no_atime = job->options.flags & MS_NOATIME,
		.wait_ms = LOCK_WAIT_MS,
		.engine = job->options.engine,
		.links = job->options.links,
		.history = job->options.sets_history ? &job->options.history : NULL,
		.no_image_file = job->options.no_image_file,
		.leave_image_file = leaves,
		.make_image_file = leaves ? make_image_file : NULL,
	};
	char why[2 * PATH_MAX];
	int error = pfs_tree_open(tree, job->store, &tree_options);

	if (!error && pfs_tree_links_refused(*tree, why, sizeof(why)))
		pfs_cmd_say("mount", "%s", why);
	if (!error)
		return PFS_EXIT_OK;
	pfs_store_explain(why, sizeof(why), job->store, error);
	return pfs_cmd_fail("mount", "%s", why);
}

/* Blocks the signals that end the daemon; *fd becomes readable with them. */
static int catch_signals(int *fd)
{
	sigset_t all, ending;

	(void)sigfillset(&all);
	(void)sigemptyset(&ending);
	(void)sigaddset(&ending, SIGINT);
	(void)sigaddset(&ending, SIGTERM);
	(void)sigaddset(&ending, SIGHUP);
	/* every thread that is started from here has this mask, too */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	*fd = signalfd(-1, &ending, SFD_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

/* Lets go of the terminal and tells the process that waits. */
static void report_ready(struct job *job)
{
	int null;

	if (job->ready < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			(void)close(null);
	}
	pfs_log_open(PFS_LOG_INFO, true);
	if (write(job->ready, "", 1) != 1)
		pfs_warning("the mounting process is gone");
	(void)close(job->ready);
	job->ready = -1;
}

/* Opens the socket by which commands ask the daemon what they cannot find out themselves while the
 * store is mounted. A reader may be unable to make the socket, and need not: commands can then read
 * the store, too. */
static struct pfs_control *open_control(struct pfs_answered *answered, struct pfs_turns *turns,
					bool read_only)
{
	const struct pfs_control_options control_options = {
		.store = answered->store,
		.verbs = pfs_answers,
		.arg = answered,
		.turns = turns,
		.alone = !read_only,
	};
	struct pfs_control *control;
	int error = pfs_control_open(&control, &control_options);

	if (error && !read_only)
		pfs_warning("%s: cannot listen for commands: %s; they will not be answered while "
			    "the store is mounted",
			    answered->store, strerror(-error));
	else if (control && *pfs_control_name(control))
		pfs_warning("%s" PFS_CONTROL_SUFFIX
			    ": cannot be put there; commands find the daemon "
			    "by its mountpoint",
			    answered->store);
	return control;
}

/* A source that cannot be watched is served all the same. */
static struct pfs_sourcewatch *open_watch(struct pfs_tree *tree, const struct job *job)
{
	static const enum pfs_sourcewatch_means means[] = {
		[PFS_FOLLOW_NOT] = PFS_SOURCEWATCH_REFRESH,
		[PFS_FOLLOW_AUTO] = PFS_SOURCEWATCH_FANOTIFY,
		[PFS_FOLLOW_FANOTIFY] = PFS_SOURCEWATCH_FANOTIFY,
		[PFS_FOLLOW_INOTIFY] = PFS_SOURCEWATCH_INOTIFY,
	};
	const struct pfs_sourcewatch_options how = {
		.store = job->store,
		.best = means[job->options.watch],
		.limit = job->options.watch_limit,
		.pause_ms = job->options.refresh_ms,
	};
	struct pfs_sourcewatch *watch = NULL;
	char why[PFS_REFRESH_EXPLAINED];
	int error;

	if (job->options.flags & MS_RDONLY || !(job->options.watch || job->options.refresh_ms))
		return NULL;
	error = pfs_refresh_possible(tree);
	if (error) {
		pfs_refresh_explain(why, sizeof(why), error);
		pfs_warning("%s: source not followed: %s", job->store, why);
	}
	error = pfs_sourcewatch_open(&watch, tree, &how);
	if (error)
		pfs_warning("%s: will not be refreshed: %s", job->store, strerror(-error));
	return watch;
}

static void start_watch(struct pfs_sourcewatch *watch, const struct job *job)
{
	int error = watch ? pfs_sourcewatch_start(watch) : 0;

	if (error)
		pfs_warning("%s: will not be refreshed: %s", job->store, strerror(-error));
}

static void wait_for_end(const struct pfs_mount *served, int signals)
{
	struct pollfd events[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = pfs_mount_event(served), .events = POLLIN},
	};

	while (poll(events, PFS_COUNT(events), -1) < 0 && errno == EINTR)
		;
}

/* Checks what can be checked before the tree is served, and opens it. */
static int prepare(struct pfs_tree **tree, const struct job *job)
{
	int status;

	pfs_large_is_given_back();
	status = check_engine(job);
	if (status == PFS_EXIT_OK)
		status = check_links(job);
	if (status == PFS_EXIT_OK)
		status = load(tree, job);
	if (status)
		return status;
	if (job->foreground && !job->options.debug)
		pfs_log_open(PFS_LOG_INFO, false);
	if (job->options.query_memory_total)
		pfs_accounts_limit(job->options.query_memory_total);
	return PFS_EXIT_OK;
}

/* Answers commands and follows the source until a signal comes, or the filesystem is unmounted;
 * then unmounts and frees it. */
static void serve_mounted(struct job *job, struct pfs_mount *served, struct pfs_answered *answered,
			  int signals)
{
	struct pfs_sourcewatch *watch = open_watch(answered->tree, job);
	struct pfs_turns *turns = pfs_mount_turns(served);
	struct pfs_control *control;

	answered->watch = watch;
	control = open_control(answered, turns, job->options.flags & MS_RDONLY);
	if (control && *pfs_control_name(control))
		pfs_mount_answers_at(served, pfs_control_name(control));
	report_ready(job);
	start_watch(watch, job);
	wait_for_end(served, signals);
	pfs_sourcewatch_stop(watch);
	pfs_mount_close(served);
	/* last, so that there is an answer as long as there is a mount */
	pfs_control_close(control);
	pfs_turns_close(turns);
	pfs_sourcewatch_close(watch);
}

static int serve(struct job *job)
{
	struct pfs_answered answered = {
		.store = job->store,
		.mounted = true,
		.memory_limit = job->options.query_memory,
		.value_limit = job->options.query_value,
		.time_limit_ms = job->options.query_time_ms,
	};
	struct pfs_mount *served = NULL;
	int signals PFS_CLOSE = -1;
	int error = catch_signals(&signals);
	int status;

	if (error)
		return pfs_cmd_fail("mount", "signals: %s", strerror(-error));
	status = prepare(&answered.tree, job);
	if (status)
		return status;
	error = pfs_tree_start(answered.tree);
	if (!error)
		error = pfs_queries_open(&answered.queries, answered.tree);
	if (!error)
		error = pfs_mount_open(&served, answered.tree, answered.queries, job->store,
				       job->mountpoint, &job->options);
	if (!error)
		serve_mounted(job, served, &answered, signals);
	pfs_queries_close(answered.queries);
	if (pfs_tree_close(answered.tree) != 0 || error)
		return PFS_EXIT_FAILURE; /* the reason has been logged */
	return PFS_EXIT_OK;
}

/* ---- becoming a daemon ---- */

/* Waits in the first process until the daemon is ready, or exits. */
static int await_daemon(pid_t daemon, int ready)
{
	char byte;
	int status;
	ssize_t n;

	do
		n = read(ready, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return PFS_EXIT_OK;
	while (waitpid(daemon, &status, 0) < 0)
		if (errno != EINTR)
			return PFS_EXIT_FAILURE;
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	return pfs_cmd_fail("mount", "the daemon ended before the filesystem could be used");
}

/* Leaves the terminal, but not the session: setsid() would put the daemon into a scheduling group
 * of its own (sched(7), "The autogroup feature"), and a busy filesystem whose clients are in
 * another one serves a third fewer requests. */
static void leave_terminal(void)
{
	int terminal PFS_CLOSE = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	(void)setpgid(0, 0);
	if (terminal >= 0)
		(void)ioctl(terminal, TIOCNOTTY);
}

/* Locks and pipes of whoever mounts, a shell script say, which a daemon would keep for ever. */
static void close_inherited(int kept)
{
	if (kept > STDERR_FILENO + 1)
		(void)close_range(STDERR_FILENO + 1, (unsigned)kept - 1, 0);
	(void)close_range((unsigned)kept + 1, ~0U, 0);
}

/* Store and engine are opened after the fork, which neither SQLite's locks nor CUDA survive. */
static int serve_as_daemon(struct job *job)
{
	int ends[2];
	pid_t daemon;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return pfs_cmd_fail("mount", "pipe: %s", strerror(errno));
	daemon = fork();
	if (daemon < 0)
		return pfs_cmd_fail("mount", "fork: %s", strerror(errno));
	if (daemon > 0) {
		(void)close(ends[1]);
		return await_daemon(daemon, ends[0]);
	}
	job->ready = ends[1];
	close_inherited(job->ready);
	leave_terminal();
	if (chdir("/") != 0)
		return pfs_cmd_fail("mount", "/: %s", strerror(errno));
	return serve(job);
}

/* ---- remounting ---- */

static int commit(const char *mountpoint)
{
	int fd PFS_CLOSE = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) != 0 ? -errno : 0;
}

static int remount(const struct job *job)
{
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;
	int error = pfs_kernel_find(&found, job->mountpoint, NULL);
	unsigned long said = job->options.said, flags;
	bool read_only;

	if (error)
		return pfs_cmd_fail("mount", "%s: not a mounted store", job->mountpoint);
	flags = (job->options.flags & said) | (found.flags & ~said);
	read_only = flags & MS_RDONLY;
	if (check_powers(flags, found.source) != PFS_EXIT_OK)
		return PFS_EXIT_FAILURE;
	if (!read_only && pfs_kernel_daemon(&daemon, job->mountpoint) == 0 && daemon.read_only)
		return pfs_cmd_fail("mount",
				    "%s: the store was opened read-only; unmount and mount again",
				    job->mountpoint);
	if (read_only)
		error = commit(job->mountpoint);
	if (error)
		return pfs_cmd_fail("mount", "%s: cannot commit: %s", job->mountpoint,
				    strerror(-error));
	if (mount(NULL, job->mountpoint, NULL, flags, NULL) != 0)
		return pfs_cmd_fail("mount", "%s: cannot remount: %s", job->mountpoint,
				    strerror(errno));
	return PFS_EXIT_OK;
}

/* ---- */

static void apply_options(struct pfs_cmd_args *args, struct job *job)
{
	char why[512];

	if (pfs_mount_options_parse(&job->options, why, sizeof(why), args->value) != 0)
		pfs_cmd_reject(args, "%s", why);
}

int pfs_cmd_mount(int argc, char **argv)
{
	struct job job = {.ready = -1};
	struct pfs_cmd_args args;
	int option, status;

	pfs_mount_options_init(&job.options);
	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == OPTIONS)
			apply_options(&args, &job);
		else if (option == ENGINE)
			pfs_cmd_engine(&args, &job.options.engine);
		job.options.debug |= option == DEBUG;
		job.options.single |= option == SINGLE;
		job.foreground |= option == FOREGROUND || option == DEBUG;
	}
	if (pfs_cmd_end(&args, 2, 2))
		return args.status;
	status = check_paths(&job, args.operands);
	if (status == PFS_EXIT_OK && (job.options.flags & MS_REMOUNT))
		return remount(&job);
	if (status == PFS_EXIT_OK && job.options.sets_history && job.options.flags & MS_RDONLY)
		status = pfs_cmd_fail("mount", "history=: changes the store; mount it for writing");
	if (status == PFS_EXIT_OK)
		status = check_mounted(&job);
	if (status == PFS_EXIT_OK)
		status = check_powers(job.options.flags, job.store);
	if (status != PFS_EXIT_OK)
		return status;
	if (job.options.debug)
		pfs_log_open(PFS_LOG_DEBUG, false);
	return job.foreground ? serve(&job) : serve_as_daemon(&job);
}
