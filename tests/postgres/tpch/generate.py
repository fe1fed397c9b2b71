"""Data of TPC-H's shape: the same tables, keys, value ranges and words that the queries look for.

Not dbgen's bytes: values are drawn by a hash of table, column and row (`_bits`), so that a table of
any size is the same everywhere and for ever, and is made column by column.

INVARIANTS
  G1  the same scale gives the same rows; PostgreSQL's answers were recorded over them.
  G2  keys hold: every lineitem has its order and its partsupp, every third customer has no order.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]

SCHEMA: Final[Mapping[str, str]] = {
    "region": "r_regionkey integer, r_name char(25), r_comment varchar(152)",
    "nation": "n_nationkey integer, n_name char(25), n_regionkey integer, n_comment varchar(152)",
    "part": "p_partkey integer, p_name varchar(55), p_mfgr char(25), p_brand char(10),"
    " p_type varchar(25), p_size integer, p_container char(10), p_retailprice numeric(15,2),"
    " p_comment varchar(23)",
    "supplier": "s_suppkey integer, s_name char(25), s_address varchar(40), s_nationkey integer,"
    " s_phone char(15), s_acctbal numeric(15,2), s_comment varchar(101)",
    "partsupp": "ps_partkey integer, ps_suppkey integer, ps_availqty integer,"
    " ps_supplycost numeric(15,2), ps_comment varchar(199)",
    "customer": "c_custkey integer, c_name varchar(25), c_address varchar(40),"
    " c_nationkey integer, c_phone char(15), c_acctbal numeric(15,2), c_mktsegment char(10),"
    " c_comment varchar(117)",
    "orders": "o_orderkey bigint, o_custkey integer, o_orderstatus char(1),"
    " o_totalprice numeric(15,2), o_orderdate date, o_orderpriority char(15), o_clerk char(15),"
    " o_shippriority integer, o_comment varchar(79)",
    "lineitem": "l_orderkey bigint, l_partkey integer, l_suppkey integer, l_linenumber integer,"
    " l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2),"
    " l_tax numeric(15,2), l_returnflag char(1), l_linestatus char(1), l_shipdate date,"
    " l_commitdate date, l_receiptdate date, l_shipinstruct char(25), l_shipmode char(10),"
    " l_comment varchar(44)",
}

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0),
    ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4),
    ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1),
    ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_COLOURS = (
    "almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blue", "brown",
    "chartreuse", "chocolate", "coral", "cream", "cyan", "dark", "dim", "firebrick", "forest",
    "frosted", "ghost", "gold", "green", "grey", "honeydew", "indian", "ivory", "khaki", "lace",
    "lavender", "lemon", "light", "lime", "linen", "magenta", "maroon", "metallic", "midnight",
    "mint", "misty", "navy", "olive", "orange", "orchid", "pale", "papaya", "peach", "pink",
    "plum", "powder", "puff", "purple", "red", "rose", "rosy", "royal", "salmon", "sandy", "sienna",
    "sky", "slate", "smoke", "snow", "spring", "steel", "tan", "thistle", "tomato", "turquoise",
    "violet", "wheat", "white", "yellow",
)  # fmt: skip
_TYPES = tuple(
    " ".join(words)
    for words in product(
        ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
        ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
        ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
    )
)
_CONTAINERS = tuple(
    " ".join(words)
    for words in product(
        ("SM", "LG", "MED", "JUMBO", "WRAP"),
        ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
    )
)
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_WORDS = (
    "carefully", "quickly", "blithely", "slyly", "furiously", "final", "ironic", "even", "bold",
    "silent", "regular", "express", "special", "pending", "unusual", "packages", "requests",
    "accounts", "deposits", "foxes", "ideas", "theodolites", "pinto", "beans", "instructions",
    "dependencies", "excuses", "platelets", "asymptotes", "courts", "dolphins", "sleep", "haggle",
)  # fmt: skip
_COMMENTS = 4_096
"""Different comments; a table takes them in turns."""

_FIRST_DAY = 8_035  # 1992-01-01, in days since 1970
_ORDER_DAYS = 2_406  # to 1998-08-02
_TODAY = 9_298  # 1995-06-17: what was delivered by then has returned or not


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows the tables of a scale have."""

    parts: int
    suppliers: int
    customers: int

    @staticmethod
    def of(scale: float) -> "Sizes":
        """The sizes that TPC-H gives."""
        return Sizes(int(200_000 * scale), int(10_000 * scale), int(150_000 * scale))


def tables(scale: float) -> dict[str, pa.Table]:
    """All tables (G1)."""
    sizes = Sizes.of(scale)
    lines, orders = _sales(sizes)
    made = {
        "region": _region(),
        "nation": _nation(),
        "part": _part(sizes),
        "supplier": _supplier(sizes),
        "partsupp": _partsupp(sizes),
        "customer": _customer(sizes),
        "orders": orders,
        "lineitem": lines,
    }
    assert list(made) == list(SCHEMA), "every table is made, in order"
    return made


