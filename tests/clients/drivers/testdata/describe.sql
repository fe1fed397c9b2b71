-- the commands of psql that look into the catalogs
CREATE SCHEMA shop;
CREATE TABLE shop.item (id serial PRIMARY KEY, code varchar(20) NOT NULL UNIQUE, price numeric(10,2) DEFAULT 0 CHECK (price >= 0), tags text[], made timestamptz DEFAULT now());
\d shop.item
\d+ shop.item
\d shop.item_pkey
\dt shop.*
\di shop.*
\ds shop.*
\dn shop
\l
\du
\d nothing
CREATE TABLE shop.part (item int REFERENCES shop.item ON DELETE CASCADE, of int, n int);
\d shop.part
\d shop.item
DROP TABLE shop.part;
SET search_path = shop;
\d
DROP TABLE item;
\d
RESET search_path;
DROP SCHEMA shop;
\df
\df lower
\df+ initcap
\dfS jsonb_s* jsonb
\daS sum
\sf initcap
\sf lower
\sf lower(text)
\dC numeric
