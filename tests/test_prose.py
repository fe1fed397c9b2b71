"""The pages as people read them: line length, sentences, sizes of pages, links, names of files.

    text ─▶ blocks (paragraphs, list items) ─▶ sentences ─▶ words
                     └ without code blocks, tables, headings

The small functions come first, then tests of them, then the tests of the pages.

Not here: whether a page is true. Generated pages (`GENERATED`) are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LINE_COLUMNS_MAX = 100
SENTENCE_WORDS_MAX = 30
FILES_IN_PARAGRAPH_MAX = 2
PAGE_LINES_MAX = {"README.md": 130, "ARCHITECTURE.md": 60, "docs/architecture/": 150}
GENERATED = ("docs/clients.md", "docs/reference/sql.md")

PLACES = ("sql", "compute", "coordinator", "storage", "ingest", "tests", "docs", "deploy")
PACKAGES = ("sql", "compute", "coordinator", "storage", "ingest")
ABBREVIATIONS = ("e.g.", "i.e.", "cf.", "vs.", "etc.", "approx.", "p.", "no.", "sec.")

CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]*)\)")
LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
HEADING = re.compile(r"#{1,6}\s+(.*)")
FILE_NAME = re.compile(r"[\w./-]*\w\.(?:py|md|txt|toml|yml)")
FOLDER_NAME = re.compile(rf"(?:{'|'.join(PLACES)})(?:/[\w-]+)*/")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")


# --- from text to sentences -----------------------------------------------------------------------


def prose_lines(text: str) -> list[tuple[int, str]]:
    """The lines outside of fenced code blocks, with their numbers from 1."""
    lines: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        else:
            lines.append((number, line))
    return lines


def blocks(text: str) -> list[tuple[int, str]]:
    """Paragraphs and list items, each on one line, with the number of their first line."""
    found: list[tuple[int, str]] = []
    is_open = False
    last = 0
    for number, line in prose_lines(text):
        words = line.strip().lstrip("> ").strip()
        marker = LIST_MARKER.match(line)
        ends = not words or words.startswith("|") or HEADING.match(words) or number != last + 1
        if ends or marker:
            is_open = False
        last = number
        if not words or words.startswith("|") or HEADING.match(words):
            continue
        if is_open:
            first, before = found[-1]
            found[-1] = first, f"{before} {words}"
        else:
            found.append((number, words[len(marker[0].lstrip()) :] if marker else words))
            is_open = True
    return found


def plain(block: str) -> str:
    """A block without markup: a code span is the word `CODE`, a link is its text."""
    return LINK.sub(r"\1", CODE_SPAN.sub("CODE", block)).replace("**", "")


def sentences(block: str) -> list[str]:
    """The sentences of a block; its end is the end of a sentence, too."""
    found: list[str] = []
    words: list[str] = []
    for word in plain(block).split():
        words.append(word)
        if _ends_sentence(word):
            found.append(" ".join(words))
            words = []
    return [*found, " ".join(words)] if words else found


def _ends_sentence(word: str) -> bool:
    bare = word.rstrip("\"')]*_")
    if bare.lower().lstrip("\"'([*_") in ABBREVIATIONS or bare.endswith(".."):
        return False
    return bare.endswith((".", "!", "?"))


def words(sentence: str) -> int:
    """How many words it has; dashes, arrows and dots alone are none."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


def is_blurred(sentence: str) -> bool:
    """Whether a relative clause stands for the actor."""
    begins = sentence.lstrip("\"'(*_")
    return begins.startswith(("What ", "Who ", "Whoever ")) and not sentence.endswith("?")


def code_spans(block: str) -> list[str]:
    """The texts of its code spans."""
    return [match[2] for match in CODE_SPAN.finditer(block)]


