//! sqlx: transactions, errors, bulk loads, notifications, pools and migrations.

use std::time::Duration;

use futures_util::TryStreamExt;
use sqlx::error::ErrorKind;
use sqlx::migrate::{MigrateDatabase, MigrateError, Migrator};
use sqlx::postgres::{
    PgAdvisoryLock, PgConnectOptions, PgConnection, PgDatabaseError, PgErrorPosition, PgListener,
    PgPoolOptions,
};
use sqlx::{Acquire, Connection, PgPool, Postgres};

use crate::cases;
use crate::harness::{Case, Done, Failed, Place, error_of, server};
use crate::sqlx_query_cases::{pool, with_todos};

pub fn all() -> Vec<Case> {
    cases![
        transactions,
        savepoints,
        transactions_begin_with_options,
        errors_have_kinds,
        errors_have_fields,
        errors_have_positions,
        copy_in_and_out,
        listeners,
        listeners_of_pools,
        advisory_locks,
        pools_are_shared,
        pools_time_out,
        statement_caches_and_ddl,
        options_of_connections,
        wrong_databases,
        databases_are_made_and_dropped,
        migrations_are_run,
        migrations_are_undone,
        changed_migrations_are_refused,
        failing_migrations_are_rolled_back,
    ]
}

async fn count(pool: &PgPool) -> Result<i64, Failed> {
    Ok(sqlx::query_scalar("select count(*) from todos").fetch_one(pool).await?)
}

async fn transactions(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let mut transaction = pool.begin().await?;
    sqlx::query("insert into todos (description) values ('a')").execute(&mut *transaction).await?;
    assert_eq!(count(&pool).await?, 2);
    transaction.commit().await?;
    assert_eq!(count(&pool).await?, 3);
    let mut transaction = pool.begin().await?;
    sqlx::query("delete from todos").execute(&mut *transaction).await?;
    drop(transaction);
    assert_eq!(count(&pool).await?, 3);
    Ok(())
}

async fn savepoints(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let mut outer = pool.begin().await?;
    let mut inner = outer.begin().await?;
    sqlx::query("delete from todos").execute(&mut *inner).await?;
    inner.rollback().await?;
    let mut inner = outer.begin().await?;
    sqlx::query("delete from todos where id = 1").execute(&mut *inner).await?;
    inner.commit().await?;
    outer.commit().await?;
    assert_eq!(count(&pool).await?, 1);
    Ok(())
}

async fn transactions_begin_with_options(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let begin = "begin isolation level repeatable read read only";
    let mut transaction = pool.begin_with(begin).await?;
    let level: String =
        sqlx::query_scalar("show transaction_isolation").fetch_one(&mut *transaction).await?;
    assert_eq!(level, "repeatable read");
    let error = error_of(sqlx::query("delete from todos").execute(&mut *transaction).await);
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "25006");
    transaction.rollback().await?;
    Ok(())
}

async fn errors_have_kinds(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    sqlx::raw_sql(
        "create table parts (todo bigint not null references todos, size int check (size > 0))",
    )
    .execute(&pool)
    .await?;
    for (query, kind) in [
        ("insert into todos (description) values ('wash')", ErrorKind::UniqueViolation),
        ("insert into parts values (99, 1)", ErrorKind::ForeignKeyViolation),
        ("insert into parts values (null, 1)", ErrorKind::NotNullViolation),
        ("insert into parts values (1, 0)", ErrorKind::CheckViolation),
    ] {
        let error = error_of(sqlx::query(query).execute(&pool).await);
        let found = error.as_database_error().unwrap().kind();
        assert_eq!(format!("{found:?}"), format!("{kind:?}"), "{query}");
    }
    Ok(())
}

async fn errors_have_fields(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let query = "insert into todos (description) values ($1)";
    let error = error_of(sqlx::query(query).bind("wash").execute(&pool).await);
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    assert_eq!((error.code(), error.table()), ("23505", Some("todos")));
    assert_eq!(error.constraint(), Some("todos_description_key"));
    assert_eq!(error.detail(), Some("Key (description)=(wash) already exists."));
    assert_eq!(error.schema(), Some(&*place.schema));
    let error = error_of(sqlx::query("insert into todos values (1, null)").execute(&pool).await);
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    assert_eq!(error.column(), Some("description"));
    assert_eq!(error.detail(), Some("Failing row contains (1, null, f)."));
    Ok(())
}

