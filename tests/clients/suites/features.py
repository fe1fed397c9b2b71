"""The features that a case may need and Meridian does not have: `_needs_FEATURE` names them.

INVARIANTS
  F1  each is a line of `docs/limitations.md`, given by its first column.
"""

from collections.abc import Mapping
from typing import Final

FEATURES: Final[Mapping[str, str]] = {
    "bit": "bit strings, `money`, network, geometric, text search types",
    "collations": "other collations than C and its kin",
    "composite_types": "composite and range types, shell types",
    "create_database": "`CREATE DATABASE`, `DROP DATABASE`",
    "do": "functions, procedures, `DO`",
    "exclusion_constraints": "exclusion constraints",
    "extensions": "`CREATE EXTENSION` of others than `pgcrypto`, `uuid-ossp`, `pg_stat_statements`",
    "foreign_tables": "foreign tables and servers",
    "full_text": "bit strings, `money`, network, geometric, text search types",
    "functions": "functions, procedures, `DO`",
    "inet": "bit strings, `money`, network, geometric, text search types",
    "infinite_dates": "infinite dates, timestamps and intervals",
    "inheritance": "typed tables, `INHERITS`",
    "invalid_indexes": "`CREATE INDEX CONCURRENTLY` that fails",
    "large_objects": "large objects",
    "long_numerics": "unconstrained `numeric`",
    # Others are there since these cases were counted: run the suites again.
    "materialized_views": "materialized views that are refreshed at an interval",
    "numeric_nan": "`NaN` and infinity in `numeric`",
    "partitions": "`PARTITION OF`, `ATTACH` and `DETACH PARTITION`",
    "prepared_transactions": "`PREPARE TRANSACTION` and kin",
    "ranges": "composite and range types, shell types",
    "several_dimensions": "arrays of several dimensions, or not beginning at 1",
    "triggers": "triggers, event triggers, rules",
}
"""By name; the first column of the line."""
