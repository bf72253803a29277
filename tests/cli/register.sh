#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A register goes in, is moved and renamed, and comes out with its ids, row by row.
. "$(dirname "$0")/../lib.sh"

rows=50000

# Ids, parents, names with slashes, quotes, commas and other scripts, synonyms on several lines; rows in
# no order.  With moved=1: as the table is to be after what is done below.
generate() {
	awk -v n="$rows" -v moved="${1-0}" 'function q(s) {
			if (s !~ /[",\n]/) return s
			gsub(/"/, "\"\"", s); return "\"" s "\"" }
		function name(i) {
			if (i % 11 == 0) return "Aus a/b " i
			if (i % 13 == 0) return "\"Bus\" bus " i
			if (i % 17 == 0) return "Çüs–Ωμέγα 動物 " i
			if (i % 19 == 0) return "Dus, sp. " i
			return "Eus " i }
		BEGIN { print "id,parent,name,rank,synonyms,authors"
			for (k = 0; k < n; k++) {
				i = (k * 7919) % n + 1
				parent = i == 1 ? "" : int((i - 2) / 7) + 1
				this = name(i)
				if (moved && i == 10) parent = 3
				if (moved && i == 20) this = "Renamed \"20\""
				if (moved && i >= 30000 && i < 31000) this = this " syn"
				if (moved && i >= 40000 && i < 40100) parent = 5
				print i "," parent "," q(this) "," (i % 3 ? "species" : "") "," \
					q(i % 23 ? "" : "x \"y\"; z,\nline " i) "," (i % 5 ? i * 3 : "") } }'
}

# One line a record, sorted.
records() {
	awk '{ record = record == "" ? $0 : record "\\n" $0
		if (gsub(/"/, "\"", record) % 2 == 0) { print record; record = "" } }' | sort
}
exported() { primefs export --format=csv "$@" "$store"; }
same() { # DESCRIPTION A B
	records <"$2" >"$2.sorted"
	records <"$3" >"$3.sorted"
	ok "$1" cmp "$2.sorted" "$3.sorted"
}

generate >"$work/in.csv"
generate 1 >"$work/moved.csv"
primefs import --id=id --parent=parent --name=name --slash=∕ --columns=id:int "$work/in.csv" "$store" >"$work/report"
ok 'names with a slash are reported' grep -qF "$((rows / 11)) names with a '/' have '∕' in its place" "$work/report"
ok 'so are columns that nodes has itself' grep -qF '"user.parent", "user.name"' "$work/report"
exported >"$work/out.csv"
is 'the header comes out' "$(head -n 1 "$work/out.csv")" 'id,parent,name,rank,synonyms,authors'
same "each of $rows rows comes out as it went in" "$work/in.csv" "$work/out.csv"
is 'inner nodes have ids, which are numbers' \
	"$(primefs query "$store" "SELECT count(*), sum(id), max(typeof(id)) FROM nodes WHERE id > 0" | tail -n 1 | tr '\t' ' ')" \
	"$rows $((rows * (rows + 1) / 2)) integer"
is "a parent's id is the parent's" \
	"$(primefs query "$store" 'SELECT count(*) FROM nodes AS a JOIN nodes AS b ON a.parent = b.ino WHERE a."user.parent" = b.id' | tail -n 1)" \
	$((rows - 1))
is 'a name has its slashes' "$(primefs query "$store" 'SELECT "user.name" FROM nodes WHERE id = 11' | tail -n 1)" 'Aus a/b 11'

path_of() { primefs query "$store" "SELECT path FROM nodes WHERE id = $1" | tail -n 1; }
change() { primefs query "$store" "$1"; }
if has_fuse; then
	ten=$(path_of 10) twenty=$(path_of 20) three=$(path_of 3)
	mount_store
	mv "$mnt$ten" "$mnt$three"
	mv "$mnt$twenty" "${mnt}${twenty%/*}/Renamed \"20\""
	unmount_store
else
	change "UPDATE nodes SET parent = (SELECT ino FROM nodes WHERE id = 3) WHERE id = 10"
	change "UPDATE nodes SET name = 'Renamed \"20\"' WHERE id = 20"
fi
change "UPDATE nodes SET name = name || ' syn' WHERE id >= 30000 AND id < 31000" >/dev/null
change "UPDATE nodes SET parent = (SELECT ino FROM nodes WHERE id = 5) WHERE id >= 40000 AND id < 40100" >/dev/null
exported >"$work/out.csv"
same 'moved and renamed, each row comes out with its id' "$work/moved.csv" "$work/out.csv"
check_store
ok 'an optimized store' primefs optimize "$store"
exported >"$work/out.csv"
same 'has the table, too' "$work/moved.csv" "$work/out.csv"
fails_with 'a computed column cannot be set' 'parent: it follows from where' change "UPDATE nodes SET \"user.parent\" = 1 WHERE id = 2"

