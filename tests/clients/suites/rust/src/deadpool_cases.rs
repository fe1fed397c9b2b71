//! deadpool-postgres: a pool of connections of tokio-postgres.

use std::collections::HashSet;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod};
use futures_util::future::try_join_all;
use tokio_postgres::NoTls;

use crate::cases;
use crate::harness::{Case, Done, Failed, Place, error_of};

pub fn all() -> Vec<Case> {
    cases![
        connections_are_shared,
        connections_are_reused,
        statements_are_cached,
        transactions_of_pools,
        sessions_are_cleaned,
        connections_are_verified,
        full_pools_time_out,
    ]
}

fn pool(place: &Place, size: usize, recycling_method: RecyclingMethod) -> Result<Pool, Failed> {
    let config: tokio_postgres::Config = place.url().parse()?;
    let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
    Ok(Pool::builder(manager).max_size(size).build()?)
}

async fn pid(pool: &Pool) -> Result<i32, Failed> {
    Ok(pool.get().await?.query_one("select pg_backend_pid()", &[]).await?.get(0))
}

async fn connections_are_shared(place: Place) -> Done {
    let pool = pool(&place, 4, RecyclingMethod::Fast)?;
    let found = try_join_all((0..40i32).map(|n| {
        let pool = pool.clone();
        async move {
            let client = pool.get().await?;
            let row = client.query_one("select $1::int, pg_backend_pid()", &[&n]).await?;
            Ok::<(i32, i32), Failed>((row.get(0), row.get(1)))
        }
    }))
    .await?;
    assert_eq!(found.iter().map(|(n, _)| n).sum::<i32>(), 780);
    assert!(found.iter().map(|(_, pid)| pid).collect::<HashSet<_>>().len() <= 4);
    Ok(())
}

async fn connections_are_reused(place: Place) -> Done {
    let pool = pool(&place, 1, RecyclingMethod::Fast)?;
    assert_eq!(pid(&pool).await?, pid(&pool).await?);
    Ok(())
}

async fn statements_are_cached(place: Place) -> Done {
    let pool = pool(&place, 1, RecyclingMethod::Fast)?;
    for n in 0..5i32 {
        let client = pool.get().await?;
        let statement = client.prepare_cached("select $1::int + 1").await?;
        assert_eq!(client.query_one(&statement, &[&n]).await?.get::<_, i32>(0), n + 1);
        assert_eq!(client.statement_cache.size(), 1);
    }
    Ok(())
}

async fn transactions_of_pools(place: Place) -> Done {
    let pool = pool(&place, 2, RecyclingMethod::Fast)?;
    let mut client = pool.get().await?;
    client.batch_execute("create table t (n int)").await?;
    let transaction = client.transaction().await?;
    let add = transaction.prepare_cached("insert into t values ($1)").await?;
    transaction.execute(&add, &[&1]).await?;
    let other = pool.get().await?;
    assert!(other.query("select * from t", &[]).await?.is_empty());
    transaction.commit().await?;
    assert_eq!(other.query("select * from t", &[]).await?.len(), 1);
    Ok(())
}

async fn sessions_are_cleaned(place: Place) -> Done {
    let pool = pool(&place, 1, RecyclingMethod::Clean)?;
    let client = pool.get().await?;
    client.batch_execute("set application_name = 'dirty'; listen news").await?;
    client.batch_execute("create temp table scratch (n int)").await?;
    drop(client);
    let row = pool.get().await?.query_one("show application_name", &[]).await?;
    assert_ne!(row.get::<_, &str>(0), "dirty");
    Ok(())
}

async fn connections_are_verified(place: Place) -> Done {
    let pool = pool(&place, 1, RecyclingMethod::Verified)?;
    let first = pid(&pool).await?;
    let (killer, connection) = tokio_postgres::connect(&place.url(), NoTls).await?;
    tokio::spawn(connection);
    let row = killer.query_one("select pg_terminate_backend($1)", &[&first]).await?;
    assert!(row.get::<_, bool>(0));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_ne!(pid(&pool).await?, first);
    Ok(())
}

async fn full_pools_time_out(place: Place) -> Done {
    let pool = pool(&place, 1, RecyclingMethod::Fast)?;
    let held = pool.get().await?;
    let waits = deadpool_postgres::Timeouts {
        wait: Some(Duration::ZERO),
        ..deadpool_postgres::Timeouts::default()
    };
    assert!(matches!(error_of(pool.timeout_get(&waits).await), PoolError::Timeout(_)));
    drop(held);
    let _again = pool.timeout_get(&waits).await?;
    Ok(())
}
