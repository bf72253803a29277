/* SPDX-License-Identifier: MIT */
/* SQLite's statements, as far as they are taken (parse.h).  Rules, precedences and fallbacks are those of
 * SQLite's own grammar, so that what both take they read alike. */
%name pfs_grammar
%token_prefix SQL_
%token_type {struct pfs_lexeme}
%default_type {struct pfs_lexeme}
%extra_argument {struct pfs_parser *p}
%syntax_error { (void)yymajor; pfs_ast_refuse(p, TOKEN.span.at, "its words are not of this dialect"); }
%stack_overflow { pfs_ast_refuse(p, p->end, "it is nested too deeply"); }
%stack_size 300
%include {
#include <stdlib.h>
#include "fs/query/parse/ast_impl.h"
#define YYNOERRORRECOVERY 1
}

%left OR.
%left AND.
%right NOT.
%left IS MATCH LIKE_KW BETWEEN IN ISNULL NOTNULL NE EQ.
%left GT LE LT GE.
%right ESCAPE.
%left BITAND BITOR LSHIFT RSHIFT.
%left PLUS MINUS.
%left STAR SLASH REM.
%left CONCAT PTR LONGPTR.
%left COLLATE.
%right BITNOT.
%nonassoc ON.

%fallback ID
	ABORT ASC BY CAST CURRENT DESC END EXCLUDE FAIL FIRST FOLLOWING GROUPS IF IGNORE KEY LAST LIKE_KW
	MATCH MATERIALIZED NO NULLS OFFSET OTHERS PARTITION PRECEDING RANGE RECURSIVE REPLACE ROLLBACK ROW
	ROWS TEMP TIES UNBOUNDED WITH WITHOUT CTIME_KW.

/* Lower than any: what SQLite's lexer or ours gives and no rule has. */
%nonassoc RESERVED.

input ::= statement(S). { p->statement = S; }
input ::= statement(S) semis. { p->statement = S; }
semis ::= SEMI.
semis ::= semis SEMI.
%type statement {struct pfs_statement *}

/* ---- SELECT ---- */

statement(A) ::= select(X). { A = pfs_ast_statement(p, PFS_STATEMENT_SELECT); if (A) A->select = X; }

%type select {struct pfs_select *}
%type plain_select {struct pfs_select *}
%type core {struct pfs_core *}
select(A) ::= WITH ctes(W) plain_select(X). { A = pfs_ast_with(p, X, W, false); }
select(A) ::= WITH RECURSIVE ctes(W) plain_select(X). { A = pfs_ast_with(p, X, W, true); }
select(A) ::= plain_select(X). { A = X; }
plain_select(A) ::= core(C) order_opt(O) limit_opt(L). { A = pfs_ast_select(p, C, O, L); }
plain_select(A) ::= plain_select(X) compound(K) core(C) order_opt(O) limit_opt(L). {
	A = pfs_ast_compound(p, X, K, C, O, L);
}

%type compound {enum pfs_compound}
compound(A) ::= UNION. { A = PFS_UNION; }
compound(A) ::= UNION ALL. { A = PFS_UNION_ALL; }
compound(A) ::= EXCEPT. { A = PFS_EXCEPT; }
compound(A) ::= INTERSECT. { A = PFS_INTERSECT; }

core(A) ::= SELECT(S) distinct(D) results(R) from(F) where_opt(W) group_opt(G) having_opt(H). {
	A = pfs_ast_core(p, S, D, R, F, W);
	pfs_ast_grouped(A, G, H, NULL);
}
core(A) ::= SELECT(S) distinct(D) results(R) from(F) where_opt(W) group_opt(G) having_opt(H)
	WINDOW window_defs(N). {
	A = pfs_ast_core(p, S, D, R, F, W);
	pfs_ast_grouped(A, G, H, N);
}
core(A) ::= VALUES(V) rows(R). { A = pfs_ast_values(p, V, R); }

%type rows {struct pfs_value_rows}
rows(A) ::= LP items(X) RP. { A.first = A.last = X; }
rows(A) ::= rows(R) COMMA LP items(X) RP. { A = pfs_ast_rows(p, R, X); }

%type distinct {bool}
distinct(A) ::= DISTINCT. { A = true; }
distinct(A) ::= ALL. { A = false; }
distinct(A) ::= . { A = false; }

