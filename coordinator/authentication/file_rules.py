"""Rows of pg_hba_file_rules and pg_ident_file_mappings: what the files say now, with what is wrong.

A rule that can never match shows its remark as an error, and has no number, as in PostgreSQL.
"""

from coordinator.authentication.hba import HbaEntry, HbaFile
from coordinator.authentication.hba_addresses import AddressKind, HbaAddress, shown_address
from coordinator.authentication.hba_options import shown_options
from coordinator.authentication.ident_map import IdentFile


def hba_file_rules(file: HbaFile) -> list[dict[str, object]]:
    """One row a line, by column."""
    rows: list[dict[str, object]] = []
    number = 0
    for entry in file.entries:
        row = _hba_row(entry)
        if row["error"] is None:
            number += 1
            row["rule_number"] = number
        rows.append(row)
    return rows


def _hba_row(entry: HbaEntry) -> dict[str, object]:
    rule = entry.rule
    place: dict[str, object] = {
        "rule_number": None,
        "file_name": entry.line.file,
        "line_number": entry.line.number,
    }
    if rule is None:
        absent = dict.fromkeys(
            ("type", "database", "user_name", "address", "netmask", "auth_method", "options")
        )
        return {**place, **absent, "error": entry.error}
    return {
        **place,
        "type": rule.type.value,
        "database": [token.text for token in rule.databases],
        "user_name": [token.text for token in rule.users],
        "address": None if rule.address is None else _shown(rule.address),
        "netmask": _shown_mask(rule.address),
        "auth_method": rule.method.value,
        "options": shown_options(rule.options),
        "error": rule.remark,
    }


def _shown(address: HbaAddress) -> str:
    if address.network is not None:
        return shown_address(address.network)
    return address.kind.value if address.kind is not AddressKind.HOST_NAME else address.name or ""


def _shown_mask(address: HbaAddress | None) -> str | None:
    return None if address is None or address.mask is None else shown_address(address.mask)


def ident_file_mappings(file: IdentFile) -> list[dict[str, object]]:
    """One row a line, by column."""
    rows: list[dict[str, object]] = []
    number = 0
    for entry in file.entries:
        mapping = entry.mapping
        number += mapping is not None
        rows.append(
            {
                "map_number": None if mapping is None else number,
                "file_name": entry.line.file,
                "line_number": entry.line.number,
                "map_name": None if mapping is None else mapping.map_name,
                "sys_name": None if mapping is None else mapping.system_user.text,
                "pg_username": None if mapping is None else mapping.role.text,
                "error": entry.error,
            }
        )
    return rows
