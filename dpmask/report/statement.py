"""The readable statement that goes with a release: what was done to the data, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def statement(public: Mapping[str, Any], identity: str) -> str:
    """The statement in Markdown, from the public part of the account."""
    masked = [column["name"] for column in public["schema"] if column["masked"]]
    plain = [column["name"] for column in public["schema"] if not column["masked"]]
    parts = [
        f"# {public['name']}",
        f"{public['rows']:,} records, release {identity}, made with dpmask {public['dpmask']}.",
    ]
    if public["key"]["experiment"]:
        parts.append("**Made with a seed, for an experiment: whoever knows the seed can undo the masking.**")
    parts.append("## What was done to the data")
    parts += [f"{number}. {step['statement']}" for number, step in enumerate(public["steps"], start=1)]
    parts.append(f"Masked columns: {', '.join(masked) or 'none'}. Released as they were: {', '.join(plain) or 'none'}.")
    if public["dropped"]:
        parts.append(f"Removed: {', '.join(public['dropped'])}.")
    if public["order"] == "shuffled":
        parts.append("The records of each file were put into a random order.")
    if public["information_loss"]:
        parts.append("## What was lost")
        parts += [_loss(one) for one in public["information_loss"]]
    if public["policy"]:
        parts.append("## Rules of the data holder that the release satisfies")
        parts += [f"* `{rule['rule']}`" for rule in public["policy"]]
    parts += [
        "## How to check this release",
        "`dpmask verify FOLDER` re-reads every file and recomputes what `manifest.json` claims.",
    ]
    return "\n\n".join(parts) + "\n"


def _loss(measured: Mapping[str, Any]) -> str:
    """One measure: its name, what it found, and its parts."""
    parts = ", ".join(f"{name} {value:.4g}" for name, value in measured["values"].get("parts", {}).items())
    return f"* `{measured['name']}`: {measured['explanation']}" + (f" ({parts})" if parts else "")
