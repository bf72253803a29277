# shellcheck shell=bash disable=SC2034,SC2119,SC2120 # variables and arguments are for those who source it
# SPDX-License-Identifier: MIT
# tests/lib.sh - sourced by the scripts in tests/mount, tests/cli and tests/crash.
#
# Gives each its own folder ($work), removed at the end together with whatever is mounted below it.
# A script runs under `set -eu`: a step that fails unexpectedly ends it as failed.  What it asserts
# goes through ok, not_ok, is, fails_with, which count and go on.  The last line printed is
# `N passed, M failed, K skipped`, the exit status 0, 1 or 77.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ -z ${PFS_BUILD-} ]]; then # run by hand: the build that `make` left
	PFS_BUILD=$top/$(make -s -C "$top" print-build)
fi
export PATH=$PFS_BUILD:$PATH
export LC_ALL=C # what ls and sort make of names, wherever tests run
: "${PFS_LONG:=0}"
: "${PFS_COMPARE:=0}" # 1: see that the engine agrees before each unmount
: "${probes:=$PFS_BUILD/tests/mount}"

script=$(cd "$(dirname "$0")" && pwd)/${0##*/}
work=$(mktemp -d "${TMPDIR:-/tmp}/primefs.XXXXXX")
chmod 755 "$work"
store=$work/store.pfs
mnt=$work/mnt
mkdir "$mnt"
cd "$work"

all_probes=(names paths rename times perms io direct maps content threads dirs xattrs locks handles)
n_passed=0 n_failed=0 n_skipped=0
run_as=()
cleanups=()

# cleanup_fn COMMAND...: run at the end, the last one first; its failure does not count.
cleanup_fn() { cleanups+=("$(printf '%q ' "$@")"); }

# gone PID: the process has ended, each of its threads, whether or not somebody has waited for it.
gone() { ! kill -0 "$1" 2>/dev/null || ! grep -qs '^State:[[:space:]]*[^[:space:]Z]' "/proc/$1"/task/*/status; }

# kill_own [-SIGNAL] PID: for cleaning up, a process that this script has started.  By then it may have ended, and
# where numbers are few and tests many another process has its number.
kill_own() { [[ $(sed -n 's/^PPid:[[:space:]]*//p' "/proc/${*: -1}/status" 2>/dev/null) == "$$" ]] && kill "$@"; }

# force_unmount DIR: for cleaning up, whatever state the daemon is in.
force_unmount() {
	umount -l "$1" 2>/dev/null || fusermount3 -uz "$1" 2>/dev/null || true
}

is_mounted() { grep -qF " $1 " /proc/self/mountinfo; }

finish() {
	local status=$? i target
	trap '' INT TERM
	set +e
	cd /
	for ((i = ${#cleanups[@]} - 1; i >= 0; i--)); do
		eval "${cleanups[i]}" >/dev/null 2>&1
	done
	awk '{print $5}' /proc/self/mountinfo | grep -F "$work/" | sort -r |
		while IFS= read -r target; do
			force_unmount "$target"
		done
	rm -rf --one-file-system "$work"
	if ((status != 0 && status != 77)); then
		echo "ended with status $status"
		n_failed=$((n_failed + 1))
	fi
	echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
	((n_failed == 0)) || exit 1
	((n_passed > 0 || n_skipped == 0)) || exit 77
	exit 0
}
trap finish EXIT
trap 'exit 130' INT TERM
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR

pass() {
	n_passed=$((n_passed + 1))
	echo "ok      $1"
}
fail() {
	n_failed=$((n_failed + 1))
	echo "NOT OK  $1"
}
skip() { # a part; `skip_all` skips the rest of the script
	n_skipped=$((n_skipped + 1))
	echo "skip    $1"
}
skip_all() {
	skip "$1"
	exit 77
}

# ok DESCRIPTION COMMAND...: COMMAND succeeds.
ok() {
	local output status=0
	output=$("${@:2}" 2>&1) || status=$?
	if ((status == 0)); then
		pass "$1"
	else
		fail "$1"
		printf '        %s: status %d\n%s\n' "${*:2}" "$status" "$(head -n 20 <<<"$output")"
	fi
}

# not_ok DESCRIPTION COMMAND...: COMMAND fails, but is not killed by a signal.
not_ok() {
	local output status=0
	output=$("${@:2}" 2>&1) || status=$?
	if ((status > 0 && status < 124)); then
		pass "$1"
	else
		fail "$1"
		printf '        %s: status %d\n%s\n' "${*:2}" "$status" "$(head -n 20 <<<"$output")"
	fi
}

# For Python: whether it reads the same in two files.
python_reads='import sys; a, b = (open(name, "rb").read() for name in sys.argv[1:3]); sys.exit(a != b)'
# python DESCRIPTION ARGUMENT...: python3 ARGUMENT... succeeds; skipped where there is none, as on a
# system that has only what tools/setup installs.
python() {
	if command -v python3 >/dev/null; then
		ok "$1" python3 "${@:2}"
	else
		skip "$1: no python3"
	fi
}

# fails_with DESCRIPTION PATTERN COMMAND...: it fails and prints a line that matches PATTERN (grep -E).
fails_with() {
	local output status=0
	output=$("${@:3}" 2>&1) || status=$?
	if ((status > 0 && status < 124)) && grep -qE -- "$2" <<<"$output"; then
		pass "$1"
	else
		fail "$1"
		printf '        %s: status %d, wanted /%s/:\n%s\n' "${*:3}" "$status" "$2" \
			"$(head -n 20 <<<"$output")"
	fi
}

# exits DESCRIPTION STATUS COMMAND...
exits() {
	local output status=0
	output=$("${@:3}" 2>&1) || status=$?
	if ((status == $2)); then
		pass "$1"
	else
		fail "$1"
		printf '        %s: status %d, wanted %d:\n%s\n' "${*:3}" "$status" "$2" \
			"$(head -n 20 <<<"$output")"
	fi
}

# is DESCRIPTION ACTUAL WANTED
is() {
	if [[ $2 == "$3" ]]; then
		pass "$1"
	else
		fail "$1"
		printf '        is     %q\n        wanted %q\n' "$2" "$3"
	fi
}

# in_own_namespace: goes on in a mount namespace of this script's own, so that what it mounts outside
# $work concerns nobody else, while what others unmount is gone there, too.  Call it first of all; false
# if there are none to be had.
in_own_namespace() {
	[[ ${PFS_OWN_NAMESPACE-} != 1 ]] || return 0
	unshare -m --propagation slave true 2>/dev/null || return 1
	trap - EXIT ERR
	cd "$top"
	rm -rf "$work"
	PFS_OWN_NAMESPACE=1 exec unshare -m --propagation slave "$script"
}

# The programs where an ordinary user reaches them, should the source lie in root's home.
reachable_programs() {
	as "$nobody" test -x "$PFS_BUILD/primefs" && return
	[[ $probes != "$work/bin" ]] || return 0 # done already
	mkdir "$work/bin"
	cp "$PFS_BUILD/primefs" "$work/bin"
	find "$PFS_BUILD/tests/mount" -maxdepth 1 -type f -perm -u+x -exec cp {} "$work/bin" \;
	export PATH=$work/bin:$PATH
	probes=$work/bin
}

# An ordinary user may open /dev/fuse wherever udev set it up; where not, in our own namespace.
open_fuse_to_all() {
	[[ -e /etc/mtab ]] || return # without it fusermount3 does not unmount
	reachable_programs
	as "$nobody" test -w /dev/fuse && return
	in_own_namespace || return
	mknod -m 666 "$work/fuse" c 10 229 && mount --bind "$work/fuse" /dev/fuse
}

# has_fuse: this user can mount.
has_fuse() {
	[[ -w /dev/fuse ]] || return
	# without /etc/mtab fusermount3 does not unmount
	((EUID == 0)) || { [[ -e /etc/mtab ]] && command -v fusermount3 >/dev/null; }
}

# requires WHAT...: fuse, root, unprivileged (a user `nobody` can mount), or a command's name.
requires() {
	local what
	for what; do
		case $what in
		fuse)
			has_fuse || skip_all 'skipped: no /dev/fuse that this user may open, fusermount3 or /etc/mtab'
			;;
		root) [[ $EUID == 0 ]] || skip_all 'skipped: needs root' ;;
		unprivileged)
			if [[ $EUID != 0 || ! -u $(command -v fusermount3) ]]; then
				skip_all 'skipped: needs root, to become an ordinary user, and fusermount3'
			fi
			open_fuse_to_all || skip_all 'skipped: ordinary users may not open /dev/fuse, or there is no /etc/mtab'
			;;
		*) command -v "$what" >/dev/null || skip_all "skipped: no $what" ;;
		esac
	done
}

# has_archives: primefs was built with libarchive.
has_archives() {
	local said
	said=$(primefs import --format=tar - "$work/.archives" </dev/null 2>&1) || true
	rm -f "$work/.archives"
	[[ $said != *'built without libarchive'* ]]
}

# as UID COMMAND...: as an ordinary user without groups or capabilities.
as() {
	setpriv --reuid "$1" --regid "$1" --clear-groups --inh-caps=-all -- "${@:2}"
}
nobody=65534

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local tries=$(($1 * 20))
	until "${@:2}" >/dev/null 2>&1; do
		((tries-- > 0)) || return 1
		sleep 0.05
	done
}

