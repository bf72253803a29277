#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Single questions of a mount: with --engine=cuda the device answers each of them and the image's index is not
# asked; one that fails, at whatever call, or is silent, is left with one warning; and in builds with VERIFY=1
# an answer that is made wrong is seen.  The device is a stand-in, or with PFS_REAL_DEVICE=1 a real one.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse
: "${PFS_REAL_DEVICE:=0}"
if ((!PFS_REAL_DEVICE)); then
	[[ -x $PFS_BUILD/tests/device/primefs ]] || skip_all 'skipped: no stand-in for a device'
	export PATH=$PFS_BUILD/tests/device:$PATH
fi

mkdir -p tree/a/b/c tree/d tree/many
touch tree/a/x tree/a/b/y tree/a/b/c/z tree/d/w
for ((i = 0; i < 300; i++)); do : >"tree/many/file $i"; done

# begin OPTION...: a mount of that tree, whose device has all names or has failed.
begin() {
	rm -f "$store" daemon.log
	primefs import tree "$store" >/dev/null
	mount_in_foreground "$@"
	[[ $* != *cuda* ]] || wait_for 20 device_has_names
}
device_has_names() { # it is filled when somebody has asked
	[[ ! -e $mnt/nothing ]] || return 1
	[[ $(warnings) -gt 0 ]] || grep -q '"single": {"by": "cuda"' "$mnt/.query/stats"
}
end() {
	primefs umount "$mnt"
	wait "$daemon" || fail "the daemon ended with status $?"
}
sql() { tail -n +2 "$mnt/.query/sql/$1"; }
# count WHO KIND: of questions, by .query/stats.
count() { sed -n "/^ *\"$1\": {\"lookup/s/.*\"$2\": {\"count\": \([0-9]*\).*/\1/p" "$mnt/.query/stats"; }
ino() { stat -c %i "$mnt/$1"; }
warnings() { grep -c 'single questions' daemon.log || true; }

# Something of everything, the answers compared; $1 says when.
work_and_compare() {
	local z c
	is "$1: a lookup" "$(stat -c %F "$mnt/a/b/c/z")" 'regular empty file'
	not_ok "$1: a lookup of nothing" test -e "$mnt/a/b/nothing"
	is "$1: a listing" "$(find "$mnt/many" -name "file *" | wc -l)" 300
	is "$1: a listing of all" "$(cd "$mnt" && find . -not -path './.query*' | sort | md5sum)" \
		"$(cd tree && find . | sort | md5sum)"
	is "$1: all paths" "$(sort "$mnt/.query/paths" | md5sum)" "$(cd tree && find . | sed 's/^\.//; s/^$/\//' | sort | md5sum)"
	is "$1: a recursive listing" "$(primefs tree "$mnt" subtree /many | wc -l)" 301
	is "$1: children of a folder" "$(primefs tree "$mnt" children /many /d | wc -l)" 301
	mkdir "$mnt/new" && mv "$mnt/a" "$mnt/new/" && mv "$mnt/new/a/x" "$mnt/d/"
	is "$1: after a move" "$(cat "$mnt/new/a/b/c/z" && cd "$mnt" && echo new/a/* d/*)" 'new/a/b d/w d/x'
	z=$(ino new/a/b/c/z) c=$(ino new/a/b/c)
	is "$1: ancestor_of" "$(sql "SELECT ancestor_of($(ino new), ino) FROM nodes WHERE ino IN ($z, $(ino d)) ORDER BY 1" | tr '\n' ' ')" '0 1 '
	is "$1: child_of" "$(sql "SELECT child_of(ino, $c) FROM nodes WHERE ino IN ($z, $c) ORDER BY 1" | tr '\n' ' ')" '0 1 '
	is "$1: common_ancestor" "$(sql "SELECT common_ancestor($z, $(ino new/a/b/y))")" "$(ino new/a/b)"
	is "$1: node_of_code" "$(sql "SELECT node_of_code($(getfattr -n user.primefs.code --only-values "$mnt/new/a/b"))")" \
		"$(ino new/a/b)"
	rm -r "$mnt/new/a" && rmdir "$mnt/new" && mkdir -p "$mnt/a/b/c"
	is "$1: after removals" "$(ls "$mnt")" 'a
d
many'
}

