"""Descriptions of a release for catalogues and archives: Croissant, DCAT and DDI Codebook.

Each is built from the manifest's public facts alone, so that the same release has the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dpmask.report.metadata.croissant import croissant
from dpmask.report.metadata.dcat import dcat
from dpmask.report.metadata.ddi import ddi
from dpmask.report.metadata.facts import ReleaseFacts


def metadata_files(public: Mapping[str, Any], identity: str, files: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """Kinds and bytes of the descriptions, from the public account of a run and its files as the manifest has them."""
    facts = ReleaseFacts(public, identity, files)
    return {
        "croissant": _as_json(croissant(facts)),
        "dcat": _as_json(dcat(facts)),
        "ddi": ddi(facts),
    }


def _as_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
