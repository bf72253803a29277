/* SPDX-License-Identifier: MIT */
/* Changes a folder at random until the daemon below it is killed, and says afterwards whether what
 * is left is what the daemon had promised.
 *
 *	writer run FOLDER SEED RESULT     until a call fails as calls on a dead mount do
 *	writer verify FOLDER SEED RESULT  after the store was mounted again
 *	writer again FOLDER SEED RESULT   nothing changed since `verify`
 *
 * The operations follow from SEED alone, so `verify` can play them again on a model in memory.
 * RESULT says how many were begun and how many came before the last fsync that succeeded: the folder
 * must be exactly what it was after one of the operations in between, so an operation is neither
 * lost after an fsync, nor done in part, nor done when one before it is not. */
#include <dirent.h>
#include <limits.h>
#include <sys/xattr.h>

#include "tests/mount/probe.h"

enum { NODES = 64, ROOT = 0, FILE_SIZE = 65536, WRITE_SIZE = 20000, NAME_SIZE = 24, SYNC_EVERY = 12 };

enum kind { FREE, DIRECTORY, REGULAR, LINK };

struct node {
	enum kind kind;
	int parent;
	char name[NAME_SIZE];
	mode_t mode;
	uint32_t tag; /* value of user.tag, 0: none */
	size_t size;
	char *data;
	uint64_t hash;
};

static struct node nodes[NODES];
static uint64_t rng;
static char buffer[WRITE_SIZE];

enum verb { MAKE, WRITE, TRUNCATE, RENAME, REMOVE, CHMOD, TAG, SYNC };

struct op {
	enum verb verb;
	int node;   /* acted upon; for MAKE a free place */
	int parent; /* of what is made or renamed */
	int target; /* that a rename replaces, or -1 */
	enum kind kind;
	char name[NAME_SIZE];
	size_t offset, size;
	mode_t mode;
	uint32_t tag;
};

struct result {
	uint64_t begun, synced, syncs;
	int64_t settled; /* what verify found */
};

static uint32_t draw(uint32_t below)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((rng >> 33) % below);
}

