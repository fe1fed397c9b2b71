//! tokio-postgres: errors, notices, notifications, cancels and parameters of connections.

use std::time::Duration;

use futures_util::{StreamExt, future, stream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::error::{ErrorPosition, SqlState};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::cases;
use crate::harness::{Case, Done, Failed, Place, error_of};
use crate::tokio_query_cases::{connect, names, with_people};

pub fn all() -> Vec<Case> {
    cases![
        errors_of_constraints_have_fields,
        errors_have_codes,
        errors_have_positions,
        errors_of_conversions,
        notices_are_received,
        listen_and_notify,
        queries_are_cancelled,
        statement_time_out,
        lock_not_available,
        config_is_applied,
        parameters_of_the_connection,
        wrong_database_is_refused,
        advisory_locks,
        columns_are_introspected,
        types_are_looked_up_once,
        statements_outlive_errors,
    ]
}

async fn errors_of_constraints_have_fields(place: Place) -> Done {
    let client = with_people(&place).await?;
    let error = error_of(client.execute("insert into people (name) values ('ann')", &[]).await);
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!(error.code(), &SqlState::UNIQUE_VIOLATION);
    assert_eq!(error.constraint(), Some("people_name_key"));
    assert_eq!((error.schema(), error.table()), (Some(&*place.schema), Some("people")));
    assert_eq!(error.detail(), Some("Key (name)=(ann) already exists."));
    assert_eq!(error.severity(), "ERROR");
    let error = error_of(client.execute("insert into people (name) values (null)", &[]).await);
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!((error.code(), error.column()), (&SqlState::NOT_NULL_VIOLATION, Some("name")));
    let error = error_of(client.execute("update people set age = -1", &[]).await);
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!(error.constraint(), Some("people_age_check"));
    Ok(())
}

async fn errors_have_codes(place: Place) -> Done {
    let client = with_people(&place).await?;
    for (query, state) in [
        ("select 1 / 0", SqlState::DIVISION_BY_ZERO),
        ("select * from nowhere", SqlState::UNDEFINED_TABLE),
        ("select nothing from people", SqlState::UNDEFINED_COLUMN),
        ("select no_such_function(1)", SqlState::UNDEFINED_FUNCTION),
        ("select 'x'::int", SqlState::INVALID_TEXT_REPRESENTATION),
        ("select 32768::int2", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
        ("select '2024-02-30'::date", SqlState::DATETIME_FIELD_OVERFLOW),
        ("create table people (n int)", SqlState::DUPLICATE_TABLE),
        ("drop schema nowhere", SqlState::INVALID_SCHEMA_NAME),
        ("select name from people group by age", SqlState::GROUPING_ERROR),
        ("select (select id from people)", SqlState::CARDINALITY_VIOLATION),
    ] {
        let error = error_of(client.query(query, &[]).await);
        assert_eq!(error.code(), Some(&state), "{query}");
    }
    Ok(())
}

async fn errors_have_positions(place: Place) -> Done {
    let client = connect(&place).await?;
    let error = error_of(client.query("select nothing", &[]).await);
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!(error.position(), Some(&ErrorPosition::Original(8)));
    let error = error_of(client.simple_query("selec 1").await);
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!(error.message(), "syntax error at or near \"selec\"");
    assert_eq!(error.position(), Some(&ErrorPosition::Original(1)));
    Ok(())
}

async fn errors_of_conversions(place: Place) -> Done {
    let client = with_people(&place).await?;
    // The client refuses these itself, by the types that the server described.
    assert!(client.query("select * from people where age = $1", &[&"x"]).await.is_err());
    assert!(client.query("select * from people where age = $1", &[]).await.is_err());
    let row = client.query_one("select name from people where id = 1", &[]).await?;
    assert!(row.try_get::<_, i32>(0).is_err());
    Ok(())
}

/// A connection, and what the server says of itself on it.
async fn with_messages(place: &Place) -> Result<(Client, UnboundedReceiver<AsyncMessage>), Failed> {
    let (client, mut connection) = tokio_postgres::connect(&place.url(), NoTls).await?;
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        let messages = stream::poll_fn(move |cx| connection.poll_message(cx));
        messages
            .for_each(|message| {
                if let Ok(message) = message {
                    let _ = sender.send(message);
                }
                future::ready(())
            })
            .await;
    });
    Ok((client, receiver))
}

