-- needs: mariadb
-- MariaDB GTIDs: domains, server ids, chosen numbers, transactions that wait for others, and DDL flags.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO t VALUES (1, 'domain 0');
SET SESSION gtid_domain_id = 7;
INSERT INTO t VALUES (2, 'domain 7');
SET SESSION server_id = 4000000000;
INSERT INTO t VALUES (3, 'server');
SET SESSION gtid_seq_no = 100000000000;
UPDATE t SET v = 'seq' WHERE id = 3;
BEGIN;
INSERT INTO t VALUES (4, 'txn');
DELETE FROM t WHERE id = 1;
COMMIT;
SET SESSION skip_parallel_replication = ON;
INSERT INTO t VALUES (5, 'flag');
FLUSH BINARY LOGS;
INSERT INTO t VALUES (6, 'next');
