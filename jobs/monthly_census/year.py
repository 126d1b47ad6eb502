"""A year of monthly releases of a table that grows, as a series and without one: python jobs/monthly_census/year.py

In each month month.yaml is run twice, on the same people: as a release of its series, and, elsewhere, as one that knows
of no other. Printed are the least number of people that anybody is left among by all releases so far, which dpmask
counts for the series, and how many are left among fewer than k: those whose groups in all releases have fewer records
in common, and those who are new and among fewer rows that an earlier release has not. Run it above jobs.
"""

import argparse
import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dpmask
from dpmask.cli import main as run_dpmask
from dpmask.lake.generate import generate_lake

JOB, FOLDER = "jobs/monthly_census/month.yaml", Path("out/monthly_census")
QUASI, BESIDE = ["age", "sex", "region"], ["occupation"]
ALONE = {"series": "null", "target": f"{FOLDER}/alone/${{MONTH}}/", "private": f"{FOLDER}/alone/private/"}


def released(month: str, k: int, changes: dict[str, str]) -> Path:
    """Run the job of a month; the private folder of the run."""
    settings = {"mask[0].requirements[0].k": str(k), "policy[1]": f"gate.smallest >= {k}", **changes}
    os.environ["MONTH"] = month
    command = ["run", JOB, "--json", *(part for key, value in settings.items() for part in ("--set", f"{key}={value}"))]
    printed, errors = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(errors):
            run_dpmask(command)
    except SystemExit as end:
        if end.code:
            sys.exit(f"{month}: dpmask ended with {end.code}\n{errors.getvalue()}")
    return Path(json.loads(printed.getvalue())["report"].removeprefix("file://")).parent


def by_position(release: Path, private: Path) -> pd.DataFrame:
    """A release in the order of its source, by the pairing that only the data holder has."""
    rows = [
        pq.read_table(file).to_pandas().set_index(pq.read_table(private / "pairing" / file.name)["position"].to_numpy())
        for file in sorted(release.glob("data/*/*.parquet"))
    ]
    return pd.concat(rows).sort_index()


def below(people: pd.DataFrame, releases: list[pd.DataFrame], k: int) -> int:
    """How many people of the newest release are left among fewer than k by all of them."""
    if len(releases) == 1:
        return 0
    *earlier, newest = releases
    found = dpmask.risk.differencing(people, newest, earlier=earlier[::-1], labels=QUASI, beside=BESIDE, k=k)
    new = max(
        round(found.parts[f"new since release -{number}"] * (len(newest) - len(one)))
        for number, one in enumerate(earlier[::-1], 1)
    )
    return round(found.intersected * len(earlier[-1])) + new


def least(private: Path) -> int:
    """What dpmask counted for the series, or the smallest group of its first release."""
    figures: dict[str, Any] = json.loads((private.parent / "result.json").read_text())["steps"][0]["figures"]
    sizes = [one["least"] for one in figures.get("series") or ()]
    return min(sizes, default=figures["smallest"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--people", type=int, default=20_000, help="how many there are in the last month")
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--until", type=int, help="how many of these months are run; all by default")
    parser.add_argument("--k", type=int, default=100)
    asked = parser.parse_args()
    if FOLDER.exists():
        sys.exit(f"{FOLDER} is there already. Move it away: a ledger is never begun anew.")
    generate_lake(f"{FOLDER}/census", rows=asked.people, files=1, seed=1, nulls=False)
    everybody = dpmask.read_lake(f"{FOLDER}/census").to_dask().compute()
    series: list[pd.DataFrame] = []
    alone: list[pd.DataFrame] = []
    print(f"{'month':<9}{'people':>8}{'least':>7}{f'below {asked.k}':>11}{'alone: below':>14}")
    before = 0
    for number in range(asked.until or asked.months):
        month = f"{2026 + number // 12}-{number % 12 + 1:02d}"
        now = asked.people * (70 + 30 * (number + 1) // asked.months) // 100
        folder = FOLDER / f"lake/joined={month}"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(everybody[before:now], preserve_index=False), folder / "people.parquet")
        before, people = now, everybody[:now].reset_index(drop=True)
        private = released(month, asked.k, {})
        series.append(by_position(FOLDER / month, private))
        alone.append(by_position(FOLDER / "alone" / month, released(month, asked.k, ALONE)))
        few = [below(people, releases, asked.k) for releases in (series, alone)]
        print(f"{month:<9}{now:>8,}{least(private):>7}{few[0]:>11,}{few[1]:>14,}", flush=True)


if __name__ == "__main__":
    main()
