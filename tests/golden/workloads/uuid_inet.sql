-- needs: mariadb >= 10.11
-- MariaDB's UUID, INET4 and INET6.
CREATE TABLE u (id INT PRIMARY KEY, u UUID, a INET6, b INET4);
CREATE TABLE keyed (u UUID PRIMARY KEY, v INT);
CREATE TABLE keyed6 (a INET6 PRIMARY KEY, v INT);
INSERT INTO u VALUES (1, '123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00:42:8329', '192.0.2.1'), (2, NULL, NULL, NULL),
  (3, '00000000-0000-0000-0000-000000000000', '::', '0.0.0.0'), (4, 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '255.255.255.255'), (5, '01020304-0506-4708-890a-0b0c0d0e0f10', '::1', '1.2.3.0'),
  (6, '018f6a3e-7b5c-7def-8123-456789abcdef', '::ffff:192.0.2.128', '10.0.0.0'), (7, UUID(), '::192.0.2.1', '0.0.0.1'),
  (8, '20202020-2020-2020-2020-202020202020', '1::', '32.32.32.32'), (9, '00000000-0000-1000-8000-000000000000', '0:0:1::', '1.0.0.32');
UPDATE u SET u = '00112233-4455-6677-8899-aabbccddeeff', a = 'fe80::' WHERE id = 2;
INSERT INTO keyed VALUES ('123e4567-e89b-12d3-a456-426655440000', 1), ('123e4567-e89b-12d3-a456-426655440020', 2);
UPDATE keyed SET u = '123e4567-e89b-12d3-a456-426655440001' WHERE v = 1;
INSERT INTO keyed6 VALUES ('::2', 1), ('2001:db8::', 2);
DELETE FROM keyed6 WHERE v = 1;
DELETE FROM u WHERE id = 1;
