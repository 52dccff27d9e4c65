-- Every string type: empty, NULL, trailing spaces and zeros, quotes and control characters, lengths of 1 to 4 bytes;
-- ENUM with more than 255 members, SET with 64.
CREATE TABLE texts (id INT PRIMARY KEY, c10 CHAR(10), c255 CHAR(255), c0 CHAR(0), v10 VARCHAR(10), v255 VARCHAR(255),
  v300 VARCHAR(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, bin CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin);
CREATE TABLE bytes (id INT PRIMARY KEY, b1 BINARY(1), b4 BINARY(4), b255 BINARY(255), vb10 VARBINARY(10),
  vb300 VARBINARY(300), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB);
CREATE TABLE choices (id INT PRIMARY KEY, e3 ENUM('a','b','c'), e_odd ENUM('','it''s','x,y','back\\slash','é中') NOT NULL,
  e300 ENUM('v0','v1','v2','v3','v4','v5','v6','v7','v8','v9','v10','v11','v12','v13','v14','v15','v16','v17','v18','v19','v20','v21','v22','v23','v24','v25','v26','v27','v28','v29','v30','v31','v32','v33','v34','v35','v36','v37','v38','v39','v40','v41','v42','v43','v44','v45','v46','v47','v48','v49','v50','v51','v52','v53','v54','v55','v56','v57','v58','v59','v60','v61','v62','v63','v64','v65','v66','v67','v68','v69','v70','v71','v72','v73','v74','v75','v76','v77','v78','v79','v80','v81','v82','v83','v84','v85','v86','v87','v88','v89','v90','v91','v92','v93','v94','v95','v96','v97','v98','v99','v100','v101','v102','v103','v104','v105','v106','v107','v108','v109','v110','v111','v112','v113','v114','v115','v116','v117','v118','v119','v120','v121','v122','v123','v124','v125','v126','v127','v128','v129','v130','v131','v132','v133','v134','v135','v136','v137','v138','v139','v140','v141','v142','v143','v144','v145','v146','v147','v148','v149','v150','v151','v152','v153','v154','v155','v156','v157','v158','v159','v160','v161','v162','v163','v164','v165','v166','v167','v168','v169','v170','v171','v172','v173','v174','v175','v176','v177','v178','v179','v180','v181','v182','v183','v184','v185','v186','v187','v188','v189','v190','v191','v192','v193','v194','v195','v196','v197','v198','v199','v200','v201','v202','v203','v204','v205','v206','v207','v208','v209','v210','v211','v212','v213','v214','v215','v216','v217','v218','v219','v220','v221','v222','v223','v224','v225','v226','v227','v228','v229','v230','v231','v232','v233','v234','v235','v236','v237','v238','v239','v240','v241','v242','v243','v244','v245','v246','v247','v248','v249','v250','v251','v252','v253','v254','v255','v256','v257','v258','v259','v260','v261','v262','v263','v264','v265','v266','v267','v268','v269','v270','v271','v272','v273','v274','v275','v276','v277','v278','v279','v280','v281','v282','v283','v284','v285','v286','v287','v288','v289','v290','v291','v292','v293','v294','v295','v296','v297','v298','v299'), s3 SET('x','y','z'), s_odd SET('it''s','é','中 文'), s9 SET('1','2','3','4','5','6','7','8','9'),
  s64 SET('m0','m1','m2','m3','m4','m5','m6','m7','m8','m9','m10','m11','m12','m13','m14','m15','m16','m17','m18','m19','m20','m21','m22','m23','m24','m25','m26','m27','m28','m29','m30','m31','m32','m33','m34','m35','m36','m37','m38','m39','m40','m41','m42','m43','m44','m45','m46','m47','m48','m49','m50','m51','m52','m53','m54','m55','m56','m57','m58','m59','m60','m61','m62','m63'));
INSERT INTO texts VALUES
  (1, '', '', '', '', '', '', '', '', '', '', ''),
  (2, 'abc   ', 'é€中𝄞', '', 'trail   ', REPEAT('é', 255), REPEAT('中', 300), REPEAT('t', 255), REPEAT('x', 256),
   REPEAT('m', 700), REPEAT('é', 400), 'Bin'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, 'it''s "q"', CONCAT('tab', CHAR(9), 'nl', CHAR(10), 'cr', CHAR(13), 'z', CHAR(26), 'nul', CHAR(0), 'end'), '',
   '\\ back', '%_;-- /* */', CONCAT(CHAR(0), 'x'), ' ', REPEAT(' ', 3), CHAR(10), 'a`b', ' lead');
INSERT INTO bytes VALUES
  (1, '', '', '', '', '', '', '', '', ''),
  (2, x'00', x'0100', x'ff', x'00ff0000', REPEAT(x'00', 300), REPEAT(x'ab', 255), REPEAT(x'80', 256), x'0d0a1a00', x'fe'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, x'20', x'20202020', REPEAT(x'20', 255), x'2020', x'61', '0', 'é', REPEAT(x'c3', 600), x'00');
INSERT INTO choices VALUES (1, 'a', '', 'v0', '', '', '', ''), (2, 'c', 'é中', 'v299', 'x,y,z', 'it''s,é,中 文',
  '1,2,3,4,5,6,7,8,9', 18446744073709551615), (3, NULL, 'it''s', NULL, NULL, NULL, NULL, NULL),
  (4, 'b', 'x,y', 'v255', 'z', '中 文', '9', 'm63'), (5, 'b', 'back\\slash', 'v256', 'x,z', 'é', '1,9', 'm0,m31,m32');
UPDATE texts SET lt = REPEAT('long ', 300), v10 = 'é中' WHERE id = 1;
UPDATE bytes SET b4 = x'00000001', lb = REPEAT(x'00ff', 40) WHERE id IN (1, 3);
UPDATE choices SET e300 = 'v1', s64 = 'm1', s3 = s3 | 2 WHERE id > 3;
DELETE FROM texts WHERE id = 3;
SET sql_mode = '';
INSERT IGNORE INTO choices VALUES (6, 'no such member', 'neither', 'x', 'q', 'q', '0', 'm64');
