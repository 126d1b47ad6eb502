"""Draws that belong to a record, not to a worker.

The keystream of AES-256 in counter mode, under a subkey made for one purpose, is read as 64-bit words; the word at a
record's position is that record's draw. So a draw does not depend on blocks, workers, retries or their order, and who
does not hold the key cannot repeat it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpmask.engine.secrets import require_strong, stretched
from dpmask.errors import JobError
from dpmask.kernels.normal import normals_of, uniforms_of
from dpmask.kernels.shuffle import places_in_order

_AES_BLOCK = 16
_WORDS_PER_AES_BLOCK = 2
_TRIAL = b"dpmask trial"
_TILE = 1 << 15


@dataclass(frozen=True, repr=False)
class Subkey:
    """A key for one purpose: all that ever travels to a worker. Its repr is a fingerprint."""

    secret: bytes
    bound: bool = False
    """Whether it is bound to the content of a table (dpmask.table.content), as all draws that mask must be."""
    purposes: tuple[str, ...] = field(default=(), compare=False)
    """Of a bound one: the purposes it was narrowed to since ``rooted``, so that another root gives its counterpart."""

    @property
    def fingerprint(self) -> str:
        """A public name for the subkey that does not reveal it."""
        return hmac.digest(self.secret, b"fingerprint", "sha256").hex()[:16]

    def __repr__(self) -> str:
        return f"<subkey {self.fingerprint}>"

    def subkey(self, purpose: str) -> Subkey:
        """The key for a narrower purpose."""
        secret = hmac.digest(self.secret, b"purpose\0" + purpose.encode(), "sha256")
        return Subkey(secret, self.bound, (*self.purposes, purpose) if self.bound else ())

    def rooted(self) -> Subkey:
        """The same as a root: what is derived from it counts its purposes from here."""
        return Subkey(self.secret, self.bound)


@dataclass(frozen=True, repr=False)
class Key(Subkey):
    """The data holder's secret, stretched. It stays with the driver: pickling it is refused."""

    salt: str | None = None
    """The public salt of the release that it is for, in hex; a trial has none."""

    @property
    def trial(self) -> bool:
        """Whether what it draws is no release: the key is of a seed, or has no salt of its own."""
        return self.salt is None

    def __repr__(self) -> str:
        return f"<key {self.fingerprint}>"

    def __reduce__(self) -> Any:
        raise TypeError("A dpmask key never leaves the driver; send a subkey.")


def make_key(
    who: str, *, key: str | bytes | Subkey | None = None, seed: int | None = None, salt: str | None = None
) -> Subkey:
    """The key from a secret text or bytes, stretched, or from an integer seed for trials; exactly one of them.

    A release has a ``salt`` of its own; trials, and use from Python, which is one by nature, have always the same.
    """
    if (key is None) == (seed is None):
        found = "neither" if key is None else "both"
        raise JobError(f"{who}: give either key= (a secret) or seed= (an integer, for trials); got {found}.")
    if isinstance(key, Subkey):
        return key
    if key is not None:
        if not isinstance(key, str | bytes):
            raise JobError(f"{who}: key must be text or bytes; got {type(key).__name__}.")
        secret = key.encode() if isinstance(key, str) else key
        require_strong(secret, who)
        return Key(stretched(secret, _TRIAL if salt is None else bytes.fromhex(salt)), salt=salt)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise JobError(f"{who}: seed must be an integer; got {type(seed).__name__}.")
    return Key(hashlib.sha256(b"dpmask seed\0" + str(int(seed)).encode()).digest())


def keystream(secret: bytes, counter: int, length: int) -> bytes:
    """``length`` bytes of AES-CTR keystream, from the block with this 128-bit counter on."""
    cipher = Cipher(algorithms.AES(secret), modes.CTR(counter.to_bytes(_AES_BLOCK, "big")))
    return cipher.encryptor().update(bytes(length))


def record_words(key: Subkey, first: int, count: int) -> NDArray[np.uint64]:
    """One 64-bit word for each record position first..first+count-1."""
    counter, skip = divmod(first, _WORDS_PER_AES_BLOCK)
    stream = keystream(key.secret, counter, 8 * (skip + count))
    return np.frombuffer(stream, dtype="<u8")[skip:]


def chained(secret: bytes, state: NDArray[np.uint64], block: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """For each record (records x 2 words) the state after one more block: a step of CBC-MAC with AES-256."""
    cipher = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()  # noqa: S305 - chained by the caller
    mixed = np.frombuffer(cipher.update((state ^ block).reshape(-1).view(np.uint8).data), np.uint64)
    return mixed.reshape(-1, _WORDS_PER_AES_BLOCK)


def words_at(key: Subkey, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The words of records at any positions, as ``record_words`` has them: each counter is enciphered by itself."""
    cipher = Cipher(algorithms.AES(key.secret), modes.ECB()).encryptor()  # noqa: S305 - of counters: counter mode
    words = np.empty(len(positions), np.uint64)
    counters = np.zeros((min(len(positions), _TILE), _WORDS_PER_AES_BLOCK), dtype=">u8")
    for start in range(0, len(positions), _TILE):
        tile = positions[start : start + _TILE]
        counters[: len(tile), 1] = tile >> 1
        stream = np.frombuffer(cipher.update(counters[: len(tile)].reshape(-1).view(np.uint8).data), dtype="<u8")
        words[start : start + _TILE] = stream[_WORDS_PER_AES_BLOCK * np.arange(len(tile)) + (tile & 1)]
    return words


def uniforms_at(key: Subkey, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """The draws in (0, 1) of records at any positions."""
    draws = np.empty(len(positions))
    uniforms_of(words_at(key, positions), draws)
    return draws


def record_uniforms(key: Subkey, first: int, count: int) -> NDArray[np.float64]:
    """One draw in (0, 1) for each record position first..first+count-1."""
    return _in_tiles(key, first, np.empty(count), uniforms_of)


def record_normals(key: Subkey, first: int, count: int, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """One standard normal draw for each record position first..first+count-1, in ``out`` if that is given."""
    return _in_tiles(key, first, np.empty(count) if out is None else out, normals_of)


def _in_tiles(key: Subkey, first: int, draws: NDArray[np.float64], fill: Callable[..., None]) -> NDArray[np.float64]:
    """Draws made from words a tile at a time, so that the words stay in the cache."""
    for start in range(0, len(draws), _TILE):
        tile = draws[start : start + _TILE]
        fill(record_words(key, first + start, len(tile)), tile)
    return draws


def chosen_records(key: Subkey, rows: int, count: int) -> NDArray[np.int64]:
    """The positions of a simple random sample: the ``count`` records of 0..rows-1 with the smallest words, in order.

    Only words that may be among the smallest are kept on the way: ten standard deviations more than are needed.
    """
    share = (count + 10.0 * count**0.5 + 10.0) / rows
    enough = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
    positions, kept = [], []
    for first in range(0, rows, _TILE):
        words = record_words(key, first, min(_TILE, rows - first))
        small = np.flatnonzero(words <= enough)
        positions.append(first + small)
        kept.append(words[small])
    smallest = np.argsort(np.concatenate(kept), kind="stable")[:count]
    return np.sort(np.concatenate(positions)[smallest])


def shuffled(key: Subkey, first: int, count: int) -> NDArray[np.int64]:
    """The order in which the records at first..first+count-1 are released: new row i is old row result[i]."""
    return places_in_order(record_words(key, first, count))
