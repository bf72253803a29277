/* SPDX-License-Identifier: MIT */
/* FROM, SELECT and WITH. */
#include "fs/query/parse/ast_impl.h"

#include <string.h>
#include <strings.h>

/* ---- FROM ---- */

unsigned pfs_ast_join(struct pfs_parser *p, struct pfs_lexeme word)
{
	static const struct {
		const char *name;
		unsigned join;
	} words[] = {
		{"natural", PFS_JOINS_NATURAL},
		{"left", PFS_JOINS_LEFT | PFS_JOINS_OUTER},
		{"right", PFS_JOINS_RIGHT | PFS_JOINS_OUTER},
		{"full", PFS_JOINS_LEFT | PFS_JOINS_RIGHT | PFS_JOINS_OUTER},
		{"outer", PFS_JOINS_OUTER},
		{"inner", PFS_JOINS_INNER},
		{"cross", PFS_JOINS_CROSS | PFS_JOINS_INNER},
	};
	const char *text = p->sql + word.span.at;

	for (size_t i = 0; i < PFS_COUNT(words); i++) {
		if (strlen(words[i].name) == word.span.len &&
		    strncasecmp(text, words[i].name, word.span.len) == 0)
			return words[i].join;
	}
	pfs_ast_refuse(p, word.span.at, "it has a join of an unknown kind");
	return 0;
}

static struct pfs_from *new_source(struct pfs_parser *p, enum pfs_from_kind kind, uint32_t at,
				     const struct pfs_name *alias, unsigned deepest)
{
	uint16_t depth = pfs_ast_depth(p, deepest);
	struct pfs_from *source = pfs_ast_get(p, sizeof(*source));

	if (!source)
		return NULL;
	source->kind = kind;
	source->alias = alias;
	source->depth = depth;
	source->span = pfs_ast_span(p, at);
	source->last = source;
	return source;
}

struct pfs_from *pfs_ast_table(struct pfs_parser *p, struct pfs_qualified table,
				 const struct pfs_name *alias, bool is_indexed)
{
	struct pfs_from *source = new_source(p, PFS_FROM_TABLE, table.at, alias, 0);

	if (!source || !table.name)
		return NULL;
	source->schema = table.schema;
	source->name = table.name;
	source->is_indexed = is_indexed;
	source->span.len = table.name->span.at + table.name->span.len - table.at;
	return source;
}

struct pfs_from *pfs_ast_table_function(struct pfs_parser *p, struct pfs_qualified table,
					  struct pfs_items *args, const struct pfs_name *alias)
{
	struct pfs_from *source =
		new_source(p, PFS_FROM_FUNCTION, table.at, alias, pfs_depth_of_items(args));

	if (!source)
		return NULL;
	source->schema = table.schema;
	source->name = table.name;
	source->args = args;
	return source;
}

struct pfs_from *pfs_ast_sub_select(struct pfs_parser *p, struct pfs_lexeme open,
				      struct pfs_select *select, const struct pfs_name *alias)
{
	struct pfs_from *source =
		new_source(p, PFS_FROM_SELECT, open.span.at, alias, pfs_depth_of_select(select));

	if (source)
		source->select = select;
	return source;
}

struct pfs_from *pfs_ast_sub_join(struct pfs_parser *p, struct pfs_lexeme open,
				    struct pfs_from *inner, const struct pfs_name *alias)
{
	struct pfs_from *source =
		new_source(p, PFS_FROM_JOIN, open.span.at, alias, inner ? inner->depth : 0);

	if (source)
		source->inner = inner;
	return source;
}

void pfs_ast_on(struct pfs_parser *p, struct pfs_from *source, struct pfs_expr *on)
{
	if (!source || p->error)
		return;
	source->on = on;
	source->depth = (uint16_t)pfs_deeper(source->depth, pfs_depth_of(on));
}

/* The first one's depth is that of them all. */
struct pfs_from *pfs_ast_source_list(struct pfs_parser *p, struct pfs_from *list, unsigned join,
				       struct pfs_from *source)
{
	if (!source || p->error)
		return list;
	source->join = join;
	if (!list)
		return source;
	list->last->next = source;
	list->last = source;
	list->depth = (uint16_t)pfs_deeper(list->depth, source->depth);
	return list;
}

/* ---- SELECT ---- */

struct pfs_core *pfs_ast_core(struct pfs_parser *p, struct pfs_lexeme first, bool is_distinct,
			      struct pfs_items *results, struct pfs_from *from,
			      struct pfs_expr *where)
{
	struct pfs_core *core = pfs_ast_get(p, sizeof(*core));

