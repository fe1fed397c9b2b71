//! sea-orm: entities are written and read.

use rust_decimal::Decimal;
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::prelude::{Expr, Uuid};
use sea_orm::sea_query::{ExprTrait, OnConflict};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectOptions, ConnectionTrait, Database, DatabaseConnection,
    EntityTrait, FromQueryResult, IntoActiveModel, ModelTrait, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, RelationTrait, Schema, SqlErr, Statement, StreamTrait,
    TransactionTrait,
};

use crate::cases;
use crate::harness::{Case, Done, Failed, Place, error_of, server};
use crate::sea_orm_entities::{bakery, cake};

pub fn all() -> Vec<Case> {
    cases![
        models_are_inserted,
        models_are_found,
        models_are_updated,
        models_are_deleted,
        many_are_inserted,
        many_are_changed,
        conflicts_are_resolved,
        relations_are_loaded,
        relations_are_joined,
        pages,
        cursors,
        results_of_other_shapes,
        aggregates,
        raw_statements,
        rows_are_streamed,
        transactions,
        nested_transactions,
        errors_of_constraints,
        locks,
        enums_json_and_times,
    ]
}

pub async fn connect(place: &Place) -> Result<DatabaseConnection, Failed> {
    let mut options = ConnectOptions::new(server());
    options.max_connections(3).set_schema_search_path(&place.schema).sqlx_logging(false);
    Ok(Database::connect(options).await?)
}

pub async fn make_tables(db: &DatabaseConnection) -> Done {
    let schema = Schema::new(db.get_database_backend());
    db.execute(&schema.create_enum_from_active_enum::<bakery::Size>().ok_or("no enum")?).await?;
    db.execute(&schema.create_table_from_entity(bakery::Entity)).await?;
    db.execute(&schema.create_table_from_entity(cake::Entity)).await?;
    Ok(())
}

fn bakery(name: &str) -> bakery::ActiveModel {
    bakery::ActiveModel {
        id: NotSet,
        name: Set(name.to_string()),
        margin: Set(1.5),
        hours: Set(Some(serde_json::json!({"mon": [8, 12]}))),
        code: Set(Uuid::nil()),
        opened: Set(None),
        size: Set(bakery::Size::Large),
    }
}

fn cake(name: &str, price: i64, bakery: Option<i32>) -> cake::ActiveModel {
    cake::ActiveModel {
        id: NotSet,
        name: Set(name.to_string()),
        price: Set(Decimal::new(price, 2)),
        bakery_id: Set(bakery),
    }
}

async fn with_cakes(place: &Place) -> Result<DatabaseConnection, Failed> {
    let db = connect(place).await?;
    make_tables(&db).await?;
    let made = bakery("Sea").insert(&db).await?;
    for (name, price) in [("cheese", 450), ("apple", 300), ("plum", 275)] {
        cake(name, price, (price > 275).then_some(made.id)).insert(&db).await?;
    }
    Ok(db)
}

async fn models_are_inserted(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let made = cake("pear", 100, None).insert(&db).await?;
    assert_eq!((made.id, made.price.to_string()), (4, "1.00".to_string()));
    let done = cake::Entity::insert(cake("fig", 1, Some(1))).exec(&db).await?;
    assert_eq!(done.last_insert_id, 5);
    Ok(())
}

async fn models_are_found(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let found = cake::Entity::find_by_id(2).one(&db).await?.ok_or("no cake")?;
    assert_eq!(found.name, "apple");
    let found = cake::Entity::find()
        .filter(cake::Column::Name.contains("p").and(cake::Column::Price.gte(Decimal::from(3))))
        .filter(cake::Column::BakeryId.is_not_null())
        .order_by_desc(cake::Column::Price)
        .all(&db)
        .await?;
    assert_eq!(found.iter().map(|c| &*c.name).collect::<Vec<_>>(), ["apple"]);
    let none = cake::Entity::find().filter(cake::Column::Id.is_in([8, 9])).one(&db).await?;
    assert_eq!(none, None);
    Ok(())
}

async fn models_are_updated(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let mut found =
        cake::Entity::find_by_id(1).one(&db).await?.ok_or("no cake")?.into_active_model();
    found.name = Set("blue cheese".to_string());
    let saved = found.update(&db).await?;
    assert_eq!(saved.name, "blue cheese");
    let lost = cake::ActiveModel { id: Unchanged(99), name: Set("x".into()), ..Default::default() };
    assert!(matches!(error_of(lost.update(&db).await), sea_orm::DbErr::RecordNotUpdated));
    Ok(())
}

