"""Tortoise ORM, through asyncpg."""

import contextlib
import datetime
import decimal
from collections.abc import AsyncIterator

import tortoise
from cases import Cases, same, url
from tortoise import Tortoise
from tortoise.exceptions import IntegrityError
from tortoise.expressions import F, Q
from tortoise.functions import Count, Sum
from tortoise.transactions import in_transaction
from tortoise_models import Event, State, Team

cases = Cases("tortoise", tortoise.__version__)


@contextlib.asynccontextmanager
async def _filled() -> AsyncIterator[None]:
    await Tortoise.init(db_url=url("asyncpg"), modules={"models": ["tortoise_models"]})
    try:
        connection = Tortoise.get_connection("default")
        for table in ("to_event_team", "to_event", "to_team"):
            await connection.execute_script(f"drop table if exists {table} cascade")
        await Tortoise.generate_schemas()
        ada, bob = await Team.create(name="ada"), await Team.create(name="bob")
        one = await Event.create(name="one", owner=ada, fee="1.50", data={"k": [1]})
        await Event.create(name="two", owner=ada, state=State.DONE, day=datetime.date(2024, 2, 29))
        await Event.create(name="three", owner=bob, fee=4)
        await one.teams.add(ada, bob)
        yield
    finally:
        await Tortoise.close_connections()


@cases.case
async def tables_are_made_twice() -> None:
    async with _filled():
        await Tortoise.generate_schemas(safe=True)
        same(await Event.all().count(), 3)


@cases.case
async def rows_round_trip() -> None:
    async with _filled():
        event = await Event.get(name="one")
        same((event.fee, event.data, event.state), (decimal.Decimal("1.50"), {"k": [1]}, State.NEW))
        same((await Event.get(state=State.DONE)).day, datetime.date(2024, 2, 29))


@cases.case
async def relations_are_prefetched() -> None:
    async with _filled():
        teams = await Team.all().order_by("name").prefetch_related("owned")
        same([sorted(e.name for e in team.owned) for team in teams], [["one", "two"], ["three"]])
        same(
            [t.name for t in await (await Event.get(name="one")).teams.order_by("name")],
            ["ada", "bob"],
        )
        same(
            [e.owner.name for e in await Event.filter(name="two").select_related("owner")], ["ada"]
        )


@cases.case
async def aggregates() -> None:
    async with _filled():
        found = (
            await Team.annotate(n=Count("owned"), s=Sum("owned__fee"))
            .order_by("name")
            .values_list("name", "n", "s")
        )
        same(
            [tuple(row) for row in found],
            [("ada", 2, decimal.Decimal("1.50")), ("bob", 1, decimal.Decimal(4))],
        )


@cases.case
async def conditions() -> None:
    async with _filled():
        query = Event.filter(Q(fee__gt=3) | Q(owner__name="ada", name__icontains="W"))
        same(sorted([event.name for event in await query]), ["three", "two"])
        same(await Event.filter(name__in=["one", "two"]).exclude(name__startswith="t").count(), 1)
        same(await Event.filter(data__contains={"k": [1]}).count(), 1)
        same(await Event.filter(day__year=2024).count(), 1)


@cases.case
async def updates_and_deletes() -> None:
    async with _filled():
        same(await Event.filter(owner__name="ada").update(fee=F("fee") + 1), 2)
        same(await Event.filter(fee=decimal.Decimal("2.50")).count(), 1)
        await Team.filter(name="ada").delete()
        same(await Event.all().count(), 1)


@cases.case
async def bulk_and_upsert() -> None:
    async with _filled():
        await Team.bulk_create([Team(name=f"t{i}") for i in range(100)], batch_size=30)
        await Team.bulk_create([Team(name="t1"), Team(name="new")], ignore_conflicts=True)
        same(await Team.all().count(), 103)
        team, made = await Team.get_or_create(name="t1")
        same((team.name, made), ("t1", False))
        same(len(await Team.all().order_by("id").offset(100).limit(10)), 3)


@cases.case
async def transactions() -> None:
    async with _filled():
        try:
            async with in_transaction() as connection:
                await Team.create(name="gone", using_db=connection)
                await Team.create(name="ada", using_db=connection)
        except IntegrityError:
            pass
        same(await Team.filter(name="gone").count(), 0)
        async with in_transaction() as connection:
            locked = await Team.filter(name="ada").using_db(connection).select_for_update().get()
            locked.name = "eve"
            await locked.save(using_db=connection)
        same(await Team.filter(name="eve").count(), 1)


@cases.case
async def raw_queries() -> None:
    async with _filled():
        found = await Event.raw("select * from to_event where fee > 3")
        same([event.name for event in found], ["three"])  # type: ignore[union-attr]
        connection = Tortoise.get_connection("default")
        same((await connection.execute_query_dict("select 1 as a"))[0], {"a": 1})


if __name__ == "__main__":
    cases.run()
