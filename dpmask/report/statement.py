"""The readable statement that goes with a release: what was done to the data, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpmask.errors import printable

_LONGEST = 1_000_000

ORDERS = {
    "shuffled": "The records were put into a random order over all files of the release.",
    "within_files": "The records of each file were put into a random order; the files follow the source.",
    "input": "The records are in the order of the source.",
}


def statement(public: Mapping[str, Any], identity: str) -> str:
    """The statement in Markdown, from the public part of the account."""
    masked = [column["name"] for column in public["schema"] if column["masked"]]
    plain = [column["name"] for column in public["schema"] if not column["masked"]]
    parts = [
        f"# {public['name']}",
        f"{public['rows']:,} records, release {identity}, made with dpmask {public['dpmask']}.",
    ]
    if public["trial"]:
        parts.append(
            "**TRIAL, not a release. Its key may be a number that is easily guessed; then the masking can be undone.**"
        )
    parts.append("## What was done to the data")
    parts += [f"{number}. {step['statement']}" for number, step in enumerate(public["steps"], start=1)]
    parts.append(f"Masked columns: {', '.join(masked) or 'none'}. Released as they were: {', '.join(plain) or 'none'}.")
    if public["dropped"]:
        parts.append(f"Removed: {', '.join(public['dropped'])}.")
    parts.append(ORDERS[public["order"]])
    if public.get("partition_by"):
        parts.append(
            f"The files lie in folders by {', '.join(public['partition_by'])}, which hold nothing but these values; "
            "how many records have each can be counted in the rows, too."
        )
    advice = [line for step in public["steps"] for line in step.get("for_analysts", ())]
    if advice:
        parts += ["## Using the data", *(f"* {line}" for line in advice)]
    if public["information_loss"]:
        parts.append("## What was lost")
        parts += [_loss(one) for one in public["information_loss"]]
    if public["policy"]:
        parts.append("## Rules of the data holder that the release satisfies")
        parts += [f"* `{rule['rule']}`{_about(rule['columns'])}" for rule in public["policy"]]
    if public["accepted"]:
        parts.append("## Released as it is, by a decision of the data holder")
        parts += [f"* {name}: {reason}" for name, reason in public["accepted"].items()]
    parts += ["## What this does not promise", "See `dpmask explain promises`."]
    parts += [
        "## How to check this release",
        "`dpmask verify FOLDER` re-reads every file and recomputes what `manifest.json` claims.",
    ]
    return "\n\n".join(map(_markdown, parts)) + "\n"


def _markdown(text: str) -> str:
    """A paragraph in which no name is obeyed: no line breaks, tags or links, and no bidi characters."""
    return printable(text, _LONGEST).replace("<", "&lt;").replace("](", "]\\(")


def _about(columns: Sequence[str]) -> str:
    """The columns that a rule is about."""
    return f", about {', '.join(columns)}" if columns else ""


def _loss(measured: Mapping[str, Any]) -> str:
    """One measure: its name, what it found, and its parts."""
    parts = ", ".join(f"{name} {value:.4g}" for name, value in measured["values"].get("parts", {}).items())
    return f"* `{measured['name']}`: {measured['explanation']}" + (f" ({parts})" if parts else "")
