-- Geometry of every kind, with and without a spatial reference.
CREATE TABLE geo (id INT PRIMARY KEY, g GEOMETRY, p POINT, l LINESTRING, po POLYGON, mp MULTIPOINT, ml MULTILINESTRING,
  mpo MULTIPOLYGON, gc GEOMETRYCOLLECTION);
INSERT INTO geo VALUES (1, ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(-1.5 1e300)'), ST_GeomFromText('LINESTRING(0 0,1 1,2 3)'),
  ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))'), ST_GeomFromText('MULTIPOINT(0 0,1 1)'),
  ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))'), ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))'),
  ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO geo (id, g, p) VALUES (3, ST_GeomFromText('POINT(10 20)', 4326), ST_GeomFromText('POINT(30 40)', 4326)),
  (4, ST_GeomFromText('LINESTRING(10 20,30 40)', 4326), ST_GeomFromText('POINT(5 6)', 0));
UPDATE geo SET g = ST_GeomFromText('GEOMETRYCOLLECTION(POINT(7 8))') WHERE id = 2;
UPDATE geo SET p = NULL WHERE id = 1;
DELETE FROM geo WHERE id = 4;
