//! sqlx: values and queries, checked at run time.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use futures_util::TryStreamExt;
use rust_decimal::Decimal;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgQueryResult};
use sqlx::types::Json;
use sqlx::{Column, Executor, FromRow, PgPool, QueryBuilder, Row, Statement, TypeInfo};
use uuid::Uuid;

use crate::cases;
use crate::harness::{Case, Done, Failed, Place};

pub fn all() -> Vec<Case> {
    cases![
        scalars,
        dates_and_times,
        json_values,
        uuids_and_decimals,
        arrays,
        enums,
        composites,
        domains,
        ranges,
        rows_are_structures,
        scalars_of_queries,
        optional_rows,
        rows_are_streamed,
        dynamic_queries,
        bulk_inserts_with_values,
        bulk_inserts_with_unnest,
        statements_are_described,
        several_statements,
        joins_and_aggregates,
    ]
}

pub async fn pool(place: &Place) -> Result<PgPool, Failed> {
    let options: PgConnectOptions = crate::harness::server().parse()?;
    let options = options.options([("search_path", &place.schema)]);
    Ok(PgPoolOptions::new().max_connections(3).connect_with(options).await?)
}

pub async fn with_todos(place: &Place) -> Result<PgPool, Failed> {
    let pool = pool(place).await?;
    sqlx::raw_sql(
        "create table todos (id bigserial primary key, description text not null
         constraint todos_description_key unique, done boolean not null default false);
         insert into todos (description) values ('wash'), ('cook')",
    )
    .execute(&pool)
    .await?;
    Ok(pool)
}

#[derive(Debug, FromRow, PartialEq)]
pub struct Todo {
    pub id: i64,
    pub description: String,
    pub done: bool,
}

async fn scalars(place: Place) -> Done {
    let pool = pool(&place).await?;
    let row: (bool, i16, i32, i64, f32, f64, String, Vec<u8>) =
        sqlx::query_as("select $1, $2, $3, $4, $5, $6, $7, $8")
            .bind(true)
            .bind(-3i16)
            .bind(70_000i32)
            .bind(1i64 << 40)
            .bind(1.5f32)
            .bind(-2.5f64)
            .bind("ä")
            .bind(vec![0u8, 255])
            .fetch_one(&pool)
            .await?;
    assert_eq!(row, (true, -3, 70_000, 1 << 40, 1.5, -2.5, "ä".to_string(), vec![0, 255]));
    let none: Option<i32> =
        sqlx::query_scalar("select $1").bind(None::<i32>).fetch_one(&pool).await?;
    assert_eq!(none, None);
    Ok(())
}

async fn dates_and_times(place: Place) -> Done {
    let pool = pool(&place).await?;
    let day = NaiveDate::from_ymd_opt(1969, 7, 20).unwrap();
    let moment = day.and_hms_micro_opt(20, 17, 40, 5).unwrap();
    let found: (NaiveDate, NaiveDateTime, DateTime<Utc>) = sqlx::query_as("select $1, $2, $3")
        .bind(day)
        .bind(moment)
        .bind(moment.and_utc())
        .fetch_one(&pool)
        .await?;
    assert_eq!(found, (day, moment, moment.and_utc()));
    let later: NaiveDateTime = sqlx::query_scalar("select $1 + $2")
        .bind(moment)
        .bind(sqlx::postgres::types::PgInterval { months: 1, days: 2, microseconds: 3 })
        .fetch_one(&pool)
        .await?;
    assert_eq!(later.to_string(), "1969-08-22 20:17:40.000008");
    Ok(())
}

#[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
struct Address {
    street: String,
    number: u32,
}

async fn json_values(place: Place) -> Done {
    let pool = pool(&place).await?;
    sqlx::query("create table t (a jsonb, b json)").execute(&pool).await?;
    let address = Address { street: "x".into(), number: 3 };
    sqlx::query("insert into t values ($1, $2)")
        .bind(Json(&address))
        .bind(serde_json::json!({"k": [1, null]}))
        .execute(&pool)
        .await?;
    let (a, b): (Json<Address>, serde_json::Value) =
        sqlx::query_as("select a, b from t where a ->> 'street' = $1")
            .bind("x")
            .fetch_one(&pool)
            .await?;
    assert_eq!((a.0, b), (address, serde_json::json!({"k": [1, null]})));
    Ok(())
}

