"""Requirements of households inside the search: against their definition, dropped as a whole, in any partitions."""

from collections import Counter

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from refinement_reference import Reference
from test_refinement_kernels import TREE, as_mapping, random_case

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.table.label_sets import through_steps

pytestmark = pytest.mark.filterwarnings("ignore:TopDownRefinement")
COLUMNS = ["kind", "town", "age"]
KINDS = {"kind": TREE, "town": None, "age": [0, 25], "size": [0, 25]}


class OfHouseholds(tuple):
    """The columns of a requirement that counts households."""


class HouseholdReference(Reference):
    """Compositions counted again for every candidate, as sorted lists of members' rows."""

    def smallest(self, columns, masked):
        if not isinstance(columns, OfHouseholds):
            return super().smallest(columns, masked)
        return min(Counter(compositions(self.records, columns, masked)).values())


def compositions(records, columns, masked):
    homes = {}
    for n, record in enumerate(records):
        homes.setdefault(record["home"], []).append(tuple(masked[name][n] for name in columns))
    return [tuple(sorted(map(repr, rows))) for rows in homes.values()]


def families(seed):
    """A random table whose records live in households of one to three, anywhere in it."""
    frame, requirements = random_case(seed)
    rng = np.random.default_rng(seed)
    homes = np.repeat(np.arange(len(frame)), rng.choice([1, 2, 3], len(frame), p=[0.4, 0.5, 0.1]))[: len(frame)]
    return frame.assign(home=rng.permutation(homes)), requirements


def method(requirements, **options):
    names = {name for one in requirements for name in (one["columns"] if isinstance(one, dict) else one[0])}
    return dpmask.TopDownRefinement(
        requirements=requirements,
        taxonomies={"kind": as_mapping(TREE)} if "kind" in names else {},
        domains={name: [0, 25] for name in ("age", "size") if name in names},
        household="home",
        **options,
    )


def masked_compositions(masked, columns=COLUMNS):
    records = masked.astype(object).where(masked.notna(), None).to_dict("records")
    return Counter(compositions(records, columns, {name: [one[name] for one in records] for name in columns}))


@pytest.mark.parametrize("seed", range(12))
def test_against_the_definition(seed):
    frame, people = families(seed)
    homes = {"columns": COLUMNS[: 1 + seed % 3], "k": 2 + seed % 2, "of": "households"}
    plain = [(OfHouseholds(homes["columns"]), homes["k"])]
    plain += [(columns, k) for columns, k in people if not (set(columns) <= set(homes["columns"]) and k <= homes["k"])]
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    names = dict.fromkeys(name for columns, _ in (*people, (homes["columns"], 0)) for name in columns)
    reference = HouseholdReference(records, {name: KINDS[name] for name in names}, plain, list(frame["class"]), False)
    whole = Counter(compositions(records, homes["columns"], {name: [0] * len(frame) for name in homes["columns"]}))
    asked = method([*people, homes])
    if min(whole.values()) < homes["k"]:
        with pytest.raises(InputError, match="the number of their members"):
            asked.fit(frame, seed=0)
        return
    found = asked.fit(frame, seed=0)
    assert [(one.attribute, one.score, one.smallest) for one in found.steps] == reference.run()


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(5)
    rows = 3000
    frame = pd.DataFrame({"age": rng.integers(0, 25, rows).astype(float), "town": rng.choice(list("xyz"), rows)})
    frame["kind"] = rng.choice(list("abcdef"), rows)
    return frame.assign(
        home=rng.permutation(
            np.repeat(np.arange(rows), rng.choice([1, 2, 3, 7], rows, p=[0.5, 0.4, 0.097, 0.003]))[:rows]
        )
    )


def test_whole_households_are_dropped(many):
    """All whose composition is too rare, nobody else, and no more than allowed; records hold without them, too."""
    homes = {"columns": COLUMNS, "k": 4, "of": "households"}
    found = method([(["town", "age"], 150), homes], suppress_records=0.15).fit(many, seed=0)
    masked = found.mask(many)
    gone = set(many["home"]) - set(masked["home"])
    assert 0 < len(many) - len(masked) == many["home"].isin(gone).sum() == found.figures.dropped <= 0.15 * len(many)
    assert min(masked_compositions(masked).values()) == found.figures.groups["households by kind + town + age"] >= 4
    groups = masked.groupby(["town", "age"]).size()
    assert groups.min() == found.figures.groups["town + age"] >= 150
    assert found.figures.refinements >= 2
    shown = found.explain()
    assert "households" in shown
    assert "4 households, whose members have the same rows" in found.statement()


