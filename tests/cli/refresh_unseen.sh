#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# refresh removes nothing that it cannot look at: in folders that may not be searched, and where a
# filesystem is not mounted.
. "$(dirname "$0")/../lib.sh"
requires root
in_own_namespace || skip_all 'skipped: no mount namespaces'
reachable_programs

src=$work/src
paths() { primefs export --format=paths "$store" | xargs; }
change() { primefs query "$store" "$@" >/dev/null; }

# ---- folders that may not be searched ----
mkdir -p "$src"/{d/e,k}
for name in d/f d/g d/e/h; do echo "$name" >"$src/$name"; done
chown -R "$nobody" "$work"
user() { as "$nobody" primefs "$@"; }
for mode in 0 111 444; do
	rm -f "$store"*
	user import -q "$src" "$store"
	change "UPDATE nodes SET name = 'ff' WHERE path = '/d/f'"
	change "UPDATE nodes SET name = 'ee' WHERE path = '/d/e'"
	change "UPDATE nodes SET path = '/k/gg' WHERE path = '/d/g'"
	chown "$nobody" "$store"
	before=$(paths)
	touch "$src/d"
	chmod "$mode" "$src/d"
	exits "a folder of mode $mode is reported" 1 user refresh "$store"
	is 'and what the store renamed or moved out of it is there' "$(paths)" "$before"
	exits 'as after a quick refresh' 1 user refresh --quick "$store"
	is 'of the same' "$(paths)" "$before"
	chmod 755 "$src/d"
	ok 'the folder may be searched again' user refresh "$store"
	is 'and all is there' "$(paths)" "$before"
	rm "$src"/d/{f,g}
	ok 'two of its files go' user refresh "$store"
	is 'wherever they are' "$(paths)" '/d /d/ee /d/ee/h /k/'
	touch "$src"/d/{f,g}
	chown "$nobody" "$src"/d/*
done

# ---- what the store has removed from a folder of which something could not be read stays away ----
rm -rf "$store"* "$work/partly"
mkdir -p "$work/partly/d/sub"
touch "$work/partly/d"/{a,b,c,.gitignore}
chown -R "$nobody" "$work/partly"
chmod 0 "$work/partly/d/.gitignore"
sleep 0.1
touch "$work/partly/d" # it is younger than what it has
sleep 2.1
exits 'an import tells of rules that it cannot read' 1 user import --gitignore -q "$work/partly" "$store"
change "DELETE FROM nodes WHERE name = 'b'"
chown "$nobody" "$store"
chmod 644 "$work/partly/d/.gitignore"
ok 'they can be read' user refresh "$store"
is 'what the store has removed stays away' "$(paths)" '/d /d/.gitignore /d/a /d/c /d/sub/'
mv "$work/partly/d/sub" "$work/partly/d/moved"
chmod 0 "$work/partly/d/moved"
exits 'a folder that has moved cannot be opened' 1 user refresh "$store"
change "DELETE FROM nodes WHERE name = 'c'"
chown "$nobody" "$store"
user refresh "$store" >/dev/null || true
not_ok 'nor does that bring it back' primefs find "$store" /d/c
chmod 755 "$work/partly/d/moved"
ok 'it can be opened' user refresh "$store"
is 'and is where it is' "$(paths)" '/d /d/.gitignore /d/a /d/moved/'

# ---- what nobody could read yet is read once that is permitted ----
# The permission comes with a group, so that no time of the folders tells.
team() { setpriv --reuid "$nobody" --regid "$nobody" --groups 1234 --inh-caps=-all -- "$(command -v primefs)" "$@"; }
shut() { # FOLDER MODE: makes it, with a file and a folder, for those of the group
	mkdir -p "$1/in"
	touch "$1/f" "$1/in/g"
	chown root:1234 "$1"
	chmod "$2" "$1"
}
later() { echo "$1/f $1/in $1/in/g"; }
team="/team $(later /team)"
for mode in 750 754; do # it cannot be opened, or what it lists not be looked at
	rm -rf "$store"* "$work/new"
	mkdir "$work/new"
	chown "$nobody" "$work/new"
	shut "$work/new/team" "$mode"
	sleep 2.1 # by now times tell of changes
	exits "import says that a folder of mode $mode cannot be read" 1 user import "$work/new" "$store"
	is 'which is there' "$(paths)" /team/
	exits 'and a refresh does' 1 user refresh "$store"
	ok 'those who may read it find what it has' team refresh "$store"
	is 'all of it' "$(paths)" "$team"
	mkdir "$work/new/above"
	shut "$work/new/above/later" "$mode"
	shut "$work/new/soon" "$mode"
	sleep 2.1
	user refresh -l "$store" >said || true
	is 'new ones are told' "$(grep -c "^unread .*Permission denied" said)" "$((mode == 750 ? 3 : 6))"
	ok 'by their paths' grep -q '^unread .*/above/later' said
	ok 'at each depth' grep -q '^unread .*/soon' said
	is 'and are there' "$(paths)" "/above /above/later/ /soon/ $team"
	exits 'they are told again' 1 user refresh --quick "$store"
	ok 'and read when that is permitted' team refresh --quick "$store"
	is 'with all that they have' "$(paths)" \
		"/above /above/later $(later /above/later) /soon $(later /soon) $team"
	is 'once' "$(team refresh -l "$store" | grep -c '^[a-z]* /' || true)" 0
