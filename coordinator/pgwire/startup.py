"""Parse the `options` start-up parameter, as `psql "options=-c name=value"` sends it.

    -c name=value   -cname=value   --name=value

Blanks separate; a backslash keeps the next character.
"""

from sql.errors import SqlError


def split_options(options: str) -> dict[str, str]:
    """The settings that the command line gives. Raises 42601 for what is no setting."""
    settings: dict[str, str] = {}
    words = iter(_words(options))
    for word in words:
        if word == "-c":
            assignment = next(words, "")
        elif word.startswith("--") or word.startswith("-c"):
            assignment = word[2:]
        else:
            raise SqlError("42601", f"invalid command-line argument for server process: {word}")
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            prefix = "--" if word.startswith("--") else "-c "
            raise SqlError("42601", f"{prefix}{assignment} requires a value")
        settings[name.replace("-", "_")] = value
    return settings


def _words(options: str) -> list[str]:
    words: list[str] = []
    word: list[str] | None = None
    characters = iter(options)
    for character in characters:
        if character.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        word.append(next(characters, "") if character == "\\" else character)
    if word is not None:
        words.append("".join(word))
    return words
