-- needs: mysql >= 9.0, mariadb >= 11.7
-- Vectors.
CREATE TABLE vec (id INT PRIMARY KEY, v VECTOR(3), w VECTOR(1));
INSERT INTO vec VALUES (1, x'0000803f00002040dcafdfd0', x'00000000'), (2, NULL, NULL), (3, x'cdcccc3dcdcc4c3e9a9999be', x'00000080');
UPDATE vec SET v = x'000000000000000000000000' WHERE id = 1;
DELETE FROM vec WHERE id = 2;
