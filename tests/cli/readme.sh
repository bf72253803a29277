#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every line of the README's sessions does what the README says, for an ordinary user, too.
. "$(dirname "$0")/../lib.sh"
requires fuse
user=()
if ((EUID == 0)) && [[ -u $(command -v fusermount3) ]] && open_fuse_to_all; then
	user=(as "$nobody" env HOME=/)
fi

# The blocks of code with commands, one after the other, from the one that holds the line $1 to the
# one that holds $2.
session() {
	awk -v first="$1" -v last="$2" '
		/^```/ { inside = !inside; if (!inside) { on = on || index(text, first)
			if (on && text ~ /^\$ /) printf "%s", text
			if (index(text, last)) exit }
			text = ""; next }
		inside { text = text $0 "\n" }' "$top/README.md"
}

# A command begins with "$ " and goes on to the end of its here-document; what follows is its output.
commands() {
	awk '/^\$ / { command = substr($0, 3); print "printf \"%s\\n\" " quote($0); print command
			here = match(command, /<< *[A-Z]+$/) ? substr(command, RSTART + 2) : ""; gsub(/ /, "", here); next }
		here != "" { print; if ($0 == here) here = "" }
		function quote(text) { gsub(/\047/, "\047\\\047\047", text); return "\047" text "\047" }'
}

# What a terminal shows: the shell does not repeat the here-documents.
shown() {
	awk '/^\$ / { here = match($0, /<< *[A-Z]+$/) ? substr($0, RSTART + 2) : ""; gsub(/ /, "", here); print; next }
		here != "" { if ($0 == here) here = ""; next }
		{ print }'
}

# plays DESCRIPTION FIRST LAST FILTER: runs the blocks between the two, in order; what they print is
# what the README has, as FILTER leaves it.
plays() {
	session "$2" "$3" >"$work/session"
	ok "$1: the README has it" grep -q '^\$ primefs import' "$work/session"
	commands <"$work/session" >"$work/script"
	(cd "$work/$sessions" && "${run_as[@]}" bash -eu "$work/script") 2>&1 | tr -d '\r' >"$work/is" || echo "status $?" >>"$work/is"
	shown <"$work/session" | "$4" >"$work/should"
	"$4" <"$work/is" >"$work/is.filtered"
	ok "$1: it prints what it says" diff "$work/should" "$work/is.filtered"
}

# Times differ from run to run, what an empty store takes from version to version.
timeless() { sed 's/ in [0-9.]* s$/ in T s/; s/takes [0-9]* bytes, [0-9.]* a node/takes N bytes, N a node/'; }

# Each machine has headers of its own: what differs is how many and how large, and how wide columns are.
numberless() {
	sed -E '/^\$/!{ s/[0-9]+(\.[0-9]+)?[KMG]?/N/g; s/ +/ /g; s/-+/-/g }'
}

all_of_it() {
	mkdir "$sessions"
	((!${#run_as[@]})) || chown "$nobody" "$sessions"
	if [[ -e /usr/include/linux/can/raw.h ]] && command -v getfattr >/dev/null; then
		plays "$1headers" 'import include' 'check include.pfs' numberless
	else
		skip "$1headers: no /usr/include/linux/can/raw.h, or no getfattr"
		"${run_as[@]}" mkdir "$sessions/mnt"
	fi
	plays "$1a table" 'taxa.csv taxa.pfs' 'taxa.csv taxa.pfs' timeless
}

# packages FILE FIRST LAST: the words from the line that holds FIRST to the one that holds LAST.
packages() {
	sed -n "/$2/,/$3/p" "$top/$1" | sed 's/.*apt-get install//; s/.*packages=//' | tr -c 'a-z0-9.-' '\n' | sed '/./!d' | sort
}
is 'tools/setup installs what the README names' "$(packages tools/setup '^packages=' ')')" \
	"$(packages README.md '    apt-get install' '^$')"
ok 'getfattr, which the README calls, is among it' grep -qx attr <(packages tools/setup '^packages=' ')')

sessions=sessions
all_of_it ''
if ((${#user[@]})); then
	run_as=("${user[@]}") sessions=theirs
	all_of_it 'an ordinary user: '
else
	skip 'an ordinary user: may not mount here'
fi
