"""PostgreSQL's functions in Python, one module for each family of types.

    row of the function table ─▶ `compute/reference/function_table.py` ─▶ a function of this package

A module holds functions over Python values (the values of `sql/types/sql_type.py`), and names the C
file of PostgreSQL that it follows. Some functions need the types of a call: they are built by a
function of that call.

Modules by family:
  `numbers`, `floats`, `comparisons`, `powers`, `mathematics`, `float_sums`, `float_folds`,
  `number_format`, `to_number` `text`, `strings`, `regexp`, `regex_match`, `bytea`, `styled_text`
  `datetime`, `intervals`, `time`, `date_trunc`, `time_format`, `to_timestamp`, `generate_series`
  `json`, `json_builders`, `json_modification`, `json_records`, `json_sets`, `json_escapes`
  `jsonpath`, `jsonpath_methods`, `sql_json` `arrays`, `enums`, `ordering`, `statistics`, `system`,
  `procedures`, `reg_types`

The evaluator (`compute.reference`) imports these modules, and so do the SQL engines for Arrow UDFs.
They import `sql` and each other, and know no engine.
"""
