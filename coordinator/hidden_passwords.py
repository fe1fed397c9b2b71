"""Hide passwords in the text of statements that others may see."""

import re
from typing import Final

_STEPS: Final = tuple(
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in ("create|alter", "role|user|group", "password")
)


def without_passwords(text: str) -> str:
    """The text up to what may be the password of CREATE or ALTER ROLE, and then `<hidden>`.

    What follows is left out: where a password ends is the parser's business, and a text that the
    parser refuses has passwords, too. Other texts with these three words lose their end as well.
    """
    end = 0
    # One word after the other: a pattern of all three would look again from each first word.
    for step in _STEPS:
        found = step.search(text, end)
        if found is None:
            return text
        end = found.end()
    return f"{text[:end]} <hidden>"
