-- needs: mysql >= 5.6, mariadb
-- binlog_checksum toggled while rows go on: each change begins a new file, and tables live on in it.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO t VALUES (1, 'crc'), (2, 'crc');
SET GLOBAL binlog_checksum = NONE;
INSERT INTO t VALUES (3, 'none');
UPDATE t SET v = 'none' WHERE id = 2;
ALTER TABLE t ADD COLUMN n INT DEFAULT 5;
DELETE FROM t WHERE id = 1;
SET GLOBAL binlog_checksum = CRC32;
INSERT INTO t VALUES (4, 'crc', NULL);
DELETE FROM t WHERE id = 2;
