-- needs: mysql >= 5.6, mariadb
-- binlog_row_image=NOBLOB: BLOB and TEXT are left out of images where they are neither key nor changed.
-- held: unknown UnsupportedValue
SET SESSION binlog_row_image = NOBLOB;
CREATE TABLE known (id INT PRIMARY KEY, a INT, b BLOB, c TEXT);
CREATE TABLE plain (id INT PRIMARY KEY, a INT, v VARCHAR(10));
CREATE TABLE nokey (a INT, b BLOB);
CREATE TABLE unknown (id INT PRIMARY KEY, a INT, b BLOB);
INSERT INTO known VALUES (1, 1, x'00ff', 'text'), (2, 2, NULL, NULL), (3, 3, '', '');
UPDATE known SET a = 20, b = x'01', c = 'both' WHERE id = 2;
DELETE FROM known WHERE id = 3;
INSERT INTO plain VALUES (1, 1, 'x'), (2, NULL, NULL);
UPDATE plain SET a = 5;
UPDATE plain SET id = 20, v = 'w' WHERE id = 2;
INSERT INTO nokey VALUES (1, 'one'), (2, 'two'), (NULL, NULL);
UPDATE nokey SET a = 10 WHERE a = 1;
UPDATE nokey SET b = 'changed' WHERE a = 2;
DELETE FROM nokey WHERE a IS NULL;
INSERT INTO unknown VALUES (1, 1, 'blob');
UPDATE unknown SET a = 2;