begin --engine=cuda
first=$(count host lookup) # the question for which the device has been filled
work_and_compare cuda
is 'cuda: it says so' "$(grep -c '"single": {"by": "cuda"' "$mnt/.query/stats")" 1
for kind in lookup list ancestor move child common code text; do
	is "cuda: the image was not asked for: $kind" "$(count host "$kind")" "$([[ $kind == lookup ]] && echo "$first" || echo 0)"
	ok "cuda: the device was asked for: $kind" test "$(count cuda "$kind")" -gt 0
done
list_paths() { printf '/a\n/a/b\n/d/../many/file 7\n' | primefs resolve "$mnt"; }
list_paths >/dev/null # the image's, unless the device has all names already
is 'cuda: paths in bulk' "$(before=$(count cuda path) && list_paths | cut -f 1 | tr '\n' ' ' &&
	echo $(($(count cuda path) - before)))" "$(ino a) $(ino a/b) $(ino 'many/file 7') 3"
end
is 'cuda: no warning' "$(warnings)" 0
check_store

begin --engine=auto
work_and_compare auto
is 'auto: it says so' "$(grep -c '"single": {"by": "host"' "$mnt/.query/stats")" 1
for kind in lookup list ancestor move child common text; do
	is "auto: the device was not asked for: $kind" "$(count cuda "$kind")" 0
	ok "auto: the image was asked for: $kind" test "$(count host "$kind")" -gt 0
done
end

calls='1 2 3 5 8 13'
((!PFS_LONG)) || calls=$(seq -s ' ' 1 40)
((!PFS_REAL_DEVICE)) || calls='1 4 8 16 25 40 60 80'
for n in $calls; do
	export PRIMEFS_CUDA_FAIL_AT=$n
	begin --engine=cuda
	work_and_compare "failing at $n"
	end
	ok "failing at $n: one warning" test "$(warnings)" = 1 -o "$n" -gt 3 -a "$(warnings)" = 0 # it may be the engine's call
	check_store
done
unset PRIMEFS_CUDA_FAIL_AT

if ((!PFS_REAL_DEVICE)); then
	export PRIMEFS_RESIDENT_SILENT_AFTER=40
	begin --engine=cuda
	work_and_compare silent
	ok 'silent: the image was asked' test "$(count host lookup)" -gt 0
	end
	is 'silent: one warning' "$(warnings)" 1
	unset PRIMEFS_RESIDENT_SILENT_AFTER
	export PRIMEFS_RESIDENT_SLICES=1
	begin --engine=cuda
	work_and_compare 'in slices'
	end
	unset PRIMEFS_RESIDENT_SLICES
fi

if [[ $PFS_BUILD != *verify* ]]; then
	skip 'wrong answers: in builds with VERIFY=1'
	exit 0
fi
# falsified KIND DESCRIPTION COMMAND...: the command fails once the kind's answers are wrong, and only then.
falsified() {
	begin --engine=cuda
	ok "$1: $2" "${@:3}"
	end
	export PRIMEFS_FALSIFY=$1
	begin --engine=cuda
	not_ok "$1, answered wrongly: $2" "${@:3}"
	unset PRIMEFS_FALSIFY
	end
}
lists_all() { (($(find "$mnt/many" -name "file *" | wc -l) == 300)); }
has_children() { (($(primefs tree "$mnt" children /many | wc -l) == 300)); }
is_ancestor() { [[ $(sql "SELECT ancestor_of(2, ino) FROM nodes WHERE name = 'z'") == 1 ]]; }
is_common() { [[ $(sql "SELECT common_ancestor(ino, 2) FROM nodes WHERE name = 'z'") == 2 ]]; }
is_child() { [[ $(sql "SELECT child_of(ino, parent) FROM nodes WHERE name = 'z'") == 1 ]]; }
leads_there() { list_paths && list_paths; }
has_lines() { # by kernels, once the device has the names
	local i
	for i in 1 2; do (($(primefs tree "$mnt" subtree /many | wc -l) == 301)) || return; done
}
is_node() { [[ $(primefs tree "$mnt" node "$(getfattr -n user.primefs.code --only-values "$mnt/a/b")") == /a/b ]]; }
falsified lookup 'a path' test -e "$mnt/a/b/c/z"
falsified list 'a listing' lists_all
falsified list 'the children of a folder' has_children
falsified ancestor 'ancestor_of' is_ancestor
falsified move 'a move' mv "$mnt/a" "$mnt/d/"
falsified common 'common_ancestor' is_common
falsified child 'child_of' is_child
falsified path 'a list of paths' leads_there
falsified text 'a recursive listing' has_lines
falsified code 'the node of a code' is_node