%type results {struct pfs_items *}
%type result {struct pfs_item *}
results(A) ::= result(X). { A = pfs_ast_items(p, NULL, X); }
results(A) ::= results(L) COMMA result(X). { A = pfs_ast_items(p, L, X); }
result(A) ::= expr(X) as(N). { A = pfs_ast_item(p, X); if (A) A->alias = N; }
result(A) ::= STAR(S). { A = pfs_ast_star(p, S, NULL); }
result(A) ::= nm(T) DOT STAR. { A = pfs_ast_star(p, T, &T); }

%type as {const struct pfs_name *}
as(A) ::= AS nm(X). { A = pfs_ast_name(p, X); }
as(A) ::= ids(X). { A = pfs_ast_name(p, X); }
as(A) ::= . { A = NULL; }

%type from {struct pfs_from *}
%type sources {struct pfs_from *}
%type source {struct pfs_from *}
%type joined {struct pfs_from *}
from(A) ::= . { A = NULL; }
from(A) ::= FROM sources(X). { A = X; }
sources(A) ::= joined(X). { A = pfs_ast_source_list(p, NULL, 0, X); }
sources(A) ::= sources(L) joinop(J) joined(X). { A = pfs_ast_source_list(p, L, J, X); }
joined(A) ::= source(X). [OR] { A = X; }
joined(A) ::= source(X) ON expr(E). { A = X; pfs_ast_on(p, A, E); }
joined(A) ::= source(X) USING LP names(N) RP. { A = X; if (A) A->using = N.first; }

source(A) ::= qualified(Q) as(N). { A = pfs_ast_table(p, Q, N, false); }
source(A) ::= qualified(Q) as(N) INDEXED BY nm. { A = pfs_ast_table(p, Q, N, true); }
source(A) ::= qualified(Q) as(N) NOT INDEXED. { A = pfs_ast_table(p, Q, N, true); }
source(A) ::= qualified(Q) LP items_opt(L) RP as(N). { A = pfs_ast_table_function(p, Q, L, N); }
source(A) ::= LP(S) select(X) RP as(N). { A = pfs_ast_sub_select(p, S, X, N); }
source(A) ::= LP(S) sources(X) RP as(N). { A = pfs_ast_sub_join(p, S, X, N); }

%type qualified {struct pfs_qualified}
qualified(A) ::= nm(X). { A = pfs_ast_qualified(p, NULL, &X); }
qualified(A) ::= nm(X) DOT nm(Y). { A = pfs_ast_qualified(p, &X, &Y); }

%type joinop {unsigned}
joinop(A) ::= COMMA. { A = PFS_JOINS_COMMA; }
joinop(A) ::= JOIN. { A = 0; }
joinop(A) ::= JOIN_KW(X) JOIN. { A = pfs_ast_join(p, X); }
joinop(A) ::= JOIN_KW(X) nm(Y) JOIN. { A = pfs_ast_join(p, X) | pfs_ast_join(p, Y); }
joinop(A) ::= JOIN_KW(X) nm(Y) nm(Z) JOIN. {
	A = pfs_ast_join(p, X) | pfs_ast_join(p, Y) | pfs_ast_join(p, Z);
}

%type where_opt {struct pfs_expr *}
where_opt(A) ::= . { A = NULL; }
where_opt(A) ::= WHERE expr(X). { A = X; }
%type group_opt {struct pfs_items *}
group_opt(A) ::= . { A = NULL; }
group_opt(A) ::= GROUP BY items(X). { A = X; }
%type having_opt {struct pfs_expr *}
having_opt(A) ::= . { A = NULL; }
having_opt(A) ::= HAVING expr(X). { A = X; }
%type order_opt {struct pfs_items *}
order_opt(A) ::= . { A = NULL; }
order_opt(A) ::= ORDER BY terms(X). { A = X; }
%type terms {struct pfs_items *}
%type term {struct pfs_item *}
terms(A) ::= term(X). { A = pfs_ast_items(p, NULL, X); }
terms(A) ::= terms(L) COMMA term(X). { A = pfs_ast_items(p, L, X); }
term(A) ::= expr(X) direction(D) nulls(N). {
	A = pfs_ast_item(p, X);
	pfs_ast_direction(A, X, D, N);
}
%type direction {bool}
direction(A) ::= ASC. { A = false; }
direction(A) ::= DESC. { A = true; }
direction(A) ::= . { A = false; }
%type nulls {enum pfs_nulls}
nulls(A) ::= NULLS FIRST. { A = PFS_NULLS_FIRST; }
nulls(A) ::= NULLS LAST. { A = PFS_NULLS_LAST; }
nulls(A) ::= . { A = PFS_NULLS_DEFAULT; }

