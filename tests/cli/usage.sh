#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exit statuses, help, one-line errors, JSON.
. "$(dirname "$0")/../lib.sh"

exits 'no command' 2 primefs
exits 'an unknown command' 2 primefs frobnicate
ok 'help' primefs help
ok '--version' primefs --version
verbs=$(primefs help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for verb in $verbs; do
	ok "$verb --help" primefs "$verb" --help
	ok "help $verb" primefs help "$verb"
	[[ $verb == help ]] || exits "$verb with an unknown option" 2 primefs "$verb" --no-such-option
done
# Every option has its place in the manual.
described() { # PAGE COMMAND...
	local option
	ok "${*:2} has a manual page" test -e "$top/docs/man/$1.1"
	for option in $("${@:2}" --help | sed -n 's/^ *\(-., \)\?--\([a-z0-9-]*\).*/\2/p'); do
		[[ $option == help ]] || ok "with --$option" grep -qE "(Fl|,) -$option\b" "$top/docs/man/$1.1"
	done
}
for verb in $verbs; do
	[[ $verb == help ]] || described "primefs-$verb" primefs "$verb"
done
for subject in $(primefs-bench help | sed -n 's/^  \([a-z0-9]*\) .*/\1/p'); do
	described primefs-bench primefs-bench "$subject"
done
exits 'an unknown subject' 2 primefs-bench frobnicate
for verb in bench gen; do
	fails_with "where $verb went" 'primefs-bench' primefs "$verb" paths
done
for verb in import mount umount info check export; do
	ok "there is $verb" grep -qx "$verb" <<<"$verbs"
	exits "$verb without operands" 2 primefs "$verb"
done

empty_store
ok 'info' primefs info "$store"
is 'few nodes have no figure of memory each' "$(primefs info "$store" | grep -c 'besides its name')" 0
for verb in info check; do
	primefs "$verb" --json "$store" >"$verb.json"
	python "$verb --json is JSON" -m json.tool "$verb.json"
done
# Every mount option of the manual is in --help.
mount_options() {
	sed -n '/^\.It Fl o/,/^Root mounts/ s/^\.It Cm //p' "$top/docs/man/primefs-mount.1" | sed 's/Ns.*//' | grep -ow '[a-z_]*'
}
while read -r option; do
	ok "mount --help has $option" grep -qw -- "$option" <(primefs mount --help)
done < <(mount_options)
for key in nodes directories files bytes max_depth max_code_bits schema; do
	ok "info --json has $key" grep -q "\"$key\"" <(primefs info --json "$store")
done
exits 'check of a clean store' 0 primefs check "$store"
for command in 'info none.pfs' 'check none.pfs' 'export none.pfs' 'mount none.pfs mnt' 'umount mnt' \
	'import none new.pfs'; do
	# shellcheck disable=SC2086 # a command and its operands
	exits "failure: $command" 3 primefs $command
	# shellcheck disable=SC2086
	is 'in one line' "$(primefs $command 2>&1 | wc -l)" 1
done
for command in '--at= list s.pfs' '--at=/a/.. list s.pfs' "--at=/$(printf %0256d 0) list s.pfs" \
	'--columns=a,a list s.pfs' '--columns=n:blob list s.pfs' '--path=p --id=i list s.pfs' \
	'--format=zip list s.pfs' '--content=some list s.pfs' '--on-error=go list s.pfs' '--null . s.pfs' \
	'--content=copy list s.pfs' 'list' 'list s.pfs more'; do
	echo a >list
	# shellcheck disable=SC2086
	exits "wrong usage: import ${command:0:40}" 2 primefs import $command
	# shellcheck disable=SC2086
	is 'in one line' "$(primefs import $command 2>&1 | wc -l)" 1
done
is 'and nothing is made' "$(find . -name 's.pfs*')" ''
for command in 'tree STORE subtree' 'tree STORE node' 'dupes STORE' 'refresh STORE'; do
	is "a name with a newline is shown in one line: $command" \
		"$(eval "primefs ${command/STORE/\"\$store\"} \$'/no\nsuch'" 2>&1 | wc -l)" 1
done
for command in "tree STORE subtree ''" "tree STORE children /d ''" "dupes STORE ''" "refresh STORE ''" "export --at= STORE" \
	"du STORE ''" "query STORE ''" "import '' s.pfs" "info ''"; do
	exits "what is empty, as a variable that is not set, is wrong usage: $command" 2 \
		eval "primefs ${command/STORE/\"\$store\"}"
done
is 'check prints no JSON about what it could not look at' "$(primefs check --json list 2>/dev/null)" ''
seq -f /d/%g 20000 | primefs import --format=paths - many.pfs >/dev/null
for command in "query many.pfs 'SELECT path FROM nodes'" 'tree many.pfs subtree /' 'du --svg=- many.pfs'; do
	is "a full standard output amid the answer is told in one line: $command" \
		"$(eval "primefs $command" 2>&1 >/dev/full | grep -c '')$(eval "primefs $command" 2>&1 >/dev/full | grep -c 'No space')" 11
done
fails_with 'a full standard output is noticed' 'No space' bash -c "primefs info '$store' >/dev/full"
if command -v sqlite3 >/dev/null; then
	cp "$store" "$work/newer.pfs"
	sqlite3 "$work/newer.pfs" 'PRAGMA user_version = 999999'
	fails_with 'a newer schema is refused' 'newer|version' primefs info "$work/newer.pfs"
fi
