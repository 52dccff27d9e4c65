-- needs: mysql >= 5.6, mariadb
-- tolerates: 1086
-- Rows that come by LOAD DATA are rows. The file lies beside the server's data: written by the server itself.
CREATE TABLE made (id INT PRIMARY KEY, v VARCHAR(20), d DATE);
CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(20), d DATE, n INT DEFAULT 9);
INSERT INTO made VALUES (1, 'a', '2024-01-01'), (2, 'tab	é中', NULL), (3, NULL, '2000-02-29'), (4, '', '1999-12-31');
SELECT * INTO OUTFILE '../golden_loaded.txt' CHARACTER SET utf8mb4 FROM made;
LOAD DATA INFILE '../golden_loaded.txt' INTO TABLE loaded CHARACTER SET utf8mb4 (id, v, d);
LOAD DATA INFILE '../golden_loaded.txt' REPLACE INTO TABLE loaded CHARACTER SET utf8mb4 (@id, v, d) SET id = @id + 2, n = @id;
