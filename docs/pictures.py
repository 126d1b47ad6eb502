"""The pictures of the worked releases, from real runs.

python docs/pictures.py generates a census of 20,000 people in a new folder, releases it by the three jobs, and keeps charts of the internal
reports as docs/releases/*.svg. Half a minute.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
JOBS = {
    "survey": HERE.parent / "jobs/household_survey/job.yaml",
    "income": HERE.parent / "jobs/household_income/job.yaml",
    "categorical": HERE / "releases/categorical.yaml",
}
CHARTS = {
    "survey": {"age": "age: share", "net": "net: share", "attacks": "Rates of attacks"},
    "income": {"net": "net: share", "tax": "tax: share", "attacks": "Rates of attacks"},
    "categorical": {"education": "education: share", "age": "age: share", "attacks": "Rates of attacks"},
}


def dpmask(*words: str) -> str:
    """Run a command; what it printed."""
    command = [sys.executable, "-m", "dpmask", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def standing_alone(svg: str) -> str:
    """A chart of a page as a file of its own: on white, in dark letters."""
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()  # type: ignore[union-attr]
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
    backdrop = f'<rect width="{width}" height="{height}" fill="white"/>'
    body = svg.replace("<svg ", opening, 1).replace("currentColor", "#222222")
    return body.replace("</title>", f"</title>{backdrop}", 1)


def main() -> None:
    """Run the jobs and keep the charts."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("jobs").symlink_to(HERE.parent / "jobs")
        dpmask("generate", "lake/", "--rows", "2e4")
        for name, job in JOBS.items():
            printed = dpmask("run", str(job))
            report = Path(re.search(r"Internal report: (.*)", printed)[1]).read_text(encoding="utf-8")  # type: ignore[index]
            for picture, label in CHARTS[name].items():
                svg = re.search(rf'<svg [^>]*aria-label="{re.escape(label)}.*?</svg>', report, re.DOTALL)
                assert svg is not None, f"{name}: no chart {label}"
                (HERE / f"releases/{name}-{picture}.svg").write_text(standing_alone(svg[0]), encoding="utf-8")


if __name__ == "__main__":
    main()
