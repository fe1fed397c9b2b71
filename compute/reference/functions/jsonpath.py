"""Execute a jsonpath over a jsonb tree, lazily and in the order of jsonpath_exec.c.

INVARIANTS
  P1  items come as they are found. In lax mode a caller that needs only the first one looks no
      further, so an error behind it does not occur, as in PostgreSQL.
  P2  `silent` and predicates swallow a `PathFailure` and no other error.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Final

from compute.reference.decimals import EXACT
from compute.reference.functions.json import json_typeof
from compute.reference.functions.jsonpath_methods import PathFailure, apply_item_method
from compute.reference.functions.regexp import regexp_like
from compute.reference.registry import implements
from sql.errors import SqlError
from sql.types.division_scale import DIGITS_PER_GROUP, SIGNIFICANT_DIGITS, estimated_weight
from sql.types.json.parser import JsonTree, canonical_jsonb, parse_json_tree
from sql.types.json.path_parser import (
    LAST_LEVEL,
    PATH_COMPARISONS,
    JsonPath,
    PathStep,
    parse_jsonpath,
    regex_option_letters,
)
from sql.types.json.path_printer import canonical_path_text
from sql.types.json.to_json import is_json_array
from sql.types.sql_type import Value

_INT4_MAX: Final = 2**31 - 1
_DECIMALS_MAX: Final = 1000
"""NUMERIC_MAX_DISPLAY_SCALE."""


class _Run:
    """One path over one document."""

    def __init__(
        self, path: JsonPath, document: JsonTree, variables: Mapping[str, JsonTree]
    ) -> None:
        self._path = path
        self._document = document
        self._variables = variables
        self._current: JsonTree = document
        self._size = 0
        self._ignores = not path.strict

    def items(self) -> Iterator[JsonTree]:
        """Everything that the path finds (P1)."""
        return self._item(self._path.root, self._document, unwrap=not self._path.strict)

    def exists(self) -> bool:
        """Whether it finds anything. A failure comes as for `items`."""
        return self._finds(self._path.root, self._document)

    # --- items ---------------------------------------------------------------------------------

    def _item(self, step: PathStep, value: JsonTree, *, unwrap: bool) -> Iterator[JsonTree]:
        if unwrap and is_json_array(value) and _is_element_wise(step):
            for element in value:
                yield from self._item(step, element, unwrap=False)
            return
        match step.kind:
            case "filter":
                if self._truth_at(_only(step), value) is True:
                    yield from self._next(step, value)
            case "any":
                yield from self._levels(step, value)
            case "index":
                yield from self._index(step, value)
            case "+x" | "-x":
                yield from self._signed(step, value)
            case "+" | "-" | "*" | "/" | "%":
                yield from self._next(step, self._computed(step, value))
            case "key" | "any_key" | "elements" | "method":
                yield from self._accessed(step, value)
            case _:
                yield from self._next(step, self._primary(step, value))

    def _next(self, step: PathStep, value: JsonTree) -> Iterator[JsonTree]:
        if step.next is None:
            yield value
        else:
            yield from self._item(step.next, value, unwrap=not self._path.strict)

    def _primary(self, step: PathStep, value: JsonTree) -> JsonTree:
        match step.kind, step.value:
            case ("null", _):
                return None
            case (("bool" | "number" | "string"), (bool() | Decimal() | str()) as literal):
                return literal
            case "variable", str() as name:
                if name not in self._variables:
                    raise SqlError("42704", f'could not find jsonpath variable "{name}"')
                return self._variables[name]
            case "root", _:
                return self._document
            case "current", _:
                return self._current
            case "last", _:
                return Decimal(self._size - 1)
            case _:
                return self._truth(step, value)

    def _accessed(self, step: PathStep, value: JsonTree) -> Iterator[JsonTree]:
        match step.kind, step.value:
            case "key", str() as key:
                if isinstance(value, Mapping):
                    if key in value:
                        yield from self._next(step, value[key])
                    elif not self._ignores:
                        message = f'JSON object does not contain key "{key}"'
                        raise PathFailure("2203A", message)
                elif not self._ignores:
                    message = "jsonpath member accessor can only be applied to an object"
                    raise PathFailure("2203A", message)
            case "any_key", _:
                if isinstance(value, Mapping):
                    yield from self._below(step, value, 1, 1, 1, ignores=False)
                elif not self._ignores:
                    message = "jsonpath wildcard member accessor can only be applied to an object"
                    raise PathFailure("2203C", message)
            case "elements", _:
                if is_json_array(value):
                    yield from self._below(step, value, 1, 1, 1, ignores=False)
                elif not self._path.strict:
                    yield from self._next(step, value)
                elif not self._ignores:
                    message = "jsonpath wildcard array accessor can only be applied to an array"
                    raise PathFailure("22039", message)
            case _:
                strict = self._path.strict and not self._ignores
                yield from self._next(step, apply_item_method(step, value, strict=strict))

    def _levels(self, step: PathStep, value: JsonTree) -> Iterator[JsonTree]:
        """`.**`: the value and everything below it, as far as the levels go."""
        assert isinstance(step.value, tuple), "levels are two"
        first, last = int(step.value[0]), int(step.value[1])
        if first == 0:
            before, self._ignores = self._ignores, True
            try:
                yield from self._next(step, value)
            finally:
                self._ignores = before
        if last != 0 and (isinstance(value, Mapping) or is_json_array(value)):
            yield from self._below(step, value, 1, first, last, ignores=True)

    def _below(
        self, step: PathStep, value: JsonTree, level: int, first: int, last: int, *, ignores: bool
    ) -> Iterator[JsonTree]:
        children = _children(value)
        for child in children:
            inner = isinstance(child, Mapping) or is_json_array(child)
            leaf = first == LAST_LEVEL and last == LAST_LEVEL and not inner
            if (first != LAST_LEVEL and level >= first) or leaf:
                before, self._ignores = self._ignores, self._ignores or ignores
                try:
                    yield from self._next(step, child)
                finally:
                    self._ignores = before
            if inner and (last == LAST_LEVEL or level < last):
                yield from self._below(step, child, level + 1, first, last, ignores=ignores)

    def _index(self, step: PathStep, value: JsonTree) -> Iterator[JsonTree]:
        single = not is_json_array(value)
        if single and self._path.strict:
            if not self._ignores:
                message = "jsonpath array accessor can only be applied to an array"
                raise PathFailure("22039", message)
            return
        elements: Sequence[JsonTree] = value if is_json_array(value) else [value]
        before, self._size = self._size, len(elements)
        try:
            for low, high in zip(step.args[::2], step.args[1::2], strict=True):
                assert low is not None, "a subscript begins somewhere"
                start = self._subscript(low, value)
                end = start if high is None else self._subscript(high, value)
                outside = start < 0 or start > end or end >= len(elements)
                if outside and not self._ignores:
                    raise PathFailure("22033", "jsonpath array subscript is out of bounds")
                for place in range(max(start, 0), min(end, len(elements) - 1) + 1):
                    yield from self._next(step, elements[place])
                    self._size = len(elements)
        finally:
            self._size = before

    def _subscript(self, step: PathStep, value: JsonTree) -> int:
        found = list(self._item(step, value, unwrap=not self._path.strict))
        if len(found) != 1 or not isinstance(found[0], Decimal):
            message = "jsonpath array subscript is not a single numeric value"
            raise PathFailure("22033", message)
        place = int(found[0].to_integral_value(ROUND_DOWN))
        if not -_INT4_MAX - 1 <= place <= _INT4_MAX:
            raise PathFailure("22033", "jsonpath array subscript is out of integer range")
        return place

    # --- numbers -------------------------------------------------------------------------------

    def _unwrapped(self, step: PathStep, value: JsonTree) -> Iterator[JsonTree]:
        """The items, in lax mode with arrays as what they hold."""
        for item in self._item(step, value, unwrap=not self._path.strict):
            if is_json_array(item) and not self._path.strict:
                yield from item
            else:
                yield item

    def _computed(self, step: PathStep, value: JsonTree) -> JsonTree:
        operands: list[Decimal] = []
        sides = [list(self._unwrapped(arg, value)) for arg in step.args if arg is not None]
        for side, found in zip(("left", "right"), sides, strict=True):
            if len(found) != 1 or not isinstance(found[0], Decimal):
                message = (
                    f"{side} operand of jsonpath operator {step.kind} is not a single numeric value"
                )
                raise PathFailure("22038", message)
            operands.append(found[0])
        left, right = operands
        match step.kind:
            case "+":
                return EXACT.add(left, right)
            case "-":
                return EXACT.subtract(left, right)
            case "*":
                return EXACT.multiply(left, right)
            case _ if not right:
                raise PathFailure("22012", "division by zero")
            case "%":
                return EXACT.remainder(left, right)
            case _:
                return _quotient(left, right)

    def _signed(self, step: PathStep, value: JsonTree) -> Iterator[JsonTree]:
        # The operator itself would round to the context's 28 digits.
        negated = step.kind == "-x"
        # All of its operand comes before the first sign, also where one item is enough.
        for item in list(self._unwrapped(_only(step), value)):
            if not isinstance(item, Decimal):
                message = (
                    f"operand of unary jsonpath operator {step.kind[0]} is not a numeric value"
                )
                raise PathFailure("2203B", message)
            yield from self._next(step, item.copy_negate() if negated and item else item)

    # --- predicates: true, false or None, which is unknown -------------------------------------

    def _truth_at(self, step: PathStep, value: JsonTree) -> bool | None:
        before, self._current = self._current, value
        try:
            return self._truth(step, value)
        finally:
            self._current = before

    def _truth(self, step: PathStep, value: JsonTree) -> bool | None:
        match step.kind:
            case "&&" | "||":
                left, right = (arg for arg in step.args if arg is not None)
                decided = step.kind == "||"
                first = self._truth(left, value)
                if first is decided:
                    return decided
                second = self._truth(right, value)
                return first if second is (not decided) else second
            case "!":
                found = self._truth(_only(step), value)
                return None if found is None else not found
            case "is unknown":
                return self._truth(_only(step), value) is None
            case "exists":
                return self._exists(_only(step), value)
            case _:
                return self._predicate(step, value)

    def _exists(self, step: PathStep, value: JsonTree) -> bool | None:
        try:
            return self._finds(step, value)
        except PathFailure:
            return None

    def _finds(self, step: PathStep, value: JsonTree) -> bool:
        """In lax mode the first item is enough, and one number of those that would get a sign
        (executeUnaryArithmExpr without a list).
        """
        items = self._item(step, value, unwrap=not self._path.strict)
        if self._path.strict:
            return bool(list(items))
        if step.next is None and step.kind in ("+x", "-x"):
            found = list(self._unwrapped(_only(step), value))
            return any(isinstance(item, Decimal) for item in found)
        return next(items, items) is not items

    def _predicate(self, step: PathStep, value: JsonTree) -> bool | None:
        """Whether it holds for a pair of items, one of each side (executePredicate)."""
        left, *others = (arg for arg in step.args if arg is not None)
        rights: Sequence[JsonTree] = [None]
        try:
            lefts = list(self._unwrapped(left, value))
            if others and step.kind in PATH_COMPARISONS:
                rights = list(self._unwrapped(others[0], value))
            elif others:
                rights = list(self._item(others[0], value, unwrap=not self._path.strict))
        except PathFailure:
            return None
        unknown = found = False
        for a in lefts:
            for b in rights:
                truth = _holds(step, a, b)
                if truth is None:
                    if self._path.strict:
                        return None
                    unknown = True
                elif truth:
                    if not self._path.strict:
                        return True
                    found = True
        if found:
            return True
        return None if unknown else False


def _is_element_wise(step: PathStep) -> bool:
    """Whether in lax mode a step is applied to the elements of an array instead."""
    if step.kind == "method":
        return step.value not in ("type", "size")
    return step.kind in ("key", "any_key", "filter")


def _only(step: PathStep) -> PathStep:
    (arg,) = step.args
    assert arg is not None, "it has an argument"
    return arg


def _children(value: JsonTree) -> Sequence[JsonTree]:
    if isinstance(value, Mapping):
        return [value[key] for key in sorted(value, key=lambda k: (len(k.encode()), k.encode()))]
    return value if is_json_array(value) else ()


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    """With as many decimals as numeric has (select_div_scale)."""

    def scale(number: Decimal) -> int:
        return max(0, -int(number.as_tuple().exponent))

    significant = SIGNIFICANT_DIGITS - DIGITS_PER_GROUP * estimated_weight(left, right)
    decimals = min(_DECIMALS_MAX, max(significant, scale(left), scale(right), 0))
    return EXACT.divide(left, right).quantize(Decimal(1).scaleb(-decimals), context=EXACT)


def _holds(step: PathStep, a: JsonTree, b: JsonTree) -> bool | None:
    if step.kind == "starts with":
        if not isinstance(a, str) or not isinstance(b, str):
            return None
        return a.startswith(b)
    if step.kind == "like_regex":
        assert isinstance(step.value, tuple), "a pattern and its flags"
        pattern, flags = (str(part) for part in step.value)
        return regexp_like(a, pattern, regex_option_letters(flags)) if isinstance(a, str) else None
    return _compared(step.kind, a, b)


def _compared(sign: str, a: JsonTree, b: JsonTree) -> bool | None:
    if json_typeof(a) != json_typeof(b):
        return sign == "!=" if a is None or b is None else None
    if isinstance(a, Mapping) or is_json_array(a):
        return None
    order = 0
    if isinstance(a, str) and isinstance(b, str):
        order = (a.encode() > b.encode()) - (a.encode() < b.encode())
    elif isinstance(a, bool | Decimal) and isinstance(b, bool | Decimal):
        order = (a > b) - (a < b)
    return {
        "==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0,
        ">=": order >= 0,
    }[sign]  # fmt: skip


# --- functions ---------------------------------------------------------------------------------


def _variables(text: str) -> Mapping[str, JsonTree]:
    known = parse_json_tree(text)
    if not isinstance(known, Mapping):
        detail = 'Jsonpath parameters should be encoded as key-value pairs of "vars" object.'
        raise SqlError("22023", '"vars" argument is not an object', detail=detail)
    return known


def _items(text: str, path: str, variables: str, silent: bool) -> Iterator[JsonTree]:
    try:
        yield from _Run(parse_jsonpath(path), parse_json_tree(text), _variables(variables)).items()
    except PathFailure as failure:
        if not silent:
            raise failure.error from None


def path_items(text: str, path: str, variables: str) -> Iterator[JsonTree]:
    """The items of a path; its errors are raised."""
    return _items(text, path, variables, False)


@implements(
    "jsonb_path_exists(jsonb,jsonpath)",
    "jsonb_path_exists(jsonb,jsonpath,jsonb)",
    "jsonb_path_exists(jsonb,jsonpath,jsonb,bool)",
)
def path_exists(text: str, path: str, variables: str = "{}", silent: bool = False) -> Value:
    """jsonb_path_exists(): NULL for an error that is swallowed."""
    known = _variables(variables)
    try:
        return _Run(parse_jsonpath(path), parse_json_tree(text), known).exists()
    except PathFailure as failure:
        error = failure.error
    except SqlError as raised:
        error = raised
    if silent and error.sqlstate in SUPPRESSED_SQLSTATES:
        return None
    raise error


SUPPRESSED_SQLSTATES: Final = frozenset(
    {"2203A", "2203B", "2203C", "22012", "22023", "22033", "22036", "22038", "22039"}
)


@implements(
    "jsonb_path_match(jsonb,jsonpath)",
    "jsonb_path_match(jsonb,jsonpath,jsonb)",
    "jsonb_path_match(jsonb,jsonpath,jsonb,bool)",
)
def path_match(text: str, path: str, variables: str = "{}", silent: bool = False) -> Value:
    """jsonb_path_match(): the only boolean that the path finds."""
    found = list(_items(text, path, variables, silent))
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if not silent:
        raise SqlError("22038", "single boolean result is expected")
    return None


@implements(
    "meridian_path_query(jsonb,jsonpath)",
    "meridian_path_query(jsonb,jsonpath,jsonb)",
    "meridian_path_query(jsonb,jsonpath,jsonb,bool)",
)
def path_query(text: str, path: str, variables: str = "{}", silent: bool = False) -> Value:
    """jsonb_path_query: the items, as an array."""
    return tuple([canonical_jsonb(item) for item in _items(text, path, variables, silent)])


@implements(
    "jsonb_path_query_array(jsonb,jsonpath)",
    "jsonb_path_query_array(jsonb,jsonpath,jsonb)",
    "jsonb_path_query_array(jsonb,jsonpath,jsonb,bool)",
)
def path_query_array(text: str, path: str, variables: str = "{}", silent: bool = False) -> Value:
    """jsonb_path_query_array."""
    return canonical_jsonb(list(_items(text, path, variables, silent)))


@implements(
    "jsonb_path_query_first(jsonb,jsonpath)",
    "jsonb_path_query_first(jsonb,jsonpath,jsonb)",
    "jsonb_path_query_first(jsonb,jsonpath,jsonb,bool)",
)
def path_query_first(text: str, path: str, variables: str = "{}", silent: bool = False) -> Value:
    """jsonb_path_query_first(); it evaluates all items."""
    found = list(_items(text, path, variables, silent))
    return canonical_jsonb(found[0]) if found else None


implements("jsonb @? jsonpath")(lambda text, path: path_exists(text, path, "{}", True))
implements("jsonb @@ jsonpath")(lambda text, path: path_match(text, path, "{}", True))
implements(*[f"{text}::jsonpath" for text in ("text", "varchar", "bpchar", "name")])(
    lambda text: canonical_path_text(parse_jsonpath(text))
)
