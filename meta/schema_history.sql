-- What a store has besides schema.sql while it keeps history (docs/FORMAT.md): all of it or nothing.
-- The program compares it word for word, too.
CREATE TABLE history (
	id INTEGER PRIMARY KEY,
	keep_time INTEGER NOT NULL,
	keep_size INTEGER NOT NULL,
	since_seq INTEGER NOT NULL,
	since INTEGER NOT NULL
) STRICT;
CREATE TABLE history_group (
	seq INTEGER PRIMARY KEY,
	time INTEGER NOT NULL,
	former INTEGER NOT NULL,
	size INTEGER NOT NULL
) STRICT;
CREATE TABLE history_node (
	seq INTEGER NOT NULL,
	prime INTEGER NOT NULL,
	parent INTEGER,
	slot INTEGER,
	mode INTEGER,
	uid INTEGER,
	gid INTEGER,
	flags INTEGER,
	size INTEGER,
	blocks INTEGER,
	mtime ANY,
	atime ANY,
	ctime ANY,
	name BLOB,
	rdev INTEGER,
	target BLOB,
	PRIMARY KEY (seq, prime)
) STRICT, WITHOUT ROWID;
CREATE TABLE history_attr (
	seq INTEGER NOT NULL,
	prime INTEGER NOT NULL,
	name INTEGER NOT NULL,
	value ANY,
	PRIMARY KEY (seq, prime, name)
) STRICT, WITHOUT ROWID;
