/* SPDX-License-Identifier: MIT */
/* Parses the expressions of find(1): the operators that join tests and actions. */
#include "tools/gnu/find_parse_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/gnu/find_format.h"

#define DEPTH_MAX 256 /* how deep parentheses and negations may nest */

struct pfs_find_node *pfs_find_fail(struct pfs_find_parser *p, int error, const char *format, ...)
{
	va_list list;

	if (p->error)
		return NULL;
	p->error = error;
	va_start(list, format);
	(void)vsnprintf(p->find->why, sizeof(p->find->why), format, list);
	va_end(list);
	return NULL;
}

void pfs_find_free_node(struct pfs_find_node *node)
{
	if (!node)
		return;
	pfs_find_free_node(node->left);
	pfs_find_free_node(node->right);
	if (node->regex)
		regfree(node->regex);
	free(node->regex);
	pfs_find_format_finish(node->format);
	for (size_t i = 0; i < node->n_batch; i++)
		free(node->batch[i]);
	free(node->batch);
	free(node->command);
	free(node);
}

struct pfs_find_node *pfs_find_make(struct pfs_find_parser *p, enum pfs_find_kind kind)
{
	struct pfs_find_node *node = calloc(1, sizeof(*node));

	if (!node)
		return pfs_find_fail(p, -ENOMEM, "no memory");
	node->kind = kind;
	return node;
}

static struct pfs_find_node *join(struct pfs_find_parser *p, enum pfs_find_kind kind,
				  struct pfs_find_node *left, struct pfs_find_node *right)
{
	struct pfs_find_node *node =
		left && (right || kind == PFS_FIND_NOT) ? pfs_find_make(p, kind) : NULL;

	if (!node) {
		pfs_find_free_node(left);
		pfs_find_free_node(right);
		return NULL;
	}
	node->left = left;
	node->right = right;
	return node;
}

static struct pfs_find_node *list(struct pfs_find_parser *p);

static bool next_is(const struct pfs_find_parser *p, const char *one, const char *other)
{
	const char *word = p->at < p->argc ? p->argv[p->at] : NULL;

	return word && (strcmp(word, one) == 0 || (other && strcmp(word, other) == 0));
}

static struct pfs_find_node *group_of(struct pfs_find_parser *p)
{
	struct pfs_find_node *node;

	if (next_is(p, ")", NULL))
		return pfs_find_fail(p, -EINVAL, "empty parentheses");
	node = list(p);
	if (next_is(p, ")", NULL)) {
		p->at++;
		return node;
	}
	pfs_find_free_node(node);
	return pfs_find_fail(p, -EINVAL, "missing ')'");
}

static struct pfs_find_node *primary(struct pfs_find_parser *p)
{
	struct pfs_find_node *node = NULL;
	const char *name;

	if (p->at >= p->argc)
		return pfs_find_fail(p, -EINVAL, "an expression is missing at the end");
	if (p->nesting >= DEPTH_MAX)
		return pfs_find_fail(p, -EINVAL, "parentheses and negations are nested too deeply");
	name = p->argv[p->at++];
	p->nesting++;
	if (strcmp(name, "(") == 0)
		node = group_of(p);
	else if (strcmp(name, "!") == 0 || strcmp(name, "-not") == 0)
		node = join(p, PFS_FIND_NOT, primary(p), NULL);
	else
		node = pfs_find_primary(p, name);
	p->nesting--;
	return node ? node : pfs_find_fail(p, -EINVAL, "unknown predicate '%s'", name);
}

/* ---- operators: juxtaposition and -a, then -o, then a comma ---- */

static struct pfs_find_node *conjunction(struct pfs_find_parser *p)
{
	struct pfs_find_node *node = primary(p);

	while (node && p->at < p->argc && !next_is(p, "-o", "-or") && !next_is(p, ",", ")")) {
		if (next_is(p, "-a", "-and"))
			p->at++;
		node = join(p, PFS_FIND_AND, node, primary(p));
	}
	return node;
}

static struct pfs_find_node *disjunction(struct pfs_find_parser *p)
{
	struct pfs_find_node *node = conjunction(p);

	while (node && next_is(p, "-o", "-or")) {
		p->at++;
		node = join(p, PFS_FIND_OR, node, conjunction(p));
	}
	return node;
}

static struct pfs_find_node *list(struct pfs_find_parser *p)
{
	struct pfs_find_node *node = disjunction(p);

	while (node && next_is(p, ",", NULL)) {
		p->at++;
		node = join(p, PFS_FIND_COMMA, node, disjunction(p));
	}
	return node;
}

int pfs_find_parse(struct pfs_find *find, char **argv, int argc)
{
	struct pfs_find_parser p = {
		.find = find, .argv = argv, .argc = argc, .syntax = RE_SYNTAX_EMACS};
	*find = (struct pfs_find){.max_depth = UINT32_MAX};
	p.now = pfs_clock_ns(CLOCK_REALTIME);
	find->root = argc ? list(&p) : pfs_find_make(&p, PFS_FIND_TRUE);
	if (find->root && p.at < argc)
		(void)pfs_find_fail(&p, -EINVAL, "')' without '('");
	if (find->root && !p.error && !p.has_action)
		find->root = join(&p, PFS_FIND_AND, find->root, pfs_find_make(&p, PFS_FIND_PRINT));
	return p.error;
}

void pfs_find_finish(struct pfs_find *find)
{
	pfs_find_free_node(find->root);
	find->root = NULL;
}
