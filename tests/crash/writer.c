/* SPDX-License-Identifier: MIT */
/* Changes a folder at random until the daemon below it is killed, and says afterwards whether what
 * is left is what the daemon had promised.
 *
 *	writer run FOLDER SEED RESULT     until a call fails as calls on a dead mount do
 *	writer verify FOLDER SEED RESULT  after the store was mounted again
 *	writer again FOLDER SEED RESULT   nothing changed since `verify`
 *
 * The operations follow from SEED alone, so `verify` can play them again on a model in memory.
 * RESULT says how many were begun and how many came before the last fsync that succeeded: the
 *folder must be exactly what it was after one of the operations in between, so an operation is
 *neither lost after an fsync, nor done in part, nor done when one before it is not.
 *
 * A write through the page cache is an operation of the kernel's, not the daemon's: one that begins
 * inside a page which is not cached comes as two requests.  Such a write may end at a page's
* end. */
#include <dirent.h>
#include <sys/xattr.h>

#include "tests/crash/model.h"
#include "tests/mount/probe.h"

struct result {
	uint64_t begun, synced, syncs;
	int64_t settled; /* what verify found: so many operations, */
	uint64_t part;	 /* and so many bytes of the next one */
};

/* ---- run ---- */

static int make(const struct op *op, const char *path)
{
	int fd;

	if (op->kind == DIRECTORY)
		return mkdir(path, op->mode | 0700);
	if (op->kind == LINK)
		return symlink(op->name, path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, op->mode);
	return fd < 0 ? -1 : close(fd);
}

static int on_file(const struct op *op, const char *path)
{
	int how = op->verb == SYNC ? O_RDONLY : O_WRONLY;
	int fd = open(path, how | (op->direct ? O_DIRECT : 0) | O_CLOEXEC);
	int status;

	if (fd < 0)
		return -1;
	if (op->verb == WRITE)
		status = pwrite(fd, buffer, op->size, (off_t)op->offset) == (ssize_t)op->size ? 0
											      : -1;
	else
		status = fsync(fd);
	if (status != 0)
		(void)close(fd);
	else
		status = close(fd);
	return status;
}

static int execute(const struct op *op)
{
	char path[PATH_MAX], to[PATH_MAX], up[PATH_MAX];
	char value[16];

	path_of(path, sizeof(path), op->node);
	path_of(up, sizeof(up), op->parent);
	(void)snprintf(to, sizeof(to), "%.4000s/%s", up, op->name);
	switch (op->verb) {
	case MAKE:
		return make(op, to);
	case TRUNCATE:
		return truncate(path, (off_t)op->offset);
	case RENAME:
		return rename(path, to);
	case REMOVE:
		return nodes[op->node].kind == DIRECTORY ? rmdir(path) : unlink(path);
	case CHMOD:
		return chmod(path, op->mode);
	case TAG:
		(void)snprintf(value, sizeof(value), "%u", op->tag);
		return setxattr(path, "user.tag", value, strlen(value), 0);
	default:
		return on_file(op, path);
	}
}

static void run(struct result *result)
{
	struct op op;

	for (;;) {
		if (!plan(&op, result->begun + 1))
			continue;
		result->begun++;
		if (execute(&op) != 0)
			break;
		apply(&op);
		if (op.verb == SYNC) {
			result->synced = result->begun;
			result->syncs++;
		}
	}
	if (errno != ENOTCONN && errno != ECONNABORTED && errno != EIO && errno != ESHUTDOWN)
		probe_fail(__FILE__, __LINE__, "operation %llu (verb %d): %s",
			   (unsigned long long)result->begun, op.verb, strerror(errno));
}

/* ---- verify ---- */

struct found {
	char path[PATH_MAX];
	enum kind kind;
	mode_t mode;
	uint32_t tag;
	size_t size;
	uint64_t hash;
};

static struct found *found;
static size_t n_found;

