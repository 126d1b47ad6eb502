"""Cells set to missing where groups are too small: valid by brute force, the cheapest by definition, within limits."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from models_reference import figure, holds
from models_reference import limits as bounds_of
from suppression_reference import matches, matching, suppressed, wildcards
from test_refinement_kernels import as_mapping, fitted, random_case
from test_refinement_models import ILLS, model_case, reference
from test_refinement_models import method as with_models

import dpmask
from dpmask.engine.limits import limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.refinement.local import column_sets
from dpmask.masking.claims import broken_claims
from dpmask.masking.refinement import local as search
from dpmask.table.requirement import MODELS
from dpmask.table.table import as_table

COLUMNS = ["age", "town", "size"]


def coarse(seed, rows=60):
    """A table whose groups are small as it is: nothing is refined any more, so that every choice can be tried."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(list("abcd"), rows, p=[0.5, 0.3, 0.15, 0.05]) for name in COLUMNS})


def method(share=0.5, k=3, **options):
    return dpmask.TopDownRefinement(**{"requirements": [(COLUMNS, k)], "suppress_cells": share} | options)


@pytest.mark.parametrize("guided", [True, False])
def test_every_record_matches_k_and_no_column_ends_coarser(guided):
    """On tables with missing values, several requirements and every kind of column, counted pair by pair."""
    cells = finer = 0
    for seed in range(guided, 20, 2):
        frame, requirements = random_case(seed)
        guide = {"column": "class"} if guided else "distortion"
        share = [0.02, 0.05, 0.2][seed % 3]
        without, found = fitted(frame, requirements, guide), fitted(frame, requirements, guide, suppress_cells=share)
        masked = found.mask(frame)
        for columns, k in requirements:
            wild = [name for name in columns if found.cells and name in found.cells.columns]
            counted = matches(wildcards(masked, columns, wild))
            assert counted.min() >= k, seed
            risk = dpmask.risk.groups(frame, masked, quasi=columns, suppressed=wild, k=k)
            assert (risk.smallest, risk.below) == (counted.min(), 0)
            assert risk.prosecutor == pytest.approx((1 / counted).mean())
        lost = sum(found.figures.cells.values())
        assert lost <= share * len(frame) * len(found.cuts) + 1e-9
        assert len(found.steps) >= len(without.steps) - bool(lost)  # one that only suppressed cells had is not shown
        cells, finer = cells + lost, finer + (len(found.steps) > len(without.steps))
    assert cells > 10
    assert finer > 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("importance", "least"), [({}, 1), ({"age": 3, "size": 1.5}, 1), ({}, 3)])
def test_the_cheapest_cells(seed, importance, least):
    """Of the refined table, by trying every set of columns for every record."""
    frame = coarse(seed).assign(ill=np.random.default_rng(seed).choice(list("abc"), 60))
    models = [{"model": "distinct_l", "column": "ill", "l": least}] if least > 1 else []
    asked = [{"columns": COLUMNS, "k": 3, "models": models}]
    found = method(importance=importance, requirements=asked).fit(frame, seed=0)
    rows, cells = pa.Table.from_pandas(frame), found.cells
    refined = {one.column: nodes[one.encode(rows)] for one, nodes in zip(cells.encoders, cells.nodes, strict=True)}
    expected = suppressed(
        pd.DataFrame(refined), 3, {name: importance.get(name, 1.0) for name in COLUMNS}, frame["ill"], least
    )
    assert expected.any()
    masked = found.mask(frame)
    assert np.array_equal(masked[COLUMNS].isna().to_numpy(), expected)
    assert found.figures.cells == {c: n for c, n in zip(COLUMNS, expected.sum(axis=0).tolist(), strict=True) if n}


def test_limits_of_columns_and_of_all_cells():
    frame = coarse(1, 200)
    free = method(k=5).fit(frame, seed=0).figures.cells
    assert free["town"] > 2
    assert free["size"] > 0
    bounded = method(k=5, cell_limits={"town": 2 / 200, "size": 0}).fit(frame, seed=0)
    assert 0 < bounded.figures.cells["town"] <= 2
    assert "size" not in bounded.figures.cells
    assert matches(bounded.mask(frame)[COLUMNS]).min() >= 5
    fewer = method(k=5, share=(sum(free.values()) - 1) / 600).fit(frame, seed=0).figures.cells
    assert 0 < sum(fewer.values()) < sum(free.values())


