"""Materialized views that follow their inputs: what CREATE, REFRESH and catch-up do to attach them.

`attach` says in the transaction that the rows it has written are those of the query; the core
commits that only if it is still so (V6 of `coordinator/core/views`).
"""
