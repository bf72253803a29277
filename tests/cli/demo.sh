#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/demo and tools/setup: what a stranger meets first.  The demo runs here with the program that is
# tested, not one that it builds.
. "$(dirname "$0")/../lib.sh"

# ---- setup: everything installed, or a line to type ----

mkdir fake
printf '#!/bin/sh\nexit 1\n' >fake/dpkg-query
printf '#!/bin/sh\nexit 1\n' >fake/sudo
printf '#!/bin/sh\necho "$@" >>%q\n' "$work/apt" >fake/apt-get
chmod +x fake/*
cp "$top/tools/setup" setup
setup() { PATH=$work/fake:$PATH ./setup "$@" </dev/null; }
if ((EUID == 0)); then
	ok 'root installs what is missing' setup
	ok 'after an update' grep -q update "$work/apt"
	ok 'by name' grep -qE 'install .*libfuse3-dev.* libsqlite3-dev.* libgmp-dev.* libprimesieve-dev.* libcmocka-dev' "$work/apt"
	rm "$work/apt"
	chmod 777 "$work"
	status=0
	line=$(as "$nobody" env PATH="$work/fake:$PATH" ./setup </dev/null 2>&1) || status=$?
else
	status=0
	line=$(setup 2>&1) || status=$?
fi
is 'others are told the line' "$(grep -oE 'apt-get install .*libfuse3-dev.*' <<<"$line" | wc -l)" 1
is 'and nothing more' "$status $(wc -l <<<"$line")" '3 1'
not_ok 'nothing is installed' test -e "$work/apt"
printf '#!/bin/sh\nprintf "install ok installed"\n' >fake/dpkg-query
is 'with all of it there it is silent' "$(setup test)" ''
exits 'a set of packages that there is not' 2 setup nonsense

# ---- demo ----

requires make

mkdir -p tree/tools tree/build
cp "$top/tools/demo" tree/tools
printf '#!/bin/sh\n' >tree/tools/setup
chmod +x tree/tools/setup
printf 'all: ; @cp %s/primefs build/\n' "$PFS_BUILD" >tree/Makefile
mkdir -p src/share/doc src/lib/deep/er
seq 1000 >src/share/doc/numbers
touch src/lib/deep/er/lib{a,b,c}.so.1
if unshare -m true 2>/dev/null; then
	cat >without <<-'END'
		mkdir dev
		for node in null zero urandom; do touch dev/$node && mount --bind /dev/$node dev/$node; done
		mount --rbind dev /dev
		exec tree/tools/demo src
	END
	exits 'without /dev/fuse it ends' 3 unshare -m --propagation private bash -eu without
	rm -rf dev
	fails_with 'and says how to get it' 'mount --bind /dev/fuse' unshare -m --propagation private bash -eu without
else
	skip 'no mount namespace in which there is no /dev/fuse'
fi
requires fuse
mkdir temporary
status=0
TMPDIR=$work/temporary tree/tools/demo src >shown 2>&1 || status=$?
is 'the demo succeeds' "$status" 0
((status == 0)) || cat shown
steps=$(sed -n 's/^\$ *//p' shown | awk '{print $1 == "primefs" ? $1 " " $2 : $1}' | tr '\n' ';')
# an ordinary user's first import makes an empty store
is 'with its steps in order' "${steps/#primefs import;primefs import;/primefs import;}" \
	'primefs import;primefs mount;ls;find;cat;mv;primefs umount;primefs mount;ls;primefs umount;'
ok 'the bytes are the same' grep -qx same shown
ok 'the moved folder is there again' grep -q ' .*/moved-by-demo$' shown
is 'it has a line of figures' "$(grep -cE '^[0-9]+ nodes imported in [0-9.]+ s; the store has [0-9]+ bytes per node$' shown)" 1
ok 'and ends with how to go on' grep -q 'build/primefs import FOLDER' <(tail -n 5 shown)
is 'it leaves nothing behind' "$(ls -A temporary)" ''
fails_with 'a folder that there is not' 'no such folder' tree/tools/demo nowhere
