/* SPDX-License-Identifier: MIT */
/* tests/crash/model.h - a folder in memory and random operations on it (writer.c). */
#ifndef PFS_TESTS_CRASH_MODEL_H
#define PFS_TESTS_CRASH_MODEL_H

#include <limits.h>

#include "tests/mount/probe.h"

enum {
	NODES = 64,
	ROOT = 0,
	FILE_SIZE = 65536,
	WRITE_SIZE = 20000,
	NAME_SIZE = 24,
	SYNC_EVERY = 12,
	PAGE = 4096
};

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
	bool direct; /* a write that is one request */
	mode_t mode;
	uint32_t tag;
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
	op->direct = op->verb == WRITE && draw(2);
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

#endif
