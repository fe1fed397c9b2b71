CREATE SCHEMA s;
CREATE TYPE e AS ENUM ('x', 'y');
CREATE TYPE s.f AS ENUM ('x');
CREATE DOMAIN d AS int;
CREATE ROLE named_by_a_constant;
CREATE TABLE t (a e, b text);
CREATE TABLE n (a text DEFAULT 'e'::regtype::text || 1, b text CHECK (b <> 's.f'::regtype::text));
INSERT INTO n (b) VALUES ('x') RETURNING *;
INSERT INTO n (b) VALUES ('s.f');
CREATE VIEW v AS SELECT pg_typeof(a) = 'e'::regtype AS a, regtype 's.f' AS b, 'int'::regtype AS c, 'e[]'::regtype AS d, 'd'::regtype AS e FROM t;
INSERT INTO t VALUES ('x', 'y');
SELECT * FROM v;
DROP TYPE s.f;
DROP DOMAIN d;
DROP TYPE e;
SET search_path = s;
SELECT * FROM public.v;
INSERT INTO public.n (b) VALUES ('y') RETURNING *;
RESET search_path;
DROP VIEW v;
DROP DOMAIN d;
DROP TABLE n;
DROP TYPE s.f;
CREATE TABLE n (a text DEFAULT 'named_by_a_constant'::regrole::text);
CREATE TABLE n (a text CHECK (a <> 'named_by_a_constant'::regrole::text));
CREATE DOMAIN d AS text CHECK (VALUE <> 'named_by_a_constant'::regrole::text);
CREATE VIEW v AS SELECT 'named_by_a_constant'::regrole AS a;
DROP ROLE named_by_a_constant;
# meridian
create view v as select 'e'::regtype as a
alter type e rename to e2
alter type e set schema s
drop type e cascade
create view w as select 's'::regnamespace as a
create view w as select 'pg_catalog'::regnamespace as a
select * from w
