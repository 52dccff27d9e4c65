-- needs: mysql >= 8.0.3
-- PARTIAL_JSON with MINIMAL images: the before image lacks the document, so the differences can't be applied.
-- held: j UnsupportedValue
SET SESSION binlog_row_value_options = PARTIAL_JSON, binlog_row_image = MINIMAL;
CREATE TABLE j (id INT PRIMARY KEY, a JSON);
INSERT INTO j VALUES (1, '{"a": 1, "long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}');
UPDATE j SET a = JSON_SET(a, '$.a', 2) WHERE id = 1;
