//! diesel, on libpq: queries and changes.

use std::io::Read;

use bigdecimal::BigDecimal;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use diesel::connection::SimpleConnection;
use diesel::dsl::{count_star, exists, max, sql, sum};
use diesel::pg::{CopyFormat, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Text};
use uuid::Uuid;

use crate::blocking;
use crate::harness::{Case, Done, Failed, Place};

pub fn all() -> Vec<Case> {
    blocking![
        inserts_return_rows,
        filters_and_orders,
        optional_values,
        updates_of_changesets,
        deletes,
        upserts,
        batches_of_inserts,
        inserts_from_selects,
        joins,
        left_joins,
        associations_are_grouped,
        aggregates_and_groups,
        subqueries,
        values_of_types,
        json_operators,
        arrays,
        enums_with_their_own_type,
        raw_queries,
        distinct_on,
        locking_clauses,
        boxed_queries,
        case_expressions,
        rows_are_loaded_in_parts,
        copy_from,
        copy_to,
    ]
}

diesel::table! {
    users (id) {
        id -> Integer,
        name -> Text,
        age -> Nullable<Integer>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    posts (id) {
        id -> BigInt,
        user_id -> Integer,
        title -> Text,
        tags -> Array<Text>,
        meta -> Nullable<Jsonb>,
    }
}

diesel::joinable!(posts -> users (user_id));
diesel::allow_tables_to_appear_in_same_query!(users, posts);

#[derive(Queryable, Selectable, Identifiable, Debug, PartialEq, AsChangeset, Clone)]
#[diesel(table_name = users, check_for_backend(diesel::pg::Pg))]
pub struct User {
    pub id: i32,
    pub name: String,
    pub age: Option<i32>,
    pub created_at: NaiveDateTime,
}

#[derive(Insertable)]
#[diesel(table_name = users)]
struct NewUser<'a> {
    name: &'a str,
    age: Option<i32>,
}

#[derive(Insertable)]
#[diesel(table_name = users, treat_none_as_default_value = false)]
struct CopiedUser<'a> {
    name: &'a str,
    age: Option<i32>,
}

#[derive(Queryable, Selectable, Identifiable, Associations, Debug, PartialEq)]
#[diesel(table_name = posts, belongs_to(User), check_for_backend(diesel::pg::Pg))]
struct Post {
    id: i64,
    user_id: i32,
    title: String,
    tags: Vec<String>,
    meta: Option<serde_json::Value>,
}

pub fn connect(place: &Place) -> Result<PgConnection, Failed> {
    Ok(PgConnection::establish(&place.url())?)
}

pub fn with_users(place: &Place) -> Result<PgConnection, Failed> {
    let mut connection = connect(place)?;
    connection.batch_execute(
        "create table users (id serial primary key, name varchar not null unique, age int,
            created_at timestamp not null default current_timestamp);
         create table posts (id bigserial primary key, user_id int not null references users,
            title text not null, tags text[] not null default '{}', meta jsonb);
         insert into users (name, age) values ('Sean', 30), ('Tess', null);
         insert into posts (user_id, title, tags, meta) values
            (1, 'one', '{a,b}', '{\"k\": {\"n\": 1}}'), (1, 'two', '{b}', null);",
    )?;
    Ok(connection)
}

pub fn names(c: &mut PgConnection) -> QueryResult<Vec<String>> {
    users::table.order(users::id).select(users::name).load(c)
}

fn inserts_return_rows(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let user: User = diesel::insert_into(users::table)
        .values(&NewUser { name: "Ann", age: Some(7) })
        .returning(User::as_returning())
        .get_result(c)?;
    assert_eq!((user.id, &*user.name, user.age), (3, "Ann", Some(7)));
    let count = diesel::insert_into(users::table).values(users::name.eq("Bob")).execute(c)?;
    assert_eq!(count, 1);
    Ok(())
}

fn filters_and_orders(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<User> = users::table
        .filter(users::name.ilike("s%").and(users::age.ge(18)))
        .or_filter(users::id.eq_any([2, 99]))
        .order((users::age.desc().nulls_last(), users::id))
        .limit(5)
        .offset(0)
        .select(User::as_select())
        .load(c)?;
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].name, "Sean");
    let none = users::table.filter(users::name.ne_all(["Sean", "Tess"])).first::<User>(c);
    assert_eq!(none.optional()?, None);
    Ok(())
}