static void look_at(struct found *node)
{
	static char data[FILE_SIZE + 1];
	char value[16] = {0};
	struct stat st = probe_stat(node->path);
	int fd;

	node->kind = S_ISDIR(st.st_mode) ? DIRECTORY : S_ISLNK(st.st_mode) ? LINK : REGULAR;
	node->mode = st.st_mode & 07777;
	if (node->kind == LINK) {
		node->size = (size_t)OK(readlink(node->path, data, sizeof(data)));
		node->hash = hash_of(data, node->size);
		return;
	}
	if (node->kind != REGULAR) {
		node->hash = hash_of("", 0);
		return;
	}
	fd = (int)OK(open(node->path, O_RDONLY | O_CLOEXEC));
	node->size = (size_t)OK(read(fd, data, sizeof(data)));
	SAME(node->size, st.st_size);
	node->hash = hash_of(data, node->size);
	if (fgetxattr(fd, "user.tag", value, sizeof(value) - 1) > 0)
		node->tag = (uint32_t)strtoul(value, NULL, 10);
	(void)OK(close(fd));
}

static void collect(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	if (!dir)
		probe_fail(__FILE__, __LINE__, "opendir %s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		struct found *node;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		found = realloc(found, (n_found + 1) * sizeof(*found));
		TRUE(found);
		node = &found[n_found++];
		memset(node, 0, sizeof(*node));
		(void)snprintf(node->path, sizeof(node->path), "%.3000s/%s", path, entry->d_name);
		look_at(node);
		if (node->kind == DIRECTORY) {
			char below[PATH_MAX];

			memcpy(below, node->path, sizeof(below));
			collect(below);
		}
	}
	(void)closedir(dir);
}

/* Whether a node of the model is as found; why gets what differs. */
static bool as_found(const struct node *node, const struct found *seen, const char **why)
{
	*why = seen->kind != node->kind					    ? "kind"
	       : node->kind == REGULAR && seen->mode != node->mode	    ? "mode"
	       : seen->hash != node->hash || seen->size != node->size	    ? "content"
	       : node->kind == REGULAR && seen->tag != node->tag	    ? "attribute"
									    : NULL;
	return !*why;
}

/* Where content differs. */
static void show_difference(const struct node *node, const struct found *seen)
{
	static char data[FILE_SIZE + 1];
	size_t size, first, last;
	FILE *file = fopen(seen->path, "r");

	if (!file)
		return;
	size = fread(data, 1, sizeof(data), file);
	(void)fclose(file);
	(void)printf("        %zu bytes, wanted %zu", size, node->size);
	size = size < node->size ? size : node->size;
	for (first = 0; first < size && data[first] == node->data[first];)
		first++;
	for (last = size; last > first && data[last - 1] == node->data[last - 1];)
		last--;
	(void)printf("; others in [%zu, %zu)\n", first, last);
}

/* How much differs between model and folder; prints it if asked to. */
static size_t differences(bool print)
{
	size_t count = 0, matched = 0;
	char path[PATH_MAX];
	const char *why;

	for (int i = 1; i < NODES; i++) {
		size_t at;

		if (nodes[i].kind == FREE)
			continue;
		path_of(path, sizeof(path), i);
		for (at = 0; at < n_found && strcmp(found[at].path, path) != 0;)
			at++;
		matched += at < n_found;
		if (at == n_found)
			why = "missing";
		else if (as_found(&nodes[i], &found[at], &why))
			continue;
		count++;
		if (print)
			(void)printf("        %s: %s\n", path, why);
		if (print && at < n_found && nodes[i].kind == REGULAR)
			show_difference(&nodes[i], &found[at]);
	}
	if (print && matched < n_found)
		(void)printf("        %zu nodes too many\n", n_found - matched);
	return count + (n_found - matched);
}

struct search {
	uint64_t done; /* operations that the model has seen */
	size_t least;  /* differences so far, at... */
	uint64_t best;
};

/* Whether the model is what was found. */
static bool is_here(struct search *search)
{
	size_t count = differences(false);

	if (count < search->least)
		search->best = search->done;
	if (count < search->least)
		search->least = count;
	return count == 0;
}

static void next(struct search *search, struct op *op)
{
	while (!plan(op, search->done + 1))
		;
}

