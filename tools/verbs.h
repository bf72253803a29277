/* SPDX-License-Identifier: MIT */
/* tools/verbs.h - the commands, in the order of `primefs help`.  One line adds one: VERB(name,
 * summary) stands for pfs_cmd_<name> in tools/cmd_<name>.c, BENCH(name, summary) for
 * pfs_bench_<name>, `primefs bench <name>`, in tools/bench_<name>.c.  No include guard: included
 * with different meanings of the two macros. */
#ifndef VERB
#define VERB(name, summary)
#endif
#ifndef BENCH
#define BENCH(name, summary)
#endif

VERB(import, "make a store of a directory, a list of paths, a table or an archive")
VERB(export, "write out what a store holds")
VERB(info, "print what a store holds, in figures")
VERB(check, "look for damage in a store")
VERB(mount, "mount a store")
VERB(umount, "unmount it, when all is committed")
VERB(gen, "print a made-up hierarchy")
VERB(query, "run a statement over a store, or many at a prompt")
VERB(find, "find nodes, as find(1) does")
VERB(du, "print what directories take up, as du(1) does")
VERB(ls, "list directories, as ls(1) does")
VERB(tree, "answer questions about subtrees and ancestors")
VERB(optimize, "reassign primes and lay a store out anew")
VERB(bench, "measure this program beside its yardsticks")
BENCH(mount, "a mounted store beside a FUSE filesystem that answers from arithmetic")
BENCH(nullfs, "serve the yardstick of bench mount")
BENCH(import, "imports beside find and beside bare records")
BENCH(codes, "scans over prime-product codes beside copies of the same memory")
BENCH(query, "statements and commands beside SQLite, find, du, plocate")
BENCH(totals, "what the totals of subtrees cost")
BENCH(s1, "the experiment of the paper on prime-product codes")
VERB(help, "explain a command")

#undef VERB
#undef BENCH
