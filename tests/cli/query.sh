#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs query: statements of the command line and from standard input, formats, errors.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

printf '%s\n' /a/x.c /a/y.c /b/z.txt | primefs import --format=paths - "$store" >/dev/null
query() { primefs query "$store" "$@"; }
tab=$'\t'

is 'TSV where there is no terminal' "$(query "SELECT name, ext FROM nodes WHERE type = 'f' ORDER BY name")" \
	"name${tab}ext
x.c${tab}c
y.c${tab}c
z.txt${tab}txt"
is 'CSV' "$(query --csv 'SELECT 1 AS a, NULL AS b, '\''x,"y"'\'' AS c')" $'a,b,c\r\n1,,"x,""y"""\r'
is 'JSON' "$(query --json 'SELECT count(*) AS n, NULL AS s FROM nodes' | tr -d ' \n')" '[{"n":6,"s":null}]'
is 'paths' "$(query --paths "SELECT size, path FROM nodes WHERE ext = 'c' ORDER BY path")" $'/a/x.c\n/a/y.c'
is 'paths, NUL-ended' "$(query -0 "SELECT path FROM nodes WHERE ext = 'c' ORDER BY path" | tr '\0' '!')" '/a/x.c!/a/y.c!'
is 'aligned' "$(query --txt 'SELECT 1 AS one' | head -n 1 | tr -d ' ')" one
ok 'the plan' grep -q "ext = 'c'" <(query --plan "SELECT count(*) FROM nodes WHERE ext = 'c'")
exits 'the plan of a statement that fails on the way' 2 query --plan 'SELECT sum(9223372036854775807) FROM nodes'
is 'says what the statement says' "$(query --plan 'SELECT sum(9223372036854775807) FROM nodes' 2>&1)" 'primefs query: integer overflow'
is 'several from standard input' "$(printf 'SELECT 1;\n\nSELECT\n2;SELECT 3' | primefs query --csv "$store" 2>&1 | tr -d '\r' | head -n 2 | tail -n 1)" 1
is 'the last without a semicolon' "$(printf 'SELECT count(*) AS n FROM nodes' | primefs query "$store")" $'n\n6'
# a statement ends where SQLite says so
script() { printf %b "$1" | primefs query --csv "$store" 2>&1 | tr -d '\r' | tr '\n' ' '; }
query "CREATE TABLE cut (k INTEGER)"
query "INSERT INTO cut VALUES (1), (2)"
is 'not in a comment at the end of a line' "$(script 'DELETE FROM cut -- the first;\nWHERE k = 1;\nSELECT k FROM cut;')" 'k 2 '
is 'nor in one of several lines' "$(script 'UPDATE cut SET k = 0 /* all;\n but */ WHERE k = 7;\nSELECT k FROM cut;')" 'k 2 '
is 'nor in a text' "$(script "SELECT 'a;  \n;' AS a;\nSELECT \"k\" FROM [cut] WHERE ';\n' <> \"k\";")" 'a "a;   ;" k 2 '
query 'DROP TABLE cut'
is 'the last one, without a semicolon, in a line of several' "$(script 'SELECT 1 AS a;SELECT 100-1 AS b\n')" 'a 1 b 99 '
is 'several in a line' "$(script 'SELECT 1 AS a; SELECT 2 AS b;SELECT\n3 AS c')" 'a 1 b 2 c 3 '
is 'empty ones are none' "$(script ';\n ; ;SELECT 1 AS a;;\n-- end;\n/* ; */;\n')" 'a 1 '
is 'comments belong to the next' "$(script '/* a;\n b */ SELECT 2 AS b; -- to\n')" 'b 2 '
is 'a trigger is one statement' "$(script 'CREATE TRIGGER a INSERT ON b BEGIN DELETE FROM nodes; END; SELECT 1;' | wc -w)" \
	"$(query 'CREATE TRIGGER a INSERT ON b BEGIN DELETE FROM nodes; END' 2>&1 | wc -w)"
