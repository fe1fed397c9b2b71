"""SQLModel."""

import decimal
from typing import Any

import sqlmodel
from cases import Cases, fails, same, url
from sqlalchemy import JSON, Column, exc, inspect
from sqlmodel import Field, Relationship, Session, SQLModel, select

cases = Cases("sqlmodel", sqlmodel.__version__)
ENGINE = sqlmodel.create_engine(url("postgresql+psycopg"))


class Team(SQLModel, table=True):
    """Has heroes."""

    __tablename__ = "sm_team"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True, unique=True)
    heroes: list["Hero"] = Relationship(back_populates="team")


class Hero(SQLModel, table=True):
    """Of a team, maybe."""

    __tablename__ = "sm_hero"
    id: int | None = Field(default=None, primary_key=True)
    name: str
    age: int | None = Field(default=None, index=True)
    fee: decimal.Decimal = Field(default=0, max_digits=8, decimal_places=2)
    facts: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON))
    team_id: int | None = Field(default=None, foreign_key="sm_team.id")
    team: Team | None = Relationship(back_populates="heroes")


def _filled() -> Session:
    SQLModel.metadata.drop_all(ENGINE)
    SQLModel.metadata.create_all(ENGINE)
    session = Session(ENGINE)
    team = Team(
        name="a-team", heroes=[Hero(name="x", age=30, fee=decimal.Decimal("1.50")), Hero(name="y")]
    )
    session.add_all([team, Hero(name="z", age=50, facts={"k": [1]})])
    session.commit()
    return session


@cases.case
def tables_are_made_twice() -> None:
    _filled().close()
    SQLModel.metadata.create_all(ENGINE)
    same([i["name"] for i in inspect(ENGINE).get_indexes("sm_hero")], ["ix_sm_hero_age"])


@cases.case
def rows_are_read_by_condition() -> None:
    with _filled() as session:
        found = session.exec(select(Hero).where(Hero.age > 20).order_by(Hero.name)).all()  # type: ignore[operator]
        same([(hero.name, hero.fee) for hero in found], [("x", decimal.Decimal("1.50")), ("z", 0)])
        same(session.exec(select(Hero.facts).where(Hero.name == "z")).one(), {"k": [1]})


@cases.case
def relations_are_followed() -> None:
    with _filled() as session:
        team = session.exec(select(Team)).one()
        same(sorted(hero.name for hero in team.heroes), ["x", "y"])
        rows = session.exec(select(Hero, Team).join(Team, isouter=True).order_by(Hero.name)).all()
        same(
            [(h.name, t and t.name) for h, t in rows],
            [("x", "a-team"), ("y", "a-team"), ("z", None)],
        )


@cases.case
def rows_are_changed_and_deleted() -> None:
    with _filled() as session:
        hero = session.exec(select(Hero).where(Hero.name == "z")).one()
        hero.age, hero.facts = 51, {"new": True}
        session.add(hero)
        session.commit()
        session.refresh(hero)
        same((hero.age, hero.facts), (51, {"new": True}))
        session.delete(hero)
        session.commit()
        same(len(session.exec(select(Hero)).all()), 2)


@cases.case
def pages_of_rows() -> None:
    with _filled() as session:
        query = select(Hero.name).order_by(Hero.id).offset(1).limit(1)
        same(session.exec(query).all(), ["y"])


@cases.case
def errors_roll_back() -> None:
    with _filled() as session:
        session.add(Team(name="a-team"))
        with fails("23505", exc.IntegrityError):
            session.commit()
        session.rollback()
        same(len(session.exec(select(Team)).all()), 1)


if __name__ == "__main__":
    cases.run()
