-- needs: mysql >= 8.0.20
-- Transactions compressed with zstd, toggled per session, beside plain ones; two tables in one; DDL between.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(300), n DECIMAL(10,2));
CREATE TABLE nokey (a INT, b BLOB);
SET SESSION binlog_transaction_compression = ON;
INSERT INTO t VALUES (1, REPEAT('a', 300), 1.5), (2, REPEAT('b', 300), NULL), (3, NULL, 3);
BEGIN;
UPDATE t SET v = REPEAT('é', 200) WHERE id = 1;
INSERT INTO nokey VALUES (1, REPEAT(x'00', 500)), (1, REPEAT(x'00', 500));
DELETE FROM t WHERE id = 3;
INSERT INTO t VALUES (4, 'd', 4), (5, 'e', 5);
SAVEPOINT s;
DELETE FROM t;
ROLLBACK TO SAVEPOINT s;
COMMIT;
SET SESSION binlog_transaction_compression = OFF;
UPDATE t SET n = n + 1 WHERE id < 3;
SET SESSION binlog_transaction_compression = ON, binlog_transaction_compression_level_zstd = 19;
DELETE FROM nokey LIMIT 1;
ALTER TABLE t ADD COLUMN extra INT NOT NULL DEFAULT 9 FIRST;
INSERT INTO t VALUES (1, 10, REPEAT('z', 250), 10), (2, 11, REPEAT('z', 250), 11), (3, 12, REPEAT('z', 250), 12);
-- connect: other
INSERT INTO t VALUES (4, 20, 'plain', 20);
SET SESSION binlog_transaction_compression = ON, binlog_row_image = MINIMAL;
INSERT INTO nokey VALUES (3, REPEAT('m', 400));
DELETE FROM nokey WHERE a = 3;
-- connect: main
UPDATE t SET id = id + 100 WHERE id >= 10;
