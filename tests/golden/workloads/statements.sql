-- needs: mysql < 9.6, mariadb
-- DML logged as statements holds its table; others go on.
-- held: said UnsupportedValue
CREATE TABLE said (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE rows_only (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO rows_only VALUES (1, 'row');
SET SESSION binlog_format = STATEMENT;
INSERT INTO said VALUES (1, 'statement');
SET SESSION binlog_format = ROW;
INSERT INTO rows_only VALUES (2, 'row');
UPDATE rows_only SET v = 'changed' WHERE id = 1;
