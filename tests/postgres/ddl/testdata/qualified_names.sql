# Names that stand in texts are folded, cut and taken apart as PostgreSQL does it.
CREATE TABLE "Öl" (a serial)
CREATE TABLE "öl" (b serial)
SELECT to_regclass('ÖL')::text, to_regclass('öL')::text, 'ÖL'::regclass
SELECT nextval('Öl_A_seq'), nextval('öl_B_SEQ')
SELECT nextval('ÖX')
SELECT pg_get_serial_sequence('ÖL', 'a'), pg_get_serial_sequence('"öl"', 'b')
SELECT pg_get_serial_sequence('ÖL', 'b')
SELECT t, pg_get_serial_sequence(t, 'a'), to_regclass(t)::text, t::regclass FROM (VALUES ('ÖL'), ('"Öl"'), ('PUBLIC . ÖL')) v(t)
# Only ASCII has blanks.
SELECT to_regclass(E'\u00a0ÖL')::text, to_regclass(E'ÖL\u00a0')::text, to_regclass(E'ÖL\u001f')::text, to_regclass(E' \t\n\r\f\vÖL\v')::text
# Names have 63 bytes.
CREATE TABLE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (a serial)
CREATE TABLE bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb (a serial)
SELECT to_regclass('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbcc')::text
SELECT to_regclass('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaÖ')::text
SELECT pg_get_serial_sequence('"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbcc"', 'a')
# Other databases, and too many parts.
SELECT to_regclass('"X" . PUBLIC.t')
SELECT '"X".a."b.c"'::regclass
SELECT 'A."B".c.d'::regclass
SELECT t::regclass FROM (VALUES ('"X" . PUBLIC.t')) v(t)
SELECT t::regclass FROM (VALUES ('A."B".c.d')) v(t)
SELECT pg_get_serial_sequence('"X" . PUBLIC.t', 'a')
SELECT pg_get_serial_sequence('x.nosuch.t', 'a')
SELECT pg_get_serial_sequence('A."B".c.d', 'a')
SELECT pg_get_serial_sequence(t, 'a') FROM (VALUES ('x.public.t')) v(t)
SELECT pg_get_serial_sequence('pg_catalog.pg_class', 'oid'), pg_get_serial_sequence('pg_class', 'oid')
SELECT pg_get_serial_sequence('pg_catalog.pg_class', 'nosuch')
SELECT pg_get_serial_sequence('information_schema.tables', 'table_name')
