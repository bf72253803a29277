#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# The statements of tests/query/statements.sql and random ones (thousands in the long mode; PFS_SEED=N: others)
# have the same rows from primefs query of the store and of the mountpoint, from .query/run and .query/sql
# of the mount, and from SQLite over a copy of nodes in a table of its own.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse sqlite3

corpus=$top/tests/query/statements.sql
db=$work/copy.db
seed=${PFS_SEED:-20260915}
tab=$'\t'

# What plain SQLite cannot be asked: the tree's functions, and times written as dates.
only_ours='(under|child_of|ancestor_of|common_ancestor|ino_of|path_of) *\(|[mac]time.*'\''[0-9]{4}-|'\''[0-9]{4}-.*[mac]time|[mac]time.*(ago|day)'\'

paths() {
	local i ends=('' .c .txt .tar.gz . _x)
	for ((i = 0; i < 120; i++)); do
		printf '/d%d/%sd%d/f%d%s\t%s\t%s\t%s\t%s\n' $((i % 3)) "$( ((i % 4)) || echo d1/)" $((i % 5)) $((i % 20)) \
			"${ends[i % 6]}" "$( ((i % 3)) || echo "c$((i % 7))")" "$( ((i % 5)) || echo $((i % 9)))" \
			"$( ((i % 2)) || echo $((i % 4)).5)" $((i % 8))
	done | LC_ALL=C sort -u -k 1,1
}
paths | primefs import --format=paths --columns=tag,stars:int,score:real,size:int - "$store" >/dev/null

"$probes/statements" | while IFS= read -r sql; do primefs query "$store" "$sql"; done

mount_store
n=0
while IFS= read -r -d '' file; do
	sizes=(0 1 100 101 4096 5000 8589934592)
	truncate -s "${sizes[n++ % 7]}" "$file"
	touch -d "@$((n * 15000000))" "$file"
done < <(find "$mnt" -type f -print0 | LC_ALL=C sort -z)
ln -s d1 "$mnt/d0/link"
ln -s c "$mnt/c"
unmount_store

# The copy: rows as SQL writes them, one a line.
columns=$(primefs query "$store" "SELECT group_concat('quote(\"' || name || '\")', ' || '','' || ') FROM pragma_table_info('nodes')" | tail -n 1)
{
	echo 'BEGIN;'
	primefs query --paths "$store" "SELECT 'CREATE TABLE nodes (' || group_concat('\"' || name || '\" ' || type || CASE name
		WHEN 'ino' THEN ' PRIMARY KEY' ELSE '' END, ', ') || ');' FROM pragma_table_info('nodes')"
	primefs query --paths "$store" "SELECT 'INSERT INTO nodes VALUES (' || $columns || ');' FROM nodes"
	"$probes/statements" | sed 's/$/;/'
	echo 'COMMIT;'
} | sqlite3 "$db"
is 'as many rows in the copy' "$(sqlite3 "$db" 'SELECT count(*) FROM nodes')" "$(primefs query "$store" 'SELECT count(*) FROM nodes' | tail -n 1)"

# Rows without their names, which SQLite has none of where there is no row and others for rowid; and of
# a real as many digits as its shell prints, which leaves out the sign of -0.0.
rows() {
	tail -n +2 | awk -F "$tab" -v OFS="$tab" '{
		for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?$/) $i = sprintf("%.13g", $i + 0)
		print }' | in_order "$1"
}

in_order() { if [[ $1 == '= '* ]]; then cat; else LC_ALL=C sort; fi; }
mapfile -t statements < <(grep -v -e '^--' -e '^$' "$corpus")
n_corpus=${#statements[@]}
mapfile -t -O "$n_corpus" statements < <("$probes/statements" "$seed" $((PFS_LONG ? 4000 : 150)))
echo "PFS_SEED=$seed"

ask_command() { primefs query --tsv "$1" "$2" 2>/dev/null || echo failed; }
ask_run() {
	exec 3<>"$mnt/.query/run"
	if printf '%s' "$1" >&3; then cat <&3; else echo failed; fi 2>/dev/null
	exec 3<&-
}
# Fits a name?
is_a_name() { ((${#1} <= 255)) && [[ $1 != */* ]]; }
ask_name() { cat "$mnt/.query/sql/$1" 2>/dev/null || echo failed; }
# The copy has no hidden columns.
spell_preorder() { sed -E "s#([a-z]\\.)?\\bpreorder\\b#replace(\\1path, '/', CAST(x'00' AS TEXT))#g" <<<"$1"; }
ask_copy() { sqlite3 -header -separator "$tab" "$db" "$(spell_preorder "$1")" 2>/dev/null || echo failed; }

for i in "${!statements[@]}"; do
	ask_command "$store" "${statements[i]#= }" >"$work/command.$i"
done
mount_store
different=0 beside_copy=0 by_name=0

# differs ROUTE STATEMENT
differs() {
	fail "$1: $2"
	different=$((different + 1))
}

for i in "${!statements[@]}"; do
	sql=${statements[i]#= } known=$work/command.$i
	cmp -s "$known" <(ask_run "$sql") || differs '.query/run' "$sql"
	cmp -s "$known" <(ask_command "$mnt" "$sql") || differs 'by the mountpoint' "$sql"
	if is_a_name "$sql"; then
		by_name=$((by_name + 1))
		cmp -s "$known" <(ask_name "$sql") || differs '.query/sql' "$sql"
	fi
	[[ ! $sql =~ $only_ours ]] || continue
	beside_copy=$((beside_copy + 1))
	cmp -s <(rows "${statements[i]}" <"$known") <(ask_copy "$sql" | rows "${statements[i]}") ||
		differs SQLite "$sql"
done
is "${#statements[@]} statements by four routes, $by_name of them by their names, too, and $beside_copy in SQLite: the same" \
	"$different" 0
ok 'at least 300 in the corpus' test "$n_corpus" -ge 300
is 'hardly any fails' "$(grep -lx failed "$work"/command.* | wc -l | awk '{print ($1 < 20)}')" 1
unmount_store
check_store
