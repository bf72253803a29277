#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGTERM and umount end the daemon within two seconds, whatever statements run; here ten times that is let
# pass, and printed.
# timeout: 300
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse awk

# a chain of directories, whose paths take long, and files beside each other
awk 'BEGIN { print "id,parent,name"
	for (i = 1; i <= 3000; i++) printf "%d,%s,d\n", i, (i > 1 ? i - 1 : "")
	for (i = 1; i <= 3000; i++) printf "f%d,1,f%d\n", i, i }' >chain.csv
primefs import -q --format=csv --id=id --parent=parent --name=name chain.csv "$store"

endless='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)'
doubling=$(awk 'BEGIN { printf "WITH a0 AS(SELECT 1 x)"
	for (i = 1; i <= 16; i++) printf ",a%d AS(SELECT 1 FROM a%d,a%d y)", i, i - 1, i - 1
	printf "SELECT*FROM a16" }')
hostile=(
	"$endless SELECT count(*) FROM n"
	"$endless SELECT sum(instr(hex(zeroblob(3000000)), hex(zeroblob(1000000)) || i)) FROM n"
	"$endless SELECT sum(length(replace(hex(zeroblob(3000000)), '00', i))) FROM n"
	"$endless SELECT sum(length(trim(hex(zeroblob(20000)), i || hex(zeroblob(10000)) || char(233)))) FROM n"
	"$endless SELECT sum(hex(zeroblob(1500000)) LIKE '%' || hex(zeroblob(2000)) || i) FROM n"
	"$endless SELECT sum(length(printf('%.2000000c', i))) FROM n"
	"$endless SELECT sum(json_valid(replace(hex(zeroblob(400000)), '0', '[' || i))) FROM n"
	"$endless SELECT i FROM n ORDER BY random()"
	"$endless SELECT DISTINCT i FROM n"
	"$endless SELECT group_concat(i) FROM n"
	"$endless SELECT max(i) OVER (ORDER BY -i) FROM n"
	"$endless SELECT i FROM n UNION SELECT -i FROM n"
	"SELECT a.ino FROM nodes a, nodes b, nodes c ORDER BY random()"
	"SELECT count(*) FROM nodes a, nodes b, nodes c WHERE a.size + b.size > c.size"
	"SELECT count(*) FROM nodes a, nodes b, nodes c WHERE a.path LIKE '%' || b.path || c.path || 'x'"
	"SELECT a.ext, sum(length(b.path || c.path)) FROM nodes a JOIN nodes b USING (type) JOIN nodes c USING (type) GROUP BY a.ext"
)

asking=()
ask() { # HOW STATEMENT
	case $1 in
	file) cat "$mnt/.query/sql/$2" >/dev/null 2>&1 & ;;
	command) primefs query "$mnt" "$2" >/dev/null 2>&1 & ;;
	saved) cat "$mnt/.query/$2/result.tsv" >/dev/null 2>&1 & ;;
	esac
	asking+=($!)
}
all_run() { grep -q "\"running\": ${#asking[@]}," "$mnt/.query/stats"; }
none_ended() {
	local i
	for i in "${!asking[@]}"; do
		gone "${asking[i]}" || continue
		echo "number $i has ended: $(head -n 1 "$mnt/.query/error" 2>&1)"
		return 1
	done
}

# ends HOW COMMAND...: the daemon is gone soon after it.
ends() {
	local began=${EPOCHREALTIME/./}
	"${@:2}" || true
	ok "$1: the daemon is gone" wait_for 20 gone "$daemon"
	printf '        %s: %d ms\n' "$1" $(((${EPOCHREALTIME/./} - began) / 1000))
	kill -9 "${asking[@]}" 2>/dev/null || true # a command may ask the store itself by now
	wait 2>/dev/null || true
	asking=()
	not_ok "$1: nothing is mounted" is_mounted "$mnt"
}

# as many at a time as have a turn
n=$((2 * $(nproc)))
for ((at = 0; at < ${#hostile[@]}; at += n)); do
	for how in file command; do
		mount_in_foreground
		for statement in "${hostile[@]:at:n}"; do ask "$how" "$statement"; done
		# commands have no turns
		[[ $how == command ]] || ok "they run (from $at on)" wait_for 20 all_run
		sleep 1 # well into what they do
		ok "none has ended ($how, from $at on)" none_ended
		if [[ $how == file ]]; then
			ends "SIGTERM (from $at on)" kill -TERM "$daemon"
		else
			ends "umount (from $at on)" primefs umount "$mnt"
		fi
	done
done

mount_in_foreground
mkdir "$mnt/.query/doubling"
printf '%s' "$doubling" >"$mnt/.query/doubling/sql"
ask saved doubling
ends 'SIGTERM while preparing' kill -TERM "$daemon"

# a client who is killed takes his statement with him, so that the mount is free
mount_in_foreground
for statement in "${hostile[@]:0:n}"; do ask file "$statement"; done
ok 'they run' wait_for 20 all_run
kill -9 "${asking[@]}"
ends 'umount after clients were killed' primefs umount --wait=20 "$mnt"

# commands that change what the kernel knows tell it to the end, and nobody after it
change_on() {
	while [[ -e $work/going ]]; do
		primefs query "$mnt" "UPDATE nodes SET mode = 420 - 4 * (mode & 4) WHERE type = 'f'" >/dev/null 2>&1 || break
	done
}
for ((round = 0; round < 5; round++)); do
	mount_in_foreground
	ls -lR "$mnt" >/dev/null 2>&1 || true # it knows them
	touch "$work/going"
	change_on & asking+=($!)
	change_on & asking+=($!)
	sleep 0.3
	primefs umount --wait=20 "$mnt" || true
	status=0
	wait "$daemon" || status=$?
	is "round $round: the daemon ended as it should" "$status" 0
	rm "$work/going" # they may ask the store itself by now
	wait "${asking[@]}" || true
	asking=()
done
check_store
