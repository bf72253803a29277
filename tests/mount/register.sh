#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The file of a row shows the row as it is, and its size is the kernel's at once; written to, it is a file.
. "$(dirname "$0")/../lib.sh"
requires fuse

cat >"$work/t.csv" <<'END'
id,parent,name,rank,note
4,2,lion,species,"a
b"
2,1,cats,family,
3,1,dogs,family,
1,,animals,kingdom,
5,3,wolf,species,
6,2,lynx,species,
7,2,puma,species,
END
primefs import --quiet --id=id --parent=parent --name=name "$work/t.csv" "$store"
mount_store
top=$mnt/animals
row() { printf 'id: %s\nparent: %s\nname: %s\nrank: %s\nnote: %s\n' "$@"; }
# shows DESCRIPTION FILE ROW...: content, size by stat, by SQL and in the total of what lies above.
shows() {
	is "$1" "$(cat "$2")" "$(row "${@:3}")"
	is "$1: stat" "$(stat -c %s "$2")" "$(row "${@:3}" | wc -c)"
	is "$1: SQL" "$(sql "SELECT size FROM nodes WHERE name = '${2##*/}'")" "$(row "${@:3}" | wc -c)"
	is "$1: the total" "$(sql "SELECT subtree_size FROM nodes WHERE depth = 1")" \
		"$(sql "SELECT sum(size) FROM nodes WHERE type = 'f'")"
}
sql() { run "$1" | tail -n +2; }
run() {
	exec 8<>"$mnt/.query/run"
	printf '%s' "$1" >&8
	cat <&8
	exec 8>&-
}

is 'a value of two lines' "$(cat "$top/cats/lion")" "$(row 4 2 lion species $'a\n b')"
shows 'a row' "$top/cats/lynx" 6 2 lynx species ''
cat "$top"/*/* >/dev/null # the kernel has seen all of it
mv "$top/cats/lynx" "$top/cats/lynx lynx"
shows 'renamed' "$top/cats/lynx lynx" 6 2 'lynx lynx' species ''
mv "$top/cats/lynx lynx" "$top/dogs/"
shows 'moved' "$top/dogs/lynx lynx" 6 3 'lynx lynx' species ''
run "UPDATE nodes SET rank = 'a longer rank', note = 'x' WHERE id = 6" >/dev/null
shows 'after an UPDATE' "$top/dogs/lynx lynx" 6 3 'lynx lynx' 'a longer rank' x
run "UPDATE nodes SET name = 'l' WHERE id = 6" >/dev/null
shows 'renamed by one' "$top/dogs/l" 6 3 l 'a longer rank' x
run 'UPDATE nodes SET parent = (SELECT ino FROM nodes WHERE id = 2) WHERE id = 6' >/dev/null
shows 'moved by one' "$top/cats/l" 6 2 l 'a longer rank' x
run 'UPDATE nodes SET id = 2222 WHERE id = 2' >/dev/null
shows 'its parent has another id' "$top/cats/l" 6 2222 l 'a longer rank' x
shows "so has another's" "$top/cats/puma" 7 2222 puma species ''
fails_with 'what follows from the place is not set' 'follows from where' primefs query "$mnt" 'UPDATE nodes SET "user.parent" = 3 WHERE id = 6'
if command -v setfattr >/dev/null; then
	setfattr -n user.rank -v genus "$top/cats/puma"
	shows 'after setfattr' "$top/cats/puma" 7 2222 puma genus ''
	setfattr -x user.rank "$top/cats/puma"
	shows 'without a value' "$top/cats/puma" 7 2222 puma '' ''
	not_ok 'nor by setfattr' setfattr -n user.parent -v 3 "$top/cats/puma"
	is 'but it is read' "$(getfattr --only-values --absolute-names -n user.parent "$top/cats/puma")" 2222
	is 'so is the name' "$(getfattr --only-values --absolute-names -n user.name "$top/cats/puma")" puma
	is "a directory's row is an attribute" "$(getfattr --only-values --absolute-names -n user.primefs.row "$top/cats")" "$(row 2222 1 cats family '')"
	is "not listed, as a file's is not" "$(getfattr -d "$top/cats" 2>/dev/null | grep -cE '^user[.](primefs|parent|name)')" 0
	setfattr -n user.id -v 33 "$top/dogs"
	is_told() { [[ $(stat -c %s "$top/dogs/wolf") == $(row 5 33 wolf species '' | wc -c) ]]; }
	wait_for 10 is_told
	shows 'the id of a directory' "$top/dogs/wolf" 5 33 wolf species ''
else
	skip 'no setfattr'
	run 'UPDATE nodes SET id = 33 WHERE id = 3' >/dev/null
fi
ok 'names are exchanged, and back' "$probes/exchange" "$top/cats/puma" "$top/dogs/wolf"
"$probes/exchange" "$top/cats/puma" "$top/dogs/wolf"

exec 9<"$top/cats/l"
rm "$top/cats/l"
is 'a row that is open when it is removed' "$(cat <&9)" "$(row 6 2222 l 'a longer rank' x)"
exec 9<&-
before=$(cat "$top/dogs/wolf")
echo more >>"$top/dogs/wolf"
is 'what is written comes behind the row' "$(cat "$top/dogs/wolf")" "$before"$'\nmore'
mv "$top/dogs/wolf" "$top/dogs/wolves"
run "UPDATE nodes SET rank = 'r' WHERE id = 5" >/dev/null
is 'and no row is shown from then on' "$(cat "$top/dogs/wolves")" "$before"$'\nmore'
truncate -s 5 "$top/cats/puma"
is 'cut off, too' "$(cat "$top/cats/puma")" 'id: 7'
cp "$top/cats/lion" "$work/lion"
ok 'a copy is the row' cmp "$work/lion" "$top/cats/lion"
before=$(cat "$top/cats/lion")
is 'from its middle' "$(tail -c 5 "$top/cats/lion")" "$(tail -c 5 <<<"$before")"
is 'info counts both' "$(primefs info "$mnt" | awk '/^rows|^written to/ { print $(NF > 2 && $1 == "written" ? 3 : 2) }' | xargs)" '1 2'
unmount_store
check_store
mount_store
is 'after a remount' "$(cat "$top/cats/lion")" "$before"
is 'a file stays one' "$(cat "$top/cats/puma")" 'id: 7'
unmount_store

# A crash loses no size, or it is found again.
mount_in_foreground
mv "$top/cats/lion" "$top/a lion with a name as long as this"
sync "$top"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
force_unmount "$mnt"
mount_store
is 'after a crash' "$(cat "$top/a lion with a name as long as this")" "$(row 4 1 'a lion with a name as long as this' species $'a\n b')"
is 'the size is right' "$(stat -c %s "$top/a lion with a name as long as this")" "$(wc -c <"$top/a lion with a name as long as this")"
unmount_store
mount_store -o ro
is 'a reader sees rows' "$(head -n 1 "$top/a lion with a name as long as this")" 'id: 4'
unmount_store
check_store
