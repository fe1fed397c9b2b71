"""What rules of pg_hba.conf may say behind the method: `map=`, `clientcert=`, `clientname=`.

Options of methods that we lack are known: the reason says which methods they belong to.
"""

from dataclasses import replace
from typing import Final

from coordinator.authentication.hba_rules import (
    ClientCertificate,
    ClientName,
    ConnectionType,
    HbaMethod,
    HbaOptions,
)
from coordinator.authentication.hba_tokens import HbaToken

_METHODS_WITH_MAP: Final = (HbaMethod.PEER, HbaMethod.CERT)
_ELSEWHERE: Final = {
    **dict.fromkeys(("pamservice", "pam_use_hostname"), "pam"),
    **dict.fromkeys(
        ("ldapurl", "ldaptls", "ldapscheme", "ldapserver", "ldapport", "ldapbinddn",
         "ldapbindpasswd", "ldapsearchattribute", "ldapsearchfilter", "ldapbasedn", "ldapprefix",
         "ldapsuffix"),
        "ldap",
    ),
    **dict.fromkeys(("krb_realm", "include_realm"), "gssapi and sspi"),
    **dict.fromkeys(("compat_realm", "upn_username"), "sspi"),
    **dict.fromkeys(
        ("radiusservers", "radiusports", "radiussecrets", "radiusidentifiers"), "radius"
    ),
    **dict.fromkeys(("issuer", "scope", "validator", "delegate_ident_mapping"), "oauth"),
}  # fmt: skip
"""Options of methods that we lack."""


class OptionRefused(Exception):
    """An option that a rule cannot have; `args[0]` is PostgreSQL's reason."""


def parse_options(
    tokens: tuple[HbaToken, ...], kind: ConnectionType, method: HbaMethod
) -> HbaOptions:
    """The options of a rule. Raises OptionRefused."""
    options = HbaOptions()
    for token in tokens:
        name, equals, value = token.text.partition("=")
        if not equals:
            raise OptionRefused(f"authentication option not in name=value format: {token.text}")
        options = _with_option(options, name, value, kind, method)
    if method is HbaMethod.CERT:
        return replace(options, certificate=ClientCertificate.VERIFY_FULL)
    return options


def _with_option(
    options: HbaOptions, name: str, value: str, kind: ConnectionType, method: HbaMethod
) -> HbaOptions:
    if name in ("clientcert", "clientname") and kind is not ConnectionType.HOST_SSL:
        raise OptionRefused(f'{name} can only be configured for "hostssl" rows')
    match name:
        case "map":
            if method not in _METHODS_WITH_MAP:
                raise _elsewhere(name, "ident, peer, gssapi, sspi, cert, and oauth")
            return replace(options, user_map=value)
        case "clientcert":
            if method is HbaMethod.CERT and value == "verify-ca":
                words = 'clientcert can only be set to "verify-full" when using "cert"'
                raise OptionRefused(f"{words} authentication")
            if value not in ("verify-ca", "verify-full"):
                raise OptionRefused(f'invalid value for clientcert: "{value}"')
            return replace(options, certificate=ClientCertificate(value))
        case "clientname":
            if value not in ("CN", "DN"):
                raise OptionRefused(f'invalid value for clientname: "{value}"')
            return replace(options, client_name=ClientName(value))
        case _ if name in _ELSEWHERE:
            raise _elsewhere(name, _ELSEWHERE[name])
        case _:
            raise OptionRefused(f'unrecognized authentication option name: "{name}"')


def _elsewhere(name: str, methods: str) -> OptionRefused:
    words = f'authentication option "{name}" is only valid for authentication methods {methods}'
    return OptionRefused(words)


def shown_options(options: HbaOptions) -> list[str] | None:
    """As pg_hba_file_rules shows them; None if there are none."""
    shown: list[str] = []
    if options.user_map is not None:
        shown.append(f"map={options.user_map}")
    if options.certificate is not ClientCertificate.NONE:
        shown.append(f"clientcert={options.certificate}")
    return shown or None
