/* SPDX-License-Identifier: MIT */
/* Whether a statement's rows are those of one scan as they are: by SQLite's own program for it, which has
 * to be one straight way from the scan's row to the statement's.
 *
 *	Init to the constants
 *	(values, once)  VOpen  (values, once)  VFilter: no row: behind VNext
 *	Column or rowid, for each register of the row, and nothing else;  ResultRow
 *	VNext: another row: behind VFilter
 *	Halt
 *	Transaction  (values, once)  Goto to behind Init
 *
 * Whatever else there is, in whatever version of SQLite, is not plain. */
#include <string.h>

#include "base/checked.h"
#include "meta/sql/sqlquery_impl.h"

#define OPS_MAX 4096 /* of the longest program looked at */

enum place { AT_INIT, BEFORE_SCAN, IN_ROW, BEHIND_ROW, BEHIND_SCAN, BEHIND_HALT, AT_END, NOT_PLAIN };

struct program {
	enum place place;
	int *columns; /* out, by the row's column */
	int n;	      /* columns of the row */
	bool opened;
	int cursor, filter, next, halt; /* where they are; the cursor's is its number */
	int constants, no_row;		/* where Init, and VFilter, go on */
	int first;			/* register of the row */
	int n_read;			/* columns met */
	int read[PFS_SQL_PLAIN_MAX];	/* into these registers */
	const char *plan;
};

static bool is(const struct pfs_sql_instruction *op, const char *name)
{
	return strcmp(op->name, name) == 0;
}

/* Sets a register, if anything, and goes on to the next one, the first time at least: a value that the
 * scan is started with. */
static bool is_value(const struct pfs_sql_instruction *op)
{
	static const char *const names[] = {
		"Integer",  "Int64",	"Real",	   "String8",  "String",   "Blob",	"Null",
		"Copy",	    "SCopy",	"Function", "PureFunc", "Cast",	    "Affinity", "RealAffinity",
		"Add",	    "Subtract", "Multiply", "Divide",	"Remainder", "Concat",	"BitAnd",
		"BitOr",    "BitNot",	"ShiftLeft", "ShiftRight", "Not",    "Explain",	"Noop",
		"Once",
	};

	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		if (is(op, names[i]))
			return true;
	}
	return false;
}

static enum place before_scan(struct program *program, const struct pfs_sql_instruction *op)
{
	if (is(op, "VOpen") && !program->opened) {
		program->opened = true;
		program->cursor = op->p1;
		return BEFORE_SCAN;
	}
	if (is(op, "VFilter") && program->opened && op->p1 == program->cursor) {
		program->filter = op->at;
		program->no_row = op->p2;
		/* the scan is the one that the statement runs, planned alike */
		return op->p4 && strcmp(op->p4, program->plan) == 0 ? IN_ROW : NOT_PLAIN;
	}
	return is_value(op) ? BEFORE_SCAN : NOT_PLAIN;
}

/* Registers may be read in another order than they are numbered. */
static bool sort_columns(struct program *program)
{
	int columns[PFS_SQL_PLAIN_MAX] = {0};
	bool seen[PFS_SQL_PLAIN_MAX] = {false};

	for (int i = 0; i < program->n; i++) {
		int to = program->read[i] - program->first;

		if (to < 0 || to >= program->n || seen[to])
			return false;
		seen[to] = true;
		columns[to] = program->columns[i];
	}
	memcpy(program->columns, columns, (size_t)program->n * sizeof(*columns));
	return true;
}

static enum place in_row(struct program *program, const struct pfs_sql_instruction *op)
{
	bool is_rowid = is(op, "Rowid"), is_column = is(op, "VColumn");

	if ((is_column || is_rowid) && op->p1 == program->cursor && program->n_read < program->n) {
		program->read[program->n_read] = is_column ? op->p3 : op->p2;
		program->columns[program->n_read++] = is_column ? op->p2 : -1;
		return IN_ROW;
	}
	if (!is(op, "ResultRow") || op->p2 != program->n || program->n_read != program->n)
		return NOT_PLAIN;
	program->first = op->p1;
	return sort_columns(program) ? BEHIND_ROW : NOT_PLAIN;
}

static enum place behind_row(struct program *program, const struct pfs_sql_instruction *op)
{
	program->next = op->at;
	return is(op, "VNext") && op->p1 == program->cursor && op->p2 == program->filter + 1
		       ? BEHIND_SCAN
		       : NOT_PLAIN;
}

static enum place behind_scan(struct program *program, const struct pfs_sql_instruction *op)
{
	program->halt = op->at;
	if (is(op, "Halt"))
		return op->p1 == 0 && program->no_row > program->next && program->no_row <= op->at
			       ? BEHIND_HALT
			       : NOT_PLAIN;
	return is(op, "Noop") || is(op, "Explain") ? BEHIND_SCAN : NOT_PLAIN;
}

static enum place behind_halt(struct program *program, const struct pfs_sql_instruction *op)
{
	if (is(op, "Goto"))
		return op->p2 == 1 && program->constants == program->halt + 1 ? AT_END : NOT_PLAIN;
	return is(op, "Transaction") || is_value(op) ? BEHIND_HALT : NOT_PLAIN;
}

static enum place follow(struct program *program, const struct pfs_sql_instruction *op)
{
	switch (program->place) {
	case AT_INIT:
		program->constants = op->p2;
		return op->at == 0 && is(op, "Init") ? BEFORE_SCAN : NOT_PLAIN;
	case BEFORE_SCAN:
		return before_scan(program, op);
	case IN_ROW:
		return in_row(program, op);
	case BEHIND_ROW:
		return behind_row(program, op);
	case BEHIND_SCAN:
		return behind_scan(program, op);
	case BEHIND_HALT:
		return behind_halt(program, op);
	case AT_END:
	case NOT_PLAIN:
		break;
	}
	return NOT_PLAIN;
}

static int follow_op(void *arg, const struct pfs_sql_instruction *op)
{
	struct program *program = arg;

	program->place = op->at < OPS_MAX ? follow(program, op) : NOT_PLAIN;
	return program->place == NOT_PLAIN;
}

bool pfs_sql_plain(struct pfs_sql *sql, struct pfs_sql_plain *plain)
{
	struct program program = {.place = AT_INIT, .columns = plain->columns};

	program.n = sqlite3_column_count(sql->statement);
	if (program.n < 1 || program.n > PFS_SQL_PLAIN_MAX || !sql->cursor || sql->n_cursors != 1)
		return false;
	program.plan = pfs_sql_cursor_plan(sql->cursor);
	if (pfs_sql_each_op(sql, follow_op, &program) != SQLITE_DONE || program.place != AT_END)
		return false;
	pfs_sql_cursor_at(sql->cursor, plain);
	return true;
}