%type limit_opt {struct pfs_limit}
limit_opt(A) ::= . { A.limit = A.offset = NULL; }
limit_opt(A) ::= LIMIT expr(X). { A.limit = X; A.offset = NULL; }
limit_opt(A) ::= LIMIT expr(X) OFFSET expr(Y). { A.limit = X; A.offset = Y; }
limit_opt(A) ::= LIMIT expr(X) COMMA expr(Y). { A.limit = Y; A.offset = X; }

%type ctes {struct pfs_with *}
%type cte {struct pfs_cte *}
%type materialized {enum pfs_materialized}
ctes(A) ::= cte(X). { A = pfs_ast_ctes(p, NULL, X); }
ctes(A) ::= ctes(L) COMMA cte(X). { A = pfs_ast_ctes(p, L, X); }
cte(A) ::= nm(N) names_opt(C) materialized(M) LP select(X) RP. { A = pfs_ast_cte(p, N, C, M, X); }
materialized(A) ::= AS. { A = PFS_CTE_DEFAULT; }
materialized(A) ::= AS MATERIALIZED. { A = PFS_CTE_MATERIALIZED; }
materialized(A) ::= AS NOT MATERIALIZED. { A = PFS_CTE_NOT_MATERIALIZED; }

/* ---- names ---- */

id(A) ::= ID(X). { A = X; }
id(A) ::= INDEXED(X). { A = X; }
ids(A) ::= ID(X). { A = X; }
ids(A) ::= STRING(X). { A = X; }
idj(A) ::= ID(X). { A = X; }
idj(A) ::= INDEXED(X). { A = X; }
idj(A) ::= JOIN_KW(X). { A = X; }
nm(A) ::= id(X). { A = X; }
nm(A) ::= STRING(X). { A = X; }
nm(A) ::= JOIN_KW(X). { A = X; }

%type names {struct pfs_name_list}
%type names_opt {struct pfs_column_names *}
names(A) ::= nm(X). { A = pfs_ast_names(p, (struct pfs_name_list){NULL, NULL}, X); }
names(A) ::= names(L) COMMA nm(X). { A = pfs_ast_names(p, L, X); }
names_opt(A) ::= . { A = NULL; }
names_opt(A) ::= LP names(X) RP. { A = X.first; }

/* ---- expressions ---- */

%type expr {struct pfs_expr *}
%type literal {struct pfs_expr *}
expr(A) ::= literal(X). { A = X; }
literal(A) ::= NULL(X). { A = pfs_ast_literal(p, PFS_EXPR_NULL, X); }
literal(A) ::= INTEGER(X). { A = pfs_ast_literal(p, PFS_EXPR_INTEGER, X); }
literal(A) ::= FLOAT(X). { A = pfs_ast_literal(p, PFS_EXPR_REAL, X); }
literal(A) ::= STRING(X). { A = pfs_ast_literal(p, PFS_EXPR_STRING, X); }
literal(A) ::= BLOB(X). { A = pfs_ast_literal(p, PFS_EXPR_BLOB, X); }
literal(A) ::= CTIME_KW(X). { A = pfs_ast_literal(p, PFS_EXPR_NOW, X); }
expr(A) ::= VARIABLE(X). { A = pfs_ast_literal(p, PFS_EXPR_BIND, X); }
expr(A) ::= LP(S) expr(X) RP. { A = pfs_ast_parens(p, S, X); }
expr(A) ::= idj(X). { A = pfs_ast_column(p, NULL, NULL, &X); }
expr(A) ::= nm(X) DOT nm(Y). { A = pfs_ast_column(p, NULL, &X, &Y); }
expr(A) ::= nm(X) DOT nm(Y) DOT nm(Z). { A = pfs_ast_column(p, &X, &Y, &Z); }
expr(A) ::= expr(X) COLLATE(O) ids(N). { A = pfs_ast_named(p, PFS_EXPR_COLLATE, O, X, N); }
expr(A) ::= CAST(O) LP expr(X) AS type(T) RP. { A = pfs_ast_named(p, PFS_EXPR_CAST, O, X, T); }