async fn models_are_deleted(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let found = cake::Entity::find_by_id(1).one(&db).await?.ok_or("no cake")?;
    assert_eq!(found.delete(&db).await?.rows_affected, 1);
    assert_eq!(cake::Entity::delete_by_id(2).exec(&db).await?.rows_affected, 1);
    assert_eq!(cake::Entity::find().count(&db).await?, 1);
    Ok(())
}

async fn many_are_inserted(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let many = (0..300).map(|n| cake(&format!("c{n}"), n, None));
    let done = cake::Entity::insert_many(many).exec(&db).await?;
    assert_eq!(done.last_insert_id, Some(303));
    let many = (0..3).map(|n| cake(&format!("d{n}"), n, None));
    let found = cake::Entity::insert_many(many).exec_with_returning(&db).await?;
    assert_eq!(found.len(), 3);
    Ok(())
}

async fn many_are_changed(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let done = cake::Entity::update_many()
        .col_expr(cake::Column::Price, Expr::col(cake::Column::Price).mul(2))
        .filter(cake::Column::Price.lt(Decimal::from(4)))
        .exec(&db)
        .await?;
    assert_eq!(done.rows_affected, 2);
    let gone =
        cake::Entity::delete_many().filter(cake::Column::BakeryId.is_null()).exec(&db).await?;
    assert_eq!(gone.rows_affected, 1);
    Ok(())
}

async fn conflicts_are_resolved(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let update =
        OnConflict::column(cake::Column::Name).update_column(cake::Column::Price).to_owned();
    cake::Entity::insert(cake("plum", 999, None)).on_conflict(update).exec(&db).await?;
    let found = cake::Entity::find_by_id(3).one(&db).await?.ok_or("no cake")?;
    assert_eq!(found.price.to_string(), "9.99");
    let nothing = OnConflict::column(cake::Column::Name).do_nothing().to_owned();
    let done = cake::Entity::insert(cake("plum", 1, None))
        .on_conflict(nothing)
        .exec_without_returning(&db)
        .await?;
    assert_eq!(done, 0);
    Ok(())
}

async fn relations_are_loaded(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let found = bakery::Entity::find().find_with_related(cake::Entity).all(&db).await?;
    assert_eq!((found.len(), found[0].1.len()), (1, 2));
    let cakes = cake::Entity::find()
        .find_also_related(bakery::Entity)
        .order_by_asc(cake::Column::Id)
        .all(&db)
        .await?;
    assert_eq!(cakes[0].1.as_ref().map(|b| &*b.name), Some("Sea"));
    assert_eq!(cakes[2].1, None);
    assert_eq!(found[0].0.find_related(cake::Entity).count(&db).await?, 2);
    Ok(())
}

async fn relations_are_joined(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let found: Vec<(String, i64)> = bakery::Entity::find()
        .join(sea_orm::JoinType::LeftJoin, bakery::Relation::Cake.def())
        .select_only()
        .column(bakery::Column::Name)
        .column_as(cake::Column::Id.count(), "cakes")
        .group_by(bakery::Column::Id)
        .having(cake::Column::Id.count().gt(1))
        .into_tuple()
        .all(&db)
        .await?;
    assert_eq!(found, [("Sea".to_string(), 2)]);
    Ok(())
}

async fn pages(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let pages = cake::Entity::find().order_by_asc(cake::Column::Id).paginate(&db, 2);
    let counts = pages.num_items_and_pages().await?;
    assert_eq!((counts.number_of_items, counts.number_of_pages), (3, 2));
    assert_eq!(pages.fetch_page(1).await?[0].name, "plum");
    Ok(())
}

async fn cursors(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let mut cursor = cake::Entity::find().cursor_by((cake::Column::Price, cake::Column::Id));
    cursor.after((Decimal::new(275, 2), 3));
    let found = cursor.first(1).all(&db).await?;
    assert_eq!(found[0].name, "apple");
    Ok(())
}

#[derive(FromQueryResult, Debug, PartialEq)]
struct Named {
    name: String,
    double: Decimal,
}

async fn results_of_other_shapes(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let found: Option<Named> = cake::Entity::find()
        .select_only()
        .column(cake::Column::Name)
        .column_as(Expr::col(cake::Column::Price).mul(2), "double")
        .order_by_asc(cake::Column::Name)
        .into_model::<Named>()
        .one(&db)
        .await?;
    assert_eq!(found, Some(Named { name: "apple".into(), double: Decimal::new(600, 2) }));
    let json = cake::Entity::find_by_id(1).into_json().one(&db).await?.ok_or("no cake")?;
    assert_eq!(json["name"], "cheese");
    Ok(())
}

