-- needs: mysql >= 5.7.7, mariadb >= 10.5
-- Prepared XA transactions, answered from another session: rows are committed where the answer stands, or never.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10)) ENGINE=InnoDB;
CREATE TABLE bystander (id INT PRIMARY KEY, v VARCHAR(10)) ENGINE=InnoDB;
-- connect: first
XA START 'commit', x'ff00';
INSERT INTO t VALUES (2, 'prepared');
XA END 'commit', x'ff00';
XA PREPARE 'commit', x'ff00';
-- connect: main
INSERT INTO bystander VALUES (1, 'between');
-- connect: second
XA START 'rollback';
INSERT INTO t VALUES (3, 'never');
XA END 'rollback';
XA PREPARE 'rollback';
-- connect: first
XA COMMIT 'commit', x'ff00';
-- connect: second
XA ROLLBACK 'rollback';
-- connect: main
INSERT INTO bystander VALUES (2, 'after');
