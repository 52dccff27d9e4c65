-- needs: mysql >= 5.7.4
-- GB18030, which only MySQL has: characters of one, two and four bytes.
CREATE TABLE g (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET gb18030, t TEXT CHARACTER SET gb18030, e ENUM('中','文') CHARACTER SET gb18030);
INSERT INTO g VALUES (1, 'a中𝄞é', '文€', '文'), (2, NULL, NULL, NULL), (3, '', '', '中');
UPDATE g SET v = '㐀' WHERE id = 2;
