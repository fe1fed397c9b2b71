"""Hide passwords and tokens in what others than the client may see: logs, activity, statistics.

    create role ann password 'x'          ─▶  create role ann password <hidden>
    set app.api_token = 'x'               ─▶  set app.api_token = <hidden>
    postgresql://ann:x@host/db            ─▶  postgresql://ann:<hidden>@host/db
    host=h password=x                     ─▶  host=h password=<hidden>
    SCRAM-SHA-256$4096:salt$stored:server ─▶  SCRAM-SHA-256$<hidden>

INVARIANTS
  H1  in doubt more is hidden. A statement that gives a role its password loses all that follows:
      where a password ends is the parser's business, and texts that it refuses have passwords, too.
  H2  the time is linear in the text, whatever the text is; so the text may be anybody's.
  H3  hiding twice is hiding once.

Not here: values of parameters, which have no names. `log_parameter_max_length = 0` leaves them out.
"""

import re
from typing import Final

HIDDEN: Final = "<hidden>"

_STEPS: Final = tuple(
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in ("create|alter", "role|user|group", "password")
)
"""Words of CREATE and ALTER ROLE .. PASSWORD, and of USER MAPPING .. OPTIONS (password ..)."""

_NAMES: Final = (
    r"password|passwd|pwd|passphrase|secret|token|credentials?"
    r"|(?:api|access|secret|private)[_-]?key"
)
_NAME: Final = re.compile(rf"(?:{_NAMES})\b\\?[\"'\]]?", re.IGNORECASE)
"""The end of a secret's name: `sslpassword`, `app.api_token`, `"password"`."""

_BEFORE_VALUE: Final = re.compile(r"\s{0,9}(?:=>|=|:(?!:)|,|\bto\b)?\s{0,9}", re.IGNORECASE)
_QUOTED: Final = re.compile(
    r"""(?:[eu]&?)?
    (?: ''[^']+'' | '(?:[^']|'')*'? | "[^"]*"? | \\['"].* )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""A literal, one inside of a literal, one without its end. Behind an escaped quote all is hidden:
where that ends depends on how often it was escaped (H1).
"""
_DOLLARS: Final = re.compile(r"\$(?:[^\W\d]\w{0,62})?\$")
_BARE: Final = re.compile(r"[^\s&;,()'\"]+")
_CALL_PARTS: Final = re.compile(r"'(?:[^']|'')*'?|[()]")
_BEARER: Final = re.compile(r"(\bbearer\s{1,9})[\w.~+/=-]{16,}", re.IGNORECASE)
_URL: Final = re.compile(r"://[^\s/?#@:'\"]{0,256}:(?!<hidden>)")
_URL_PASSWORD: Final = re.compile(r"[^\s/?#'\"]+")
_VERIFIER: Final = re.compile(r"(SCRAM-SHA-256\$)[0-9]+:[^\s'\"]*")
_IS_SUSPECT: Final = re.compile(rf"{_NAMES}|://|SCRAM-SHA-256|bearer", re.IGNORECASE)


def without_secrets(text: str, *, is_cut: bool = False) -> str:
    """The text with `<hidden>` in place of what may be a secret (H1). `is_cut`: its end is missing,
    so that the `@` behind a password may be, too.
    """
    if _IS_SUSPECT.search(text) is None:
        return text
    text = _without_role_password(text)
    text = _without_url_passwords(text, is_cut=is_cut)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _VERIFIER.sub(rf"\1{HIDDEN}", text)
    return _without_named_values(text)


def without_secrets_of(message: str, statement: str, *, is_cut: bool = False) -> str:
    """What an error says of a statement, without what is hidden in the statement itself. `is_cut`:
    the end of one of them is missing, so that something may be hidden there.
    """
    shown = without_secrets(statement, is_cut=is_cut)
    message = without_secrets(message, is_cut=is_cut)
    first, last = message.find('"'), message.rfind('"')
    if is_cut and last == first:
        last = len(message)
    if first < 0 or last <= first or (shown == statement and not is_cut):
        return message
    if message[first + 1 : last] in shown:
        return message
    return f"{message[: first + 1]}{HIDDEN}{message[last:]}"


def _without_role_password(text: str) -> str:
    end = 0
    # One word after the other: a pattern of all three would look again from each first word (H2).
    for step in _STEPS:
        found = step.search(text, end)
        if found is None:
            return text
        end = found.end()
    return f"{text[:end]} {HIDDEN}"


def _without_url_passwords(text: str, *, is_cut: bool) -> str:
    pieces: list[str] = []
    end = 0
    while (found := _URL.search(text, end)) is not None:
        password = _URL_PASSWORD.match(text, found.end())
        at = -1 if password is None else password[0].rfind("@")
        if password is not None and is_cut and password.end() == len(text):
            at = len(password[0])
        pieces.append(text[end : found.end()])
        end = found.end()
        if at >= 0:
            pieces.append(HIDDEN)
            end += at
    return "".join((*pieces, text[end:]))


def _without_named_values(text: str) -> str:
    pieces: list[str] = []
    end = 0
    while (found := _NAME.search(text, end)) is not None:
        before = _BEFORE_VALUE.match(text, found.end())
        assert before is not None, "it takes nothing, too"
        value_end = _value_end(text, before.end(), sign=before[0].strip())
        pieces.append(text[end : before.end()])
        end = before.end()
        if value_end > end:
            pieces.append(HIDDEN)
            end = value_end
    return "".join((*pieces, text[end:]))


def _value_end(text: str, start: int, *, sign: str) -> int:
    """Where the value that begins here, behind this sign, ends; `start` if there is none: what
    stands here is a name, or a parameter.
    """
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        return quoted.end()
    dollars = _DOLLARS.match(text, start)
    if dollars is not None:
        close = text.find(dollars[0], dollars.end())
        return len(text) if close < 0 else close + len(dollars[0])
    if sign in ("", ",") or text.startswith(("$", HIDDEN), start):
        return start
    # Without quotes, behind `=`, `:` or TO: part of a connection string, a number, or a call.
    bare = _BARE.match(text, start)
    if bare is None:
        return start
    return _call_end(text, bare.end()) if text.startswith("(", bare.end()) else bare.end()


def _call_end(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one at `start`; the end of the text without it."""
    depth = 0
    for part in _CALL_PARTS.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth == 0:
            return part.end()
    return len(text)