done
rm -rf "$work/new" said

# ---- what could not be read has not been compared ----
# The times that nodes have, in seconds, as many as they have different ones.
compared() { primefs query --tsv "$store" "SELECT DISTINCT compared / 1000000000 FROM nodes WHERE $1" | tail -n +2 | xargs; }
rm -f "$store"*
user import -q "$src" "$store"
imported=$(compared 1)
sleep 1.1
chmod 0 "$src/d"
for path in /d /d/e /d/e/h /d/f /d/new; do
	exits "$path cannot be read" 1 user refresh "$store" "$path"
	is 'and is as old as it was' "$(compared 1)" "$imported"
done
exits 'beside what can be' 1 user refresh "$store" /d /k
ok 'that is newer' test "$(compared "path = '/k'")" -gt "$imported"
is 'alone' "$(compared "path != '/k'")" "$imported"
newer=$(compared "path = '/k'")
mkdir "$src/k/l"
sleep 1.1
exits 'nor does a refresh of everything' 1 user refresh "$store"
is 'make it newer' "$(compared "under(ino, '/d')")" "$imported"
ok 'as it does what lies in others' test "$(compared "under(ino, '/k') ORDER BY 1" | cut -d' ' -f1)" -gt "$newer"
rm -r "$src/k/l"
chmod 755 "$src/d"
ok 'it may be read again' user refresh "$store" /d
ok 'and is newer, too' test "$(compared "under(ino, '/d')")" -gt "$imported"

echo none >"$src/k/.gitignore"
chown -R "$nobody" "$src/k"
rm -f "$store"*
user import -q --gitignore "$src" "$store"
imported=$(compared 1)
sleep 1.1
chmod 0 "$src/k/.gitignore"
exits 'a folder whose rules cannot be read' 1 user refresh "$store"
is 'is as old as it was' "$(compared "under(ino, '/k')")" "$imported"
ok 'and no other' test "$(compared "under(ino, '/d')")" -gt "$imported"
rm "$src/k/.gitignore"

for moved in d2 k/d2 d2/e; do
	rm -f "$store"*
	user import -q "$src" "$store"
	sleep 2 # so that directories are settled
	if [[ $moved = */e ]]; then mv "$src/d" "$src/d2"; else mv "$src/d" "$src/$moved"; fi
	chmod 0 "$src/$moved"
	exits "a folder moves, and $moved may not be searched" 1 user refresh "$store"
	is 'of which nothing is removed' "$(user refresh -l "$store" | grep -c '^removed')" 0
	chmod 755 "$src/$moved"
	ok 'it may be again' user refresh "$store"
	echo x | tee -a "$src/${moved%/e}"/{f,e/h} >/dev/null
	is 'two of its files change' "$(user refresh -l "$store" | sed '$d' | sort | xargs)" \
		"changed /${moved%/e}/e/h changed /${moved%/e}/f"
	is 'and nothing is left to do' "$(user refresh -l "$store" | sed '$d')" ''
	mv "$src/${moved%/e}" "$src/d"
done

