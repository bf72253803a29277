#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs find prints what find(1) prints, over the expressions that people use: in a store, and in a
# mounted one.
# timeout: 400
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src"/{docs,src/lib,src/.git/objects,empty,'with space',deep/a/b/c/d/e} "$src/a-b" "$src/a/x"
printf 'hello\n' >"$src/docs/readme.md"
printf 'int main(void) { return 0; }\n' >"$src/src/main.c"
printf '#pragma once\n' >"$src/src/Main.H"
: >"$src/src/lib/empty.c"
touch "$src/a-b/f" "$src/a/x/f" "$src/a/f.c"
head -c 2049 /dev/zero >"$src/docs/two.bin"
head -c 1500000 /dev/zero >"$src/docs/big.bin"
head -c 512 /dev/zero >"$src/docs/block.bin"
touch "$src/with space/new"$'\n'"line" "$src/with space/[x]*?" "$src/with space/back\\slash"
touch "$src/with space/latin-"$'\xe9' "$src/with space/quo'te" "$src/deep/a/b/c/d/e/.hidden"
mkdir -p "$src/-lead" "$src/in"$'\xff\xfe'val "$src/émile" "$src/Émile"
touch -- "$src/-lead/-x" "$src/in"$'\xff\xfe'val/$'\xe9' "$src/émile/ß" \
	"$src/with space/"{ÀÉ.TXT,àé.txt,quo\"te,日本,50%_a} "$src/with space/del"$'\x7f' \
	"$src/with space/"$'\x01'control "$src/with space/tab"$'\t'here
ln -s main.c "$src/src/link.c" && ln -s /nowhere "$src/dangling"
mkfifo "$src/pipe"
chmod 4755 "$src/src/main.c" && chmod 600 "$src/docs/readme.md" && chmod 2775 "$src/empty"
chmod 1777 "$src/deep" && chmod 444 "$src/docs/two.bin" && chmod 000 "$src/docs/block.bin"
touch -d '3 days ago' "$src/docs/big.bin"
touch -d '1970-01-01 04:00 UTC' "$src/docs/two.bin"
touch -d '400 days ago' "$src/docs/readme.md"
touch -d '90 minutes ago' "$src/src/lib/empty.c"
touch -d '1969-07-20 20:17:40 UTC' "$src/a-b/f"
touch -d '2 days ago' "$work/reference"
touch -h -d '10 days ago' "$src/dangling"

cat >"$work/expressions" <<'END'
-name '*.c'
-name 'main.c'
-name 'm*'
-name '*ain*'
-name '*.[ch]'
-name '?ain.c'
-name '[!a-m]*'
-name '*[a-n].c'
-name '*[ai]?[.]c'
-name '*[!]a-h]n.c'
-name '*[^]i]in.c'
-name '*[]n].c'
-name '*[\]n].c'
-name 'm[[:alpha:]]in.c'
-name 'm[a[.-.]]in.c'
-name '[m'
-name '[!]*'
-name '*[!^a]in.c'
-iname '*[A-N].C'
-iname 'm[]A]?[N].c'
-name '\[x\]*'
-name '*\\*'
-name $'*\xc3*'
-name $'*\xe9'
-iname $'*\xc3*'
-name '.*'
-name '.'
-name 'src'
-name '*'
-name ''
-name '* *'
-name "*'*"
-name '*line'
-iname 'MAIN*'
-iname '*.h'
-iname 'readme.MD'
-path './src/*'
-path '*/lib/*'
-path '*b/c*'
-path './docs'
-ipath '*/SRC/*'
-wholename '*main*'
-regex '.*\.c'
-regex '.*/[a-z]*\.bin'
-regex './src.*'
-regex 'src'
-iregex '.*/MAIN\..'
-regextype posix-extended -regex '.*\.(c|md)'
-regextype posix-basic -regex '.*\.\(c\|md\)'
-regextype egrep -regex '.*(main|big).*'
-type f
-type d
-type l
-type p
-type f,d
-type d,l,p
-type s
-type b
! -type f
-size 0
-size +0
-size 1
-size -1
-size +1
-size 3
-size +2k
-size 3k
-size -3k
-size +1M
-size 2M
-size -2M
-size 2049c
-size +2048c
-size -7c
-size 1G
-size 256w
-empty
-empty -type d
-empty -type f
! -empty
-mtime 0
-mtime +1
-mtime -1
-mtime 3
-mtime +300
-mtime -4
-mtime 400
-mmin +60
-mmin -100
-mmin +80 -mmin -100
-amin -1000 -type f
-anewer ../reference
-ctime 0
-cmin -1000
-newer ../reference
! -newer ../reference
-newermt '5 days ago'
-newermt '1970-01-01 00:00:05 UTC'
-newermt '1970-01-01 05:00 UTC'
! -newermt '1970-01-02 00:00 UTC'
-newermt yesterday
-newermt '-30 days'
-newermt '1 year ago'
-newermm ../reference
-perm 600
-perm 4755
-perm -4000
-perm /6000
-perm -u+w
-perm /u+x,g+x
-perm u=rw
-perm -1000
-perm /222
-perm -444
-perm 0
! -perm -444
-user root
-user 0
-group 0
-uid 0
-uid +0
-gid -1
-nouser
-nogroup
-links 1
-links +2
-links 2 -type d
-lname '*main*'
-lname '/no*'
-ilname 'MAIN*'
-maxdepth 0
-maxdepth 1
-maxdepth 2 -type d
-mindepth 1
-mindepth 3
-mindepth 2 -maxdepth 3
-depth -name '*.c'
-true
-false
-name '*.c' -o -name '*.md'
-name '*.c' -a -size 0
-name '*.c' -size +0c
-name '*.c' -not -name 'm*'
! -name '*.c' ! -type d
\( -name '*.c' -o -name '*.bin' \) -size +0
\( -name '*.c' -o -name '*.bin' \) -a \( -size 0 -o -size +2 \)
! \( -name '*.c' -o -type d \)
-not \( -type d -and -empty \)
-name '*.c' -or -type p -and -true
-type f -print -o -type d -print
-name '*.c' -print -name 'main*' -print
-name .git -prune -o -type f -print
-name src -prune -o -print
-path './a' -prune -o -path './a-b' -prune -o -print
-type d -name docs -prune
-name 'a*' -prune
-name lib -prune -o -name '*.c'
-name '*.c' -print0
-print0
-type f -exec echo {} \;
-type f -name '*.c' -exec echo found {} {} \;
-type f -name '*.c' -exec false \; -o -name 'main.c' -print
-name main.c -quit
-name .git -o -name objects
-xdev -name '*.bin'
-iname '*.C'
-iname 'à*'
-iname 'É*'
-iname '*MILE'
-iname '*I*'
-iname 'k*'
-iname '*%_A'
-iname '[a-c]*'
! -iname 'm*'
-name '?mile'
-name '??mile'
-name '?'
-name '??'
-name '日?'
-name '[à-é]*'
-name '[[:alpha:]]*'
-name 'in*val'
-name 'in??val'
! -name 'in*val'
-name '-*'
-name 'end?'
-path '*/-lead/*'
-path '*/?mile/*'
-regex '.*/.mile'
-iregex '.*É.txt'
-type f -iname '*.txt' -o -name $'end\n'
-mindepth 2 -name 's*'
-ls
-ls -o -true
-name '*.c' -ls
-type f -size +2k -ls
-type d -ls
-type l -ls
-maxdepth 1 -ls
-mindepth 2 -maxdepth 3 -ls
-printf '%p %P|%f|%h|%H|%d|%y|%s|%k|%b|%n|%i|%l|%u %g %U %G %m %M|%S|%F\n'
-printf '%10p|%-10f|%.3P|%5.2f|%#m|%05m|%-6m|%3d|%03d|%-3d|%8s|%08s|%-8s|\n'
-type f -printf '%T@ %T+ %TY-%Tm-%Td %TH:%TM:%TS %TT %TX %Tk %Tl %Tb %Ta %Tj %Tc %Tr|%t|%c|%C@\n'
-type f -printf '\061\t\a\\%%\0\101\n'
-name '*.c' -printf '%f\n' -o -type l -printf '%l\n'
-path ./src/main.c -printf '%f\c not this'
-depth -ls
-depth -print0
-depth -mindepth 1 -maxdepth 2
-name '*a*' -print -quit
-name src -prune -o -ls
-name a -prune , -ls
-prune
-type f -exec echo {} +
-type d -exec echo a b {} +
-exec sh -c 'echo "$#"' sh {} +
END

# both EXPRESSION...: what the two print, in the same folder, sorted.
both() {
	local -a words
	eval "words=($1)"
	find . "${words[@]}" 2>/dev/null | tr '\0' '\n' | LC_ALL=C sort >"$work/theirs"
	primefs find "${place[@]}" "${words[@]}" | tr '\0' '\n' | sed "$unify" | LC_ALL=C sort >"$work/ours"
	cmp -s "$work/theirs" "$work/ours" || {
		diff "$work/theirs" "$work/ours" | head -n 6
		return 1
	}
}

# exactly EXPRESSION: what the two print, in the order in which they do.
exactly() {
	local -a words
	eval "words=($1)"
	cmp <(find "$2" "${words[@]}" 2>/dev/null) <(primefs find "$2" "${words[@]}")
}

ok 'more than a hundred expressions' test "$(wc -l <"$work/expressions")" -gt 100
for word in name iname path regex type size mtime newer user group perm maxdepth mindepth empty print0 ls printf exec not; do
	ok "one has -$word" grep -q -- "-$word" "$work/expressions"
done
primefs import --content=copy "$src" "$store" >/dev/null || [[ $? == 1 ]] # one file is closed to ordinary users

# In a store paths are absolute, which expressions about paths see.
place=("$store") unify='s|^/$|.|; s|^/|./|'
cd "$src"
while IFS= read -r expression; do
	case $expression in
	*path* | *wholename* | *regex* | *-exec* | *reference* | *-ls* | *-printf* | *-quit*) continue ;;
	"-name '.'" | "-name '.*'" | "-name '?'" | "-name '[!"*) continue ;; # the root's name
	esac
	ok "in a store: $expression" both "$expression"
