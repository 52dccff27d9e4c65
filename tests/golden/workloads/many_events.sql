-- Statements whose rows fill several events, with NULLs in every byte of the bitmap, and wide tables.
CREATE TABLE digits (d INT PRIMARY KEY);
CREATE TABLE wide (id INT PRIMARY KEY, c1 INT, c2 INT, c3 INT, c4 INT, c5 INT, c6 INT, c7 INT, c8 VARCHAR(3), c9 INT, c10 INT, c11 INT,
  c12 INT, c13 INT, c14 INT, c15 INT, c16 CHAR(3), c17 INT, c18 INT, c19 INT, c20 INT, c21 INT, c22 INT, c23 INT, c24 DATE);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
INSERT INTO wide SELECT a.d * 10 + b.d, IF(a.d = 0, NULL, 1), IF(b.d = 1, NULL, 2), NULL, 4, IF(a.d = 5, NULL, 5), 6, IF(b.d = 7, NULL, 7),
  IF(a.d = 8, NULL, 'c8'), 9, NULL, 11, IF(b.d % 2, NULL, 12), 13, 14, IF(a.d % 2, NULL, 15), IF(b.d = 3, NULL, 'x'), 17, 18, 19, 20, 21, 22,
  IF(a.d = b.d, NULL, 23), IF(a.d > 5, NULL, '2024-01-01') FROM digits a, digits b;
UPDATE wide SET c1 = NULL, c24 = '1999-12-31', c8 = NULL WHERE id % 3 = 0;
DELETE FROM wide WHERE id > 30;
