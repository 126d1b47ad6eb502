"""Two releases, with a person and without: what is public does not tell that person's value."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from conftest import people

LOSSES = [
    {"measure": "il1s", "columns": ["income", "age"]},
    {"measure": "moments", "columns": ["income", "age"]},
    {"measure": "correlations", "columns": ["income", "age"]},
    {"measure": "kolmogorov_smirnov", "columns": ["income"]},
    {"measure": "probabilistic_information_loss", "columns": ["income", "age"]},
]
KEPT = ["id", "age", "income"]
ROLES = {"identifier": ["id"], "plain": ["age", "income"]}  # which the gate does not link: that is not the question
NOISE = [{"method": "noise", "columns": ["income", "age"], "scale": 0.1}]
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


def with_person(income, rows):
    """So many people and, if there is an income, one more with it."""
    table = people(rows).select(KEPT)
    if income is None:
        return table
    one = pa.table({"id": [10**6], "age": pa.array([40], pa.int32()), "income": [float(income)]})
    return pa.concat_tables([table, one])


def published(place, income, rows=1000, **changes):
    """The manifest and the exact losses of a release with a person of such an income."""
    for folder in ("lake", "release", "private"):
        if (place.folder / folder).exists():
            (place.folder / folder).rename(place.folder / f"{folder}-{len(list(place.folder.iterdir()))}")
    place.lake(with_person(income, rows))
    job = {"columns": ROLES, "mask": NOISE, "measure": LOSSES, "block_rows": 500} | changes
    ended = place.run("--json", **job)
    assert ended.code == 0, ended.err
    manifest, _ = place.released()
    statement = next((place.folder / "release").rglob("statement.md")).read_text()
    page = next((place.folder / "release").rglob("report.html")).read_text()
    return manifest, {one["name"]: one["values"] for one in ended.json["measures"]}, statement, page


def losses(manifest):
    return {one["name"]: one["values"] for one in manifest["information_loss"]}


def lost(page):
    """What the page says was lost."""
    return page[page.index('id="lost"') : page.index('id="promises"')]


def public(seen):
    """All that a release says in numbers of what was lost: manifest, statement, page."""
    manifest, _, statement, page = seen
    return losses(manifest), NUMBER.findall(statement[statement.index("## What was lost") :]), lost(page)


@pytest.mark.parametrize(
    ("deviations", "rows", "shown"),
    [
        (0.5, 1000, True),
        (3, 1000, True),
        (10, 1000, True),
        (20, 1000, False),  # 29 % of the variance
        (20, 5000, True),  # 7 %
        (100, 1000, False),
    ],
)
def test_a_persons_value_is_not_told_to_five_percent(place, deviations, rows, shown):
    """Even who knows everybody else, and the draws, finds another value, 10 % away, with the very same public numbers."""
    income = np.array(people(rows)["income"])
    value, said = income.mean() + deviations * income.std(), {"publish": {"moments": True}}
    here, above, below = (published(place, value * factor, rows, **said) for factor in (1, 1.1, 0.9))
    assert len({json.dumps(exact["moments"]) for _, exact, _, _ in (here, above, below)}) == 3, "exact numbers tell it"
    assert public(here) in (public(above), public(below))
    found = losses(here[0])
    assert {bool(found[name]) for name in ("il1s", "moments", "correlations")} == {shown}
    assert found["kolmogorov_smirnov"], "shares of records are shown all the same"
    for text in (here[2], lost(here[3])):
        assert text.count("Not shown: one record weighs too much in it.") == (1 if shown else 4)


def test_removing_a_person_moves_no_public_number(place):
    income = np.array(people(1000)["income"])
    seen = [published(place, person) for person in (income.mean() + 3 * income.std(), None)]
    assert public(seen[0]) == public(seen[1])


def test_moments_of_originals_are_public_only_if_the_job_says_so(place):
    manifest, exact, statement, page = published(place, None)
    assert "moments" in exact
    assert "moments" not in losses(manifest)
    assert "Means moved" not in statement + page
    manifest, exact, _, _ = published(place, None, publish={"moments": True}, name="again")
    shown = losses(manifest)["moments"]["parts"]
    assert shown.keys() == exact["moments"]["parts"].keys()
    assert all(number == round(number, 1) for number in shown.values())
    assert "publish.moment" in place.run(publish={"moment": True}).err


def test_the_intruders_arithmetic_fails(place):
    """From changes of the means, with a person and without: n m - n' m' gives the value from exact numbers only."""
    income = np.array(people(1000)["income"])
    value, found = income.mean() + 5 * income.std(), {"exact": [], "public": []}
    for seed, person in ((7, value), (8, None)):
        manifest, exact, _, _ = published(place, person, publish={"moments": True}, name=f"p{seed}", seed=seed)
        masked = place.released()[1]["income"].to_numpy()
        for kind, parts in (("exact", exact["moments"]["parts"]), ("public", losses(manifest)["moments"]["parts"])):
            deviation = masked.std() / np.sqrt(1 + parts["income: variance"])
            found[kind].append(len(masked) * (masked.mean() - parts["income: mean"] * deviation))
    assert found["exact"][0] - found["exact"][1] == pytest.approx(value, rel=1e-6)
    assert abs(found["public"][0] - found["public"][1] - value) > 0.05 * value


def test_bounds_of_a_membership_are_public_nowhere(place):
    step = [{"method": "membership_transform", "columns": ["income"], "function": "s"}]
    published(place, None, mask=step)
    income = np.array(people(1000)["income"])
    public = b"".join(place.bytes().values())
    for extreme in (income.min(), income.max()):
        for text in (repr(float(extreme)), f"{extreme:.6g}", f"{extreme:,.6g}", f"{extreme:.4g}"):
            assert text.encode() not in public
        assert np.float64(extreme).tobytes() not in public
