//! diesel: a type of the database that is an enumeration of the program.

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, IsNull, Output, ToSql};
use std::io::Write;

#[derive(diesel::sql_types::SqlType, diesel::query_builder::QueryId)]
#[diesel(postgres_type(name = "language"))]
pub struct LanguageType;

#[derive(Debug, AsExpression, FromSqlRow, PartialEq, Clone, Copy)]
#[diesel(sql_type = LanguageType)]
pub enum Language {
    En,
    De,
}

impl ToSql<LanguageType, Pg> for Language {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(if *self == Language::En { b"en" } else { b"de" })?;
        Ok(IsNull::No)
    }
}

impl FromSql<LanguageType, Pg> for Language {
    fn from_sql(bytes: PgValue<'_>) -> deserialize::Result<Self> {
        match bytes.as_bytes() {
            b"en" => Ok(Language::En),
            b"de" => Ok(Language::De),
            _ => Err("no language".into()),
        }
    }
}

diesel::table! {
    use diesel::sql_types::Integer;
    use super::LanguageType;
    translations (word_id, language) {
        word_id -> Integer,
        language -> LanguageType,
    }
}
