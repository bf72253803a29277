#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Commands where address space is limited (ulimit -v): what they need, and what they say where there is less.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

limited() { # KILOBYTES COMMAND...
	(ulimit -v "$1" && "${@:2}")
}
limited 1000000 primefs --version >/dev/null 2>&1 || skip_all 'this build needs more address space' # a sanitizer's

seq -f /d/%g 20000 | primefs import --format=paths - "$store" >/dev/null

is 'a statement, in 1 GB' "$(limited 1000000 primefs query --csv "$store" 'SELECT count(*) FROM nodes' | tail -n 1 | tr -d '\r')" 20002
is 'the nodes of a directory' "$(limited 1000000 primefs find "$store" -type f | wc -l)" 20000
for _ in {1..20}; do seq -f /d/%g 20000; done >many
is 'many paths' "$(limited 1000000 primefs resolve "$store" <many | cut -f 2 | cksum)" "$(cksum <many)"
ok 'facts of the store' limited 1000000 primefs info "$store"
is 'all paths' "$(limited 1000000 primefs export --format=paths "$store" | wc -l)" "$(primefs export --format=paths "$store" | wc -l)"
is 'an import' "$(seq -f /e/%g 20000 | limited 1000000 primefs import --format=paths - other.pfs | head -n 1 | cut -d ' ' -f 2-3)" \
	'20002 nodes'
ok 'a check, which has the tree twice, in 2 GiB' limited 2097152 primefs check --engine=host "$store"
fails_with 'says what it needs' 'there is not enough memory; .*ulimit -v.*2 GiB' limited 100000 primefs info "$store"
fails_with 'or that no thread can start' 'cannot start a thread: .*ulimit -v|there is not enough memory; .*ulimit -v' \
	limited 400000 primefs info "$store"
