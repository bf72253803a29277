/* SPDX-License-Identifier: MIT */
#include "tools/bench/gen.h"

#include "base/checked.h"

#define DEPTH_MAX 24
#define NAME_SIZE 64
#define SMALL	  36	    /* a directory with fewer nodes below it has no subdirectories */
/* a directory without subdirectories has at most so many files, and seldom many */
#define FLAT_MAX  (1 << 17)

struct gen {
	int (*visit)(void *arg, const char *path, size_t len);
	void *arg;
	int error; /* of the first visit that failed; none follows it */
	uint64_t state;
	char path[DEPTH_MAX * NAME_SIZE];
};

static uint64_t below(struct gen *gen, uint64_t limit)
{
	return pfs_gen_random(&gen->state) % limit;
}

/* Returns one of 1..limit, small ones more often: the number of digits is distributed evenly. */
static uint64_t skewed(struct gen *gen, uint64_t limit)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(limit);
	uint64_t mask = UINT64_MAX >> (64 - 1 - below(gen, bits));
	uint64_t n = 1 + (pfs_gen_random(&gen->state) & mask);

	return PFS_MIN(n, limit);
}

static size_t add_word(struct gen *gen, char *to)
{
	static const char heads[] = "bcdfghjklmnprstvwxz", vowels[] = "aeiou";
	size_t len = 0, syllables = 1 + below(gen, 3);

	while (syllables--) {
		to[len++] = heads[below(gen, sizeof(heads) - 1)];
		to[len++] = vowels[below(gen, sizeof(vowels) - 1)];
	}
	if (below(gen, 2))
		to[len++] = heads[below(gen, sizeof(heads) - 1)];
	return len;
}

/* Writes word[-word]-number[.extension]; the number, in base 36, differs among siblings. */
static size_t add_name(struct gen *gen, char *to, uint64_t number, bool directory)
{
	static const char *const extensions[] = {".h",	".so",	".gz", ".py", ".html", ".png",
						 ".mo", ".txt", ".js", ".c",  ".svg",  ""};
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	const char *extension = extensions[below(gen, PFS_COUNT(extensions))];
	size_t len = add_word(gen, to);

	if (below(gen, 4)) {
		to[len++] = '-';
		len += add_word(gen, to + len);
	}
	to[len++] = '-';
	do {
		to[len++] = digits[number % 36];
		number /= 36;
	} while (number);
	if (!directory) {
		while (*extension)
			to[len++] = *extension++;
	}
	return len;
}

static void visit_files(struct gen *gen, size_t len, uint64_t first, uint64_t n)
{
	uint64_t i;

	for (i = first; i < first + n; i++) {
		size_t end = len + add_name(gen, gen->path + len, i, false);

		if (!gen->error)
			gen->error = gen->visit(gen->arg, gen->path, end);
	}
}

static bool is_flat(struct gen *gen, unsigned depth, uint64_t n)
{
	if (depth + 1 >= DEPTH_MAX || n <= 2 + below(gen, SMALL))
		return true;
	return below(gen, 8) == 0 && n <= skewed(gen, FLAT_MAX);
}

/* Nodes of the next subdirectory, itself included, when n are left: at times all of them, mostly
 * few, but enough that there are several files to a directory. */
static uint64_t choose_size(struct gen *gen, uint64_t n)
{
	uint64_t size = below(gen, 40) ? SMALL / 3 + skewed(gen, n / 8 + 1) : n;

	return size + 2 > n ? n : size;
}

/* Visits n > 0 nodes below the directory whose path has that length, with a slash at its end. */
static void visit_directory(struct gen *gen, size_t len, unsigned depth, uint64_t n)
{
	uint64_t number, files;

	if (is_flat(gen, depth, n)) {
		visit_files(gen, len, 0, n);
		return;
	}
	files = skewed(gen, PFS_MIN(n - 2, SMALL)) - 1;
	visit_files(gen, len, 0, files);
	for (number = files, n -= files; n > 1; number++) {
		uint64_t size = choose_size(gen, n);
		size_t end = len + add_name(gen, gen->path + len, number, true);

		gen->path[end++] = '/';
		visit_directory(gen, end, depth + 1, size - 1);
		n -= size;
	}
	/* one node that is left becomes a file: an empty directory would not be visited */
	visit_files(gen, len, number, n);
}

int pfs_gen_visit(uint64_t nodes, uint64_t seed,
		  int (*visit)(void *arg, const char *path, size_t len), void *arg)
{
	struct gen gen = {.visit = visit, .arg = arg, .state = seed};

	if (nodes > 1)
		visit_directory(&gen, 0, 0, nodes - 1);
	return gen.error;
}

static int print_path(void *arg, const char *path, size_t len)
{
	return fwrite(path, 1, len, arg) == len && putc('\n', arg) != EOF ? 0 : -EIO;
}

int pfs_gen_paths(FILE *out, uint64_t nodes, uint64_t seed)
{
	PFS_TRY(pfs_gen_visit(nodes, seed, print_path, out));
	return fflush(out) == 0 ? 0 : -EIO;
}
