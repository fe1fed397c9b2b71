"""Texts of definitions as PostgreSQL 18 prints them: pg_get_viewdef() and its kin.

`testdata` holds what is defined, a statement or an expression a line, and PostgreSQL's texts
(`recorded.json`). REWRITE=1 asks a real server again.
"""