fn optional_values(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let ages: Vec<Option<i32>> = users::table.order(users::id).select(users::age).load(c)?;
    assert_eq!(ages, [Some(30), None]);
    let same = users::table.filter(users::age.is_not_distinct_from(None::<i32>)).count();
    assert_eq!(same.get_result::<i64>(c)?, 1);
    Ok(())
}

fn updates_of_changesets(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let mut user: User = users::table.find(1).first(c)?;
    user.name = "Shaun".to_string();
    let saved: User = diesel::update(&user).set(&user).get_result(c)?;
    assert_eq!(saved, user);
    let count = diesel::update(users::table.filter(users::age.is_null()))
        .set((users::age.eq(1), users::name.eq(users::name.concat("!"))))
        .execute(c)?;
    assert_eq!((count, names(c)?), (1, vec!["Shaun".to_string(), "Tess!".to_string()]));
    diesel::update(users::table).set(users::age.eq(users::age + 1)).execute(c)?;
    Ok(())
}

fn deletes(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    assert_eq!(diesel::delete(posts::table.filter(posts::title.like("o%"))).execute(c)?, 1);
    let gone: String = diesel::delete(users::table.find(2)).returning(users::name).get_result(c)?;
    assert_eq!(gone, "Tess");
    Ok(())
}

fn upserts(place: Place) -> Done {
    use diesel::upsert::excluded;
    let c = &mut with_users(&place)?;
    let rows = [NewUser { name: "Sean", age: Some(31) }, NewUser { name: "Ann", age: None }];
    let count = diesel::insert_into(users::table)
        .values(&rows)
        .on_conflict(users::name)
        .do_update()
        .set(users::age.eq(excluded(users::age)))
        .execute(c)?;
    assert_eq!(count, 2);
    let count =
        diesel::insert_into(users::table).values(&rows).on_conflict_do_nothing().execute(c)?;
    assert_eq!(count, 0);
    let age: Option<i32> = users::table.find(1).select(users::age).first(c)?;
    assert_eq!(age, Some(31));
    Ok(())
}

fn batches_of_inserts(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let names: Vec<String> = (0..500).map(|n| format!("user {n}")).collect();
    let rows: Vec<_> = names.iter().map(|name| NewUser { name, age: Some(1) }).collect();
    let ids: Vec<i32> =
        diesel::insert_into(users::table).values(&rows).returning(users::id).get_results(c)?;
    assert_eq!((ids.len(), ids[499]), (500, 502));
    Ok(())
}

fn inserts_from_selects(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let count = users::table
        .select((users::name.concat(" 2"), users::age))
        .insert_into(users::table)
        .into_columns((users::name, users::age))
        .execute(c)?;
    assert_eq!(count, 2);
    Ok(())
}

fn joins(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<(Post, User)> = posts::table
        .inner_join(users::table)
        .filter(users::name.eq("Sean"))
        .order(posts::id)
        .select((Post::as_select(), User::as_select()))
        .load(c)?;
    assert_eq!(found.len(), 2);
    assert_eq!((&*found[0].0.title, &*found[0].1.name), ("one", "Sean"));
    assert_eq!(found[0].0.user_id, 1);
    Ok(())
}

fn left_joins(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<(String, Option<String>)> = users::table
        .left_join(posts::table)
        .order((users::id, posts::id))
        .select((users::name, posts::title.nullable()))
        .load(c)?;
    assert_eq!(found[2], ("Tess".to_string(), None));
    let (a, b) = diesel::alias!(users as a, users as b);
    let pairs: i64 =
        a.inner_join(b.on(a.field(users::id).lt(b.field(users::id)))).count().get_result(c)?;
    assert_eq!(pairs, 1);
    Ok(())
}

fn associations_are_grouped(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let all: Vec<User> = users::table.order(users::id).load(c)?;
    let of = Post::belonging_to(&all).order(posts::id).load::<Post>(c)?.grouped_by(&all);
    assert_eq!(of.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0]);
    Ok(())
}

