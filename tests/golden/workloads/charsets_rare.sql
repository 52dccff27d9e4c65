-- Charsets without an exact decoder here: their tables are held, one by one.
-- held: dec8 UnsupportedValue
-- held: swe7 UnsupportedValue
-- held: armscii8 UnsupportedValue
-- held: keybcs2 UnsupportedValue
-- held: geostd8 UnsupportedValue
CREATE TABLE dec8 (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET dec8);
CREATE TABLE swe7 (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET swe7);
CREATE TABLE armscii8 (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET armscii8);
CREATE TABLE keybcs2 (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET keybcs2);
CREATE TABLE geostd8 (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET geostd8);
INSERT INTO dec8 VALUES (1, 'é'), (2, NULL);
INSERT INTO swe7 VALUES (1, 'Abc'), (2, NULL);
INSERT INTO armscii8 VALUES (1, 'abc'), (2, NULL);
INSERT INTO keybcs2 VALUES (1, 'č'), (2, NULL);
INSERT INTO geostd8 VALUES (1, 'abc'), (2, NULL);
