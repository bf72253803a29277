#!/bin/bash
# SPDX-License-Identifier: MIT
# What a mount measures of the machine stands in .query/stats beside the fixed rates, and plans say which they go by.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a
touch tree/a/x.c tree/a/y.c tree/z.h
primefs import tree "$store" >/dev/null
statement='SELECT ext, count(*) FROM nodes GROUP BY ext'
q=$mnt/.query
plan() { primefs query --plan "$1" "$statement"; }

known=$(primefs query --tsv "$store" "$statement" | sort)
ok 'a command uses the fixed ones' grep -q "the host's are fixed, a device's fixed" <(plan "$store")

mount_store -o query_measure=no
ok 'nothing is measured' grep -q '"rates": {"host": "fixed", "device": "fixed"' "$q/stats"
ok 'plans say so' grep -q "the host's are fixed," <(plan "$mnt")
unmount_store
not_ok 'yes or no' primefs mount -o query_measure=2 "$store" "$mnt"

mount_store
ok 'the machine is measured' wait_for 60 grep -q '"rates": {"host": "measured"' "$q/stats"
ok 'each rate has a fixed one beside it' grep -qE '"join": \{"fixed": 84, "now": [0-9.]+\}' "$q/stats"
python 'stats are JSON' -m json.tool "$q/stats"
ok 'plans say so, too' grep -q "the host's are measured," <(plan "$mnt")
is 'the answer is the same' "$(primefs query --tsv "$mnt" "$statement" | sort)" "$known"
unmount_store
