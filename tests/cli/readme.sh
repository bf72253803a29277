#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The README's session with a table prints what the README says it prints.
. "$(dirname "$0")/../lib.sh"
requires fuse

# The block of code that holds the line $1.
block() {
	awk -v wanted="$1" '
		/^```/ { if (inside && found) exit; inside = !inside; text = ""; next }
		inside { text = text $0 "\n"; found = found || index($0, wanted) }
		END { printf "%s", text }' "$top/README.md"
}
# Times differ from run to run.
timeless() { sed 's/ in [0-9.]* s$/ in T s/'; }

# A command begins with "$ " and goes on to the end of its here-document; what follows is its output.
block 'taxa.csv taxa.pfs' >"$work/wanted"
ok 'the README has the session' test -s "$work/wanted"
awk '/^\$ / { command = substr($0, 3); print "printf \"%s\\n\" " quote($0); print command
		here = match(command, /<< *[A-Z]+$/) ? substr(command, RSTART + 2) : ""; gsub(/ /, "", here); next }
	here != "" { print; if ($0 == here) here = "" }
	function quote(text) { gsub(/\047/, "\047\\\047\047", text); return "\047" text "\047" }' \
	"$work/wanted" >"$work/script"
(cd "$work" && bash -eu "$work/script") >"$work/is" 2>&1 || echo "status $?" >>"$work/is"
# the shell does not repeat the here-documents
awk '/^\$ / { here = match($0, /<< *[A-Z]+$/) ? substr($0, RSTART + 2) : ""; gsub(/ /, "", here); print; next }
	here != "" { if ($0 == here) here = ""; next }
	{ print }' "$work/wanted" | timeless >"$work/should"
is 'it prints what it says' "$(timeless <"$work/is")" "$(cat "$work/should")"
