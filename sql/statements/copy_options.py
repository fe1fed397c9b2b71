"""The options of COPY, as the binder has checked them."""

from dataclasses import dataclass

from sql.types.encodings import Encoding


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Options of COPY as given, checked. `format` is `text`, `csv` or `binary`."""

    format: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    header_match: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()
    skips: bool = False
    """ON_ERROR ignore: rows with a value that cannot be read are passed over."""
    skipped_max: int | None = None
    """REJECT_LIMIT."""
    verbosity: str = "default"
    """LOG_VERBOSITY: `default`, `verbose`, `silent`."""
    encoding: Encoding | None = None
    """ENCODING; None: the client's."""

    @property
    def is_binary(self) -> bool:
        """Whether the format is binary; no other option applies then."""
        return self.format == "binary"
