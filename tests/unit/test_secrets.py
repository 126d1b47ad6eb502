"""Secrets: weak ones are refused, and guessing one is expensive."""

import hashlib
import secrets
import time

import pytest

from dpmask.engine.draws import make_key
from dpmask.engine.secrets import new_secret, require_strong, stretched
from dpmask.errors import JobError

WEAK = {
    "short": ("6b0d1c88a4e94f53b1f2d7a9c05e3f6", "at least 32 characters; got 31"),
    "zeros": (32 * "0", "1 different characters"),
    "few characters": (8 * "0110" + "232", "4 different characters"),
    "a pattern": (4 * "k3Q!x9_b", "repeats itself"),
    "a pattern, cut": ((4 * "0123456789abcdef")[:61], "repeats itself"),
    "the alphabet": ("abcdefghijklmnopqrstuvwxyz0123456789", "is a sequence"),
    "words": ("correct horse battery staple and more", "made of words"),
    "words and a year": ("Statistical-Office-Of-The-Land-2026", "made of words"),
    "one long word": ("statisticalofficeofthelandandthesea!", "made of words"),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_secrets_are_refused_with_how_to_make_one(name):
    secret, reason = WEAK[name]
    with pytest.raises(JobError) as caught:
        require_strong(secret.encode(), "key")
    assert reason in str(caught.value)
    assert "Make one: openssl rand -hex 32" in str(caught.value)
    assert secret not in str(caught.value)


def test_random_secrets_are_accepted():
    for _ in range(300):
        require_strong(new_secret().encode(), "key")
        require_strong(secrets.token_hex(16).encode(), "key")
        require_strong(secrets.token_bytes(32), "key")


def test_a_secret_is_stretched_by_scrypt():
    """RFC 7914's function at the stated cost, under the salt of the release: what a guess costs an intruder."""
    salt = "00112233445566778899aabbccddeeff"
    expected = hashlib.scrypt(b"s", salt=bytes.fromhex(salt), n=2**15, r=8, p=1, maxmem=2**26, dklen=32)
    start = time.process_time()
    assert stretched(b"s", bytes.fromhex(salt)) == expected
    assert time.process_time() - start > 0.02


def test_a_salt_gives_another_key_and_another_fingerprint():
    secret = new_secret()
    one, other = (make_key("k", key=secret, salt=salt) for salt in ("00" * 16, "01" * 16))
    trial = make_key("k", key=secret)
    assert len({one.fingerprint, other.fingerprint, trial.fingerprint}) == 3
    assert (one.salt, one.trial, trial.trial, make_key("k", seed=1).trial) == ("00" * 16, False, True, True)
