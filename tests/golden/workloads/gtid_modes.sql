-- needs: mysql >= 5.7.6
-- gtid_mode from OFF to ON and back while rows go on: anonymous and named transactions in files of one server.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO t VALUES (1, 'off');
SET GLOBAL enforce_gtid_consistency = ON;
SET GLOBAL gtid_mode = OFF_PERMISSIVE;
INSERT INTO t VALUES (2, 'off_p');
SET GLOBAL gtid_mode = ON_PERMISSIVE;
INSERT INTO t VALUES (3, 'on_p');
SET GLOBAL gtid_mode = ON;
INSERT INTO t VALUES (4, 'on');
UPDATE t SET v = 'on' WHERE id = 1;
SET SESSION gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:7';
DELETE FROM t WHERE id = 2;
SET SESSION gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:9';
BEGIN;
COMMIT;
SET SESSION gtid_next = AUTOMATIC;
INSERT INTO t VALUES (5, 'auto');
FLUSH BINARY LOGS;
INSERT INTO t VALUES (6, 'auto');
SET GLOBAL gtid_mode = ON_PERMISSIVE;
SET GLOBAL gtid_mode = OFF_PERMISSIVE;
SET GLOBAL gtid_mode = OFF;
INSERT INTO t VALUES (7, 'off');
