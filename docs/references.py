"""Pages of the site that are written from the code: the job file from its schema, the Python names from their help."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "jobs/papers"))

from run import PAPERS as EXPERIMENTS

import dpmask

PAPERS = """# The papers, table by table

dpmask implements five papers. Every table, and every figure with data, comes by one command. It prints our numbers beside the published ones, with the reason where they differ:

```sh
python jobs/papers/run.py
python jobs/papers/run.py torra-2020 table-3
python jobs/papers/run.py fung-2009 figure-10 --quick
```

Without names it lists what there is. The data are looked for in the folder that `DPMASK_REFERENCE_DATA` names; a message says what is missing and where it comes from.
What follows was printed and drawn by these commands. Each says over which parameters and seeds it was run; one that was run with `--quick`, on fewer of them, ends with a line that says so.
"""

OPEN = """# What the papers left open

The five papers end with questions. These are our answers, by experiments of our own. Each page shows what was run, and says what follows from it. `dpmask sweep` without `--over` chooses the parameters that it tries by
these results, and prints the reason ([choosing parameters](../../dpmask/guide/sweep.md)).

| question | answer |
|---|---|
| Which m1 and m2 for a wanted risk? (Torra 2020) | Leave them at their defaults, and choose the risk by k |
| Is kappa1 = kappa2 meaningful, and which kappa? (Torra, Endo, Miyamoto 2009) | Yes, and only equal ones are. Use 0, unless the data have errors of a known size |
| Does a generic information loss show what clusters lose? (the same) | IL1s does about, PIL less. If clusters matter, measure them |
| Fuzzy c-regression with a degenerate design, and c by the score? (Cano, Torra 2009) | A singular design does no harm. The score cannot choose c: take the fewest models whose loss is acceptable |
| Which guide, and how many clusters, if the recipient's algorithm is unknown? (Fung et al. 2009) | About six clusters, by either algorithm; never distortion |

```sh
python jobs/papers/run.py open-questions guides
```
"""
GALLERY = """# Gallery: all methods beside each other

Risk against loss of every method for numbers at several parameters, on four tables: the CASC test sets census, tarragona and EIA, and the numbers of Adult. First comes one map of all four with the frontier,
then each table with all parameters and the score 0.5 PIL + 0.5 DR. One command runs and draws all of it:

```sh
python jobs/papers/run.py gallery
```

[Which method when](../choosing.md) helps to choose a method for your own table; [words](../../dpmask/guide/words.md) explains the terms.
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


def papers() -> dict[str, str]:
    """A page for each of the five papers, with all its sheets, and one that leads to them."""
    titles = {name: title for name, title in EXPERIMENTS.items() if name not in {"open-questions", "gallery"}}
    pages = {name: "\n".join([f"# {title}", "", *sheets(name)]) for name, title in titles.items()}
    return {"papers": _leading(PAPERS, pages), **pages}


def open_questions() -> dict[str, str]:
    """A page for each question, and one that leads to them."""
    pages = {path.stem: _sheet(path, "#") for path in _files("open-questions")}
    return {"open_questions": _leading(OPEN, pages), **pages}


def gallery() -> dict[str, str]:
    """One page, the map of all tables first."""
    return {"gallery": "\n".join([GALLERY, *sheets("gallery")])}


def _leading(introduction: str, pages: Iterable[str]) -> str:
    return "\n".join([introduction, "```{toctree}", ":maxdepth: 1", *pages, "```", ""])


def sheets(name: str) -> list[str]:
    """What jobs/papers/run.py left in docs/papers of a paper: the text and the figures of each, each note once."""
    shown: set[str] = set()
    return [_sheet(path, "##", shown) for path in _files(name)]


def _files(name: str) -> list[Path]:
    return sorted(
        (HERE / "papers").glob(f"{name}-*.txt"), key=lambda path: (not path.stem.endswith("-map"), _place(path))
    )


def _sheet(path: Path, level: str, shown: set[str] | None = None) -> str:
    """One table or figure: title, notes but those that were shown before, pictures, numbers."""
    title, table, *notes = path.read_text(encoding="utf-8").rstrip().split("\n\n")
    every = [one for some in notes for one in re.split(r"(?m)^(?=\* )", some) if one.strip()]
    new = [one for one in every if shown is None or one.strip() not in shown]
    text = [f"{level} {title}", "", _as_list("".join(new))]
    if len(new) < len(every):
        text.append("Other notes are as above.\n")
    if shown is not None:
        shown.update(one.strip() for one in every)
    pictures = sorted(path.parent.glob(f"{path.stem}.svg")) + sorted(path.parent.glob(f"{path.stem}-[0-9].svg"))
    text += [f"![{title}](../papers/{picture.name})\n" for picture in pictures]
    return "\n".join([*text, "```text", table, "```", ""])


def _as_list(notes: str) -> str:
    """Notes of a sheet, in Markdown."""
    return re.sub(r"(?m)^\\\*", "*", re.sub(r"([*_|<>])", r"\\\1", notes)) + "\n"
