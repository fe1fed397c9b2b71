"""What ALTER TABLE may not do to columns and keys that foreign keys rest on."""

from sql.altering import Altering
from sql.bind_foreign_keys import children, refers_to
from sql.errors import SqlError, not_supported


def check_referred(work: Altering) -> None:
    """2BP01 if a key goes that foreign keys of others rest on; 0A000 for other types of theirs."""
    before, after = work.before, work.table
    catalog = work.binding.context.catalog
    for child, foreign in children(catalog, before.oid):
        numbers = {after.number_of(at): column for at, column in enumerate(after.columns)}
        for number in foreign.references:
            old = before.columns[before.ordinal_of(number)]
            if number in numbers and numbers[number].type != old.type:
                raise not_supported("another type of a column that a foreign key refers to")
        whole = all(number in numbers for number in foreign.references)
        kept = whole and any(refers_to(after, foreign, key) for key in after.keys)
        if kept or (child.oid == before.oid and foreign not in after.foreign_keys):
            continue
        (key, *_) = [key for key in before.keys if refers_to(before, foreign, key)]
        message = (
            f"cannot drop constraint {key.name} on table {before.name} because other objects "
            "depend on it"
        )
        detail = f"constraint {foreign.name} on table {child.name} depends on index {key.name}"
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", message, detail=detail, hint=hint)
    for foreign in after.foreign_keys:
        for ordinal in foreign.columns:
            column = after.columns[ordinal]
            same = [c for c in before.columns if c.field == column.field]
            if foreign in before.foreign_keys and (not same or same[0].type != column.type):
                raise not_supported("another type of a column of a foreign key")
