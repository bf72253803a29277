#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# import --format=paths, read back by export.
. "$(dirname "$0")/../lib.sh"

import() { rm -f "$store" && primefs import --format=paths "$@" "$store"; }
paths() { primefs export --format=paths "$store" | LC_ALL=C sort; }
nodes() { primefs info --json "$store" | sed -n 's/.*"nodes": *\([0-9]*\).*/\1/p'; }

printf '%s\n' /usr/bin/ls usr/bin/cat ./usr/lib//x///y /usr/bin/ls etc/ >"$work/list"
ok 'imports' import "$work/list"
is 'leading / and ./ are optional, slashes fold, directories are implied' "$(paths | xargs)" \
	'/etc/ /usr /usr/bin /usr/bin/cat /usr/bin/ls /usr/lib /usr/lib/x /usr/lib/x/y'
is 'nodes, the root included' "$(nodes)" 9
check_store

printf 'a\0b/c\nd\0' >"$work/list0"
ok 'imports with -0' import -0 "$work/list0"
is 'names may hold newlines' "$(primefs export --format=paths -0 "$store" | tr '\0' '|')" $'/a|/b|/b/c\nd|'

printf 'ok\na/../b\n' >"$work/bad"
fails_with '.. is an error that names its line' '(line |:)2\b' import "$work/bad"
not_ok 'and leaves no store' test -e "$store"
is 'nor anything else' "$(find "$work" -name 'store*')" ''
exits 'with --on-error=skip it is left out' 1 import --on-error=skip "$work/bad"
is 'and the rest is there' "$(paths)" /ok

long=$(printf 'n%.0s' {1..255})
printf '%s\n' "$long" >"$work/long"
ok '255 bytes a name' import "$work/long"
is 'are kept' "$(paths)" "/$long"
printf '%sn\n' "$long" >"$work/long"
fails_with '256 are not' '255' import "$work/long"

# Every byte but NUL and /, invalid UTF-8 too.
for ((i = 1; i < 256; i++)); do
	((i == 47)) || printf 'x%by\0' "\\x$(printf %02x "$i")"
done >"$work/bytes"
ok 'any byte' import -0 "$work/bytes"
primefs export --format=paths -0 "$store" | tr -d / | LC_ALL=C sort -z >"$work/back"
LC_ALL=C sort -z "$work/bytes" >"$work/wanted"
ok 'comes out again' cmp "$work/wanted" "$work/back"

# Columns: a type is inferred only if every value prints back byte for byte.
printf '%s\t%s\t%s\t%s\t%s\n' /a 12 1.5 007 x /b -3 2.25 010 '' /c 0 1e300 12 z >"$work/table"
ok 'columns' import --columns=n,r,code,t "$work/table"
primefs export --format=csv "$store" >"$work/out.csv"
for value in 12 -3 1.5 2.25 007 010; do
	ok "the value $value comes out as it went in" grep -qE "(^|,)\"?$value\"?(,|\$)" "$work/out.csv"
done
printf '/a\tx\n' >"$work/table"
fails_with 'a value that is not of the declared type' '1' import --columns=n:int "$work/table"
printf 'a\t1\na/b\t2\n' >"$work/table"
ok "a path that is another's prefix" import --columns=n "$work/table"
is 'becomes a directory' "$(paths | xargs)" '/a /a/b'
ok 'that keeps its attributes' grep -qE '/a"?,.*\b1\b' <(primefs export --format=csv "$store")

ok 'standard input' import - <"$work/list"
: >"$work/nothing"
ok 'nothing at all' import "$work/nothing"
is 'is a root' "$(nodes)" 1
printf 'no newline at the end' >"$work/list"
ok 'no newline at the end' import "$work/list"
is 'is no obstacle' "$(paths)" '/no newline at the end'
printf '.query\n' >"$work/list"
ok '.query is stored' import "$work/list"
is 'under another name' "$(paths)" /.query~

printf 'one\n' >"$work/list"
import "$work/list" >/dev/null
fails_with 'an existing store is not overwritten' 'store\.pfs' primefs import "$work/list" "$store"
printf 'two/three\n' >"$work/list"
ok '--at adds to it' primefs import --at=/deep/er --format=paths "$work/list" "$store"
is 'below there' "$(paths | xargs)" '/deep /deep/er /deep/er/two /deep/er/two/three /one'
check_store
fails_with '--at below a file' '/one' primefs import --at=/one --format=paths "$work/list" "$store"
is 'changes nothing' "$(paths | wc -l)" 5

# A large one that is interrupted leaves nothing.
rm "$store"
seq 1 3000000 | sed 's,.*,d&/e&/f&,' >"$work/large"
env --default-signal=INT primefs import --format=paths "$work/large" "$store" >/dev/null 2>&1 &
import=$!
sleep 0.7
if kill -INT "$import" 2>/dev/null; then
	wait "$import" && status=0 || status=$?
	not_ok 'interrupted, it fails' test "$status" -eq 0
	is 'and leaves no half store' "$(find "$work" -name '*.pfs*')" ''
else
	skip 'import was faster than the interruption'
fi
rm -f "$store"
primefs import --format=paths "$work/large" "$store" >/dev/null 2>&1 &
import=$!
sleep 0.7
kill -KILL "$import" 2>/dev/null || true
wait "$import" 2>/dev/null || true
[[ ! -e $store ]] || check_store "$store"
rm -f "$store"
head -n 1000 "$work/large" >"$work/list"
ok 'killed, it is not in the way of the next one' import "$work/list"
