"""jsonpath as text: the one that PostgreSQL shows for a path (printJsonPathItem).

INVARIANTS
  J2  a value of type jsonpath is its canonical text: `text_of(parse_path(text)) == text`.

Not here: reading it (`json_path.py`).
"""

from decimal import Decimal

from sql.json_path import LAST, PRIORITY, Path, Step
from sql.json_text import number_text, quoted


def text_of(path: Path) -> str:
    """The canonical text (J2)."""
    return ("strict " if path.strict else "") + _text(path.root, in_key=False, brackets=True)


def _text(step: Step, *, in_key: bool, brackets: bool) -> str:
    text = _own_text(step, in_key=in_key, brackets=brackets)
    if step.next is not None:
        text += _text(step.next, in_key=True, brackets=True)
    return text


def _argument(step: Step, number: int) -> str:
    arg = step.args[number]
    assert arg is not None, "operators have all of their arguments"
    mine = PRIORITY.get("==" if step.kind == "like_regex" else step.kind, 6)
    theirs = 6 if arg.next is not None else PRIORITY.get(arg.kind, 6)
    return _text(arg, in_key=False, brackets=theirs <= mine)


def _inside(step: Step) -> str:
    arg = step.args[0]
    assert arg is not None, "it has an argument"
    return _text(arg, in_key=False, brackets=False)


def _own_text(step: Step, *, in_key: bool, brackets: bool) -> str:
    dot = "." if in_key else ""
    match step.kind, step.value:
        case "null" | "last", _:
            return step.kind
        case "bool", value:
            return "true" if value else "false"
        case "number", Decimal() as number:
            return number_text(number)
        case "string", str() as text:
            return quoted(text)
        case "variable", str() as name:
            return f"${quoted(name)}"
        case "root", _:
            return "$"
        case "current", _:
            return "@"
        case "key", str() as name:
            return dot + quoted(name)
        case "any_key", _:
            return f"{dot}*"
        case "any", (int() as first, int() as last):
            return dot + _levels_text(first, last)
        case "elements", _:
            return "[*]"
        case "method", name:
            given = [_text(arg, in_key=False, brackets=False) for arg in step.args if arg]
            return f".{name}({','.join(given)})"
        case "index", _:
            return f"[{','.join(_bounds(step))}]"
        case "filter", _:
            return f"?({_inside(step)})"
        case "!", _:
            return f"!({_inside(step)})"
        case "is unknown", _:
            return f"({_inside(step)}) is unknown"
        case "exists", _:
            return f"exists ({_inside(step)})"
        case _:
            text = _operator_text(step)
            return f"({text})" if brackets else text


def _operator_text(step: Step) -> str:
    match step.kind, step.value:
        case "+x" | "-x", _:
            return step.kind[0] + _argument(step, 0)
        case "like_regex", (str() as pattern, str() as flags):
            flag = f' flag "{flags}"' if flags else ""
            return f"{_argument(step, 0)} like_regex {quoted(pattern)}{flag}"
        case _:
            return f"{_argument(step, 0)} {step.kind} {_argument(step, 1)}"


def _levels_text(first: int, last: int) -> str:
    if (first, last) == (0, LAST):
        return "**"
    shown = ["last" if level == LAST else str(level) for level in (first, last)]
    return f"**{{{shown[0]}}}" if first == last else f"**{{{shown[0]} to {shown[1]}}}"


def _bounds(step: Step) -> list[str]:
    shown: list[str] = []
    for first, last in zip(step.args[::2], step.args[1::2], strict=True):
        assert first is not None, "a subscript begins somewhere"
        text = _text(first, in_key=False, brackets=False)
        if last is not None:
            text += f" to {_text(last, in_key=False, brackets=False)}"
        shown.append(text)
    return shown
