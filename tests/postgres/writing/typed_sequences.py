"""Random writing statements over columns of every type, with generated columns and keys.

The same invariants as `driver/sequences.py`; it has the transactions and savepoints.
"""

from collections.abc import Callable, Sequence
from typing import Final

from tests.postgres.writing.sequences import Writer

TABLES: Final = ("r", "f")
SETUP: Final = (
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create domain small as int check (value between 1 and 99)",
    "create table r (k int primary key, m mood default 'ok', p small, a int[], j jsonb, i interval,"
    " g int generated always as (k % 10 + coalesce(p, 0)) stored, h time, u uuid,"
    " o int unique deferrable initially deferred)",
    "create table f (id int, r_k int references r deferrable initially deferred, m mood,"
    " t text generated always as ('<' || id || '>') stored)",
)


class TypedWriter(Writer):
    """Makes statements (Q1)."""

    tables = TABLES
    setup = SETUP

    def _kinds(self) -> Sequence[tuple[Callable[[], str], int]]:
        return [
            (self._new, 7), (self._child, 4), (self._change, 6), (self._remove, 2),
            (self._either, 5), (self._merged, 4), (self._copied, 3), (self._moved, 3),
            (self._bad, 3), (self._constraints, 1),
        ]  # fmt: skip

    # --- values ---------------------------------------------------------------------------------

    def _one_of(self, *texts: str) -> str:
        return self._random.choice(texts)

    def _values(self, key: int) -> str:
        """k, m, p, a, j, i, h, u, o."""
        document = self._one_of(
            "null",
            "'{}'",
            "'{\"a\": [1, 2]}'",
            '\'{"b": 1, "a": null}\'',
            "'[1.50, \"x\"]'",
            "'1e2'",
        )
        return ", ".join(
            (
                str(key),
                self._one_of("default", "null", "'sad'", "'ok'", "'happy'"),
                self._one_of("null", "1", "50", "99"),
                self._one_of("null", "'{}'", "'{1,2,3}'", "array[null, 7]", "'{5}'"),
                document,
                self._one_of(
                    "null", "'1 mon'", "'30 days'", "'-1 day 02:03:04.5'", "'1 year 1 us'"
                ),
                self._one_of("null", "'12:34:56.789'", "'00:00'", "'23:59:59.999999'"),
                self._one_of("null", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
                self._one_of("null", str(key)),
            )
        )

    def _which(self) -> str:
        low = self._key()
        return self._one_of(
            f"r.k = {low}",
            f"r.k between {low} and {low + 5}",
            "r.m > 'sad'",
            "r.m = 'ok' and r.p < 60",
            f"r.g % 4 = {self._random.randrange(4)}",
            "r.a @> '{1}'",
            "r.i > '29 days'",
            "r.j ? 'a'",
            "r.h < '13:00'",
            "r.u is not null",
            f"{low} = any(r.a) or r.k = {low}",
        )

    def _shown(self) -> str:
        return self._one_of(
            "", " returning r.*", " returning r.k, old.m, new.m, new.g", " returning r.j"
        )

    # --- statements -----------------------------------------------------------------------------

    _COLUMNS = "(k, m, p, a, j, i, h, u, o)"

    def _new(self) -> str:
        if self._random.random() < 0.4:
            return (
                f"insert into r {self._COLUMNS} values ({self._values(self._key())}){self._shown()}"
            )
        rows = ", ".join(
            f"({self._values(self._fresh())})" for _ in range(self._random.randrange(1, 4))
        )
        return f"insert into r {self._COLUMNS} values {rows}{self._shown()}"

    def _child(self) -> str:
        key = self._one_of(str(self._key()), "null", str(self._next))
        return f"insert into f (id, r_k, m) values ({self._fresh()}, {key}, 'sad') returning id, t"

    def _change(self) -> str:
        change = self._one_of(
            "m = 'happy'", "m = case r.m when 'sad' then 'ok'::mood else r.m end", "m = default",
            "p = p + 1", "p = null", "a = a || 4", "a = array_remove(a, 2)", "a = '{}'",
            "j = j || '{\"n\": 1}'", "j = jsonb_set(j, '{a}', '0') ", "j = to_jsonb(a)",
            "i = i * 2", "i = i + '1 day'", "h = h + interval '1 hour'", "o = null", "o = k",
            f"o = {self._key()}", f"k = k + {self._fresh() * 1_000}", "g = default, p = 7",
            "m = (select max(f.m) from f where f.r_k = r.k)",
        )  # fmt: skip
        return f"update r set {change} where {self._which()}{self._shown()}"

    def _remove(self) -> str:
        return self._one_of(
            f"delete from r where {self._which()}{self._shown()}",
            f"delete from f where r_k = {self._key()} returning f.*",
            "delete from f using r where r.k = f.r_k and r.m = 'happy' returning f.id, r.m",
        )

    def _either(self) -> str:
        action = self._one_of(
            "do nothing",
            "do update set m = excluded.m, p = coalesce(excluded.p, r.p)",
            "do update set a = r.a || excluded.a, j = excluded.j where r.m is not null",
            "do update set i = coalesce(r.i, '0') + coalesce(excluded.i, '1 day'), h = default",
            "do update set p = r.p + 40 ",
        )
        values = self._values(self._key())
        insert = f"insert into r {self._COLUMNS} values ({values})"
        return f"{insert} on conflict (k) {action}{self._shown()}"

    def _merged(self) -> str:
        clauses = self._one_of(
            "when matched and r.m < q.m then update set m = q.m when matched then do nothing"
            f" when not matched then insert (k, m) values (q.r_k + {self._fresh() * 1_000}, q.m)",
            "when matched then update set a = array[q.n::int], j = to_jsonb(q.m)",
            "when matched and r.p is null then delete when matched then update set p = 1",
            "when not matched by source and r.m = 'sad' then update set m = 'ok', p = 2",
        )
        source = "(select r_k, max(m) as m, count(*) as n from f where r_k > 0 group by r_k)"
        merge = f"merge into r using {source} q on r.k = q.r_k {clauses}"
        return f"{merge} returning merge_action(), r.k, r.g"

    def _copied(self) -> str:
        low = self._fresh()
        self._next += 100
        return self._one_of(
            f"insert into r (k, m, a, i) select {low} + k, m, a, -i from r where {self._which()}"
            + self._shown(),
            f"insert into f (id, r_k, m) select {low} + row_number() over (order by k), k, m from r"
            f" where {self._which()} returning t, m",
            f"insert into r (k, p, j) select {low} + id, 5, to_jsonb(t) from f"
            f" where r_k = {self._key()}{self._shown()}",
        )

    def _moved(self) -> str:
        fresh = self._fresh()
        return self._one_of(
            f"with g as (delete from r where k = {self._key()} returning *)"
            " insert into r (k, m, p, a, j) select k, 'sad', p, a || p::int, j from g"
            " returning r.*",
            f"with g as (update r set m = 'ok' where {self._which()} returning k, old.m as was, m)"
            " select was, m, count(*) from g group by was, m",
            f"with g as (insert into r (k) values ({fresh}) returning k, m)"
            " insert into f (id, r_k, m) select k, k, m from g returning f.*",
        )

    def _bad(self) -> str:
        key = self._fresh()
        return self._one_of(
            f"insert into r (k, m) values ({key}, 'angry')",
            f"insert into r (k, p) values ({key}, 100)",
            f"insert into r (k, p) values ({key}, 5), ({key + 1}, 0)",
            f"insert into r (k, g) values ({key}, 1)",
            f"insert into r (k, a) values ({key}, '{{1,x}}')",
            f"insert into r (k, j) values ({key}, '{{')",
            f"insert into r (k, i) values ({key}, 'often')",
            "update r set p = 98 + k where k < 9",
            "update f set t = 'x'",
            f"insert into f (id, r_k) values ({key}, -1)",
        )

    def _constraints(self) -> str:
        return self._one_of("set constraints all immediate", "set constraints all deferred")