# --- drawing -----------------------------------------------------------------------------------


def _bits(stream: str, rows: Integers) -> npt.NDArray[np.uint64]:
    """64 bits for each row: splitmix64 of its number and the stream's name."""
    base = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(base)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _draw(stream: str, rows: Integers, low: int, high: int) -> Integers:
    """A number from `low` to `high` for each row, both included."""
    drawn = _bits(stream, rows) % np.uint64(high - low + 1)
    return drawn.astype(np.int64) + low


def _pick(stream: str, rows: Integers, words: Sequence[str]) -> pa.Array:
    return pa.array(words).take(pa.array(_draw(stream, rows, 0, len(words) - 1)))


def _numbers(count: int) -> Integers:
    return np.arange(count, dtype=np.int64)


def _cents(values: Integers) -> pa.Array:
    """numeric(15,2) of whole cents."""
    whole = pa.array(values).cast(pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar("0.01").cast(pa.decimal128(3, 2))).cast(
        pa.decimal128(15, 2)
    )


def _days(values: Integers) -> pa.Array:
    return pa.array(values.astype(np.int32)).cast(pa.date32())


def _integers(values: Integers) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _named(prefix: str, keys: Integers) -> pa.Array:
    return pa.array([f"{prefix}#{key:09d}" for key in keys.tolist()])


def _comments(stream: str, rows: Integers, length: int) -> pa.Array:
    words = _numbers(_COMMENTS)
    parts = [_pick(f"comment {index}", words, _WORDS).to_pylist() for index in range(12)]
    pool = [" ".join(sentence)[:length] for sentence in zip(*parts, strict=True)]
    return _pick(stream, rows, pool)


def _phones(stream: str, rows: Integers, nations: Integers) -> pa.Array:
    drawn = _bits(stream, rows)
    return pa.array(
        [
            f"{nation + 10}-{bits % 900 + 100}-{bits // 900 % 900 + 100}"
            f"-{bits // 810_000 % 9000 + 1000}"
            for nation, bits in zip(nations.tolist(), drawn.tolist(), strict=True)
        ]
    )


# --- tables ------------------------------------------------------------------------------------


def _region() -> pa.Table:
    rows = _numbers(5)
    return pa.table(
        {
            "r_regionkey": _integers(rows),
            "r_name": pa.array(_REGIONS),
            "r_comment": _comments("region", rows, 152),
        }
    )


def _nation() -> pa.Table:
    rows = _numbers(25)
    return pa.table(
        {
            "n_nationkey": _integers(rows),
            "n_name": pa.array([name for name, _ in _NATIONS]),
            "n_regionkey": _integers(np.array([region for _, region in _NATIONS])),
            "n_comment": _comments("nation", rows, 152),
        }
    )


