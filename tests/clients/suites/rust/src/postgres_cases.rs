//! postgres: the client that blocks.

use std::io::{Read, Write};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::Type;
use postgres::{Client, NoTls};

use crate::blocking;
use crate::harness::{Case, Done, Failed, Place, error_of};

pub fn all() -> Vec<Case> {
    blocking![
        queries_return_rows,
        execute_counts_rows,
        prepared_statements,
        transactions,
        savepoints,
        rows_are_iterated,
        portals,
        copy_in_and_out,
        errors_have_sqlstates,
        errors_name_the_servers_source,
        broken_transactions,
        notifications_are_iterated,
        notifications_time_out,
        queries_are_cancelled,
        simple_queries,
        notices_reach_a_callback,
        connections_are_checked,
    ]
}

fn connect(place: &Place) -> Result<Client, Failed> {
    let mut client = Client::connect(&place.url(), NoTls)?;
    client.batch_execute(
        "create table if not exists person (id serial primary key, name text not null, mail bytea)",
    )?;
    Ok(client)
}

fn queries_return_rows(place: Place) -> Done {
    let mut client = connect(&place)?;
    let mail: Option<&[u8]> = None;
    client.execute("insert into person (name, mail) values ($1, $2)", &[&"Ferris", &mail])?;
    for row in client.query("select id, name, mail from person", &[])? {
        assert_eq!((row.get::<_, i32>(0), row.get::<_, &str>("name")), (1, "Ferris"));
        assert_eq!(row.get::<_, Option<&[u8]>>(2), None);
    }
    assert!(client.query_opt("select 1 where false", &[])?.is_none());
    assert!(client.query_one("select 1 union all select 2", &[]).is_err());
    Ok(())
}

fn execute_counts_rows(place: Place) -> Done {
    let mut client = connect(&place)?;
    let added = client.execute(
        "insert into person (name) select 'p' || g from generate_series(1, $1) g",
        &[&100],
    )?;
    assert_eq!(added, 100);
    assert_eq!(client.execute("update person set name = 'x' where id > $1", &[&90])?, 10);
    assert_eq!(client.execute("delete from person where id <= 30", &[])?, 30);
    assert_eq!(client.execute("truncate person", &[])?, 0);
    Ok(())
}

fn prepared_statements(place: Place) -> Done {
    let mut client = connect(&place)?;
    let statement = client.prepare("insert into person (name) values ($1) returning id")?;
    for (n, name) in ["a", "b", "c"].iter().enumerate() {
        assert_eq!(client.query_one(&statement, &[name])?.get::<_, i32>(0), n as i32 + 1);
    }
    let typed = client.prepare_typed("select $1", &[Type::INT8])?;
    assert_eq!(client.query_one(&typed, &[&7i64])?.get::<_, i64>(0), 7);
    Ok(())
}

fn count(client: &mut Client) -> Result<i64, Failed> {
    Ok(client.query_one("select count(*) from person", &[])?.get(0))
}

