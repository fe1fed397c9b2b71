"""Replace oids of reg types (regclass, regtype ..) by names in results that a client reads as text.

A client that reads binary gets the oids.

INVARIANTS
  R1  names are those of the catalog that the statement was bound with; an oid that names nothing
      is shown as a number.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from ingest.copy_text.kernels import Column, to_python_list
from sql.binder.state import BindContext
from sql.functions.pg_proc import procedures
from sql.functions.pg_proc_texts import regproc_text, regprocedure_text
from sql.statements.bound import OutputColumn
from sql.types.sql_type import REG_TYPES, SqlType

_KINDS: Final = {name: name.removeprefix("reg") for name in REG_TYPES}

OidNaming: TypeAlias = Callable[[pa.RecordBatch, Sequence[bool]], pa.RecordBatch]
"""Rows with names as text, in the requested columns."""


def oid_naming(
    columns: Sequence[OutputColumn], context: Callable[[], BindContext]
) -> OidNaming | None:
    """A function that puts names for oids into a result; None if no column has a reg type."""
    if not any(_kind(column.type) for column in columns):
        return None
    kinds = [_kind(column.type) for column in columns]
    bound, known = context(), dict[str, dict[int, str]]()

    def named(batch: pa.RecordBatch, wanted: Sequence[bool]) -> pa.RecordBatch:
        if not known:
            known.update(_names(bound))
        arrays = [
            array if kind is None or not asked else _texts(array, known[kind])
            for kind, array, asked in zip(kinds, batch.columns, wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    return named


def _names(context: BindContext) -> dict[str, dict[int, str]]:
    from coordinator.pgcatalog.names import reg_type_names

    names: dict[str, dict[int, str]] = {kind: {0: "-"} for kind in _KINDS.values()}
    for kind, oid, text, _ in reg_type_names(context):
        names[kind][oid] = text
    names["procedure"] |= {
        procedure.oid: regprocedure_text(procedure) for procedure in procedures()
    }
    names["proc"] |= {procedure.oid: regproc_text(procedure) for procedure in procedures()}
    return names


def _kind(type_: SqlType) -> str | None:
    """What the values of a column name, or the elements of its arrays."""
    return _KINDS.get((type_.element or type_).name)


def _texts(column: Column, names: Mapping[int, str]) -> Column:
    if isinstance(column, pa.ListArray):
        elements = _texts(column.flatten(), names)
        starts = [0, *np.cumsum(column.value_lengths().fill_null(0).to_numpy())]
        ends = pa.array(starts, pa.int32(), mask=np.append(column.is_null().to_numpy(False), False))
        return pa.ListArray.from_arrays(ends, elements)
    oids: list[int | None] = to_python_list(column)
    return pa.array(
        [None if oid is None else names.get(oid, str(oid)) for oid in oids], pa.string()
    )
