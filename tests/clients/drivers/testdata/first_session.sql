CREATE TABLE cities (name text NOT NULL, country char(2), population int8, founded date DEFAULT '1900-01-01');
INSERT INTO cities VALUES
  ('Oslo', 'NO', 717710, '1048-01-01'),
  ('Bergen', 'NO', 291940, '1070-01-01'),
  ('Malmö', 'SE', 362133, NULL);
INSERT INTO cities (name, population) VALUES ('Nowhere', 0) RETURNING *;
SELECT name, population FROM cities ORDER BY population DESC;
SELECT country, count(*), sum(population), round(avg(population), 1) AS average
  FROM cities WHERE country IS NOT NULL GROUP BY country ORDER BY country;
COPY cities (name, country, population) FROM STDIN (FORMAT csv);
Turku,FI,202250
"Åbo, old",FI,
\.
COPY (SELECT name, population, founded FROM cities WHERE country = 'FI' ORDER BY name) TO STDOUT (FORMAT csv, HEADER);
BEGIN;
UPDATE cities SET population = population + 1 WHERE country = 'NO';
DELETE FROM cities WHERE name = 'Nowhere';
SELECT sum(population) FROM cities WHERE country = 'NO';
ROLLBACK;
SELECT sum(population) FROM cities WHERE country = 'NO';
-- what goes wrong
INSERT INTO cities VALUES (NULL, 'DK', 1);
SELECT nme FROM cities;
SELECT 1 / 0;
SELECT 'ten'::int4;
SELEC 1;
CREATE VIEW v AS SELECT 1;
COPY cities (name) FROM STDIN;
one	two
\.
BEGIN;
SELECT missing();
SELECT 1;
COMMIT;
SET timezone = 'Europe/Oslo';
SELECT '2026-06-01 12:00+00'::timestamptz AS noon;
SHOW transaction_isolation;
DROP TABLE cities, nothing;
DROP TABLE IF EXISTS nothing;
DROP TABLE cities;