fn transactions(place: Place) -> Done {
    let mut client = connect(&place)?;
    let mut transaction = client.transaction()?;
    transaction.execute("insert into person (name) values ('a')", &[])?;
    transaction.commit()?;
    let mut transaction = client.transaction()?;
    transaction.execute("insert into person (name) values ('b')", &[])?;
    drop(transaction);
    assert_eq!(count(&mut client)?, 1);
    let mut transaction = client.build_transaction().read_only(true).start()?;
    let error = error_of(transaction.execute("delete from person", &[]));
    assert_eq!(error.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    Ok(())
}

fn savepoints(place: Place) -> Done {
    let mut client = connect(&place)?;
    let mut outer = client.transaction()?;
    outer.execute("insert into person (name) values ('a')", &[])?;
    let mut inner = outer.savepoint("here")?;
    inner.execute("insert into person (name) values ('b')", &[])?;
    inner.rollback()?;
    outer.commit()?;
    assert_eq!(count(&mut client)?, 1);
    Ok(())
}

fn rows_are_iterated(place: Place) -> Done {
    let mut client = connect(&place)?;
    let rows = client.query_raw("select g from generate_series(1, $1) g", [5000i32])?;
    let sum = rows.map(|row| row.try_get::<_, i32>(0)).fold(0, |sum, n| Ok(sum + n))?;
    assert_eq!(sum, 12_502_500);
    Ok(())
}

fn portals(place: Place) -> Done {
    let mut client = connect(&place)?;
    let mut transaction = client.transaction()?;
    let portal = transaction.bind("select generate_series(1, 5)", &[])?;
    let sizes: Vec<_> = (0..3)
        .map(|_| transaction.query_portal(&portal, 2).map(|rows| rows.len()))
        .collect::<Result<_, _>>()?;
    assert_eq!(sizes, [2, 2, 1]);
    Ok(())
}

fn copy_in_and_out(place: Place) -> Done {
    let mut client = connect(&place)?;
    let mut writer = client.copy_in("copy person (id, name) from stdin")?;
    writer.write_all(b"1\tjohn\n2\tjane\\tdoe\n")?;
    assert_eq!(writer.finish()?, 2);
    let mut text = String::new();
    client
        .copy_out("copy person to stdout with (delimiter ',', null 'none')")?
        .read_to_string(&mut text)?;
    assert_eq!(text, "1,john,none\n2,jane\\tdoe,none\n");
    let mut writer = client.copy_in("copy person (id, name) from stdin")?;
    writer.write_all(b"3\tx\n")?;
    drop(writer);
    assert_eq!(count(&mut client)?, 2);
    Ok(())
}

fn errors_have_sqlstates(place: Place) -> Done {
    let mut client = connect(&place)?;
    client.execute("insert into person (id, name) values (1, 'a')", &[])?;
    let error = error_of(client.execute("insert into person (id, name) values (1, 'a')", &[]));
    assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
    let error = error.as_db_error().ok_or("no error of the server")?;
    assert_eq!(error.constraint(), Some("person_pkey"));
    let error = error_of(client.batch_execute("selct 1"));
    assert_eq!(error.code(), Some(&SqlState::SYNTAX_ERROR));
    let error = error_of(client.query("select * from person where id = 'x'", &[]));
    assert_eq!(error.code(), Some(&SqlState::INVALID_TEXT_REPRESENTATION));
    Ok(())
}

fn errors_name_the_servers_source(place: Place) -> Done {
    let mut client = connect(&place)?;
    let error = error_of(client.query("select 1 / 0", &[]));
    let error = error.as_db_error().ok_or("no error of the server")?;
    let said = (error.file().is_some(), error.line().is_some(), error.routine().is_some());
    assert_eq!(said, (true, true, true), "file, line and routine");
    Ok(())
}

fn broken_transactions(place: Place) -> Done {
    let mut client = connect(&place)?;
    let mut transaction = client.transaction()?;
    error_of(transaction.query("select * from nowhere", &[]));
    let error = error_of(transaction.query("select 1", &[]));
    assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
    transaction.rollback()?;
    assert_eq!(count(&mut client)?, 0);
    Ok(())
}

fn notifications_are_iterated(place: Place) -> Done {
    let mut client = connect(&place)?;
    client.batch_execute("listen jobs; notify jobs, 'first'; notify jobs, 'second'")?;
    let found = client.notifications().blocking_iter().take(2).collect::<Vec<_>>()?;
    assert_eq!((found[0].channel(), found[0].payload()), ("jobs", "first"));
    assert_eq!(found[1].payload(), "second");
    client.batch_execute("unlisten jobs; notify jobs")?;
    assert!(client.notifications().iter().next()?.is_none());
    Ok(())
}

fn notifications_time_out(place: Place) -> Done {
    let mut client = connect(&place)?;
    client.batch_execute("listen jobs")?;
    let found = client.notifications().timeout_iter(Duration::from_millis(100)).next()?;
    assert!(found.is_none());
    Ok(())
}

fn queries_are_cancelled(place: Place) -> Done {
    let mut client = connect(&place)?;
    let token = client.cancel_token();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        token.cancel_query(NoTls)
    });
    let error = error_of(client.batch_execute("select pg_sleep(20)"));
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    thread.join().map_err(|_| "the thread stopped")??;
    Ok(())
}

fn simple_queries(place: Place) -> Done {
    let mut client = connect(&place)?;
    let said = client.simple_query("select 1 as a, null as b; show timezone")?;
    let rows: Vec<_> = said
        .iter()
        .filter_map(|message| match message {
            postgres::SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })
        .collect();
    assert_eq!((rows[0].get("a"), rows[0].get("b")), (Some("1"), None));
    assert!(rows[1].get(0).is_some());
    Ok(())
}

fn notices_reach_a_callback(place: Place) -> Done {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut config: postgres::Config = place.url().parse()?;
    config.notice_callback(move |notice| {
        let _ = sender.send(notice.message().to_string());
    });
    let mut client = config.connect(NoTls)?;
    client.batch_execute("create table t (n int); create table if not exists t (n int)")?;
    let said = receiver.recv_timeout(Duration::from_secs(5))?;
    assert_eq!(said, "relation \"t\" already exists, skipping");
    Ok(())
}

fn connections_are_checked(place: Place) -> Done {
    let mut client = connect(&place)?;
    client.is_valid(Duration::from_secs(5))?;
    assert!(!client.is_closed());
    client.close()?;
    Ok(())
}
