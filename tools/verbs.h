/* SPDX-License-Identifier: MIT */
/* tools/verbs.h - the commands, in the order of `primefs help`.  One line adds one: VERB(name,
 * summary) stands for pfs_cmd_<name> in tools/cmd_<name>.c.  No include guard: included with
 * different meanings of the macro. */
#ifndef VERB
#define VERB(name, summary)
#endif

VERB(import, "make a store of a directory, a list of paths, a table or an archive")
VERB(refresh, "bring a store up to date with what it was imported from")
VERB(export, "write out what a store holds")
VERB(info, "print what a store holds, in figures")
VERB(check, "look for damage in a store")
VERB(mount, "mount a store")
VERB(umount, "unmount it, when all is committed")
VERB(query, "run a statement over a store, or many at a prompt")
VERB(find, "find nodes, as find(1) does")
VERB(du, "print what directories take up, as du(1) does")
VERB(ls, "list directories, as ls(1) does")
VERB(dupes, "find files with the same content")
VERB(diff, "print what has changed between two stores")
VERB(resolve, "print the inode numbers of paths")
VERB(tree, "answer questions about subtrees and ancestors")
VERB(optimize, "reassign primes and lay a store out anew")
VERB(help, "explain a command")

#undef VERB
