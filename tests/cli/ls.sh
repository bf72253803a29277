#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs ls prints what ls(1) prints, byte for byte, on a mounted store.
# shellcheck disable=SC2154,SC2012 # variables of tests/lib.sh; ls is what is tested
. "$(dirname "$0")/../lib.sh"
export LC_ALL=C

src=$work/src
mkdir -p "$src"/{b/y/z,a-b,'a b',.hidden/in,Empty}
head -c 123456 /dev/zero >"$src/b/large"
head -c 99 /dev/zero >"$src/b/y/Small"
touch -d '400 days ago' "$src/b/old" "$src/b/y/B" "$src/b/y/a" "$src/.dot" "$src/b/.dot2"
touch -d '1 hour' "$src/b/future" && touch -d '1960-01-01' "$src/b/ancient"
touch "$src/b/new"$'\n'line "$src/b/tab"$'\t'here "$src/b/del"$'\x7f' "$src/b/quo'te\"\\" "$src/b/-dash" "$src/b/日本" "$src/b/Émile"
touch "$src/b/latin-"$'\xe9' "$src/b/émile" "$src/b/zoé"
ln -s ../b/large "$src/b/y/link" && ln -s b "$src/dirlink"
chmod 4755 "$src/b/large" && chmod 1777 "$src/a-b" && chmod 2070 "$src/b/old" && chmod 6644 "$src/b/y/B"
mkfifo "$src/b/pipe"
mkdir -p "$src/words/sub:colon/in"
for byte in ' ' '!' '"' '#' '$' '&' "'" '(' '*' ';' '<' '=' '>' '?' '[' $'\x5c' '^' '`' '{' '|' '}' '~' ':' '%' ',' '-' $'\a' $'\t' $'\x1b'; do
	touch -- "$src/words/$byte" "$src/words/a${byte}b" "$src/words/${byte}end" "$src/words/it's$byte." # ends in what prints
done
((EUID)) || { mknod "$src/b/disk" b 259 12 && mknod "$src/b/zero" c 1 5 && chown 12345:54321 "$src/b/y/a" && chown 1234567890:1234567 "$src/b/zoé"; }
primefs import --content=copy "$src" "$store" >/dev/null
requires fuse
mount_store
[[ -e $mnt/.query/run ]] || skip_all 'skipped: no .query'

same() { cmp <(ls "$@") <(primefs ls "$@"); }
cd "$mnt"
for options in '' -l -R -lR -1 -a -la -laR -Ra -lat -laSr -aA -Aa -lah -A -lA -RA -lh -lhR -i -li -liR -n -ln -r -lr -S -t -lt -ltr -lS -d -ld -lRt; do
	# shellcheck disable=SC2086 # several
	ok "ls $options" same $options
	# shellcheck disable=SC2086
	ok "ls $options b" same $options b
done
for width in 1 10 33 80 200; do
	ok "ls -C, $width wide" env COLUMNS=$width bash -c 'cmp <(ls -CR) <(primefs ls -CR)'
	ok "ls -Ci, $width wide" env COLUMNS=$width bash -c 'cmp <(ls -Ci b) <(primefs ls -Ci b)'
done
ok 'ls -ai b' same -ai b
ok 'ls -lai b/y' same -lai b/y b
if ((!EUID)); then
	ok 'a device' same -l b/disk b/zero
fi
ok 'a fifo' same -l b/pipe
(cd b && ok 'a fifo here' same -l pipe .)
(cd b/y && ok 'above' same -la ..)
ln -s "$mnt" "$work/to-mount" && ln -s "$mnt/b/pipe" "$work/to-pipe" && ln -s "$mnt/b" "$work/to-b"
ok 'a symlink to the mount' same "$work/to-mount" "$work/to-b"
ok 'and past it' same -la "$work/to-b/y" "$work/to-mount/"
is 'a symlink to a fifo' "$(primefs ls -l "$work/to-pipe")" "$(ls -lL "$work/to-pipe")"
for command in 'ls -l' 'ls -a' find du; do
	# shellcheck disable=SC2086 # with its option
	fails_with "$command: outside" "primefs ${command%% *}: /: lies in no mounted store; name a store, or mount it" primefs $command /
	# shellcheck disable=SC2086
	fails_with "$command: virtual" 'mnt/.query/where: .query is no part of the tree; read it with ls' primefs $command "$mnt/.query/where"