# ---- a filesystem that is not mounted ----
mkdir -p "$src/m/inner"
store=$work/crossed.pfs
mount_inner() {
	mount -t tmpfs none "$src/m/inner"
	mkdir -p "$src/m/inner/x"
	echo y >"$src/m/inner/x/y"
}
if mount_inner 2>/dev/null; then
	primefs import -q --cross-mounts "$src" "$store"
	before=$(paths)
	umount "$src/m/inner"
	for how in '' --quick --cross-mounts; do
		exits "what another filesystem had is not seen $how" 1 primefs refresh $how "$store"
		is 'and stays' "$(paths)" "$before"
	done
	ok 'which is said' grep -q '^unread /m/inner: its filesystem is not mounted' <(primefs refresh "$store" || true)
	imported=$(compared "under(ino, '/m/inner')")
	sleep 1.1
	for at in '' / /m; do
		# shellcheck disable=SC2086
		exits "nor is it newer by a refresh of ${at:-everything}" 1 primefs refresh --cross-mounts "$store" $at
		is 'than it was' "$(compared "under(ino, '/m/inner')")" "$imported"
		ok 'while what it lies in is' test "$(compared "path = '/m'")" -gt "$imported"
	done
	exits 'the path alone does not lose it either' 1 primefs refresh "$store" /m/inner
	is 'it is there' "$(paths)" "$before"
	exits 'nor does one below it' 1 primefs refresh "$store" /m/inner/x
	is 'and neither is newer for it' "$(compared "under(ino, '/m/inner')")" "$imported"
	touch "$src/m/other"
	exits 'what is beside it follows' 1 primefs refresh "$store"
	is 'and no more' "$(paths)" "$before /m/other"
	mount_inner
	echo z >"$src/m/inner/z"
	ok 'another filesystem in its place is compared' primefs refresh --cross-mounts "$store"
	ok 'and followed' primefs find "$store" /m/inner/z
	umount "$src/m/inner"
	rm -rf "$src/m"
	ok 'a folder that is gone goes with it' primefs refresh "$store"
	not_ok 'with all that it had' primefs find "$store" /m
	store=$work/uncrossed.pfs
	mkdir -p "$src/m/inner"
	mount_inner
	primefs import -q "$src" "$store"
	umount "$src/m/inner"
	ok 'a filesystem of which the store has nothing is not missed' primefs refresh "$store"

	# ---- what the store, or the source, has moved ----
	other=$work/other
	begin() { # MOUNT...: imports a source in which a filesystem is mounted by the command
		umount "$src/m/inner" 2>/dev/null || true
		rm -rf --one-file-system "$src"
		rm -f "$store"*
		mkdir -p "$src"/{m/inner,k,d}
		echo f >"$src/d/f"
		"$@"
		mkdir -p "$src/m/inner/x"
		for name in x/y z; do echo "$name" >"$src/m/inner/$name"; done
		primefs import -q --cross-mounts "$src" "$store"
	}
	mkdir "$other"
	mount -t tmpfs none "$other"
	tmpfs() { mount -t tmpfs none "$src/m/inner"; }
	bind() { mount --bind "$other" "$src/m/inner"; }
	stays() { # WHAT PATH: the refresh tells that it has not read the node, and leaves all
		local before
		before=$(paths)
		for how in '' --cross-mounts; do
			exits "$1 is not seen $how" 1 primefs refresh $how "$store"
			is 'and stays' "$(paths)" "$before"
		done
		is 'which is said' "$(primefs refresh -l "$store" | sed '$d')" \
			"unread $2: its filesystem is not mounted there"
	}

	begin tmpfs
	change "UPDATE nodes SET path = '/k/zz' WHERE path = '/m/inner/z'"
	before=$(paths)
	ok 'what the store moved out of a mounted filesystem' primefs refresh --cross-mounts "$store"
	is 'is there' "$(paths)" "$before"
	umount "$src/m/inner"
	exits 'as when it is unmounted' 1 primefs refresh "$store"
	is 'with all else' "$(paths)" "$before"
	is 'and both are said' "$(primefs refresh -l "$store" | sed '$d' | cut -d: -f1 | sort | xargs)" \
		'unread /k/zz unread /m/inner'

	begin tmpfs
	change "UPDATE nodes SET path = '/k/inner' WHERE path = '/m/inner'"
	umount "$src/m/inner"
	stays 'a filesystem whose mount point the store has moved' /k/inner

	begin bind
	change "UPDATE nodes SET path = '/k/zz' WHERE path = '/m/inner/z'"
	rm "$src/m/inner/z"
	ok 'a file that is gone from a mounted filesystem' primefs refresh --cross-mounts "$store"
	not_ok 'goes from where the store has it' primefs find "$store" /k/zz

	begin true
	change "UPDATE nodes SET path = '/k/f' WHERE path = '/d/f'"
	mount -t tmpfs none "$src/d"
	stays 'a file that the store moved out of a folder that another filesystem covers' /k/f
	exits 'also if all that is not mounted is gone' 1 primefs refresh --unmounted "$store"
	ok 'it stays' primefs find "$store" /k/f
	umount "$src/d"
	rm "$src/d/f"
	ok 'it is uncovered, and has lost the file' primefs refresh "$store"
	not_ok 'which goes' primefs find "$store" /k/f

	for how in unmounted mounted; do
		begin bind
		status=0
		[[ $how = mounted ]] || { umount "$src/m/inner" && status=1; }
		mv "$src/m" "$src/m2"
		ok "nothing is gone when a folder moves in which a filesystem is $how" grep -q " 0 removed, 1 moved, " \
			<(primefs refresh -n "$store" || true)
		exits "a folder in which a filesystem is $how moves" "$status" primefs refresh -l "$store"
		is 'with all' "$(paths)" '/d /d/f /k/ /m2 /m2/inner /m2/inner/x /m2/inner/x/y /m2/inner/z'
		[[ $how = mounted ]] || mount --bind "$other" "$src/m2/inner"
		ok 'and is as it was' grep -q ' 0 added, 0 removed, 0 moved, 0 changed, ' \
			<(primefs refresh --cross-mounts "$store")
		! has_archives || is 'and can be read' "$(primefs export --format=tar "$store" | tar -xOf - m2/inner/z ./m2/inner/z 2>/dev/null)" z
		echo more >>"$src/m2/inner/z"
		ok 'a file there changes' grep -q ' 0 added, 0 removed, 0 moved, 1 changed, ' \
			<(primefs refresh --cross-mounts "$store")
		umount "$src/m2/inner"
	done

	begin tmpfs
	umount "$src/m/inner"
	mv "$src/m/inner" "$src/k/inner2"
	exits 'the directory in which a filesystem was mounted goes' 1 primefs refresh "$store"
	is 'without what was there' "$(paths)" '/d /d/f /k /k/inner2/ /m /m/inner /m/inner/x /m/inner/x/y /m/inner/z'

	for what in 'ln -s /nowhere' 'cp /dev/null'; do
		begin tmpfs
		umount "$src/m/inner"
		rmdir "$src/m/inner"
		$what "$src/m/inner"
		stays "a filesystem in whose mount point's place lies what '$what' made" /m/inner
		ok 'is gone if that is said' grep -q ' 1 added, 4 removed, ' \
			<(primefs refresh --unmounted "$store")
	done

	begin bind
	umount "$src/m/inner"
	rmdir "$src/m/inner"
	mount --bind "$other" "$src/k"
	ln -s k "$src/m/inner"
	ok 'a filesystem is mounted elsewhere and linked to' primefs refresh --cross-mounts "$store"
	is 'and has moved, too' "$(paths)" '/d /d/f /k /k/x /k/x/y /k/z /m /m/inner'
	umount "$src/k"

	begin bind
	umount "$src/m/inner"
	mount --bind "$other" "$src/k"
	ok 'a filesystem is mounted elsewhere' primefs refresh --cross-mounts "$store"
	is 'and has moved with all' "$(paths)" '/d /d/f /k /k/x /k/x/y /k/z /m /m/inner/'
	umount "$src/k"

	begin tmpfs
	umount "$src/m/inner"
	echo plain >"$src/m/inner/plain"
	stays 'a filesystem in whose mount point something else lies' /m/inner
	exits 'also from a quick refresh' 1 primefs refresh --quick "$store"
	exits 'and from one of the path alone' 1 primefs refresh "$store" /m/inner
	mkdir "$src/m/inner/x"
	echo other >"$src/m/inner/x/q"
	before=$(paths)
	for path in /m/inner/x /m/inner/x/y /m/inner/z; do
		is "from one of $path, too" "$(primefs refresh -l "$store" "$path" | sed '$d')" \
			'unread /m/inner: its filesystem is not mounted there'
		is 'which leaves all' "$(paths)" "$before"
	done
	rm -r "$src/m/inner/x"
	ok 'what is there counts if that is said' grep -q ' 1 added, 3 removed, ' \
		<(primefs refresh --unmounted "$store")
	is 'and is followed' "$(paths)" '/d /d/f /k/ /m /m/inner /m/inner/plain'
	echo more >>"$src/m/inner/plain"
	ok 'from then on without a word' grep -q ' 1 changed, ' <(primefs refresh "$store")

	begin bind
	umount "$src/m/inner"
	cp -a "$other/." "$src/m/inner"
	stays 'a filesystem whose content was copied to the one above it' /m/inner
	inode=$(primefs query "$store" "SELECT ino FROM nodes WHERE path = '/m/inner/x/y'" | tail -n 1)
	ok 'is followed if that is said' grep -q ' 0 added, 0 removed, ' <(primefs refresh --unmounted "$store")
	is 'its nodes stay the same' "$inode" \
		"$(primefs query "$store" "SELECT ino FROM nodes WHERE path = '/m/inner/x/y'" | tail -n 1)"

	begin tmpfs
	change "UPDATE nodes SET path = '/k/zz' WHERE path = '/m/inner/z'"
	umount "$src/m/inner"
	ok 'without anything there' primefs refresh --unmounted "$store"
	is 'all goes that it had' "$(paths)" '/d /d/f /k/ /m /m/inner/'

	begin tmpfs
	change "UPDATE nodes SET path = '/k/zz' WHERE path = '/m/inner/z'"
	mount -t tmpfs none "$src/m/inner"
	mount -t tmpfs none "$src/m/inner"
	exits 'what is covered in a mounted filesystem is not gone' 1 \
		primefs refresh --cross-mounts --unmounted "$store"
	is 'it stays' "$(paths | tr ' ' '\n' | grep zz)" /k/zz
	umount "$src/m/inner" && umount "$src/m/inner"

	begin true
	mount -t tmpfs none "$src/m"
	mkdir "$src/m/n"
	mount -t tmpfs none "$src/m/n"
	touch "$src/m/n/file"
	rm "$store"
	primefs import -q --cross-mounts "$src" "$store"
	change "UPDATE nodes SET path = '/k/file' WHERE path = '/m/n/file'"
	umount "$src/m/n"
	ok 'a filesystem in another is not mounted' primefs refresh --cross-mounts --unmounted "$store"
	not_ok 'and what it had goes' primefs find "$store" /k/file
	umount "$src/m"

	# ---- a filesystem on a device whose number does not last ----
	rm -rf --one-file-system "$src"
	mkdir -p "$src/a"
	attach() { mount -o loop "$work/disk" "$src/a"; } # with the number of the first loop device that is free
	truncate -s 16M "$work/disk"
	if command -v mkfs.ext4 >/dev/null && mkfs.ext4 -q "$work/disk" && attach 2>/dev/null; then
		mkdir "$src/a/b"
		mount -t tmpfs none "$src/a/b"
		echo c >"$src/a/b/c"
		rm -f "$store"*
		primefs import -q --cross-mounts --exclude=lost+found "$src" "$store"
		number=$(stat -c %d "$src/a")
		umount "$src/a/b" "$src/a"
		truncate -s 16M "$work/free"
		taken=$(losetup -f --show "$work/free")
		cleanup_fn losetup -d "$taken"
		attach
		ok 'a device has another number' test "$(stat -c %d "$src/a")" != "$number"
		before=$(paths)
		exits 'what was mounted below it is not seen' 1 primefs refresh --cross-mounts "$store"
		is 'and stays' "$(paths)" "$before"
		rmdir "$src/a/b"
		exits 'nor without its directory' 1 primefs refresh --cross-mounts "$store"
		is 'which stays, too' "$(paths)" "$before"
		umount "$src/a"
	else
		skip 'skipped: no disk can be mounted'
	fi
else
	skip 'skipped: nothing can be mounted'
fi
check_store
