-- needs: mysql >= 5.6, mariadb
-- binlog_row_image=MINIMAL where the before image has all columns all the same: no key; and every column set anew.
SET SESSION binlog_row_image = MINIMAL;
CREATE TABLE nokey (a INT, b VARCHAR(10), c TEXT, d DECIMAL(10,2));
CREATE TABLE every (id INT PRIMARY KEY, a INT, b VARCHAR(10));
INSERT INTO nokey VALUES (1, 'x', 'text', 1.5), (2, NULL, NULL, NULL), (3, 'z', '', 0), (3, 'z', '', 0);
UPDATE nokey SET b = 'new' WHERE a = 1;
UPDATE nokey SET c = NULL, d = 7 WHERE a = 3;
UPDATE nokey SET a = NULL WHERE a = 2;
DELETE FROM nokey WHERE a = 1;
INSERT INTO every VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z');
DELETE FROM every WHERE id = 3;
