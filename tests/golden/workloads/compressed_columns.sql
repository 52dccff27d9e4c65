-- needs: mariadb >= 10.3.2
-- COMPRESSED columns (zlib in the row image), short ones kept as they are, empty ones, NULL, charsets.
CREATE TABLE c (id INT PRIMARY KEY, tt TINYTEXT COMPRESSED, tx TEXT COMPRESSED, mt MEDIUMTEXT COMPRESSED, lb LONGBLOB COMPRESSED,
  bl BLOB COMPRESSED, vc VARCHAR(300) COMPRESSED, vb VARBINARY(300) COMPRESSED, l1 TEXT COMPRESSED CHARACTER SET latin1,
  u16 VARCHAR(150) COMPRESSED CHARACTER SET utf16, plain TEXT);
INSERT INTO c VALUES (1, REPEAT('t', 200), REPEAT('text', 300), REPEAT('é中', 300), REPEAT(x'00ff', 400), REPEAT(x'00', 1000),
  REPEAT('v', 290), REPEAT(x'ab', 290), REPEAT('é€', 200), REPEAT('中', 140), REPEAT('p', 300)),
  (2, '', '', '', '', '', '', '', '', '', ''), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, 'short', 'short', 'é', x'00', x'ff', 'v', x'00', 'é', '中', 'p');
UPDATE c SET tx = REPEAT('changed ', 50), vc = 'now short' WHERE id = 1;
UPDATE c SET lb = REPEAT('grown', 100) WHERE id = 4;
DELETE FROM c WHERE id = 3;
