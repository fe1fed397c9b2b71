"""Access control lists, and how GRANT and REVOKE change them (acl.c, aclchk.c); pure.

    {alice=arwd*/bob,=r/bob}     alice has all of arwd, d with grant option; PUBLIC has r

INVARIANTS
  L1  a list has at most one item for a grantee and a grantor, and none without privileges.
  L2  a grantor holds what it grants, as the owner or by another's grant option. Revoking that also
      revokes the grants that depend on it, or is refused (2BP01).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sql.errors import SqlError

OWNER: Final = 10
"""The first superuser's oid, as in PostgreSQL; who owns what nobody else owns."""
FIRST_OID: Final = 16_384
"""PostgreSQL's first oid for objects of users; what is below has always been there."""
PUBLIC: Final = 0
"""The grantee that is everybody."""

PRIVILEGE_LETTERS: Final = "arwdDxtXUCTcm"
"""All privileges, in the order in which lists show them."""

PRIVILEGE_NAMES: Final[Mapping[str, str]] = {
    "a": "INSERT", "r": "SELECT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES",
    "t": "TRIGGER", "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT",
    "m": "MAINTAIN",
}  # fmt: skip
_BY_NAME: Final = {name.lower(): letter for letter, name in PRIVILEGE_NAMES.items()} | {"temp": "T"}

ALL_PRIVILEGES: Final[Mapping[str, str]] = {
    "table": "arwdDxtm", "column": "arwx", "sequence": "rwU", "database": "CTc", "schema": "UC",
    "type": "U", "function": "X", "language": "U", "foreign-data wrapper": "U",
    "foreign server": "U", "tablespace": "C", "large object": "rw",
}  # fmt: skip
"""What there is to grant of each kind of thing."""
_EVERYBODY: Final = {"database": "Tc", "type": "U", "function": "X", "language": "U"}
"""What everybody has of what nobody has granted anything of."""


@dataclass(frozen=True, slots=True)
class AclItem:
    """The privileges that a grantor gave a grantee; `options`: the letters WITH GRANT OPTION."""

    grantee: int
    grantor: int
    privileges: str
    options: str = ""


Acl: TypeAlias = tuple[AclItem, ...]


@dataclass(frozen=True, slots=True)
class ObjectPrivileges:
    """The owner of an object and the privileges on it; `acl` None: none was ever granted."""

    owner: int = OWNER
    acl: Acl | None = None
    version: int = 0


def ordered_letters(letters: Iterable[str]) -> str:
    """Each letter once, in the order of `PRIVILEGE_LETTERS`."""
    there = set(letters)
    return "".join(letter for letter in PRIVILEGE_LETTERS if letter in there)


def privilege_letter(name: str) -> str:
    """The privilege of that name. Raises 42601."""
    letter = _BY_NAME.get(name)
    if letter is None:
        raise SqlError("42601", f'unrecognized privilege type "{name}"')
    return letter


def default_acl(kind: str, owner: int) -> Acl:
    """The privileges that apply while nothing was granted (acldefault)."""
    items: list[AclItem] = []
    if kind in _EVERYBODY:
        items.append(AclItem(PUBLIC, owner, _EVERYBODY[kind]))
    if kind != "column" and kind in ALL_PRIVILEGES:
        items.append(AclItem(owner, owner, ordered_letters(ALL_PRIVILEGES[kind])))
    return tuple(items)


def is_same_acl(one: Acl, other: Acl) -> bool:
    """Whether two lists are equal regardless of order."""
    return set(one) == set(other)


# --- what somebody has -------------------------------------------------------------------------


def grantable_letters(acl: Acl, role: int, owner: int) -> str:
    """The privileges that a role may grant, as the owner or by grant option."""
    if role == owner:
        return PRIVILEGE_LETTERS
    return ordered_letters(
        letter for item in acl if item.grantee == role for letter in item.options
    )


def roles_in_acl(acl: Acl) -> frozenset[int]:
    """The roles that occur in a list."""
    return frozenset({oid for item in acl for oid in (item.grantee, item.grantor)}) - {PUBLIC}


# --- GRANT and REVOKE --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GrantOperation:
    """A GRANT or REVOKE of `letters` as it is done to every list. `option`: WITH GRANT OPTION, or
    GRANT OPTION FOR. `cascade`: of a REVOKE.
    """

    is_grant: bool
    letters: str
    grantees: tuple[int, ...]
    option: bool = False
    cascade: bool = False


def apply_grant(acl: Acl, granting: GrantOperation, *, grantor: int, owner: int) -> Acl:
    """The list after a GRANT or REVOKE (merge_acl_with_grant). Raises 0LP01, 2BP01."""
    for grantee in granting.grantees:
        if not granting.is_grant:
            acl = _revoked(acl, granting, grantee, grantor, owner)
            continue
        if granting.option and grantee == PUBLIC:
            raise SqlError("0LP01", "grant options can only be granted to roles")
        if granting.option and grantor != owner:
            _check_circle(acl, grantee, grantor, granting.letters, owner)
        options = granting.letters if granting.option else ""
        acl = _added(acl, AclItem(grantee, grantor, granting.letters, options))
    return acl