done <"$work/expressions"

exits 'an unknown predicate' 2 primefs find "$store" -nmae x
exits 'a missing argument' 2 primefs find "$store" -name
exits 'parentheses that do not match' 2 primefs find "$store" \( -name x
exits 'a number that is none' 2 primefs find "$store" -size 1z
exits 'a directive that is none' 2 primefs find "$store" -printf '%p %!'
exits 'a width beyond reason' 2 primefs find "$store" -printf '%99999p'
is 'a format in a store' "$(primefs find "$store" /src/main.c -printf '%f %P %h %H %d\n')" 'main.c  /src /src/main.c 0'
exits 'a mode that is none' 2 primefs find "$store" -perm u+q
exits 'a user that there is not' 2 primefs find "$store" -user nobody-of-that-name
exits 'a path that there is not' 3 primefs find "$store" /nowhere
is 'and one that there is' "$(primefs find "$store" /nowhere /docs -name '*.md' 2>/dev/null)" /docs/readme.md
exits 'a relative path in a store' 2 primefs find "$store" src
exits 'no store at all' 3 primefs find "$work/none.pfs"
exits 'a folder that is not mounted' 3 primefs find "$src"
exits 'nothing deleted without a mount' 3 primefs find "$store" -name '*.c' -delete
is 'a path in a store' "$(primefs find "$store" /src/lib -type f)" /src/lib/empty.c
is 'several paths' "$(primefs find "$store" /src /docs -name '*.bin' -o -name main.c | sort | tr '\n' ' ')" \
	'/docs/big.bin /docs/block.bin /docs/two.bin /src/main.c '
is 'a file' "$(primefs find "$store" /src/main.c)" /src/main.c

requires fuse
mount_store
[[ -e $mnt/.query/run ]] || skip_all 'skipped: no .query'
place=(.) unify=
cd "$mnt"
mkdir -p $'end\n/sub' && touch $'end\n/sub/f' # not for a store: "/end\n/sub" could be two paths
while IFS= read -r expression; do
	ok "mounted: $expression" both "${expression//..\/reference/$work/reference}"
done <"$work/expressions"
# what depends on the order is done in find's own
while IFS= read -r expression; do
	case $expression in
	*-ls* | *-exec* | *-prune* | *-quit* | *-depth*) ok "in order: $expression" exactly "${expression//..\/reference/$work/reference}" . ;;
	esac
