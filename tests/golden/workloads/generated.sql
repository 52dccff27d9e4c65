-- needs: mysql >= 5.7.6, mariadb >= 10.2.5
-- Generated columns, stored and virtual, between plain ones, and in a key.
CREATE TABLE g (id INT PRIMARY KEY, a INT, v INT GENERATED ALWAYS AS (a + 1) VIRTUAL, s VARCHAR(20) GENERATED ALWAYS AS (CONCAT('s', a)) STORED,
  b VARCHAR(10), v2 VARCHAR(30) GENERATED ALWAYS AS (UPPER(b)) VIRTUAL, KEY (v2));
CREATE TABLE first_virtual (v INT GENERATED ALWAYS AS (b * 2) VIRTUAL, b INT PRIMARY KEY, c TEXT);
INSERT INTO g (id, a, b) VALUES (1, 1, 'one'), (2, NULL, NULL), (3, -5, 'é');
UPDATE g SET a = 10 WHERE id = 1;
UPDATE g SET b = 'two' WHERE id = 2;
DELETE FROM g WHERE id = 3;
INSERT INTO first_virtual (b, c) VALUES (1, 'x'), (2, NULL);
UPDATE first_virtual SET b = 20 WHERE b = 2;
ALTER TABLE g ADD COLUMN v3 BIGINT GENERATED ALWAYS AS (a * 100) VIRTUAL AFTER id;
INSERT INTO g (id, a, b) VALUES (4, 4, 'four');
UPDATE g SET a = 11 WHERE id = 1;