done
for place in b/pipe . b/.. "$work/to-b/pipe" "$work/to-mount/" b/y/link; do
	ok "find $place" cmp <(find "$place" | LC_ALL=C sort) <(primefs find "$place" | LC_ALL=C sort)
	ok "du $place" cmp <(du "$place") <(primefs du "$place")
done
ok 'find and a symlink to the mount' cmp <(find -L "$work/to-b" | LC_ALL=C sort) <(primefs find "$work/to-b" | LC_ALL=C sort)
ok 'du and a symlink to the mount' cmp <(du -D "$work/to-b") <(primefs du "$work/to-b")
ok 'of several' same -l b a-b b/large 'a b' b/y/link
ok 'of a file narrower than a directory' same -li b/y/link b
ok 'of several, with all in them' same -lR b a-b b/large Empty
ok 'of a file' same -l b/large
ok 'of files' same -l b/large b/y/B
ok 'of an empty directory' same -l Empty
ok 'from outside' same -lR "$mnt/b" "$mnt/"
touch b/new && mv b/y a-b/moved && rm b/old
ok 'after changes' same -lR
if locale -a 2>/dev/null | grep -qx 'C.utf8\|en_US.utf8'; then
	export LC_ALL=C.UTF-8
	ok "in another order of letters" same -lR
fi
if command -v script >/dev/null; then
	on_terminal() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
	for locale in C C.UTF-8; do
		for options in '' -1 -l -R -i -A -lA -lC -1l; do
			is "$locale: ls $options on a terminal" "$(LC_ALL=$locale on_terminal "primefs ls $options b")" \
				"$(LC_ALL=$locale on_terminal "ls --color=never $options b")"
		done
		is "$locale: ls on a terminal, of names that want quotes" "$(LC_ALL=$locale on_terminal "primefs ls -R words")" \
			"$(LC_ALL=$locale on_terminal "ls --color=never -R words")"
		is "$locale: ls on a terminal, of files" "$(LC_ALL=$locale on_terminal "primefs ls b/n* b/q* b/-*")" \
			"$(LC_ALL=$locale on_terminal "ls --color=never b/n* b/q* b/-*")"
	done
else
	skip 'on a terminal: no script(1)'
fi
# without newlines in names, those of a subtree come from one file
find . -name $'*\n*' -delete
mkdir -p -- many/.hidden/deep many/sub/.h b/-d/{1..3} 'b/x y/é/ß' 'b/x y/E/z' b/xx b/x-y b/x.y
(cd many && seq -f 'empty%.0f' 1200 | xargs mkdir && touch sub/{a,Z,é,_} empty7/f)
rmdir many/empty{100..199}
for locale in C C.UTF-8; do
	export LC_ALL=$locale
	for options in -R -RA -Rr -RAr; do
		ok "$locale: ls $options" same $options
		ok "$locale: ls $options of several" same $options many b/large b a-b
	done
	ok "$locale: from outside" same -R "$mnt/b" "$mnt/"
	ok "$locale: of a directory with nothing in it" same -R many/empty1
done
exits 'what there is not' 3 primefs ls nowhere
for several in 'nowhere many/sub' 'b/large nowhere' 'nowhere many/sub b/-d'; do
	# shellcheck disable=SC2086 # several
	ok "and what there is: $several" cmp <(ls $several 2>/dev/null) <(primefs ls $several 2>/dev/null)
done
ok 'the last of -t and -S' same -tS b
ok 'the last of -S and -t' same -St b
cd "$work"
is 'the store itself' "$(primefs ls -lR "$store" | md5sum)" "$(cd "$mnt" && ls -lR . | sed 's|^\.|/|; s|^//|/|' | md5sum)"
is 'a path in it' "$(primefs ls "$store" /b)" "$(ls "$mnt/b")"
unmount_store
is 'unmounted' "$(primefs ls "$store" /a-b/moved)" $'B\nSmall\na\nlink\nz'