done <"$work/expressions"
ok 'in order, from outside' exactly -ls "$mnt/"
ok 'in order, a part' exactly -ls "$mnt/with space"
if locale -a 2>/dev/null | grep -qx 'C.utf8'; then
	for locale in C C.UTF-8; do
		export LC_ALL=$locale
		while IFS= read -r expression; do
			case $expression in
			*name* | *path* | *regex*) ok "$locale: $expression" both "$expression" ;;
			esac
		done <"$work/expressions"
	done
	unset LC_ALL
else
	skip 'other locales: no C.UTF-8'
fi
is 'from outside' "$(primefs find "$mnt/src" -name '*.c' | sort)" "$(find "$mnt/src" -name '*.c' | sort)"
is 'with a slash' "$(primefs find "$mnt/src/" | sort)" "$(find "$mnt/src/" | sort)"
is 'a link' "$(primefs find "$mnt/src/link.c")" "$mnt/src/link.c"
# on_terminal COMMAND: what it prints on one.
on_terminal() { script -qec "$1" /dev/null </dev/null | tr -d '\r' | LC_ALL=C sort; }
if command -v script >/dev/null; then
	for locale in C C.UTF-8; do
		is "$locale: on a terminal names tell it nothing" "$(LC_ALL=$locale on_terminal 'primefs find .')" "$(LC_ALL=$locale on_terminal 'find .')"
		is "$locale: found names, too" "$(LC_ALL=$locale on_terminal "primefs find . -name '*o*'")" "$(LC_ALL=$locale on_terminal "find . -name '*o*'")"
	done
