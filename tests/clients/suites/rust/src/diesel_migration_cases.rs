//! diesel: transactions, errors, pools and migrations.

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationVersion;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use diesel::result::{DatabaseErrorKind, Error};
use diesel_migrations::{FileBasedMigrations, MigrationHarness};

use crate::blocking;
use crate::diesel_query_cases::{User, connect, names, users, with_users};
use crate::harness::{Case, Done, Failed, Place, error_of};

pub fn all() -> Vec<Case> {
    blocking![
        transactions,
        savepoints,
        built_transactions,
        test_transactions,
        errors_have_kinds,
        errors_have_fields,
        broken_transactions_are_left,
        serialization_failures,
        notifications,
        pools,
        connections_refuse,
        migrations_are_run,
        migrations_are_reverted,
        migrations_are_redone,
        failing_migrations_are_rolled_back,
        schemas_are_read,
    ]
}

fn transactions(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    c.transaction::<_, Error, _>(|c| {
        diesel::insert_into(users::table).values(users::name.eq("Ann")).execute(c)
    })?;
    let error = error_of(c.transaction::<(), Error, _>(|c| {
        diesel::delete(users::table.filter(users::id.eq(3))).execute(c)?;
        Err(Error::RollbackTransaction)
    }));
    assert_eq!(error, Error::RollbackTransaction);
    assert_eq!(names(c)?, ["Sean", "Tess", "Ann"]);
    Ok(())
}

fn savepoints(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    c.transaction::<_, Error, _>(|c| {
        let failed = c.transaction::<_, Error, _>(|c| {
            diesel::insert_into(users::table).values(users::name.eq("Sean")).execute(c)
        });
        assert!(matches!(failed, Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _))));
        diesel::insert_into(users::table).values(users::name.eq("Ann")).execute(c)
    })?;
    assert_eq!(names(c)?.len(), 3);
    Ok(())
}

fn built_transactions(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let error = error_of(
        c.build_transaction()
            .repeatable_read()
            .read_only()
            .run(|c| diesel::delete(users::table).execute(c)),
    );
    assert!(matches!(error, Error::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _)));
    c.build_transaction().serializable().deferrable().read_only().run(names)?;
    Ok(())
}

fn test_transactions(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    c.test_transaction::<_, Error, _>(|c| diesel::sql_query("delete from posts").execute(c));
    let left: User = users::table.first(c)?;
    assert_eq!(left.id, 1);
    Ok(())
}

fn errors_have_kinds(place: Place) -> Done {
    use DatabaseErrorKind as Kind;
    let c = &mut with_users(&place)?;
    c.batch_execute("alter table users add constraint adult check (age >= 18)")?;
    for (query, kind) in [
        ("insert into users (name) values ('Sean')", Kind::UniqueViolation),
        ("insert into posts (user_id, title) values (99, 'x')", Kind::ForeignKeyViolation),
        ("insert into users (name) values (null)", Kind::NotNullViolation),
        ("update users set age = 3", Kind::CheckViolation),
        ("select * from nowhere", Kind::Unknown),
    ] {
        match error_of(diesel::sql_query(query).execute(c)) {
            Error::DatabaseError(found, _) => {
                assert_eq!(format!("{found:?}"), format!("{kind:?}"), "{query}");
            }
            error => panic!("{error}"),
        }
    }
    Ok(())
}

fn errors_have_fields(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let query = diesel::insert_into(users::table).values(users::name.eq("Sean"));
    let Error::DatabaseError(_, said) = error_of(query.execute(c)) else { panic!("no error") };
    assert_eq!(said.message(), "duplicate key value violates unique constraint \"users_name_key\"");
    assert_eq!(said.details(), Some("Key (name)=(Sean) already exists."));
    assert_eq!(
        (said.table_name(), said.constraint_name()),
        (Some("users"), Some("users_name_key"))
    );
    let Error::DatabaseError(_, said) =
        error_of(diesel::sql_query("select idd from users").execute(c))
    else {
        panic!("no error")
    };
    assert_eq!(said.hint(), Some("Perhaps you meant to reference the column \"users.id\"."));
    assert_eq!(said.statement_position(), Some(8));
    Ok(())
}

fn broken_transactions_are_left(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let failed = c.transaction::<_, Error, _>(|c| {
        let _ = diesel::sql_query("select 1 / 0").execute(c);
        names(c)
    });
    assert!(failed.is_err());
    assert_eq!(names(c)?.len(), 2);
    Ok(())
}

fn serialization_failures(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let other = &mut connect(&place)?;
    let failed = c.build_transaction().repeatable_read().run(|c| {
        names(c)?;
        diesel::update(users::table.find(1)).set(users::age.eq(1)).execute(other)?;
        diesel::update(users::table.find(1)).set(users::age.eq(2)).execute(c)
    });
    let kind = error_of(failed);
    assert!(
        matches!(kind, Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)),
        "{kind}"
    );
    Ok(())
}

fn notifications(place: Place) -> Done {
    let c = &mut connect(&place)?;
    c.batch_execute("listen channel; notify channel, 'hello'")?;
    let found = c.notifications_iter().next().ok_or("no notification")??;
    assert_eq!((&*found.channel, &*found.payload), ("channel", "hello"));
    Ok(())
}

