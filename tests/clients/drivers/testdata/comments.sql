create table noted (a int primary key, b text);
comment on table noted is 'what is noted';
comment on column noted.b is 'the text';
create view looked as select a from noted;
comment on view looked is 'a look';
comment on index noted_pkey is 'by number';
create schema notes;
comment on schema notes is 'kept apart';
\d+ noted
\dt+ noted
\dv+ looked
\di+ noted_pkey
\dn+ notes
