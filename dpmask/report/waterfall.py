"""Why a record is at risk, as a chart: how many released rows may be its own as the intruder learns one more column."""

from __future__ import annotations

from markupsafe import Markup

from dpmask.measures.risk.exposed import ExposedRecord
from dpmask.report.svg_parts import (
    AFTER,
    BEFORE,
    AxisScale,
    across,
    chart,
    mark_text,
    rect,
    room,
    share_text,
    shortened,
    tick_text,
)


def waterfall_chart(record: ExposedRecord) -> Markup:
    """A bar for each step, from all rows to those that are left, by ratios: each begins where the last one ended."""
    names = ["nothing known", *(f"+ {shortened(step.column, 24)}" for step in record.steps)]
    left, step, width = room(names), 24, 300
    bottom = len(names) * step + 4
    x = AxisScale(1.0, max(record.rows, 2), left, left + width, logarithmic=True)
    marks = list(across([(x(one), tick_text(one)) for one in x.ticks(6)], 2, bottom))
    before = record.rows
    marks.append(mark_text(left - 6, step / 2 + 2, names[0], "end"))
    marks.append(rect(left, 5, max(x(record.rows) - left, 2), step - 8, f'fill="{BEFORE}"'))
    marks.append(mark_text(x(record.rows) + 6, step / 2 + 2, f"{record.rows:,}", "start"))
    for place, (name, one) in enumerate(zip(names[1:], record.steps, strict=True), start=1):
        y, ends = (place + 0.5) * step + 2, sorted((x(one.candidates), x(before)))
        marks.append(mark_text(left - 6, y, name, "end"))
        marks.append(rect(ends[0], y - step / 2 + 3, max(ends[1] - ends[0], 2), step - 8, f'fill="{AFTER}"'))
        chance = f", found with {share_text(one.chance)}" if one.chance else ""
        marks.append(mark_text(ends[1] + 6, y, f"{one.candidates:,}{chance}", "start"))
        before = one.candidates
    marks.append(mark_text(left + width / 2, bottom + 32, "rows that fit at least as well as the own", "middle"))
    label = f"Record {record.position}: rows that may be its own, as one more column is known"
    return chart(marks, left + width + 160, bottom + 42, label)
