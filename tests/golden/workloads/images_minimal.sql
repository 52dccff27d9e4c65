-- needs: mysql >= 5.6, mariadb
-- binlog_row_image=MINIMAL: inserts say what was given, deletes the key; updates don't hold the columns that stayed.
-- held: changed UnsupportedValue
SET SESSION binlog_row_image = MINIMAL;
CREATE TABLE kept (id INT PRIMARY KEY, a INT, b VARCHAR(10), c TEXT);
CREATE TABLE changed (id INT PRIMARY KEY, a INT, b VARCHAR(10), c TEXT);
INSERT INTO kept VALUES (1, 1, 'x', 'text'), (2, NULL, NULL, NULL), (3, 3, 'z', '');
DELETE FROM kept WHERE id = 2;
INSERT INTO changed VALUES (1, 1, 'x', 'text');
UPDATE changed SET a = 2;
INSERT INTO changed VALUES (2, 1, 'x', 'text');
