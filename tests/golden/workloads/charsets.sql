-- A column of every charset that can be decoded exactly, with text that only it can hold; ENUM and SET members in such charsets.
CREATE TABLE cs (id INT PRIMARY KEY,
  c_big5 VARCHAR(20) CHARACTER SET big5, c_cp850 VARCHAR(20) CHARACTER SET cp850, c_hp8 VARCHAR(20) CHARACTER SET hp8,
  c_koi8r VARCHAR(20) CHARACTER SET koi8r, c_latin1 VARCHAR(20) CHARACTER SET latin1, c_latin2 VARCHAR(20) CHARACTER SET latin2,
  c_ascii VARCHAR(20) CHARACTER SET ascii, c_ujis VARCHAR(20) CHARACTER SET ujis, c_sjis VARCHAR(20) CHARACTER SET sjis,
  c_hebrew VARCHAR(20) CHARACTER SET hebrew, c_tis620 VARCHAR(20) CHARACTER SET tis620, c_euckr VARCHAR(20) CHARACTER SET euckr,
  c_koi8u VARCHAR(20) CHARACTER SET koi8u, c_gb2312 VARCHAR(20) CHARACTER SET gb2312, c_greek VARCHAR(20) CHARACTER SET greek,
  c_cp1250 VARCHAR(20) CHARACTER SET cp1250, c_gbk VARCHAR(20) CHARACTER SET gbk, c_latin5 VARCHAR(20) CHARACTER SET latin5,
  c_utf8 VARCHAR(20) CHARACTER SET utf8, c_ucs2 VARCHAR(20) CHARACTER SET ucs2, c_cp866 VARCHAR(20) CHARACTER SET cp866,
  c_macce VARCHAR(20) CHARACTER SET macce, c_macroman VARCHAR(20) CHARACTER SET macroman, c_cp852 VARCHAR(20) CHARACTER SET cp852,
  c_latin7 VARCHAR(20) CHARACTER SET latin7, c_utf8mb4 VARCHAR(20) CHARACTER SET utf8mb4, c_cp1251 VARCHAR(20) CHARACTER SET cp1251,
  c_utf16 VARCHAR(20) CHARACTER SET utf16, c_utf16le VARCHAR(20) CHARACTER SET utf16le, c_cp1256 VARCHAR(20) CHARACTER SET cp1256,
  c_cp1257 VARCHAR(20) CHARACTER SET cp1257, c_utf32 VARCHAR(20) CHARACTER SET utf32, c_binary VARCHAR(20) CHARACTER SET binary,
  c_cp932 VARCHAR(20) CHARACTER SET cp932, c_eucjpms VARCHAR(20) CHARACTER SET eucjpms);
CREATE TABLE kinds (id INT PRIMARY KEY, e_gbk ENUM('中','文') CHARACTER SET gbk, s_latin1 SET('é','ü') CHARACTER SET latin1,
  e_u16 ENUM('a','中') CHARACTER SET utf16, t_gbk TEXT CHARACTER SET gbk, c_u16 CHAR(8) CHARACTER SET utf16, c_u32 CHAR(5) CHARACTER SET utf32,
  c_ucs2 CHAR(5) CHARACTER SET ucs2, c_sjis CHAR(5) CHARACTER SET sjis, l_u16 LONGTEXT CHARACTER SET utf16, s_greek SET('α','β') CHARACTER SET greek);
INSERT INTO cs VALUES
  (1, '中文', 'é', 'é', 'Привет', 'éü€', 'ąę', 'abc', '日本', '日本ｱ', 'שלום', 'ไทย', '한국', 'Їжак', '中文', 'Ελλ', 'ąę€', '中文', 'ğş', 'é中', 'é中', 'Привет', 'čř', 'é∞', 'č', 'ā', '𝄞é中', 'Привет', '𝄞中', '𝄞中', 'سلام', 'ā', '𝄞中', 'raw', '日本①', '日本①'),
  (2, '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', ''),
  (3, 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO kinds VALUES (1, '文', 'é,ü', '中', '中文text', '中 ', '𝄞a', '中', '日本', '𝄞𝄞', 'α,β'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL), (3, '中', '', 'a', '', '', '', '', '', '', 'β');
UPDATE cs SET c_latin1 = 'ß', c_gbk = '', c_utf16 = 'abc 中' WHERE id = 1;
UPDATE kinds SET c_u16 = '𝄞', l_u16 = 'text' WHERE id > 1;
DELETE FROM cs WHERE id = 3;
