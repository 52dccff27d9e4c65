-- XA transactions: committed in one phase they are plain ones.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10)) ENGINE=InnoDB;
INSERT INTO t VALUES (1, 'plain');
XA START 'one', 'phase', 1;
INSERT INTO t VALUES (2, 'one phase');
UPDATE t SET v = 'changed' WHERE id = 1;
XA END 'one', 'phase', 1;
XA COMMIT 'one', 'phase', 1 ONE PHASE;
XA START 'never';
INSERT INTO t VALUES (3, 'never');
XA END 'never';
XA ROLLBACK 'never';
INSERT INTO t VALUES (4, 'after');