is 'a word among them' "$(script 'SELECT 1 AS a; quit; SELECT 2;')$(script 'SELECT 1 AS a; quit\nSELECT 2;')" 'a 1 a 1 '
is 'one that fails is the last' "$(script 'SELECT 1 AS a; SELECT x; SELECT 2;' | head -c 30)" 'a 1 primefs query: no such col'
fails_with 'a comment without end' 'no statement' bash -c "printf 'SELECT 1; /* a;' | primefs query '$store'"
{ printf "SELECT '" && yes 'a;' | head -n 60000 && printf "';\nSELECT 7;\n"; } >long.sql
fails_with 'one that is too long' 'more than 65536 bytes' bash -c "primefs query '$store' <long.sql"
printf 'SELECT 1;\nSELECT 2\0 + 1;\nSELECT 3;' >nul.sql
exits 'a NUL byte' 2 bash -c "primefs query '$store' <nul.sql"
fails_with 'is not the end' 'a NUL byte; leave it out' bash -c "primefs query '$store' <nul.sql"
is 'what comes before it is run' "$(primefs query "$store" <nul.sql 2>/dev/null)" $'1\n1'
is 'quit' "$(printf 'quit\nSELECT 1;' | primefs query "$store")" ''
exits 'no such column' 2 query 'SELECT nam FROM nodes'
is 'says which, and where' "$(query 'SELECT nam FROM nodes' 2>&1)" \
	'primefs query: no such column: nam; did you mean name?
  SELECT nam FROM nodes
         ^'
long=$(printf '%0300d' 0 | tr 0 x)
is 'of a long line what stands there' "$(query "SELECT $long FROM nodes, $long AND $long" 2>&1 | tail -n +2 | awk '{ print length($0) < 250 }')" $'1\n1'
exits 'no statement' 2 query 'SELEC'
exits 'two statements' 2 query 'SELECT 1; SELECT 2'
exits 'a failing statement ends a script' 2 primefs query "$store" <<<'SELECT x;'
exits 'no store' 3 primefs query none.pfs 'SELECT 1'
exits 'nor one to be asked at a prompt' 3 primefs query none.pfs </dev/null

# changes, of a store that is not mounted
is 'a change says nothing' "$(query "UPDATE nodes SET name = 'w.c', mode = 384 WHERE name = 'x.c'" 2>&1)" ''
is 'and is kept' "$(query --csv "SELECT path, mode FROM nodes WHERE name = 'w.c'" | tail -n 1 | tr -d '\r')" '/a/w.c,33152'
exits 'an impossible one' 3 query "UPDATE nodes SET path = '/a' WHERE path = '/a/w.c' OR path = '/nowhere'"
is 'a side table' "$(query 'CREATE TABLE kinds (ext TEXT, what TEXT)' 2>&1)" ''
query "INSERT INTO kinds VALUES ('c', 'code'), ('txt', 'text')"
is 'joins with nodes' "$(query "SELECT what, count(*) AS n FROM nodes JOIN kinds USING (ext) GROUP BY what ORDER BY what")" \
	"what${tab}n
code${tab}2
text${tab}1"
ok 'optimize keeps it' primefs optimize "$store"
is 'as it was' "$(query 'SELECT count(*) AS n FROM kinds')" $'n\n2'
ok 'the store is sound' primefs check "$store"
query "UPDATE nodes SET path = '/a/x.c' WHERE name = 'w.c'"
is 'several, at one prompt' "$(printf "SELECT count(*) AS n FROM kinds;\nDELETE FROM kinds;\nSELECT count(*) AS n FROM kinds;\n" |
	primefs query "$store")" $'n\n2\nn\n0'
query 'DROP TABLE kinds'

