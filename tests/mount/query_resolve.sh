#!/bin/bash
# SPDX-License-Identifier: MIT
# .query/resolve: paths are written, primes are read; and resolve() and node_of_code() in statements.
# shellcheck disable=SC2016 # other shells expand what is quoted
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/b tree/c/sub 'tree/odd name'
for i in {1..50}; do : >"tree/a/b/f$i"; done
: >$'tree/odd name/tab\there'
: >tree/c/sub/z
primefs import --content=none tree "$store" >/dev/null
mount_store
q=$mnt/.query
# ask [DIR]: what standard input's paths are, by one descriptor.
ask() {
	exec 4<>"$mnt${1:-}/.query/resolve"
	cat >&4
	cat <&4
	exec 4>&-
}
ino() { stat -c %i "$mnt$1"; }

find "$mnt" -printf '/%P\n' >all
find "$mnt" -printf '%i\n' >primes
is 'every path, as stat' "$(ask <all)" "$(cat primes)"
is 'missing ones, in their places' "$(printf '/nope\n/a\n\n/a/\n/a/b/f1/\n' | ask)" "$(printf -- '-\n%s\n-\n%s\n-' "$(ino /a)" "$(ino /a)")"
is 'a last line without its newline' "$(printf '/a\n/c' | ask)" "$(printf '%s\n%s' "$(ino /a)" "$(ino /c)")"
is 'relative to where .query is' "$(printf 'b\n.\n/\nb/f1' | ask /a)" "$(printf '%s\n%s\n2\n%s' "$(ino /a/b)" "$(ino /a)" "$(ino /a/b/f1)")"
is 'nothing written, nothing read' "$(ask </dev/null)" ''

# ---- writes that go on, and writes after reads ----
exec 4<>"$q/resolve"
printf '/a\n/a/' >&4
printf 'b\n/c' >&4
is 'writes in a row are one list' "$(cat <&4)" "$(printf '%s\n%s\n%s' "$(ino /a)" "$(ino /a/b)" "$(ino /c)")"
echo /c >&4
is 'after a read it is another one' "$(cat <&4)" "$(ino /c)"
echo /a/b >&4
read -r line <&4
is 'a line at a time' "$line" "$(ino /a/b)"
exec 4>&-
for _ in {1..500}; do cat all; done >many
for _ in {1..500}; do cat primes; done >answers
is 'many' "$(ask <many | cksum)" "$(cksum <answers)"
exec 4<>"$q/resolve"
head -c 1500000 /dev/zero | tr '\0' x >long
fails_with 'a path without an end' 'name too long|Name too long' dd if=long of=/dev/fd/4 bs=1M
ok 'the reason' grep -q 'resolve: a path has more than' "$q/error"
echo /a >&4
is 'and on it goes' "$(cat <&4)" "$(ino /a)"
exec 4>&-
exec 4<>"$q/resolve" 5<>"$q/resolve"
echo /a >&4
echo /c >&5
is 'each open has its own' "$(cat <&4),$(cat <&5)" "$(ino /a),$(ino /c)"
exec 4>&- 5>&-
mv "$mnt/a" "$mnt/moved"
is 'what was moved' "$(printf '/a/b/f1\n/moved/b/f1\n' | ask)" "$(printf -- '-\n%s' "$(ino /moved/b/f1)")"
mv "$mnt/moved" "$mnt/a"
ok 'listed' grep -qx resolve <(ls "$q")

# ---- in statements ----
sql() { cat "$mnt/.query/sql/$1"; }
run() { # the statement: it may have slashes
	exec 6<>"$q/run"
	printf '%s' "$1" >&6
	tail -n +2 <&6
	exec 6>&-
}
is 'resolve(): a row for each line' "$(run "SELECT line, path, ino FROM resolve('/a' || char(10) || '/nope' || char(10) || '/c')")" \
	"$(printf '1\t/a\t%s\n2\t/nope\t\n3\t/c\t%s' "$(ino /a)" "$(ino /c)")"
is 'of every node' "$(sql 'SELECT count(*), sum(r.ino = nodes.ino), count(*) = (SELECT count(*) FROM nodes) FROM nodes JOIN resolve(nodes.path) AS r' | tail -n 1)" \
	"$(wc -l <all)"$'\t'"$(wc -l <all)"$'\t'1
is 'joined with nodes' "$(run "SELECT name, depth FROM resolve('/a/b' || char(10) || '/nope') JOIN nodes USING (ino)")" "$(printf 'b\t2')"
printf 'p\n/a/b\n/nope\n' >"$q/tables/listed.csv"
is 'a column of a side table' "$(sql 'SELECT p, r.ino IS NULL FROM listed, resolve(p) AS r ORDER BY p' | tail -n +2)" "$(printf '/a/b\t0\n/nope\t1')"
is 'of all of it at once' "$(sql 'SELECT count(r.ino) FROM (SELECT group_concat(p, char(10)) AS l FROM listed), resolve(l) AS r' | tail -n 1)" 1
is 'of nothing' "$(run 'SELECT count(*) FROM resolve(NULL)')" 0
code=$(getfattr --only-values -n user.primefs.code "$mnt/a/b/f7" 2>/dev/null || true)
if [[ $code ]]; then
	is 'node_of_code()' "$(run "SELECT node_of_code('$code'), node_of_code(2), node_of_code(4), node_of_code('x'), node_of_code(NULL)")" \
		"$(printf '%s\t2\t\t\t' "$(ino /a/b/f7)")"
	is 'through the engine, too' "$(primefs tree "$mnt" node "$code")" /a/b/f7
	is 'and again' "$(run "SELECT path FROM nodes WHERE ino = node_of_code('$code')")" /a/b/f7
fi
unmount_store

# ---- for others ----
if ((EUID == 0)) && command -v setpriv >/dev/null; then
	reachable_programs
	mount_store -o query_others
	chmod 700 "$mnt/c"
	chmod 755 "$mnt" "$mnt/a" "$mnt/a/b"
	ask_as() { as "$nobody" bash -c 'exec 4<>"$1"; cat >&4; cat <&4' - "$mnt/.query/resolve"; }
	is 'others: only what they see' "$(printf '%s\n' /a/b/f1 /c /c/sub /c/sub/z /c/sub/.. /c/nope | ask_as)" \
		"$(printf '%s\n%s\n-\n-\n-\n-' "$(ino /a/b/f1)" "$(ino /c)")"
	is 'not the nodes of codes either' "$(as "$nobody" bash -c 'exec 4<>"$1/.query/run"; printf "SELECT count(ino) FROM resolve(char(47) || %s)" "'\''c/sub'\''" >&4; tail -n 1 <&4' - "$mnt")" 0
	unmount_store
	mount_store
	not_ok 'not without query_others' ask_as </dev/null
	unmount_store
fi

# ---- a tree as people have them ----
real=/usr/include
((!PFS_LONG)) || real=/usr
if [[ -d $real ]]; then
	primefs import --content=none "$real" real.pfs >/dev/null
	store=$work/real.pfs
	mount_store
	find "$mnt" -printf '/%P\0' >all
	find "$mnt" -printf '%i\n' >primes
	is "every path of $real, as stat" "$(primefs resolve -0 "$store" <all | tr '\0' '\n' | cut -f1 | cksum)" "$(cksum <primes)"
	unmount_store
	is 'the same of the store by itself' "$(primefs resolve -0 "$store" <all | tr '\0' '\n' | cut -f1 | cksum)" "$(cksum <primes)"
fi
