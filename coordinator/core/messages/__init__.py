"""Messages to the core and its replies: all are values.

    session ─▶ requests (locks, catalog_changes) ─▶ core.step ─▶ replies ─▶ session

`identities` names who asks; completions of effects are in `core/completions.py`.
"""
