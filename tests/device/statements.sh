#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 560
# Statements that the relational operators run, as tests/query/who.tsv says, run on the device of a mount with
# --engine=cuda: .query/stats counts operators, and each statement for which a mount with --engine=host counts some
# must be counted for the device, too.  The answers are the same but for the order of rows and the last bits of reals.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

# What the device has no kernels for: texts compared otherwise than by their dictionary, values computed of
# texts, conditions with arithmetic, windows, what sub-selects are tied to, totals of subtrees.  Nor is it asked for rows as
# they are that a condition on one column leaves: the host's scan reads those.
only_host='OVER|CASE|upper|lower|length|substr|replace|instr|trim|coalesce|ifnull|nullif|abs|typeof|hex|CAST|printf'
only_host+='| IS | IS NOT |\|\|| % |[<>=] ?-?[0-9]*[.][0-9]|IN \([^S)]*NULL|UNION|EXCEPT|INTERSECT|EXISTS|RECURSIVE'
only_host+='|^SELECT [a-z".]+ FROM nodes WHERE [a-z".]+ ([<>=]+|IN) '
only_host+='|subtree_|LIKE|GLOB|group_concat|\((SELECT|WITH|VALUES)|path|target|COLLATE|FILTER|[+*/&] ?[a-z0-9]|NOT '

store_of_statements
sed -n 's/^operators\t//p' "$top/tests/query/who.tsv" >statements

# counted WHICH: on_host or on_device, so far.
counted() { sed -n "s/.*\"operators\": {.*\"$1\": \([0-9]*\).*/\1/p" "$mnt/.query/stats"; }

# Standard input, its rows in an order of their own, reals with ten digits.
plain() {
	awk -F '\t' -v OFS='\t' '{
		for (i = 1; i <= NF; i++)
			if ($i ~ /^-?[0-9]+[.][0-9]+(e[-+]?[0-9]+)?$/) $i = sprintf("%.10g", $i)
		print
	}' | LC_ALL=C sort | md5sum
}

# Each statement's number of operators and a sum of its answer, a line each.
ask_all() {
	local which=$1 before after sql answer
	before=$(counted "$which")
	while IFS= read -r sql; do
		exec 3<>"$mnt/.query/run"
		printf '%s' "$sql" >&3
		answer=$(cat <&3 2>/dev/null | plain)
		exec 3>&-
		after=$(counted "$which")
		printf '%d\t%s\t%s\n' $((after - before)) "$sql" "$answer"
		before=$after
	done <statements
}

# The first question starts the device, if there is one.
mount_store --engine=cuda 2>/dev/null || true
is_mounted "$mnt" || skip_all 'skipped: no CUDA device'
cat "$mnt/.query/sql/SELECT ext, count(*) FROM nodes GROUP BY ext" >/dev/null
grep -q '"operators": {"device": true' "$mnt/.query/stats" || skip_all 'skipped: no CUDA device for statements'
ask_all on_device >device
unmount_store
mount_store --engine=host
ask_all on_host >host
unmount_store

# Of those that have operators: how many ran on the device, and which must have and have not.
paste host device | awk -F '\t' -v OFS='\t' '$1 > 0 { print $1, $2, $4, $3 == $6 }' >both
is 'answers are the same' "$(awk -F '\t' '!$4 { print $2 }' both)" ''
awk -F '\t' '$3 == 0 { print $2 }' both | grep -vE -- "$only_host" >missing || true
printf 'statements with operators: %d; on the device: %d\n' "$(wc -l <both)" "$(awk -F '\t' '$3 > 0' both | wc -l)"
ok 'there are many' test "$(wc -l <both)" -ge 150
is 'all run on the device that it has kernels for' "$(cat missing)" ''
for sql in 'SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext' \
	'SELECT type, count(*), sum(size) FROM nodes GROUP BY type' \
	'SELECT count(*), sum(size) FROM nodes WHERE size BETWEEN 1000 AND 100000' \
	'SELECT parent, count(*), sum(size) FROM nodes GROUP BY parent ORDER BY 2 DESC, 1 LIMIT 10'; do
	is "$sql" "$(awk -F '\t' -v sql="$sql" '$2 == sql { print ($3 > 0) }' both)" 1
done
check_store
