"""Pages of the site that are written from the code: the job file from its schema, the Python names from their help."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpmask

HERE = Path(__file__).parent
PAPERS = """# The papers, table by table

dpmask implements five papers. Every table, and every figure with data, comes by one command, ours beside what is printed, with the reason where they differ:

```sh
python jobs/papers/run.py
python jobs/papers/run.py torra-2020 table-3
python jobs/papers/run.py fung-2009 figure-10 --quick
```

Without names it lists what there is. The data are looked for in the folder that `DPMASK_REFERENCE_DATA` names; a message says what is missing and where it comes from.
What follows was printed and drawn by these commands, the figures of Fung et al. with `--quick`: fewer thresholds and seeds.
"""

OPEN = """# What the papers left open

The five papers end with questions. Here are answers by experiments of our own, each by one command. Generic and specific losses were compared with `--quick`.

```sh
python jobs/papers/run.py open-questions guides
```
"""
GALLERY = """# Gallery: all methods beside each other

One map for each table: risk against loss of every method of numbers at several parameters, by one command each; tables other than census with `--quick`.

```sh
python jobs/papers/run.py gallery census
```
"""


def _kind(field: dict[str, Any]) -> str:
    """The type of a field in a few words."""
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(one) for one in field["anyOf"] if one.get("type") != "null"))
    if field.get("type") == "array":
        inner = _kind(field.get("items", {}))
        return f"list of {inner}" if inner != "anything" else "list"
    return field.get("type", "anything")


def _rows(properties: dict[str, Any], required: list[str], *, described: bool) -> list[str]:
    lines = [
        "| key | type | by default |" + (" meaning |" if described else ""),
        "|---|---|---|" + ("---|" if described else ""),
    ]
    for name, field in properties.items():
        default = (
            "required"
            if name in required
            else f"`{json.dumps(field['default'])}`"
            if field.get("default") is not None
            else ""
        )
        line = f"| `{name}` | {_kind(field)} | {default} |"
        lines.append(line + (f" {field.get('description', '').replace('|', '/')} |" if described else ""))
    return lines


def _steps(schema: dict[str, Any], word: str) -> list[str]:
    lines = []
    for step in schema["items"]["oneOf"]:
        rest = {name: field for name, field in step["properties"].items() if name != word}
        name = step["properties"][word]["const"]
        lines += [
            "",
            f"### `{word}: {name}`",
            "",
            f"The page [{name}](../../dpmask/guide/{name}.md) says what each means.",
            "",
        ]
        lines += _rows(rest, step.get("required", []), described=False)
    return lines


def job_file() -> str:
    """The job file, from the schema that dpmask schema prints."""
    printed = subprocess.run(
        [sys.executable, "-m", "dpmask", "schema"], capture_output=True, check=True, text=True
    ).stdout
    schema = json.loads(printed)
    fields = schema["properties"]
    text = [
        "# Reference: the job file",
        "",
        "Written from `dpmask schema`. [The job file](../../dpmask/guide/job.md) explains it.",
        "",
        "## Keys",
        "",
    ]
    text += _rows(fields, schema["required"], described=True)
    for name, part in schema["$defs"].items():
        text += [
            "",
            f"## {name}",
            "",
            part.get("description", ""),
            "",
            *_rows(part["properties"], part.get("required", []), described=True),
        ]
    text += [
        "",
        "## Masking steps",
        *_steps(fields["mask"], "method"),
        "",
        "## Measures",
        *_steps(fields["measure"], "measure"),
    ]
    return "\n".join(text) + "\n"


def _documented(title: str, module: str, names: list[str], kind: str) -> list[str]:
    lines = ["", f"## {title}", ""]
    for name in names:
        which = kind if kind != "any" else "class" if isinstance(getattr(dpmask, name), type) else "function"
        options = ["   :members: fit"] if which == "class" and name != "Lake" else []
        lines += ["```{eval-rst}", f".. auto{which}:: {module}.{name}", *options, "```", ""]
    return lines


def python_api() -> str:
    """All public names, with their help."""
    plain = [name for name in dpmask.__all__ if name not in {"risk", "utility", "__version__"}]
    text = ["# Reference: Python", "", "Written from the help of all public names."]
    text += _documented("dpmask", "dpmask", sorted(plain), "any")
    text += _documented("dpmask.risk", "dpmask.risk", sorted(dpmask.risk.__all__), "function")
    text += _documented("dpmask.utility", "dpmask.utility", sorted(dpmask.utility.__all__), "function")
    return "\n".join(text) + "\n"


def _place(path: Path) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]


def sheets(introduction: str, *names: str) -> str:
    """What jobs/papers/run.py left in docs/papers: the text and the figures of each."""
    text = [introduction]
    for path in sorted((path for name in names for path in (HERE / "papers").glob(f"{name}-*.txt")), key=_place):
        title, table, *notes = path.read_text(encoding="utf-8").rstrip().split("\n\n")
        pictures = sorted(path.parent.glob(f"{path.stem}.svg")) + sorted(path.parent.glob(f"{path.stem}-[0-9].svg"))
        text += [f"## {title}", "", *map(_as_list, notes)]
        text += [f"![{title}](../papers/{picture.name})\n" for picture in pictures]
        text += ["```text", table, "```", ""]
    return "\n".join(text)


def _as_list(notes: str) -> str:
    """Notes of a sheet, in Markdown."""
    return re.sub(r"(?m)^\\\*", "*", re.sub(r"([*_|<>])", r"\\\1", notes)) + "\n"
