#!/bin/bash
# SPDX-License-Identifier: MIT
# .query under load: sixteen readers while four writers change the tree; a minute in the long mode.
# shellcheck disable=SC2002,SC2015 # what is tested is read through pipes; either failure counts
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

seconds=$((PFS_LONG ? 60 : 4))
mkdir tree
for d in {1..20}; do
	mkdir "tree/d$d"
	(cd "tree/d$d" && seq -f 'f%g.txt' 1 50 | xargs touch)
done
primefs import tree "$store" >/dev/null
mount_in_foreground
q=$mnt/.query
for rows in 10 20; do # a table that is replaced, whole
	{ echo n,name && seq 1 $rows | sed 's|.*|&,f&.txt|'; } >"$rows.csv"
done
cp 10.csv "$q/tables/ten.csv"
end=$((SECONDS + seconds))

# Every answer is that of one moment: each directory has its fifty files, or is being renamed as one,
# and all files have one mode in it.
reader() {
	local n=0 total
	while ((SECONDS < end)); do
		case $(((n++ + $1) % 9)) in
		0) total=$(cat "$q/sql/SELECT count(*) FROM nodes WHERE name GLOB 'f*.txt'" | tail -n 1) && ((total == 1000)) ;;
		1) (($(grep -c '/f[0-9]*\.txt$' "$q/paths") == 1000)) ;;
		2) (($(cat "$q/where/ext/txt/@count") == 1000)) ;;
		3) ls "$q/where/ext/txt/depth/2" >/dev/null ;;
		4) cat "$q/treemap.svg" "$q/stats" >/dev/null ;;
		5) (($(cat "$q/where/type/f/name.like/f25.txt/@paths" | wc -l) == 20)) ;;
		6) total=$(tail -n 1 "$q/sql/SELECT count(*) FROM nodes NATURAL JOIN ten") && ((total == 200 || total == 400)) ;;
		7) (($(wc -l <"$q/tables/ten.csv") % 10 == 1)) ;;
		8) [[ -z $(tail -n +2 "$q/sql/SELECT parent FROM nodes WHERE ext = 'txt' GROUP BY parent HAVING count(DISTINCT mode) > 1") ]] ;;
		esac || {
			echo "reader $1, turn $n" >>"$work/failures"
			return 1
		}
	done
}

# A directory of its own is renamed, files come and go, a query is saved, a table is replaced, and
# statements move and change whole sets.
writer() {
	local n=0 d=$((1 + $1 * 5))
	while ((SECONDS < end)); do
		mv "$mnt/d$d" "$mnt/moved$1" && mv "$mnt/moved$1" "$mnt/d$d" &&
			echo "$n" >"$mnt/d$d/new$((n % 10))" && rm -f "$mnt/d$d/new$(((n + 5) % 10))" &&
			mkdir "$mnt/d$d/.query/q$1" && echo 'SELECT count(*) FROM nodes' >"$mnt/d$d/.query/q$1/sql" &&
			cat "$mnt/d$d/.query/q$1/result.tsv" >/dev/null && rmdir "$mnt/d$d/.query/q$1" &&
			cp "$((n % 2 * 10 + 10)).csv" "$q/tables/ten.csv" &&
			echo "UPDATE nodes SET mode = $((256 + n % 128)) WHERE child_of(ino, '/d$((d + 1))')" >"$q/run" &&
			echo "UPDATE nodes SET path = '/d$((d + 2))/f' || substr(name, 2) WHERE child_of(ino, '/d$((d + 2))')" >"$q/run" &&
			echo "INSERT INTO nodes (path, type) VALUES ('/s$1', 'd'), ('/s$1/x', 'f')" >"$q/run" &&
			[[ -f $mnt/s$1/x ]] &&
			echo "DELETE FROM nodes WHERE under(ino, '/s$1')" >"$q/run" && [[ ! -e $mnt/s$1 ]] || {
			echo "writer $1, turn $n: $(cat "$q/error")" >>"$work/failures"
			return 1
		}
		n=$((n + 1))
	done
	echo "$n" >>"$work/turns"
}

pids=()
for i in {0..15}; do
	reader "$i" &
	pids+=($!)
done
for i in {0..3}; do
	writer "$i" &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || true; done
: >>failures
is 'nobody failed' "$(cat failures)" ''
ok 'every writer had its turns' test "$(grep -cv '^0$' turns)" -eq 4
is 'the daemon lives' "$(tail -n 1 "$mnt/.query/sql/SELECT count(*) FROM nodes WHERE type = 'd'")" 21
unmount_store
ended=0
wait "$daemon" || ended=$?
is 'the daemon ends well' "$ended $(grep -c WARNING daemon.log)" '0 0' # a sanitizer speaks up there
check_store