def named(text: str) -> list[tuple[int, str]]:
    """All code spans of a page, those of tables too, with the line that their block begins at."""
    rows = [(number, line) for number, line in prose_lines(text) if line.startswith("|")]
    return [
        (number, span) for number, block in [*blocks(text), *rows] for span in code_spans(block)
    ]


def cannot_wrap(line: str) -> bool:
    """A row of a table, or one word (a link is one) behind a list's marker."""
    if line.startswith("|"):
        return True
    marker = LIST_MARKER.match(line)
    rest = line[len(marker[0]) :] if marker else line
    return len(LINK.sub("LINK", rest).split()) <= 1


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for _, line in prose_lines(text):
        heading = HEADING.match(line)
        if heading:
            title = LINK.sub(r"\1", heading[1]).replace("`", "").strip().lower()
            slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return found


# --- the functions themselves ---------------------------------------------------------------------

LONG = " ".join(["word"] * (SENTENCE_WORDS_MAX + 1))

PAGE = f"""# A heading of any length is no sentence

{LONG}. Short one, e.g. this.
It goes on `here. And here.` and ends! Does it?

| a table | {LONG} |
| --- | --- |

What counts:

- one item
  on two lines
- {LONG}

```
{LONG}
# no heading
```
"""


def test_blocks_are_paragraphs_and_items() -> None:
    first, counts, item, long_item = blocks(PAGE)
    assert first == (3, f"{LONG}. Short one, e.g. this. It goes on `here. And here.` and ends! " +
                     "Does it?")  # fmt: skip
    assert counts == (9, "What counts:")
    assert item == (11, "one item on two lines")
    assert long_item == (13, LONG)


def test_sentences_end_at_marks_and_not_at_abbreviations_or_in_code() -> None:
    found = sentences(blocks(PAGE)[0][1])
    assert found == [
        f"{LONG}.",
        "Short one, e.g. this.",
        "It goes on CODE and ends!",
        "Does it?",
    ]
    assert sentences("Version 18.1 of it. A list `a ..` goes on.") == [
        "Version 18.1 of it.",
        "A list CODE goes on.",
    ]
    assert sentences("**In bold.** (In brackets.) [A link.](x.md)") == [
        "In bold.",
        "(In brackets.)",
        "A link.",
    ]


def test_words_of_code_spans_count_as_one() -> None:
    assert words(plain("run `make test ARGS=--all` — now")) == 3
    assert words(plain("``a ` b`` and [the page](page.md#part)")) == 4
    assert words(LONG) == SENTENCE_WORDS_MAX + 1


def test_a_planted_long_sentence_is_found() -> None:
    assert [number for number, _ in _long_sentences(PAGE)] == [3, 13]
    assert not _long_sentences("- short\n- " + LONG.removesuffix(" word"))


def test_code_spans_are_found_in_tables_and_over_two_lines() -> None:
    text = "Read `a\nb` here.\n\n| `c` | d |\n\n```\n`e`\n```\n"
    assert named(text) == [(1, "a b"), (4, "c")]


def test_blurred_subjects_are_found() -> None:
    assert is_blurred("What is missing is refused.")
    assert is_blurred("Whoever reads waits.")
    assert not is_blurred("What is missing?")
    assert not is_blurred("Whatever it is, it works.")


def test_anchors_are_those_of_github() -> None:
    assert anchors("# One `SELECT`, from A to B\n## One\n## One\n```\n# no\n```") == {
        "one-select-from-a-to-b",
        "one",
        "one-1",
    }


def test_a_line_that_cannot_wrap_is_known() -> None:
    assert cannot_wrap("| a | b |")
    assert cannot_wrap("- [a long text of a link](https://example.org/long)")
    assert not cannot_wrap("some words and [a link](https://example.org/long)")


# --- the pages ------------------------------------------------------------------------------------


def _pages() -> list[str]:
    found = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in found]
    return [name for name in names if name not in GENERATED]


PAGES = _pages()