fn pools(place: Place) -> Done {
    let manager = ConnectionManager::<PgConnection>::new(place.url());
    let pool = Pool::builder().max_size(3).test_on_check_out(true).build(manager)?;
    let threads: Vec<_> = (0..6)
        .map(|n| {
            let pool = pool.clone();
            std::thread::spawn(move || {
                let mut c = pool.get()?;
                Ok::<i32, Failed>(
                    diesel::select(n.into_sql::<diesel::sql_types::Integer>())
                        .get_result(&mut c)?,
                )
            })
        })
        .collect();
    let mut sum = 0;
    for thread in threads {
        sum += thread.join().map_err(|_| "the thread stopped")??;
    }
    assert_eq!((sum, pool.state().connections), (15, 3));
    Ok(())
}

fn connections_refuse(_place: Place) -> Done {
    let url = crate::harness::server();
    let (base, _) = url.rsplit_once('/').ok_or("no database")?;
    let error = error_of(PgConnection::establish(&format!("{base}/nowhere")));
    assert!(error.to_string().contains("database \"nowhere\" does not exist"), "{error}");
    Ok(())
}

const FILES: [(&str, &str); 4] = [
    (
        "2024-01-01-000000_people/up.sql",
        "create table people (id serial primary key, name text not null, born date);
         create unique index people_name on people (lower(name));",
    ),
    ("2024-01-01-000000_people/down.sql", "drop table people;"),
    (
        "2024-01-02-000000_pets/up.sql",
        "create table pets (id int generated always as identity primary key,
             owner int not null references people on delete cascade);
         insert into people (name) values ('it''s; me');
         comment on table pets is 'Pets'; alter table people add column mail text default 'x';",
    ),
    (
        "2024-01-02-000000_pets/down.sql",
        "alter table people drop column mail; drop table pets; delete from people;",
    ),
];

fn migrations(place: &Place, files: &[(&str, &str)]) -> Result<FileBasedMigrations, Failed> {
    Ok(FileBasedMigrations::from_path(place.files(files)?)?)
}

fn tables(c: &mut PgConnection) -> QueryResult<Vec<String>> {
    use diesel::dsl::sql;
    diesel::select(sql::<diesel::sql_types::Text>(
        "unnest(array(select tablename::text from pg_tables where schemaname = current_schema() order by 1))",
    ))
    .load(c)
}

fn migrations_are_run(place: Place) -> Done {
    let c = &mut connect(&place)?;
    let source = migrations(&place, &FILES)?;
    assert!(c.has_pending_migration(source.clone())?);
    assert_eq!(c.run_pending_migrations(source.clone())?.len(), 2);
    assert!(c.run_pending_migrations(source)?.is_empty());
    assert_eq!(tables(c)?, ["__diesel_schema_migrations", "people", "pets"]);
    assert_eq!(c.applied_migrations()?[0], MigrationVersion::from("20240102000000"));
    Ok(())
}

fn migrations_are_reverted(place: Place) -> Done {
    let c = &mut connect(&place)?;
    let source = migrations(&place, &FILES)?;
    c.run_pending_migrations(source.clone())?;
    c.revert_last_migration(source.clone())?;
    assert_eq!(tables(c)?, ["__diesel_schema_migrations", "people"]);
    c.revert_all_migrations(source)?;
    assert_eq!(tables(c)?, ["__diesel_schema_migrations"]);
    Ok(())
}

fn migrations_are_redone(place: Place) -> Done {
    let c = &mut connect(&place)?;
    let source = migrations(&place, &FILES)?;
    c.run_pending_migrations(source.clone())?;
    c.revert_last_migration(source.clone())?;
    c.run_next_migration(source)?;
    assert_eq!(c.applied_migrations()?.len(), 2);
    Ok(())
}

fn failing_migrations_are_rolled_back(place: Place) -> Done {
    let c = &mut connect(&place)?;
    let broken = [
        FILES[0],
        FILES[1],
        ("2024-01-03-000000_broken/up.sql", "create table late (n int); select * from nowhere;"),
        ("2024-01-03-000000_broken/down.sql", "drop table late;"),
    ];
    assert!(c.run_pending_migrations(migrations(&place, &broken)?).is_err());
    assert_eq!(tables(c)?, ["__diesel_schema_migrations", "people"]);
    Ok(())
}

#[derive(QueryableByName, Debug)]
struct Column {
    #[diesel(sql_type = diesel::sql_types::Text)]
    column_name: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    udt_name: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    is_nullable: String,
}

/// What `diesel print-schema` asks.
fn schemas_are_read(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let columns: Vec<Column> = diesel::sql_query(
        "SELECT column_name, udt_name, udt_schema::information_schema.sql_identifier, is_nullable,
         character_maximum_length,
         col_description(regclass(table_schema || '.' || table_name), ordinal_position)
         FROM information_schema.columns
         WHERE table_name = 'posts' AND table_schema = current_schema() ORDER BY ordinal_position",
    )
    .load(c)?;
    let found: Vec<_> = columns
        .iter()
        .map(|c| format!("{} {} {}", c.column_name, c.udt_name, c.is_nullable))
        .collect();
    assert_eq!(
        found,
        ["id int8 NO", "user_id int4 NO", "title text NO", "tags _text NO", "meta jsonb YES"]
    );
    let keys: Vec<Column> = diesel::sql_query(
        "select tc.table_name::text as column_name, ccu.table_name::text as udt_name,
             kcu.column_name::text as is_nullable
         from information_schema.table_constraints tc
         join information_schema.key_column_usage kcu using (constraint_schema, constraint_name)
         join information_schema.referential_constraints rc using (constraint_schema, constraint_name)
         join information_schema.constraint_column_usage ccu using (constraint_schema, constraint_name)
         where tc.constraint_type = 'FOREIGN KEY' and tc.table_schema = current_schema()",
    )
    .load(c)?;
    assert_eq!((&*keys[0].udt_name, &*keys[0].is_nullable), ("users", "user_id"));
    Ok(())
}
