-- primefs store, schema version 3 (docs/FORMAT.md).  The program compares a store's schema with
-- this text word for word when it opens one: a change here is a new version.  A newer version may
-- only add to the one before: tables, and columns at the end of a table that may be NULL
-- (meta/version.c brings stores up to it without touching their rows).
CREATE TABLE meta (
	id INTEGER PRIMARY KEY,
	seed INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	next_directory INTEGER NOT NULL,
	next_other INTEGER NOT NULL,
	directories INTEGER NOT NULL,
	others INTEGER NOT NULL,
	end_slot INTEGER NOT NULL,
	feed_start INTEGER NOT NULL,
	handle BLOB,
	birth ANY,
	token BLOB,
	feed_token BLOB
) STRICT;
CREATE TABLE node (
	prime INTEGER PRIMARY KEY,
	parent INTEGER,
	slot INTEGER NOT NULL,
	mode INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	gid INTEGER NOT NULL,
	flags INTEGER NOT NULL,
	size INTEGER NOT NULL,
	blocks INTEGER NOT NULL,
	mtime ANY NOT NULL,
	atime ANY NOT NULL,
	ctime ANY NOT NULL,
	name BLOB NOT NULL,
	rdev INTEGER,
	target BLOB
) STRICT;
CREATE TABLE chunk (
	id INTEGER PRIMARY KEY,
	prime INTEGER NOT NULL,
	n INTEGER NOT NULL,
	data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX chunk_place ON chunk (prime, n);
CREATE TABLE orphan (
	prime INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE attr_name (
	id INTEGER PRIMARY KEY,
	name BLOB NOT NULL UNIQUE,
	type INTEGER
) STRICT;
CREATE TABLE attr (
	prime INTEGER NOT NULL,
	name INTEGER NOT NULL,
	value ANY NOT NULL,
	PRIMARY KEY (prime, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE source_root (
	id INTEGER PRIMARY KEY,
	path BLOB NOT NULL,
	dev INTEGER NOT NULL,
	ino INTEGER NOT NULL,
	handle BLOB,
	birth ANY,
	mode INTEGER,
	uid INTEGER,
	gid INTEGER
) STRICT;
CREATE TABLE source (
	prime INTEGER PRIMARY KEY,
	root INTEGER NOT NULL,
	path BLOB NOT NULL,
	dev INTEGER NOT NULL,
	ino INTEGER NOT NULL,
	size INTEGER NOT NULL,
	mtime ANY NOT NULL,
	ctime ANY NOT NULL,
	mode INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	gid INTEGER NOT NULL,
	handle BLOB,
	birth ANY
) STRICT;
CREATE TABLE source_dir (
	root INTEGER NOT NULL,
	path BLOB NOT NULL,
	dev INTEGER NOT NULL,
	ino INTEGER NOT NULL,
	handle BLOB,
	birth ANY,
	mode INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	gid INTEGER NOT NULL,
	PRIMARY KEY (root, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE register (
	id INTEGER PRIMARY KEY,
	root INTEGER NOT NULL,
	columns BLOB NOT NULL,
	path_column INTEGER,
	id_column INTEGER,
	parent_column INTEGER,
	name_column INTEGER,
	delimiter BLOB NOT NULL,
	slash BLOB,
	style INTEGER NOT NULL
) STRICT;
CREATE TABLE hard_link (
	prime INTEGER PRIMARY KEY,
	link INTEGER NOT NULL
) STRICT;
CREATE TABLE change (
	seq INTEGER PRIMARY KEY,
	primes BLOB NOT NULL,
	token BLOB
) STRICT;
CREATE TABLE side_table (
	id INTEGER PRIMARY KEY,
	name BLOB NOT NULL UNIQUE,
	columns BLOB NOT NULL
) STRICT;
CREATE TABLE path_index (
	id INTEGER PRIMARY KEY,
	name BLOB NOT NULL UNIQUE,
	definition BLOB NOT NULL
) STRICT;