@pytest.mark.parametrize("changed", [{"refinement_cells": 8}, {"memory_share": 0.0}, {"group_target_rows": 20}])
@pytest.mark.parametrize("models", [[], [{"model": "confidence", "column": "ill", "most": 0.8}]])
def test_partitions_and_limits_change_nothing(changed, models):
    frame = coarse(5, 150).assign(ill=np.random.default_rng(5).choice(list("abc"), 150))
    asked = method(share=0.05, requirements=[{"columns": COLUMNS, "k": 3, "models": models}])
    expected = asked.fit(frame, seed=0)
    masked = expected.mask(frame)
    assert expected.figures.cells
    options = {"quasi": COLUMNS, "sensitive": ["ill"], "suppressed": COLUMNS}
    risk = dpmask.risk.groups(frame, masked, **options)
    with limits(frame_rows=40, **changed):
        found = asked.fit(frame, seed=0)
        assert found.mask(frame).equals(masked)
        assert found.figures.to_dict() == expected.figures.to_dict()
        again = dpmask.risk.groups(frame, masked, **options)
        assert (again.smallest, again.confidence) == (risk.smallest, risk.confidence)
        assert again.prosecutor == pytest.approx(risk.prosecutor)


def test_a_value_that_only_suppressed_cells_had_is_not_named():
    frame = pd.DataFrame({"town": ["x"] * 50 + ["y"] * 50 + ["rare"], "sex": ["f", "m"] * 50 + ["f"]})
    found = dpmask.TopDownRefinement(requirements=[(["town", "sex"], 5)], suppress_cells=0.05).fit(frame, seed=0)
    assert found.figures.cells == {"town": 1}
    assert "rare" not in str([found.solution(), found.statement(), found.cuts])
    assert found.mask(frame)["town"].isna().sum() == 1


def test_a_column_that_cells_cannot_save_is_refused_with_what_blocks_it():
    frame = pd.DataFrame({"sex": ["f"] * 119 + ["m"], "age": range(120)})
    asked = {"requirements": [(["age", "sex"], 5)], "domains": {"age": [0, 120]}, "suppress_cells": 0.01}
    found = dpmask.TopDownRefinement(**asked).fit(frame, seed=0)
    assert found.figures.cells == {"sex": 1}
    assert all("would need missing cells, more than suppress_cells" in stop.blocked_by for stop in found.figures.stops)
    with pytest.raises(InputError, match=r"at least 100. Of age \+ sex .* records would need missing cells"):
        dpmask.TopDownRefinement(**asked, at_least={"age": 100}).fit(frame, seed=0)


def test_columns_that_are_kept_stay_complete():
    frame = coarse(4, 200)
    found = method(keep=["age"]).fit(frame, seed=0)
    masked = found.mask(frame)
    assert masked["age"].equals(frame["age"])
    assert matches(masked[COLUMNS]).min() >= 3


def test_sets_of_very_many_columns_are_small_or_all():
    assert column_sets([0, 1, 2], [1.0, 1.0, 5.0]) == [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2)]
    assert column_sets(range(5), [1.0] * 5, most=10) == [(0,), (1,), (2,), (3,), (4,), (0, 1, 2, 3, 4)]


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_models_hold_over_all_records_that_match_a_row(monkeypatch):
    """Mixtures of all models, sets of known columns, missing values: counted pair by pair, by their definitions."""
    rounds, cells, finer, models = [], 0, 0, set()

    def recorded(*arguments):
        found = recount(*arguments)
        rounds.append(sum(one.broken for one in found))
        return found

    recount = search.recounted
    monkeypatch.setattr(search, "recounted", recorded)
    for seed in range(20):
        frame, requirements, importance = model_case(seed)
        plain = reference(frame, requirements, True, importance)
        if not all(plain.counted(names, one, plain.masked)[2] for names, one in plain.sets):
            continue
        guide, share = {"column": "class"}, [0.05, 0.1, 0.3][seed % 3]
        without = with_models(frame, requirements, guide, importance).fit(frame, seed=0)
        found = with_models(frame, requirements, guide, importance, suppress_cells=share).fit(frame, seed=0)
        masked, lost = found.mask(frame), sum(found.figures.cells.values())
        assert lost <= share * len(frame) * len(found.cuts) + 1e-9
        wild = found.cells.columns if found.cells else ()
        worst = {}
        for names, one in plain.sets:
            groups = matching(wildcards(masked, list(names), wild))
            assert min(map(len, groups)) >= one.get("k", 1), seed
            for model in one.get("models", ()):
                everybody = plain.values[model["column"]]
                beside = everybody, plain.orders[model["column"]], plain.trees.get(model["column"])
                figures = [figure(model, [everybody[n] for n in group], *beside) for group in groups]
                assert all(holds(model, each, bounds_of(model, everybody)) for each in figures), seed
                models.add((model["model"], lost > 0))
                worse = min if model["model"] in ("distinct_l", "entropy_l") else max
                for each in zip(*figures, strict=True):
                    worst.setdefault(model["model"], []).append((worse, worse(each)))
        for name, each in worst.items():
            assert getattr(found.figures, name) == pytest.approx(each[0][0](one for _, one in each), rel=1e-9), seed
        asked = {"requirements": requirements, "taxonomies": {"ill": as_mapping(ILLS)}, "suppressed": list(wild)}
        assert dpmask.risk.groups(frame, masked, **asked).unmet == 0
        assert broken_claims(as_table(masked, "verify"), found.claims()) == []
        cells, finer = cells + lost, finer + (len(found.steps) > len(without.steps))
    assert cells > 20
    assert finer > 3
    assert sum(map(bool, rounds)) > 1  # a row that others have joined broke a model, and more cells were taken
    assert {name for name, lost in models if lost} == set(MODELS)


