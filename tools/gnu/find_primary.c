/* SPDX-License-Identifier: MIT */
/* Parses the tests, actions and options of find(1), each with its arguments. */
#include "tools/gnu/find_parse_impl.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/clock.h"
#include "tools/gnu/find_args.h"
#include "tools/gnu/find_format.h"

#define DAY 86400

/* ---- arguments ---- */

static void need(struct pfs_find_parser *p, unsigned what)
{
	p->find->needs |= what;
}

static void in_order(struct pfs_find_parser *p)
{
	p->find->ordered = true;
	need(p, PFS_FIND_INO);
}

static const char *argument(struct pfs_find_parser *p, const char *name)
{
	if (p->at >= p->argc) {
		(void)pfs_find_fail(p, -EINVAL, "missing argument to '%s'", name);
		return NULL;
	}
	return p->argv[p->at++];
}

static struct pfs_find_node *number(struct pfs_find_parser *p, const char *name, unsigned field,
				    const char *units)
{
	const char *text = argument(p, name);
	struct pfs_find_node *node = text ? pfs_find_make(p, PFS_FIND_NUMBER) : NULL;

	if (!node)
		return NULL;
	node->field = field;
	node->number.unit = 1;
	need(p, field);
	if (pfs_find_parse_number(&node->number, text, units))
		return node;
	pfs_find_free_node(node);
	return pfs_find_fail(p, -EINVAL, "'%s %s': wanted N, +N or -N%s", name, text,
			     units ? " and a unit of b, c, w, k, M, G" : "");
}

static struct pfs_find_node *size(struct pfs_find_parser *p, const char *name)
{
	return number(p, name, PFS_FIND_SIZE, "bcwkMG");
}

static struct pfs_find_node *age(struct pfs_find_parser *p, const char *name, unsigned field,
				 int64_t unit)
{
	struct pfs_find_node *node = number(p, name, field, NULL);

	if (!node)
		return NULL;
	node->kind = PFS_FIND_TIME;
	node->number.unit = unit * PFS_NS_PER_S;
	node->time = p->now;
	if (node->number.n < INT64_MAX / node->number.unit / 2)
		return node;
	pfs_find_free_node(node);
	return pfs_find_fail(p, -EINVAL, "'%s %s': too long ago", name, p->argv[p->at - 1]);
}

/* Makes a test of the node's `field` against a time of another file. */
static struct pfs_find_node *newer(struct pfs_find_parser *p, const char *name, unsigned field,
				   char of)
{
	const char *file = argument(p, name);
	struct pfs_find_node *node = file ? pfs_find_make(p, PFS_FIND_NEWER) : NULL;
	struct stat other;

	if (!node)
		return NULL;
	node->field = field;
	need(p, field);
	if (stat(file, &other) != 0) {
		pfs_find_free_node(node);
		return pfs_find_fail(p, -EINVAL, "'%s %s': %s", name, file, strerror(errno));
	}
	node->time = pfs_timespec_ns(of == 'a'	 ? other.st_atim
				     : of == 'c' ? other.st_ctim
						 : other.st_mtim);
	return node;
}

static struct pfs_find_node *newer_file(struct pfs_find_parser *p, const char *name)
{
	return newer(p, name,
		     name[1] == 'a'   ? PFS_FIND_ATIME
		     : name[1] == 'c' ? PFS_FIND_CTIME
				      : PFS_FIND_MTIME,
		     'm');
}

static struct pfs_find_node *newer_time(struct pfs_find_parser *p, const char *name, unsigned field)
{
	const char *text = argument(p, name);
	struct pfs_find_node *node = text ? pfs_find_make(p, PFS_FIND_NEWER) : NULL;

	if (!node)
		return NULL;
	node->field = field;
	need(p, field);
	if (pfs_find_date(&node->time, text))
		return node;
	pfs_find_free_node(node);
	return pfs_find_fail(p, -EINVAL, "'%s %s': no time that date(1) knows", name, text);
}

/* Parses -newerXY: X of the node is compared with Y of a file; if Y is t, with a time as it is
 * written. */
static struct pfs_find_node *newer_of(struct pfs_find_parser *p, const char *name)
{
	static const unsigned fields[] = {
		['a'] = PFS_FIND_ATIME, ['c'] = PFS_FIND_CTIME, ['m'] = PFS_FIND_MTIME};
	char x = name[6], y = x ? name[7] : 0;

