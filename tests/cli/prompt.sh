#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The prompt of primefs query, at a terminal: errors, completion, history, Ctrl-C.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires python3

printf '/a/x.c\tred\n/a/y.c\tblue\n' | primefs import --format=paths --columns=colour:text - "$store" >/dev/null
primefs query "$store" 'CREATE TABLE staff (ext TEXT, who TEXT)'
export HOME=$work TERM=vt100
unset XDG_STATE_HOME

# Types what it is told and waits for what should come: a line each: `say TEXT`, `see REGEX`, and `stop
# STATEMENT`, which it is to run and then interrupt.  \x03 is Ctrl-C.
cat >talk.py <<'END'
import os, pty, re, select, signal, sys, time

def stop(fd, statement):
    # Ctrl-C may come before the statement runs, and then drops it: typed again, with more time.
    for attempt in range(1, 20):
        os.write(fd, statement.encode() + b'\r')
        time.sleep(0.2 * attempt)
        os.write(fd, b'\x03')
        seen = ''
        while 'interrupted' not in seen and not seen.endswith('^Cprimefs> \r\nprimefs> '):
            if not select.select([fd], [], [], 3)[0]:
                break
            seen += os.read(fd, 65536).decode('utf-8', 'replace')
        if 'interrupted' in seen:
            return seen.split('interrupted', 1)[1]
    sys.exit('it is not stopped, but prints %r' % seen)

def talk(argv, script):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    seen = ''
    for verb, text in script:
        if verb == 'stop':
            seen = stop(fd, text)
            continue
        if verb == 'say':
            os.write(fd, text.encode().decode('unicode_escape').encode('latin-1'))
            continue
        end = time.monotonic() + 20
        while not re.search(text, seen):
            if time.monotonic() > end or not select.select([fd], [], [], 20)[0]:
                os.kill(pid, signal.SIGKILL)
                sys.exit('waited for %r, got %r' % (text, seen))
            try:
                piece = os.read(fd, 65536).decode('utf-8', 'replace')
            except OSError:
                piece = ''
            if not piece:
                break
            seen += piece
        found = re.search(text, seen)
        if not found:
            sys.exit('wanted %r, got %r' % (text, seen))
        seen = seen[found.end():]
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            sys.exit(os.waitstatus_to_exitcode(status))
        if select.select([fd], [], [], 0.5)[0]:
            try:
                os.read(fd, 65536)
            except OSError:
                pass
    os.kill(pid, signal.SIGKILL)
    sys.exit('it does not end')

script = [line.rstrip('\n').split(' ', 1) for line in sys.stdin if line.strip()]
talk(sys.argv[1:], script)
END
# converses DESCRIPTION [STORE]: standard input is the script.
converses() {
	python "$1" talk.py primefs query "${2:-$store}"
}
endless='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;'

converses 'an error keeps the prompt' <<'END'
see primefs> 
say SELECT nam FROM nodes;\r
see no such column: nam; did you mean name
see primefs> 
say SELECT 40 + 2 AS answer;\r
see answer\s+-+\s+42
see primefs> 
say SELECT 'a' || char(27) || '[0m' AS odd;\r
see a\?\[0m\s
see primefs> 
say SELECT count(*)\r
see \.\.\.> 
say FROM nodes;\r
see \s4\s
see primefs> 
say help\r
see Tab completes
see primefs> 
say quit\r
END
converses 'several statements in a line, up to one that fails' <<'END'
see primefs> 
say SELECT 11 AS one; SELECT 12 AS two; -- done;\r
see one\s+-+\s+11
see two\s+-+\s+12\s+primefs> 
say SELECT nam FROM nodes; SELECT 13 AS three;\r
see name\?
see \^\s+primefs> 
say SELECT 14 /* a;\r
see \.\.\.> 
say */ AS four;;\r
see four\s+-+\s+14\s+primefs> 
say -- nothing;\r
see nothing;\s+primefs> 
say SELECT 1; quit\r
END
if [[ $(primefs query --help) == *prompt* ]] && ldd "$(command -v primefs)" | grep -q libedit; then
	is 'history is the user'"'"'s alone' "$(stat -c %a .primefs_history)" 600
	ok 'and has what was typed' grep -q 'answer' .primefs_history
	mkdir state
	XDG_STATE_HOME=$work/state converses 'a history of its own where state is kept' <<'END'
see primefs> 
say SELECT 17 AS seventeen;\r
see 17\s
see primefs> 
say quit\r
END
	ok 'there' test -s state/primefs_history
	XDG_STATE_HOME=$work/state converses 'the arrow brings back what was typed before' <<'END'
see primefs> 
say \x1b[A\r
see seventeen\s+-+\s+17
see primefs> 
say quit\r
END
	converses 'Tab completes columns, attributes, tables and functions' <<'END'
see primefs> 
say SELECT max(subtree_c\t) FROM nodes;\r
see max\(subtree_count\)\s+-+\s+4
see primefs> 
say SELECT colo\t FROM nodes WHERE col\t = 'red';\r
see colour\s+-+\s+red
see primefs> 
say INSERT INTO sta\t VALUES ('c', 'Ana');\r
see primefs> 
say SELECT who FROM staff;\r
see who\s+-+\s+Ana
see primefs> 
say CREATE TABLE fresh (column_of_it TEXT);\r
see primefs> 
say SELECT count(column_o\t) FROM fre\t;\r
see \s0\s
see primefs> 
say SELECT count(*) AS n FROM nodes WHERE child_\t'/a');\r
see n\s+-+\s+2
see primefs> 
say quit\r
END
else
	skip 'history and completion: built without libedit'
fi
converses 'Ctrl-C drops what is being typed' <<'END'
see primefs> 
say SELECT nonsense\x03
see primefs> 
say SELECT 1 +\r
see \.\.\.> 
say \x03
see primefs> 
say SELECT 5 AS five;\r
see five\s+-+\s+5
see primefs> 
say \x03
see primefs> 
say quit\r
END
converses 'Ctrl-C stops a statement' <<END
see primefs> 
stop $endless
see primefs> 
say SELECT 6 AS six;\r
see six\s+-+\s+6
see primefs> 
stop $endless
see primefs> 
say .quit\r
END

requires fuse
mount_store
converses 'Ctrl-C stops a statement that the daemon runs' "$mnt" <<END
see primefs> 
stop $endless
see primefs> 
say SELECT 7 AS seven;\r
see seven\s+-+\s+7
see primefs> 
say quit\r
END
{ timeout -s KILL 0.5 primefs query "$store" "${endless%;*}" || true; } >/dev/null 2>&1
timeout -s TERM 0.5 primefs query --plan "$mnt" "${endless%;*}" >/dev/null 2>&1 || true
ok 'nothing runs on when who asked is gone' timeout 60 primefs umount "$mnt"
check_store
