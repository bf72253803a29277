#!/bin/bash
# SPDX-License-Identifier: MIT
# -o query_others: users other than the one who mounted learn nothing of directories that are closed
# to them, whichever way they ask.
# shellcheck disable=SC2002,SC2010,SC2012 # listings and pipes are tested
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse root setpriv getfattr setfattr
reachable_programs

user=4711 group=4712
as_user() { setpriv --reuid $user --regid $user --clear-groups --inh-caps=-all -- "$@"; }
as_member() { setpriv --reuid $user --regid $user --groups 17,$group --inh-caps=-all -- "$@"; }

# make_tree DIR WHAT: all of it, or `seen`: what $user sees, and no more.
make_tree() {
	mkdir -p "$1"/{open/sub,closed,group,drop,mine/own}
	head -c 100 /dev/zero >"$1/open/a.txt"
	head -c 70000 /dev/zero >"$1/open/sub/b.c"
	ln -s ../../closed/deep "$1/open/sub/link"
	head -c 300 /dev/zero >"$1/mine/own/m.txt"
	if [[ $2 != seen ]]; then
		mkdir -p "$1"/closed/deep/deeper "$1/drop/pub"
		ln "$1/open/a.txt" "$1/closed/a3.txt"
		head -c 1000000 /dev/zero >"$1/closed/xyzzy.sec"
		head -c 5000000 /dev/zero >"$1/closed/deep/b.c"
		touch "$1/closed/deep/deeper/"{a,b,c,d,e,f}.txt "$1/closed/a.txt"
		echo secret >"$1/group/g.sec"
		echo dropped >"$1/drop/pub/p.drp"
	fi
	chown $user "$1/mine" "$1/mine/own" && chmod 700 "$1/mine"
	chown 0:$group "$1/group" && chmod 750 "$1/group"
	chmod 700 "$1/closed"
	chmod 711 "$1/drop"
	find "$1" -exec touch -h -d '2024-05-06 UTC' {} +
	[[ $2 == seen ]] || touch -d '2031-01-01 UTC' "$1/closed/deep/b.c"
	find "$1" -type d -exec touch -d '2024-05-06 UTC' {} +
}
umask 022
make_tree tree all
make_tree shown seen
primefs import tree "$store" >/dev/null
primefs import shown twin.pfs >/dev/null
mkdir twin
primefs mount twin.pfs "$work/twin" -o allow_other,query_others

# ---- without the option ----
mount_store
fails_with 'without the option: nobody else' 'Permission denied' as_user cat "$mnt/.query/paths"
fails_with 'nothing is found' 'Permission denied' as_user ls "$mnt/.query/where"
fails_with 'no totals' 'Permission denied' as_user getfattr -n user.primefs.subtree_size "$mnt"
remount_store -o query_others
q=$mnt/.query

# ---- as over a tree that has nothing but what is seen ----
# same DESCRIPTION FILE...: each reads the same in the twin.
same() {
	local file wrong=0
	for file in "${@:2}"; do
		as_user cat "$mnt/$file" >got 2>&1 || true
		as_user cat "$work/twin/$file" 2>&1 | sed "s|$work/twin|$mnt|" >wanted || true
		cmp -s got wanted || {
			wrong=1
			echo "        $file:"
			diff got wanted | head -n 8
		}
	done
	is "$1" "$wrong" 0
}
# Answers that have no numbers of nodes, which differ in the twin.
look_twice() { # DESCRIPTION FILE...: before and after root has looked, who sees everything
	local file
	same "$@"
	for file in "${@:2}"; do cat "$mnt/$file" >/dev/null 2>&1 || true; done
	same "$1, after root has looked" "${@:2}"
}
s=.query/sql
look_twice paths .query/paths closed/.query/paths open/.query/paths drop/.query/paths group/.query/paths mine/.query/paths
look_twice treemap .query/treemap.svg open/.query/treemap.svg
look_twice 'counts and sums' \
	"$s/SELECT count(*), sum(size * (type <> 'd')), max(size), max(mtime), max(depth) FROM nodes" \
	"$s/SELECT type, count(*), sum(size * (type <> 'd')) FROM nodes GROUP BY 1 ORDER BY 1.json" \
	"$s/SELECT ext, count(*), sum(size * (type <> 'd')) FROM nodes GROUP BY 1 ORDER BY 1.csv" \
	"$s/SELECT path_of(common_ancestor(ino)) FROM nodes WHERE name = 'b.c'"
