-- needs: mysql >= 8.0.1, mariadb >= 10.5
-- ENUM and SET members beyond U+FFFF, which information_schema shows as '?': TABLE_MAP knows them with FULL metadata, and without
-- the table is held; a charset that has no such characters holds nobody.
-- held: unknown UnsupportedValue
SET GLOBAL binlog_row_metadata = MINIMAL;
CREATE TABLE unknown (id INT PRIMARY KEY, e ENUM('a','𝄞') CHARACTER SET utf8mb4);
CREATE TABLE narrow (id INT PRIMARY KEY, e ENUM('a','?') CHARACTER SET latin1);
INSERT INTO unknown VALUES (1, '𝄞'), (2, 'a');
INSERT INTO narrow VALUES (1, '?'), (2, 'a');
SET GLOBAL binlog_row_metadata = FULL;
CREATE TABLE known (id INT PRIMARY KEY, e ENUM('a','𝄞','?') CHARACTER SET utf8mb4, s SET('𝄞?','b') CHARACTER SET utf16);
INSERT INTO known VALUES (1, '𝄞', '𝄞?,b'), (2, 'a', 'b'), (3, NULL, NULL), (4, '?', '');