async fn aggregates(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let (sum, most): (Option<Decimal>, Option<Decimal>) = cake::Entity::find()
        .select_only()
        .column_as(cake::Column::Price.sum(), "sum")
        .column_as(cake::Column::Price.max(), "most")
        .into_tuple()
        .one(&db)
        .await?
        .ok_or("no row")?;
    assert_eq!((sum, most), (Some(Decimal::new(1025, 2)), Some(Decimal::new(450, 2))));
    Ok(())
}

async fn raw_statements(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let backend = db.get_database_backend();
    let query = "select * from cake where price > $1 order by id";
    let statement = Statement::from_sql_and_values(backend, query, [Decimal::from(3).into()]);
    let found = cake::Entity::find().from_raw_sql(statement).all(&db).await?;
    assert_eq!(found[0].name, "cheese");
    db.execute_unprepared("create table x (n int); insert into x values (1)").await?;
    let row = db.query_one_raw(Statement::from_string(backend, "select n from x")).await?;
    assert_eq!(row.ok_or("no row")?.try_get::<i32>("", "n")?, 1);
    db.ping().await?;
    Ok(())
}

async fn rows_are_streamed(place: Place) -> Done {
    use futures_util::TryStreamExt;
    let db = with_cakes(&place).await?;
    let names: Vec<String> = cake::Entity::find()
        .order_by_asc(cake::Column::Id)
        .stream(&db)
        .await?
        .map_ok(|cake| cake.name)
        .try_collect()
        .await?;
    assert_eq!(names, ["cheese", "apple", "plum"]);
    let backend = db.get_database_backend();
    let many = Statement::from_string(backend, "select g from generate_series(1, 3000) g");
    let rows = db.stream_raw(many).await?.try_fold(0, |n, _| async move { Ok(n + 1) }).await?;
    assert_eq!(rows, 3000);
    Ok(())
}

async fn transactions(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    db.transaction::<_, (), sea_orm::DbErr>(|on| {
        Box::pin(async move {
            cake("pear", 1, None).insert(on).await?;
            Ok(())
        })
    })
    .await?;
    let failed = db
        .transaction::<_, (), sea_orm::DbErr>(|on| {
            Box::pin(async move {
                cake::Entity::delete_many().exec(on).await?;
                Err(sea_orm::DbErr::Custom("no".into()))
            })
        })
        .await;
    assert!(failed.is_err());
    assert_eq!(cake::Entity::find().count(&db).await?, 4);
    let level = Some(sea_orm::IsolationLevel::Serializable);
    let on = db.begin_with_config(level, Some(sea_orm::AccessMode::ReadOnly)).await?;
    assert!(cake("no", 1, None).insert(&on).await.is_err());
    on.rollback().await?;
    Ok(())
}

async fn nested_transactions(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let outer = db.begin().await?;
    let inner = outer.begin().await?;
    cake::Entity::delete_many().exec(&inner).await?;
    inner.rollback().await?;
    let inner = outer.begin().await?;
    cake::Entity::delete_by_id(1).exec(&inner).await?;
    inner.commit().await?;
    outer.commit().await?;
    assert_eq!(cake::Entity::find().count(&db).await?, 2);
    Ok(())
}

async fn errors_of_constraints(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let error = error_of(cake("plum", 1, None).insert(&db).await);
    assert!(matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_))), "{error}");
    let error = error_of(cake("fig", 1, Some(99)).insert(&db).await);
    assert!(matches!(error.sql_err(), Some(SqlErr::ForeignKeyConstraintViolation(_))), "{error}");
    Ok(())
}

async fn locks(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let on = db.begin().await?;
    let held = cake::Entity::find_by_id(1).lock_exclusive().one(&on).await?;
    assert!(held.is_some());
    let free = cake::Entity::find()
        .lock_with_behavior(
            sea_orm::sea_query::LockType::Update,
            sea_orm::sea_query::LockBehavior::SkipLocked,
        )
        .all(&db)
        .await?;
    assert_eq!(free.len(), 2);
    on.commit().await?;
    Ok(())
}

async fn enums_json_and_times(place: Place) -> Done {
    let db = with_cakes(&place).await?;
    let opened: sea_orm::prelude::DateTimeUtc = "2024-02-29T01:02:03.000004Z".parse()?;
    let made = bakery::ActiveModel {
        opened: Set(Some(opened)),
        size: Set(bakery::Size::Small),
        code: Set(Uuid::from_u128(7)),
        ..bakery("Land")
    };
    let id = made.insert(&db).await?.id;
    let found = bakery::Entity::find()
        .filter(bakery::Column::Size.eq(bakery::Size::Small))
        .all(&db)
        .await?;
    assert_eq!((found.len(), found[0].id, found[0].opened), (1, id, Some(opened)));
    assert_eq!(found[0].hours, Some(serde_json::json!({"mon": [8, 12]})));
    assert_eq!(found[0].code, Uuid::from_u128(7));
    Ok(())
}
