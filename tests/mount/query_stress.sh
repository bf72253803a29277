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
end=$((SECONDS + seconds))

# Every answer is that of one moment: each directory has its fifty files, or is being renamed as one.
reader() {
	local n=0 q=$mnt/.query total
	while ((SECONDS < end)); do
		case $(((n++ + $1) % 6)) in
		0) total=$(cat "$q/sql/SELECT count(*) FROM nodes WHERE name GLOB 'f*.txt'" | tail -n 1) && ((total == 1000)) ;;
		1) (($(grep -c '/f[0-9]*\.txt$' "$q/paths") == 1000)) ;;
		2) (($(cat "$q/where/ext/txt/@count") == 1000)) ;;
		3) ls "$q/where/ext/txt/depth/2" >/dev/null ;;
		4) cat "$q/treemap.svg" "$q/stats" >/dev/null ;;
		5) (($(cat "$q/where/type/f/name.like/f25.txt/@paths" | wc -l) == 20)) ;;
		esac || {
			echo "reader $1, turn $n" >>"$work/failures"
			return 1
		}
	done
}

writer() {
	local n=0 d=$((1 + $1 * 5))
	while ((SECONDS < end)); do
		mv "$mnt/d$d" "$mnt/moved$1" && mv "$mnt/moved$1" "$mnt/d$d" &&
			echo "$n" >"$mnt/d$d/new$((n % 10))" && rm -f "$mnt/d$d/new$(((n + 5) % 10))" &&
			mkdir "$mnt/d$d/.query/q$1" && echo 'SELECT count(*) FROM nodes' >"$mnt/d$d/.query/q$1/sql" &&
			cat "$mnt/d$d/.query/q$1/result.tsv" >/dev/null && rmdir "$mnt/d$d/.query/q$1" || {
			echo "writer $1, turn $n" >>"$work/failures"
			return 1
		}
		n=$((n + 1))
	done
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
is 'the daemon lives' "$(tail -n 1 "$mnt/.query/sql/SELECT count(*) FROM nodes WHERE type = 'd'")" 21
unmount_store
check_store
