"""Statements about sources, executed.

    CREATE SOURCE, CREATE TABLE(S) FROM SOURCE ─▶ catalog changes of the transaction
    any DDL ─▶ refused if it would take a table from its source by another way than DETACH

`definitions` makes and checks catalog changes. Nothing is done upstream here: the core starts and
stops sources once the DDL is committed (`core/sources`). Only `execution/ddl.py` imports this.
"""