def _prices(keys: Integers) -> Integers:
    """p_retailprice, in cents."""
    return 90_000 + (keys // 10) % 20_001 + 100 * (keys % 1_000)


def _part(sizes: Sizes) -> pa.Table:
    rows = _numbers(sizes.parts)
    keys = rows + 1
    makers = _draw("p_mfgr", rows, 1, 5)
    brands = makers * 10 + _draw("p_brand", rows, 1, 5)
    words = [_pick(f"p_name {index}", rows, _COLOURS) for index in range(5)]
    return pa.table(
        {
            "p_partkey": _integers(keys),
            "p_name": pc.binary_join_element_wise(*words, " "),
            "p_mfgr": pa.array([f"Manufacturer#{maker}" for maker in makers.tolist()]),
            "p_brand": pa.array([f"Brand#{brand}" for brand in brands.tolist()]),
            "p_type": _pick("p_type", rows, _TYPES),
            "p_size": _integers(_draw("p_size", rows, 1, 50)),
            "p_container": _pick("p_container", rows, _CONTAINERS),
            "p_retailprice": _cents(_prices(keys)),
            "p_comment": _comments("part", rows, 23),
        }
    )


def _supplier(sizes: Sizes) -> pa.Table:
    rows = _numbers(sizes.suppliers)
    nations = _draw("s_nationkey", rows, 0, 24)
    comments = _comments("supplier", rows, 70).to_pylist()
    # Five of 10,000 have complaints, in any case one (q16).
    for place in range(0, len(comments), 2_000):
        comments[place] = f"{comments[place]} Customer slyly Complaints"
    return pa.table(
        {
            "s_suppkey": _integers(rows + 1),
            "s_name": _named("Supplier", rows + 1),
            "s_address": _comments("s_address", rows, 40),
            "s_nationkey": _integers(nations),
            "s_phone": _phones("s_phone", rows, nations),
            "s_acctbal": _cents(_draw("s_acctbal", rows, -99_999, 999_999)),
            "s_comment": pa.array(comments),
        }
    )


def _supplier_of(part: Integers, which: Integers, suppliers: int) -> Integers:
    """One of the four suppliers of a part, as TPC-H spreads them."""
    step = suppliers // 4 + (part - 1) // suppliers
    return (part + which * step) % suppliers + 1


def _partsupp(sizes: Sizes) -> pa.Table:
    rows = _numbers(sizes.parts * 4)
    part = rows // 4 + 1
    return pa.table(
        {
            "ps_partkey": _integers(part),
            "ps_suppkey": _integers(_supplier_of(part, rows % 4, sizes.suppliers)),
            "ps_availqty": _integers(_draw("ps_availqty", rows, 1, 9_999)),
            "ps_supplycost": _cents(_draw("ps_supplycost", rows, 100, 100_000)),
            "ps_comment": _comments("partsupp", rows, 120),
        }
    )


def _customer(sizes: Sizes) -> pa.Table:
    rows = _numbers(sizes.customers)
    nations = _draw("c_nationkey", rows, 0, 24)
    return pa.table(
        {
            "c_custkey": _integers(rows + 1),
            "c_name": _named("Customer", rows + 1),
            "c_address": _comments("c_address", rows, 40),
            "c_nationkey": _integers(nations),
            "c_phone": _phones("c_phone", rows, nations),
            "c_acctbal": _cents(_draw("c_acctbal", rows, -99_999, 999_999)),
            "c_mktsegment": _pick("c_mktsegment", rows, _SEGMENTS),
            "c_comment": _comments("customer", rows, 100),
        }
    )


def _sales(sizes: Sizes) -> tuple[pa.Table, pa.Table]:
    """lineitem and orders: an order's price and status follow from its lines."""
    orders = _numbers(sizes.customers * 10)
    keys = orders // 8 * 32 + orders % 8 + 1
    day = _FIRST_DAY + _draw("o_orderdate", orders, 0, _ORDER_DAYS - 1)
    counts = _draw("lines", orders, 1, 7)
    owner = np.repeat(orders, counts)
    rows = _numbers(len(owner))
    number = rows - np.repeat(np.cumsum(counts) - counts, counts) + 1
    part = _draw("l_partkey", rows, 1, sizes.parts)
    quantity = _draw("l_quantity", rows, 1, 50)
    price = quantity * _prices(part)
    discount, tax = _draw("l_discount", rows, 0, 10), _draw("l_tax", rows, 0, 8)
    shipped = day[owner] + _draw("l_shipdate", rows, 1, 121)
    received = shipped + _draw("l_receiptdate", rows, 1, 30)
    returned = np.where(_draw("l_returnflag", rows, 0, 1) == 0, "R", "A")
    is_open = shipped > _TODAY
    lines = pa.table(
        {
            "l_orderkey": pa.array(keys[owner]),
            "l_partkey": _integers(part),
            "l_suppkey": _integers(
                _supplier_of(part, _draw("l_suppkey", rows, 0, 3), sizes.suppliers)
            ),
            "l_linenumber": _integers(number),
            "l_quantity": _cents(quantity * 100),
            "l_extendedprice": _cents(price),
            "l_discount": _cents(discount),
            "l_tax": _cents(tax),
            "l_returnflag": pa.array(np.where(received <= _TODAY, returned, "N").tolist()),
            "l_linestatus": pa.array(np.where(is_open, "O", "F").tolist()),
            "l_shipdate": _days(shipped),
            "l_commitdate": _days(day[owner] + _draw("l_commitdate", rows, 30, 90)),
            "l_receiptdate": _days(received),
            "l_shipinstruct": _pick("l_shipinstruct", rows, _INSTRUCTIONS),
            "l_shipmode": _pick("l_shipmode", rows, _MODES),
            "l_comment": _comments("lineitem", rows, 44),
        }
    )
    charged = price * (100 - discount) * (100 + tax) // 10_000
    total = np.bincount(owner, weights=charged, minlength=len(orders)).astype(np.int64)
    still = np.bincount(owner, weights=is_open, minlength=len(orders)).astype(np.int64)
    return lines, _orders(
        sizes, orders, keys, day, total, np.where(still == 0, 0, still // counts + 1)
    )


def _orders(
    sizes: Sizes, rows: Integers, keys: Integers, day: Integers, total: Integers, open_: Integers
) -> pa.Table:
    # Every third customer has no order (G2).
    customer = _draw("o_custkey", rows, 0, sizes.customers // 3 * 2 - 1)
    clerks = _draw("o_clerk", rows, 1, max(sizes.suppliers // 10, 1))
    return pa.table(
        {
            "o_orderkey": pa.array(keys),
            "o_custkey": _integers(customer // 2 * 3 + customer % 2 + 1),
            "o_orderstatus": pa.array(["F", "P", "O"]).take(pa.array(open_)),
            "o_totalprice": _cents(total),
            "o_orderdate": _days(day),
            "o_orderpriority": _pick("o_orderpriority", rows, _PRIORITIES),
            "o_clerk": _named("Clerk", clerks),
            "o_shippriority": _integers(np.zeros(len(rows), dtype=np.int64)),
            "o_comment": _comments("orders", rows, 79),
        }
    )