	if (!x || !y || name[8] || !strchr("acm", x) || !strchr("acmt", y))
		return pfs_find_fail(p, -EINVAL, "unknown predicate '%s'", name);
	return y == 't' ? newer_time(p, name, fields[(unsigned char)x])
			: newer(p, name, fields[(unsigned char)x], y);
}

static struct pfs_find_node *pattern(struct pfs_find_parser *p, const char *name,
				     enum pfs_find_kind kind, bool fold_case)
{
	const char *text = argument(p, name);
	struct pfs_find_node *node = text ? pfs_find_make(p, kind) : NULL;

	if (!node)
		return NULL;
	node->text = text;
	node->fold_case = fold_case;
	need(p, kind == PFS_FIND_LNAME	? PFS_FIND_TARGET
		: kind == PFS_FIND_SAME ? PFS_FIND_INO | PFS_FIND_LINK
					: 0);
	return node;
}

static struct pfs_find_node *regex(struct pfs_find_parser *p, const char *name)
{
	bool fold_case = name[1] == 'i';
	struct pfs_find_node *node = pattern(p, name, PFS_FIND_REGEX, fold_case);
	const char *why;

	if (!node)
		return NULL;
	node->regex = calloc(1, sizeof(*node->regex));
	if (!node->regex) {
		pfs_find_free_node(node);
		return pfs_find_fail(p, -ENOMEM, "no memory");
	}
	re_syntax_options = p->syntax | (fold_case ? RE_ICASE : 0);
	why = re_compile_pattern(node->text, strlen(node->text), node->regex);
	if (!why)
		return node;
	(void)pfs_find_fail(p, -EINVAL, "'%s %s': %s", name, node->text, why);
	pfs_find_free_node(node);
	return NULL;
}

static struct pfs_find_node *regex_type(struct pfs_find_parser *p, const char *name)
{
	const char *type = argument(p, name);

	if (type && pfs_find_syntax(&p->syntax, type))
		return pfs_find_make(p, PFS_FIND_TRUE);
	return pfs_find_fail(p, -EINVAL, "'%s %s': unknown type of regular expressions", name,
			     type ? type : "");
}

static struct pfs_find_node *type(struct pfs_find_parser *p, const char *name)
{
	struct pfs_find_node *node = pattern(p, name, PFS_FIND_TYPE, false);
	const char *c;

	for (c = node ? node->text : ""; *c && strchr("fdlbcps", *c); c += 1 + (c[1] == ','))
		if (c[1] && c[1] != ',')
			break;
	if (!node || (!*c && node->text[0] && node->text[strlen(node->text) - 1] != ','))
		return node;
	(void)pfs_find_fail(p, -EINVAL, "'%s %s': wanted letters of f d l b c p s, with commas",
			    name, node->text);
	pfs_find_free_node(node);
	return NULL;
}

/* Parses -user and -group, which take a name or a number. */
static struct pfs_find_node *owner(struct pfs_find_parser *p, const char *name)
{
	unsigned field = name[1] == 'u' ? PFS_FIND_UID : PFS_FIND_GID;
	const char *text = argument(p, name);
	struct pfs_find_node *node = text ? pfs_find_make(p, PFS_FIND_NUMBER) : NULL;
	const struct passwd *user = node && field == PFS_FIND_UID ? getpwnam(text) : NULL;
	const struct group *group = node && field == PFS_FIND_GID ? getgrnam(text) : NULL;
	uint64_t id;

	if (!node)
		return NULL;
	node->field = field;
	node->number.unit = 1;
	need(p, field);
	if (user)
		node->number.n = user->pw_uid;
	else if (group)
		node->number.n = group->gr_gid;
	else if (pfs_parse_u64(&id, text) == 0 && id <= UINT32_MAX)
		node->number.n = (int64_t)id;
	else {
		pfs_find_free_node(node);
		return pfs_find_fail(p, -EINVAL, "'%s' is no known %s", text,
				     field == PFS_FIND_UID ? "user" : "group");
	}
	return node;
}

/* ---- permissions ---- */

static struct pfs_find_node *perm(struct pfs_find_parser *p, const char *name)
{
	const char *text = argument(p, name);
	struct pfs_find_node *node = text ? pfs_find_make(p, PFS_FIND_PERM) : NULL;

