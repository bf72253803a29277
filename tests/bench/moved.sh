#!/bin/bash
# SPDX-License-Identifier: MIT
# What questions about a subtree cost once nodes were made and moved in it: `primefs tree STORE count` of two directories,
# and of a third as a yardstick, before and after a file is made in each of the two and a directory of an eighth
# of all nodes moves from the first to the second.  Milliseconds from the process's start to its end, the least and the
# median of the rounds, the three by turns.  Each answer is checked.  Then one UPDATE moves a thousand directories of a
# hundred files to another directory and the next one moves them back, by turns, each followed by a count of what moved; of these
# two also the daemon's processor time, which says more on a machine that others keep busy.  Before all that, after the
# directory moved, and after statements have made as many nodes as moved, a million random paths are resolved.
#
#	moved.sh DIR [NODES [ROUNDS [ENGINE]]]
#
# ENGINE is what `primefs mount --engine` takes: auto, if it is not said.
# primefs is the one in PATH.
set -euo pipefail

dir=$(realpath "${1:?DIR}")
nodes=${2:-8000000}
rounds=${3:-15}
engine=${4:-auto}
directories=(from to beside)

paths() { # FOLDER FILES: a hundred in a directory
	seq "$2" | sed "s|..\$|/&|; s|^|/$1/d|"
}

cd "$dir"
mkdir -p mnt
trap 'primefs umount mnt 2>/dev/null || :; rm -rf moved.pfs* moved-paths mnt' EXIT
{
	paths from $((nodes / 16))
	paths from/moving $((nodes / 8))
	paths to $((nodes / 8))
	paths beside $((nodes * 5 / 8))
} >moved-paths
primefs import -q --format=paths moved-paths moved.pfs
primefs mount --foreground --engine="$engine" moved.pfs mnt &
daemon=$!
for ((tries = 0; tries < 600; tries++)); do
	mountpoint -q mnt && break
	sleep 0.1
done

figures() { # least and median, in ms
	sort -n | awk '{ t[NR] = $1 / 1e3 } END { printf "%.2f [%.2f]", t[1], t[int((NR + 1) / 2)] }'
}

declare -A count expected

measure() { # NAME: times to moved.pfs-NAME-DIRECTORY
	local round directory began
	for ((round = 0; round < rounds; round++)); do
		for directory in "${directories[@]}"; do
			began=${EPOCHREALTIME/./}
			count[$directory]=$(primefs tree moved.pfs count "/$directory")
			echo $((${EPOCHREALTIME/./} - began)) >>"moved.pfs-$1-$directory"
		done
	done
}

resolve() { # STATE: resolves random paths of all nodes there are, and prints how long it took
	local round began
	primefs tree moved.pfs subtree / | shuf -n 1000000 >moved.pfs-list
	for ((round = 0; round < rounds; round++)); do
		began=${EPOCHREALTIME/./}
		primefs resolve moved.pfs <moved.pfs-list >moved.pfs-answer
		echo $((${EPOCHREALTIME/./} - began))
	done >moved.pfs-resolve
	cut -f 2 moved.pfs-answer | cmp - moved.pfs-list
	echo "$(wc -l <moved.pfs-answer) random paths resolved $1: ms $(figures <moved.pfs-resolve)"
}

resolve "of what was imported"
measure before
moving=$(primefs tree moved.pfs count /from/moving)
expected[from]=$((count[from] - moving + 1))
expected[to]=$((count[to] + moving + 1))
expected[beside]=${count[beside]}
touch mnt/from/new mnt/to/new
mv mnt/from/moving mnt/to/
measure after
for directory in "${directories[@]}"; do
	if ((count[$directory] != expected[$directory])); then
		echo "/$directory: ${count[$directory]} nodes, not ${expected[$directory]}" >&2
		exit 1
	fi
	echo "/$directory, ${count[$directory]} nodes afterwards: ms $(figures <"moved.pfs-before-$directory") before," \
		"$(figures <"moved.pfs-after-$directory") after"
done

resolve "after the directory moved"

mkdir mnt/thousand
primefs query moved.pfs "CREATE TABLE chosen (ino INTEGER PRIMARY KEY)"
primefs query moved.pfs "INSERT INTO chosen SELECT ino FROM nodes
	WHERE child_of(ino, '/to/moving') AND type = 'd' AND subtree_count = 101 LIMIT 1000"

move() { # DIRECTORY: times to moved.pfs-update and moved.pfs-count
	local began moved
	began=${EPOCHREALTIME/./}
	primefs query moved.pfs "UPDATE nodes SET parent = ino_of('/$1') WHERE ino IN (SELECT ino FROM chosen)"
	moved=${EPOCHREALTIME/./}
	primefs tree moved.pfs count "/$1" >moved.pfs-answer
	echo $((${EPOCHREALTIME/./} - moved)) >>moved.pfs-count
	echo $((moved - began)) >>moved.pfs-update
}

processor() { # ms of the daemon
	awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' "/proc/$daemon/stat"
}

began=$(processor)
for ((round = 0; round < rounds; round++)); do
	move thousand
	if (($(<moved.pfs-answer) != 101001)); then
		echo "/thousand: $(<moved.pfs-answer) nodes, not 101001" >&2
		exit 1
	fi
	move to/moving
done
ended=$(processor)
echo "1,000 moves in one UPDATE: ms $(figures <moved.pfs-update), the count after it $(figures <moved.pfs-count)," \
	"processor time of both $(awk -v a="$began" -v b="$ended" -v n=$((2 * rounds)) 'BEGIN { printf "%.2f", (b - a) / n }')"

mkdir mnt/made
made=$((nodes / 8))
primefs query moved.pfs "INSERT INTO nodes (path, type) WITH RECURSIVE c(i) AS
	(VALUES (0) UNION ALL SELECT i + 1 FROM c WHERE i < $made / 100) SELECT '/made/' || i, 'd' FROM c"
for ((from = 0; from < made; from += 100000)); do
	primefs query moved.pfs "INSERT INTO nodes (path, type) WITH RECURSIVE c(i) AS
		(VALUES ($from) UNION ALL SELECT i + 1 FROM c WHERE i < $made - 1 AND i < $from + 99999)
		SELECT '/made/' || (i / 100) || '/' || i, 'f' FROM c"
done
resolve "after $made more nodes"