async fn uuids_and_decimals(place: Place) -> Done {
    let pool = pool(&place).await?;
    let (id, price) = (Uuid::new_v4(), "12345.678".parse::<Decimal>()?);
    let found: (Uuid, Decimal, String) =
        sqlx::query_as("select $1, $2, $2::text").bind(id).bind(price).fetch_one(&pool).await?;
    assert_eq!(found, (id, price, "12345.678".to_string()));
    Ok(())
}

async fn arrays(place: Place) -> Done {
    let pool = pool(&place).await?;
    let found: (Vec<i32>, Vec<Option<String>>) = sqlx::query_as("select $1, $2")
        .bind(vec![1, 2])
        .bind(vec![Some("a"), None])
        .fetch_one(&pool)
        .await?;
    assert_eq!(found, (vec![1, 2], vec![Some("a".to_string()), None]));
    let rows = sqlx::query("select g from generate_series(1, 9) g where g = any($1)")
        .bind(&[3, 4][..])
        .fetch_all(&pool)
        .await?;
    assert_eq!(rows.len(), 2);
    Ok(())
}

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "color", rename_all = "lowercase")]
enum Color {
    Red,
    Green,
}

async fn enums(place: Place) -> Done {
    let pool = pool(&place).await?;
    sqlx::raw_sql("create type color as enum ('red', 'green'); create table t (color color)")
        .execute(&pool)
        .await?;
    for color in [Color::Green, Color::Red] {
        sqlx::query("insert into t values ($1)").bind(color).execute(&pool).await?;
    }
    let found: Vec<Color> =
        sqlx::query_scalar("select color from t order by color").fetch_all(&pool).await?;
    assert_eq!(found, [Color::Red, Color::Green]);
    Ok(())
}

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "item")]
struct Item {
    name: String,
    count: i32,
}

async fn composites(place: Place) -> Done {
    let pool = pool(&place).await?;
    sqlx::query("create type item as (name text, count int)").execute(&pool).await?;
    let item = Item { name: "x".into(), count: 2 };
    let found: Item = sqlx::query_scalar("select $1").bind(&item).fetch_one(&pool).await?;
    assert_eq!(found, item);
    Ok(())
}

#[derive(sqlx::Type)]
#[sqlx(type_name = "positive")]
struct Positive(i32);

async fn domains(place: Place) -> Done {
    let pool = pool(&place).await?;
    sqlx::raw_sql("create domain positive as int check (value > 0); create table t (n positive)")
        .execute(&pool)
        .await?;
    sqlx::query("insert into t values ($1)").bind(Positive(3)).execute(&pool).await?;
    let found: i32 = sqlx::query_scalar("select n from t").fetch_one(&pool).await?;
    assert_eq!(found, 3);
    Ok(())
}

async fn ranges(place: Place) -> Done {
    use sqlx::postgres::types::PgRange;
    let pool = pool(&place).await?;
    let found: PgRange<i32> =
        sqlx::query_scalar("select $1").bind(PgRange::from(1..5)).fetch_one(&pool).await?;
    assert_eq!(found, PgRange::from(1..5));
    Ok(())
}

async fn rows_are_structures(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let found: Todo = sqlx::query_as("insert into todos (description) values ($1) returning *")
        .bind("iron")
        .fetch_one(&pool)
        .await?;
    assert_eq!(found, Todo { id: 3, description: "iron".into(), done: false });
    let all: Vec<Todo> = sqlx::query_as("select * from todos order by id").fetch_all(&pool).await?;
    assert_eq!(all.len(), 3);
    Ok(())
}

async fn scalars_of_queries(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let count: i64 = sqlx::query_scalar("select count(*) from todos").fetch_one(&pool).await?;
    assert_eq!(count, 2);
    let changed: PgQueryResult =
        sqlx::query("update todos set done = true where id = $1").bind(1i64).execute(&pool).await?;
    assert_eq!(changed.rows_affected(), 1);
    Ok(())
}

