"""Secrets: which are strong enough, how one is made, and how one is stretched so that guessing it is expensive.

scrypt (RFC 7914) with N = 2^15, r = 8, p = 1: 32 MB of memory and about 0.1 s for each guess, and under the random salt
of a release for each release anew.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from functools import lru_cache
from itertools import pairwise

from dpmask.errors import JobError

HOW_TO_MAKE = "openssl rand -hex 32"
"""The line that makes a key."""
SALT_BYTES = 16
_COST, _BLOCK_SIZE, _MEMORY = 1 << 15, 8, 1 << 26
_SHORTEST = 32
_FEWEST_DISTINCT = 8
_PIECE = 4
_REPEATED, _NEIGHBOURS = 0.25, 0.5
_WORDS = re.compile(r"[\W\d_]*[^\W\d_]+(?:[\s._,;:'-]+[^\W\d_]+)*[\W\d_]*")


def new_secret() -> str:
    """A random secret of 256 bits."""
    return secrets.token_hex(32)


@lru_cache(maxsize=16)
def stretched(secret: bytes, salt: bytes) -> bytes:
    """The 256 bits that a secret gives under a salt."""
    return hashlib.scrypt(secret, salt=salt, n=_COST, r=_BLOCK_SIZE, p=1, maxmem=_MEMORY, dklen=32)


def require_strong(secret: bytes, who: str) -> None:
    """Refuse a secret that is not random enough for 128 bits, as far as that can be seen. No message shows it."""
    weakness = _weakness(secret.decode("latin-1"))
    if weakness:
        raise JobError(f"{who}: the key must be random, of at least 128 bits; {weakness}. Make one: {HOW_TO_MAKE}")


def _weakness(text: str) -> str | None:
    """What makes a text easier to guess than random characters, if anything does."""
    if len(text) < _SHORTEST:
        return f"it must have at least {_SHORTEST} characters; got {len(text)}"
    if len(set(text)) < _FEWEST_DISTINCT:
        return f"this one has {len(set(text))} different characters"
    pieces = [text[at : at + _PIECE] for at in range(len(text) - _PIECE + 1)]
    if len(set(pieces)) < (1 - _REPEATED) * len(pieces):
        return "this one repeats itself"
    steps = sum(abs(ord(one) - ord(next_one)) <= 1 for one, next_one in pairwise(text))
    if steps > _NEIGHBOURS * len(text):
        return "this one is a sequence"
    return "this one is made of words" if _WORDS.fullmatch(text) else None
