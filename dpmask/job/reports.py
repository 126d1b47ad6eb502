"""What a run writes into its private folder for people: the internal report, its numbers, the riskiest records."""

from __future__ import annotations

import json

from dpmask.job.account import Account
from dpmask.lake.storage import Place
from dpmask.measures.risk.exposed import Exposure
from dpmask.report.compared import ComparedTables
from dpmask.report.numbers import csv_of, report_numbers
from dpmask.report.page import records_page, report_page

REPORT = "report.html"
RECORDS = "records.html"
NUMBERS = "report.json"
TABLE = "report.csv"


def write_reports(folder: Place, found: Account, compared: ComparedTables, exposure: Exposure | None) -> None:
    """All of them; an earlier run's page of records goes where there is none any more."""
    records, learned = (exposure.records, exposure.given_away) if exposure else ((), None)
    numbers = report_numbers(vars(found), compared, learned, records)
    (folder / NUMBERS).write(json.dumps(numbers, indent=1, ensure_ascii=False).encode())
    (folder / TABLE).write(csv_of(numbers).encode())
    if records:
        (folder / RECORDS).write(records_page(found.name, found.run, found.rows, records).encode())
    elif RECORDS in folder.files():
        folder.remove([RECORDS])
    (folder / REPORT).write(report_page(vars(found), compared, learned, records).encode())
