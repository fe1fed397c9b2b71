"""PostgreSQL's own hash of a text, which programs make the keys of advisory locks of; HMAC.

Bob Jenkins' lookup3, as in PostgreSQL's `hashfn.c`; a text hashes as its bytes in UTF-8.
"""

import hmac as hash_codes

from compute.reference.registry import implements
from sql.errors import SqlError

_WORD = 0xFFFFFFFF
_GOLDEN = 0x9E3779B9
_PRIME = 3923095
_MIX = ((4, 0, 2, 1), (6, 1, 0, 2), (8, 2, 1, 0), (16, 0, 2, 1), (19, 1, 0, 2), (4, 2, 1, 0))
"""By how much to rotate; the places of the word that changes, of the one mixed in, of the third."""
_FINAL = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))
"""The places of the word that changes and of the one mixed in; by how much that is rotated."""

_ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


@implements("hashtext(text)")
def hashtext(text: str) -> int:
    """32 bits."""
    return _signed(_hash(text.encode(), 0)[2], 32)


@implements("hashtextextended(text,int8)")
def hashtextextended(text: str, seed: int) -> int:
    """64 bits, other ones for each seed."""
    _, b, c = _hash(text.encode(), seed)
    return _signed(b << 32 | c, 64)


@implements("hmac(bytea,bytea,text)")
def hmac(data: bytes, key: bytes, algorithm: str) -> bytes:
    """The code of RFC 2104, as the extension pgcrypto computes it."""
    if algorithm.lower() not in _ALGORITHMS:
        raise SqlError("22023", "No such hash algorithm")
    return hash_codes.digest(key, data, algorithm.lower())


@implements("meridian_no_hash()")
def no_hash() -> bytes:
    """What digest() says of the name of an unknown algorithm."""
    raise SqlError("22023", "No such hash algorithm")


def _hash(data: bytes, seed: int) -> list[int]:
    """The three words that remain."""
    words = [(_GOLDEN + len(data) + _PRIME) & _WORD] * 3
    if seed:
        words[0] = (words[0] + ((seed >> 32) & _WORD)) & _WORD
        words[1] = (words[1] + (seed & _WORD)) & _WORD
        _mix(words)
    whole = len(data) // 12 * 12
    for start in range(0, whole, 12):
        _add(words, data[start : start + 12])
        _mix(words)
    rest = data[whole:]
    # The lowest byte of the third word is kept for the length.
    _add(words, rest[:8].ljust(8, b"\0") + b"\0" + rest[8:].ljust(3, b"\0"))
    for changed, mixed, bits in _FINAL:
        words[changed] = ((words[changed] ^ words[mixed]) - _rotated(words[mixed], bits)) & _WORD
    return words


def _add(words: list[int], data: bytes) -> None:
    for place in range(3):
        part = int.from_bytes(data[4 * place : 4 * place + 4], "little")
        words[place] = (words[place] + part) & _WORD


def _mix(words: list[int]) -> None:
    for bits, changed, mixed, third in _MIX:
        words[changed] = ((words[changed] - words[mixed]) & _WORD) ^ _rotated(words[mixed], bits)
        words[mixed] = (words[mixed] + words[third]) & _WORD


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