expr(A) ::= idj(N) LP distinct(D) items_opt(L) RP. { A = pfs_ast_call(p, N, D, L); }
expr(A) ::= idj(N) LP STAR RP. { A = pfs_ast_star_call(p, N); }
expr(A) ::= idj(N) LP distinct(D) items_opt(L) RP filter_over(F). {
	A = pfs_ast_call(p, N, D, L);
	pfs_ast_filter(p, A, F);
}
expr(A) ::= idj(N) LP STAR RP filter_over(F). {
	A = pfs_ast_star_call(p, N);
	pfs_ast_filter(p, A, F);
}

expr(A) ::= LP(S) items(L) COMMA expr(X) RP. { A = pfs_ast_row(p, S, L, X); }
expr(A) ::= expr(X) AND(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_AND, X, O, Y); }
expr(A) ::= expr(X) OR(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_OR, X, O, Y); }
expr(A) ::= expr(X) LT(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_LT, X, O, Y); }
expr(A) ::= expr(X) GT(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_GT, X, O, Y); }
expr(A) ::= expr(X) GE(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_GE, X, O, Y); }
expr(A) ::= expr(X) LE(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_LE, X, O, Y); }
expr(A) ::= expr(X) EQ(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_EQ, X, O, Y); }
expr(A) ::= expr(X) NE(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_NE, X, O, Y); }
expr(A) ::= expr(X) BITAND(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_BIT_AND, X, O, Y); }
expr(A) ::= expr(X) BITOR(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_BIT_OR, X, O, Y); }
expr(A) ::= expr(X) LSHIFT(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_SHIFT_LEFT, X, O, Y); }
expr(A) ::= expr(X) RSHIFT(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_SHIFT_RIGHT, X, O, Y); }
expr(A) ::= expr(X) PLUS(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_ADD, X, O, Y); }
expr(A) ::= expr(X) MINUS(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_SUBTRACT, X, O, Y); }
expr(A) ::= expr(X) STAR(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_MULTIPLY, X, O, Y); }
expr(A) ::= expr(X) SLASH(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_DIVIDE, X, O, Y); }
expr(A) ::= expr(X) REM(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_REMAINDER, X, O, Y); }
expr(A) ::= expr(X) CONCAT(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_CONCAT, X, O, Y); }
expr(A) ::= expr(X) PTR(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_ARROW, X, O, Y); }
expr(A) ::= expr(X) LONGPTR(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_LONG_ARROW, X, O, Y); }

%type likeop {struct pfs_operator}
likeop(A) ::= LIKE_KW(X). { A = (struct pfs_operator){X, false}; }
likeop(A) ::= MATCH(X). { A = (struct pfs_operator){X, false}; }
likeop(A) ::= NOT LIKE_KW(X). { A = (struct pfs_operator){X, true}; }
likeop(A) ::= NOT MATCH(X). { A = (struct pfs_operator){X, true}; }
expr(A) ::= expr(X) likeop(O) expr(Y). [LIKE_KW] { A = pfs_ast_like(p, X, O, Y, NULL); }
expr(A) ::= expr(X) likeop(O) expr(Y) ESCAPE expr(E). [LIKE_KW] { A = pfs_ast_like(p, X, O, Y, E); }

expr(A) ::= expr(X) ISNULL(O). { A = pfs_ast_is_null(p, X, O, false); }
expr(A) ::= expr(X) NOTNULL(O). { A = pfs_ast_is_null(p, X, O, true); }
expr(A) ::= expr(X) NOT(O) NULL. { A = pfs_ast_is_null(p, X, O, true); }
expr(A) ::= expr(X) IS(O) expr(Y). { A = pfs_ast_binary(p, PFS_AST_IS, X, O, Y); }
expr(A) ::= expr(X) IS(O) NOT expr(Y). { A = pfs_ast_binary(p, PFS_AST_IS_NOT, X, O, Y); }
expr(A) ::= expr(X) IS(O) NOT DISTINCT FROM expr(Y). { A = pfs_ast_binary(p, PFS_AST_IS, X, O, Y); }
expr(A) ::= expr(X) IS(O) DISTINCT FROM expr(Y). { A = pfs_ast_binary(p, PFS_AST_IS_NOT, X, O, Y); }

