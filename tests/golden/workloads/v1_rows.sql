-- needs: mysql >= 5.6 < 8.0
-- Rows events of version 1, as a 5.6 that feeds older replicas writes them.
SET GLOBAL log_bin_use_v1_row_events = ON;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), d DATETIME(3), t TIME);
INSERT INTO t VALUES (1, 'é中', '2024-01-01 00:00:00.123', '-01:02:03'), (2, NULL, NULL, NULL);
UPDATE t SET v = 'x' WHERE id = 1;
UPDATE t SET id = 20 WHERE id = 2;
DELETE FROM t WHERE id = 1;
