#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tests/layering finds what it is there for, in a small tree of its own.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

cc=$(command -v cc || command -v gcc || command -v clang) || skip_all "no compiler"
command -v nm >nm.path || skip_all "no nm"

mkdir -p tests base meta gpu/host fs/tree fs/image fs/nodes tools
cp "$top/tests/layering" tests/
sed -i 's/^\(in_circles\|across\|doors\|seen\)=[0-9]*/\1=0/' tests/layering

# Compiles all files, and runs it.
run_layering() {
	local file
	for file in fs/*/*.c; do
		mkdir -p "build/${file%/*}"
		"$cc" -I. -c "$file" -o "build/${file%.c}.o"
	done
	B=${builds-build} tests/layering -v >out 2>&1
}

for name in a b c d; do echo "void $name(void); void $name(void) {}" >fs/image/$name.c; done
ok "nothing is wrong" run_layering

builds=nowhere
not_ok "without objects calls are not counted, which is wrong" run_layering
ok "and told" grep -q 'there are no objects in nowhere' out
unset builds

# a -> b -> c -> a: three are not too many; four are
calls() {
	printf 'void %s(void); void %s(void); void %s(void) { %s(); }\n' "$1" "$2" "$1" "$2" >"fs/image/$1.c"
}
calls a b
calls b c
calls c a
ok "three files may call each other" run_layering
calls c d
calls d a
not_ok "four may not" run_layering
ok "which are named" grep -q '^circle of 4 .*fs/image/d.c' out
builds="nowhere build"
not_ok "one of the builds is enough" run_layering
unset builds

# what is compiled a second time, for wide values, calls and is called, too
calls d b
echo 'void a(void); void d_wide(void); void d_wide(void) { a(); }' |
	"$cc" -x c -c - -o build/fs/image/d.wide.o
not_ok "its calls count" run_layering
rm build/fs/image/d.wide.o
ok "and are gone with it" run_layering
calls d a

# a table of functions calls its members; the file that changes are told through does not count
echo 'void a(void); void (*const table[])(void); void (*const table[])(void) = {a}; void d(void); void d(void) { table[0](); }' \
	>fs/image/d.c
not_ok "a table's file calls its members" run_layering

mv fs/image/d.c fs/image/watch.c && rm build/fs/image/d.o
ok "but not through watch" run_layering

calls a a2
mkdir -p fs/nodes
echo 'void a(void); void a2(void); void a2(void) { a(); }' >fs/nodes/a2.c
not_ok "two files of different folders may not" run_layering
ok "which are named, too" grep -q '^across folders: 2 ' out
rm fs/nodes/a2.c build/fs/nodes/a2.o
calls a b

echo '#include "fs/image/image_impl.h"' >fs/nodes/door.c
echo >fs/image/image_impl.h
not_ok "what a folder keeps to itself is not included" run_layering
ok "by whom is told" grep -q '^side door: fs/nodes/door.c includes fs/image/image_impl.h' out
echo '#include "fs/image/image_impl.h"' >fs/image/door.c
rm fs/nodes/door.c build/fs/nodes/door.o
ok "but by the folder itself" run_layering

echo '#include "fs/tree/tree.h"' >base/up.c
not_ok "includes go down" run_layering
rm base/up.c

for ((i = 0; i < 12; i++)); do echo '#include "fs/image/all.h"' >fs/image/many$i.c; done
echo >fs/image/all.h
not_ok "a header that most files of a large folder see counts" run_layering
ok "and is named" grep -q '^seen by many: fs/image/all.h by 12 of ' out
rm fs/image/many*.c fs/image/all.h

# shellcheck disable=SC2016 # backquotes of Markdown
echo '`image*.c`, `watch.c`, `gone.c`' >fs/image/README.md
not_ok "a README.md may not name what is not there" run_layering
ok "which is told" grep -q '^fs/image/README.md: there is no gone.c' out
ok "and names each file" grep -q '^fs/image/README.md: does not name fs/image/a.c' out
not_ok "but not what a module keeps to itself" grep -q 'image_impl.h' out
# shellcheck disable=SC2016
echo '`image/`' >fs/README.md
rm fs/image/README.md
not_ok "a folder's name does not name its files" run_layering
ok "which are told" grep -q '^fs/README.md: does not name fs/image/a.c' out
rm fs/README.md

mkdir docs
# shellcheck disable=SC2016 # backquotes of Markdown
echo '`fs/image/a.c`, `image/*.c`, `fs/image/gone.c`' >docs/WAY.md
not_ok "no document may, either" run_layering
ok "which is told, and of what is there nothing" diff out <(echo 'docs/WAY.md: there is no fs/image/gone.c')