	if (!node)
		return NULL;
	need(p, PFS_FIND_MODE);
	if (*text == '/' || (*text == '-' && text[1]))
		node->perm_kind = *text;
	if (pfs_find_parse_mode(&node->mode, text + (node->perm_kind != 0)))
		return node;
	pfs_find_free_node(node);
	return pfs_find_fail(p, -EINVAL, "'%s %s': no such mode", name, text);
}

/* ---- actions ---- */

static struct pfs_find_node *format(struct pfs_find_parser *p, const char *name)
{
	const char *text = argument(p, name);
	struct pfs_find_node *node = text ? pfs_find_make(p, PFS_FIND_PRINTF) : NULL;
	char why[160];
	unsigned needs;
	int error;

	if (!node)
		return NULL;
	error = pfs_find_format_parse(&node->format, &needs, text, why, sizeof(why));
	need(p, needs);
	p->has_action = true;
	if (!error)
		return node;
	pfs_find_free_node(node);
	return pfs_find_fail(p, error, "'%s' %s", name, why);
}

static struct pfs_find_node *exec(struct pfs_find_parser *p, const char *name)
{
	struct pfs_find_node *node = pfs_find_make(p, PFS_FIND_EXEC);
	int first = p->at, last = first, n;

	if (!node)
		return NULL;
	for (; last < p->argc && strcmp(p->argv[last], ";") != 0; last++)
		if (strcmp(p->argv[last], "+") == 0 && last > first &&
		    strcmp(p->argv[last - 1], "{}") == 0)
			break;
	n = last - first;
	if (last == p->argc || n == 0) {
		pfs_find_free_node(node);
		return pfs_find_fail(p, -EINVAL,
				     "'%s': wanted a command, ended by ';' or by '{} +'", name);
	}
	node->kind = *p->argv[last] == '+' ? PFS_FIND_EXEC_MANY : PFS_FIND_EXEC;
	n -= node->kind == PFS_FIND_EXEC_MANY;
	node->command = calloc((size_t)n + 1, sizeof(*node->command));
	if (!node->command) {
		pfs_find_free_node(node);
		return pfs_find_fail(p, -ENOMEM, "no memory");
	}
	(void)memcpy(node->command, p->argv + first, (size_t)n * sizeof(*node->command));
	p->at = last + 1;
	p->has_action = p->find->acts = true;
	in_order(p);
	return node;
}

static struct pfs_find_node *depth_first(struct pfs_find_parser *p, const char *name PFS_UNUSED)
{
	p->find->depth_first = true;
	in_order(p);
	return pfs_find_make(p, PFS_FIND_TRUE);
}

static struct pfs_find_node *depth_limit(struct pfs_find_parser *p, const char *name)
{
	unsigned *out = name[2] == 'a' ? &p->find->max_depth : &p->find->min_depth;
	const char *text = argument(p, name);
	uint64_t value;

	if (!text)
		return NULL;
	if (pfs_parse_u64(&value, text) || value > UINT32_MAX)
		return pfs_find_fail(p, -EINVAL, "'%s %s': wanted a number", name, text);
	*out = (unsigned)value;
	return pfs_find_make(p, PFS_FIND_TRUE);
}

static struct pfs_find_node *action(struct pfs_find_parser *p, enum pfs_find_kind kind)
{
	p->has_action |= kind != PFS_FIND_PRUNE;
	if (kind != PFS_FIND_PRINT && kind != PFS_FIND_PRINT0)
		in_order(p);
	if (kind == PFS_FIND_DELETE)
		p->find->acts = p->find->depth_first = true;
	return pfs_find_make(p, kind);
}

static struct pfs_find_node *pattern_test(struct pfs_find_parser *p, const char *name)
{
	static const struct {
		const char *name;
		enum pfs_find_kind kind;
		bool fold_case;
	} tests[] = {
		{"-name", PFS_FIND_NAME, false},      {"-iname", PFS_FIND_NAME, true},
		{"-path", PFS_FIND_PATH, false},      {"-ipath", PFS_FIND_PATH, true},
		{"-wholename", PFS_FIND_PATH, false}, {"-iwholename", PFS_FIND_PATH, true},
		{"-lname", PFS_FIND_LNAME, false},    {"-ilname", PFS_FIND_LNAME, true},
		{"-samefile", PFS_FIND_SAME, false},
	};

	for (size_t i = 0; i < PFS_COUNT(tests); i++)
		if (strcmp(name, tests[i].name) == 0)
			return pattern(p, name, tests[i].kind, tests[i].fold_case);
	return NULL;
}

