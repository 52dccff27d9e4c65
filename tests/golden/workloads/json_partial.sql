-- needs: mysql >= 8.0.3
-- binlog_row_value_options=PARTIAL_JSON: updates hold differences, applied to the before image.
SET SESSION binlog_row_value_options = PARTIAL_JSON;
CREATE TABLE j (id INT PRIMARY KEY, a JSON, n INT, b JSON, t TEXT);
INSERT INTO j VALUES
  (1, '{"a": 1, "b": [1, 2, 3], "c": {"d": "text", "e": null}, "long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}', 1,
   '[10, 20, 30, {"k": "v"}]', 'x'),
  (2, '[1, 2, 3, "pad pad pad pad pad pad pad pad pad pad pad pad pad pad"]', 2, NULL, 'y'), (3, '{"é中 \\"q\\"": 1, "": {"": 2}}', 3, '"scalar"', NULL);
UPDATE j SET a = JSON_SET(a, '$.a', 2) WHERE id = 1;
UPDATE j SET a = JSON_REPLACE(a, '$.c.d', 'new', '$.b[1]', 22), b = JSON_REPLACE(b, '$[3].k', 'w') WHERE id = 1;
UPDATE j SET a = JSON_REMOVE(a, '$.b[0]', '$.c.e'), n = 10 WHERE id = 1;
UPDATE j SET a = JSON_SET(a, '$.b[9]', 'appended', '$.new', JSON_OBJECT('deep', JSON_ARRAY(1.5, CAST(1.50 AS DECIMAL(4,2))))) WHERE id = 1;
UPDATE j SET a = JSON_SET(a, '$[0]', JSON_ARRAY(), '$[1]', CAST('2024-02-29' AS DATE)) WHERE id = 2;
UPDATE j SET b = JSON_SET(b, '$.x', 1), t = 'null stays null' WHERE id = 2;
UPDATE j SET a = JSON_SET(a, '$."é中 \\"q\\""', 'odd path', '$."".""', 3) WHERE id = 3;
UPDATE j SET a = JSON_SET(a, '$.n', n), b = 'true' WHERE id = 3;
UPDATE j SET a = JSON_REMOVE(a, '$[2]'), id = 20 WHERE id = 2;
UPDATE j SET n = n + 1;
UPDATE j SET a = JSON_SET(a, '$.grow', REPEAT('g', 300)) WHERE id = 1;
UPDATE j SET a = JSON_REPLACE(a, '$.grow', 'small') WHERE id = 1;
UPDATE j SET a = JSON_SET(a, '$.same', n, '$.a', n) WHERE id IN (1, 3);
DELETE FROM j WHERE id = 3;