expr(A) ::= NOT(O) expr(X). { A = pfs_ast_unary(p, PFS_AST_NOT, O, X); }
expr(A) ::= BITNOT(O) expr(X). { A = pfs_ast_unary(p, PFS_AST_BIT_NOT, O, X); }
expr(A) ::= PLUS(O) expr(X). [BITNOT] { A = pfs_ast_unary(p, PFS_AST_PLUS, O, X); }
expr(A) ::= MINUS(O) expr(X). [BITNOT] { A = pfs_ast_unary(p, PFS_AST_NEGATE, O, X); }

%type between_op {struct pfs_operator}
between_op(A) ::= BETWEEN(X). { A = (struct pfs_operator){X, false}; }
between_op(A) ::= NOT BETWEEN(X). { A = (struct pfs_operator){X, true}; }
expr(A) ::= expr(X) between_op(O) expr(Y) AND expr(Z). [BETWEEN] {
	A = pfs_ast_between(p, X, O, Y, Z);
}

%type in_op {struct pfs_operator}
in_op(A) ::= IN(X). { A = (struct pfs_operator){X, false}; }
in_op(A) ::= NOT IN(X). { A = (struct pfs_operator){X, true}; }
expr(A) ::= expr(X) in_op(O) LP items_opt(L) RP. [IN] { A = pfs_ast_in(p, X, O, L, NULL); }
expr(A) ::= expr(X) in_op(O) LP select(S) RP. [IN] { A = pfs_ast_in(p, X, O, NULL, S); }
expr(A) ::= expr(X) in_op(O) qualified(Q) in_args(L). [IN] { A = pfs_ast_in_table(p, X, O, Q, L); }
%type in_args {struct pfs_items *}
in_args(A) ::= . { A = NULL; }
in_args(A) ::= LP items_opt(X) RP. { A = X; }
expr(A) ::= LP(S) select(X) RP. { A = pfs_ast_select_value(p, PFS_EXPR_SELECT, S, X); }
expr(A) ::= EXISTS(O) LP select(X) RP. { A = pfs_ast_select_value(p, PFS_EXPR_EXISTS, O, X); }

%type case_operand {struct pfs_expr *}
%type case_else {struct pfs_expr *}
%type whens {struct pfs_items *}
expr(A) ::= CASE(O) case_operand(X) whens(L) case_else(Y) END. { A = pfs_ast_case(p, O, X, L, Y); }
case_operand(A) ::= expr(X). { A = X; }
case_operand(A) ::= . { A = NULL; }
case_else(A) ::= ELSE expr(X). { A = X; }
case_else(A) ::= . { A = NULL; }
whens(A) ::= WHEN expr(X) THEN expr(Y). { A = pfs_ast_when(p, NULL, X, Y); }
whens(A) ::= whens(L) WHEN expr(X) THEN expr(Y). { A = pfs_ast_when(p, L, X, Y); }

%type items {struct pfs_items *}
%type items_opt {struct pfs_items *}
items(A) ::= expr(X). { A = pfs_ast_items(p, NULL, pfs_ast_item(p, X)); }
items(A) ::= items(L) COMMA expr(X). { A = pfs_ast_items(p, L, pfs_ast_item(p, X)); }
items_opt(A) ::= . { A = NULL; }
items_opt(A) ::= items(X). { A = X; }

/* A type is its words as they are written. */
type(A) ::= . { A = (struct pfs_lexeme){SQL_RESERVED, {p->end, 0}}; }
type(A) ::= type_name(X). { A = X; }
type(A) ::= type_name(X) LP signed RP. { A = pfs_ast_to_here(p, X); }
type(A) ::= type_name(X) LP signed COMMA signed RP. { A = pfs_ast_to_here(p, X); }
type_name(A) ::= ids(X). { A = pfs_ast_to_here(p, X); }
type_name(A) ::= type_name(X) ids. { A = pfs_ast_to_here(p, X); }
signed ::= plus_or_minus number.
plus_or_minus ::= .
plus_or_minus ::= PLUS.
plus_or_minus ::= MINUS.
number ::= INTEGER.
number ::= FLOAT.

/* ---- windows: their expressions are kept in one list ---- */