@pytest.mark.parametrize("models", [[], [{"model": "distinct_l", "column": "pay", "l": 2}]])
def test_cells_are_lost_in_other_columns_only(many, models):
    """By plain counts: members of k households have the same whole rows, k records agree with each row with gaps."""
    rng = np.random.default_rng(3)
    rare = rng.choice(list("abcdef"), len(many), p=[0.4, 0.3, 0.2, 0.08, 0.015, 0.005])
    people = many.assign(kind=rare, pay=rng.choice(list("uvw"), len(many)), home=np.arange(len(many)) // 2)
    asked = [{"columns": COLUMNS, "k": 20, "models": models}, {"columns": ["town", "age"], "k": 4, "of": "households"}]
    without, found = (method(asked, suppress_cells=share).fit(people, seed=0) for share in (0.0, 0.02))
    masked = found.mask(people)
    assert len(found.steps) > len(without.steps)
    assert 0 < masked["kind"].isna().sum() == found.figures.cells["kind"] <= 0.02 * 3 * len(people)
    assert masked[["town", "age"]].notna().all(axis=None)
    alike = min(masked_compositions(masked, ["town", "age"]).values())
    assert alike == found.figures.groups["households by town + age"] >= 4
    rows = masked[["kind", "town", "age"]].astype(object).where(masked[["kind", "town", "age"]].notna(), None)
    counts = Counter(map(tuple, rows.to_numpy().tolist()))
    agree = [
        sum(
            n
            for other, n in counts.items()
            if all(None in pair or len(set(pair)) == 1 for pair in zip(row, other, strict=True))
        )
        for row in counts
    ]
    assert min(agree) >= 20
    assert found.claims()[1] == {"columns": ["town", "age"], "smallest_group": 4, "households": "home"}
    parts = dd.from_pandas(people, npartitions=5)
    pd.testing.assert_frame_equal(
        method(asked, suppress_cells=0.02).fit(parts, seed=0).mask(parts).compute(), masked, check_dtype=False
    )
    known = {"household": "home", "columns": COLUMNS, "sets": through_steps([found])}
    seen = dpmask.risk.households(people, masked, **known, suppressed=["kind"])
    labels = masked["kind"].groupby(people["kind"]).first()
    whole = dpmask.risk.households(people, masked.assign(kind=people["kind"].map(labels)), **known)
    assert (seen.rate, seen.smallest, seen.uniques) == (whole.rate, whole.smallest, whole.uniques)  # no less than that
    assert seen.rate >= dpmask.risk.households(people, masked, **known).rate


def test_any_partitions(many):
    homes = {"columns": COLUMNS, "k": 4, "of": "households"}
    asked = method([homes], suppress_records=0.1)
    masked = asked.fit(many, seed=0).mask(many)
    for partitions in (3, 8):
        frame = dd.from_pandas(many, npartitions=partitions)
        pd.testing.assert_frame_equal(asked.fit(frame, seed=0).mask(frame).compute(), masked, check_dtype=False)


def test_what_is_refused(many):
    homes = {"columns": COLUMNS, "k": 4, "of": "households"}
    with pytest.raises(InputError, match=r"suppress_records: 0\.0\d+ or more"):
        method([homes | {"k": 20}]).fit(many, seed=0)
    with pytest.raises(JobError, match="no column numbers them"):
        dpmask.TopDownRefinement(requirements=[homes], domains={"age": [0, 25]})
    with pytest.raises(JobError, match="neither models nor known"):
        method([homes | {"known": 2}])
    with pytest.raises(JobError, match=r"households lose no cells, .* and there are no others"):
        method([homes], suppress_cells=0.1)
    few = homes | {"columns": ["town"]}
    with pytest.raises(JobError, match="cell_limits name 'town', which loses no cells"):
        method([(COLUMNS, 5), few], suppress_cells=0.1, cell_limits={"town": 0.1})
    with pytest.raises(JobError, match="one requirement of households"):
        method([homes, {"columns": ["town"], "k": 9, "of": "households"}], suppress_records=0.1)
    with pytest.raises(InputError, match="have no household in 'home'"):
        method([homes], suppress_records=0.1).fit(many.assign(home=many["home"].where(many["home"] > 9)), seed=0)