async fn notices_are_received(place: Place) -> Done {
    let (client, mut messages) = with_messages(&place).await?;
    client.batch_execute("drop table if exists nowhere").await?;
    match messages.recv().await {
        Some(AsyncMessage::Notice(notice)) => {
            assert_eq!(notice.message(), "table \"nowhere\" does not exist, skipping");
            assert_eq!((notice.severity(), notice.code().code()), ("NOTICE", "00000"));
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}

async fn listen_and_notify(place: Place) -> Done {
    let (listener, mut messages) = with_messages(&place).await?;
    listener.batch_execute("listen news").await?;
    let sender = connect(&place).await?;
    sender.batch_execute("notify news, 'one'").await?;
    sender.execute("select pg_notify('news', $1)", &[&"two"]).await?;
    let mut said = vec![];
    while said.len() < 2 {
        match messages.recv().await {
            Some(AsyncMessage::Notification(found)) => {
                assert_eq!(found.channel(), "news");
                assert!(found.process_id() > 0);
                said.push(found.payload().to_string());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(said, ["one", "two"]);
    Ok(())
}

async fn queries_are_cancelled(place: Place) -> Done {
    let client = connect(&place).await?;
    let token = client.cancel_token();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    });
    let error = error_of(client.query("select pg_sleep(20)", &[]).await);
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    assert_eq!(client.query_one("select 1", &[]).await?.get::<_, i32>(0), 1);
    Ok(())
}

async fn statement_time_out(place: Place) -> Done {
    let client = connect(&place).await?;
    client.batch_execute("set statement_timeout = '200ms'").await?;
    let error = error_of(client.query("select pg_sleep(20)", &[]).await);
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!(error.message(), "canceling statement due to statement timeout");
    Ok(())
}

async fn lock_not_available(place: Place) -> Done {
    let mut one = with_people(&place).await?;
    let two = connect(&place).await?;
    let holder = one.transaction().await?;
    holder.query("select * from people where id = 1 for update", &[]).await?;
    let query = "select * from people where id = 1 for update nowait";
    let error = error_of(two.query(query, &[]).await);
    assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
    let rows = two.query("select id from people for update skip locked", &[]).await?;
    assert_eq!(rows.len(), 1);
    Ok(())
}

async fn config_is_applied(place: Place) -> Done {
    let mut config: Config = place.url().parse()?;
    config.application_name("rusty").connect_timeout(Duration::from_secs(5));
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    let row = client
        .query_one("select current_setting('application_name'), current_user::text", &[])
        .await?;
    assert_eq!(row.get::<_, &str>(0), "rusty");
    assert_eq!(Some(row.get::<_, &str>(1)), config.get_user());
    let found = client
        .query_one(
            "select application_name from pg_stat_activity where pid = pg_backend_pid()",
            &[],
        )
        .await?;
    assert_eq!(found.get::<_, &str>(0), "rusty");
    Ok(())
}

async fn parameters_of_the_connection(place: Place) -> Done {
    let (client, connection) = tokio_postgres::connect(&place.url(), NoTls).await?;
    assert_eq!(connection.parameter("client_encoding"), Some("UTF8"));
    assert_eq!(connection.parameter("integer_datetimes"), Some("on"));
    assert_eq!(connection.parameter("standard_conforming_strings"), Some("on"));
    assert!(connection.parameter("server_version").is_some_and(|v| v.starts_with("18")));
    tokio::spawn(connection);
    assert!(!client.is_closed());
    Ok(())
}

async fn wrong_database_is_refused(place: Place) -> Done {
    let mut config: Config = place.url().parse()?;
    config.dbname("nowhere");
    let error = error_of(config.connect(NoTls).await);
    assert_eq!(error.code(), Some(&SqlState::INVALID_CATALOG_NAME));
    Ok(())
}

async fn advisory_locks(place: Place) -> Done {
    let (one, two) = (connect(&place).await?, connect(&place).await?);
    one.query("select pg_advisory_lock($1)", &[&77i64]).await?;
    let row = two.query_one("select pg_try_advisory_lock($1)", &[&77i64]).await?;
    assert!(!row.get::<_, bool>(0));
    let row = one.query_one("select pg_advisory_unlock($1)", &[&77i64]).await?;
    assert!(row.get::<_, bool>(0));
    let row = two.query_one("select pg_try_advisory_lock($1)", &[&77i64]).await?;
    assert!(row.get::<_, bool>(0));
    Ok(())
}

async fn columns_are_introspected(place: Place) -> Done {
    let client = with_people(&place).await?;
    let rows = client
        .query(
            "select column_name, data_type, is_nullable, is_identity
             from information_schema.columns where table_schema = $1 and table_name = $2
             order by ordinal_position",
            &[&place.schema, &"people"],
        )
        .await?;
    let found: Vec<_> = rows
        .iter()
        .map(|row| (0..4).map(|n| row.get::<_, &str>(n)).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(found, ["id bigint NO YES", "name text NO NO", "age integer YES NO"]);
    Ok(())
}

async fn types_are_looked_up_once(place: Place) -> Done {
    let client = connect(&place).await?;
    client
        .batch_execute(
            "create type size as enum ('s', 'm'); create domain label as text;
             create table shirts (size size, sizes size[], label label)",
        )
        .await?;
    let found = client.prepare("select size, sizes, label from shirts where size = $1").await?;
    let size = found.columns()[0].type_();
    assert_eq!((size.name(), size.schema()), ("size", &*place.schema));
    assert_eq!(found.columns()[1].type_().name(), "_size");
    assert_eq!(&found.params()[0], size);
    client.clear_type_cache();
    client.prepare("select sizes from shirts").await?;
    Ok(())
}

async fn statements_outlive_errors(place: Place) -> Done {
    let client = with_people(&place).await?;
    let statement = client.prepare("insert into people (name) values ($1)").await?;
    error_of(client.execute(&statement, &[&"ann"]).await);
    client.execute(&statement, &[&"zoe"]).await?;
    drop(statement);
    assert_eq!(names(&client).await?, ["ann", "bob", "zoe"]);
    Ok(())
}
