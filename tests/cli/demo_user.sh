#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/demo as an ordinary user, of a folder that is root's and has something closed in it.
. "$(dirname "$0")/../lib.sh"
requires fuse unprivileged

mkdir -p tree/tools tree/build home src/share/doc src/lib/deep/er src/share/closed
cp "$top/tools/demo" tree/tools
printf '#!/bin/sh\n' >tree/tools/setup
chmod +x tree/tools/setup
cp "$(command -v primefs)" tree/build
printf 'all:\n' >tree/Makefile
seq 1000 >src/share/doc/numbers
touch src/lib/deep/er/lib{a,b,c}.so.1
chmod 700 src/share/closed
chown "$nobody" home
status=0
as "$nobody" env HOME="$work/home" TMPDIR="$work/home" tree/tools/demo src >shown 2>&1 || status=$?
is 'the demo succeeds' "$status" 0
((status == 0)) || cat shown
steps=$(sed -n 's/^\$ *//p' shown | awk '{print $1 == "primefs" ? $1 " " $2 : $1}' | tr '\n' ';')
is 'with its steps in order' "$steps" \
	'primefs import;primefs import;primefs mount;ls;find;cat;mv;primefs umount;primefs mount;ls;primefs umount;'
ok 'the bytes are the same' grep -qx same shown
ok 'what may not be read is named' grep -q 'closed: Permission denied' shown
is 'nothing is left' "$(ls -A home)" ''
