#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs resolve: the prime of each path, in order; as stat, from the store and through its daemon.
. "$(dirname "$0")/../lib.sh"

mkdir -p tree/a/b/c 'tree/odd name' $'tree/new\nline' tree/empty
: >tree/a/b/c/x
: >$'tree/odd name/tab\there'
: >$'tree/new\nline/y\n'
: >$'tree/a/broken\xff'
ln -s b tree/a/link
for i in {1..300}; do : >"tree/a/b/f$i"; done
primefs import --content=none tree "$store" >/dev/null
all() { primefs tree -0 --ino "$store" subtree /; }
resolve() { primefs resolve "$@" || true; }

# ---- every path ----
is 'every path, in order' "$(all | cut -z -f2- | primefs resolve -0 "$store" | od -c)" "$(all | od -c)"
is 'in any order' "$(all | cut -z -f2- | LC_ALL=C sort -zr | primefs resolve -0 "$store" | LC_ALL=C sort -z | od -c)" \
	"$(all | LC_ALL=C sort -z | od -c)"
is 'by lines' "$(primefs tree --ino "$store" subtree /a | cut -f2- | primefs resolve "$store")" \
	"$(primefs tree --ino "$store" subtree /a)"
exits 'all are there' 0 primefs resolve "$store" < <(echo /a)

# ---- what is missing, and what is odd ----
prime() { primefs tree --ino "$store" children "$1" | sed -n "s|\t$2\$||p"; }
a=$(primefs tree --ino "$store" subtree / | sed -n 's|\t/a$||p')
x=$(prime /a/b/c /a/b/c/x)
link=$(prime /a /a/link)
is 'what there is and what not' "$(printf '%s\n' /nope /a a /a/ //a/./b/../ / '' /a/b/c/x/ /a/b/c/x/.. /.. /a/link /a/link/c | resolve "$store")" \
	"$(printf '%s\t%s\n' - /nope "$a" /a "$a" a "$a" /a/ "$a" //a/./b/../ 2 / - '' - /a/b/c/x/ - /a/b/c/x/.. 2 /.. "$link" /a/link - /a/link/c)"
exits 'one is missing' 1 primefs resolve "$store" < <(printf '/a\n/nope\n/a\n')
exits 'the first of many' 1 primefs resolve "$store" < <(echo /nope && primefs tree "$store" subtree /a)
is 'the last line without its newline' "$(printf '/a\n/a/b/c/x' | primefs resolve "$store")" \
	"$(printf '%s\t/a\n%s\t/a/b/c/x' "$a" "$x")"
is 'an empty path with -0' "$(printf '\0/a\0' | resolve -0 "$store" | tr '\0' ,)" "$(printf -- '-\t,%s\t/a,' "$a")"
is 'a NUL in a line' "$(printf '/a\0b\n/a\n' | resolve "$store" | tr '\0' @)" "$(printf -- '-\t/a@b\n%s\t/a' "$a")"
is 'nothing' "$(primefs resolve "$store" </dev/null)" ''
is 'a name that is too long' "$(printf '/%0300d\n' 7 | resolve "$store" | cut -f1)" -
is 'a path that is longer than others may be' "$( (for ((i = 0; i < 5000; i++)); do printf '/a/..'; done && echo /a) |
	primefs resolve "$store" | cut -f1)" "$a"
fails_with 'a path without an end' 'standard input: a path has more than 4194304 bytes; give one a line' \
	primefs resolve "$store" < <(head -c 5000000 /dev/zero | tr '\0' x)
is 'what came before it is answered' "$( (echo /a && head -c 5000000 /dev/zero | tr '\0' x) |
	primefs resolve "$store" 2>/dev/null || true)" "$(printf '%s\t/a' "$a")"

# ---- JSON ----
printf '/a\n/nope\n' | resolve --json "$store" >some.json
is 'JSON' "$(tr -d ' \n' <some.json)" "[{\"ino\":$a,\"path\":\"/a\"},{\"path\":\"/nope\"}]"
is 'JSON of nothing' "$(primefs resolve --json "$store" </dev/null | tr -d ' \n')" '[]'

# ---- large, and slow ----
lines() { head -c "$1" /dev/zero | tr '\0' '\n'; }
for n in 1 131072 131073 393215 393216 393217 1048577; do # as many as are found at once, and about a batch
	is "$n lines of 0 bytes" "$(lines "$n" | resolve "$store" | LC_ALL=C sort | uniq -c | tr -d ' \t')" "$n-"
done
primefs tree "$store" subtree /a >some
for _ in {1..400}; do cat some; done >many
is 'more than a batch' "$(primefs resolve "$store" <many | cut -f2- | cksum)" "$(cksum <many)"
is 'all of them right' "$(primefs resolve "$store" <many | LC_ALL=C sort -u)" \
	"$(primefs tree --ino "$store" subtree /a | LC_ALL=C sort -u)"
is 'lines without a path' "$(yes '' | head -n 300000 | resolve "$store" | LC_ALL=C sort | uniq -c | tr -d ' \t')" 300000-
primefs resolve "$store" <many >answers
ok 'from a pipe as from a file' bash -c "cat many | primefs resolve '$store' | cmp - answers"
{ echo before && cat answers; } >wanted
{ echo before && primefs resolve "$store"; } <many >after
ok 'where the output is' cmp wanted after
echo before >appended
primefs resolve "$store" <many >>appended
ok 'at the end of the output' cmp wanted appended
lines=$(($(wc -l <many) / 3))
head -c "$(head -n $lines many | wc -c)" many >third
ok 'from where the input is' bash -c "(dd bs=$(stat -c %s third) count=1 of=copied status=none; primefs resolve '$store') <many |
	cmp - <(tail -n +$((lines + 1)) answers) && cmp third copied"