def _added(acl: Acl, more: AclItem) -> Acl:
    """The list with this, too; what it had keeps its place (L1)."""
    pair = (more.grantee, more.grantor)
    known = next((item for item in acl if (item.grantee, item.grantor) == pair), None)
    if known is None:
        return (*acl, more) if more.privileges else acl
    both = AclItem(
        *pair,
        ordered_letters(known.privileges + more.privileges),
        ordered_letters(known.options + more.options),
    )
    return tuple(both if item is known else item for item in acl)


def _check_circle(acl: Acl, grantee: int, grantor: int, letters: str, owner: int) -> None:
    """Nobody is granted an option by one who has it from him (check_circularity)."""
    for item in acl:
        if item.grantee == grantee and item.options:
            acl = _taken(acl, item, item.options, owner, options_only=True)
    if not set(letters) <= set(grantable_letters(acl, grantor, owner)):
        message = "grant options cannot be granted back to your own grantor"
        raise SqlError("0LP01", message)


def _revoked(acl: Acl, granting: GrantOperation, grantee: int, grantor: int, owner: int) -> Acl:
    pair = (grantee, grantor)
    item = next((item for item in acl if (item.grantee, item.grantor) == pair), None)
    if item is None:
        return acl
    if not granting.cascade:
        left = _without(acl, item, granting.letters, options_only=granting.option)
        lost = _lost(left, item, granting.letters, owner)
        if any(i.grantor == grantee and set(lost) & set(i.privileges) for i in left):
            hint = "Use CASCADE to revoke them too."
            raise SqlError("2BP01", "dependent privileges exist", hint=hint)
    return _taken(acl, item, granting.letters, owner, options_only=granting.option)


def _taken(acl: Acl, item: AclItem, letters: str, owner: int, *, options_only: bool) -> Acl:
    """Without these letters of an item, and what its grantee granted of them (L2)."""
    acl = _without(acl, item, letters, options_only=options_only)
    lost = _lost(acl, item, letters, owner)
    while lost:
        next_ = next(
            (i for i in acl if i.grantor == item.grantee and set(lost) & set(i.privileges)), None
        )
        if next_ is None:
            break
        acl = _taken(acl, next_, lost, owner, options_only=False)
    return acl


def _lost(acl: Acl, item: AclItem, letters: str, owner: int) -> str:
    """What a grantee may not grant any more, now that the list is this."""
    still = grantable_letters(acl, item.grantee, owner)
    return ordered_letters(x for x in item.options if x in letters and x not in still)


def _without(acl: Acl, gone: AclItem, letters: str, *, options_only: bool) -> Acl:
    privileges = gone.privileges
    if not options_only:
        privileges = ordered_letters(x for x in privileges if x not in letters)
    options = ordered_letters(x for x in gone.options if x not in letters)
    left = replace(gone, privileges=privileges, options=options)
    return tuple(kept for item in acl if (kept := left if item == gone else item).privileges)


# --- owners and roles that change --------------------------------------------------------------


def acl_with_owner(acl: Acl | None, old: int, new: int) -> Acl | None:
    """The list after a change of owner: privileges and grants of the old owner pass to the new one
    (aclnewowner).
    """
    if acl is None:
        return None
    made: Acl = ()
    for item in acl:
        grantee = new if item.grantee == old else item.grantee
        grantor = new if item.grantor == old else item.grantor
        made = _added(made, replace(item, grantee=grantee, grantor=grantor))
    return made


def acl_without_role(acl: Acl, role: int, owner: int) -> Acl:
    """The list without a role's privileges and the grants that depend on them (DROP OWNED)."""
    for item in acl:
        if item.grantee == role and item in acl:
            acl = _taken(acl, item, item.privileges, owner, options_only=False)
    return tuple(item for item in acl if role not in (item.grantee, item.grantor) or role == owner)


def merge_acls(one: Acl, other: Acl) -> Acl:
    """The union of two lists (aclmerge)."""
    for item in other:
        one = _added(one, item)
    return one


def sorted_acl(acl: Acl) -> Acl:
    """The list in the order in which PostgreSQL compares lists (aclitemsort)."""
    return tuple(sorted(acl, key=lambda item: (item.grantee, item.grantor)))


# --- as catalogs show them ---------------------------------------------------------------------


def acl_item_text(item: AclItem, name: Callable[[int], str]) -> str:
    """An item as type aclitem prints it; `name` returns a role's name."""
    grantee = "" if item.grantee == PUBLIC else _put_name(name(item.grantee))
    letters = "".join(x + ("*" if x in item.options else "") for x in item.privileges)
    return f"{grantee}={letters}/{_put_name(name(item.grantor))}"


def _put_name(name: str) -> str:
    if all(letter.isalnum() or letter == "_" or letter > "\x7f" for letter in name):
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def explode_acl(acl: Acl) -> Iterator[tuple[int, int, str, bool]]:
    """Grantor, grantee, privilege and grant option of each entry (aclexplode)."""
    for item in acl:
        for letter in PRIVILEGE_LETTERS:
            if letter in item.privileges:
                yield item.grantor, item.grantee, PRIVILEGE_NAMES[letter], letter in item.options
