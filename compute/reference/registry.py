"""The registry of implementations: which Python function computes which row of the function table.

    @implements("reverse(text)", ..)   a function of the values of the arguments
    @makes("row(any)", ..)             a maker: it looks at the types of a call and returns that
                                       function
    @folds("any_value(anyelement)")    a maker for an aggregate: its function takes a group's rows
              │
              └─▶ Registry: one dictionary, id of the row ─▶ maker

Modules register at the definition, when they are imported. Readers of functions come through
`function_table.py`, which imports all modules that register some; those of aggregates come through
`aggregates.py`. The registries of window functions and of sets are beside their only readers, in
`windows.py` and `set_returning.py`.

INVARIANTS
  N1  an id is registered once, and it is the id of a row of the function table of one of the
      registry's kinds. A registry looks the rows up when it is first read, so that importing a
      module does not load the function table.
  N2  the result of an `implements` function is fitted to the type of the call where the row's
      result is numeric. Makers fit by themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar

from compute.reference.decimals import fitted
from sql.errors import not_supported
from sql.functions import table
from sql.functions.table import FunctionKind
from sql.plan.nodes import Aggregate, Call
from sql.types.sql_type import Value

Function: TypeAlias = Callable[..., Value]
Maker: TypeAlias = Callable[[Call], Function]
Rows: TypeAlias = Sequence[tuple[Value, ...]]
"""The arguments of each row of the group that an aggregate sees."""
AggregateFold: TypeAlias = Callable[[Rows], Value]
FolderMaker: TypeAlias = Callable[[Aggregate], AggregateFold]

_M = TypeVar("_M")
_AnyFunction = TypeVar("_AnyFunction", bound=Function)


class Registry(Generic[_M]):
    """Implementations of the rows of some kinds, by id."""

    def __init__(self, *kinds: FunctionKind) -> None:
        self._kinds = kinds
        self._registered: dict[str, Callable[[table.Function], _M]] = {}
        self._makers: Mapping[str, _M] | None = None

    def register(self, of_row: Callable[[table.Function], _M], *ids: str) -> None:
        """The implementation of each of these rows is what `of_row` makes of it (N1)."""
        assert ids, "N1: an implementation of no row"
        assert self._makers is None, "N1: registered after the first reading"
        for id_ in ids:
            assert id_ not in self._registered, f"N1: two implementations of {id_}"
            self._registered[id_] = of_row

    def maker(self, *ids: str) -> Callable[[_M], _M]:
        """The decorator of an implementation that is the same for all of these rows."""

        def registered(maker: _M) -> _M:
            self.register(lambda _row: maker, *ids)
            return maker

        return registered

    def makers(self) -> Mapping[str, _M]:
        """All implementations by id (N1)."""
        if self._makers is None:
            rows = {row.id: row for row in table.all_functions() if row.kind in self._kinds}
            for id_ in self._registered:
                assert id_ in rows, f"N1: no row of the function table is {id_}"
            made = {id_: of_row(rows[id_]) for id_, of_row in self._registered.items()}
            self._makers = MappingProxyType(made)
        return self._makers


FUNCTIONS: Final = Registry[Maker](FunctionKind.FUNCTION, FunctionKind.OPERATOR, FunctionKind.CAST)
"""Of functions, operators and casts."""
makes: Final = FUNCTIONS.maker
AGGREGATES: Final = Registry[FolderMaker](FunctionKind.AGGREGATE)
"""Of aggregates."""
folds: Final = AGGREGATES.maker


def implements(*ids: str) -> Callable[[_AnyFunction], _AnyFunction]:
    """Registers a function of values, which does not look at types (N2)."""

    def register(function: _AnyFunction) -> _AnyFunction:
        def of_row(row: table.Function) -> Maker:
            return (
                numeric_result(function) if row.result == "numeric" else type_independent(function)
            )

        FUNCTIONS.register(of_row, *ids)
        return function

    return register


def type_independent(function: Function) -> Maker:
    """A function that does not look at types."""
    return lambda _call: function


def numeric_result(function: Function) -> Maker:
    """The function with its result fitted to the type of the call."""
    return lambda call: fitted(function, call.type)


def element_function(call: Call) -> Function:
    """Computes a call whose arguments are given. Raises 0A000."""
    maker = FUNCTIONS.makers().get(call.function.id)
    if maker is None:
        raise not_supported(f"{call.function.kind.value} {call.function.id}")
    return maker(call)