# What has come since.
change "INSERT INTO nodes (path, type) VALUES ('/$(path_of 1 | cut -c 2-)/new', 'd')" >/dev/null ||
	change "INSERT INTO nodes (path, mode) VALUES ('$(path_of 1)/new', 16877)" >/dev/null
change "INSERT INTO nodes (path) VALUES ('$(path_of 1)/new/leaf')" >/dev/null
is 'a new node has no id' "$(exported | grep -E '^,[0-9]*,(new|leaf),' | sort | xargs)" ',,leaf,,, ,1,new,,,'
is 'that a row lies below it is said' "$(exported 2>&1 >/dev/null | grep -c ': 1 rows lie in directories that have no id')" 1
is 'which is right with numbers' "$(exported --new-ids 2>&1 >/dev/null)" ''
is 'or a number above all, if asked for' "$(exported --new-ids | grep -E ',(new|leaf),' | sort | xargs)" \
	"$((rows + 1)),1,new,,, $((rows + 2)),$((rows + 1)),leaf,,,"

# Other forms.
ids() { rm -f "$store" && primefs import --quiet "$@" "$work/t" "$store"; }
for delimiter in ';' $'\t' '|'; do
	printf '%s\n' "key${delimiter}up${delimiter}what" "a${delimiter}a${delimiter}top, one" "b${delimiter}a${delimiter}\"x${delimiter}y\"" >"$work/t"
	ids --id=key --parent=up --name=what
	is "a table with '$delimiter', its own top's parent" "$(exported)" "$(cat "$work/t")"
done
printf 'tax_id\t|\tparent\t|\tname\t|\n1\t|\t1\t|\troot\t|\n2\t|\t1\t|\t"Bacteria\t|\n' >"$work/t"
ids --id=tax_id --parent=parent --name=name
is "the NCBI's" "$(exported)" "$(cat "$work/t")"
for slash in '' /; do
	printf '%s\n' "n,path,v" "1,${slash}a/b,x" "2,${slash}a/c,\"y,\"" "3,${slash}d,z" "4,${slash}d/e," "5,${slash}f/," >"$work/t"
	ids
	is "a table of paths ('$slash')" "$(exported)" "$(cat "$work/t")"
	ids --path=path --columns=n:int
	is 'whose path is an attribute' "$(primefs query "$store" "SELECT \"user.path\" FROM nodes WHERE n = 2" | tail -n 1)" "${slash}a/c"
done
fails_with 'paths have no ids' 'no ids' primefs export --format=csv --new-ids "$store"
exits '--new-ids is for tables' 2 primefs export --new-ids "$store"
printf 'id,parent,name\n007,,a\n8,007,b\n' >"$work/t"
ids
is 'ids are texts if they are not numbers' "$(exported)" "$(cat "$work/t")"
ids --columns=id:int
is 'numbers if they are to be' "$(exported)" "$(sed 's/007/7/' "$work/t")"
printf 'x\n' | primefs import --quiet --at=/other - "$store"
printf 'p,q\nk,1\n' >"$work/t2"
primefs import --quiet --at=/second --path=p "$work/t2" "$store"
is 'a second table is one of its own' "$(exported --at=/second)" "$(cat "$work/t2")"
ok 'in the same store' primefs check "$store"
# Under a directory that is there, with directories that are: they get their rows, and keep what they hold.
mkdir -p "$work/some/there/animals" && echo x >"$work/some/there/animals/fish"
rm -f "$store" && primefs import --quiet --content=copy "$work/some" "$store"
printf 'id,parent,name,v\n1,,animals,a\n2,1,cats,b\n3,1,dogs,c\n4,,plants,d\n' >"$work/t"
primefs import --quiet --id=id --parent=parent --name=name --at=/there "$work/t" "$store"
is 'rows under what was there' "$(exported --at=/there | grep -v fish)" "$(cat "$work/t")"
is 'also that of a directory that was' "$(primefs query "$store" "SELECT id, v, subtree_count FROM nodes WHERE path = '/there/animals'" | tail -n 1 | xargs)" '1 a 4'
is 'what was no row is none' "$(exported --at=/there | grep fish)" ',1,fish,'
printf 'id,parent,name,v\n9,,animals,z\n' >"$work/t2"
primefs import --quiet --id=id --parent=parent --name=name --at=/there "$work/t2" "$store" >/dev/null 2>&1 || true
is 'and a second table takes no rows away' "$(primefs query "$store" "SELECT count(*), sum(id > 0) FROM nodes WHERE path GLOB '/there/animals/[cd]*'" | tail -n 1 | xargs)" '2 2'
ok 'check is clean' primefs check "$store"
