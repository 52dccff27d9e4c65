-- needs: mysql >= 5.6, mariadb
-- The statement's text beside its rows: ROWS_QUERY events, or MariaDB's ANNOTATE_ROWS.
-- tolerates: 1193
SET SESSION binlog_rows_query_log_events = ON;
SET SESSION binlog_annotate_row_events = ON;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (1, 'é中𝄞'), (2, 'INSERT INTO t');
UPDATE t SET v = 'x' /* a comment; with a semicolon */ WHERE id = 1;
BEGIN;
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (3, REPEAT('y', 20));
COMMIT;
