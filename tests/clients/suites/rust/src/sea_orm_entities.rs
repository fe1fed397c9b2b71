//! sea-orm: entities of the cases.

pub mod cake {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "cake")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        #[sea_orm(unique)]
        pub name: String,
        #[sea_orm(column_type = "Decimal(Some((10, 2)))")]
        pub price: Decimal,
        pub bakery_id: Option<i32>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(
            belongs_to = "super::bakery::Entity",
            from = "Column::BakeryId",
            to = "super::bakery::Column::Id"
        )]
        Bakery,
    }

    impl Related<super::bakery::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Bakery.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod bakery {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "bakery")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub name: String,
        pub margin: f64,
        #[sea_orm(column_type = "JsonBinary", nullable)]
        pub hours: Option<Json>,
        pub code: Uuid,
        pub opened: Option<DateTimeUtc>,
        pub size: Size,
    }

    #[derive(Clone, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
    #[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "bakery_size")]
    pub enum Size {
        #[sea_orm(string_value = "small")]
        Small,
        #[sea_orm(string_value = "large")]
        Large,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(has_many = "super::cake::Entity")]
        Cake,
    }

    impl Related<super::cake::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Cake.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}
