"""Seeded random statements that write, for comparing two servers table by table.

    seed ─▶ tables, rows ─▶ statements ─▶ one of each kind that PostgreSQL answers in one way only

INVARIANTS
  Q1  the same seed gives the same statements.
  Q2  no answer depends on the order in which rows are looked at: a row is never joined twice with
      different values, and keys are given one at a time or from values that nobody has.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

TABLES: Final = ("a", "b", "c")
SETUP: Final = (
    "create table a (k int primary key, n int, s text, d numeric(9,2) default 1.25)",
    "create table b (k int, x int, s varchar(12) default 'dflt', unique (k, x))",
    "create table c (id bigint, k int not null, q double precision, t timestamp)",
)


class Writer:
    """Makes statements (Q1)."""

    tables: Sequence[str] = TABLES
    setup: Sequence[str] = SETUP

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._next = 1_000
        self._depth = 0
        self.failed = False
        """Set by who plays them: the last statement has failed."""

    def statements(self, count: int) -> Iterator[str]:
        """Statements, transactions and savepoints among them; no block is left open."""
        yield from self.setup
        kinds = self._kinds()
        makers = [maker for maker, _ in kinds]
        weights = [weight for _, weight in kinds]
        for _ in range(count):
            yield from self._control()
            (maker,) = self._random.choices(makers, weights)
            yield maker()
        if self._depth:
            yield "commit"

    def _kinds(self) -> Sequence[tuple[Callable[[], str], int]]:
        """Makers of statements, and how often each of them is asked."""
        return [
            (self._insert, 6), (self._insert_select, 3), (self._upsert, 6), (self._update, 5),
            (self._update_from, 3), (self._delete, 2), (self._delete_using, 2), (self._merge, 4),
            (self._with, 4), (self._wrong, 2), (self._truncate, 1),
        ]  # fmt: skip

    def _control(self) -> Iterator[str]:
        chance = self._random.random()
        failed, self.failed = self.failed, False
        if failed and self._depth:
            yield f"rollback to s{self._depth}" if self._depth > 1 else "rollback"
            if self._depth == 1:
                self._depth = 0
        elif not self._depth:
            if chance < 0.15:
                self._depth = 1
                yield "begin"
        elif chance < 0.15:
            self._depth += 1
            yield f"savepoint s{self._depth}"
        elif chance < 0.25 and self._depth > 1:
            yield f"rollback to s{self._depth}"
        elif chance < 0.3 and self._depth > 1:
            yield f"release s{self._depth}"
            self._depth -= 1
        elif chance < 0.4:
            self._depth = 0
            yield self._random.choice(("commit", "commit", "rollback"))

    # --- values ---------------------------------------------------------------------------------

    def _key(self) -> int:
        return self._random.randrange(1, 25)

    def _fresh(self) -> int:
        self._next += 1
        return self._next

    def _number(self) -> str:
        return self._random.choice(("null", str(self._random.randrange(-50, 50))))

    def _text(self) -> str:
        return self._random.choice(("null", "''", "'x'", "'it''s'", "'ünï'", "'long'", "default"))

    def _plain(self) -> str:
        text = self._text()
        return "'d'" if text == "default" else text

    def _where(self, table: str) -> str:
        key = "id" if table == "c" else "k"
        low = self._key()
        return self._random.choice(
            (
                f"{table}.{key} = {low}",
                f"{table}.k between {low} and {low + self._random.randrange(8)}",
                f"{table}.k in ({low}, {self._key()}, {self._key()})",
                f"{table}.k % 3 = {self._random.randrange(3)}",
                f"{table}.k in (select k from b where x > {self._number()})",
                f"exists (select 1 from c z where z.k = {table}.k and z.id > {low})",
            )
        )

    def _returning(self, table: str) -> str:
        return self._random.choice(
            ("", "", f" returning {table}.*", f" returning {table}.k, old.k, new.k", " returning 1")
        )

    # --- statements -----------------------------------------------------------------------------

    def _row(self, table: str) -> str:
        match table:
            case "a":
                return f"({self._fresh()}, {self._number()}, {self._text()}, {self._money()})"
            case "b":
                return f"({self._key()}, {self._fresh()}, {self._text()})"
            case _:
                when = self._random.choice(("null", "'2024-02-29 12:34:56.789'", "'1999-12-31'"))
                number = self._random.choice(("null", "1.5", "-0.25", "1e10"))
                return f"({self._fresh()}, {self._key()}, {number}, {when})"

    def _money(self) -> str:
        return self._random.choice(("default", "null", "0", "12.345", "-7.5"))

    def _insert(self) -> str:
        table = self._random.choice(TABLES)
        if self._random.random() < 0.3:
            key = self._key()
            return f"insert into a (k, n) values ({key}, {self._number()}){self._returning('a')}"
        rows = ", ".join(self._row(table) for _ in range(self._random.randrange(1, 6)))
        return f"insert into {table} values {rows}{self._returning(table)}"

    def _insert_select(self) -> str:
        low = self._fresh()
        self._next += 100
        return self._random.choice(
            (
                f"insert into c (id, k) select {low} + k, k from a where {self._where('a')}"
                + self._returning("c"),
                f"insert into c select {low} + c.id, c.k, c.q * 2, t from c"
                f" where {self._where('c')}",
                "insert into b (k, x) select a.k, "
                f"{low} + a.n from a where a.n is not null and {self._where('a')}"
                + self._returning("b"),
            )
        )

    def _upsert(self) -> str:
        keys = self._random.sample(range(1, 25), self._random.randrange(1, 5))
        if self._random.random() < 0.1:
            keys.append(keys[0])
        action = self._random.choice(
            (
                "on conflict do nothing",
                "on conflict (k) do nothing",
                "on conflict (k) do update set n = excluded.n, s = a.s || excluded.s",
                "on conflict (k) do update set n = coalesce(a.n, 0) + 1 where a.n is not null",
                "on conflict on constraint a_pkey do update set (n, d) = (excluded.k, a.d + 1)",
                "on conflict (k) do update set n = (select count(*) from b where b.k = excluded.k)",
                f"on conflict (k) do update set k = a.k + {self._fresh() * 1_000}",
            )
        )
        rows = ", ".join(f"({key}, {self._number()}, {self._plain()})" for key in keys)
        return f"insert into a (k, n, s) values {rows} {action}{self._returning('a')}"

    def _update(self) -> str:
        table = self._random.choice(TABLES)
        changes = {
            "a": ("n = n + 1", "s = s || '.'", "d = d * 2, n = 0", "(n, s) = (7, default)",
                  "(n, d) = (select max(x), 3 from b where b.k = a.k)", "d = default"),
            "b": ("s = left(s || 'y', 12)", "s = default", "s = null"),
            "c": ("q = q / 2", "q = k, t = t + interval '1 day'", "id = id"),
        }  # fmt: skip
        change = self._random.choice(changes[table])
        return f"update {table} set {change} where {self._where(table)}{self._returning(table)}"

    def _update_from(self) -> str:
        return self._random.choice(
            (
                "update a set n = g.total from (select k, sum(x) as total from b group by k) g"
                f" where g.k = a.k and {self._where('a')}" + self._returning("a"),
                "update c set q = a.n from a where a.k = c.k returning c.id, a.k, old.q, new.q",
                "update b set s = left(coalesce(a.s, 'none'), 12) from a left join c on c.id = -a.k"
                f" where a.k = b.k and {self._where('b')}" + self._returning("b"),
            )
        )

    def _delete(self) -> str:
        table = self._random.choice(TABLES)
        return f"delete from {table} where {self._where(table)}{self._returning(table)}"

    def _delete_using(self) -> str:
        return self._random.choice(
            (
                f"delete from c using a where a.k = c.k and {self._where('a')} returning c.id, a.k",
                "delete from b using (select k from a group by k having count(*) = 1) g"
                f" where g.k = b.k and {self._where('b')} returning b.*",
                f"delete from a using b where b.k = a.k and b.x < {self._number()} returning a.k",
            )
        )

    def _merge(self) -> str:
        fresh = self._fresh()
        source = "(select k, max(x) as m, min(s) as s from b group by k) q"
        clauses = self._random.choice(
            (
                "when matched then update set n = q.m when not matched then insert (k, n)"
                " values (q.k, q.m)",
                "when matched and a.n is null then delete when matched then update set s = q.s"
                " when not matched by source and a.k > 1000 then update set n = -1",
                f"when not matched and q.k % 2 = 0 then insert values (q.k, {fresh}, q.s, default)"
                " when not matched then do nothing",
                f"when not matched by source and a.k = {self._key()} then delete"
                " when matched then do nothing",
                f"when not matched then insert (k, n) values (q.k + {fresh * 100}, q.m)",
            )
        )
        shown = self._random.choice(("", " returning merge_action(), a.k, q.k, old.n, new.n"))
        return f"merge into a using {source} on a.k = q.k {clauses}{shown}"

    def _with(self) -> str:
        fresh = self._fresh()
        self._next += 100
        return self._random.choice(
            (
                f"with g as (delete from b where {self._where('b')} returning *)"
                f" insert into c (id, k) select {fresh} + row_number() over (order by k, x), k"
                " from g returning k",
                f"with g as (update a set n = 0 where {self._where('a')} returning k, old.n)"
                " select count(*), sum(n) from g",
                f"with g as (insert into a (k) values ({fresh}) returning k), h as (insert into c"
                " (id, k) select k, 1 from g returning id) select g.k, h.id from g, h",
                f"with g as (delete from a where a.k = {self._key()} returning *) insert into a"
                " select k, n, 'moved', d from g returning *",
                f"with g as (insert into a (k, n) values ({self._key()}, 1) on conflict (k) do"
                " update set n = a.n + 1 returning k, n) select * from g",
                f"with g as (delete from c where {self._where('c')}) update b set s = 'w'"
                f" where {self._where('b')}",
            )
        )

    def _wrong(self) -> str:
        """Statements that fail, of which some begin with rows that would be fine."""
        return self._random.choice(
            (
                f"insert into a (k) values ({self._fresh()}), (null)",
                f"insert into a (k) values ({self._next + 1}), ({self._next + 1})",
                f"insert into c values ({self._fresh()}, null, 1, null)",
                f"insert into b values ({self._key()}, 1, 'far too long a text')",
                f"update a set n = 1 / (k - {self._key()})",
                f"insert into a (k, d) values ({self._fresh()}, 12345678)",
                f"delete from a where 1 / (k - {self._key()}) is null",
            )
        )

    def _truncate(self) -> str:
        return f"truncate {self._random.choice(('c', 'b, c'))}"
