-- needs: mysql >= 9.0
-- Foreign keys with CASCADE and SET NULL: from MySQL 9 on the rows they change are in the log. (Before, and in MariaDB,
-- they are not, and no reader of the log can know them.)
CREATE TABLE parent (id INT PRIMARY KEY, v INT);
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE loose (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL);
INSERT INTO parent VALUES (1, 1), (2, 2), (3, 3), (4, 4);
INSERT INTO child VALUES (1, 1), (2, 1), (3, 2), (4, 3), (5, NULL);
INSERT INTO loose VALUES (1, 2), (2, 2), (3, NULL);
DELETE FROM parent WHERE id = 1;
UPDATE parent SET id = 30 WHERE id = 3;
DELETE FROM parent WHERE id = 2;
