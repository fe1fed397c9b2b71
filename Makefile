# Targets are one line; logic belongs in Python. `make help` lists them.
# Needs Python 3.11 or newer with venv; PYTHON=/path/to/python3 chooses another one.
PYTHON ?= python3
BIN    := .venv/bin
SEEDS  ?= 2000
SEED   ?= 1
SECONDS ?= 60
ENGINES ?= local
WORKERS ?= 2
SOAK_S ?= 1800
SOURCE_SEEDS ?= 20
VIEW_SEEDS ?= 20000
LISTEN ?= 127.0.0.1:7432
DATA   ?= ./data
# Tests start servers hundreds of times: compiled modules are kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run test check fmt lint types layers formatted spark sim replay crash faults readers failover docs sqldiff writing definitions sqlfuzz views locks clients security visible sources soak bench demo demo-streams

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: .venv/installed-dev ## make .venv with everything that development needs

run: .venv/installed ## start the server: LISTEN=127.0.0.1:7432 DATA=./data
	$(BIN)/meridian serve --listen $(LISTEN) --data-dir $(DATA)

test: setup ## run every test that does not take minutes; without the JVM WORKERS=2 files at once
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not slow and not spark" && $(BIN)/pytest -m "spark and not slow"

check: formatted lint types layers ## what CI runs beside the tests

formatted: setup
	$(BIN)/ruff format --check .

fmt: setup ## format the code
	$(BIN)/ruff format .

lint: setup ## look for mistakes in style
	$(BIN)/ruff check .

types: setup ## check the types, twice
	$(BIN)/mypy && $(BIN)/pyright

layers: setup ## check that imports go one way
	$(BIN)/lint-imports

spark: setup ## only the tests that need the JVM
	$(BIN)/pytest -m spark

sim: setup ## simulate SEEDS=2000 runs with crashes and faults
	$(BIN)/python -m tests.resilience.sim.many --seeds $(SEEDS) $(ARGS)

replay: setup ## simulate one run again and tell what happened: SEED=7
	$(BIN)/python -m tests.resilience.sim.many --replay $(SEED) $(ARGS)

crash: setup ## kill -9 under load, many times
	$(BIN)/pytest -m "slow or not slow" tests/resilience/crash

faults: setup ## strike the real server in many ways, judge what clients saw: FAULT_SEEDS=1
	$(BIN)/pytest -m "slow or not slow" tests/resilience/faults tests/resilience/upstream

readers: setup ## a thousand transactions with crashes, then every table and version by other Delta readers
	$(BIN)/pytest -m "slow or not slow" tests/resilience/faults/test_readers_agree.py

failover: setup ## several coordinators: paused, cut off, killed, one after the other
	$(BIN)/pytest -m "slow or not slow" tests/resilience/failover

soak: setup ## 64 clients of all kinds that cancel, vanish and stall, on one server: SOAK_S=1800
	$(BIN)/python -m tests.resilience.soak --seconds $(SOAK_S) $(ARGS)

docs: setup ## write docs/reference/sql.md from the function table
	$(BIN)/python -m sql.function_list > docs/reference/sql.md

sqldiff: setup ## every recorded answer of PostgreSQL and all hostile SQL, on both engines
	$(BIN)/pytest -m "slow or not slow" tests/postgres/queries tests/postgres/tpch tests/security

writing: setup ## statements that write, alone and in blocks, and WRITING_SEEDS=20 random sequences, beside PostgreSQL
	$(BIN)/pytest -m "slow or not slow" tests/postgres/writing tests/postgres/transactions

definitions: setup ## definitions: any two side by side, four clients at once, a crash at every write, foreign readers
	$(BIN)/pytest -m "slow or not slow" tests/postgres/ddl tests/session/ddl/test_all_pairs.py tests/session/ddl/test_definition_races.py tests/session/ddl/test_statement_crashes.py

sqlfuzz: setup ## random queries beside a PostgreSQL: SECONDS=60 ENGINES=local,spark
	$(BIN)/python -m tests.postgres.fuzz --seconds $(SECONDS) --engines $(ENGINES) $(ARGS)

security: setup ## log-ins and TLS by hostile clients; what is wrong with a log-in cannot be told by time
	$(BIN)/pytest -m "(slow or not slow) and not spark" tests/security/doors tests/unit/authentication tests/postgres/authentication

visible: setup ## a real Prometheus scrapes a server under load; the page in a real browser
	$(BIN)/pytest -m "slow or not slow" tests/session/monitoring tests/session/deployment

clients: setup ## run suites of clients on PostgreSQL and Meridian: SUITES="python node" ARGS=--write
	$(BIN)/python -m tests.clients.suites $(SUITES) $(ARGS)

sources: setup ## random transactions of an upstream PostgreSQL, and whether its reader gives its tables: SOURCE_SEEDS=20
	$(BIN)/python -m tests.ingest.postgres.random_statements --seeds $(SOURCE_SEEDS) $(ARGS)

views: setup ## TPC-H's queries and random ones as views that are maintained, ten million rows on Spark: VIEW_SEEDS=20000
	$(BIN)/pytest -m "slow or not slow" tests/postgres/tpch/test_tpch_views.py && $(BIN)/pytest -n 0 -s -o faulthandler_timeout=7200 -m "slow or not slow" tests/engines/spark/test_large_views.py && $(BIN)/python -m tests.unit.compute.maintenance --seeds $(VIEW_SEEDS) $(ARGS)

locks: setup ## random schedules of sessions that lock, beside a PostgreSQL: SECONDS=60
	$(BIN)/python -m tests.postgres.locking --seconds $(SECONDS) $(ARGS)

bench: setup ## commits, reads and loads per second beside PostgreSQL
	$(BIN)/python -m tests.bench $(ARGS)

demo: setup ## load real flights, query, correct and time-travel
	$(BIN)/python -m tests.clients.demo $(ARGS)

demo-streams: setup ## who commits in PostgreSQL reads it here, although the server is killed
	$(BIN)/python -m tests.resilience.upstream.example $(ARGS)

# The stamps are older than pyproject.toml when its dependencies may have changed.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --editable . && touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --editable '.[dev]' && touch .venv/installed $@
