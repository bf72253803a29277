#!/bin/bash
# SPDX-License-Identifier: MIT
# Every example of .query/help does what it says.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/b
head -c 3000000 /dev/zero >tree/a/large.c
echo x >tree/a/b/x.h
echo y >tree/README
primefs import tree "$store" >/dev/null
mount_store

# wanted LINE: what a part of its output matches; nothing if it prints nothing.
wanted() {
	case $1 in
	"cat '.query/sql/SELECT ext"*) echo '^c +1 +3000000$' ;;
	*query/resolve*) echo '^2$' ;;
	'exec 3'*) echo '^6$' ;;
	*schema) echo 'subtree_size.INTEGER' ;;
	*'link IS NOT NULL'*) echo '^path +links$' ;;
	*/ext/@values) echo '^h.1$' ;;
	*/where/type) echo '^f$' ;;
	*9/@count) echo '^2$' ;;
	*ago/@count* | *'WHERE mtime >'*) echo '^6$' ;;
	*/where/under) echo '^README$' ;;
	*/type/d/@nodes) echo '^b$' ;;
	*/@count) echo '^1$' ;;
	'ls -lL '*) echo ' 3000000 .* large.c$' ;;
	*@paths0) echo '^/a/b/x.h$' ;;
	*'NATURAL JOIN kinds'*) echo '^source.1$' ;;
	head*) echo '^/a/large.c.3000000$' ;;
	*as_of) echo '^epoch [0-9]+$' ;;
	'ls '*) echo '^@count$' ;;
	wc*) echo '^6 ' ;;
	*stats) echo '"nodes": 6' ;;
	*) echo '' ;;
	esac
}

n=0
while IFS= read -r line; do
	[[ -n $line && $line != '#'* ]] || continue
	pattern=$(wanted "$line")
	(cd "$mnt" && bash -c "${line//\/tmp\//$work\/}") >output 2>&1 || echo "status $?" >>output
	if [[ -n $pattern ]]; then
		ok "$line" grep -qE -- "$pattern" output
	else
		is "$line" "$(cat output)" ''
	fi
	n=$((n + 1))
done <"$mnt/.query/help"
ok 'there are examples' test "$n" -ge 27
is 'a statement copied' "$(tr -d '\r' <large.csv)" $'path,size\n/a/large.c,3000000'
ok 'a picture copied' grep -q 'large.c' treemap.svg
is 'what a statement changed' "$(find "$mnt" -type f ! -perm -400)" ''
for name in "$mnt"/.query/*; do # each fixed name, but this page's
	name=${name##*/}
	[[ $name == help ]] || ok "an example of $name" grep -q "^[^#].*\.query/$name" "$mnt/.query/help"
done
unmount_store
check_store
