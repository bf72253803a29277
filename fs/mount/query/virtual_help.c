/* SPDX-License-Identifier: MIT */
/* `.query/help`: all of it on one page. */
#include "fs/mount/query/virtual.h"

static const struct section {
	bool writes; /* the kernel refuses its examples on a read-only mount */
	const char *text;
} sections[] = {
	{false,
	 "# .query: questions about this directory and all that is under it\n"
	 "# Every line without a # can be run in a shell, from this directory; it is an example.\n"},
	{false,
	 "# A statement in SQLite's SQL, as a file name; .csv .json .txt choose the format, else "
	 "TSV.\n"
	 "cat '.query/sql/SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 "
	 "DESC.txt'\n"
	 "cp '.query/sql/SELECT path, size FROM nodes WHERE size > 1000000.csv' /tmp/large.csv\n"},
	{true,
	 "# Longer ones, up to 64 KiB, and those that change something: one write is one statement, "
	 "its\n"
	 "# answer is read from the same descriptor.\n"
	 "exec 3<> .query/run; echo 'SELECT count(*) FROM nodes' >&3; cat <&3; exec 3>&-\n"
	 "echo \"UPDATE nodes SET mode = mode | 256 WHERE type = 'f'\" > .query/run\n"
	 "# What they changed, be it nodes or rows of tables, is on the disk within a second, or now:\n"
	 "sync .\n"},
	{false,
	 "# What was wrong with your last one, with a caret below the place.\n"
	 "cat .query/error\n"},
	{false,
	 "# The columns of nodes.\n"
	 "cat .query/tables/nodes.schema\n"
	 "# Attributes are columns, too; of one called as nodes has a column itself: \"user.parent\".\n"
	 "# link is the same at all names of a source file with several, links is how many there are.\n"
	 "cat '.query/sql/SELECT path, links FROM nodes WHERE link IS NOT NULL.txt'\n"},
	{false,
	 "# Facets: columns, then values, the most frequent first, then columns again (AND).  "
	 "Values:\n"
	 "# @null, @empty; %2F is a slash, %25 a percent sign.  @more-N: N more are not listed.\n"
	 "ls .query/where\n"
	 "ls .query/where/type\n"
	 "# Below a value the other columns are listed, and no more: what is named is found all the same,\n"
	 "# so is @nodes, which no listing has, so that what walks through .query does not meet each node.\n"
	 "cat .query/where/type/f/ext/@values\n"
	 "cat .query/where/type/f/ext.ne/@null/depth.lt/9/@count\n"
	 "# COLUMN.gt .ge .lt .le .ne .like .glob/VALUE; sizes may end in K, M, G or T.  "
	 "under/CHILD is\n"
	 "# what lies under a child of this directory; under/CHILD/under/GRANDCHILD goes further "
	 "down.\n"
	 "ls .query/where/size.gt/1M/name.like/%25a%25\n"
	 "ls .query/where/under\n"
	 "ls .query/where/ext/@null\n"
	 "# Times: 2024-01-31, 2024-01-31T12:00 (UTC), 1 year ago, -30 days, yesterday and today, which begin "
	 "at\n"
	 "# 0:00 UTC, or nanoseconds since 1970; what is no time, or no number, is not found, and .query/error "
	 "says why.\n"
	 "cat '.query/where/mtime.gt/1 year ago/@count'\n"
	 "cat \".query/sql/SELECT count(*) FROM nodes WHERE mtime > 'yesterday'\"\n"
	 "cat \".query/sql/SELECT count(*) FROM nodes WHERE mtime > seconds(unixepoch() - 86400)\"\n"
	 "# At the end: @nodes, symlinks to what is found, and @paths @paths0 @count @result.tsv\n"
	 "# @result.csv @result.json @result.txt.\n"
	 "ls .query/where/type/d/@nodes\n"
	 "cat .query/where/size.ge/1M/@count\n"
	 "ls -lL .query/where/size.gt/1M/@nodes/\n"
	 "xargs -0 printf '%s\\n' < .query/where/type/f/@paths0\n"},
	{true,
	 "# Side tables: a CSV file written here, with a header line, joins with nodes; rm drops it.\n"
	 "printf 'ext,kind\\nc,source\\nh,header\\n' > .query/tables/kinds.csv\n"
	 "cat '.query/sql/SELECT kind, count(*) FROM nodes NATURAL JOIN kinds GROUP BY kind'\n"
	 "rm .query/tables/kinds.csv\n"},
	{true,
	 "# Ranges of paths and GLOB '/a/b*' at once: CREATE INDEX name ON nodes(path); DROP INDEX name.\n"},
	{true,
	 "# A saved query of this directory, kept in the store.  It has result.tsv .csv .json "
	 ".txt,\n"
	 "# paths, paths0, nodes/, plan, error and as_of; sql is its statement.  rmdir forgets it.\n"
	 "# plan tells who ran what of it, and what it would have taken otherwise: on the host or a device,\n"
	 "# by an index or a scan.\n"
	 "mkdir .query/large\n"
	 "echo 'SELECT path, size FROM nodes WHERE size > 1000000 ORDER BY size DESC' > "
	 ".query/large/sql\n"
	 "head .query/large/result.tsv\n"
	 "ls -lL .query/large/nodes/\n"
	 "cat .query/large/plan .query/large/as_of\n"
	 "rmdir .query/large\n"},
	{true,
	 "# Paths to primes, thousands at once: written one a line, read in their order; - for what is not "
	 "there.\n"
	 "# Relative ones begin here.\n"
	 "exec 3<> .query/resolve; printf '/\\n.\\n/nowhere\\n' >&3; cat <&3; exec 3>&-\n"},
	{false,
	 "# In statements resolve(TEXT) has a row for each line of a text: line, path, ino.\n"
	 "# nodes_at('2 days ago') is nodes as it was then, where the mount keeps history (-o history=8w).\n"},
	{false,
	 "# All paths under this directory, its sizes as a picture, figures about the mount, and when it, and\n"
	 "# parts of it, were last compared with their source, and how that is followed; by node: compared.\n"
	 "wc -l .query/paths\n"
	 "cp .query/treemap.svg /tmp/treemap.svg\n"
	 "cat .query/stats .query/as_of\n"},
	{false,
	 "# Paths in answers are those in the store, from its root.  An answer belongs to the open "
	 "that\n"
	 "# made it.  Nothing lists .query: find, du, rsync and backups do not walk into it.\n"
	 "# More: man primefs-query.\n"},
};

static int fill_help(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
		     struct pfs_answer *answer)
{
	bool is_read_only = pfs_tree_is_read_only(call->mount->tree);

	for (size_t i = 0; i < PFS_COUNT(sections); i++) {
		if (sections[i].writes && is_read_only)
			continue;
		PFS_TRY(i ? pfs_answer_text(answer, "\n") : 0);
		PFS_TRY(pfs_answer_text(answer, sections[i].text));
	}
	return is_read_only ? pfs_answer_text(answer, "\n# This mount is read-only: what is "
						      "written to, as .query/run and "
						      ".query/resolve, is left out here.\n")
			    : 0;
}

const struct pfs_virtual_kind pfs_help_kind = {
	.mode = S_IFREG | 0400,
	.fill = fill_help,
};