%type filter_over {struct pfs_filter_over}
%type filter {struct pfs_expr *}
%type over {struct pfs_over}
filter_over(A) ::= filter(F) over(O). { A = (struct pfs_filter_over){F, O, true}; }
filter_over(A) ::= over(O). { A = (struct pfs_filter_over){NULL, O, true}; }
filter_over(A) ::= filter(F). { A = (struct pfs_filter_over){.filter = F}; }
filter(A) ::= FILTER LP WHERE expr(X) RP. { A = X; }
over(A) ::= OVER LP window(X) RP. { A = X; }
over(A) ::= OVER nm. { A = (struct pfs_over){NULL}; }

%type window {struct pfs_over}
%type frame {struct pfs_over}
%type bound {struct pfs_items *}
%type window_defs {struct pfs_items *}
window_defs(A) ::= window_def(X). { A = X; }
window_defs(A) ::= window_defs(L) COMMA window_def(X). { A = pfs_ast_joined(p, L, X); }
%type window_def {struct pfs_items *}
window_def(A) ::= nm AS LP window(X) RP. { A = X.items; }
window(A) ::= PARTITION BY items(X) order_opt(O) frame(F). { A = pfs_ast_over(p, false, X, O, F); }
window(A) ::= nm PARTITION BY items(X) order_opt(O) frame(F). { A = pfs_ast_over(p, true, X, O, F); }
window(A) ::= ORDER BY terms(O) frame(F). { A = pfs_ast_over(p, false, NULL, O, F); }
window(A) ::= nm ORDER BY terms(O) frame(F). { A = pfs_ast_over(p, true, NULL, O, F); }
window(A) ::= frame(F). { A = F; }
window(A) ::= nm frame(F). { A = pfs_ast_over(p, true, NULL, NULL, F); }
frame(A) ::= . { A = (struct pfs_over){.is_plain = true}; }
frame(A) ::= frame_unit bound(X) exclude. { A = (struct pfs_over){.items = X}; }
frame(A) ::= frame_unit BETWEEN bound(X) AND bound(Y) exclude. {
	A = (struct pfs_over){.items = pfs_ast_joined(p, X, Y)};
}
frame_unit ::= RANGE.
frame_unit ::= ROWS.
frame_unit ::= GROUPS.
bound(A) ::= UNBOUNDED PRECEDING. { A = NULL; }
bound(A) ::= UNBOUNDED FOLLOWING. { A = NULL; }
bound(A) ::= CURRENT ROW. { A = NULL; }
bound(A) ::= expr(X) PRECEDING. { A = pfs_ast_items(p, NULL, pfs_ast_item(p, X)); }
bound(A) ::= expr(X) FOLLOWING. { A = pfs_ast_items(p, NULL, pfs_ast_item(p, X)); }
exclude ::= .
exclude ::= EXCLUDE NO OTHERS.
exclude ::= EXCLUDE CURRENT ROW.
exclude ::= EXCLUDE GROUP.
exclude ::= EXCLUDE TIES.

/* ---- changes ---- */

%type with_opt {struct pfs_with *}
with_opt(A) ::= . { A = NULL; }
with_opt(A) ::= WITH ctes(W). { A = W; }
with_opt(A) ::= WITH RECURSIVE ctes(W). { A = W; if (A) A->is_recursive = true; }

%type conflict {bool}
conflict(A) ::= . { A = false; }
conflict(A) ::= OR ROLLBACK. { A = true; }
conflict(A) ::= OR ABORT. { A = true; }
conflict(A) ::= OR FAIL. { A = true; }
conflict(A) ::= OR IGNORE. { A = true; }
conflict(A) ::= OR REPLACE. { A = true; }

%type target {struct pfs_target}
target(A) ::= qualified(Q). { A = (struct pfs_target){Q, NULL}; }
target(A) ::= qualified(Q) AS nm(N). { A = (struct pfs_target){Q, pfs_ast_name(p, N)}; }
%type indexed_target {struct pfs_target}
indexed_target(A) ::= target(T). { A = T; }
indexed_target(A) ::= target(T) INDEXED BY nm. { A = T; }
indexed_target(A) ::= target(T) NOT INDEXED. { A = T; }

