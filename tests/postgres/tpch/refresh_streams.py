"""Changes of TPC-H's tables: refresh streams, and updates that the benchmark does not have.

RF1 brings 0.1 % of new orders with their lines, RF2 takes as many old ones. New keys lie in the
gaps that `generate.py` leaves, as in TPC-H: of 32 keys 8 are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.postgres.tpch.generate import Sizes

_KEYS_OF_BLOCK = 32
_USED_OF_BLOCK = 8


@dataclass(frozen=True, slots=True)
class Refresh:
    """Statements of one transaction."""

    name: str
    statements: Sequence[str]


def insertions(scale: float, number: int) -> Refresh:
    """RF1: orders beside those of the block of this number, on other days and of others."""
    sizes, (first, end) = Sizes.of(scale), _block(scale, number)
    return Refresh(
        f"RF1 {number}",
        (
            "insert into orders select o_orderkey + 8,"
            f" o_custkey * 7 % {sizes.customers} + 1, o_orderstatus, o_totalprice + 1,"
            " o_orderdate + 37, o_orderpriority, o_clerk, o_shippriority, o_comment"
            f" from orders where o_orderkey > {first} and o_orderkey <= {end}",
            "insert into lineitem select l_orderkey + 8, l_partkey, l_suppkey, l_linenumber,"
            " 51 - l_quantity, l_extendedprice + 1, l_discount, l_tax, l_returnflag, l_linestatus,"
            " l_shipdate + 37, l_commitdate + 37, l_receiptdate + 37, l_shipinstruct, l_shipmode,"
            f" l_comment from lineitem where l_orderkey > {first} and l_orderkey <= {end}",
        ),
    )


def deletions(scale: float, number: int) -> Refresh:
    """RF2: the orders of that block that were there from the beginning."""
    first, end = _block(scale, number)
    condition = "{0} > %d and {0} <= %d and {0} %% %d between 1 and %d"
    condition %= (first, end, _KEYS_OF_BLOCK, _USED_OF_BLOCK)
    return Refresh(
        f"RF2 {number}",
        (
            f"delete from lineitem where {condition.format('l_orderkey')}",
            f"delete from orders where {condition.format('o_orderkey')}",
        ),
    )


UPDATES = (
    Refresh(
        "updates of sales",
        (
            "update lineitem set l_quantity = 51 - l_quantity,"
            " l_extendedprice = 20 * l_extendedprice where l_partkey % 499 = 3",
            "update lineitem set l_discount = null where l_partkey % 499 = 4",
            "update lineitem set l_receiptdate = l_receiptdate + 40, l_tax = 0.01"
            " where l_suppkey % 501 = 5",
            "update orders set o_custkey = o_custkey + 1, o_orderpriority = '1-URGENT',"
            " o_comment = 'special requests' where o_orderkey % 499 = 7",
        ),
    ),
    Refresh(
        "updates of the others",
        (
            "update customer set c_acctbal = c_acctbal + 500, c_nationkey = (c_nationkey + 1) % 25"
            " where c_custkey % 97 = 3",
            "update customer set c_acctbal = null where c_custkey % 97 = 4",
            "update supplier set s_nationkey = (s_nationkey + 1) % 25 where s_suppkey % 31 = 2",
            "update partsupp set ps_supplycost = ps_supplycost / 2 where ps_partkey % 499 = 5",
            "update part set p_name = 'forest green', p_type = 'PROMO BRASS',"
            " p_brand = 'Brand#23', p_container = 'MED BOX', p_size = 15"
            " where p_partkey % 499 = 7",
            "update part set p_brand = 'Brand#12', p_container = 'SM BOX', p_size = 3"
            " where p_partkey % 103 = 9",
            "update partsupp set ps_availqty = 9999, ps_supplycost = 999999 where ps_partkey <= 50"
            " and ps_suppkey in (select s_suppkey from supplier join nation"
            " on s_nationkey = n_nationkey where n_name = 'GERMANY')",
            "update nation set n_name = 'ATLANTIS' where n_name = 'KENYA'",
        ),
    ),
    Refresh("a table without its rows", ("delete from region where r_name = 'ASIA'",)),
)


def streams(scale: float) -> Sequence[Refresh]:
    """All of them, in the order of a run; each is followed by a look at the views."""
    first, second, third = UPDATES
    return (
        insertions(scale, 0),
        deletions(scale, 0),
        first,
        insertions(scale, 1),
        second,
        deletions(scale, 1),
        third,
    )


def short_streams(scale: float) -> Sequence[Refresh]:
    """One of each kind."""
    return (insertions(scale, 0), deletions(scale, 0), *UPDATES[:2])


def _block(scale: float, number: int) -> tuple[int, int]:
    """The keys of 0.1 % of the orders, as a half-open interval from below."""
    width = max(int(scale * 1_500), 8) // _USED_OF_BLOCK * _KEYS_OF_BLOCK
    return number * width, (number + 1) * width
