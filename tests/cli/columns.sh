#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each column of nodes, as the table has it: conditions and orders that the image answers are what SQLite makes
# of the values themselves, and help and manual tell of it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir -p tree/a/b tree/c
printf one >tree/a/one.txt
printf more >tree/a/b/two.tar.gz
ln -s a/one.txt tree/link
ln tree/a/one.txt tree/c/three
touch -d '2001-02-03 04:05:06' tree/c/three tree/a/b
chmod 700 tree/a/b
primefs import --quiet tree "$store"

ask() { primefs query --tsv "$store" "$1" | tail -n +2; }

columns=$(primefs query --tsv "$store" 'SELECT * FROM nodes LIMIT 0')
is 'the columns of nodes are these, in this order' "${columns//$'\t'/ }" \
	'path name ext ino parent depth type mode uid gid owner owner_group size blocks nlink link links target mtime atime ctime subtree_count subtree_size subtree_blocks subtree_mtime'

for column in $columns compared rdev readdir preorder; do
	for test in 'IS NULL' 'IS NOT NULL' "= (SELECT max($column) FROM nodes)" \
		"<> (SELECT max($column) FROM nodes)" ">= (SELECT min(+$column) FROM nodes WHERE depth = 1)" \
		"< (SELECT max(+$column) FROM nodes)"; do
		is "$column $test" "$(ask "SELECT ino FROM nodes WHERE $column $test ORDER BY ino")" \
			"$(ask "SELECT ino FROM nodes WHERE +$column $test ORDER BY +ino")"
	done
	is "ORDER BY $column" "$(ask "SELECT quote($column) FROM nodes ORDER BY $column DESC")" \
		"$(ask "SELECT quote($column) FROM nodes ORDER BY +$column DESC")"
	is "GROUP BY $column" "$(ask "SELECT quote($column), count(*) FROM nodes GROUP BY $column ORDER BY $column")" \
		"$(ask "SELECT quote(v), count(*) FROM (SELECT $column AS v FROM nodes LIMIT -1) GROUP BY v ORDER BY +v")"
done

help=$(primefs query --help)
for column in $columns compared; do
	ok "help names $column" grep -qw -- "$column" <<<"$help"
	ok "the manual names $column" grep -qE "^\.(It )?Li.*\b$column\b" "$top/docs/man/primefs-query.1"
done
