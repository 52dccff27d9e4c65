-- needs: mariadb >= 10.2.3
-- log_bin_compress=ON: rows, statements and DDL compressed with zlib, beside short ones that are not.
SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(300), n DECIMAL(10,2));
CREATE TABLE nokey (a INT, b BLOB);
INSERT INTO t VALUES (1, REPEAT('a', 300), 1.5), (2, REPEAT('b', 300), NULL), (3, NULL, 3);
BEGIN;
UPDATE t SET v = REPEAT('é', 200) WHERE id = 1;
INSERT INTO nokey VALUES (1, REPEAT(x'00', 500)), (1, REPEAT(x'00', 500));
DELETE FROM t WHERE id = 3;
SAVEPOINT a_savepoint;
DELETE FROM t;
ROLLBACK TO SAVEPOINT a_savepoint;
COMMIT;
ALTER TABLE t ADD COLUMN extra INT NOT NULL DEFAULT 9 FIRST;
INSERT INTO t VALUES (1, 10, REPEAT('z', 250), 10), (2, 11, REPEAT('z', 250), 11);
SET GLOBAL log_bin_compress_min_len = 200;
UPDATE t SET n = 0 WHERE id = 10;
UPDATE t SET v = REPEAT('w', 299) WHERE id = 11;
DELETE FROM nokey LIMIT 1;
SET GLOBAL log_bin_compress = OFF;
INSERT INTO t VALUES (5, 5, REPEAT('plain', 20), 5);