def test_a_record_that_joins_a_row_brings_its_sensitive_value():
    """Ten of x, half of them ill, which is the limit; one of a rare town, ill, would match them: they are all counted."""
    frame = pd.DataFrame({"town": ["x"] * 10 + ["y"] * 30 + ["rare"], "ill": ["yes", "no"] * 5 + ["no"] * 30 + ["yes"]})
    asked = {"columns": ["town"], "k": 2, "models": [{"model": "confidence", "column": "ill", "values": {"yes": 0.5}}]}
    released = frame.assign(town=["x"] * 10 + ["y"] * 30 + [None])
    found = dpmask.risk.groups(
        frame, released, quasi=["town"], sensitive=["ill"], requirements=[asked], suppressed=["town"]
    )
    assert found.parts["town: confidence of ill = yes (limit 0.5)"] == pytest.approx(6 / 11)
    assert found.unmet == pytest.approx(10 / 41)
    assert (found.smallest, found.distinct, found.confidence) == (11, 2, pytest.approx(30 / 31))
    claim = {"columns": ["town"], "smallest_group": 2, "models": [asked["models"][0] | {"model": "confidence"}]}
    assert broken_claims(as_table(released, "verify"), [claim | {"suppressed": ["town"]}])
    fit = dpmask.TopDownRefinement(requirements=[asked], suppress_cells=0.3).fit(frame, seed=0)
    assert (
        dpmask.risk.groups(frame, fit.mask(frame), requirements=[asked], suppressed=["town"], quasi=["town"]).unmet == 0
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_matching_records_give_away(seed):
    """Distinct and entropy l, confidence and t of groups, over the records that match each one, pair by pair."""
    rng = np.random.default_rng(seed)
    frame = coarse(seed).assign(ill=rng.choice(["flu", "cold", None], 60), pay=rng.integers(0, 5, 60).astype(float))
    masked = frame.copy()
    for name in COLUMNS:
        masked.loc[rng.random(60) < 0.1, name] = None
    asked = {"quasi": COLUMNS, "sensitive": ["ill", "pay"], "suppressed": COLUMNS, "least_distinct": 3}
    found = dpmask.risk.groups(frame, masked, **asked, most_confidence=0.6, most_closeness=0.4)
    groups = matching(masked[COLUMNS])
    for name, distance in (("ill", "equal"), ("pay", "ordered")):
        values = [None if pd.isna(one) else one for one in frame[name]]
        order = sorted(set(values) - {None}) + [None] * (None in values)

        held = [[values[n] for n in one] for one in groups]
        distinct, entropy, confidence, far = (
            [figure(model, one, values, order)[0] for one in held]
            for model in (
                {"model": "distinct_l"},
                {"model": "entropy_l"},
                {"model": "confidence", "most": 1},
                {"model": "t_closeness", "distance": distance},
            )
        )
        label = f"{' + '.join(COLUMNS)}: {name}: "
        for key, expected in [
            ("distinct", min(distinct)),
            ("entropy", min(entropy)),
            ("confidence", max(confidence)),
            ("closeness", max(far)),
            ("uniform", np.mean(np.array(distinct) < 3)),
            ("inferred", np.mean(np.array(confidence) > 0.6)),
            ("distant", np.mean(np.array(far) > 0.4)),
        ]:
            assert found.parts[label + key] == pytest.approx(expected), key


def test_what_does_not_go_together_is_refused():
    for options, message in [
        ({"suppress_records": 0.1}, "one of them"),
        ({"cell_limits": {"town": 2}}, "a share from 0 to 1"),
        ({"suppress_cells": 0.0, "cell_limits": {"town": 0.1}}, "need suppress_cells"),
        ({"suppress_cells": 0.6}, "<= 0.5"),
    ]:
        with pytest.raises(JobError, match=message):
            dpmask.TopDownRefinement(**{"requirements": [(COLUMNS, 3)], "suppress_cells": 0.1} | options)
