-- needs: mysql >= 5.7.8
-- JSON in the server's own text form: every scalar, opaque values, nesting, large objects and arrays, odd keys.
CREATE TABLE j (id INT PRIMARY KEY AUTO_INCREMENT, doc JSON);
INSERT INTO j (doc) VALUES (NULL), ('null'), ('true'), ('false'), ('0'), ('-1'), ('127'), ('32767'), ('-32768'), ('65535'), ('65536'),
  ('-2147483648'), ('4294967295'), ('4294967296'), ('-9223372036854775808'), ('9223372036854775807'), ('18446744073709551615'),
  ('1.5'), ('-0.0'), ('0.1'), ('1e100'), ('1e-100'), ('1.7976931348623157e308'), ('123456789012345678901234567890'), ('1e15'), ('1e14'),
  ('100000000000000000000.0'), ('0.00001'), ('0.000001'), ('2.5e-7');
INSERT INTO j (doc) VALUES ('""'), ('"é中𝄞"'), ('"\\" \\\\ / \\b \\f \\n \\r \\t \\u0001 \\u001f"'), ('[]'), ('{}'), ('[[[[]]]]'),
  ('[1, "a", null, {"b": [true, false]}]'), ('{"zz": 1, "a": 2, "bb": {"": []}, "é": 3, "\\n": 4}'), ('{"a": 1, "a": 2}');
INSERT INTO j (doc) VALUES (JSON_ARRAY(CAST(1.230 AS DECIMAL(10,3)), CAST(-0.5 AS DECIMAL(3,2)), CAST(0 AS DECIMAL(65,30)),
  CAST('-99999999999999999999999999999999999.999999999999999999999999999999' AS DECIMAL(65,30)))),
  (JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('2024-02-29 12:34:56.789' AS DATETIME(3)), CAST('2024-02-29 12:34:56' AS DATETIME))),
  (JSON_ARRAY(CAST('-12:34:56.5' AS TIME(1)), CAST('838:59:59' AS TIME), CAST('-00:00:00.000001' AS TIME(6)))),
  (JSON_ARRAY(b'101', x'00ff', CAST('abc' AS BINARY), CAST('' AS BINARY))),
  (JSON_OBJECT('g', ST_GeomFromText('POINT(1 2)'), 'u', 18446744073709551615, 'd', PI())),
  (JSON_OBJECT('k', REPEAT('v', 127), 'l', REPEAT('v', 128), 'm', REPEAT('é', 200))),
  (JSON_ARRAY(REPEAT('x', 16383), REPEAT('y', 16384))),
  (CONCAT('[', REPEAT('1,', 2000), '2]')), (CONCAT('[', REPEAT('[', 90), REPEAT(']', 90), ']'));
INSERT INTO j (doc) SELECT CONCAT('{"', REPEAT('k', 200), '": ', doc, '}') FROM j WHERE id = 7;
UPDATE j SET doc = JSON_SET(doc, '$.new', JSON_ARRAY(1, 2), '$.zz', 'text') WHERE id = 38;
UPDATE j SET doc = NULL WHERE id = 3;
DELETE FROM j WHERE id IN (4, 5);
