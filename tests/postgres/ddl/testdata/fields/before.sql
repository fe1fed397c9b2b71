DROP SCHEMA IF EXISTS f, g CASCADE
CREATE SCHEMA f
CREATE SCHEMA g
SET search_path = f
SET client_min_messages = error
CREATE TYPE mood AS ENUM ('sad', 'glad')
CREATE DOMAIN small AS int CHECK (VALUE < 100)
CREATE TABLE r (a int CONSTRAINT r_key PRIMARY KEY, b text DEFAULT 'none', c numeric(10,2) CONSTRAINT c_small CHECK (c < 1000))
INSERT INTO r VALUES (1, 'x', 1.5), (2, 'y', 2.5), (3, 'y', NULL)
CREATE TABLE s (a int, k int GENERATED ALWAYS AS IDENTITY, n text)
INSERT INTO s (a, n) VALUES (1, 'one'), (1, 'uno'), (4, NULL)
CREATE TABLE p (a int CONSTRAINT p_refers REFERENCES r DEFERRABLE, m mood, w small, l int[], j jsonb)
INSERT INTO p VALUES (1, 'sad', 5, '{1,2,3}', '{"a": 1, "b": [1, 2, "x"]}')
CREATE VIEW v AS SELECT a, b FROM r WHERE a < 10
CREATE SEQUENCE q
CREATE INDEX i ON r (b)
CREATE TABLE g.r (a int)
INSERT INTO g.r VALUES (70)