async fn errors_have_positions(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let error = error_of(sqlx::query("select id, ? from todos").execute(&pool).await);
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    assert!(matches!(error.position(), Some(PgErrorPosition::Original(_))));
    let error = error_of(sqlx::query("select id, nothing from todos").execute(&pool).await);
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    assert_eq!(error.message(), "column \"nothing\" does not exist");
    assert_eq!(error.position(), Some(PgErrorPosition::Original(12)));
    Ok(())
}

async fn copy_in_and_out(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let mut connection = pool.acquire().await?;
    let copy = "copy todos (description, done) from stdin (format csv)";
    let mut sink = connection.copy_in_raw(copy).await?;
    sink.send(&b"\"a, b\",true\n"[..]).await?;
    sink.send(&b"c,f\n"[..]).await?;
    assert_eq!(sink.finish().await?, 2);
    let mut sink = connection.copy_in_raw(copy).await?;
    sink.send(&b"d,true\n"[..]).await?;
    let error = sink.abort("changed my mind").await;
    assert!(error.is_ok(), "{error:?}");
    let stream =
        connection.copy_out_raw("copy (select * from todos order by id) to stdout").await?;
    let text = stream.map_ok(|part| part.to_vec()).try_concat().await?;
    assert_eq!(String::from_utf8(text)?, "1\twash\tf\n2\tcook\tf\n3\ta, b\tt\n4\tc\tf\n");
    Ok(())
}

async fn listeners(place: Place) -> Done {
    let pool = pool(&place).await?;
    let mut listener = PgListener::connect(&place.url()).await?;
    listener.listen_all(["chan0", "chan1"]).await?;
    sqlx::query("select pg_notify(c, v) from (values ('chan0', 'a'), ('chan1', 'b')) t (c, v)")
        .execute(&pool)
        .await?;
    for (channel, payload) in [("chan0", "a"), ("chan1", "b")] {
        let found = listener.recv().await?;
        assert_eq!((found.channel(), found.payload()), (channel, payload));
    }
    listener.unlisten("chan0").await?;
    listener.unlisten_all().await?;
    Ok(())
}

async fn listeners_of_pools(place: Place) -> Done {
    let pool = pool(&place).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen("a channel").await?;
    sqlx::query("notify \"a channel\", 'hi'").execute(&pool).await?;
    assert_eq!(listener.try_recv().await?.map(|n| n.payload().to_string()), Some("hi".into()));
    Ok(())
}

async fn advisory_locks(place: Place) -> Done {
    let pool = pool(&place).await?;
    let lock = PgAdvisoryLock::new("my lock");
    let held = lock.acquire(pool.acquire().await?).await?;
    let refused = lock.try_acquire(pool.acquire().await?).await?;
    assert!(refused.right().is_some());
    held.release_now().await?;
    assert!(lock.try_acquire(pool.acquire().await?).await?.left().is_some());
    Ok(())
}

async fn pools_are_shared(place: Place) -> Done {
    let pool = pool(&place).await?;
    let found = futures_util::future::try_join_all(
        (0..30i32).map(|n| sqlx::query_scalar::<_, i32>("select $1 * 2").bind(n).fetch_one(&pool)),
    )
    .await?;
    assert_eq!(found.iter().sum::<i32>(), 870);
    assert!(pool.size() <= 3);
    pool.close().await;
    assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolClosed)));
    Ok(())
}

async fn pools_time_out(place: Place) -> Done {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(200))
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::query("set application_name = 'mine'").execute(connection).await?;
                Ok(())
            })
        })
        .connect(&place.url())
        .await?;
    let mut held = pool.acquire().await?;
    assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolTimedOut)));
    let name: String = sqlx::query_scalar("show application_name").fetch_one(&mut *held).await?;
    assert_eq!(name, "mine");
    Ok(())
}

async fn statement_caches_and_ddl(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let mut connection = pool.acquire().await?;
    let query = "select * from todos where id = $1";
    sqlx::query(query).bind(1i64).fetch_one(&mut *connection).await?;
    assert!(connection.cached_statements_size() >= 1);
    sqlx::query("alter table todos add column more int").execute(&mut *connection).await?;
    let error = error_of(sqlx::query(query).bind(1i64).fetch_one(&mut *connection).await);
    let error = error.as_database_error().unwrap();
    assert_eq!(error.message(), "cached plan must not change result type");
    connection.clear_cached_statements().await?;
    sqlx::query(query).bind(1i64).fetch_one(&mut *connection).await?;
    Ok(())
}