look_twice totals \
	"$s/SELECT path, subtree_count, subtree_size, subtree_mtime FROM nodes ORDER BY path" \
	"$s/SELECT name, subtree_count, subtree_size FROM nodes WHERE depth = 1 ORDER BY subtree_size, 1"
look_twice 'conditions on totals' \
	"$s/SELECT path FROM nodes WHERE subtree_size > 1000000 ORDER BY path" \
	"$s/SELECT path FROM nodes WHERE subtree_count = 1 ORDER BY path" \
	"$s/SELECT path FROM nodes WHERE subtree_mtime > '2030-01-01' ORDER BY path" \
	"$s/SELECT path FROM nodes WHERE subtree_count BETWEEN 2 AND 5 ORDER BY path" \
	".query/where/subtree_size.gt/1M/@paths" ".query/where/subtree_count/1/@count"
look_twice 'names of one file' \
	"$s/SELECT path, links FROM nodes WHERE type = 'f' ORDER BY links DESC, path" \
	"$s/SELECT path, link IS NULL AS alone FROM nodes WHERE type = 'f' ORDER BY path" \
	"$s/SELECT path FROM nodes WHERE link IS NOT NULL ORDER BY path" \
	"$s/SELECT path FROM nodes WHERE links > 1 AND type = 'f' ORDER BY path" \
	"$s/SELECT links, count(*) FROM nodes WHERE type = 'f' GROUP BY 1" .query/where/type/f/links/2/@paths
is 'of which root sees another' "$(cat "$mnt/$s/SELECT links FROM nodes WHERE path GLOB '?open?a.txt'" | tail -n 1)" 2
look_twice facets \
	.query/where/type/f/@count .query/where/ext/c/@paths .query/where/ext/sec/@count \
	.query/where/name/xyzzy.sec/@paths .query/where/under/closed/@paths .query/where/under/open/@count \
	.query/where/under/closed/under/deep/@count .query/where/under/nothing/@count \
	.query/where/size.gt/100K/@count .query/where/mtime.gt/2030-01-01/@count .query/where/ext/@more-5
for dir in . ext name type/f/size depth under type/f/ext ext/sec/name under/closed/name mtime subtree_size; do
	is "ls where/$dir" "$(as_user ls "$q/where/$dir" | tr '\n' ' ')" \
		"$(as_user ls "$work/twin/.query/where/$dir" | tr '\n' ' ')"
	ls "$q/where/$dir" >/dev/null
	is "ls where/$dir, after root's" "$(as_user ls "$q/where/$dir" | tr '\n' ' ')" \
		"$(as_user ls "$work/twin/.query/where/$dir" | tr '\n' ' ')"
done
ls "$q/where/name/b.c/@nodes" >/dev/null
is 'links: a name that root sees twice is there once' "$(as_user ls "$q/where/name/b.c/@nodes")" b.c
is 'and leads there' "$(as_user readlink "$q/where/name/b.c/@nodes/b.c")" ../../../../../open/sub/b.c
hidden=$(stat -c %i "$mnt/closed/deep/b.c")
ok 'root has a link to a hidden one' readlink "$q/where/name/b.c/@nodes/b.c~$hidden"
not_ok 'which others cannot name' as_user readlink "$q/where/name/b.c/@nodes/b.c~$hidden"
ok 'root enters a facet of a hidden directory' ls "$q/where/under/closed/under/deep/under/deeper"
fails_with 'which others do not find' 'No such file' as_user ls "$q/where/under/closed/under/deep"