# attributes that were imported with a type take what affinity makes of a value
printf '/a\t4\t1.5\n/b\t2\t-2.5\n' | primefs import --format=paths --columns=stars:int,score:real - "$work/typed.pfs" >/dev/null
typed() { primefs query --paths "$work/typed.pfs" "$@"; }
typed "UPDATE nodes SET score = 10, stars = 5.0 WHERE name = 'a'"
typed "UPDATE nodes SET score = '7', stars = 2.5 WHERE name = 'b'"
is 'an integer among reals is a real' "$(typed "SELECT path FROM nodes WHERE score < 20 ORDER BY score")" $'/b\n/a'
is 'with its type' "$(typed "SELECT typeof(score) || ' ' || typeof(stars) || ' ' || score || ' ' || stars FROM nodes WHERE score IS NOT NULL ORDER BY name")" \
	$'real integer 10.0 5\nreal text 7.0 2.5'
typed "UPDATE nodes SET score = score * -0.0"
is 'and zero has no sign' "$(typed "SELECT typeof(score) || score FROM nodes WHERE score = 0")" $'real0.0\nreal0.0'

printf '/a\t-0.0\n/b\t0.0\n' | primefs import --format=paths --columns=score:real - "$work/zero.pfs" >/dev/null
is 'a zero without sign is imported' "$(primefs query --paths "$work/zero.pfs" "SELECT score FROM nodes WHERE score IS NOT NULL")" $'0.0\n0.0'
printf '/c\tk\n' | primefs import --format=paths --columns=other --at=/ - "$work/zero.pfs" >/dev/null
primefs query "$work/zero.pfs" "UPDATE nodes SET other = 'x'"
is 'and stays one when other attributes change' "$(primefs query --paths "$work/zero.pfs" "SELECT count(*) FROM nodes WHERE score = 0 AND score <= 0.0")" 2

requires fuse
mount_store
is 'the daemon answers' "$(query 'SELECT count(*) AS n FROM nodes')" $'n\n6'
is 'by its mountpoint, too' "$(primefs query "$mnt" 'SELECT count(*) AS n FROM nodes')" $'n\n6'
mkdir "$mnt/new"
fails_with 'no time' "'lastyear' is no time; write one like '2024-01-31'" primefs query "$store" "SELECT path FROM nodes WHERE mtime < 'lastyear'"
fails_with 'seconds' 'seconds[?] times here are nanoseconds: write seconds.x. or a date' \
	primefs query "$store" "SELECT path FROM nodes WHERE mtime > unixepoch('now') - 86400*30"
is 'times as people write them' "$(primefs query --paths "$store" "SELECT count(*) FROM nodes WHERE mtime BETWEEN '1 year ago' AND datetime('now', '+1 day')")" \
	"$(primefs query --paths "$store" "SELECT count(*) FROM nodes WHERE mtime > seconds(unixepoch('now') - 86400*365)")"
fails_with 'not by a directory in it, which has its own' 'lies in one; .*/new/\.query/help' primefs query "$mnt/new" 'SELECT 1'
is 'about what has just changed' "$(query "SELECT path FROM nodes WHERE name = 'new'")" $'path\n/new'
exits 'and says what is wrong' 2 query 'SELECT nam FROM nodes'
exits 'not there yet' 1 test -e "$mnt/made"
query "INSERT INTO nodes (path, type) VALUES ('/made', 'd'), ('/made/here', 'f')"
ok 'what a statement makes is there at once' test -f "$mnt/made/here"
is 'with its mode' "$(stat -c %a "$mnt/made/here")" 644
query "UPDATE nodes SET mode = 256 WHERE path = '/made/here'"
is 'and the one that it gets' "$(stat -c %a "$mnt/made/here")" 400
query "UPDATE nodes SET path = '/moved' WHERE path = '/made'"
exits 'what it moves has left' 1 test -e "$mnt/made"
ok 'and what it moves has moved' test -f "$mnt/moved/here"
query "DELETE FROM nodes WHERE under(ino, '/moved')"
