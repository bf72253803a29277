/* SPDX-License-Identifier: MIT */
/* Statements. */
#include "fs/query/parse/ast_impl.h"

struct pfs_statement *pfs_ast_statement(struct pfs_parser *p, enum pfs_statement_kind kind)
{
	struct pfs_statement *statement = pfs_ast_get(p, sizeof(*statement));

	if (!statement)
		return NULL;
	statement->kind = kind;
	statement->span = pfs_ast_span(p, p->begin);
	return statement;
}

struct pfs_statement *pfs_ast_change(struct pfs_parser *p, enum pfs_statement_kind kind,
				     struct pfs_with *with, struct pfs_target target,
				     bool has_conflict)
{
	struct pfs_statement *statement = pfs_ast_statement(p, kind);

	if (!statement)
		return NULL;
	statement->with = with;
	statement->schema = target.table.schema;
	statement->table = target.table.name;
	statement->alias = target.alias;
	statement->has_conflict = has_conflict;
	return statement;
}

void pfs_ast_changed(struct pfs_statement *statement, struct pfs_expr *where,
		     struct pfs_items *order, struct pfs_limit limit)
{
	if (!statement)
		return;
	statement->where = where;
	statement->order = order;
	statement->limit = limit.limit;
	statement->offset = limit.offset;
}

struct pfs_statement *pfs_ast_definition(struct pfs_parser *p, enum pfs_statement_kind kind,
					 struct pfs_qualified table, bool if_exists)
{
	struct pfs_statement *statement = pfs_ast_statement(p, kind);

	if (!statement)
		return NULL;
	statement->schema = table.schema;
	statement->table = table.name;
	statement->if_exists = if_exists;
	return statement;
}

void pfs_ast_index(struct pfs_parser *p, struct pfs_statement *statement, struct pfs_lexeme table,
		   struct pfs_items *terms, struct pfs_expr *where)
{
	if (!statement)
		return;
	statement->index = statement->table;
	statement->table = pfs_ast_name(p, table);
	statement->order = terms;
	statement->where = where;
}

struct pfs_column_def *pfs_ast_column_def(struct pfs_parser *p, struct pfs_lexeme name,
					  struct pfs_lexeme type)
{
	const struct pfs_name *word = pfs_ast_name(p, name), *words = pfs_ast_words(p, type);
	struct pfs_column_def *def = words ? pfs_ast_get(p, sizeof(*def)) : NULL;

	if (!def)
		return NULL;
	def->name = *word;
	def->type = *words;
	def->last = def;
	return def;
}

struct pfs_column_def *pfs_ast_definitions(struct pfs_column_def *list, struct pfs_column_def *more)
{
	if (!list || !more)
		return list ? list : more;
	list->last->next = more;
	list->last = more;
	return list;
}
