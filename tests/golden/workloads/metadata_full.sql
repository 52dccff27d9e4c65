-- needs: mysql >= 8.0.1, mariadb >= 10.5
-- binlog_row_metadata=FULL: what TABLE_MAP says of signs, charsets, names, members, keys, visibility.
SET GLOBAL binlog_row_metadata = FULL;
CREATE TABLE t (id INT UNSIGNED, i8 TINYINT UNSIGNED, s8 TINYINT, v VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf16,
  e ENUM('a','é','c') CHARACTER SET latin1, s SET('x','中') CHARACTER SET utf8mb4, b BLOB, tx TEXT CHARACTER SET gbk, d DECIMAL(10,3) UNSIGNED,
  g GEOMETRY, p POINT, `odd ``name` BIGINT UNSIGNED, bt BIT(12), bn BINARY(5), f DOUBLE, dt DATETIME(2), PRIMARY KEY (v(5), id));
CREATE TABLE keyed (a INT, b VARCHAR(5), c INT NOT NULL, PRIMARY KEY (c, b), UNIQUE KEY (a));
INSERT INTO t VALUES (4294967295, 255, -128, 'é€', '𝄞', 'é', 'x,中', x'ff', '中文', 1.5, ST_GeomFromText('LINESTRING(0 0,1 1)'),
  ST_GeomFromText('POINT(1 2)'), 18446744073709551615, 4095, x'0102', 0.5, '2024-01-01 00:00:00.12'), (1, 1, 1, 'v', NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
UPDATE t SET e = 'c', s = '', tx = '' WHERE id = 4294967295;
INSERT INTO keyed VALUES (1, 'x', 1), (NULL, 'y', 2), (3, 'z', 3);
UPDATE keyed SET c = 20 WHERE c = 2;
DELETE FROM keyed WHERE c = 3;