# within DESCRIPTION MICROSECONDS LIMIT: says how long it took, and with --long that this is no more than the limit.
within() {
	echo "        $1: $2 µs at most, where $3 are wanted"
	((!PFS_LONG)) || ok "$1 in time" test "$2" -le "$3"
}

# empty_store [STORE]: a store with nothing but its root, owned by whoever runs this.
empty_store() {
	primefs import --format=paths - "${1:-$store}" </dev/null >/dev/null
}

# mount_store [OPTION]...: mounts $store, made if there is none, at $mnt.  Others may enter when
# root mounts.
mount_store() {
	[[ -e $store ]] || empty_store
	if ((EUID == 0)); then
		set -- -o allow_other "$@"
	fi
	primefs mount "$store" "$mnt" "$@"
	((!PFS_COMPARE)) || primefs tree --engine=auto "$mnt" count / >/dev/null # from now on it follows changes
}

# Mounts a store of $1 files with long names, 500 to a directory, whose answers lie in tmp; sets n, name (which names begin
# with) and q.
mount_long_names() {
	n=$1
	name=$(printf 'x%.0s' {1..90})
	seq 0 $((n - 1)) | awk -v name="$name" '{print "/d" int($1 / 500) "/" name $1}' |
		primefs import --format=paths - "$store" >/dev/null
	mkdir tmp
	TMPDIR=$work/tmp mount_store
	q=$mnt/.query
}

