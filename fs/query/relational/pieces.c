/* SPDX-License-Identifier: MIT */
/* Large tables, a piece at a time: how large it is, and the rows of a table for which a condition is true. */
#include "base/checked.h"
#include "base/clock.h"
#include "fs/query/relational/run.h"

#define PIECE_NS       4000000u /* in one hold */
#define PIECE_ROWS_MAX (UINT64_C(1) << 24)

uint64_t pfs_running_next_piece(const struct pfs_running *running, uint64_t rows,
				uint64_t started_ns)
{
	uint64_t took = pfs_now_ns() - started_ns;

	if (running->query->piece || running->run->on != PFS_ENGINE_HOST)
		return rows;
	if (took < PIECE_NS / 2)
		return PFS_MIN(rows * 2, PIECE_ROWS_MAX);
	return took > PIECE_NS ? PFS_MAX(rows / 2, PFS_PIECE_ROWS) : rows;
}

/* A piece of the table at a time, between which the tree is let go. */
static int select_in_pieces(struct pfs_running *running, struct pfs_rows **out,
			    const struct pfs_source *source, const struct pfs_program *program)
{
	uint64_t step = pfs_running_piece(running), started;
	struct pfs_source piece = *source;
	struct pfs_rows *rows;
	int error = 0;

	*out = NULL;
	for (piece.to = 0; piece.to < source->table->n_rows && !error;) {
		started = pfs_now_ns();
		piece.from = piece.to;
		piece.to = PFS_MIN(piece.from + step, source->table->n_rows);
		error = pfs_select(running->run, &rows, &piece, program);
		if (!error && *out) {
			error = pfs_rows_combine(running->run, *out, rows, PFS_ROWS_OR);
			pfs_rows_free(running->run, rows);
		} else if (!error) {
			*out = rows;
		}
		step = pfs_running_next_piece(running, step, started);
		if (!error)
			error = pfs_query_look(running->query);
	}
	if (error) {
		pfs_rows_free(running->run, *out);
		*out = NULL;
	}
	return error;
}

int pfs_running_select(struct pfs_running *running, struct pfs_source *source, unsigned input,
		       const struct pfs_program *program)
{
	bool is_list = source->rows && source->rows->form == PFS_ROWS_LIST;
	struct pfs_rows *rows;

	PFS_TRY(source->table->n_rows > pfs_running_piece(running) && !is_list
			? select_in_pieces(running, &rows, source, program)
			: pfs_select(running->run, &rows, source, program));
	pfs_rows_free(running->run, running->rows[input]);
	running->rows[input] = source->rows = rows;
	return 0;
}

int pfs_running_settle(struct pfs_running *running)
{
	const struct pfs_program *where = running->source.where;

	running->source.where = NULL;
	return where ? pfs_running_select(running, &running->source, 0, where) : 0;
}
