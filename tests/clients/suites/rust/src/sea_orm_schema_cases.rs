//! sea-orm: migrations, and what they ask of the catalog.

use sea_orm::{ConnectionTrait, EntityTrait, PaginatorTrait, Statement};
use sea_orm_migration::MigrationStatus;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    boolean, integer, json_binary_null, pk_auto, string, timestamp_null,
};

use crate::cases;
use crate::harness::{Case, Done, Place, error_of};
use crate::sea_orm_cases::{connect, make_tables};
use crate::sea_orm_entities::cake;

pub fn all() -> Vec<Case> {
    cases![
        migrations_go_up,
        migrations_go_down,
        migrations_are_refreshed,
        migrations_have_a_state,
        failing_migrations_are_rolled_back,
        tables_are_looked_up,
        tables_are_altered,
        tables_of_entities,
    ]
}

#[derive(DeriveIden)]
enum Post {
    Table,
    Id,
    Title,
    Draft,
    Meta,
    At,
}

#[derive(DeriveIden)]
enum Comment {
    Table,
    Id,
    PostId,
    Text,
}

struct Posts;

impl MigrationName for Posts {
    fn name(&self) -> &str {
        "m20240101_000001_posts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Posts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(Post::Table)
            .if_not_exists()
            .col(pk_auto(Post::Id))
            .col(string(Post::Title).unique_key())
            .col(boolean(Post::Draft).default(true))
            .col(json_binary_null(Post::Meta))
            .col(timestamp_null(Post::At).default(Expr::current_timestamp()))
            .to_owned();
        manager.create_table(table).await?;
        let index = Index::create().name("post_at").table(Post::Table).col(Post::At).to_owned();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Post::Table).to_owned()).await
    }
}

struct Comments;

impl MigrationName for Comments {
    fn name(&self) -> &str {
        "m20240102_000001_comments"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Comments {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(Comment::Table)
            .col(pk_auto(Comment::Id))
            .col(integer(Comment::PostId))
            .col(string(Comment::Text))
            .foreign_key(
                ForeignKey::create()
                    .name("comment_post")
                    .from(Comment::Table, Comment::PostId)
                    .to(Post::Table, Post::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(table).await?;
        let db = manager.get_connection();
        db.execute_unprepared("insert into post (title) values ('it''s')").await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Comment::Table).to_owned()).await
    }
}

struct Broken;

impl MigrationName for Broken {
    fn name(&self) -> &str {
        "m20240103_000001_broken"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Broken {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        db.execute_unprepared("create table late (n int)").await?;
        db.execute_unprepared("insert into nowhere values (1)").await?;
        Ok(())
    }
}

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Posts), Box::new(Comments)]
    }
}

struct WithBroken;

impl MigratorTrait for WithBroken {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Posts), Box::new(Broken)]
    }
}

async fn migrations_go_up(place: crate::harness::Place) -> Done {
    let db = connect(&place).await?;
    Migrator::up(&db, Some(1)).await?;
    Migrator::up(&db, None).await?;
    Migrator::up(&db, None).await?;
    let manager = SchemaManager::new(&db);
    assert!(manager.has_table("comment").await?);
    let row = db
        .query_one_raw(Statement::from_string(
            db.get_database_backend(),
            "select title, draft, at is null as at from post",
        ))
        .await?
        .ok_or("no row")?;
    assert_eq!(row.try_get::<String>("", "title")?, "it's");
    assert!(row.try_get::<bool>("", "draft")?);
    Ok(())
}

async fn migrations_go_down(place: Place) -> Done {
    let db = connect(&place).await?;
    Migrator::up(&db, None).await?;
    Migrator::down(&db, Some(1)).await?;
    let manager = SchemaManager::new(&db);
    assert!(!manager.has_table("comment").await? && manager.has_table("post").await?);
    Migrator::reset(&db).await?;
    assert!(!manager.has_table("post").await?);
    Ok(())
}

async fn migrations_are_refreshed(place: Place) -> Done {
    let db = connect(&place).await?;
    Migrator::up(&db, None).await?;
    Migrator::refresh(&db).await?;
    db.execute_unprepared("create table stray (n int)").await?;
    Migrator::fresh(&db).await?;
    let manager = SchemaManager::new(&db);
    assert!(manager.has_table("post").await? && !manager.has_table("stray").await?);
    Ok(())
}

async fn migrations_have_a_state(place: Place) -> Done {
    let db = connect(&place).await?;
    Migrator::install(&db).await?;
    assert_eq!(Migrator::get_pending_migrations(&db).await?.len(), 2);
    Migrator::up(&db, Some(1)).await?;
    let applied = Migrator::get_applied_migrations(&db).await?;
    assert_eq!((applied.len(), applied[0].name()), (1, "m20240101_000001_posts"));
    assert!(applied[0].status() == MigrationStatus::Applied);
    Migrator::status(&db).await?;
    Ok(())
}

async fn failing_migrations_are_rolled_back(place: Place) -> Done {
    let db = connect(&place).await?;
    let error = error_of(WithBroken::up(&db, None).await);
    assert!(error.to_string().contains("relation \"nowhere\" does not exist"), "{error}");
    assert!(!SchemaManager::new(&db).has_table("late").await?);
    Ok(())
}

async fn tables_are_looked_up(place: Place) -> Done {
    let db = connect(&place).await?;
    Migrator::up(&db, None).await?;
    let manager = SchemaManager::new(&db);
    assert!(manager.has_column("post", "title").await?);
    assert!(!manager.has_column("post", "nothing").await?);
    assert!(manager.has_index("post", "post_at").await?);
    Ok(())
}

async fn tables_are_altered(place: Place) -> Done {
    let db = connect(&place).await?;
    Migrator::up(&db, None).await?;
    let manager = SchemaManager::new(&db);
    let more = Table::alter()
        .table(Post::Table)
        .add_column(ColumnDef::new("views").big_integer().not_null().default(0))
        .modify_column(ColumnDef::new(Post::Title).text().not_null())
        .to_owned();
    manager.alter_table(more).await?;
    let renamed = Table::alter().table(Post::Table).rename_column("views", "seen").to_owned();
    manager.alter_table(renamed).await?;
    assert!(manager.has_column("post", "seen").await?);
    let key = ForeignKey::drop().name("comment_post").table(Comment::Table).to_owned();
    manager.drop_foreign_key(key).await?;
    manager.rename_table(Table::rename().table(Comment::Table, "remark").to_owned()).await?;
    manager.truncate_table(Table::truncate().table("remark").to_owned()).await?;
    assert!(manager.has_table("remark").await?);
    Ok(())
}

async fn tables_of_entities(place: Place) -> Done {
    let db = connect(&place).await?;
    make_tables(&db).await?;
    assert_eq!(cake::Entity::find().count(&db).await?, 0);
    Ok(())
}