static struct pfs_find_node *number_test(struct pfs_find_parser *p, const char *name)
{
	static const struct {
		const char *name;
		unsigned field;
		int unit; /* of an age, in seconds */
	} tests[] = {
		{"-mtime", PFS_FIND_MTIME, DAY}, {"-atime", PFS_FIND_ATIME, DAY},
		{"-ctime", PFS_FIND_CTIME, DAY}, {"-mmin", PFS_FIND_MTIME, 60},
		{"-amin", PFS_FIND_ATIME, 60},	 {"-cmin", PFS_FIND_CTIME, 60},
		{"-links", PFS_FIND_NLINK, 0},	 {"-inum", PFS_FIND_INO, 0},
		{"-uid", PFS_FIND_UID, 0},	 {"-gid", PFS_FIND_GID, 0},
	};

	for (size_t i = 0; i < PFS_COUNT(tests); i++)
		if (strcmp(name, tests[i].name) == 0)
			return tests[i].unit ? age(p, name, tests[i].field, tests[i].unit)
					     : number(p, name, tests[i].field, NULL);
	return NULL;
}

static struct pfs_find_node *simple(struct pfs_find_parser *p, const char *name)
{
	static const struct {
		const char *name;
		enum pfs_find_kind kind;
		unsigned needs;
	} known[] = {
		{"-true", PFS_FIND_TRUE, 0},
		{"-false", PFS_FIND_FALSE, 0},
		{"-mount", PFS_FIND_TRUE, 0},
		{"-xdev", PFS_FIND_TRUE, 0},
		{"-noleaf", PFS_FIND_TRUE, 0},
		{"-warn", PFS_FIND_TRUE, 0},
		{"-nowarn", PFS_FIND_TRUE, 0},
		{"-ignore_readdir_race", PFS_FIND_TRUE, 0},
		{"-empty", PFS_FIND_IS_EMPTY, PFS_FIND_SIZE | PFS_FIND_EMPTY},
		{"-nouser", PFS_FIND_NOUSER, PFS_FIND_UID},
		{"-nogroup", PFS_FIND_NOGROUP, PFS_FIND_GID},
		{"-print", PFS_FIND_PRINT, 0},
		{"-print0", PFS_FIND_PRINT0, 0},
		{"-ls", PFS_FIND_LS, PFS_FIND_LISTED},
		{"-delete", PFS_FIND_DELETE, 0},
		{"-prune", PFS_FIND_PRUNE, 0},
		{"-quit", PFS_FIND_QUIT, 0},
	};

	for (size_t i = 0; i < PFS_COUNT(known); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		need(p, known[i].needs);
		return known[i].kind < PFS_FIND_PRINT ? pfs_find_make(p, known[i].kind)
						      : action(p, known[i].kind);
	}
	return NULL;
}

/* Parses the primaries that are like no other. */
static struct pfs_find_node *special(struct pfs_find_parser *p, const char *name)
{
	static const struct {
		const char *name;
		struct pfs_find_node *(*parse)(struct pfs_find_parser *p, const char *name);
	} parsers[] = {
		{"-type", type},
		{"-perm", perm},
		{"-size", size},
		{"-user", owner},
		{"-group", owner},
		{"-regex", regex},
		{"-iregex", regex},
		{"-regextype", regex_type},
		{"-newer", newer_file},
		{"-anewer", newer_file},
		{"-cnewer", newer_file},
		{"-maxdepth", depth_limit},
		{"-mindepth", depth_limit},
		{"-depth", depth_first},
		{"-d", depth_first},
		{"-exec", exec},
		{"-printf", format},
	};

	for (size_t i = 0; i < PFS_COUNT(parsers); i++)
		if (strcmp(name, parsers[i].name) == 0)
			return parsers[i].parse(p, name);
	return strncmp(name, "-newer", 6) == 0 ? newer_of(p, name) : NULL;
}

struct pfs_find_node *pfs_find_primary(struct pfs_find_parser *p, const char *name)
{
	static struct pfs_find_node *(*const families[])(struct pfs_find_parser *, const char *) = {
		simple, pattern_test, number_test, special};
	struct pfs_find_node *node = NULL;

	for (size_t i = 0; i < PFS_COUNT(families) && !node && !p->error; i++)
		node = families[i](p, name);
	return node;
}