is 'the input is where it ends' "$( (primefs resolve "$store" >before && cat && echo line >>many && cat) <many)" line
ok 'all of it was answered' cmp before answers
mkfifo in out
primefs resolve "$store" <in >out &
exec 5>in 6<out
for path in /a /nope /a/b/c/x; do
	echo "$path" >&5
	read -r -t 60 line <&6
	is 'a line is answered before the next is written' "${line#*$'\t'}" "$path"
done
exec 5>&- 6<&-
wait || true
# unread COMMAND...: its status once nobody reads what it prints, and how many lines of errors it has printed.
unread() {
	: >status
	{ timeout 60 "$@" 2>err || echo $? >status; } | head -n 1 >/dev/null
	echo "$(cat status) $(wc -l <err)"
}
for option in -- --json; do
	is "whoever stops reading ends it without a word, $option" \
		"$(unread primefs resolve $option "$store" < <(yes /a))" '141 0'
	is "where SIGPIPE is ignored it says so, $option" \
		"$(trap '' PIPE && unread primefs resolve $option "$store" < <(yes /a 2>/dev/null))" '3 1'
done

# ---- errors ----
exits 'without a store' 2 primefs resolve
exits 'with a path as an operand' 2 primefs resolve "$store" /a
exits 'no such store' 3 primefs resolve none.pfs </dev/null
same='standard input is the file of standard output; write the answers to another one'
cp many both
for mode in '>>' '1<>'; do
	for option in -- --json; do
		fails_with "answers written to the file that is read, $mode $option" "$same" \
			bash -c "ulimit -f 100000; primefs resolve $option '$store' <both $mode both"
		ok "it is left as it was, $mode $option" cmp many both
	done
done
ln both other
fails_with 'by another name' "$same" bash -c "primefs resolve '$store' <both 1<>other"
: >nothing
ok 'unless it is empty' bash -c "primefs resolve '$store' <nothing >>nothing"
ok 'or at its end' bash -c "{ cat >/dev/null && primefs resolve '$store'; } <both >>both"
ok 'which leaves it as it was' cmp many both
fails_with 'unreadable input' 'standard input: Is a directory' primefs resolve "$store" </
if [[ -e /dev/full ]]; then
	for option in -- --json; do
		exits "output that does not get out, $option" 3 bash -c "primefs resolve $option '$store' <many >/dev/full"
		ok "one sentence, $option" bash -c "! primefs resolve $option '$store' <many >/dev/full 2>err && [[ \$(wc -l <err) == 1 ]]"
	done
fi
exec 7<"$store"
flock 7
fails_with 'a store in use' 'in use by .*; wait for it' primefs resolve "$store" </dev/null
exits 'that is a failure' 3 primefs resolve "$store" </dev/null
ok 'one sentence of it' bash -c "! primefs resolve '$store' </dev/null 2>err && [[ \$(wc -l <err) == 1 ]]"
exec 7<&-
if [[ $EUID != 0 ]] || as "$nobody" test -x "$PFS_BUILD/primefs"; then
	cp "$store" unreadable
	chmod 0 unreadable
	other() { if [[ $EUID == 0 ]]; then as "$nobody" "$@"; else "$@"; fi; }
	fails_with 'an unreadable store' 'Permission denied; check its permissions' other primefs resolve unreadable </dev/null
	exits 'that is a failure, too' 3 other primefs resolve unreadable </dev/null
	is 'one sentence of that' "$(other primefs resolve unreadable </dev/null 2>&1 | wc -l)" 1
else
	skip 'an unreadable store: the program can be run by root alone'
fi
ok 'not a store' bash -c "! primefs resolve some <some 2>err && [[ \$(wc -l <err) == 1 ]]"

# ---- through the daemon ----
if has_fuse; then
	mount_store
	find "$mnt" -printf '%i\t/%P\0' | LC_ALL=C sort -z >wanted
	is 'as stat, by the store' "$(cut -z -f2- wanted | primefs resolve -0 "$store" | od -c)" "$(od -c wanted)"
	mv "$mnt/a/b" "$mnt/odd name/b"
	touch "$mnt/new"
	find "$mnt" -printf '%i\t/%P\0' | LC_ALL=C sort -z >wanted
	is 'after changes, by the mountpoint' "$(cut -z -f2- wanted | primefs resolve -0 "$mnt" | od -c)" "$(od -c wanted)"
	is 'odd lines, by the daemon' "$(printf '/new\0\n\n\0\n/new\n//new' | resolve "$mnt" | tr '\0' @)" \
		"$(printf -- '-\t/new@\n-\t\n-\t@\n%s\t/new\n%s\t//new' "$(stat -c %i "$mnt/new")" "$(stat -c %i "$mnt/new")")"
	exits 'what was moved away' 1 primefs resolve "$mnt" < <(echo /a/b)
	cat many many many many many >longer # than a request has
	is 'many' "$(primefs resolve "$mnt" <longer 2>&1 | cut -f2- | cksum)" "$(cksum <longer)"
	unmount_store
fi

# ---- its benchmark ----
TMPDIR=$work primefs-bench resolve --nodes=20 >figures
rate=$(grep -A 1 '^random paths, primefs resolve from a file' figures | sed -n 's/^ *\([0-9.]*\) M\/s .*/\1/p')
ok "few paths are not found in no time: ${rate:=none} M/s" awk -v rate="$rate" 'BEGIN { exit !(rate > 0 && rate < 1000) }'
