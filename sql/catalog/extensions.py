"""Extensions: those that CREATE EXTENSION takes, and those that a catalog has.

An extension's functions are built in (`sql/data/extensions.txt`). They can be called while the
extension is there. plpgsql is always there, though there is nothing to write in it.

INVARIANTS
  X1  an extension is offered only if some of its functions work. A call of another one is 0A000,
      and so is an extension that is not offered.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from sql.catalog.catalog import Catalog
from sql.catalog.objects import ExtensionDefinition
from sql.catalog.system_catalogs import PG_CATALOG


@dataclass(frozen=True, slots=True)
class AvailableExtension:
    """What its control file says. `schema`: the only one where it may be; empty: any.
    `missing`: the functions that Meridian does not have. `twins`: those that pg_catalog has, too;
    they are called with their schema.
    """

    name: str
    release: str
    comment: str
    schema: str = ""
    functions: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    twins: frozenset[str] = frozenset()


_PLPGSQL_OID: Final = 13_800
PLPGSQL: Final = ExtensionDefinition(_PLPGSQL_OID, "pg_catalog", "plpgsql", release="1.0")
"""It has no record in the catalog."""
PLPGSQL_LANGUAGE_OID: Final = 12_775
PLPGSQL_FUNCTIONS: Final = (
    "plpgsql_call_handler", "plpgsql_inline_handler", "plpgsql_validator"
)  # fmt: skip
"""Its members are these and the language."""

AVAILABLE_EXTENSIONS: Final = {
    one.name: one
    for one in (
        AvailableExtension(
            "pgcrypto",
            "1.4",
            "cryptographic functions",
            functions=frozenset({"digest", "gen_random_bytes", "hmac"}),
            missing=frozenset({
                "armor", "crypt", "dearmor", "decrypt", "decrypt_iv", "encrypt", "encrypt_iv",
                "gen_salt", "pgp_armor_headers", "pgp_key_id",
                "pgp_pub_decrypt", "pgp_pub_decrypt_bytea", "pgp_pub_encrypt",
                "pgp_pub_encrypt_bytea", "pgp_sym_decrypt", "pgp_sym_decrypt_bytea",
                "pgp_sym_encrypt", "pgp_sym_encrypt_bytea",
            }),
            twins=frozenset({"gen_random_uuid"}),
        ),
        AvailableExtension(
            "pg_stat_statements",
            "1.12",
            "track planning and execution statistics of all SQL statements executed",
            functions=frozenset({"pg_stat_statements_reset"}),
        ),
        AvailableExtension("plpgsql", "1.0", "PL/pgSQL procedural language", "pg_catalog"),
        AvailableExtension(
            "uuid-ossp",
            "1.1",
            "generate universally unique identifiers (UUIDs)",
            functions=frozenset({
                "uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v3",
                "uuid_generate_v4", "uuid_generate_v5", "uuid_nil",
                "uuid_ns_dns", "uuid_ns_oid", "uuid_ns_url", "uuid_ns_x500",
            }),
        ),
    )
}  # fmt: skip

_EXTENSION_OF: Final = {
    function: one.name
    for one in AVAILABLE_EXTENSIONS.values()
    for function in one.functions | one.missing
}
_EXTENSION_OF_TWIN: Final = {
    function: one.name for one in AVAILABLE_EXTENSIONS.values() for function in one.twins
}


def installed_extensions(catalog: Catalog) -> Iterator[ExtensionDefinition]:
    """The extensions of a catalog, plpgsql first."""
    yield PLPGSQL
    yield from (o for o in catalog.objects.values() if isinstance(o, ExtensionDefinition))


def installed_extension(catalog: Catalog, name: str) -> ExtensionDefinition | None:
    """The extension of that name, whatever its schema."""
    return next((found for found in installed_extensions(catalog) if found.name == name), None)


def extension_of_function(function: str, qualifier: Sequence[str] = ()) -> str | None:
    """The extension that a function belongs to; `qualifier`: what stands before its name."""
    if function in _EXTENSION_OF_TWIN and (*qualifier,) not in ((), (PG_CATALOG,)):
        return _EXTENSION_OF_TWIN[function]
    return _EXTENSION_OF.get(function)


def calls_extension(text: str, name: str) -> bool:
    """Whether an expression calls a function of the extension, as far as its text tells.

    A string that looks like a call counts as one: then a definition depends on too much.
    """
    functions = AVAILABLE_EXTENSIONS[name].functions
    return bool(functions) and _calls(name).search(text.lower()) is not None


@cache
def _calls(name: str) -> re.Pattern[str]:
    extension = AVAILABLE_EXTENSIONS[name]
    functions, twins = ("|".join(sorted(n)) for n in (extension.functions, extension.twins))
    calls = rf'\b(?:{functions})"?\s*\('
    if twins:
        calls += rf'|(?<!\bpg_catalog)(?<!\bpg_catalog")\.\s*"?(?:{twins})"?\s*\('
    return re.compile(calls)
