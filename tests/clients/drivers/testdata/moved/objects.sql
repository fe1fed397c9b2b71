-- What pg_dump moves, and psql describes: the same on both servers.
create role alice login password 'secret' valid until '2030-01-01' connection limit 3;
create role readers;
grant readers to alice with admin option;
comment on role alice is 'a role';

create schema shop;
comment on schema shop is 'the shop';
create type shop.zmood as enum ('sad', 'it''s', 'happy');
alter type shop.zmood add value 'ok' before 'happy';
comment on type shop.zmood is 'moods';
create domain shop.positive as int not null default 1 constraint pos check (value > 0);
create sequence shop.ticket as smallint start 100 increment 5 minvalue 10 maxvalue 1000 cycle;
comment on sequence shop.ticket is 'tickets';
select nextval('shop.ticket'), nextval('shop.ticket');

create table shop.customer (
  id int generated always as identity (start 5 increment 2) primary key,
  email varchar(80) not null unique,
  gone int,
  name text collate "C" constraint named not null,
  mood shop.zmood default 'ok',
  moods shop.zmood[],
  tags text[] default '{}',
  info jsonb,
  credit numeric(12,2) default 0,
  made timestamptz not null default '2024-01-01 00:00:00+00',
  local timestamp(3), born date, at time, zoned timetz, span interval,
  raw bytea, u uuid, c char(5), r real, d double precision, b boolean,
  constraint credit_ok check (credit > id)
);
alter table shop.customer drop column gone;
comment on table shop.customer is 'who buys';
comment on column shop.customer.email is 'where to write';
comment on constraint credit_ok on shop.customer is 'a check';
create table shop.item (
  id bigserial primary key,
  sku text not null,
  price numeric(8,2) not null,
  qty shop.positive,
  twice int generated always as (length(sku) * 2) stored,
  ticket int default nextval('shop.ticket'),
  active boolean not null default true
) with (fillfactor = 70);
create table shop.sale (
  customer int references shop.customer on delete cascade on update restrict,
  item bigint not null,
  n smallint,
  primary key (customer, item),
  constraint sold foreign key (item) references shop.item deferrable initially deferred,
  unique nulls not distinct (n, item)
);
create table "Odd ""Name" ("a b" int, "select" text, "müller" text);
create table nothing (a int);
create unlogged table logless (a int primary key);
create table ring (id int primary key, other int references ring);

create index customer_name on shop.customer (lower(name));
create unique index item_active on shop.item (sku) where active;
create index item_wide on shop.item (price desc nulls last) include (qty);
create unique index item_upper on shop.item (upper(sku));
create index item_hash on shop.item using hash (sku);
comment on index shop.customer_name is 'an index';

create view shop.b_rich as select id, email, credit from shop.customer where credit > 10;
create view shop.a_richer as select id, email from shop.b_rich where id > 4;
create view shop.per_customer as
  select c.id, c.email, count(s.item) as sales
  from shop.customer c left join shop.sale s on s.customer = c.id group by c.id;
create view shop.checked as select id, sku from shop.item where id > 0 with local check option;
comment on view shop.a_richer is 'the richest';
comment on column shop.per_customer.sales is 'how many';

insert into shop.customer
  (email, name, mood, moods, tags, info, credit, local, born, at, zoned, span, raw, u, c, r, d, b)
values
  ('a@x.de', 'Ada', 'happy', '{sad,"it''s",NULL}', '{a,"b c",NULL}', '{"k":[1,null,"ü"]}', 200,
   '2024-02-03 04:05:06.789', '1815-12-10', '12:34:56.789', '12:00:00+02',
   '-1 year 3 days -00:00:01.5', '\xdeadbeef', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'ab', 1.5,
   'NaN', true),
  ('b@x.de', E'Bob\ttab\nnl\\', null, null, null, null, 20, null, null, null, null, null, '', null,
   null, '-Infinity', 1e300, false);
insert into shop.item (sku, price, qty) values ('s1', 1.50, 3), ('s2', 20, 4), ('s3', 0.01, default);
insert into shop.sale values (5, 1, 1), (7, 2, null);
insert into "Odd ""Name" values (1, '\.', 'y'), (null, null, '');
insert into logless values (1), (2);
insert into ring values (1, 1), (2, 1);

create materialized view shop.totals (customer, orders) with (fillfactor = 80) as
  select c.id, count(s.item) from shop.customer c left join shop.sale s on s.customer = c.id
  group by c.id;
create unique index totals_customer on shop.totals (customer);
create materialized view shop.many_orders as select * from shop.totals where orders > 0;
create materialized view shop.not_yet as select id, sku from shop.item with no data;
comment on materialized view shop.totals is 'of customers';
comment on column shop.totals.orders is 'how many';
grant select on shop.totals to alice;
alter materialized view shop.not_yet owner to alice;

grant select, insert on shop.customer to readers;
grant select (id, sku) on shop.item to alice;
grant usage on schema shop to readers with grant option;
grant usage on sequence shop.ticket to readers;
alter default privileges in schema shop grant select on tables to readers;
alter table shop.item owner to alice;
