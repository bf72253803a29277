/* SPDX-License-Identifier: MIT */
/* re2c makes C of this.  The words are SQLite's: those that it reserves and no statement of ours has are
 * RESERVED; those that it takes for names where they make no sense are so by grammar.y's %fallback, or are
 * not here at all. */
#include "fs/query/parse/lexer.h"

#include "fs/query/parse/grammar.h"

struct pfs_lexeme pfs_lex(const char *text, size_t from)
{
	const char *YYCURSOR = text + from, *YYMARKER, *start;
	int kind;

	for (;;) {
		start = YYCURSOR;
		/*!re2c
		re2c:yyfill:enable = 0;
		re2c:define:YYCTYPE = "unsigned char";

		letter = [A-Za-z_\x80-\xff];
		tail = [A-Za-z0-9_$\x80-\xff];
		digits = [0-9]+;
		exponent = 'e' [+-]? digits;

		"\x00" { kind = 0; break; }
		[ \t\n\f\r]+ { continue; }
		"--" [^\n\x00]* { continue; }
		"/*" ([^*\x00] | "*"+ [^*/\x00])* "*"+ "/" { continue; }

		digits { kind = SQL_INTEGER; break; }
		"0" 'x' [0-9a-fA-F]+ { kind = SQL_INTEGER; break; }
		(digits "." [0-9]* | "." digits) exponent? | digits exponent { kind = SQL_FLOAT; break; }
		(digits "." [0-9]* | digits | "." digits) exponent? letter { kind = -1; break; }
		"0" 'x' [0-9a-fA-F]+ [g-zG-Z_$\x80-\xff] { kind = -1; break; }
		'x' "'" ([0-9a-fA-F][0-9a-fA-F])* "'" { kind = SQL_BLOB; break; }
		'x' "'" { kind = -1; break; }
		"'" ([^'\x00] | "''")* "'" { kind = SQL_STRING; break; }
		"\"" ([^"\x00] | "\"\"")* "\"" { kind = SQL_ID; break; }
		"`" ([^`\x00] | "``")* "`" { kind = SQL_ID; break; }
		"[" [^\]\x00]* "]" { kind = SQL_ID; break; }
		"?" [0-9]* { kind = SQL_VARIABLE; break; }
		[@:$] tail+ { kind = SQL_VARIABLE; break; }

		"(" { kind = SQL_LP; break; }
		")" { kind = SQL_RP; break; }
		"," { kind = SQL_COMMA; break; }
		"." { kind = SQL_DOT; break; }
		";" { kind = SQL_SEMI; break; }
		"+" { kind = SQL_PLUS; break; }
		"-" { kind = SQL_MINUS; break; }
		"*" { kind = SQL_STAR; break; }
		"/" { kind = SQL_SLASH; break; }
		"%" { kind = SQL_REM; break; }
		"=" | "==" { kind = SQL_EQ; break; }
		"<>" | "!=" { kind = SQL_NE; break; }
		"<" { kind = SQL_LT; break; }
		"<=" { kind = SQL_LE; break; }
		">" { kind = SQL_GT; break; }
		">=" { kind = SQL_GE; break; }
		"<<" { kind = SQL_LSHIFT; break; }
		">>" { kind = SQL_RSHIFT; break; }
		"&" { kind = SQL_BITAND; break; }
		"|" { kind = SQL_BITOR; break; }
		"||" { kind = SQL_CONCAT; break; }
		"~" { kind = SQL_BITNOT; break; }
		"->" { kind = SQL_PTR; break; }
		"->>" { kind = SQL_LONGPTR; break; }

		'abort' { kind = SQL_ABORT; break; }
		'all' { kind = SQL_ALL; break; }
		'and' { kind = SQL_AND; break; }
		'as' { kind = SQL_AS; break; }
		'asc' { kind = SQL_ASC; break; }
		'between' { kind = SQL_BETWEEN; break; }
		'by' { kind = SQL_BY; break; }
		'case' { kind = SQL_CASE; break; }
		'cast' { kind = SQL_CAST; break; }
		'collate' { kind = SQL_COLLATE; break; }
		'create' { kind = SQL_CREATE; break; }
		'current' { kind = SQL_CURRENT; break; }
		'default' { kind = SQL_DEFAULT; break; }
		'delete' { kind = SQL_DELETE; break; }
		'desc' { kind = SQL_DESC; break; }
		'distinct' { kind = SQL_DISTINCT; break; }
		'drop' { kind = SQL_DROP; break; }
		'else' { kind = SQL_ELSE; break; }
		'end' { kind = SQL_END; break; }
		'escape' { kind = SQL_ESCAPE; break; }
		'except' { kind = SQL_EXCEPT; break; }
		'exclude' { kind = SQL_EXCLUDE; break; }
		'exists' { kind = SQL_EXISTS; break; }
		'fail' { kind = SQL_FAIL; break; }
		'filter' { kind = SQL_FILTER; break; }
		'first' { kind = SQL_FIRST; break; }
		'following' { kind = SQL_FOLLOWING; break; }
		'from' { kind = SQL_FROM; break; }
		'group' { kind = SQL_GROUP; break; }
		'groups' { kind = SQL_GROUPS; break; }
		'having' { kind = SQL_HAVING; break; }
		'if' { kind = SQL_IF; break; }
		'ignore' { kind = SQL_IGNORE; break; }
		'in' { kind = SQL_IN; break; }
		'index' { kind = SQL_INDEX; break; }
		'indexed' { kind = SQL_INDEXED; break; }
		'insert' { kind = SQL_INSERT; break; }
		'intersect' { kind = SQL_INTERSECT; break; }
		'into' { kind = SQL_INTO; break; }
		'is' { kind = SQL_IS; break; }
		'isnull' { kind = SQL_ISNULL; break; }
		'join' { kind = SQL_JOIN; break; }
		'key' { kind = SQL_KEY; break; }
		'last' { kind = SQL_LAST; break; }
		'limit' { kind = SQL_LIMIT; break; }
		'match' { kind = SQL_MATCH; break; }
		'materialized' { kind = SQL_MATERIALIZED; break; }
		'no' { kind = SQL_NO; break; }
		'not' { kind = SQL_NOT; break; }
		'notnull' { kind = SQL_NOTNULL; break; }
		'null' { kind = SQL_NULL; break; }
		'nulls' { kind = SQL_NULLS; break; }
		'offset' { kind = SQL_OFFSET; break; }
		'on' { kind = SQL_ON; break; }
		'or' { kind = SQL_OR; break; }
		'order' { kind = SQL_ORDER; break; }
		'others' { kind = SQL_OTHERS; break; }
		'over' { kind = SQL_OVER; break; }
		'partition' { kind = SQL_PARTITION; break; }
		'preceding' { kind = SQL_PRECEDING; break; }
		'primary' { kind = SQL_PRIMARY; break; }
		'range' { kind = SQL_RANGE; break; }
		'recursive' { kind = SQL_RECURSIVE; break; }
		'replace' { kind = SQL_REPLACE; break; }
		'rollback' { kind = SQL_ROLLBACK; break; }
		'row' { kind = SQL_ROW; break; }
		'rows' { kind = SQL_ROWS; break; }
		'select' { kind = SQL_SELECT; break; }
		'set' { kind = SQL_SET; break; }
		'table' { kind = SQL_TABLE; break; }
		'temp' | 'temporary' { kind = SQL_TEMP; break; }
		'then' { kind = SQL_THEN; break; }
		'ties' { kind = SQL_TIES; break; }
		'unbounded' { kind = SQL_UNBOUNDED; break; }
		'union' { kind = SQL_UNION; break; }
		'unique' { kind = SQL_UNIQUE; break; }
		'update' { kind = SQL_UPDATE; break; }
		'using' { kind = SQL_USING; break; }
		'values' { kind = SQL_VALUES; break; }
		'when' { kind = SQL_WHEN; break; }
		'where' { kind = SQL_WHERE; break; }
		'window' { kind = SQL_WINDOW; break; }
		'with' { kind = SQL_WITH; break; }
		'without' { kind = SQL_WITHOUT; break; }
		'like' | 'glob' | 'regexp' { kind = SQL_LIKE_KW; break; }
		'current_date' | 'current_time' | 'current_timestamp' { kind = SQL_CTIME_KW; break; }
		'cross' | 'full' | 'inner' | 'left' | 'natural' | 'outer' | 'right' {
			kind = SQL_JOIN_KW;
			break;
		}
		'add' | 'alter' | 'autoincrement' | 'check' | 'commit' | 'constraint' | 'deferrable' |
		'foreign' | 'nothing' | 'references' | 'returning' | 'to' | 'transaction' {
			kind = SQL_RESERVED;
			break;
		}
		letter tail* { kind = SQL_ID; break; }
		* { kind = -1; break; }
		*/
	}
	return (struct pfs_lexeme){
		kind, {(uint32_t)(start - text), kind ? (uint32_t)(YYCURSOR - start) : 0}};
}
