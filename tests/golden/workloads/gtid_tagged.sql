-- needs: mysql >= 8.3
-- GTIDs with tags: the tagged event, and a file whose PREVIOUS_GTIDS has the tagged layout.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10));
SET GLOBAL enforce_gtid_consistency = ON;
SET GLOBAL gtid_mode = OFF_PERMISSIVE;
SET GLOBAL gtid_mode = ON_PERMISSIVE;
SET GLOBAL gtid_mode = ON;
INSERT INTO t VALUES (1, 'plain');
SET SESSION gtid_next = 'AUTOMATIC:nightly';
INSERT INTO t VALUES (2, 'tagged'), (3, 'tagged');
SET SESSION gtid_next = 'bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:a_tag_of_32_characters_is_the_max:5';
-- tolerates: 1231 1774
UPDATE t SET v = 'u' WHERE id = 2;
SET SESSION gtid_next = 'bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:other_tag:5';
UPDATE t SET v = 'v' WHERE id = 3;
SET SESSION gtid_next = 'AUTOMATIC:nightly';
SET SESSION binlog_transaction_compression = ON;
INSERT INTO t VALUES (4, 'zstd');
SET SESSION gtid_next = AUTOMATIC;
FLUSH BINARY LOGS;
INSERT INTO t VALUES (5, 'next file');
SET SESSION gtid_next = 'AUTOMATIC:nightly';
DELETE FROM t WHERE id = 1;
SET SESSION gtid_next = AUTOMATIC;
SET GLOBAL gtid_mode = ON_PERMISSIVE;
SET GLOBAL gtid_mode = OFF_PERMISSIVE;
SET GLOBAL gtid_mode = OFF;