%type insert {bool}
insert(A) ::= INSERT conflict(C). { A = C; }
insert(A) ::= REPLACE. { A = true; }
statement(A) ::= with_opt(W) insert(I) INTO target(T) names_opt(N) select(X). {
	A = pfs_ast_change(p, PFS_STATEMENT_INSERT, W, T, I);
	if (A) { A->columns = N; A->select = X; }
}
statement(A) ::= with_opt(W) insert(I) INTO target(T) names_opt(N) DEFAULT VALUES. {
	A = pfs_ast_change(p, PFS_STATEMENT_INSERT, W, T, I);
	if (A) A->columns = N;
}
statement(A) ::= with_opt(W) UPDATE conflict(C) indexed_target(T) SET settings(S) from(F) where_opt(X)
	order_opt(O) limit_opt(L). {
	A = pfs_ast_change(p, PFS_STATEMENT_UPDATE, W, T, C);
	pfs_ast_changed(A, X, O, L);
	if (A) { A->set = S; A->from = F; }
}
statement(A) ::= with_opt(W) DELETE FROM indexed_target(T) where_opt(X) order_opt(O) limit_opt(L). {
	A = pfs_ast_change(p, PFS_STATEMENT_DELETE, W, T, false);
	pfs_ast_changed(A, X, O, L);
}
%type settings {struct pfs_items *}
settings(A) ::= setting(X). { A = pfs_ast_items(p, NULL, X); }
settings(A) ::= settings(L) COMMA setting(X). { A = pfs_ast_items(p, L, X); }
%type setting {struct pfs_item *}
setting(A) ::= nm(N) EQ expr(X). { A = pfs_ast_item(p, X); if (A) A->alias = pfs_ast_name(p, N); }

%type temporary {bool}
temporary(A) ::= . { A = false; }
temporary(A) ::= TEMP. { A = true; }
%type if_not_exists {bool}
if_not_exists(A) ::= . { A = false; }
if_not_exists(A) ::= IF NOT EXISTS. { A = true; }
%type if_exists {bool}
if_exists(A) ::= . { A = false; }
if_exists(A) ::= IF EXISTS. { A = true; }
%type unique {bool}
unique(A) ::= . { A = false; }
unique(A) ::= UNIQUE. { A = true; }

statement(A) ::= CREATE temporary(T) TABLE if_not_exists(E) qualified(Q) AS select(X). {
	A = pfs_ast_definition(p, PFS_STATEMENT_CREATE_TABLE, Q, E);
	if (A) { A->is_temporary = T; A->select = X; }
}
statement(A) ::= CREATE temporary(T) TABLE if_not_exists(E) qualified(Q) LP definitions(D) RP. {
	A = pfs_ast_definition(p, PFS_STATEMENT_CREATE_TABLE, Q, E);
	if (A) { A->is_temporary = T; A->definitions = D; }
}
statement(A) ::= DROP TABLE if_exists(E) qualified(Q). {
	A = pfs_ast_definition(p, PFS_STATEMENT_DROP_TABLE, Q, E);
}
statement(A) ::= DROP INDEX if_exists(E) qualified(Q). {
	A = pfs_ast_definition(p, PFS_STATEMENT_DROP_INDEX, Q, E);
}
statement(A) ::= CREATE unique(U) INDEX if_not_exists(E) qualified(Q) ON nm(T) LP terms(L) RP where_opt(W). {
	A = pfs_ast_definition(p, PFS_STATEMENT_CREATE_INDEX, Q, E);
	pfs_ast_index(p, A, T, L, W);
	if (A) A->is_unique = U;
}

%type definitions {struct pfs_column_def *}
%type definition {struct pfs_column_def *}
definitions(A) ::= definition(X). { A = pfs_ast_definitions(NULL, X); }
definitions(A) ::= definitions(L) COMMA definition(X). { A = pfs_ast_definitions(L, X); }
definition(A) ::= nm(N) type(T). { A = pfs_ast_column_def(p, N, T); }
definition(A) ::= definition(D) NOT NULL. { A = D; if (A) A->is_not_null = true; }
definition(A) ::= definition(D) NULL. { A = D; }
definition(A) ::= definition(D) PRIMARY KEY direction(X). {
	A = D;
	if (A) { A->is_primary_key = true; A->is_descending = X; }
}
definition(A) ::= definition(D) DEFAULT literal(X). { A = D; if (A) A->default_value = X; }
definition(A) ::= definition(D) DEFAULT LP expr(X) RP. { A = D; if (A) A->default_value = X; }
definition(A) ::= definition(D) DEFAULT MINUS(O) literal(X). {
	A = D;
	if (A) A->default_value = pfs_ast_unary(p, PFS_AST_NEGATE, O, X);
}