/* How much of a write is done when it ends with the page after `part` bytes; 0: all of it. */
static size_t next_part(const struct op *op, size_t part)
{
	if (op->verb != WRITE || op->direct)
		return 0;
	part += PAGE - (op->offset + part) % PAGE;
	return part < op->size ? part : 0;
}

static void apply_part(const struct op *op, size_t part)
{
	struct op some = *op;

	some.size = part;
	apply(&some);
}

/* Plays all up to `end` again and looks for the first state from `begin` on that is the folder's:
 * settled and part, settled -1 if there is none. */
static void replay(struct search *search, struct result *result, uint64_t begin, uint64_t end)
{
	struct op op;

	*search = (struct search){.least = SIZE_MAX};
	for (;; apply(&op), search->done++) {
		result->settled = (int64_t)search->done;
		result->part = 0;
		if (search->done >= begin && is_here(search))
			return;
		if (search->done == end)
			break;
		next(search, &op);
		while (search->done >= begin && (result->part = next_part(&op, result->part))) {
			apply_part(&op, result->part);
			if (is_here(search))
				return;
		}
	}
	result->settled = -1;
}

/* Plays so many operations and a part of the next. */
static void play(uint64_t operations, size_t part)
{
	struct search search = {.least = SIZE_MAX};
	struct op op;

	for (; search.done < operations; search.done++) {
		next(&search, &op);
		apply(&op);
	}
	if (!part)
		return;
	next(&search, &op);
	apply_part(&op, part);
}

static void reset(uint64_t seed)
{
	for (int i = 0; i < NODES; i++)
		discard(i);
	nodes[ROOT].kind = DIRECTORY;
	memset(buffer, 0, sizeof(buffer));
	rng = seed;
}

static bool verify(struct result *result, uint64_t seed)
{
	struct search search;

	replay(&search, result, result->synced, result->begun);
	if (result->settled >= 0)
		return true;
	(void)printf(
		"NOT OK  no state between operation %llu (synced) and %llu; nearest is %llu:\n",
		(unsigned long long)result->synced, (unsigned long long)result->begun,
		(unsigned long long)search.best);
	for (uint64_t at = search.best; at <= search.best + 1 && at <= result->begun; at++) {
		reset(seed);
		play(at, 0);
		(void)printf("        after %llu:\n", (unsigned long long)at);
		(void)differences(true);
	}
	return false;
}

static bool verify_again(const struct result *result)
{
	play((uint64_t)result->settled, result->part);
	return differences(true) == 0;
}

static void store_result(const char *path, const struct result *result)
{
	FILE *file = fopen(path, "w");

	if (!file ||
	    fprintf(file, "%llu %llu %llu %lld %llu\n", (unsigned long long)result->begun,
		    (unsigned long long)result->synced, (unsigned long long)result->syncs,
		    (long long)result->settled, (unsigned long long)result->part) < 0 ||
	    fclose(file) != 0)
		probe_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
}

static void load_result(const char *path, struct result *result)
{
	char line[128], *at = line;
	FILE *file = fopen(path, "r");

	if (!file || !fgets(line, sizeof(line), file))
		probe_fail(__FILE__, __LINE__, "%s: no result", path);
	(void)fclose(file);
	result->begun = strtoull(at, &at, 10);
	result->synced = strtoull(at, &at, 10);
	result->syncs = strtoull(at, &at, 10);
	result->settled = strtoll(at, &at, 10);
	result->part = strtoull(at, &at, 10);
}

int main(int argc, char **argv)
{
	struct result result = {.settled = -1};
	uint64_t seed;
	bool fine = true;

	if (argc != 5)
		return 2;
	(void)umask(0);
	seed = strtoull(argv[3], NULL, 10);
	reset(seed);
	if (chdir(argv[2]) != 0)
		probe_fail(__FILE__, __LINE__, "%s: %s", argv[2], strerror(errno));
	if (strcmp(argv[1], "run") == 0) {
		run(&result);
	} else {
		load_result(argv[4], &result);
		collect(".");
		fine = strcmp(argv[1], "again") == 0 ? verify_again(&result)
						     : verify(&result, seed);
	}
	store_result(argv[4], &result);
	return !fine;
}
