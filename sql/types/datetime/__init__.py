"""Dates, times, intervals and time zones: parsed and computed as PostgreSQL does, by its own rules.

    text ─ tokens ─▶ tokens of a kind ─ decoder ─▶ parts ─ calendar, timezones ─▶ integer value

PostgreSQL's range is wider than Python's `datetime`, so values are integers (days, microseconds)
and this package brings its own calendar arithmetic.

  `calendar`, `timezones`        days to dates and back; zones, abbreviations and their offsets
  `timetz`, `typmods`            timetz as one integer; modifiers such as timestamp(3)
  `tokens`, `decoder`            lexer of date and time text; assembling the parts (DecodeDateTime)
  `date_input`, `time_input`     input functions of date, timestamp, timestamptz; of time, timetz
  `interval_input`               the input function of interval
  `extract_fields`               field names of extract() and date_trunc()
  `format_templates`             templates of to_char(), to_date() and to_timestamp()

Output is in `sql/types/text_output.py` and `styled_output.py`. Imports `sql.errors` and
`sql.types.sql_type`; the input functions, the binder and the reference evaluator import it.
"""
