"""The code blocks of a text: fenced ones with their language, and those of the guide that are indented by four."""

import re
from typing import NamedTuple

COMMANDS = ("dpmask ", ".venv/bin/", "python ", "export ", "openssl ", "kubectl ", "jq ", "MONTH=", "HATCH")
KEYS = (
    "name|source|target|private|series|columns|missing|accept|mask|measure|policy|publish|metadata|new|csv|requirements"
)


class Block(NamedTuple):
    kind: str
    line: int
    text: str


def blocks(text):
    """All blocks of a text, in order; the kind of an indented one, or one without language, is seen from what is in it."""
    found, lines, place = [], text.split("\n"), 0
    while place < len(lines):
        if lines[place].startswith("```"):
            end = next(number for number in range(place + 1, len(lines)) if lines[number].startswith("```"))
            body = "\n".join(lines[place + 1 : end])
            found.append(Block(lines[place].strip("`{} ").split("}")[0] or kind(body), place + 1, body))
            place = end + 1
        elif lines[place].startswith("    ") and not lines[place - 1].strip():
            end = place
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            found += _parted([line[4:] for line in lines[place:end]], place + 1)
            place = end
        else:
            place += 1
    return found


def _parted(lines, first):
    """Commands, and what they print after an empty line, are blocks of their own."""
    found, start = [], 0
    for place in [*(place for place, line in enumerate(lines) if not line), len(lines)]:
        body = "\n".join(lines[start:place]).strip("\n")
        if body and found and "sh" not in {found[-1].kind, kind(body)}:
            before = found.pop()
            body = f"{before.text}\n\n{body}"
            found.append(Block(kind(body), before.line, body))
        elif body:
            found.append(Block(kind(body), first + start, body))
        start = place
    return found


def kind(body):
    """Commands, lines of a job file, Python, or something else: what is printed, a formula."""
    if body.startswith(COMMANDS):
        return "sh"
    if re.match(rf"({KEYS}):", body):
        return "yaml"
    try:
        compile(body, "block", "exec")
    except SyntaxError:
        return "text"
    return "python" if re.search(r"\bdpmask\b", body) else "text"
