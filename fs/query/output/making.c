/* SPDX-License-Identifier: MIT */
#include "fs/query/output/making.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fs/query/output/format.h"

struct pfs_making {
	struct pfs_answer *answer;
	struct pfs_query *query;
	struct pfs_writing *writing;
	enum pfs_format format;
	uint64_t began_ns;
	size_t len;
	char *sql;
	gid_t *groups;
};

static int begin_writing(struct pfs_making *making)
{
	const struct pfs_sink sink = {making->answer, pfs_answer_write};

	pfs_writing_close(making->writing);
	pfs_answer_truncate(making->answer);
	return pfs_writing_open(&making->writing, making->query, making->format, &sink,
				making->answer);
}

static int copy_asked(struct pfs_making *making, struct pfs_query_scope *scope,
		      const struct pfs_asked *asked)
{
	making->sql = malloc(asked->len + 1);
	making->groups = calloc(scope->n_groups + 1, sizeof(*making->groups));
	if (!making->sql || !making->groups)
		return -ENOMEM;
	memcpy(making->sql, asked->sql, asked->len);
	making->sql[asked->len] = 0;
	making->len = asked->len;
	making->format = asked->format;
	if (scope->n_groups)
		memcpy(making->groups, scope->groups, scope->n_groups * sizeof(*making->groups));
	scope->groups = making->groups;
	return 0;
}

int pfs_making_open(struct pfs_making **out, struct pfs_answer *answer, struct pfs_queries *queries,
		    const struct pfs_query_scope *scope, const struct pfs_asked *asked,
		    struct pfs_query_error *error)
{
	struct pfs_making *making = calloc(1, sizeof(*making));
	struct pfs_query_scope own = *scope;
	int status;

	*out = NULL;
	if (!making) {
		(void)pfs_format_failed(error, -ENOMEM);
		return -ENOMEM;
	}
	making->answer = pfs_answer_ref(answer);
	making->began_ns = pfs_now_ns();
	status = copy_asked(making, &own, asked);
	if (status) {
		(void)pfs_format_failed(error, status);
	} else {
		status = pfs_query_start(&making->query, queries, &own, making->sql, making->len,
					 error);
		if (!status && (status = begin_writing(making)) != 0)
			(void)pfs_format_failed(error, status);
	}
	if (status)
		pfs_making_close(making);
	else
		*out = making;
	return status;
}

void pfs_making_close(struct pfs_making *making)
{
	if (!making)
		return;
	pfs_writing_close(making->writing);
	pfs_query_finish(making->query);
	pfs_answer_close(making->answer);
	free(making->sql);
	free(making->groups);
	free(making);
}

/* Somebody may have read it. */
static int fail_restart(struct pfs_query_error *error)
{
	*error = (struct pfs_query_error){.error = -EIO, .offset = -1};
	(void)snprintf(error->text, sizeof(error->text),
		       "the tree has changed while the answer was read; open it again");
	return -EIO;
}

int pfs_making_step(struct pfs_making *making, struct pfs_query_error *error)
{
	int status = pfs_writing_step(making->writing, error);

	if (status == -EAGAIN && !pfs_answer_is_complete(making->answer))
		return fail_restart(error);
	if (status == -EAGAIN) {
		status = begin_writing(making);
		return status ? pfs_format_failed(error, status) : 1;
	}
	if (status < 0 && pfs_answer_is_complete(making->answer))
		pfs_answer_truncate(making->answer);
	if (status > 0 && pfs_answer_is_in_file(making->answer))
		pfs_query_rests(making->query); /* as far as nobody reads on */
	return status;
}

struct pfs_query *pfs_making_query(struct pfs_making *making)
{
	return making->query;
}

const char *pfs_making_sql(const struct pfs_making *making, size_t *len)
{
	*len = making->len;
	return making->sql;
}

bool pfs_making_is_settled(const struct pfs_making *making)
{
	return pfs_query_is_settled(making->query);
}

int pfs_making_settle(struct pfs_making *making, struct pfs_query_error *error)
{
	int status;

	if (pfs_query_settle(making->query))
		return 1;
	PFS_TRY(pfs_query_begin_anew(making->query, error));
	/* It has as much time as one that need not begin anew. */
	pfs_query_rested(making->query, pfs_now_ns() - making->began_ns);
	status = begin_writing(making);
	return status ? pfs_format_failed(error, status) : 0;
}

int pfs_answer_run(struct pfs_answer *answer, struct pfs_queries *queries,
		   const struct pfs_query_scope *scope, const char *sql, size_t len,
		   enum pfs_format format, struct pfs_query_error *error)
{
	const struct pfs_asked asked = {sql, len, format};
	struct pfs_making *making;
	int status = pfs_making_open(&making, answer, queries, scope, &asked, error);

	if (status)
		return status;
	do
		status = pfs_making_step(making, error);
	while (status > 0);
	pfs_making_close(making);
	return status;
}