# ---- arguments ----
sql() { as_user cat "$mnt/.query/sql/$1" 2>&1 | tail -n +2; }
run() { # STATEMENT: longer ones, as $user
	# shellcheck disable=SC2016 # expanded by the shell that runs as the user
	as_user bash -c 'exec 3<>"$0/.query/run" && printf %s "$1" >&3 && tail -n +2 <&3' "$mnt" "$1" 2>&1
}
is 'a path that is hidden has no number' "$(run "SELECT ino_of('/closed/xyzzy.sec') IS NULL, ino_of('/closed/none') IS NULL")" "$(printf '1\t1')"
is 'nor one that leads over it' "$(run "SELECT ino_of('/closed/deep/..') IS NULL, ino_of('/closed/deep/../..') IS NULL")" "$(printf '1\t1')"
is 'a hidden number has no path' "$(run "SELECT path_of($hidden) IS NULL, under($hidden, '/') IS NULL, common_ancestor($hidden, 2) IS NULL")" "$(printf '1\t1\t1')"
is 'nothing is under it' "$(run "SELECT count(*) FROM nodes WHERE under(ino, '/closed/deep')")" 0
is 'nor above it' "$(run "SELECT count(*) FROM nodes WHERE ancestor_of(ino, '/closed/deep/b.c') OR ancestor_of(ino, $hidden)")" 0
is 'nor its parent' "$(run "SELECT count(*) FROM nodes WHERE parent = ino_of('/closed') OR parent = $(stat -c %i "$mnt/closed/deep")")" 0
is 'it is no row' "$(run "SELECT count(*) FROM nodes WHERE ino = $hidden OR rowid = $hidden OR path = '/closed/deep/b.c'")" 0
is 'the closed one itself is' "$(run "SELECT path, subtree_count, subtree_size FROM nodes WHERE name = 'closed'")" "$(printf '/closed\t1\t0')"
is 'what one may search and not read has nothing below it' "$(run "SELECT count(*) FROM nodes WHERE under(ino, '/drop')")" 1
fails_with 'nor do questions from inside it' 'Permission denied' as_user cat "$mnt/drop/pub/.query/paths"
ok 'as error says' bash -c "grep -q 'read and search only' <(setpriv --reuid $user --regid $user --clear-groups cat '$q/error')"
is 'one may use it otherwise' "$(as_user cat "$mnt/drop/pub/p.drp")" dropped