def _long_sentences(text: str) -> list[tuple[int, str]]:
    return [
        (number, sentence)
        for number, block in blocks(text)
        for sentence in sentences(block)
        if words(sentence) > SENTENCE_WORDS_MAX
    ]


@cache
def _files() -> tuple[str, ...]:
    every = [path for place in PLACES for path in (ROOT / place).rglob("*") if path.is_file()]
    every += [path for path in ROOT.iterdir() if path.is_file()]
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in every))


def _meant(suffix: str) -> list[str]:
    """The files that a name may mean: a path from the root, or the end of a path; tests last."""
    if suffix in _files():
        return [suffix]
    found = [name for name in _files() if name.endswith(f"/{suffix}")]
    return [name for name in found if not name.startswith("tests/")] or found


def _report(page: str, found: Iterator[tuple[int, str]] | list[tuple[int, str]]) -> None:
    lines = [f"{page}:{number} {what}" for number, what in found]
    assert not lines, "\n".join(["", *lines])


@pytest.mark.parametrize("page", PAGES)
def test_lines_wrap(page: str) -> None:
    _report(page, [
        (number, f"{len(line)} columns")
        for number, line in prose_lines((ROOT / page).read_text())
        if len(line) > LINE_COLUMNS_MAX and not cannot_wrap(line)
    ])  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page: str) -> None:
    _report(page, [
        (number, f"{words(sentence)} words: {sentence}")
        for number, sentence in _long_sentences((ROOT / page).read_text())
    ])  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_sentences_name_who_acts(page: str) -> None:
    _report(page, [
        (number, sentence)
        for number, block in blocks((ROOT / page).read_text())
        for sentence in sentences(block)
        if is_blurred(sentence)
    ])  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_their_size(page: str) -> None:
    limits = [limit for place, limit in PAGE_LINES_MAX.items() if page.startswith(place)]
    lines = len((ROOT / page).read_text().splitlines())
    assert all(lines <= limit for limit in limits), f"{page} has {lines} lines, not {limits}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    broken: list[tuple[int, str]] = []
    for number, line in prose_lines((ROOT / page).read_text()):
        for _, target in LINK.findall(CODE_SPAN.sub("CODE", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (ROOT / page).parent / name if name else ROOT / page
            if not path.exists():
                broken.append((number, f"{target}: no such file"))
            elif anchor and anchor not in anchors(path.read_text()):
                broken.append((number, f"{target}: no such heading"))
    _report(page, broken)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    wrong: list[tuple[int, str]] = []
    for number, span in named((ROOT / page).read_text()):
        if FILE_NAME.fullmatch(span) and len(_meant(span)) != 1:
            wrong.append((number, f"`{span}` may be {_meant(span) or 'nothing'}"))
        elif FOLDER_NAME.fullmatch(span) and not (ROOT / span).is_dir():
            wrong.append((number, f"`{span}` is no folder"))
    _report(page, wrong)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/architecture/")])
def test_paragraphs_of_the_architecture_name_few_files(page: str) -> None:
    _report(page, [
        (number, ", ".join(files))
        for number, block in blocks((ROOT / page).read_text())
        for files in [[span for span in code_spans(block) if FILE_NAME.fullmatch(span)]]
        if len({*files}) > FILES_IN_PARAGRAPH_MAX
    ])  # fmt: skip


@cache
def _words_of_code() -> frozenset[str]:
    """All words of the packages, which a name in a page has to be one of."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return frozenset(word for path in paths for word in re.findall(r"\w+", path.read_text()))


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/architecture/")])
def test_names_in_the_architecture_are_those_of_the_code(page: str) -> None:
    known = _words_of_code()
    _report(page, [
        (number, f"`{span}`")
        for number, span in named((ROOT / page).read_text())
        if IDENTIFIER.fullmatch(span) and not FILE_NAME.fullmatch(span)
        if not known.issuperset(re.findall(r"\w+", span))
    ])  # fmt: skip
