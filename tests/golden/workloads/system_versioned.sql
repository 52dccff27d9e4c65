-- needs: mariadb >= 10.3.4
-- System-versioned tables: the history's rows are logged too.
SET time_zone = '+00:00';
CREATE TABLE plain (id INT PRIMARY KEY, v INT);
CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(10), f TIMESTAMP(6) GENERATED ALWAYS AS ROW START, t TIMESTAMP(6) GENERATED ALWAYS AS ROW END,
  PERIOD FOR SYSTEM_TIME (f, t)) WITH SYSTEM VERSIONING;
INSERT INTO s (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO plain VALUES (1, 1);
UPDATE s SET v = 'changed' WHERE id = 1;
DELETE FROM s WHERE id = 2;