async fn optional_rows(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let query = "select * from todos where id = $1";
    let found: Option<Todo> = sqlx::query_as(query).bind(9i64).fetch_optional(&pool).await?;
    assert_eq!(found, None);
    let error = sqlx::query(query).bind(9i64).fetch_one(&pool).await;
    assert!(matches!(error, Err(sqlx::Error::RowNotFound)));
    let row = sqlx::query("select null::text as a, 1 as b").fetch_one(&pool).await?;
    assert_eq!(row.try_get::<Option<String>, _>("a")?, None);
    assert!(matches!(row.try_get::<i32, _>("c"), Err(sqlx::Error::ColumnNotFound(_))));
    Ok(())
}

async fn rows_are_streamed(place: Place) -> Done {
    let pool = pool(&place).await?;
    let mut rows = sqlx::query("select g from generate_series(1, 10000) g").fetch(&pool);
    let mut sum = 0i64;
    while let Some(row) = rows.try_next().await? {
        sum += i64::from(row.try_get::<i32, _>(0)?);
    }
    assert_eq!(sum, 50_005_000);
    Ok(())
}

async fn dynamic_queries(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let mut query = QueryBuilder::new("select id, description, done from todos where done = ");
    query.push_bind(false).push(" and description like ").push_bind("c%");
    let found: Vec<Todo> = query.build_query_as().fetch_all(&pool).await?;
    assert_eq!(found[0].description, "cook");
    let mut query = QueryBuilder::new("select count(*) from todos where id in (");
    let mut ids = query.separated(", ");
    for id in [1i64, 2, 7] {
        ids.push_bind(id);
    }
    query.push(")");
    let count: i64 = query.build_query_scalar().fetch_one(&pool).await?;
    assert_eq!(count, 2);
    Ok(())
}

async fn bulk_inserts_with_values(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let mut query = QueryBuilder::new("insert into todos (description, done) ");
    query.push_values(0..1000, |mut row, n| {
        row.push_bind(format!("todo {n}")).push_bind(n % 2 == 0);
    });
    assert_eq!(query.build().execute(&pool).await?.rows_affected(), 1000);
    Ok(())
}

async fn bulk_inserts_with_unnest(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let texts: Vec<String> = (0..100).map(|n| format!("todo {n}")).collect();
    let done = vec![true; 100];
    let added = sqlx::query(
        "insert into todos (description, done) select * from unnest($1::text[], $2::bool[])",
    )
    .bind(&texts)
    .bind(&done)
    .execute(&pool)
    .await?;
    assert_eq!(added.rows_affected(), 100);
    Ok(())
}

async fn statements_are_described(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let query = "select id, description, done from todos where id = $1";
    let statement = (&pool).prepare(sqlx::SqlStr::from_static(query)).await?;
    let columns: Vec<_> =
        statement.columns().iter().map(|c| (c.name(), c.type_info().name())).collect();
    assert_eq!(columns, [("id", "INT8"), ("description", "TEXT"), ("done", "BOOL")]);
    let row = statement.query().bind(1i64).fetch_one(&pool).await?;
    assert_eq!(row.try_get::<&str, _>(1)?, "wash");
    Ok(())
}

async fn several_statements(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let results: Vec<_> = sqlx::raw_sql(
        "insert into todos (description) values ('a'); update todos set done = true; select 1",
    )
    .execute_many(&pool)
    .try_collect()
    .await?;
    let counts: Vec<_> = results.iter().map(PgQueryResult::rows_affected).collect();
    assert_eq!(counts, [1, 3, 1]);
    let error = sqlx::query("select 1; select 2").execute(&pool).await;
    assert_eq!(error.unwrap_err().as_database_error().unwrap().code().unwrap(), "42601");
    Ok(())
}

async fn joins_and_aggregates(place: Place) -> Done {
    let pool = with_todos(&place).await?;
    let found: Vec<(String, i64, Option<Decimal>)> = sqlx::query_as(
        "with sized as (select description, length(description) as size from todos)
         select left(t.description, 1), count(*), avg(s.size)
         from todos t join sized s using (description) group by 1 order by 1",
    )
    .fetch_all(&pool)
    .await?;
    assert_eq!(found[0], ("c".to_string(), 1, Some(Decimal::from(4))));
    Ok(())
}
