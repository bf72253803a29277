-- SPDX-License-Identifier: MIT
-- Statements whose rows over the tree must equal SQLite's over a copy of its rows, one a line.  "= " in
-- front: in this order, too, which is so for each whose rows an ORDER BY, a GROUP BY or a compound puts into one.
SELECT path FROM nodes WHERE size = 0
SELECT path FROM nodes WHERE size <> 0
SELECT path FROM nodes WHERE size < 0
SELECT path FROM nodes WHERE size <= 0
SELECT path FROM nodes WHERE size > 0
SELECT path FROM nodes WHERE size >= 0
SELECT path FROM nodes WHERE size = 100
SELECT path FROM nodes WHERE size <> 100
SELECT path FROM nodes WHERE size < 100
SELECT path FROM nodes WHERE size <= 100
SELECT path FROM nodes WHERE size > 100
SELECT path FROM nodes WHERE size >= 100
SELECT path FROM nodes WHERE size = 4096
SELECT path FROM nodes WHERE size <> 4096
SELECT path FROM nodes WHERE size < 4096
SELECT path FROM nodes WHERE size <= 4096
SELECT path FROM nodes WHERE size > 4096
SELECT path FROM nodes WHERE size >= 4096
SELECT path FROM nodes WHERE size = -1
SELECT path FROM nodes WHERE size <> -1
SELECT path FROM nodes WHERE size < -1
SELECT path FROM nodes WHERE size <= -1
SELECT path FROM nodes WHERE size > -1
SELECT path FROM nodes WHERE size >= -1
SELECT path FROM nodes WHERE size = 100.5
SELECT path FROM nodes WHERE size <> 100.5
SELECT path FROM nodes WHERE size < 100.5
SELECT path FROM nodes WHERE size <= 100.5
SELECT path FROM nodes WHERE size > 100.5
SELECT path FROM nodes WHERE size >= 100.5
SELECT path FROM nodes WHERE size = 1e300
SELECT path FROM nodes WHERE size <> 1e300
SELECT path FROM nodes WHERE size < 1e300
SELECT path FROM nodes WHERE size <= 1e300
SELECT path FROM nodes WHERE size > 1e300
SELECT path FROM nodes WHERE size >= 1e300
SELECT path FROM nodes WHERE size = -1e300
SELECT path FROM nodes WHERE size <> -1e300
SELECT path FROM nodes WHERE size < -1e300
SELECT path FROM nodes WHERE size <= -1e300
SELECT path FROM nodes WHERE size > -1e300
SELECT path FROM nodes WHERE size >= -1e300
SELECT path FROM nodes WHERE size = NULL
SELECT path FROM nodes WHERE size <> NULL
SELECT path FROM nodes WHERE size < NULL
SELECT path FROM nodes WHERE size <= NULL
SELECT path FROM nodes WHERE size > NULL
SELECT path FROM nodes WHERE size >= NULL
SELECT path FROM nodes WHERE size = '100'
SELECT path FROM nodes WHERE size <> '100'
SELECT path FROM nodes WHERE size < '100'
SELECT path FROM nodes WHERE size <= '100'
SELECT path FROM nodes WHERE size > '100'
SELECT path FROM nodes WHERE size >= '100'
SELECT path FROM nodes WHERE size = '1e2'
SELECT path FROM nodes WHERE size <> '1e2'
SELECT path FROM nodes WHERE size < '1e2'
SELECT path FROM nodes WHERE size <= '1e2'
SELECT path FROM nodes WHERE size > '1e2'
SELECT path FROM nodes WHERE size >= '1e2'
SELECT path FROM nodes WHERE size = 'abc'
SELECT path FROM nodes WHERE size <> 'abc'
SELECT path FROM nodes WHERE size < 'abc'
SELECT path FROM nodes WHERE size <= 'abc'
SELECT path FROM nodes WHERE size > 'abc'
SELECT path FROM nodes WHERE size >= 'abc'
SELECT path FROM nodes WHERE size = x'31'
SELECT path FROM nodes WHERE size <> x'31'
SELECT path FROM nodes WHERE size < x'31'
SELECT path FROM nodes WHERE size <= x'31'
SELECT path FROM nodes WHERE size > x'31'
SELECT path FROM nodes WHERE size >= x'31'
SELECT path FROM nodes WHERE size = 9223372036854775807
SELECT path FROM nodes WHERE size <> 9223372036854775807
SELECT path FROM nodes WHERE size < 9223372036854775807
SELECT path FROM nodes WHERE size <= 9223372036854775807
SELECT path FROM nodes WHERE size > 9223372036854775807
SELECT path FROM nodes WHERE size >= 9223372036854775807
SELECT path FROM nodes WHERE size = (SELECT 100)
SELECT path FROM nodes WHERE size <> (SELECT 100)
SELECT path FROM nodes WHERE size < (SELECT 100)
SELECT path FROM nodes WHERE size <= (SELECT 100)
SELECT path FROM nodes WHERE size > (SELECT 100)
SELECT path FROM nodes WHERE size >= (SELECT 100)
SELECT path FROM nodes WHERE depth = 0
SELECT path FROM nodes WHERE depth < 0
SELECT path FROM nodes WHERE depth < 2
SELECT path FROM nodes WHERE depth >= 2
SELECT path FROM nodes WHERE depth >= 2.0
SELECT path FROM nodes WHERE depth IS 2.0
SELECT path FROM nodes WHERE depth = 1.5
SELECT path FROM nodes WHERE depth < 1.5
SELECT path FROM nodes WHERE depth < '2'
SELECT path FROM nodes WHERE depth >= '2'
SELECT path FROM nodes WHERE ino = 2
SELECT path FROM nodes WHERE ino < 2
SELECT path FROM nodes WHERE ino < 3
SELECT path FROM nodes WHERE ino >= 3
SELECT path FROM nodes WHERE ino >= '3'
SELECT path FROM nodes WHERE ino IS '3'
SELECT path FROM nodes WHERE ino = 2.0
SELECT path FROM nodes WHERE ino < 2.0
SELECT path FROM nodes WHERE ino < NULL
SELECT path FROM nodes WHERE ino >= NULL
SELECT path FROM nodes WHERE parent = 2
SELECT path FROM nodes WHERE parent < 2
SELECT path FROM nodes WHERE parent < NULL
SELECT path FROM nodes WHERE parent >= NULL
SELECT path FROM nodes WHERE uid = 0
SELECT path FROM nodes WHERE uid < 0
SELECT path FROM nodes WHERE uid < 'root'
SELECT path FROM nodes WHERE uid >= 'root'
SELECT ino FROM nodes WHERE name = 'c'
SELECT ino FROM nodes WHERE name <> 'd1'
SELECT ino FROM nodes WHERE name < 'd'
SELECT ino FROM nodes WHERE name >= 'f'
SELECT ino FROM nodes WHERE name IS NULL
SELECT ino FROM nodes WHERE name IS NOT NULL
SELECT ino FROM nodes WHERE name IS 'c'
SELECT ino FROM nodes WHERE name = 5
SELECT ino FROM nodes WHERE name > 5
SELECT ino FROM nodes WHERE name < x'41'
SELECT ino FROM nodes WHERE name = NULL
SELECT ino FROM nodes WHERE name GLOB '*1*'
SELECT ino FROM nodes WHERE name GLOB 'd*'
SELECT ino FROM nodes WHERE name GLOB '*c'
SELECT ino FROM nodes WHERE name GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE name LIKE 'D%'
SELECT ino FROM nodes WHERE name LIKE '%1%'
SELECT ino FROM nodes WHERE name LIKE '_1'
SELECT ino FROM nodes WHERE name NOT LIKE '%a%'
SELECT ino FROM nodes WHERE name GLOB NULL
SELECT ino FROM nodes WHERE name LIKE 5
SELECT ino FROM nodes WHERE ext = 'c'
SELECT ino FROM nodes WHERE ext <> 'd1'
SELECT ino FROM nodes WHERE ext < 'd'
SELECT ino FROM nodes WHERE ext >= 'f'
SELECT ino FROM nodes WHERE ext IS NULL
SELECT ino FROM nodes WHERE ext IS NOT NULL
SELECT ino FROM nodes WHERE ext IS 'c'
SELECT ino FROM nodes WHERE ext = 5
SELECT ino FROM nodes WHERE ext > 5
SELECT ino FROM nodes WHERE ext < x'41'
SELECT ino FROM nodes WHERE ext = NULL
SELECT ino FROM nodes WHERE ext GLOB '*1*'
SELECT ino FROM nodes WHERE ext GLOB 'd*'
SELECT ino FROM nodes WHERE ext GLOB '*c'
SELECT ino FROM nodes WHERE ext GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE ext LIKE 'D%'
SELECT ino FROM nodes WHERE ext LIKE '%1%'
SELECT ino FROM nodes WHERE ext LIKE '_1'
SELECT ino FROM nodes WHERE ext NOT LIKE '%a%'
SELECT ino FROM nodes WHERE ext GLOB NULL
SELECT ino FROM nodes WHERE ext LIKE 5
SELECT ino FROM nodes WHERE path = 'c'
SELECT ino FROM nodes WHERE path <> 'd1'
SELECT ino FROM nodes WHERE path < 'd'
SELECT ino FROM nodes WHERE path >= 'f'
SELECT ino FROM nodes WHERE path IS NULL
SELECT ino FROM nodes WHERE path IS NOT NULL
SELECT ino FROM nodes WHERE path IS 'c'
SELECT ino FROM nodes WHERE path = 5
SELECT ino FROM nodes WHERE path > 5
SELECT ino FROM nodes WHERE path < x'41'
SELECT ino FROM nodes WHERE path = NULL
SELECT ino FROM nodes WHERE path GLOB '*1*'
SELECT ino FROM nodes WHERE path GLOB 'd*'
SELECT ino FROM nodes WHERE path GLOB '*c'
SELECT ino FROM nodes WHERE path GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE path LIKE 'D%'
SELECT ino FROM nodes WHERE path LIKE '%1%'
SELECT ino FROM nodes WHERE path LIKE '_1'
SELECT ino FROM nodes WHERE path NOT LIKE '%a%'
SELECT ino FROM nodes WHERE path GLOB NULL
SELECT ino FROM nodes WHERE path LIKE 5
SELECT ino FROM nodes WHERE type = 'c'
SELECT ino FROM nodes WHERE type <> 'd1'
SELECT ino FROM nodes WHERE type < 'd'
SELECT ino FROM nodes WHERE type >= 'f'
SELECT ino FROM nodes WHERE type IS NULL
SELECT ino FROM nodes WHERE type IS NOT NULL
SELECT ino FROM nodes WHERE type IS 'c'
SELECT ino FROM nodes WHERE type = 5
SELECT ino FROM nodes WHERE type > 5
SELECT ino FROM nodes WHERE type < x'41'
SELECT ino FROM nodes WHERE type = NULL
SELECT ino FROM nodes WHERE type GLOB '*1*'
SELECT ino FROM nodes WHERE type GLOB 'd*'
SELECT ino FROM nodes WHERE type GLOB '*c'
SELECT ino FROM nodes WHERE type GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE type LIKE 'D%'
SELECT ino FROM nodes WHERE type LIKE '%1%'
SELECT ino FROM nodes WHERE type LIKE '_1'
SELECT ino FROM nodes WHERE type NOT LIKE '%a%'
SELECT ino FROM nodes WHERE type GLOB NULL
SELECT ino FROM nodes WHERE type LIKE 5
SELECT ino FROM nodes WHERE target = 'c'
SELECT ino FROM nodes WHERE target <> 'd1'
SELECT ino FROM nodes WHERE target < 'd'
SELECT ino FROM nodes WHERE target >= 'f'
SELECT ino FROM nodes WHERE target IS NULL
SELECT ino FROM nodes WHERE target IS NOT NULL
SELECT ino FROM nodes WHERE target IS 'c'
SELECT ino FROM nodes WHERE target = 5
SELECT ino FROM nodes WHERE target > 5
SELECT ino FROM nodes WHERE target < x'41'
SELECT ino FROM nodes WHERE target = NULL
SELECT ino FROM nodes WHERE target GLOB '*1*'
SELECT ino FROM nodes WHERE target GLOB 'd*'
SELECT ino FROM nodes WHERE target GLOB '*c'
SELECT ino FROM nodes WHERE target GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE target LIKE 'D%'
SELECT ino FROM nodes WHERE target LIKE '%1%'
SELECT ino FROM nodes WHERE target LIKE '_1'
SELECT ino FROM nodes WHERE target NOT LIKE '%a%'
SELECT ino FROM nodes WHERE target GLOB NULL
SELECT ino FROM nodes WHERE target LIKE 5
SELECT ino FROM nodes WHERE tag = 'c'
SELECT ino FROM nodes WHERE tag <> 'd1'
SELECT ino FROM nodes WHERE tag < 'd'
SELECT ino FROM nodes WHERE tag >= 'f'
SELECT ino FROM nodes WHERE tag IS NULL
SELECT ino FROM nodes WHERE tag IS NOT NULL
SELECT ino FROM nodes WHERE tag IS 'c'
SELECT ino FROM nodes WHERE tag = 5
SELECT ino FROM nodes WHERE tag > 5
SELECT ino FROM nodes WHERE tag < x'41'
SELECT ino FROM nodes WHERE tag = NULL
SELECT ino FROM nodes WHERE tag GLOB '*1*'
SELECT ino FROM nodes WHERE tag GLOB 'd*'
SELECT ino FROM nodes WHERE tag GLOB '*c'
SELECT ino FROM nodes WHERE tag GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE tag LIKE 'D%'
SELECT ino FROM nodes WHERE tag LIKE '%1%'
SELECT ino FROM nodes WHERE tag LIKE '_1'
SELECT ino FROM nodes WHERE tag NOT LIKE '%a%'
SELECT ino FROM nodes WHERE tag GLOB NULL
SELECT ino FROM nodes WHERE tag LIKE 5
SELECT ino FROM nodes WHERE owner = 'c'
SELECT ino FROM nodes WHERE owner <> 'd1'
SELECT ino FROM nodes WHERE owner < 'd'
SELECT ino FROM nodes WHERE owner >= 'f'
SELECT ino FROM nodes WHERE owner IS NULL
SELECT ino FROM nodes WHERE owner IS NOT NULL
SELECT ino FROM nodes WHERE owner IS 'c'
SELECT ino FROM nodes WHERE owner = 5
SELECT ino FROM nodes WHERE owner > 5
SELECT ino FROM nodes WHERE owner < x'41'
SELECT ino FROM nodes WHERE owner = NULL
SELECT ino FROM nodes WHERE owner GLOB '*1*'
SELECT ino FROM nodes WHERE owner GLOB 'd*'
SELECT ino FROM nodes WHERE owner GLOB '*c'
SELECT ino FROM nodes WHERE owner GLOB '[a-f]?*'
SELECT ino FROM nodes WHERE owner LIKE 'D%'
SELECT ino FROM nodes WHERE owner LIKE '%1%'
SELECT ino FROM nodes WHERE owner LIKE '_1'
SELECT ino FROM nodes WHERE owner NOT LIKE '%a%'
SELECT ino FROM nodes WHERE owner GLOB NULL
SELECT ino FROM nodes WHERE owner LIKE 5
SELECT count(*) FROM nodes
SELECT count(*) FROM nodes WHERE size > 100
SELECT count(ext), count(DISTINCT ext), min(ext), max(name) FROM nodes
= SELECT ext, count(*), sum(size), avg(size), min(name), max(path) FROM nodes GROUP BY ext
= SELECT type, total(size) FROM nodes GROUP BY type HAVING count(*) > 2
= SELECT depth, group_concat(type) FROM (SELECT depth, type FROM nodes ORDER BY ino) GROUP BY depth
SELECT length(group_concat(name)), count(*) FROM nodes
= SELECT type, length(group_concat(name, '; ')) FROM nodes WHERE size >= 0 GROUP BY type
SELECT length(group_concat(ino)) FROM nodes WHERE ino IN (2, 3, 5)
= SELECT type, length(group_concat(name)) FROM nodes WHERE size < 1000 GROUP BY type ORDER BY type DESC
= SELECT type, length(group_concat(name)) FROM nodes WHERE size < 1000 GROUP BY type UNION ALL SELECT 'x', 'y' ORDER BY 1 DESC
= SELECT parent, count(*) FROM nodes GROUP BY parent HAVING group_concat(name COLLATE NOCASE) = 'A'
= SELECT printf('%d kB', size / 1000), count(*) FROM nodes GROUP BY 1
SELECT DISTINCT format('%o', mode) FROM nodes
= SELECT type, printf('%.1f%%', avg(size) / 100) FROM nodes GROUP BY type HAVING printf('%d', count(*)) > '1'
= SELECT count(*) FROM nodes a LEFT JOIN nodes b ON b.ino = a.parent GROUP BY printf('%5d', b.size)
= SELECT printf('%s: %d, %x', ext, count(*), sum(size)), min(name) FROM nodes GROUP BY ext
= SELECT format('%-5s|%!6.2s|', type, upper(type)), count(*) FROM nodes GROUP BY 1
= SELECT printf('%s by %s', a.name, b.name), count(*) FROM nodes a LEFT JOIN nodes b ON b.ino = a.parent GROUP BY 1
SELECT DISTINCT printf('%s of %d', printf('<%s>', tag), size / 100) FROM nodes
SELECT count(DISTINCT printf('%s %s', k, n)) FROM side
SELECT count(DISTINCT printf('%s', score)), count(DISTINCT printf('%d', name)) FROM nodes
SELECT length(printf('%d-%d', size / 2, size / 2)) AS n, count(*) FROM nodes GROUP BY n
SELECT count(DISTINCT printf('%s in %s', name, path)) FROM nodes
SELECT count(DISTINCT printf('%d', size, ino)), count(DISTINCT printf('%s %d', name)) FROM nodes
SELECT count(*) FROM nodes WHERE printf('%d', size) = '100'
= SELECT path FROM nodes ORDER BY path
= SELECT path FROM nodes ORDER BY path DESC LIMIT 7 OFFSET 3
= SELECT ino FROM nodes ORDER BY ino
= SELECT ino, name FROM nodes ORDER BY ino DESC LIMIT 10
= SELECT name, ino FROM nodes ORDER BY name, ino
= SELECT size, path FROM nodes ORDER BY size DESC, path LIMIT 20
= SELECT ext, path FROM nodes ORDER BY ext NULLS LAST, path
= SELECT name FROM nodes WHERE ino IN (3, 5, 7) ORDER BY ino
= SELECT path FROM nodes WHERE under(ino, '/') ORDER BY path LIMIT 5
= SELECT ino FROM nodes WHERE type IN ('d', 'l') ORDER BY ino
= SELECT path, row_number() OVER (ORDER BY path) FROM nodes ORDER BY path
SELECT path FROM nodes WHERE ino IN (2, 3, NULL)
SELECT path FROM nodes WHERE ino IN (SELECT parent FROM nodes WHERE type = 'f')
SELECT path FROM nodes WHERE ino NOT IN (SELECT parent FROM nodes WHERE parent IS NOT NULL)
SELECT path FROM nodes WHERE ino IN ('3', 5.0, 'x')
SELECT path FROM nodes WHERE name IN ('c', 'd1', 'f2')
SELECT path FROM nodes WHERE name NOT IN ('c', 'd1', 'f2')
SELECT path FROM nodes WHERE type IN ('d')
SELECT path, ext IN (SELECT n FROM side) FROM nodes
SELECT path FROM nodes WHERE ext IN (SELECT n FROM side)
SELECT path FROM nodes JOIN bare ON v = depth WHERE ext IN (SELECT n FROM side WHERE n < v + 1)
SELECT path FROM nodes WHERE ext IN (SELECT w COLLATE NOCASE FROM bare WHERE v = 2)
SELECT path FROM nodes WHERE ext IN (SELECT upper(w) COLLATE NOCASE FROM bare WHERE v = 2)
SELECT path FROM nodes WHERE type IN (SELECT 'D' COLLATE NOCASE)
SELECT path FROM nodes WHERE type IN (SELECT w FROM bare UNION SELECT 'd')
SELECT path FROM nodes WHERE ext IN (VALUES (1), ('c'))
SELECT path FROM nodes WHERE ext IN (WITH s(n) AS (SELECT n FROM side) SELECT n FROM s)
WITH s(n) AS (SELECT n FROM side) SELECT path FROM nodes WHERE ext IN s
SELECT path FROM nodes WHERE (ext, depth) IN (SELECT n, n FROM side)
SELECT path FROM nodes WHERE ext IN (1, 'c')
SELECT path FROM nodes WHERE ext = (SELECT min(n) FROM side)
SELECT path FROM nodes WHERE ext = (SELECT n FROM side WHERE n = 1)
SELECT path FROM nodes WHERE ext IN ('c', 'txt') AND size BETWEEN 10 AND 5000
SELECT path FROM nodes WHERE size BETWEEN 100 AND 50
SELECT path FROM nodes WHERE size NOT BETWEEN 100 AND 1000
SELECT path FROM nodes WHERE name BETWEEN 'd' AND 'e'
SELECT path FROM nodes WHERE name >= 'd' AND name < 'f' AND name GLOB 'd*'
SELECT path FROM nodes WHERE name BETWEEN 'd' AND 'e' AND name GLOB 'd1*'
SELECT path FROM nodes WHERE name GLOB 'd*' AND name < 'd1' AND name < 'd'
SELECT path FROM nodes WHERE name GLOB 'd*' AND name >= 'd1' AND name > 'd'
SELECT path FROM nodes WHERE name = 'd1' AND name > 'a' AND name < 'd10'
SELECT path FROM nodes WHERE name = 'd1' AND name > 'd1'
SELECT path FROM nodes WHERE name = 'd1' AND name >= 'd1' AND name <= 'd1'
SELECT path FROM nodes WHERE name > 'd1' AND name < 'd1'
SELECT path FROM nodes WHERE name > 'f' AND name < 'd'
SELECT path FROM nodes WHERE name > 'c' AND name < 'f' AND name >= 'd' AND name <= 'e' AND name > 'd1'
SELECT path FROM nodes WHERE size > 10 AND size < 5000 AND size >= 100 AND size <= 1e3
SELECT path FROM nodes WHERE depth > 1 AND depth < 3 AND depth <> 2
SELECT path FROM nodes WHERE type >= 'd' AND type <= 'f'
SELECT path FROM nodes WHERE path > '/d1/' AND path < '/d10'
SELECT path FROM nodes WHERE path BETWEEN '/d1/' AND '/d1/d' AND path GLOB '/d1/*'
SELECT path FROM nodes WHERE size > 100 OR depth = 1
SELECT path FROM nodes WHERE ino = 3 OR ino = 5 OR path = '/'
SELECT path FROM nodes WHERE NOT (size > 100 AND depth > 1)
SELECT path FROM nodes WHERE (depth, type) = (1, 'd')
SELECT path FROM nodes WHERE (depth, size) > (2, 100)
SELECT path FROM nodes WHERE size % 7 = 0 AND length(name) > 1
SELECT path FROM nodes WHERE path GLOB '/d1/*'
SELECT path FROM nodes WHERE path GLOB '/*'
SELECT path FROM nodes WHERE path GLOB '/d1*'
SELECT path FROM nodes WHERE path GLOB '/d1/d*/f?'
SELECT path FROM nodes WHERE path GLOB '/d1/./*'
SELECT path FROM nodes WHERE path GLOB '//*'
SELECT path FROM nodes WHERE path GLOB '/nowhere/*'
SELECT path FROM nodes WHERE path GLOB '*/f1'
SELECT path FROM nodes WHERE path GLOB 'd1/*'
SELECT path FROM nodes WHERE path GLOB ''
SELECT path FROM nodes WHERE path LIKE '/D1/%'
SELECT path FROM nodes WHERE path LIKE '%/F%'
SELECT path FROM nodes WHERE name LIKE '%\_%' ESCAPE '\'
SELECT path FROM nodes WHERE name LIKE name
SELECT path FROM nodes WHERE name GLOB ext
SELECT path FROM nodes WHERE 'd1' GLOB name
SELECT path FROM nodes WHERE path = '/d1/'
SELECT path FROM nodes WHERE path = '/'
SELECT path FROM nodes WHERE path > '/d' AND path < '/e'
SELECT path FROM nodes WHERE name = 'C' COLLATE NOCASE
SELECT path FROM nodes WHERE name COLLATE NOCASE IN ('C', 'D1')
SELECT path FROM nodes WHERE name > 'D' COLLATE NOCASE
SELECT path FROM nodes WHERE name = 'c ' COLLATE RTRIM
SELECT path FROM nodes WHERE size = CAST('100' AS TEXT)
SELECT path FROM nodes WHERE name = CAST('5' AS INTEGER)
SELECT path FROM nodes WHERE CAST(size AS TEXT) = '100'
SELECT path FROM nodes WHERE +size = '100'
SELECT path FROM nodes WHERE size = +'100'
SELECT path FROM nodes WHERE name = size
SELECT path FROM nodes WHERE name < size
SELECT path FROM nodes WHERE size < name
SELECT path FROM nodes WHERE stars > 3
SELECT path FROM nodes WHERE stars = '5'
SELECT path, stars, score, tag FROM nodes WHERE tag IS NOT NULL OR stars IS NOT NULL
= SELECT tag, sum(stars), avg(score) FROM nodes GROUP BY tag
= SELECT typeof(stars), typeof(score), count(*) FROM nodes GROUP BY 1, 2
SELECT path FROM nodes WHERE score > 1 AND score < '3'
SELECT "user.size" FROM nodes WHERE "user.size" > 5
SELECT a.path, b.path FROM nodes a JOIN nodes b ON b.parent = a.ino
SELECT a.path, b.path FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino AND b.size > 100
SELECT a.path, b.path FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino WHERE b.ino IS NULL
SELECT a.path, b.path FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino WHERE b.name IS NULL AND a.type = 'd'
SELECT a.path FROM nodes a LEFT JOIN nodes b USING (parent) WHERE b.name = 'c'
= SELECT a.name, count(b.ino) FROM nodes a LEFT JOIN nodes b ON b.parent = a.ino GROUP BY a.ino
SELECT a.path FROM nodes a, nodes b WHERE a.name = b.name AND a.ino <> b.ino
SELECT a.path FROM nodes a CROSS JOIN nodes b ON a.size = b.size AND a.ino < b.ino WHERE b.type = 'f'
SELECT count(*) FROM nodes a NATURAL JOIN nodes b
SELECT a.path, b.path FROM nodes a RIGHT JOIN nodes b ON a.ino = b.parent
SELECT a.ino, b.ino FROM nodes a FULL JOIN nodes b ON a.ino = b.parent WHERE a.depth < 3 OR b.depth < 3
SELECT a.path FROM nodes a WHERE EXISTS (SELECT 1 FROM nodes b WHERE b.parent = a.ino AND b.ext = 'c')
SELECT a.path FROM nodes a WHERE NOT EXISTS (SELECT 1 FROM nodes b WHERE b.parent = a.ino)
SELECT path, (SELECT count(*) FROM nodes b WHERE b.parent = a.ino) FROM nodes a
SELECT path, (SELECT max(b.size) FROM nodes b WHERE under(b.ino, a.ino)) FROM nodes a WHERE depth < 3
SELECT path FROM nodes WHERE under(ino, '/d1')
SELECT path FROM nodes WHERE under(ino, 'd1')
SELECT path FROM nodes WHERE under(ino, '/nowhere')
SELECT path FROM nodes WHERE under(ino, NULL)
SELECT path FROM nodes WHERE under(ino, 2) AND type = 'f'
SELECT path FROM nodes WHERE NOT under(ino, '/d1')
SELECT path FROM nodes WHERE under(ino, '/d1') = 0
SELECT path FROM nodes WHERE under(parent, '/d1')
SELECT path FROM nodes WHERE under(2, ino)
SELECT path FROM nodes WHERE under(ino, '/d1') OR under(ino, '/d2')
SELECT path FROM nodes WHERE under(ino, '/d1') AND NOT child_of(ino, '/d1')
SELECT path FROM nodes WHERE child_of(ino, '/')
SELECT path FROM nodes WHERE child_of(ino, 3)
SELECT path FROM nodes WHERE ancestor_of(ino, '/d1/d2')
SELECT path FROM nodes WHERE ancestor_of(ino, '/')
SELECT a.path, b.path FROM nodes a, nodes b WHERE ancestor_of(a.ino, b.ino) AND b.type = 'f' AND b.size > 1000
= SELECT a.path, count(*) FROM nodes a JOIN nodes b ON under(b.ino, a.ino) WHERE a.type = 'd' GROUP BY a.ino
SELECT a.path, b.path FROM nodes a LEFT JOIN nodes b ON child_of(b.ino, a.ino) AND b.type = 'd'
SELECT common_ancestor(ino) FROM nodes WHERE depth = 3
= SELECT ext, common_ancestor(ino) FROM nodes GROUP BY ext
SELECT ino_of(path) = ino FROM nodes
SELECT path_of(ino) = path FROM nodes
SELECT path_of(parent), name FROM nodes
SELECT common_ancestor(ino, '/d1') FROM nodes
SELECT DISTINCT type, uid FROM nodes
SELECT DISTINCT ext FROM nodes WHERE size > 10
= SELECT name FROM nodes UNION SELECT ext FROM nodes
= SELECT depth, count(*), sum(subtree_size), max(subtree_count), min(subtree_mtime) FROM nodes GROUP BY depth
= SELECT subtree_count, count(*) FROM nodes WHERE subtree_blocks >= 0 AND depth < 3 GROUP BY subtree_count
= SELECT n, sum(subtree_size) FROM side JOIN nodes ON name = k GROUP BY n
SELECT n, k, subtree_count FROM side LEFT JOIN nodes ON name = k AND subtree_count > 1
= SELECT d.subtree_size, count(*) FROM nodes f JOIN nodes d ON f.parent = d.ino GROUP BY d.ino
= SELECT s + 1, count(*) FROM (SELECT subtree_count AS s FROM nodes WHERE type = 'd') GROUP BY 1
SELECT DISTINCT subtree_count FROM nodes WHERE subtree_count * 2 > 5
SELECT path FROM (SELECT path, subtree_count AS c FROM nodes WHERE subtree_size > 0) WHERE c + 1 > 3
SELECT sum(c) FROM (SELECT subtree_count AS c FROM nodes WHERE ino = 2)
SELECT count(*) FROM nodes WHERE instr(name, 'f1') > 0
SELECT count(*), sum(size) FROM nodes WHERE instr(tag, 'e') = 0
SELECT path FROM nodes WHERE 1 <= instr(ext, 't')
SELECT ino FROM nodes WHERE instr(name, '') <> 0 AND instr(name, '.') < 1
SELECT count(*) FROM nodes WHERE replace(name, 'f', '') = name
SELECT path FROM nodes WHERE tag <> replace(tag, 'e', 'o')
SELECT count(*) FROM nodes WHERE replace(ext, 'c', 'c') = ext OR replace(ext, 't', 'T') = ext COLLATE NOCASE
SELECT count(*) FROM nodes WHERE replace(tag, 'r', '') IS tag AND replace(name, '1', '') <> ext
SELECT count(*) FROM cased WHERE replace(w, 'c', 'C') = w
= SELECT instr(name, '1') > 0, 0 < instr(tag, 'r'), count(*) FROM nodes GROUP BY 1, 2
= SELECT ext, count(*) FROM nodes GROUP BY ext HAVING instr(ext, 'x') >= 1
= SELECT n, count(*) FROM side JOIN nodes USING (ext) WHERE instr(k, 'd') > 0 OR instr(name, '2') <= 0 GROUP BY n
= SELECT name FROM nodes EXCEPT SELECT name FROM nodes WHERE type = 'd'
= SELECT ino FROM nodes WHERE type = 'd' EXCEPT SELECT parent FROM nodes
= SELECT name, size FROM nodes WHERE depth > 1 INTERSECT SELECT name, size FROM nodes WHERE depth < 3
= SELECT name FROM nodes INTERSECT SELECT k FROM side ORDER BY name DESC
= SELECT size FROM nodes EXCEPT SELECT n FROM side
= SELECT type FROM nodes INTERSECT SELECT tag FROM nodes
SELECT count(*) FROM (SELECT ino, name FROM nodes EXCEPT SELECT n, k FROM side)
= SELECT size FROM nodes INTERSECT SELECT length(path) FROM nodes
SELECT name FROM nodes WHERE depth = 1 UNION ALL SELECT name FROM nodes WHERE depth = 2
WITH RECURSIVE t(i, p) AS (SELECT 2, '' UNION ALL SELECT ino, p || '/' || name FROM nodes, t WHERE parent = i) SELECT * FROM t
WITH RECURSIVE up(i) AS (SELECT max(ino) FROM nodes UNION SELECT parent FROM nodes JOIN up ON ino = i WHERE parent IS NOT NULL) SELECT count(*) FROM up
= WITH big AS (SELECT * FROM nodes WHERE size > 500) SELECT type, count(*) FROM big GROUP BY type
WITH a AS MATERIALIZED (SELECT parent, sum(size) s FROM nodes GROUP BY parent) SELECT path, s FROM nodes JOIN a ON nodes.ino = a.parent
SELECT path, rank() OVER (PARTITION BY ext ORDER BY size) FROM nodes
SELECT path, sum(size) OVER (PARTITION BY parent ORDER BY ino ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM nodes
SELECT path, lag(name) OVER w, first_value(name) OVER w FROM nodes WINDOW w AS (PARTITION BY depth ORDER BY ino)
SELECT sum(size) FILTER (WHERE type = 'f') FROM nodes
= SELECT CASE WHEN size > 1000 THEN 'big' WHEN size > 0 THEN 'small' END c, count(*) FROM nodes GROUP BY c
SELECT substr(path, 1, 3), upper(name), length(name), hex(name), instr(path, 'd') FROM nodes
SELECT typeof(path), typeof(ino), typeof(parent), typeof(ext), typeof(mtime), typeof(target) FROM nodes
SELECT max(path), size FROM nodes
SELECT min(size), path FROM nodes WHERE type = 'f' AND size > 3000000
SELECT rowid, ino FROM nodes WHERE rowid = 3
SELECT path FROM nodes WHERE rowid < 30
SELECT nodes.* FROM nodes WHERE depth = 1
SELECT path FROM nodes WHERE mtime > '2020-01-01'
SELECT path FROM nodes WHERE mtime BETWEEN '2001-01-01' AND '2010-06-30T12:00'
SELECT path FROM nodes WHERE '2010-01-01' <= mtime
SELECT path FROM nodes WHERE mtime IN ('2001-09-09T01:46:40Z', 0)
SELECT path FROM nodes WHERE mtime < 'yesterday'
= SELECT strftime('%Y', mtime / 1000000000, 'unixepoch') y, count(*) FROM nodes GROUP BY y
SELECT max(mtime), min(ctime) > 0, count(atime) FROM nodes
SELECT path FROM nodes WHERE mode & 73 = 73
SELECT path FROM nodes WHERE printf('%o', mode) LIKE '%644'
= SELECT owner, owner_group, count(*) FROM nodes GROUP BY 1, 2
SELECT path FROM nodes WHERE owner = 'root' AND uid = 0
SELECT path FROM nodes WHERE size > (SELECT avg(size) FROM nodes)
SELECT path FROM nodes WHERE size = (SELECT max(size) FROM nodes)
SELECT path FROM nodes WHERE size > ALL_ OR 1
SELECT json_group_array(name) FROM (SELECT name FROM nodes WHERE type = 'd' ORDER BY ino)
= SELECT value, count(*) FROM nodes, json_each('["c","txt"]') WHERE ext = value GROUP BY value
SELECT v.column1, path FROM (VALUES ('c'), ('txt')) v JOIN nodes ON ext = column1
SELECT a.path FROM nodes a JOIN (SELECT parent, max(size) m FROM nodes GROUP BY parent) g ON a.parent = g.parent AND a.size = g.m
SELECT path FROM nodes WHERE ext = 'c' AND ext = 'txt'
SELECT path FROM nodes WHERE depth = 2 AND depth = 2.0 AND depth < '3' AND size >= 0 AND size <= 1e9 AND name <> '' AND type <> 'd'
SELECT path FROM nodes WHERE 1 = 0
SELECT path FROM nodes LIMIT 0
SELECT count(*) FROM (SELECT path FROM nodes LIMIT 5)
SELECT count(*) FROM (SELECT path FROM nodes LIMIT -1 OFFSET 5)
= SELECT iif(parent IS NULL, 'top', 'in'), count(*) FROM nodes GROUP BY 1
SELECT path FROM nodes WHERE parent IS (SELECT parent FROM nodes WHERE path = '/')
SELECT path FROM nodes WHERE target = 'c' OR target LIKE 'd%'
= SELECT nlink, count(*) FROM nodes WHERE type = 'd' GROUP BY nlink
SELECT path FROM nodes WHERE name >= 'f' AND name < 'g' AND size > 10
SELECT path FROM nodes WHERE name <= 'f1' AND name > 'd1'
SELECT path FROM nodes WHERE ext >= 'a' AND ext <= 'c'

-- Orders that the image has: sorted, from an index, or down the names.
= SELECT size FROM nodes ORDER BY size
= SELECT size FROM nodes ORDER BY size DESC LIMIT 10
= SELECT size FROM nodes ORDER BY size DESC LIMIT 10
= SELECT size FROM nodes ORDER BY size DESC LIMIT 5 OFFSET 3
= SELECT size FROM nodes ORDER BY size LIMIT -1 OFFSET 100
= SELECT size FROM nodes ORDER BY size LIMIT 0
= SELECT size FROM nodes WHERE size > 4096 ORDER BY size
= SELECT size FROM nodes WHERE size >= 101 AND size < 5000.5 ORDER BY size DESC LIMIT 4
= SELECT size, path FROM nodes WHERE type = 'f' ORDER BY size DESC, path LIMIT 12
= SELECT mtime FROM nodes WHERE type = 'f' ORDER BY mtime LIMIT 6
= SELECT mtime FROM nodes WHERE name GLOB 'f1*' ORDER BY mtime DESC LIMIT 6
= SELECT ext, name FROM nodes ORDER BY ext, name
= SELECT ext FROM nodes ORDER BY ext DESC LIMIT 40
= SELECT name FROM nodes ORDER BY name COLLATE NOCASE, name LIMIT 30
= SELECT parent FROM nodes ORDER BY parent
= SELECT parent FROM nodes ORDER BY parent DESC NULLS FIRST LIMIT 4
= SELECT target FROM nodes ORDER BY target
= SELECT type, depth FROM nodes ORDER BY type DESC, depth
= SELECT path FROM nodes ORDER BY path LIMIT 3
= SELECT path FROM nodes ORDER BY path DESC LIMIT 3
= SELECT path FROM nodes WHERE path GLOB '/d1/*' ORDER BY path LIMIT 5
= SELECT path FROM nodes WHERE size > 100 ORDER BY path DESC LIMIT 2 OFFSET 2
= SELECT path FROM nodes WHERE size > 100 OR name GLOB '*1' ORDER BY path LIMIT 9
= SELECT path FROM nodes ORDER BY preorder
= SELECT path FROM nodes ORDER BY preorder DESC
= SELECT path, hex(preorder) FROM nodes ORDER BY preorder LIMIT 3
= SELECT path FROM nodes ORDER BY preorder DESC LIMIT 3 OFFSET 4
= SELECT path FROM nodes WHERE under(ino, '/d1') ORDER BY preorder
= SELECT path, depth FROM nodes WHERE under(ino, '/d1') AND type = 'd' ORDER BY preorder
= SELECT path FROM nodes WHERE size > 100 OR name GLOB '*1' ORDER BY preorder LIMIT 9
= SELECT size, path FROM nodes ORDER BY size DESC, preorder LIMIT 20
= SELECT path FROM nodes ORDER BY replace(preorder, CAST(x'00' AS TEXT), '/'), ino
SELECT path FROM nodes WHERE preorder > CAST(x'0064' AS TEXT) AND preorder < CAST(x'0065' AS TEXT)
SELECT path FROM nodes WHERE preorder = CAST(x'00' AS TEXT) OR preorder IS NULL
SELECT hex(min(preorder)), hex(max(preorder)) FROM nodes
SELECT hex(min(preorder)) FROM nodes WHERE type = 'f'
= SELECT path, row_number() OVER (ORDER BY preorder) FROM nodes ORDER BY preorder
= SELECT ext, count(*) FROM nodes GROUP BY ext ORDER BY count(*) DESC LIMIT 5
= SELECT ext, count(*) FROM nodes GROUP BY ext ORDER BY min(depth) LIMIT 4
= SELECT type, depth, count(*) FROM nodes GROUP BY type, depth ORDER BY depth DESC
= SELECT depth, size, count(*) FROM nodes GROUP BY depth, size ORDER BY 3, max(uid) DESC LIMIT 9
= SELECT DISTINCT count(*), depth, ext FROM nodes GROUP BY ext, depth ORDER BY 1 DESC LIMIT 7
= SELECT path, count(*) FROM nodes GROUP BY path LIMIT 9
= SELECT path, type, count(*) FROM nodes GROUP BY type, path
= SELECT b.path, count(*) FROM nodes a JOIN nodes b ON a.parent = b.ino GROUP BY b.path ORDER BY 2 DESC LIMIT 7
= SELECT b.path, count(*), max(a.size) FROM nodes a LEFT JOIN nodes b ON a.parent = b.ino GROUP BY b.path ORDER BY b.depth, count(*)
= SELECT a.path, b.ext, count(*) FROM nodes a JOIN nodes b ON b.parent = a.ino GROUP BY a.path, b.ext ORDER BY count(*) DESC, 2 LIMIT 11
= SELECT max(c) FROM (SELECT b.path, count(*) c FROM nodes a JOIN nodes b ON a.parent = b.ino GROUP BY b.path) LIMIT 1
= SELECT DISTINCT ext, depth FROM nodes ORDER BY depth LIMIT 5
= SELECT DISTINCT type, uid, size FROM nodes ORDER BY uid DESC, type LIMIT 9 OFFSET 2
= SELECT DISTINCT depth, ext FROM nodes WHERE size >= 0
= SELECT DISTINCT ext FROM nodes ORDER BY size, depth LIMIT 6
= SELECT DISTINCT n, k FROM side ORDER BY n
= SELECT type, count(stars) FROM nodes GROUP BY type HAVING max(parent) > '1e2' ORDER BY 2 DESC
= SELECT t, sum(n) FROM (SELECT ext AS t, score AS n FROM nodes WHERE uid < 0 UNION ALL SELECT ext, size FROM nodes) GROUP BY t
= SELECT DISTINCT t, n FROM (SELECT ext t, size n, name FROM nodes ORDER BY size DESC, ino LIMIT 30) ORDER BY n LIMIT 8
= SELECT a.ext, max(w.w) FROM nodes a JOIN cased w ON w.v = a.depth GROUP BY 1 ORDER BY max(w.w), 1
= SELECT a.size, min(w.w) m FROM nodes a JOIN cased w ON w.v = a.depth GROUP BY a.size HAVING m > 'a' ORDER BY m DESC LIMIT 5
= SELECT DISTINCT max(w.w) FROM nodes a JOIN cased w ON w.v = a.depth GROUP BY a.size
= SELECT max(w.w) FROM nodes a JOIN cased w ON w.v = a.depth GROUP BY a.ext UNION SELECT 'txt' FROM nodes
= SELECT m, count(*) FROM (SELECT max(w.w) m FROM nodes a JOIN cased w ON w.v = a.depth GROUP BY a.size) GROUP BY m ORDER BY 1 DESC
= SELECT lower(name), count(*) FROM nodes GROUP BY 1 EXCEPT SELECT w, 1 FROM cased
= SELECT ext, count(*) FROM nodes GROUP BY ext UNION SELECT name, 1 FROM nodes ORDER BY 2 DESC LIMIT 20
SELECT min(size), max(size) FROM nodes
SELECT min(size) FROM nodes
SELECT max(mtime) FROM nodes
SELECT min(mtime) FROM nodes WHERE size > 100
SELECT max(size) FROM nodes WHERE name = 'nothing'
SELECT min(parent), max(parent) FROM nodes
SELECT min(parent) FROM nodes
SELECT max(ext) FROM nodes
SELECT min(path) FROM nodes WHERE type = 'f'
SELECT path FROM nodes WHERE size > 8000000000
SELECT path FROM nodes WHERE size > 8000000000
SELECT path FROM nodes WHERE size > 8000000000 AND type = 'f'
= SELECT uid, count(*) FROM nodes GROUP BY uid
= SELECT type, ext, count(*) FROM nodes GROUP BY type, ext ORDER BY type, ext
= SELECT DISTINCT size FROM nodes ORDER BY size DESC
= SELECT path FROM (SELECT path, size FROM nodes ORDER BY size DESC, path LIMIT 10) WHERE size > 100 ORDER BY path
= SELECT a.path, (SELECT max(b.size) FROM nodes b WHERE b.parent = a.ino) FROM nodes a WHERE a.type = 'd' ORDER BY a.path
= SELECT a.size FROM nodes a JOIN nodes b ON b.parent = a.ino ORDER BY a.size DESC LIMIT 6
SELECT path FROM nodes WHERE ino IN (SELECT ino FROM nodes ORDER BY mtime, ino LIMIT 5)
SELECT count(*) FROM nodes
select Count ( * ) from nodes;
SELECT count(*) AS n FROM nodes
SELECT count(*) n FROM nodes
SELECT (SELECT count(*) FROM nodes) - (SELECT count(*) FROM nodes WHERE type = 'd')
SELECT x FROM (SELECT count(*) x FROM nodes)
SELECT count(*) FROM nodes UNION ALL SELECT 1
SELECT count(*) FROM nodes, (SELECT 1 UNION SELECT 2)
WITH nodes AS (SELECT 1) SELECT count(*) FROM nodes
SELECT count(*) FROM (SELECT count(*) FROM nodes)
= WITH big AS (SELECT * FROM nodes WHERE size > 100) SELECT ext, count(*), sum(size) FROM big GROUP BY ext ORDER BY 1
SELECT max(n), min(n) FROM (SELECT parent, count(*) AS n FROM nodes GROUP BY parent)
= SELECT 'dir' AS what, count(*) FROM nodes WHERE type = 'd' UNION ALL SELECT 'other', count(*) FROM nodes WHERE type <> 'd' ORDER BY what
= SELECT name FROM nodes UNION SELECT ext FROM nodes ORDER BY 1
= SELECT name AS size, size FROM nodes UNION SELECT ext, depth FROM nodes ORDER BY size
= SELECT a.path, x.n FROM (SELECT parent, count(*) n FROM nodes GROUP BY parent HAVING n > 2) x JOIN nodes a ON a.ino = x.parent ORDER BY x.n DESC, a.path
SELECT count(*) FROM (SELECT 1 FROM nodes)
SELECT count(*), min(t) FROM (SELECT 'x' t FROM nodes WHERE size > 100 UNION ALL SELECT ext FROM nodes UNION ALL SELECT name FROM nodes)
WITH a AS (SELECT depth d, count(*) n FROM nodes GROUP BY 1), b(e, m) AS (SELECT * FROM a) SELECT d, n, m FROM a JOIN b ON d = e
= WITH nodes AS (SELECT ext, k FROM side) SELECT ext, count(*) FROM nodes GROUP BY ext
WITH c AS (SELECT type FROM nodes) SELECT count(*) FROM c
= SELECT x.d, count(*) FROM nodes LEFT JOIN (SELECT DISTINCT depth d FROM nodes WHERE size > 4096) x ON x.d = depth GROUP BY x.d
SELECT sum(s) FROM (SELECT size s FROM nodes UNION ALL SELECT 2.5 FROM nodes)
SELECT sum(s), count(DISTINCT s) FROM (SELECT size s FROM nodes ORDER BY size, ino LIMIT 7 OFFSET 2)
WITH RECURSIVE up(x) AS (SELECT max(ino) FROM nodes UNION ALL SELECT parent FROM up JOIN nodes ON ino = x WHERE parent IS NOT NULL) SELECT count(*) FROM up
SELECT upper(tag), c, v FROM nodes JOIN (SELECT v, count(*) c FROM bare GROUP BY v) s ON s.v = tag
SELECT upper(tag), c FROM nodes JOIN (SELECT v, max(x) c FROM bare GROUP BY v) s ON s.c = "user.size"
SELECT upper(tag), c FROM nodes JOIN (SELECT ext, count(*) c FROM nodes GROUP BY ext) s ON s.c = tag
SELECT DISTINCT w = 'C', upper(a.name) FROM nodes a JOIN bare b ON b.v = a.depth
SELECT DISTINCT upper(s.w), a.ext FROM nodes a JOIN (SELECT DISTINCT w FROM bare) s ON s.w = a.ext
SELECT (SELECT count(*) FROM nodes) = '151', (SELECT count(*) FROM nodes) || '' = '151'
= SELECT upper(ext) AS ext, count(*) FROM nodes GROUP BY ext HAVING ext > 'd'
= SELECT upper(ext) AS e, count(*) FROM nodes GROUP BY ext HAVING e > 'D'
= SELECT count(*) AS depth, upper(type) FROM nodes WHERE depth = 2 GROUP BY type HAVING depth > 2
= SELECT count(*) AS type, upper(type) FROM nodes GROUP BY type HAVING type > 'd'
= SELECT upper(type) AS kind, count(*) AS n FROM nodes GROUP BY type ORDER BY kind DESC
= SELECT upper(type) AS type, count(*) AS n FROM nodes GROUP BY type ORDER BY type DESC
= SELECT upper(type) AS type, count(*) AS n FROM nodes GROUP BY type ORDER BY type || '' DESC
= SELECT x."count(*)" || '', x."upper(ext)" FROM (SELECT upper(ext), count(*) FROM nodes GROUP BY ext) x ORDER BY 2, 1
= SELECT sum(size), ext FROM nodes GROUP BY ext HAVING upper(name) > 'A'
= SELECT n.ext, n.type, upper(n.ext) FROM nodes n GROUP BY ext, n.type
WITH RECURSIVE t(x) AS (SELECT count(*) FROM nodes GROUP BY type UNION SELECT x / 2 FROM t WHERE x > 1) SELECT * FROM t
= WITH nodes AS (SELECT ext, count(*) size FROM nodes GROUP BY ext) SELECT upper(ext), sum(size) FROM nodes GROUP BY ext
SELECT count(*) || '' FROM (WITH a AS (SELECT ext FROM nodes GROUP BY ext) SELECT upper(ext) FROM a)
= SELECT upper(ext), (SELECT sum(size) FROM nodes m WHERE m.ext = n.ext) FROM nodes n GROUP BY ext
= SELECT ext, 100.0 * count(*) / (SELECT count(*) FROM nodes) FROM nodes GROUP BY ext
= SELECT upper(ext), (SELECT sum(size) FROM nodes), count(*) IN (SELECT count(*) FROM nodes GROUP BY ext) FROM nodes GROUP BY ext
= SELECT upper(ext) || name, (SELECT sum(size) FROM nodes) FROM nodes GROUP BY ext, name
= SELECT upper(type), (SELECT count(*) FROM nodes m WHERE m.type = n.type), (SELECT count(*) FROM nodes) FROM nodes n GROUP BY type
= SELECT n, count(*), sum(size), avg(size), min(size), max(depth), total(size), count(size) FROM nodes JOIN side USING (ext) GROUP BY n
= SELECT k, type, count(*), sum(size) FROM side JOIN nodes USING (ext) WHERE depth > 1 GROUP BY k, type HAVING count(*) > 1
SELECT count(*), sum(size), avg(size), min(size) FROM nodes JOIN side USING (ext) WHERE side.n > 1000000
SELECT count(*), sum(size), avg(size) FROM nodes JOIN side USING (ext)
= SELECT s.k, a.ext, count(*), sum(a.size) FROM nodes a LEFT JOIN side s ON a.ext = s.ext AND a.depth > s.n GROUP BY s.k, a.ext
= SELECT ext, s.ext, count(*), sum(s.n) FROM nodes a LEFT JOIN side s USING (ext) GROUP BY 1, 2
= SELECT ext, s.ext, a.ext, count(*) FROM side s NATURAL LEFT JOIN nodes a WHERE a.ext IS NULL OR depth > 1 GROUP BY 1, 2, 3
SELECT count(*), count(b.ino), sum(b.size) FROM nodes a LEFT JOIN nodes b USING (parent, size) WHERE a.depth > 1
= SELECT ext, count(*), count(s.n), count(t.n) FROM nodes a LEFT JOIN side s USING (ext) LEFT JOIN side t USING (ext) GROUP BY ext
= SELECT ext, count(*), count(s.n), count(t.n) FROM nodes a LEFT JOIN side s USING (ext) JOIN side t USING (ext, n) GROUP BY ext
SELECT * FROM (SELECT ext, size FROM nodes) LEFT JOIN (SELECT n, ext FROM side) USING (ext)
= SELECT n + depth, count(*), max(mtime) FROM nodes JOIN side USING (ext) WHERE n + depth > 3 OR type = 'd' GROUP BY n + depth
SELECT DISTINCT k, depth FROM nodes JOIN side USING (ext) WHERE size > 10
= SELECT DISTINCT depth + n FROM nodes a JOIN side ON a.ext = side.ext ORDER BY 1
= SELECT a.type, count(*), sum(a.size) FROM nodes a JOIN side ON a.ext = side.ext JOIN (SELECT depth d, count(*) c FROM nodes GROUP BY depth) x ON x.d = a.depth GROUP BY a.type
= SELECT d.type, a.ext, count(*), sum(a.size) FROM nodes a JOIN nodes d ON a.parent = d.ino JOIN side ON side.ext = a.ext GROUP BY d.type, a.ext
= SELECT s.n, count(*), sum(a.size) FROM nodes a JOIN side s ON a.ext = s.ext AND s.k = a.name GROUP BY s.n
= SELECT a.depth, count(*), sum(a.size) FROM nodes a JOIN side s ON a.depth = s.n GROUP BY a.depth
SELECT min(a.ext), max(a.type), count(*) FROM nodes a JOIN side s ON a.depth = s.n
SELECT -0.0, -(0.0), - -0.0, -1.5, size FROM nodes
SELECT size, 5.8032165, 83.0e25, 8.4805817e-18, 2736.3521389, -5.98633117897 FROM nodes WHERE size > -5.8032165
SELECT count(*), 7837.800949e-10 * count(*) FROM nodes
WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r), e(x) AS (SELECT x FROM r WHERE x % 100 = 0) SELECT e.x, n.name FROM e LEFT JOIN nodes n ON n.ino = -e.x LIMIT 3
= WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 5), e(x, y) AS (SELECT x, 'd' || x FROM r) SELECT e.x, count(*) FROM e JOIN nodes n ON n.name = e.y GROUP BY e.x
SELECT count(*) FROM nodes n WHERE EXISTS (SELECT x.name, x.rowid FROM nodes x WHERE x.parent = n.ino)
SELECT count(*) FROM nodes n WHERE EXISTS (SELECT * FROM nodes x WHERE x.parent = n.ino)
SELECT count(*) FROM nodes n WHERE EXISTS (SELECT n.mtime FROM nodes x WHERE x.parent = n.ino)
SELECT path, (SELECT max(x.size) + 1 FROM nodes x WHERE x.ino = n.parent) FROM nodes n
= SELECT n.depth, sum((SELECT count(*) + 1 FROM nodes x WHERE x.ino = n.parent)) FROM nodes n GROUP BY n.depth
= SELECT n.depth, sum((SELECT coalesce(min(x.size), 7) FROM nodes x WHERE x.ino = n.parent)) FROM nodes n GROUP BY n.depth
= WITH RECURSIVE t(ino, level) AS (SELECT CAST(2 AS BIGINT), 0 UNION ALL SELECT n.ino, level + 1 FROM nodes n JOIN t ON n.parent = t.ino) SELECT level, count(*) FROM t GROUP BY level
WITH RECURSIVE t(ino) AS (VALUES (2) UNION ALL SELECT n.ino FROM t, nodes n WHERE t.ino = n.parent AND n.type = 'd') SELECT sum(n.size), count(*) FROM nodes n JOIN t ON n.parent = t.ino
= WITH RECURSIVE t(i, p) AS (SELECT 2, '' UNION ALL SELECT ino, name FROM nodes, t WHERE parent = i) SELECT p, count(*) FROM t GROUP BY p
= WITH RECURSIVE t(i, p) AS (SELECT 2, 0 UNION ALL SELECT ino, p + 1 FROM nodes, t WHERE parent = i UNION ALL SELECT -ino, p FROM nodes JOIN t ON parent = i WHERE type <> 'd') SELECT p, count(*), sum(i) FROM t GROUP BY p
= WITH RECURSIVE t(i, v) AS (SELECT 2, 9223372036854775806 UNION ALL SELECT ino, v + 1 FROM nodes, t WHERE parent = i) SELECT v, count(*) FROM t GROUP BY v
WITH RECURSIVE t(i) AS (SELECT 2 UNION SELECT ino FROM nodes, t WHERE parent = i) SELECT count(*) FROM t
WITH RECURSIVE t(i) AS (SELECT 2 UNION ALL SELECT ino FROM nodes, t WHERE parent = i LIMIT 10) SELECT count(*) FROM t
= WITH RECURSIVE t(i, l) AS (SELECT 2, 0 UNION ALL SELECT ino, l + 1 FROM nodes LEFT JOIN t ON parent = i WHERE l < 3) SELECT l, count(*) FROM t GROUP BY l
= SELECT * FROM (SELECT type, count(*) FROM nodes GROUP BY type) LIMIT 2
= SELECT * FROM (SELECT size, type, count(*) n FROM nodes GROUP BY size, type) WHERE n > 1 LIMIT 3
= SELECT * FROM (SELECT ext, depth, count(*) n FROM nodes GROUP BY ext, depth)
= SELECT k, n FROM (SELECT k, count(*) n FROM side GROUP BY k) LIMIT 2
= SELECT x.size, (SELECT max(size) FROM nodes) FROM (SELECT size FROM nodes GROUP BY size) x LIMIT 5
= WITH a AS (SELECT ext, count(*) c FROM nodes GROUP BY ext) SELECT ext FROM a WHERE c > (SELECT min(c) FROM a) LIMIT 2
= SELECT x.ext, x.c FROM (SELECT ext, count(*) c FROM nodes GROUP BY ext) x LEFT JOIN side s ON s.ext = x.ext LIMIT 5
= SELECT x.size, a.name FROM (SELECT size, max(parent) p FROM nodes GROUP BY size) x LEFT JOIN nodes a ON a.ino = x.p LIMIT 4
= SELECT x.t, x.n FROM (SELECT size n, type t, count(*) m FROM nodes GROUP BY size, type) x LEFT JOIN nodes a ON a.depth = x.m ORDER BY x.t LIMIT 5
= SELECT x.ext, x.uid FROM (SELECT ext, uid FROM nodes UNION SELECT type, depth FROM nodes) x CROSS JOIN side s ON s.ext = x.ext LIMIT 4
= SELECT x.parent, a.name, b.size FROM (SELECT parent, count(*) c FROM nodes GROUP BY parent) x CROSS JOIN nodes a ON a.ino = x.parent LEFT JOIN nodes b ON b.ino = a.parent ORDER BY x.c DESC LIMIT 6
= SELECT x.k, a.ino FROM (SELECT size k, min(ino) i FROM nodes GROUP BY size UNION ALL SELECT depth, max(ino) FROM nodes GROUP BY depth) x LEFT JOIN nodes a ON a.ino = x.i AND a.depth > 1
= SELECT x.ext, h.k, h.m FROM (SELECT ext, count(*) c FROM nodes GROUP BY ext) x LEFT JOIN (SELECT size k, uid u, -max(ino) m, count(*) c FROM nodes GROUP BY size, uid) h ON h.c = x.c LIMIT 4
= SELECT x.ext, h.m FROM (SELECT ext, count(*) c FROM nodes GROUP BY ext) x CROSS JOIN (SELECT name k, count(*) c, -max(ino) m FROM nodes GROUP BY name) h WHERE h.c <> 9 AND h.c = x.c LIMIT 5
= SELECT e, m FROM (SELECT x.ext e, h.m FROM (SELECT ext, count(*) c FROM nodes GROUP BY ext) x LEFT JOIN (SELECT size k, -max(ino) m, count(*) c FROM nodes GROUP BY size) h ON h.c = x.c) ORDER BY e DESC LIMIT 5
= SELECT x.ext, h.m FROM (SELECT ext, count(*) c FROM nodes GROUP BY ext) x LEFT JOIN (SELECT size k, -max(ino) m FROM nodes GROUP BY size) h ON h.k = x.c LIMIT 6
= SELECT x.ext, x.c FROM (SELECT ext, count(*) c FROM nodes GROUP BY ext) x LEFT JOIN (SELECT size k, count(*) c FROM nodes GROUP BY size) h ON h.c = x.c LIMIT 6
= SELECT x.size, a.name FROM (SELECT size, max(parent) p, count(*) c FROM nodes GROUP BY size ORDER BY c, size DESC) x LEFT JOIN nodes a ON a.ino = x.p LIMIT 4
= SELECT x.size, h.m FROM (SELECT size, depth d, count(*) c FROM nodes GROUP BY size, depth ORDER BY c) x LEFT JOIN (SELECT depth d, max(ino) m FROM nodes GROUP BY depth) h ON h.d = x.d ORDER BY x.d LIMIT 4
= SELECT x.size, x.c FROM (SELECT size, uid u, count(*) c FROM nodes GROUP BY size, uid ORDER BY u, size DESC) x ORDER BY x.c LIMIT 4
= SELECT x.depth, s.ext, s.k FROM (SELECT depth, count(*) c FROM nodes GROUP BY depth) x LEFT JOIN side s ON s.n = x.depth LIMIT 4
= SELECT x.uid, s.k FROM (SELECT uid, min(depth) d FROM nodes GROUP BY uid UNION ALL SELECT depth, depth FROM nodes GROUP BY depth) x CROSS JOIN side s ON s.n = x.d ORDER BY x.uid LIMIT 4
= SELECT x.depth, s.ext FROM (SELECT DISTINCT depth FROM nodes) x LEFT JOIN side s ON s.n = x.depth LIMIT 4
= SELECT x.depth, s.ext, c.w FROM (SELECT depth, count(*) c FROM nodes GROUP BY depth) x LEFT JOIN side s ON s.n = x.depth LEFT JOIN cased c ON c.v = s.n LIMIT 9
= SELECT x.depth, s.ext, c.w FROM (SELECT depth, count(*) c FROM nodes GROUP BY depth) x CROSS JOIN side s ON s.n = x.depth CROSS JOIN cased c ON c.v = s.n LIMIT 9
= SELECT x.ext, s.k FROM (SELECT ext, depth d, count(*) c FROM nodes GROUP BY ext, depth) x LEFT JOIN side s ON s.ext = x.ext WHERE s.k IS NULL LIMIT 4
= SELECT x.t, x.n FROM (SELECT ext t, uid n FROM nodes UNION SELECT type, depth FROM nodes) x LEFT JOIN nodes a ON a.ino = x.n WHERE a.ext IS NULL ORDER BY x.n LIMIT 5
= SELECT n, t FROM (SELECT n, t, m FROM (SELECT DISTINCT t, n, 1 AS m FROM (SELECT ext t, depth n, uid, count(*) m FROM nodes GROUP BY ext, depth, uid) ORDER BY n DESC) WHERE n > 1) ORDER BY t IS NULL LIMIT 5
= SELECT n, t FROM (SELECT n, t FROM (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) WHERE n > 1) ORDER BY t > 'c' LIMIT 5
= SELECT t, m FROM (SELECT ext t, uid n, depth m FROM nodes INTERSECT SELECT ext, uid, depth FROM nodes WHERE size > 50 ORDER BY n, t DESC) ORDER BY m LIMIT 5
= SELECT x.t, x.n, s.n FROM (SELECT ext t, uid n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n, t DESC) x CROSS JOIN side s WHERE s.n > x.n + 1 LIMIT 5
= SELECT x.depth, s.ext, char(65) FROM (SELECT depth, hex(count(*)) c FROM nodes GROUP BY depth) x CROSS JOIN side s ON s.n = x.depth LIMIT 3
= SELECT x.depth, s.ext, char(65) FROM (SELECT depth, count(*) || 'x' c FROM nodes GROUP BY depth HAVING count(*) > 0) x LEFT JOIN side s ON s.n = x.depth LIMIT 4
= WITH x AS (SELECT depth, char(66) c FROM nodes GROUP BY depth ORDER BY depth DESC) SELECT x.depth, s.ext, char(65) FROM x CROSS JOIN side s ON s.n = x.depth LIMIT 2
= WITH x AS (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) SELECT x.t, x.n, s.k FROM x LEFT JOIN side s ON s.rowid = x.n WHERE x.t IS NOT NULL LIMIT 5
= WITH x AS (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) SELECT n, t, char(65) FROM x WHERE n > 0 ORDER BY t > 'c' LIMIT 5
= WITH x AS (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC), y AS (SELECT t, n FROM x WHERE n > 0) SELECT hex(n), t FROM y ORDER BY t > 'c' LIMIT 5
= SELECT n, t, char(65) FROM (SELECT DISTINCT ext t, depth n FROM nodes ORDER BY n DESC) WHERE n > 0 ORDER BY t > 'c' LIMIT 5
= WITH x AS (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) SELECT hex(n), x.t FROM x WHERE n > 0 LIMIT 5
= WITH x AS (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) SELECT hex(n), t FROM x WHERE n > (SELECT min(n) FROM x) LIMIT 5
= SELECT hex(n), t FROM (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) WHERE n > 0 UNION ALL SELECT n, t FROM (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) ORDER BY 2 LIMIT 9
= SELECT * FROM (SELECT hex(n), t FROM (SELECT t, n FROM (SELECT ext t, depth n FROM nodes UNION SELECT type, depth FROM nodes ORDER BY n DESC) WHERE n > 0)) ORDER BY t > 'c' LIMIT 5
= SELECT DISTINCT n FROM (SELECT size, count(*) n FROM nodes GROUP BY size)
= SELECT * FROM (SELECT DISTINCT depth, ext FROM nodes) LIMIT 4
= SELECT ext, count(*) FROM nodes GROUP BY ext UNION ALL SELECT type, count(*) FROM nodes GROUP BY type LIMIT 4
= SELECT size, count(*) n FROM nodes GROUP BY size UNION ALL SELECT depth, count(*) FROM nodes GROUP BY depth LIMIT 5
= SELECT k, row_number() OVER () FROM (SELECT size k, count(*) n FROM nodes GROUP BY size UNION ALL SELECT depth, 0 FROM nodes GROUP BY depth)
= SELECT group_concat(k) FROM (SELECT size k FROM nodes GROUP BY size UNION ALL SELECT depth FROM nodes GROUP BY depth)
= SELECT * FROM (SELECT size k, uid u, count(*) n FROM nodes GROUP BY size, uid) ORDER BY n LIMIT 4
= SELECT * FROM (SELECT * FROM (SELECT size k, uid, count(*) n FROM nodes GROUP BY size, uid) WHERE k > 1) ORDER BY n DESC LIMIT 4
= SELECT size, uid, count(*) n FROM nodes GROUP BY size, uid UNION ALL SELECT depth, 1, 1 FROM nodes GROUP BY depth ORDER BY 3 LIMIT 6
= SELECT size, count(*) n FROM nodes GROUP BY size UNION ALL SELECT depth, 1 FROM nodes GROUP BY depth ORDER BY 2 DESC LIMIT 6
= SELECT DISTINCT n FROM (SELECT size, count(*) n FROM nodes GROUP BY size UNION ALL SELECT depth, count(*) FROM nodes GROUP BY depth) LIMIT 3
= SELECT DISTINCT ext, size > (SELECT avg(size) FROM nodes) FROM nodes LIMIT 4
= SELECT DISTINCT ext, depth FROM nodes WHERE size < (SELECT max(size) FROM nodes) ORDER BY depth LIMIT 3
= SELECT * FROM (SELECT ext, depth FROM nodes UNION SELECT type, uid FROM nodes) LIMIT 4
= SELECT ext, depth FROM nodes UNION SELECT type, uid FROM nodes UNION ALL SELECT name, 0 FROM nodes GROUP BY name LIMIT 9
= SELECT n FROM (SELECT name n FROM nodes UNION ALL SELECT 'z' ORDER BY 1 DESC) LIMIT 2
= SELECT DISTINCT name FROM (SELECT name FROM nodes ORDER BY name DESC) LIMIT 2
= SELECT name, row_number() OVER () FROM (SELECT name FROM nodes ORDER BY name DESC, ino) LIMIT 3
SELECT n.name, m.name FROM nodes n LEFT JOIN nodes m ON m.ino = n.parent AND m.name <> '' AND n.size > 100
SELECT p.name, count(c.ino) FROM nodes p LEFT JOIN nodes c ON c.parent = p.ino AND c.size > 100 GROUP BY p.ino
SELECT name FROM nodes WHERE ext NOT IN (SELECT k FROM side)
SELECT name FROM nodes WHERE size NOT IN (1, NULL)
SELECT count(*), max(name), sum(size), total(size), avg(size) FROM nodes WHERE size < 0 HAVING count(*) = 0
= SELECT name FROM nodes ORDER BY name, ino LIMIT -1 OFFSET -5
= SELECT name FROM nodes ORDER BY name, ino LIMIT 1 + 2 OFFSET 2 - 1
= SELECT name FROM nodes ORDER BY name LIMIT 0
= SELECT s FROM (SELECT ext, max(size) AS s FROM nodes GROUP BY ext LIMIT 2) ORDER BY s DESC
= SELECT n FROM (SELECT ext, size AS n FROM nodes GROUP BY ext, size LIMIT 5) ORDER BY n, row_number() OVER (ORDER BY n)
= SELECT n, row_number() OVER (ORDER BY n) FROM (SELECT ext, size AS n FROM nodes GROUP BY ext, size HAVING count(*) > 0 LIMIT 5) ORDER BY n DESC
