-- needs: mysql >= 8.0.20
-- Partial JSON updates inside compressed transactions.
SET SESSION binlog_transaction_compression = ON, binlog_row_value_options = PARTIAL_JSON;
CREATE TABLE j (id INT PRIMARY KEY, a JSON);
INSERT INTO j VALUES (1, '{"a": 1, "b": [1, 2], "long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'), (2, '[]');
UPDATE j SET a = JSON_SET(a, '$.a', 2);
BEGIN;
UPDATE j SET a = JSON_REMOVE(a, '$.b[0]') WHERE id = 1;
UPDATE j SET a = JSON_REPLACE(a, '$.long', REPEAT('y', 50)) WHERE id = 1;
INSERT INTO j VALUES (3, '{}');
COMMIT;
DELETE FROM j WHERE id = 2;