unmount_store() {
	((!PFS_COMPARE)) || engine_agrees 'the engine agrees with find' "$mnt"
	primefs umount "$mnt"
}

# engine_agrees DESCRIPTION DIR: the whole mounted tree as the engine's codes have it is what find finds.
engine_agrees() {
	primefs tree --engine=auto -0 "$2" subtree / | LC_ALL=C sort -z >"$work/.answered"
	find "$2" -xdev -printf '/%P\0' | LC_ALL=C sort -z >"$work/.found"
	ok "$1" cmp "$work/.answered" "$work/.found"
	rm "$work/.answered" "$work/.found"
}

remount_store() {
	unmount_store
	mount_store "$@"
}

# mount_in_foreground [OPTION]...: $daemon is its process; its output goes to $work/daemon.log.
mount_in_foreground() {
	[[ -e $store ]] || empty_store
	if ((EUID == 0)); then
		set -- -o allow_other "$@"
	fi
	primefs mount -f "$store" "$mnt" "$@" >>"$work/daemon.log" 2>&1 &
	daemon=$!
	cleanup_fn kill_own -9 "$daemon"
	wait_for 20 is_mounted "$mnt" || {
		cat "$work/daemon.log"
		return 1
	}
}

# mount_faulty: mounts $store so that begin_fault PLAN (tests/vfs/faultvfs.h) makes the disk below it fail
# until end_fault.  $daemon is its process.
mount_faulty() {
	local faulty=$PFS_BUILD/tests/vfs/primefs-fault
	[[ -x $faulty ]] || skip_all 'skipped: primefs-fault is not built'
	end_fault
	[[ -e $store ]] || empty_store
	PFS_FAULT_FILE=$work/plan "$faulty" mount -f "$store" "$mnt" >>"$work/daemon.log" 2>&1 &
	daemon=$!
	cleanup_fn kill_own -9 "$daemon"
	wait_for 20 is_mounted "$mnt"
}
begin_fault() { echo "$1" >"$work/plan"; }
end_fault() { : >"$work/plan"; }

# check_store [STORE]: `primefs check` finds nothing wrong.
check_store() { ok "check is clean${2:+, $2}" primefs check "${1:-$store}"; }

# run_probe NAME [ARGUMENT]...: a program of tests/mount/*.c, whose figures are added to ours.
# The array run_as, if set, is a command that runs it.
run_probe() {
	local output figures p f s _
	output=$("${run_as[@]}" "$probes/$1" "${@:2}" 2>&1) || true
	printf '%s\n' "$output" | grep -v '^ok ' || true
	figures=$(tail -n 1 <<<"$output")
	if [[ $figures =~ ^[0-9]+\ passed,\ [0-9]+\ failed,\ [0-9]+\ skipped$ ]]; then
		read -r p _ f _ s _ <<<"$figures"
		n_passed=$((n_passed + p)) n_failed=$((n_failed + f)) n_skipped=$((n_skipped + s))
	else
		fail "$1 ended without figures"
	fi
}

# store_of_statements: $store for the statements of tests/query/who.tsv: a tree with attributes, so large that what the
# operators begin with is less than what they save, and side tables.
store_of_statements() {
	local sql
	awk -v n=20000 'BEGIN { split(" .c .txt .tar.gz .h _x", ends, " ")
		for (i = 0; i < n; i++) printf "/d%d/d%d/f%d%s\tc%d\t%d\t%d.5\t%d\n", i % 3, i % 400, i / 4, ends[i % 6],
			i % 7, i % 9, i % 4, i % 800 }' </dev/null |
		primefs import --format=paths --columns=tag,stars:int,score:real,size:int - "$store" >/dev/null
	{
		"$probes/statements"
		echo 'CREATE TABLE owners (dir TEXT, who TEXT)'
		echo 'CREATE TABLE kinds (ext TEXT, kind TEXT)'
	} | while IFS= read -r sql; do primefs query "$store" "$sql"; done
}
