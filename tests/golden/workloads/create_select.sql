-- needs: mysql >= 8.0.21, mariadb
-- CREATE TABLE ... SELECT: its rows are logged behind the statement.
CREATE TABLE source (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO source VALUES (1, 'a'), (2, 'b'), (3, NULL);
CREATE TABLE made (PRIMARY KEY (id)) SELECT id, CONCAT(v, '!') AS v, id * 1.5 AS n FROM source;
INSERT INTO made VALUES (9, 'nine', 9);
