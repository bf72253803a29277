#!/bin/bash
# SPDX-License-Identifier: MIT
# What keeping history costs a group: one statement changes the mode of every node, and a sync commits it, by turns
# on a store that keeps history and on its copy that keeps none.  Processor time of the daemons, in microseconds a
# changed row, the least of the rounds.
#
#	history.sh DIR [NODES [ROUNDS]]
#
# primefs is the one in PATH.
set -euo pipefail

dir=$(realpath "${1:?DIR}")
nodes=${2:-100000}
rounds=${3:-7}
ticks=$(getconf CLK_TCK)

cd "$dir"
mkdir -p off on
seq "$nodes" | sed 's|..$|/&|; s|^|/d|' >history-paths
primefs import -q --format=paths history-paths off.pfs
cp off.pfs on.pfs
primefs mount off.pfs off
primefs mount -o history=1y on.pfs on
trap 'primefs umount off; primefs umount on; rm -f off.pfs* on.pfs* history-paths; rmdir off on' EXIT

spent() { # clock ticks of the daemon that has the mount
	local daemon stat
	daemon=$(getfattr --only-values -n user.primefs.daemon "$1" | cut -d' ' -f1)
	read -r stat <"/proc/$daemon/stat"
	awk '{ print $12 + $13 }' <<<"${stat##*) }"
}

round() { # MOUNT MODE
	local before
	before=$(spent "$1")
	primefs query "$1" "UPDATE nodes SET mode = $2 WHERE type = 'f'" >/dev/null
	sync "$1"
	echo $(($(spent "$1") - before))
}

least_off='' least_on=''
for ((i = 0; i < rounds; i++)); do
	cost=$(round off $((256 + i)))
	[[ $least_off ]] && ((cost >= least_off)) || least_off=$cost
	cost=$(round on $((256 + i)))
	[[ $least_on ]] && ((cost >= least_on)) || least_on=$cost
done
rows=$(primefs query off "SELECT count(*) FROM nodes WHERE type = 'f'" | tail -n 1)
awk -v off="$least_off" -v on="$least_on" -v rows="$rows" -v ticks="$ticks" 'BEGIN {
	printf "%d rows; without history %.2f us a row, with it %.2f, %.2f times\n", rows, off / ticks / rows * 1e6,
		on / ticks / rows * 1e6, on / off }'
primefs info on | grep -E '^(history|former rows)'
