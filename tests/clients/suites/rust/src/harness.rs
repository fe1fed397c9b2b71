//! Runs the cases of one client, one after the other, and prints a line of JSON for each.
//!
//! INVARIANTS
//!   S1  nothing but these lines goes to stdout; whatever libraries log goes to stderr.
//!   S2  a case that fails or hangs never stops those after it.
//!   S3  each case has a schema of its own, which is made afresh before it begins.

use std::any::Any;
use std::error::Error;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use regex::Regex;

const LIMIT: Duration = Duration::from_secs(30);

pub type Failed = Box<dyn Error + Send + Sync>;
pub type Done = Result<(), Failed>;
type Body = Box<dyn Fn(Place) -> Pin<Box<dyn Future<Output = Done> + Send>> + Send + Sync>;

/// One thing that programs do with a client.
pub struct Case {
    pub name: &'static str,
    pub body: Body,
}

/// A library and its cases.
pub struct Client {
    pub name: &'static str,
    pub package: &'static str,
    pub cases: Vec<Case>,
}

/// Asynchronous functions, as cases of their names.
#[macro_export]
macro_rules! cases {
    ($($body:ident),* $(,)?) => {
        vec![$($crate::harness::Case {
            name: stringify!($body),
            body: Box::new(|place| Box::pin($body(place))),
        }),*]
    };
}

/// Functions that block, as cases of their names.
#[macro_export]
macro_rules! blocking {
    ($($body:ident),* $(,)?) => {
        vec![$($crate::harness::Case {
            name: stringify!($body),
            body: Box::new(|place| Box::pin(async move {
                match tokio::task::spawn_blocking(move || $body(place)).await {
                    Ok(done) => done,
                    Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
                }
            })),
        }),*]
    };
}

/// What a case has: the server, and the name of its own empty schema.
#[derive(Clone)]
pub struct Place {
    pub schema: String,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The server as a URL.
pub fn server() -> String {
    let secret = match variable("PGPASSWORD") {
        secret if secret.is_empty() => secret,
        secret => format!(":{secret}"),
    };
    let (user, host, port) = (variable("PGUSER"), variable("PGHOST"), variable("PGPORT"));
    format!("postgres://{user}{secret}@{host}:{port}/{}", variable("PGDATABASE"))
}

impl Place {
    /// The server as a URL, with the case's schema as search path.
    pub fn url(&self) -> String {
        format!("{}?options=-c%20search_path%3D{}", server(), self.schema)
    }

    /// An empty folder of the case, with these files.
    pub fn files(&self, files: &[(&str, &str)]) -> std::io::Result<PathBuf> {
        let folder = std::env::temp_dir().join(format!("{}-{}", self.schema, std::process::id()));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            std::fs::write(path, text)?;
        }
        Ok(folder)
    }
}

/// The pinned version of a package.
fn version_of(package: &str) -> String {
    let wanted = format!("name = \"{package}\"");
    let mut lines = include_str!("../Cargo.lock").lines();
    lines.find(|line| *line == wanted);
    let version = lines.next().unwrap_or_default();
    version.trim_start_matches("version = ").trim_matches('"').to_string()
}

fn schema_of(client: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("r_{client}_{name}").chars().map(plain).take(60).collect()
}

impl Client {
    /// Run the cases of a client whose names match (S2, S3).
    pub async fn run(self, only: &Regex) {
        let version = version_of(self.package);
        for case in self.cases {
            if !only.is_match(&format!("{}.{}", self.name, case.name)) {
                continue;
            }
            let reason = run_case(schema_of(self.name, case.name), &case).await.err();
            let line = serde_json::json!({
                "client": self.name, "version": version, "case": case.name,
                "ok": reason.is_none(), "reason": reason.unwrap_or_default(),
            });
            println!("{line}");
        }
    }
}

async fn run_case(schema: String, case: &Case) -> Result<(), String> {
    fresh(&schema, true).await.map_err(|error| reason_of(error.as_ref()))?;
    let mut running = tokio::spawn((case.body)(Place { schema: schema.clone() }));
    let ended = match tokio::time::timeout(LIMIT, &mut running).await {
        Err(_) => {
            running.abort();
            return Err("time-out of 30 s".to_string());
        }
        Ok(Ok(done)) => done.map_err(|error| reason_of(error.as_ref())),
        Ok(Err(stopped)) => Err(panic_of(stopped.into_panic().as_ref())),
    };
    if let Err(error) = fresh(&schema, false).await {
        eprintln!("{schema}: schema is not dropped: {error}");
    }
    ended
}

async fn fresh(schema: &str, again: bool) -> Done {
    let (client, connection) = tokio_postgres::connect(&server(), tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(&format!("drop schema if exists {schema} cascade")).await?;
    if again {
        client.batch_execute(&format!("create schema {schema}")).await?;
    }
    Ok(())
}

fn panic_of(said: &(dyn Any + Send)) -> String {
    let text = match (said.downcast_ref::<String>(), said.downcast_ref::<&str>()) {
        (Some(text), _) => text.as_str(),
        (_, Some(text)) => text,
        _ => "a panic",
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// SQLSTATE and text of an error of any of the clients.
fn reason_of(error: &(dyn Error + 'static)) -> String {
    let mut found = String::new();
    let mut said = vec![];
    let mut next = Some(error);
    while let Some(part) = next {
        if let Some(error) = part.downcast_ref::<tokio_postgres::error::DbError>() {
            found = format!("{} ", error.code().code());
        }
        if let Some(sqlx::Error::Database(error)) = part.downcast_ref::<sqlx::Error>() {
            found = format!("{} ", error.code().unwrap_or_default());
        }
        said.push(part.to_string());
        next = part.source();
    }
    said.dedup();
    found + &said.join(": ").replace('\n', " ")
}

/// The error of what must fail.
pub fn error_of<V, E>(done: Result<V, E>) -> E {
    match done {
        Ok(_) => panic!("no error"),
        Err(error) => error,
    }
}
