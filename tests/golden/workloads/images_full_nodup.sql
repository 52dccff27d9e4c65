-- needs: mariadb >= 11.4
-- binlog_row_image=FULL_NODUP: all columns before, only the changed ones after.
SET SESSION binlog_row_image = FULL_NODUP;
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), c TEXT, d DATETIME(3));
CREATE TABLE nokey (a INT, b BLOB, c BIT(3));
INSERT INTO t VALUES (1, 1, 'x', 'text', '2024-01-01 01:02:03.456'), (2, NULL, NULL, NULL, NULL), (3, 3, 'z', '', '2000-01-01');
UPDATE t SET a = 10 WHERE id = 1;
UPDATE t SET b = NULL, c = REPEAT('c', 300) WHERE id = 3;
UPDATE t SET id = 20, a = 2, b = 'y' WHERE id = 2;
UPDATE t SET a = a + 1;
DELETE FROM t WHERE id = 1;
INSERT INTO nokey VALUES (1, 'one', 1), (1, 'one', 1), (NULL, NULL, NULL);
UPDATE nokey SET c = 7 WHERE a = 1 LIMIT 1;
UPDATE nokey SET a = 5, b = x'00' WHERE a IS NULL;
