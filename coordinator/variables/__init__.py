"""Session variables: the settings of SET, SHOW and RESET with PostgreSQL's names and checks.

`table` defines every variable: its default, its check and the text that SHOW prints. `variables`
holds the values of one session and restores them with its transactions and savepoints. The other
modules check and convert single settings.

The package imports nothing above `core`; `transaction`, `execution`, `session` and `server` import
it. The meaning of a setting lies with the modules that read it.
"""