# ---- groups ----
is 'a group that one is in opens a directory' "$(as_member cat "$q/where/ext/sec/@paths")" /group/g.sec
is 'also as the last of many' "$(setpriv --reuid $user --regid $user --groups "$(seq -s , 5000 5080),$group" --inh-caps=-all -- cat "$q/where/ext/sec/@paths")" /group/g.sec
is 'and to nobody else' "$(as_user cat "$q/where/ext/sec/@paths")" ''
python "a thread has its process' groups" -c '
import os, sys, threading
os.setgroups([17, int(sys.argv[3])]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
answers = []
thread = threading.Thread(target=lambda: answers.append(open(sys.argv[1]).read()))
thread.start()
thread.join()
assert answers == ["/group/g.sec\n"], answers' "$q/where/ext/sec/@paths" $user $group
is 'facets, too' "$(as_member cat "$q/where/ext/sec/name/@values" | tail -n +2 | cut -f 1) $(as_user cat "$q/where/ext/sec/name/@values" 2>&1 | tail -n +2)" 'g.sec '
is 'its totals' "$(as_member getfattr --absolute-names --only-values -n user.primefs.subtree_size "$mnt/group") $(as_user getfattr --absolute-names --only-values -n user.primefs.subtree_size "$mnt")" "7 $(run "SELECT subtree_size FROM nodes WHERE path = '/'")"
is 'nobody but the owner enters' "$(as_user cat "$q/where/name/m.txt/@paths") $(as "$nobody" cat "$q/where/name/m.txt/@paths")" '/mine/own/m.txt '

# ---- totals as attributes ----
for name in count size blocks mtime; do
	is "subtree_$name counts what is seen" \
		"$(as_user getfattr --only-values -n "user.primefs.subtree_$name" "$mnt" 2>&1)" \
		"$(getfattr --only-values -n "user.primefs.subtree_$name" "$work/twin" 2>&1)"
	is "subtree_$name of what is closed cannot be asked" \
		"$(as_user getfattr --only-values -n "user.primefs.subtree_$name" "$mnt/closed" 2>&1 | grep -c 'Permission denied')" 1
	fails_with "subtree_$name past an unreadable directory" 'Permission denied' \
		as_user getfattr --only-values -n "user.primefs.subtree_$name" "$mnt/drop/pub"
done
is 'root sees all' "$(getfattr --only-values -n user.primefs.subtree_count "$mnt")" "$(find "$mnt" | wc -l)"

# ---- names of attributes ----
setfattr -n user.codename -v zyx "$mnt/closed/xyzzy.sec"
setfattr -n user.shown -v yes "$mnt/open/a.txt"
setfattr -n user.barred -v no "$mnt/group"
is 'a column for what is seen' "$(as_user ls "$q/where" | grep -cxE 'shown|codename|barred')" 1
is 'root has all' "$(ls "$q/where" | grep -cxE 'shown|codename|barred')" 3
is 'in nodes.schema' "$(as_user grep -cE '^(shown|codename|barred)' "$q/tables/nodes.schema")" 1
is 'in rows' "$(as_user head -n 1 "$q/sql/SELECT * FROM nodes" | grep -oE 'codename|shown|barred')" shown
fails_with 'a hidden one is none' 'Invalid argument' as_user cat "$q/sql/SELECT codename FROM nodes"
is 'as any other that is not there' "$(as_user cat "$q/error" | head -n 1)" \
	"no such column: codename; a text is written 'codename'; \`PRAGMA table_info(nodes)\` lists the columns"
is 'a member has one more' "$(as_member ls "$q/where" | grep -cxE 'shown|codename|barred')" 2

# ---- saved queries, stats, errors: each his own ----
mkdir "$q/all"
echo 'SELECT path, size FROM nodes WHERE type <> '\''d'\'' ORDER BY path' >"$q/all/sql"
cat "$q/all/result.tsv" >/dev/null
ls "$q/all/nodes" >/dev/null
is 'a saved query answers what is seen' "$(as_user cat "$q/all/paths" | tr '\n' ' ')" \
	'/mine/own/m.txt /open/a.txt /open/sub/b.c /open/sub/link '
is 'its links' "$(as_user ls "$q/all/nodes" | tr '\n' ' ')" 'a.txt b.c link m.txt '
ok 'its plan has no estimate' bash -c "! setpriv --reuid $user --regid $user --clear-groups cat '$q/all/plan' | grep -q estimated"
ok "root's has one" grep -q estimated "$q/all/plan"
fails_with 'EXPLAIN, which shows addresses' 'Permission denied' as_user cat "$q/sql/EXPLAIN SELECT path FROM nodes"
is 'as_of tells no epoch, and of the directory when it was compared' \
	"$(as_user cat "$q/all/result.tsv" >/dev/null && as_user cut -d ' ' -f 1 "$q/all/as_of" | tr '\n' ' ')" 'time compared '
fails_with 'others make none' 'Permission denied' as_user mkdir "$q/theirs"
fails_with 'nor change one' 'Permission denied' as_user bash -c "echo x >'$q/all/sql'"
fails_with 'nor remove one' 'Permission denied' as_user rmdir "$q/all"
not_ok 'root errs' cat "$q/sql/SELECT xyzzy FROM nodes WHERE name = 'closed.sec'"
is 'which is nobody else'\''s error' "$(as_user cat "$q/error" | grep -c xyzzy)" 0
is 'stats: nodes and bytes that are seen' "$(as_user cat "$q/stats" | grep -oE '"(nodes|bytes)": [0-9]*' | tr '\n' ' ')" \
	"$(printf '"nodes": %s "bytes": %s ' "$(run 'SELECT count(*) FROM nodes')" "$(run "SELECT sum(size) FROM nodes WHERE type <> 'd'")")"
is 'and nothing of the store' "$(as_user grep -cE 'store|operations|epoch' "$q/stats")" 0

# ---- sizes, and what the kernel keeps ----
statement='SELECT path FROM nodes ORDER BY path'
exec 3<"$q/sql/$statement"
is 'an open file has its size for who opened it' "$(stat -Lc %s /proc/self/fd/3)" "$(cat "$q/sql/$statement" | wc -c)"
is 'and for nobody else' "$(as_user stat -c %s "$q/sql/$statement")" 0
as_user bash -c "exec 4<'$q/sql/$statement'; stat -Lc %s /proc/self/fd/4; cat <&4 | wc -c" >sizes
is 'each his own' "$(sort -u sizes | wc -l) $(stat -Lc %s /proc/self/fd/3)" "1 $(cat "$q/sql/$statement" | wc -c)"
ok 'which differ' test "$(head -n 1 sizes)" -lt "$(stat -Lc %s /proc/self/fd/3)"
exec 3<&-

# ---- statements that change ----
for statement in "DELETE FROM nodes WHERE path = '/mine/own/m.txt'" "UPDATE nodes SET mode = 511" \
	"INSERT INTO nodes(path) VALUES ('/mine/n')" 'CREATE TABLE t(a)' 'DROP TABLE t'; do
	ok "refused: ${statement%% *}" bash -c "! setpriv --reuid $user --regid $user --clear-groups bash -c 'exec 3<>\"\$0\" && printf %s \"\$1\" >&3' '$q/run' \"$statement\" 2>/dev/null"
	[[ $statement == DROP* ]] || is 'and says who may' "$(as_user cat "$q/error" | grep -c 'only root and the user who mounted')" 1
done
is 'nothing has changed' "$(stat -c %a "$mnt/mine" "$mnt/mine/own/m.txt" | tr '\n' ' ')$(ls "$mnt/mine")" '700 644 own'
exec 3<>"$q/run"
fails_with 'who is given a descriptor asks nothing with it' 'Permission denied' as_user bash -c 'echo "SELECT 1" >&3'
exec 3<&-
echo 'a,b' >"$q/tables/t.csv"
is 'side tables are for all to read' "$(as_user cat "$q/tables/t.csv" | tr -d '\r')" a,b
fails_with 'and the owner'\''s to change' 'Permission denied' as_user bash -c "echo x >'$q/tables/t.csv'"
fails_with 'to make' 'Permission denied' as_user bash -c "echo x >'$q/tables/u.csv'"
fails_with 'and to drop' 'Permission denied' as_user rm -f "$q/tables/t.csv"
exec 3<>"$q/run"
echo "INSERT INTO nodes(path) VALUES ('/closed/new')" >&3
exec 3<&-
is 'nor do counts of changes' "$(run 'SELECT last_insert_rowid(), changes(), total_changes()')" "$(printf '0\t0\t0')"

# ---- the commands: as find, du and ls of that user ----
alike() { # COMMAND [ARGUMENT]...: prints the same as GNU's, errors apart
	{ as_user primefs "$@" 2>/dev/null || true; } | LC_ALL=C sort >got
	{ as_user "$@" 2>/dev/null || true; } | LC_ALL=C sort >wanted
	ok "$*, as that user's own" diff got wanted
}
for dir in "$mnt" "$mnt/open" "$mnt/mine"; do
	alike find "$dir"
	alike find "$dir" -size +1 -ls
	alike du -a "$dir"
	alike du -s "$dir"
	alike ls -l "$dir"
done
alike ls -lR "$mnt/open" "$mnt/mine"
alike find "$mnt" -name '*.sec'
is 'primefs query, too' "$(as_user primefs query "$mnt" 'SELECT count(*) FROM nodes' | tail -n 1)" "$(run 'SELECT count(*) FROM nodes')"
fails_with 'with its errors' 'no such column: nope' as_user primefs query "$mnt" 'SELECT nope FROM nodes'
fails_with 'in one format' 'say --tsv' as_user primefs query --json "$mnt" 'SELECT 1'
fails_with 'nothing else is asked of the daemon' 'does not answer' as_user primefs tree "$mnt" count /
alike find "$mnt" -newermt 2030-01-01

# ---- how much others may have open ----
# shellcheck disable=SC2016 # expanded by the shell that runs as the user
as_other() { setpriv --reuid 4799 --regid 4799 --clear-groups --inh-caps=-all -- "$@"; }
# shellcheck disable=SC2016 # the other shell expands it
open_many() { "$@" bash -c 'ulimit -n 2000; for ((i = 0; i < 1100; i++)); do exec {fd}<"$0" || break; done; echo $i' "$q/help" 2>/dev/null; }
is 'a share of a thousand and some files' "$(open_many as_user)" 512
is 'which are given back' "$(open_many as_user)" 512
mkfifo go
# shellcheck disable=SC2016
as_user bash -c 'ulimit -n 2000; while exec {fd}<"$0"; do :; done; echo full; read -r _' "$q/help" <>go >held 2>/dev/null &
holder=$!
holds() { [[ $(cat held) == full ]]; }
ok 'one user has all that he may' wait_for 20 holds
is 'others open files all the same' "$(open_many as_other)" 256
echo >go
wait "$holder" || true
ok 'and not to the detriment of root' cat "$q/help"

# ---- rights that change ----
before=$(run 'SELECT count(*) FROM nodes')
chmod 755 "$mnt/closed"
ok 'opened: more is seen at once' test "$(run 'SELECT count(*) FROM nodes')" -gt "$before"
is 'names of attributes, too' "$(as_user ls "$q/where" | grep -cxE 'shown|codename|barred')" 2
chmod 700 "$mnt/closed"
is 'closed: as before' "$(run 'SELECT count(*) FROM nodes')" "$before"
mv "$mnt/open/sub" "$mnt/closed/sub"
is 'moved away' "$(run "SELECT count(*) FROM nodes WHERE name = 'b.c'")" 0
mv "$mnt/closed/sub" "$mnt/open/sub"
is 'and back' "$(run "SELECT path FROM nodes WHERE name = 'b.c'")" /open/sub/b.c

unmount_store
umount "$work/twin"
check_store
