-- needs: mysql >= 8.0.30
-- A primary key that the server adds by itself, and that nobody sees.
SET SESSION sql_generate_invisible_primary_key = ON;
CREATE TABLE p (a INT, b VARCHAR(10));
INSERT INTO p VALUES (1, 'x'), (1, 'x'), (2, 'y');
UPDATE p SET b = 'z' LIMIT 1;
DELETE FROM p WHERE a = 2;
