"""Transcripts: a story as a file, of commands and what happened.

    # why this matters
    command positional key=value key="two words"
    further input lines, if the command takes any
    ----
    what happened, up to the next empty line

Each block goes to a handler, which returns what happened. `REWRITE=1` writes the answers into the
file instead of comparing them: review the difference line by line.

INVARIANTS
  R1  blocks run in order; one handler sees the whole file, so that state carries over.
  R2  the file is compared as a whole, so a failure shows the story and not one line of it.
  R3  rewriting changes only what stands between `----` and the empty line.
"""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TypeAlias

_RULE = "----"


@dataclass(frozen=True, slots=True)
class Command:
    """One block's input: `name`, words, key=value pairs, further lines, and where it stands."""

    name: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    body: str
    position: str


Handler: TypeAlias = Callable[[Command], str]


def run_transcript(path: Path, handler: Handler) -> None:
    """Run every block of the file and compare; with REWRITE=1 set, write the answers instead."""
    story = path.read_text(encoding="utf-8")
    told = _tell(story, path.name, handler)
    if os.environ.get("REWRITE") == "1":
        path.write_text(told, encoding="utf-8")
        return
    if told != story:
        difference = unified_diff(story.splitlines(), told.splitlines(), "file", "now", lineterm="")
        raise AssertionError(
            "\n".join([f"{path} tells another story (REWRITE=1 rewrites it)", *difference])
        )


def _tell(story: str, name: str, handler: Handler) -> str:
    lines = story.split("\n")
    told: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            told.append(lines[at])
            at += 1
            continue
        rule = lines.index(_RULE, at)
        command = _parse(lines[at:rule], f"{name}:{at + 1}")
        told += lines[at : rule + 1]
        # No line of an answer may be empty: an empty line ends the answer.
        told += [line or "." for line in handler(command).splitlines()]
        at = rule + 1
        while at < len(lines) and lines[at]:
            at += 1
    return "\n".join(told)


def _parse(lines: list[str], position: str) -> Command:
    name, *rest = shlex.split(lines[0])
    pairs = [word.partition("=") for word in rest]
    return Command(
        name=name,
        words=tuple(word for word, equals, _ in pairs if not equals),
        options={key: value for key, equals, value in pairs if equals},
        body="\n".join(lines[1:]),
        position=position,
    )