fn aggregates_and_groups(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<(i32, i64)> = posts::table
        .group_by(posts::user_id)
        .having(count_star().gt(1))
        .select((posts::user_id, count_star()))
        .load(c)?;
    assert_eq!(found, [(1, 2)]);
    let (most, all): (Option<i32>, Option<i64>) =
        users::table.select((max(users::age), sum(users::age))).first(c)?;
    assert_eq!((most, all), (Some(30), Some(30)));
    Ok(())
}

fn subqueries(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let writers = posts::table.select(posts::user_id);
    let found: Vec<i32> =
        users::table.filter(users::id.eq_any(writers)).select(users::id).load(c)?;
    assert_eq!(found, [1]);
    let any = diesel::select(exists(users::table.filter(users::name.eq("Zoe"))));
    assert!(!any.get_result::<bool>(c)?);
    let either = users::table.select(users::name).union(posts::table.select(posts::title));
    assert_eq!(either.load::<String>(c)?.len(), 4);
    Ok(())
}

fn values_of_types(place: Place) -> Done {
    use diesel::sql_types as t;
    let c = &mut connect(&place)?;
    let id = Uuid::new_v4();
    let price: BigDecimal = "-12345.6789".parse()?;
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap();
    let moment = day.and_hms_micro_opt(1, 2, 3, 4).unwrap();
    let found: (Uuid, BigDecimal, NaiveDate, NaiveDateTime, DateTime<Utc>, Vec<u8>, f64, bool) =
        diesel::select((
            id.into_sql::<t::Uuid>(),
            price.clone().into_sql::<t::Numeric>(),
            day.into_sql::<t::Date>(),
            moment.into_sql::<t::Timestamp>(),
            moment.and_utc().into_sql::<t::Timestamptz>(),
            vec![0u8, 255].into_sql::<t::Binary>(),
            1.5f64.into_sql::<t::Double>(),
            true.into_sql::<t::Bool>(),
        ))
        .get_result(c)?;
    assert_eq!(found, (id, price, day, moment, moment.and_utc(), vec![0, 255], 1.5, true));
    Ok(())
}

fn json_operators(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<Option<serde_json::Value>> =
        posts::table.order(posts::id).select(posts::meta.retrieve_as_object("k")).load(c)?;
    assert_eq!(found, [Some(serde_json::json!({"n": 1})), None]);
    let has = posts::table.filter(posts::meta.contains(serde_json::json!({"k": {}}))).count();
    assert_eq!(has.get_result::<i64>(c)?, 1);
    let keyed = posts::table.filter(posts::meta.has_key("k")).count();
    assert_eq!(keyed.get_result::<i64>(c)?, 1);
    Ok(())
}

fn arrays(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let tagged = posts::table.filter(posts::tags.contains(vec!["a"])).select(posts::id);
    assert_eq!(tagged.load::<i64>(c)?, [1]);
    let both = posts::table.filter(posts::tags.overlaps_with(vec!["b", "z"])).count();
    assert_eq!(both.get_result::<i64>(c)?, 2);
    let of: Vec<Vec<String>> = diesel::update(posts::table)
        .set(posts::tags.eq(posts::tags.concat(vec!["new"])))
        .returning(posts::tags)
        .get_results(c)?;
    assert!(of.iter().all(|tags| tags.last().is_some_and(|tag| tag == "new")));
    Ok(())
}

fn enums_with_their_own_type(place: Place) -> Done {
    use crate::diesel_language::{Language, translations};
    let c = &mut connect(&place)?;
    c.batch_execute(
        "create type language as enum ('en', 'de');
         create table translations (word_id int, language language, primary key (word_id, language))",
    )?;
    diesel::insert_into(translations::table)
        .values(vec![
            (translations::word_id.eq(1), translations::language.eq(Language::De)),
            (translations::word_id.eq(1), translations::language.eq(Language::En)),
        ])
        .execute(c)?;
    let found: Vec<Language> =
        translations::table.order(translations::language).select(translations::language).load(c)?;
    assert_eq!(found, [Language::En, Language::De]);
    Ok(())
}

#[derive(QueryableByName, Debug, PartialEq)]
struct Counted {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    posts: i64,
}

