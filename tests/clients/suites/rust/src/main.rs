//! The clients of Rust on one server; ONLY is a pattern of `client.case`.

mod deadpool_cases;
mod diesel_language;
mod diesel_migration_cases;
mod diesel_query_cases;
mod harness;
mod migration_cases;
mod postgres_cases;
mod sea_orm_cases;
mod sea_orm_entities;
mod sea_orm_schema_cases;
mod sqlx_query_cases;
mod sqlx_session_cases;
mod tokio_query_cases;
mod tokio_session_cases;

use harness::Client;

#[tokio::main]
async fn main() -> Result<(), harness::Failed> {
    let only = regex::Regex::new(&std::env::var("ONLY").unwrap_or_default())?;
    let mut tokio = tokio_query_cases::all();
    tokio.extend(tokio_session_cases::all());
    let mut sqlx = sqlx_query_cases::all();
    sqlx.extend(sqlx_session_cases::all());
    let mut diesel = diesel_query_cases::all();
    diesel.extend(diesel_migration_cases::all());
    let mut sea_orm = sea_orm_cases::all();
    sea_orm.extend(sea_orm_schema_cases::all());
    for (name, cases) in [
        ("tokio-postgres", tokio),
        ("deadpool-postgres", deadpool_cases::all()),
        ("rust-postgres", postgres_cases::all()),
        ("sqlx", sqlx),
        ("diesel", diesel),
        ("sea-orm", sea_orm),
        ("refinery", migration_cases::all()),
    ] {
        let package = if name == "rust-postgres" { "postgres" } else { name };
        Client { name, package, cases }.run(&only).await;
    }
    Ok(())
}
