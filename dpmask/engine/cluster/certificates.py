"""A private certificate authority and its certificates, for a Dask cluster that talks TLS."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dpmask.errors import AccessError, JobError, StorageError, TargetError

ROLES = ("scheduler", "worker", "client")
"""Who takes part in a cluster: each shows a certificate of the authority, and refuses whoever has none."""


class _Identity(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def make_certificates(folder: str, days: int = 365) -> list[str]:
    """Write ``ca.pem``, and a certificate and a key for each role; the paths written. Nothing is ever overwritten.

    The authority's own key is used here and thrown away: nobody, not even a thief of the folder, can make further
    certificates. To let somebody new in, or to shut somebody out, make a new folder and hand that out.
    """
    if days < 1:
        raise JobError(f"Certificates must last a day or more; got {days}.")
    authority = _issued("dpmask private authority", days, None)
    files = {"ca.pem": authority.certificate.public_bytes(Encoding.PEM)}
    for role in ROLES:
        issued = _issued(f"dpmask {role}", days, authority)
        files[f"{role}.pem"] = issued.certificate.public_bytes(Encoding.PEM)
        files[f"{role}-key.pem"] = issued.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return list(_written(folder, files))


def _issued(name: str, days: int, authority: _Identity | None) -> _Identity:
    """A fresh key with its certificate, signed by the authority; without one, by itself, as an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    # TLS looks an issuer up by its name: those of two authorities must differ
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} {uuid.uuid4().hex[:8]}")])
    issuer, signing = (authority.certificate.subject, authority.key) if authority else (subject, key)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None if authority else 0), critical=True)
        .add_extension(_usage(is_authority=authority is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    if authority:  # who takes part in a cluster both calls and is called
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(both, critical=False)
    return _Identity(key, builder.sign(signing, hashes.SHA256()))


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _written(folder: str, files: dict[str, bytes]) -> Iterator[str]:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if there := sorted(set(os.listdir(folder)) & set(files)):
            raise TargetError(f"{folder}: {there[0]} is there already, nothing was changed. Name another folder.")
        for name, content in files.items():
            path = os.path.join(folder, name)
            # made for its owner alone, and only if it is not there
            mode = 0o600 if name.endswith("-key.pem") else 0o644
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
            yield path
    except PermissionError:
        raise AccessError(f"{folder}: no permission to write there.") from None
    except (FileExistsError, NotADirectoryError):
        raise TargetError(f"{folder}: a file is in the way. Name another folder.") from None
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written to ({error.strerror}).") from None