async fn options_of_connections(place: Place) -> Done {
    let options: PgConnectOptions = place.url().parse()?;
    let options = options
        .application_name("sqlxy")
        .extra_float_digits(None)
        .statement_cache_capacity(1)
        .options([("lock_timeout", "5s")]);
    let mut connection = PgConnection::connect_with(&options).await?;
    connection.ping().await?;
    let found: (String, String) = sqlx::query_as(
        "select current_setting('application_name'), current_setting('lock_timeout')",
    )
    .fetch_one(&mut connection)
    .await?;
    assert_eq!(found, ("sqlxy".to_string(), "5s".to_string()));
    assert_eq!(connection.server_version_num().map(|number| number / 10_000), Some(18));
    connection.close().await?;
    Ok(())
}

async fn wrong_databases(_place: Place) -> Done {
    let options = server().parse::<PgConnectOptions>()?.database("nowhere");
    let error = error_of(PgConnection::connect_with(&options).await);
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "3D000");
    Ok(())
}

async fn databases_are_made_and_dropped(_place: Place) -> Done {
    let (base, _) = server().rsplit_once('/').map(|(a, b)| (a.to_string(), b.len())).unwrap();
    let url = format!("{base}/rust_made");
    assert!(!Postgres::database_exists(&url).await?);
    Postgres::create_database(&url).await?;
    assert!(Postgres::database_exists(&url).await?);
    let mut connection = PgConnection::connect(&url).await?;
    let name: String =
        sqlx::query_scalar("select current_database()").fetch_one(&mut connection).await?;
    assert_eq!(name, "rust_made");
    connection.close().await?;
    Postgres::drop_database(&url).await?;
    assert!(!Postgres::database_exists(&url).await?);
    Ok(())
}

const UP: (&str, &str) =
    ("1_todos.up.sql", "create table todos (id bigserial primary key, description text not null);");
const DOWN: (&str, &str) = ("1_todos.down.sql", "drop table todos;");
const MORE: (&str, &str) = (
    "2_more.up.sql",
    "alter table todos add column done boolean not null default false; -- one; two
     create index todos_done on todos (done); insert into todos (description) values ('it''s');",
);
const LESS: (&str, &str) = ("2_more.down.sql", "alter table todos drop column done;");

async fn migrator(place: &Place, files: &[(&str, &str)]) -> Result<Migrator, Failed> {
    Ok(Migrator::new(place.files(files)?).await?)
}

async fn migrations_are_run(place: Place) -> Done {
    let pool = pool(&place).await?;
    for _ in 0..2 {
        migrator(&place, &[UP, DOWN, MORE, LESS]).await?.run(&pool).await?;
    }
    assert_eq!(count(&pool).await?, 1);
    let found: Vec<(i64, String, bool)> =
        sqlx::query_as("select version, description, success from _sqlx_migrations order by 1")
            .fetch_all(&pool)
            .await?;
    assert_eq!(found, [(1, "todos".to_string(), true), (2, "more".to_string(), true)]);
    Ok(())
}

async fn migrations_are_undone(place: Place) -> Done {
    let pool = pool(&place).await?;
    let migrator = migrator(&place, &[UP, DOWN, MORE, LESS]).await?;
    migrator.run(&pool).await?;
    migrator.undo(&pool, 1).await?;
    assert!(sqlx::query("select done from todos").execute(&pool).await.is_err());
    migrator.undo(&pool, 0).await?;
    assert!(count(&pool).await.is_err());
    Ok(())
}

async fn changed_migrations_are_refused(place: Place) -> Done {
    let first = pool(&place).await?;
    migrator(&place, &[UP, DOWN]).await?.run(&first).await?;
    let changed = ("1_todos.up.sql", "create table todos (id int)");
    let error = error_of(migrator(&place, &[changed, DOWN]).await?.run(&first).await);
    assert!(matches!(error, MigrateError::VersionMismatch(1)), "{error}");
    // A run that fails keeps its lock as long as its connection lasts.
    first.close().await;
    let second = pool(&place).await?;
    let error = error_of(migrator(&place, &[MORE, LESS]).await?.run(&second).await);
    assert!(matches!(error, MigrateError::VersionMissing(1)), "{error}");
    second.close().await;
    Ok(())
}

async fn failing_migrations_are_rolled_back(place: Place) -> Done {
    let pool = pool(&place).await?;
    let broken = ("2_more.sql", "create table late (n int); insert into nowhere values (1)");
    let first = ("1_todos.sql", UP.1);
    let error = error_of(migrator(&place, &[first, broken]).await?.run(&pool).await);
    assert!(matches!(error, MigrateError::ExecuteMigration(_, 2)), "{error}");
    assert_eq!(count(&pool).await?, 0);
    assert!(sqlx::query("select * from late").execute(&pool).await.is_err());
    Ok(())
}