fn raw_queries(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<Counted> = diesel::sql_query(
        "select name, (select count(*) from posts where user_id = u.id) as posts
         from users u where u.id > $1 order by id",
    )
    .bind::<Integer, _>(0)
    .load(c)?;
    assert_eq!(found[0], Counted { name: "Sean".into(), posts: 2 });
    let sized: Vec<i32> = users::table.select(sql::<Integer>("length(name)")).load(c)?;
    assert_eq!(sized, [4, 4]);
    Ok(())
}

fn distinct_on(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let found: Vec<(i32, String)> = posts::table
        .distinct_on(posts::user_id)
        .order((posts::user_id, posts::id.desc()))
        .select((posts::user_id, posts::title))
        .load(c)?;
    assert_eq!(found, [(1, "two".to_string())]);
    Ok(())
}

fn locking_clauses(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let other = &mut connect(&place)?;
    c.transaction::<_, Failed, _>(|c| {
        let held: Vec<i32> =
            users::table.filter(users::id.eq(1)).select(users::id).for_update().load(c)?;
        assert_eq!(held, [1]);
        let free: Vec<i32> =
            users::table.select(users::id).for_update().skip_locked().load(other)?;
        assert_eq!(free, [2]);
        assert!(
            users::table
                .select(users::id)
                .for_no_key_update()
                .no_wait()
                .load::<i32>(other)
                .is_err()
        );
        Ok(())
    })
}

fn boxed_queries(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    for (name, wanted) in [(Some("Tess"), 1), (None, 2)] {
        let mut query = users::table.into_boxed();
        if let Some(name) = name {
            query = query.filter(users::name.eq(name));
        }
        assert_eq!(query.count().get_result::<i64>(c)?, wanted);
    }
    Ok(())
}

fn case_expressions(place: Place) -> Done {
    use diesel::dsl::case_when;
    let c = &mut with_users(&place)?;
    let found: Vec<String> = users::table
        .order(users::id)
        .select(
            case_when(users::age.is_null(), "unknown".into_sql::<Text>()).otherwise(users::name),
        )
        .load(c)?;
    assert_eq!(found, ["Sean", "unknown"]);
    Ok(())
}

fn rows_are_loaded_in_parts(place: Place) -> Done {
    use diesel::pg::PgRowByRowLoadingMode;
    let c = &mut with_users(&place)?;
    let query = diesel::sql_query(
        "select 'n' || g as name, g::int8 as posts from generate_series(1, 5000) g",
    );
    let mut sum = 0;
    for row in query.load_iter::<Counted, PgRowByRowLoadingMode>(c)? {
        sum += row?.posts;
    }
    assert_eq!(sum, 12_502_500);
    Ok(())
}

fn copy_from(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    let rows =
        vec![CopiedUser { name: "Ann", age: Some(1) }, CopiedUser { name: "Bob", age: None }];
    let count = diesel::copy_from(users::table).from_insertable(&rows).execute(c)?;
    assert_eq!(count, 2);
    let count = diesel::copy_from(users::table)
        .from_raw_data((users::name, users::age), |copy| {
            writeln!(copy, "Cid,5")
                .map_err(|e| diesel::result::Error::SerializationError(e.into()))?;
            diesel::QueryResult::Ok(())
        })
        .with_format(CopyFormat::Csv)
        .execute(c)?;
    assert_eq!((count, names(c)?.len()), (1, 5));
    Ok(())
}

fn copy_to(place: Place) -> Done {
    let c = &mut with_users(&place)?;
    // diesel itself does not read a null of a binary copy.
    diesel::update(users::table).set(users::age.eq(30)).execute(c)?;
    let found =
        diesel::copy_to(users::table).load::<User, _>(c)?.collect::<QueryResult<Vec<_>>>()?;
    assert_eq!((found.len(), &*found[1].name), (2, "Tess"));
    // A copy that is loaded row by row leaves the connection busy.
    let c = &mut connect(&place)?;
    let mut text = String::new();
    diesel::copy_to(posts::table)
        .with_format(CopyFormat::Csv)
        .with_header(true)
        .load_raw(c)?
        .read_to_string(&mut text)?;
    assert!(text.starts_with("id,user_id,title,tags,meta\n1,1,one,\"{a,b}\","), "{text}");
    Ok(())
}
