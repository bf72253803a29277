#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What scripts clean up with ends nobody else's processes.
. "$(dirname "$0")/../lib.sh"

sleep 100 &
own=$!
ok 'a process of the script is ended' kill_own -9 "$own"
wait "$own" || true
not_ok 'one that has ended is not' kill_own -9 "$own"
bash -c 'sleep 100 >/dev/null 2>&1 & echo $!' >"$work/other"
other=$(cat "$work/other")
not_ok "another's is not" kill_own -9 "$other"
not_ok 'and goes on' gone "$other"
kill -9 "$other"
