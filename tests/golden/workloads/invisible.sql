-- needs: mysql >= 8.0.23, mariadb >= 10.3.3
-- Invisible columns are columns of the row.
CREATE TABLE i (id INT PRIMARY KEY, a INT INVISIBLE, b VARCHAR(10), c INT DEFAULT 5 INVISIBLE);
INSERT INTO i (id, b) VALUES (1, 'x');
INSERT INTO i (id, a, b, c) VALUES (2, 2, 'y', NULL), (3, 3, NULL, 3);
UPDATE i SET a = 10 WHERE id = 1;
DELETE FROM i WHERE id = 3;
