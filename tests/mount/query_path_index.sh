#!/bin/bash
# SPDX-License-Identifier: MIT
# CREATE INDEX name ON nodes(path): a name that is kept, listed and dropped, and answers that are the same.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/in tree/many
touch tree/a/x tree/a-b tree/a. tree/a0 'tree/a!' tree/ab
(cd tree/many && seq 2000 | xargs touch)
primefs import tree "$store" >/dev/null
mount_store
q=$mnt/.query
sql() { echo "$1" | primefs query "$mnt" | tail -n +2; }
run() { echo "$1" >"$q/run"; }
stat_of() { tr -d ' \n' <"$q/stats" | grep -o "\"path_index\":{[^}]*}"; }
ready() {
	local i
	for ((i = 0; i < 300; i++)); do
		if stat_of | grep -q '"state":"ready"'; then return 0; fi
		sleep 0.1
	done
	return 1
}

beginning="SELECT path FROM nodes WHERE path GLOB '/a*' ORDER BY path"
range="SELECT path FROM nodes WHERE path > '/many/1998' AND path < '/many/2' ORDER BY path DESC"
expected=$(printf '/a\n/a!\n/a-b\n/a.\n/a/in\n/a/x\n/a0\n/ab')
is 'without one' "$(sql "$beginning")" "$expected"
not_ok 'stats has none' stat_of
ok 'CREATE INDEX' run 'CREATE INDEX p ON nodes(path)'
ok 'it is made' ready
ok 'stats has its name' grep -q '"names":\["p"\]' <(stat_of)
ok 'and its definition' grep -qF '"definitions":["CREATEINDEX\"p\"ONnodes(path)"]' <(stat_of)
is 'the same order' "$(sql "$beginning")" "$expected"
is 'a range, downwards' "$(sql "$range")" "$(printf '/many/1999')"
mkdir "$q/saved"
echo "$beginning" >"$q/saved/sql"
cat "$q/saved/result.tsv" >/dev/null
ok 'plan says so' grep -q 'path index, in its order' "$q/saved/plan"
mv "$mnt/many" "$mnt/a/many"
is 'a directory has moved' "$(sql "${range//many/a/many}")" "/a/many/1999"
is 'and is not where it was' "$(sql "$range")" ''
for i in 1 2 3; do touch "$mnt/a/new$i"; done
rm "$mnt/a/new2"
is 'it follows' "$(sql "SELECT path FROM nodes WHERE path GLOB '/a/n*' ORDER BY path")" "$(printf '/a/new1\n/a/new3')"
fails_with 'a name once' 'Invalid argument' run 'CREATE INDEX P ON nodes(path)'
ok 'and error says why' grep -q 'already an index named P' "$q/error"
fails_with 'no table has it' 'File exists' bash -c "printf 'a\n1\n' | dd of='$q/tables/p.csv' status=none"
ok 'no other column' bash -c "! echo 'CREATE INDEX n ON nodes(name)' >'$q/run'"
fails_with 'not downwards' 'Invalid argument' run 'CREATE INDEX d ON nodes(path DESC)'
ok 'and error says that' grep -q 'ascending' "$q/error"
for name in nowhere.ix main.p.q select 'if x' temp.zz; do
	not_ok "not named $name" run "CREATE INDEX $name ON nodes(path)" 2>/dev/null
	is 'nor made' "$(stat_of | grep -o '"names":[^]]*]')" '"names":["p"]'
done
not_ok 'nor dropped from elsewhere' run 'DROP INDEX nowhere.p'
ok 'quoted ones are names, and main is the database' run 'CREATE INDEX main."select" ON nodes(path)'
ok 'for both' run 'DROP INDEX main."select"'
ok 'UNIQUE is true anyway' run 'CREATE UNIQUE INDEX "a ""b" ON nodes(path)'
definition=$(sed -n 's/.*"definitions": \["\([^,]*\)", .*/\1/p' "$q/stats" | sed 's/\\"/"/g')
is 'its definition' "$definition" 'CREATE INDEX "a ""b" ON nodes(path)'
ok 'it is dropped' run 'DROP INDEX "a ""b"'
ok 'its definition makes it again' run "$definition"
ok 'by its name' run 'DROP INDEX "a ""b"'
remount_store
ok 'it is kept' grep -q '"names":\["p"\]' <(stat_of)
sql "$beginning" >/dev/null
sql "$beginning" >/dev/null
ok 'two questions have it made' ready
is 'after a mount' "$(sql "SELECT count(*) FROM nodes WHERE path GLOB '/a/many/*'")" 2000
unmount_store
mount_store -o ro
ok 'read-only: it is there' stat_of
not_ok 'and stays' run 'DROP INDEX p'
unmount_store
is 'of a store that is not mounted' "$(primefs query "$store" "DROP INDEX p" 2>&1)" ''
mount_store
not_ok 'it is gone' stat_of
unmount_store
check_store
