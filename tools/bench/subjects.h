/* SPDX-License-Identifier: MIT */
/* tools/bench/subjects.h - what primefs-bench measures, in the order of its help.  One line adds
 * one: BENCH(name, summary) stands for pfs_bench_<name> in tools/bench/<name>.c, watch in
 * refresh.c.  No include guard: included with different meanings of the macro. */
#ifndef BENCH
#define BENCH(name, summary)
#endif

BENCH(mount, "a mounted store beside a FUSE filesystem that answers from arithmetic")
BENCH(nullfs, "serve the yardstick of mount")
BENCH(import, "imports beside find and beside bare records")
BENCH(codes, "scans over prime-product codes beside copies of the same memory")
BENCH(query, "statements and commands beside SQLite, find, du, plocate")
BENCH(mounted, "statements end to end through a mount beside DuckDB")
BENCH(statements, "statements through a mount, from open to close")
BENCH(open, "opening a store from its image file beside its rows")
BENCH(refresh, "refreshing a store from its folder beside find on it")
BENCH(watch, "how soon changes of a folder show in a mount that watches it")
BENCH(totals, "what the totals of subtrees cost")
BENCH(snapshots, "changes beside a snapshot, lookups beside a long statement")
BENCH(beside, "lookups and creations through a mount beside statements")
BENCH(answers, "large answers as they are read, and a thousand who wait")
BENCH(holds, "how long the tree's lock is held, and by whom")
BENCH(resolve, "many paths at once beside one after the other")
BENCH(operators, "the relational operators beside copies of what they read")
BENCH(rates, "what estimates of statements go by: measured here beside the fixed rates")
BENCH(s1, "the experiment of the paper on prime-product codes")
BENCH(s2, "the experiment of the paper on relational operators, beside SQLite and DuckDB")
BENCH(s3, "prefix trees beside a scan of all keys and a sorted array")
BENCH(s4, "joins of skewed keys, by indexes and without")
BENCH(s5, "ordered indexes beside a sorted array")
BENCH(gen, "print a made-up hierarchy")

#undef BENCH
