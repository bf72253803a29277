#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# Who runs each statement of README, .query/help, the manual pages, tests/query/statements.sql and primefs-bench
# query: as tests/query/who.tsv has it, a line for each.  PFS_WHO=FILE writes the list that is found, to be read
# and committed when statements are added or somebody else is to run them.
#
# operators: the relational operators, all of it; part: SQLite, and the operators a part; SQLite: alone; error: it
# cannot be asked of this store.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

# Where texts quote statements: from the first word to the quotation mark that was open, or to the line's end.
quoted() {
	sed 's/\\(dq/"/g' "$@" | awk '
		match($0, /(SELECT [^ ].* FROM|WITH [a-z]+ AS|WITH RECURSIVE .* SELECT .* FROM [a-z]+$|UPDATE [a-z]+ SET|DELETE FROM|INSERT INTO [a-z]+) /) {
			before = substr($0, 1, RSTART - 1)
			text = substr($0, RSTART)
			if (before ~ /\($/) next # a part of one
			gsub(/[^\047"]/, "", before)
			quote = substr(before, length(before))
			if (quote != "" && (end = index(text, quote))) text = substr(text, 1, end - 1)
			sub(/[.](csv|txt|tsv|json)$/, "", text)
			print text
		}'
}

store_of_statements
mount_store
cp "$mnt/.query/help" help
unmount_store

{
	quoted "$top/README.md" help "$top"/docs/man/*.[1-8]
	grep -v -e '^--' -e '^$' "$top/tests/query/statements.sql" | sed 's/^= //'
	primefs-bench query --list
} | sed "s/\$ino/2/g; s/\$deep/2/g; s/\$wide/2/g; s/\$rare/100/g; s/\$prefix/f1/g; s/\$part/1/g" | awk '!seen[$0]++' >statements

who() {
	awk 'FNR == 1 { who = "SQLite" }
		/^run by the relational operators/ { who = "operators"; exit }
		/^part [0-9]+: run by the relational operators/ && who == "SQLite" { who = "part" }
		END { print NR ? who : "error" }' plan
}

while IFS= read -r sql; do
	primefs query --plan "$store" "$sql" >plan 2>/dev/null || true
	printf '%s\t%s\n' "$(who)" "$sql"
done <statements >found
[[ -z ${PFS_WHO-} ]] || cp found "$PFS_WHO"

grep -v "^#" "$top/tests/query/who.tsv" >wanted
ok 'there are statements' test "$(wc -l <found)" -ge 600
is 'each is run by whom it must be' "$(diff wanted found)" ''
check_store
