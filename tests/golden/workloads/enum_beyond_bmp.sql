-- needs: mysql >= 5.6, mariadb
-- ENUM and SET members beyond U+FFFF, which MySQL's information_schema shows as '?'.
CREATE TABLE e (id INT PRIMARY KEY, e ENUM('a','𝄞') CHARACTER SET utf8mb4, s SET('𝄞','b') CHARACTER SET utf8mb4);
INSERT INTO e VALUES (1, '𝄞', '𝄞,b'), (2, 'a', 'b'), (3, NULL, NULL);
