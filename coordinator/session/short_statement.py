"""A statement as it is answered at once, under one catalog and the settings of one session."""

from dataclasses import dataclass, field

from coordinator.execution.blind_insert import BlindInsert
from coordinator.execution.short_read import ShortRead
from coordinator.execution.short_writes.compile import CompiledWrite
from coordinator.pgwire.codec import encode_backend
from coordinator.pgwire.messages import expand_formats, row_description
from coordinator.pgwire.rows import RowEncoder
from coordinator.statistics.counted_statements import CountedStatement
from coordinator.variables.variables import Variables
from sql.statements.bound import ParameterizedStatement
from sql.types.sql_type import SqlType


@dataclass(slots=True)
class ResultShape:
    """How a result goes out in some formats: its RowDescription, and the encoder of its rows."""

    description: bytes
    encoder: RowEncoder


@dataclass(slots=True)
class ShortStatement:
    """See the module. `setting`: what its plan depends on, the catalog's version among it.
    `engine`: the variable. `types`: of its parameters. `read`, `write`: None if it is no short one.
    `insert`: into a table without keys, outside of blocks. `counted`: where its runs are counted,
    if they are.
    """

    setting: tuple[object, ...]
    engine: str
    types: tuple[SqlType, ...]
    bound: ParameterizedStatement
    read: ShortRead | None
    write: CompiledWrite | None
    insert: BlindInsert | None
    counted: CountedStatement | None
    shapes: dict[tuple[int, ...], ResultShape] = field(
        default_factory=dict[tuple[int, ...], ResultShape]
    )

    @property
    def writes(self) -> bool:
        """Whether it is a short write, as a transaction of its own or in a block."""
        return self.write is not None or self.insert is not None

    def shape(self, formats: tuple[int, ...], variables: Variables) -> ResultShape:
        """Formats as in Bind. Raises SqlError for those that the result cannot have."""
        shape = self.shapes.get(formats)
        if shape is None:
            answered = self.write if self.read is None else self.read
            columns = None if answered is None else answered.columns
            assert columns is not None, "only what is answered here with rows has a shape"
            codes = expand_formats(formats, len(columns))
            types = [column.type for column in columns]
            encoder = RowEncoder(types, codes, variables.timezone, variables.styles)
            description = bytes(encode_backend(row_description(columns, codes)))
            shape = self.shapes[formats] = ResultShape(description, encoder)
        return shape
