"""PostgreSQL's types: what a type is, how its values look, and how text becomes a value and back.

    text ─ text_input ─▶ value ─ text_output, styled_output ─▶ text
                           └─ json/to_json ─▶ JSON

  `sql_type`, `enums`           SqlType with its modifier; enum types
  `bpchar`, `internal_char`     char(n) with its padding; the one-byte type "char"
  `numeric`, `division_scale`   precision and scale of numeric expressions; scale of quotients
  `records`, `comparability`    row values; which types can be compared and sorted
  `limits`                      PostgreSQL's size limits
  `datetime`, `json`            sub-packages: dates, times and intervals; json, jsonb and jsonpath
  `array_text`                  array literals
  `text_input`, `text_output`   the input and output functions of all types, in default styles
  `styles`, `styled_output`     DateStyle and other settings of output; output that follows them

Values are plain Python objects (the table in `sql_type`); engines and Arrow have their own forms.
Imports `sql.regex` and `sql.errors`. Everything above it imports it: `sql`, `compute`,
`coordinator`. `storage` does not.
"""
