#!/bin/bash
# SPDX-License-Identifier: MIT
# .query/NAME: saved queries of a directory.
# shellcheck disable=SC2002,SC2010,SC2012,SC2094 # listings, pipes and files read twice are tested
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/b tree/c
head -c 3000 /dev/zero >tree/a/x.c
head -c 70000 /dev/zero >tree/a/b/y.iso
echo hi >tree/c/z.c
primefs import tree "$store" >/dev/null
mount_store
q=$mnt/a/.query

ok 'mkdir makes one' mkdir "$q/large"
fails_with 'once' 'File exists' mkdir "$q/large"
for name in where sql run error help stats paths tables treemap.svg; do
	fails_with "not as $name" 'File exists' mkdir "$q/$name"
done
not_ok 'no files' touch "$q/file"
fails_with 'a long name' 'File name too long' mkdir "$q/$(printf '%0250d' 1)"
is 'it is listed' "$(ls "$q" | grep -cx large)" 1
is 'what it has' "$(ls "$q/large" | tr '\n' ' ')" \
	'as_of error nodes paths paths0 plan result.csv result.json result.tsv result.txt sql '
is 'as_of says what was compared before there is a result' \
	"$(sed 's/[0-9TZ:-]\{20\}/TIME/' "$q/large/as_of")" 'compared TIME /a'
fails_with 'no statement yet' 'Invalid argument' cat "$q/large/result.tsv"
ok 'as error says' grep -q 'no statement yet' "$q/large/error"
ok 'its statement' bash -c "echo 'SELECT path, size FROM nodes WHERE size > 1000 AND type = '\''f'\'' ORDER BY size;' >'$q/large/sql'"
is 'sql reads back' "$(cat "$q/large/sql")" "SELECT path, size FROM nodes WHERE size > 1000 AND type = 'f' ORDER BY size;"
is 'error is empty' "$(cat "$q/large/error")" ''
is 'result.tsv' "$(cat "$q/large/result.tsv")" "$(printf 'path\tsize\n/a/x.c\t3000\n/a/b/y.iso\t70000')"
is 'result.csv' "$(tr -d '\r' <"$q/large/result.csv" | tail -n 1)" /a/b/y.iso,70000
python 'result.json' -c 'import json, sys; assert json.load(open(sys.argv[1]))[0]["size"] == 3000' "$q/large/result.json"
is 'result.txt' "$(sed -n 2p "$q/large/result.txt")" '----------  -----'
is 'paths' "$(cat "$q/large/paths")" "$(printf '/a/x.c\n/a/b/y.iso')"
is 'paths0' "$(tr '\0' '\n' <"$q/large/paths0")" "$(printf '/a/x.c\n/a/b/y.iso')"
is 'nodes' "$(ls "$q/large/nodes" | tr '\n' ' ') $(readlink "$q/large/nodes/y.iso") $(cat "$q/large/nodes/y.iso" | wc -c)" \
	'x.c y.iso  ../../../b/y.iso 70000'
ok 'plan' grep -q nodes "$q/large/plan"
ok 'as_of' grep -qx 'epoch [0-9]*' "$q/large/as_of"
ok 'its time' grep -qx 'time [0-9TZ:-]*' "$q/large/as_of"
ok 'and what was compared' grep -qx 'compared [0-9TZ:-]* /a' "$q/large/as_of"
echo more >"$mnt/a/more.c"
truncate -s 2000 "$mnt/a/more.c"
is 'it is answered anew' "$(wc -l <"$q/large/paths")" 3
echo 'SELECT nope FROM nodes' >"$q/large/sql"
not_ok 'a wrong statement' cat "$q/large/result.tsv"
ok 'its error' grep -q '^ *^' "$q/large/error"
echo "DELETE FROM nodes" >"$q/large/sql"
not_ok 'one that changes anything is refused' cat "$q/large/result.tsv"
ok 'and has changed nothing' test -e "$mnt/a/x.c"
printf 'SELECT count(*) AS n FROM nodes -- a comment' >"$q/large/sql"
is 'a comment at the end' "$(tail -n 1 "$q/large/result.tsv")" 5
not_ok 'no nodes without a column' ls "$q/large/nodes"
head -c 70000 /dev/zero | tr '\0' ' ' >blanks
fails_with 'mv says no' 'Operation not permitted' mv "$q/large" "$q/larger"
not_ok 'and makes nothing' test -e "$q/larger"
not_ok 'too long' cp blanks "$q/large/sql"

# ---- kept with the directory, hidden elsewhere ----
ok 'no attribute to others' bash -c "[[ -z \$(getfattr --absolute-names -d '$mnt/a' 2>/dev/null) ]]"
is 'nor a column' "$(cat "$mnt/.query/tables/nodes.schema" "$mnt/.query/sql/SELECT * FROM nodes LIMIT 1" | grep -c primefs)" 0
is 'nor a facet' "$(ls "$mnt/.query/where" | grep -c primefs)" 0
is 'another directory has none' "$(ls "$mnt/c/.query" | grep -c large)" 0
remount_store
is 'it is kept' "$(tail -n 1 "$q/large/result.tsv")" 5
mv "$mnt/a" "$mnt/c/moved"
is 'it moves' "$(tail -n 1 "$mnt/c/moved/.query/large/result.tsv")" 5
mv "$mnt/c/moved" "$mnt/a"
unmount_store
mount_store -o ro
is 'read-only: answered' "$(tail -n 1 "$q/large/result.tsv")" 5
fails_with 'read-only: none made' 'Read-only' mkdir "$q/other"
fails_with 'read-only: none removed' 'Read-only' rmdir "$q/large"
remount_store
ok 'rmdir forgets it' rmdir "$q/large"
not_ok 'it is gone' ls "$q/large"
not_ok 'once' rmdir "$q/large"
mkdir "$q/large"
rm -r "$mnt/a"
mkdir "$mnt/a"
is 'it dies with the directory' "$(ls "$q" | grep -c large)" 0
unmount_store
check_store
