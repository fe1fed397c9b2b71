//! refinery: migrations of schemas.

use refinery::{Migration, Runner, Target, load_sql_migrations};
use tokio_postgres::Client;

use crate::cases;
use crate::harness::{Case, Done, Failed, Place, error_of};
use crate::tokio_query_cases::connect;

pub fn all() -> Vec<Case> {
    cases![
        migrations_are_applied,
        migrations_are_applied_once,
        targets_are_kept,
        the_last_is_known,
        changed_migrations_are_refused,
        failures_are_rolled_back,
        grouped_failures_undo_all,
        tables_have_names,
        fakes_are_only_noted,
        the_blocking_client_migrates,
    ]
}

const FIRST: (&str, &str) = (
    "V1__people.sql",
    "create table people (id serial primary key, name varchar(255) not null, mail text unique);
     create index people_name on people (name);",
);
const SECOND: (&str, &str) = (
    "V2__cars.sql",
    "create table cars (id serial primary key, owner int not null references people (id));
     insert into people (name) values ('it''s; me'); alter table people add column age int;",
);
const BROKEN: (&str, &str) =
    ("V3__broken.sql", "create table late (n int); insert into nowhere values (1);");

fn migrations(place: &Place, files: &[(&str, &str)]) -> Result<Vec<Migration>, Failed> {
    Ok(load_sql_migrations(place.files(files)?)?)
}

fn runner(place: &Place, files: &[(&str, &str)]) -> Result<Runner, Failed> {
    Ok(Runner::new(&migrations(place, files)?))
}

async fn tables(client: &Client, place: &Place) -> Result<Vec<String>, Failed> {
    let query = "select table_name::text from information_schema.tables
                 where table_schema = $1 order by 1";
    let rows = client.query(query, &[&place.schema]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

async fn migrations_are_applied(place: Place) -> Done {
    let mut client = connect(&place).await?;
    let report = runner(&place, &[FIRST, SECOND])?.run_async(&mut client).await?;
    let names: Vec<_> = report.applied_migrations().iter().map(|m| m.name()).collect();
    assert_eq!(names, ["people", "cars"]);
    let found = tables(&client, &place).await?;
    assert_eq!(found, ["cars", "people", "refinery_schema_history"]);
    let row = client.query_one("select name, age from people", &[]).await?;
    assert_eq!(row.get::<_, &str>(0), "it's; me");
    Ok(())
}

async fn migrations_are_applied_once(place: Place) -> Done {
    let mut client = connect(&place).await?;
    runner(&place, &[FIRST])?.run_async(&mut client).await?;
    let report = runner(&place, &[FIRST])?.run_async(&mut client).await?;
    assert!(report.applied_migrations().is_empty());
    let report = runner(&place, &[FIRST, SECOND])?.run_async(&mut client).await?;
    assert_eq!(report.applied_migrations().len(), 1);
    Ok(())
}

async fn targets_are_kept(place: Place) -> Done {
    let mut client = connect(&place).await?;
    let runner = runner(&place, &[FIRST, SECOND])?.set_target(Target::Version(1));
    let report = runner.run_async(&mut client).await?;
    assert_eq!(report.applied_migrations().len(), 1);
    Ok(())
}

async fn the_last_is_known(place: Place) -> Done {
    let mut client = connect(&place).await?;
    let runner = runner(&place, &[FIRST, SECOND])?;
    runner.run_async(&mut client).await?;
    let last = runner.get_last_applied_migration_async(&mut client).await?;
    let last = last.ok_or("none is applied")?;
    assert_eq!((last.version(), last.name()), (2, "cars"));
    assert!(last.applied_on().is_some());
    let all = runner.get_applied_migrations_async(&mut client).await?;
    assert_eq!(all.len(), 2);
    Ok(())
}

async fn changed_migrations_are_refused(place: Place) -> Done {
    let mut client = connect(&place).await?;
    runner(&place, &[FIRST])?.run_async(&mut client).await?;
    let changed = ("V1__people.sql", "create table people (id int)");
    let error = error_of(runner(&place, &[changed])?.run_async(&mut client).await);
    assert!(error.to_string().contains("different"), "{error}");
    Ok(())
}

async fn failures_are_rolled_back(place: Place) -> Done {
    let mut client = connect(&place).await?;
    let error = error_of(runner(&place, &[FIRST, BROKEN])?.run_async(&mut client).await);
    assert_eq!(error.report().map(|report| report.applied_migrations().len()), Some(1));
    assert_eq!(tables(&client, &place).await?, ["people", "refinery_schema_history"]);
    Ok(())
}

async fn grouped_failures_undo_all(place: Place) -> Done {
    let mut client = connect(&place).await?;
    let runner = runner(&place, &[FIRST, BROKEN])?.set_grouped(true);
    error_of(runner.run_async(&mut client).await);
    assert_eq!(tables(&client, &place).await?, ["refinery_schema_history"]);
    Ok(())
}

async fn tables_have_names(place: Place) -> Done {
    let mut client = connect(&place).await?;
    let mut runner = runner(&place, &[FIRST])?;
    runner.set_migration_table_name("history");
    runner.run_async(&mut client).await?;
    assert_eq!(tables(&client, &place).await?, ["history", "people"]);
    Ok(())
}

async fn fakes_are_only_noted(place: Place) -> Done {
    let mut client = connect(&place).await?;
    runner(&place, &[FIRST])?.set_target(Target::Fake).run_async(&mut client).await?;
    assert_eq!(tables(&client, &place).await?, ["refinery_schema_history"]);
    let report = runner(&place, &[FIRST])?.run_async(&mut client).await?;
    assert!(report.applied_migrations().is_empty());
    Ok(())
}

async fn the_blocking_client_migrates(place: Place) -> Done {
    let runner = runner(&place, &[FIRST, SECOND])?;
    let url = place.url();
    let applied = tokio::task::spawn_blocking(move || {
        let mut client = postgres::Client::connect(&url, postgres::NoTls)?;
        let report = runner.run(&mut client)?;
        Ok::<_, Failed>(report.applied_migrations().len())
    });
    assert_eq!(applied.await??, 2);
    Ok(())
}