else
	skip 'on a terminal: no script(1)'
fi
mkdir wide
(cd wide && seq 10500 | xargs touch && mkdir 1d 2d 3d && touch 2d/x && truncate -s 123456789012 large)
(cd wide && touch -d '179 days ago' 1 && touch -d '181 days ago' 2 && touch -d '30 minutes' 3 && touch -d '2 hours' 4)
if ((EUID == 0)); then # columns widen
	mknod wide/null c 1 3 && mknod wide/disk b 259 1048575 && chown 12345:54321 wide/5 && chown 1234567890:1234567891 wide/6
fi
ok 'in order, a wide directory' exactly -ls .
ok 'in order, its files' exactly '-type f -ls' wide
ok 'as many words at a time' exactly '-exec echo {} +' wide
if ((PFS_LONG)); then
	(cd wide && seq -f 'f%.0f' 250000 | xargs touch)
	ok 'in order, a wider one' exactly -ls wide
fi
rm -r wide
ok 'deletes' primefs find "$mnt/src" -name '*.c' -delete
is 'what it was told to' "$(find "$mnt/src" -name '*.c')" ''
ok 'deletes a directory with what is in it' primefs find "$mnt/deep" -delete
ok 'is gone' test ! -e "$mnt/deep"
cd "$work"
unmount_store
check_store
