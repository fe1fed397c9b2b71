"""Client suites: programs of others do their work on Meridian, and the same work on PostgreSQL 18.

    suite.py in the folder NAME   SUITE: programs that it needs, commands that make and run it
          │  set up, once for each state of the folder, into .cache/clients/NAME
          ▼
    the suite's program ──PGHOST, PGPORT ..──▶ a fresh PostgreSQL, then a fresh Meridian
          │  one JSON object a line: client, version, case, ok, reason
          ▼
    verdicts ──▶ a list of `allow/`   cases that must pass on Meridian; lists only grow
             ──▶ a file of `results/` the last run with `--write`
             ──▶ docs/clients.md      the table of all results

INVARIANTS
  Q1  a case counts only if it passes on PostgreSQL; one that fails there is named and not counted.
  Q2  a case of an allow file that fails, or is not reported, fails the run.
  Q3  a suite whose toolchain is missing, or whose set-up fails, is `not run`: it passes nothing.
  Q4  `--write` adds lines to allow files and never takes one away.
  Q5  each suite meets fresh servers, so no suite sees the tables of another.

The modules, in the order of the run: `suite` (the record of one suite), `outcomes` (the lines that
a program prints), `running` (set-up, servers, the program), `verdicts` (what counts, allow files),
`page` (the table), `__main__` (the command), `features` (what is counted apart). Each other folder
is one suite: a family of clients.

A case that needs a feature of another issue, or one that was left out, ends in `_needs_FEATURE`.
Such cases are counted apart; `features` says where each feature is missing from.
"""
