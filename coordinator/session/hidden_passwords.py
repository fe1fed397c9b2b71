"""Hide passwords in the text of statements that others may see."""

import re
from typing import Final

_ROLE: Final = re.compile(r"\b(?:create|alter)\b.*?\b(?:role|user|group)\b", re.I | re.S)
_PASSWORD: Final = re.compile(r"\bpassword\b", re.I)


def without_passwords(text: str) -> str:
    """The text up to the first password of CREATE or ALTER ROLE, which is shown as `<hidden>`.

    What follows a password is left out: where it ends is the parser's business, and a text that the
    parser refuses has passwords, too.
    """
    role = _ROLE.search(text)
    if role is None:
        return text
    password = _PASSWORD.search(text, role.end())
    return text if password is None else f"{text[: password.end()]} <hidden>"
