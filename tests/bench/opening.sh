#!/bin/bash
# SPDX-License-Identifier: MIT
# What an import of a generated list of paths takes, and what opening its store takes: a mount and `ls` of its root, from the
# image file and from the rows, with the memory that the daemon then has of its own; a mount and its first GROUP BY; a mount and
# the first sum of an attribute that each of some millions of nodes has.  Seconds from a process's start to its end.
#
#	opening.sh DIR [NODES [ENGINE]]
#
# ENGINE is what `primefs mount --engine` takes for the statements: auto, if it is not said; the rest is done with `host`.
# DIR needs room for 350 bytes a node.  primefs and primefs-bench are those in PATH.
set -euo pipefail

dir=$(realpath "${1:?DIR}")
nodes=${2:-8000000}
engine=${3:-auto}
groups='SELECT type, count(*), sum(size) FROM nodes GROUP BY type'

cd "$dir"
mkdir -p mnt
trap 'primefs umount mnt 2>/dev/null || :; rm -rf opening.pfs* opening-paths mnt' EXIT

timed() { # WHAT COMMAND...
	local what=$1 began=${EPOCHREALTIME/./}
	shift
	"$@" >/dev/null
	printf '%10.3f s  %s\n' "$((${EPOCHREALTIME/./} - began))e-6" "$what"
}

image_comes() {
	local tries
	for ((tries = 0; tries < 12000; tries++)); do
		[[ ! -e opening.pfs.img ]] || return 0
		sleep 0.05
	done
	return 1
}

list() { # OPTION...: mounts and lists the root
	primefs mount -o noatime "$@" opening.pfs mnt
	ls mnt
}

ask() { # STATEMENT: of a store that is mounted for it
	primefs mount -o noatime --engine="$engine" opening.pfs mnt
	primefs query mnt "$1"
}

own_memory() {
	local daemon tries
	primefs mount --foreground -o noatime --engine=host opening.pfs mnt &
	daemon=$!
	for ((tries = 0; tries < 600; tries++)); do
		mountpoint -q mnt && break
		sleep 0.1
	done
	ls mnt >/dev/null
	awk '/^Private_Dirty/ { printf "%10.1f MB of its own after ls\n", $2 / 1e3 }' "/proc/$daemon/smaps_rollup"
}

primefs-bench gen paths --nodes="$nodes" >opening-paths
timed "import of $nodes nodes" primefs import -q --format=paths opening-paths opening.pfs
timed 'until the image file is there' image_comes
timed 'mount and ls, from the image file' list --engine=host
primefs umount mnt
own_memory
primefs umount mnt
timed "mount and GROUP BY, from the image file, $engine" ask "$groups"
timed 'GROUP BY again' primefs query mnt "$groups"
primefs umount mnt
rm opening.pfs.img
timed 'mount and ls, from the rows' list --engine=host -o snapshot=no
primefs umount mnt
rm opening.pfs*

some=$((nodes < 7900000 ? nodes : 7900000))
primefs-bench gen paths --nodes="$some" | awk '{ print $0 "\t" length($0) }' >opening-paths
timed "import of $some nodes with an attribute" primefs import -q --format=paths --columns=len:int opening-paths opening.pfs
image_comes
timed 'mount and sum of the attribute, the first time' ask 'SELECT count(len), sum(len) FROM nodes'
primefs umount mnt # leaves an image file with the column, a little later
for ((tries = 0; tries < 100; tries++)); do
	sleep 2
	[[ -e opening.pfs.img.part ]] || break
done
timed 'the same from the image file' ask 'SELECT count(len), sum(len) FROM nodes'