	if (!core)
		return NULL;
	core->span = pfs_ast_span(p, first.span.at);
	core->is_distinct = is_distinct;
	core->results = results;
	core->from = from;
	core->where = where;
	return core;
}

void pfs_ast_grouped(struct pfs_core *core, struct pfs_items *group, struct pfs_expr *having,
		     struct pfs_items *windows)
{
	if (!core)
		return;
	core->group = group;
	core->having = having;
	core->windows = windows;
}

struct pfs_core *pfs_ast_values(struct pfs_parser *p, struct pfs_lexeme first,
				struct pfs_value_rows rows)
{
	struct pfs_core *core = pfs_ast_core(p, first, false, NULL, NULL, NULL);

	if (core)
		core->rows = rows.first;
	return core;
}

struct pfs_value_rows pfs_ast_rows(struct pfs_parser *p, struct pfs_value_rows rows,
				   struct pfs_items *row)
{
	if (!row || !rows.last || p->error)
		return rows;
	rows.last->next = row;
	rows.last = row;
	return rows;
}

static unsigned core_depth(const struct pfs_core *core)
{
	unsigned depth = pfs_deeper(pfs_depth_of(core->where), pfs_depth_of(core->having));

	depth = pfs_deeper(depth, pfs_depth_of_items(core->results));
	depth = pfs_deeper(depth, pfs_depth_of_items(core->group));
	depth = pfs_deeper(depth, pfs_depth_of_items(core->windows));
	for (const struct pfs_items *row = core->rows; row; row = row->next)
		depth = pfs_deeper(depth, row->depth);
	return pfs_deeper(depth, core->from ? core->from->depth : 0);
}

static void end_select(struct pfs_parser *p, struct pfs_select *select, struct pfs_items *order,
		       struct pfs_limit limit)
{
	unsigned depth =
		pfs_deeper(select->depth ? select->depth - 1U : 0, core_depth(select->last));

	depth = pfs_deeper(depth, pfs_depth_of_items(order));
	depth = pfs_deeper(depth, pfs_depth_of(limit.limit));
	depth = pfs_deeper(depth, pfs_depth_of(limit.offset));
	select->order = order;
	select->limit = limit.limit;
	select->offset = limit.offset;
	select->span = pfs_ast_span(p, select->first->span.at);
	select->depth = pfs_ast_depth(p, depth);
}

struct pfs_select *pfs_ast_select(struct pfs_parser *p, struct pfs_core *core,
				  struct pfs_items *order, struct pfs_limit limit)
{
	struct pfs_select *select = core ? pfs_ast_get(p, sizeof(*select)) : NULL;

	if (!select)
		return NULL;
	select->first = select->last = core;
	end_select(p, select, order, limit);
	return select;
}

struct pfs_select *pfs_ast_compound(struct pfs_parser *p, struct pfs_select *select,
				    enum pfs_compound compound, struct pfs_core *core,
				    struct pfs_items *order, struct pfs_limit limit)
{
	if (!select || !core || p->error)
		return NULL;
	if (select->order || select->limit) {
		pfs_ast_refuse(p, core->span.at, "its ORDER BY or LIMIT is not at its end");
		return NULL;
	}
	core->compound = compound;
	select->last->next = core;
	select->last = core;
	end_select(p, select, order, limit);
	return select;
}

struct pfs_select *pfs_ast_with(struct pfs_parser *p, struct pfs_select *select,
				struct pfs_with *with, bool is_recursive)
{
	if (!select || !with)
		return NULL;
	with->is_recursive = is_recursive;
	select->with = with;
	select->depth = pfs_ast_depth(p, pfs_deeper(select->depth - 1U, with->depth));
	return select;
}

struct pfs_with *pfs_ast_ctes(struct pfs_parser *p, struct pfs_with *with, struct pfs_cte *cte)
{
	if (!with)
		with = pfs_ast_get(p, sizeof(*with));
	if (!with || !cte)
		return with;
	if (with->last)
		with->last->next = cte;
	else
		with->first = cte;
	with->last = cte;
	with->depth = (uint16_t)pfs_deeper(with->depth, pfs_depth_of_select(cte->select));
	return with;
}

struct pfs_cte *pfs_ast_cte(struct pfs_parser *p, struct pfs_lexeme name,
			    struct pfs_column_names *columns, enum pfs_materialized materialized,
			    struct pfs_select *select)
{
	const struct pfs_name *word = pfs_ast_name(p, name);
	struct pfs_cte *cte = word ? pfs_ast_get(p, sizeof(*cte)) : NULL;

	if (!cte)
		return NULL;
	cte->name = *word;
	cte->columns = columns;
	cte->materialized = materialized;
	cte->select = select;
	return cte;
}