static uint64_t hash_of(const void *data, size_t size)
{
	uint64_t hash = 14695981039346656037u, word;
	const char *at = data;

	for (; size >= sizeof(word); at += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	while (size-- > 0)
		hash = (hash ^ (unsigned char)*at++) * 1099511628211u;
	return hash;
}

static void path_of(char *path, size_t room, int node)
{
	char up[PATH_MAX];

	if (node == ROOT) {
		(void)snprintf(path, room, ".");
		return;
	}
	path_of(up, sizeof(up), nodes[node].parent);
	(void)snprintf(path, room, "%.3000s/%s", up, nodes[node].name);
}

/* ---- the model ---- */

static int draw_node(enum kind kind)
{
	int found = -1;
	uint32_t seen = 0;

	for (int i = 0; i < NODES; i++)
		if (nodes[i].kind == kind && i != ROOT && draw(++seen) == 0)
			found = i;
	return found;
}

static int draw_directory(void)
{
	int node = draw(3) ? draw_node(DIRECTORY) : ROOT;

	return node < 0 ? ROOT : node;
}

static bool has_children(int node)
{
	for (int i = 1; i < NODES; i++)
		if (nodes[i].kind != FREE && nodes[i].parent == node)
			return true;
	return false;
}

static int depth_of(int node)
{
	return node == ROOT ? 0 : 1 + depth_of(nodes[node].parent);
}

static bool lies_in(int node, int ancestor)
{
	for (; node != ROOT; node = nodes[node].parent)
		if (node == ancestor)
			return true;
	return ancestor == ROOT;
}

static bool plan_make(struct op *op, uint64_t number)
{
	for (op->node = 1; op->node < NODES && nodes[op->node].kind != FREE;)
		op->node++;
	op->parent = draw_directory();
	op->kind = draw(4) ? REGULAR : draw(3) ? DIRECTORY : LINK;
	(void)snprintf(op->name, sizeof(op->name), "n%llu", (unsigned long long)number);
	return op->node < NODES && depth_of(op->parent) < 8;
}

static bool plan_rename(struct op *op, uint64_t number)
{
	enum kind kind = draw(3) ? REGULAR : DIRECTORY;

	op->node = draw_node(kind);
	op->parent = draw_directory();
	if (op->node < 0 || lies_in(op->parent, op->node) || depth_of(op->parent) >= 8)
		return false;
	op->target = draw(2) ? draw_node(kind) : -1;
	if (op->target == op->node || (op->target >= 0 && has_children(op->target)) ||
	    (op->target >= 0 && lies_in(nodes[op->target].parent, op->node)))
		op->target = -1;
	if (op->target >= 0) {
		op->parent = nodes[op->target].parent;
		(void)snprintf(op->name, sizeof(op->name), "%s", nodes[op->target].name);
	} else {
		(void)snprintf(op->name, sizeof(op->name), "r%llu", (unsigned long long)number);
	}
	return true;
}

/* The next operation; false: this one is nothing. */
static bool plan(struct op *op, uint64_t number)
{
	static const enum verb verbs[] = {MAKE, MAKE, MAKE, WRITE, WRITE, WRITE, WRITE, TRUNCATE,
					  RENAME, RENAME, RENAME, REMOVE, REMOVE, CHMOD, TAG};

	*op = (struct op){.verb = verbs[draw(ARRAY_SIZE(verbs))], .target = -1};
	if (draw(SYNC_EVERY) == 0)
		op->verb = SYNC;
	op->offset = draw(FILE_SIZE - WRITE_SIZE);
	op->size = 1 + draw(draw(2) ? WRITE_SIZE : 100);
	op->mode = 0600 + draw(0200);
	op->tag = 1 + draw(1000000);
	for (size_t i = 0; op->verb == WRITE && i < op->size; i += 8)
		buffer[i] = (char)draw(256);
	switch (op->verb) {
	case MAKE:
		return plan_make(op, number);
	case RENAME:
		return plan_rename(op, number);
	case SYNC:
		op->node = draw(2) ? ROOT : draw_node(REGULAR);
		return op->node >= 0;
	case REMOVE:
		op->node = draw_node(draw(3) ? REGULAR : draw(2) ? LINK : DIRECTORY);
		return op->node >= 0 && !has_children(op->node);
	default:
		op->node = draw_node(REGULAR);
		return op->node >= 0;
	}
}

static void discard(int node)
{
	free(nodes[node].data);
	nodes[node] = (struct node){.kind = FREE};
}

static void apply_content(struct node *node, const struct op *op)
{
	size_t end = op->verb == WRITE ? op->offset + op->size : op->offset;

	if (op->verb == WRITE)
		memcpy(node->data + op->offset, buffer, op->size);
	else if (end < node->size)
		memset(node->data + end, 0, node->size - end);
	if (op->verb == TRUNCATE || end > node->size)
		node->size = end;
	node->hash = hash_of(node->data, node->size);
}

static void apply(const struct op *op)
{
	struct node *node = &nodes[op->node];

	switch (op->verb) {
	case MAKE:
		*node = (struct node){.kind = op->kind, .parent = op->parent, .mode = op->mode};
		memcpy(node->name, op->name, sizeof(node->name));
		node->data = op->kind == REGULAR ? calloc(1, FILE_SIZE) : NULL;
		TRUE(op->kind != REGULAR || node->data);
		node->size = op->kind == LINK ? strlen(op->name) : 0; /* its target */
		node->hash = hash_of(op->name, node->size);
		break;
	case WRITE:
	case TRUNCATE:
		apply_content(node, op);
		break;
	case RENAME:
		if (op->target >= 0)
			discard(op->target);
		node->parent = op->parent;
		memcpy(node->name, op->name, sizeof(node->name));
		break;
	case REMOVE:
		discard(op->node);
		break;
	case CHMOD:
		node->mode = op->mode;
		break;
	case TAG:
		node->tag = op->tag;
		break;
	case SYNC:
		break;
	}
}

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
	int fd = open(path, op->verb == SYNC ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CLOEXEC);
	int status;

	if (fd < 0)
		return -1;
	if (op->verb == WRITE)
		status = pwrite(fd, buffer, op->size, (off_t)op->offset) == (ssize_t)op->size ? 0 : -1;
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
	}
	if (print && matched < n_found)
		(void)printf("        %zu nodes too many\n", n_found - matched);
	return count + (n_found - matched);
}

/* Plays all up to `end` again and returns the first state from `begin` on that is the folder's, or
 * -1; *best is the nearest. */
static int64_t replay(uint64_t begin, uint64_t end, uint64_t *best)
{
	size_t least = SIZE_MAX, count;
	uint64_t done = 0;
	struct op op;

	for (;; apply(&op)) {
		if (done >= begin) {
			count = differences(false);
			if (count < least)
				*best = done;
			if (count < least)
				least = count;
			if (count == 0)
				return (int64_t)done;
		}
		if (done == end)
			return -1;
		while (!plan(&op, done + 1))
			;
		done++;
	}
}

static void reset(uint64_t seed)
{
	for (int i = 0; i < NODES; i++)
		discard(i);
	nodes[ROOT].kind = DIRECTORY;
	memset(buffer, 0, sizeof(buffer));
	rng = seed;
}

static bool verify(struct result *result, uint64_t seed, bool again)
{
	uint64_t best = 0;

	collect(".");
	if (again)
		result->synced = result->begun = (uint64_t)result->settled;
	result->settled = replay(result->synced, result->begun, &best);
	if (result->settled >= 0)
		return true;
	(void)printf("NOT OK  no state between operation %llu (synced) and %llu; nearest is %llu:\n",
		     (unsigned long long)result->synced, (unsigned long long)result->begun,
		     (unsigned long long)best);
	reset(seed);
	(void)replay(best, best, &best);
	(void)differences(true);
	return false;
}

static void store_result(const char *path, const struct result *result)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%llu %llu %llu %lld\n", (unsigned long long)result->begun,
			     (unsigned long long)result->synced, (unsigned long long)result->syncs,
			     (long long)result->settled) < 0 || fclose(file) != 0)
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
		fine = verify(&result, seed, strcmp(argv[1], "again") == 0);
	}
	store_result(argv[4], &result);
	return !fine;
}
