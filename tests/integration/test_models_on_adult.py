"""Adult: what is reported of a release agrees with pycanon, an independent implementation."""

from pathlib import Path

import pandas as pd
import pytest

import dpmask

TREES = Path(__file__).parents[2] / "jobs" / "refined_adult" / "taxonomies"
COLUMNS = ["age", "education", "marital-status", "race", "sex"]
PYCANON = {
    "occupation": {"l": 5, "entropy": 3, "alpha": 0.6153846153846154, "t": 0.5214815244792358},
    "hours-per-week": {"l": 5, "entropy": 3, "alpha": 0.6713286713286714, "t": 0.11340450804638},
}
"""pycanon 1.3.6 (PyPI), k = 22, on the table below as CSV: l_diversity, entropy_l_diversity (which it rounds down),
alpha_k_anonymity and t_closeness, equal for texts and ordered for numbers."""


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_figures_agree_with_pycanon(reference):
    frame = pd.read_parquet(reference / "adult.parquet")
    frame = frame[(frame.astype(str) != "?").all(axis=1)].reset_index(drop=True)
    trees = {path.stem: str(path) for path in TREES.glob("*.yaml")}
    hours = sorted(frame["hours-per-week"].unique().tolist())
    models = [
        {"model": "distinct_l", "l": 3},
        {"model": "entropy_l", "l": 1.2},
        {"model": "confidence", "most": 0.9},
    ]
    closeness = {
        "occupation": {"model": "t_closeness", "t": 0.9},
        "hours-per-week": {"model": "t_closeness", "t": 0.9, "distance": "ordered"},
    }
    both = [one | {"column": column} for column in PYCANON for one in [*models, closeness[column]]]
    fitted = dpmask.TopDownRefinement(
        requirements=[{"columns": COLUMNS, "k": 20, "models": both}],
        taxonomies={name: trees[name] for name in COLUMNS if name in trees},
        domains={"age": [0, 120]},
        guide={"column": "class"},
        bands={"hours-per-week": hours[1:]},
    ).fit(frame, seed=1)
    assert fitted.figures.smallest == 22
    found = {one.limited: one.figure for one in fitted.figures.models}
    for column, theirs in PYCANON.items():
        assert found[f"distinct_l of {column}"] == theirs["l"]
        assert int(found[f"entropy_l of {column}"]) == theirs["entropy"]
        assert found[f"confidence of {column}"] == pytest.approx(theirs["alpha"], rel=1e-12)
        assert found[f"t_closeness of {column}"] == pytest.approx(theirs["t"], rel=1e-12)


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize(("rank", "search"), [(3, "one_cut"), (5, "mondrian")])
def test_recursive_diversity_agrees_with_a_plain_count(reference, rank, search):
    """r1 / (r_l + ... + r_m) of the worst group, from the released rows alone.

    pycanon 1.3.6 sorts counts upwards, so that its r1 is the rarest value, and cannot be compared.
    """
    frame = pd.read_parquet(reference / "adult.parquet")
    frame = frame[(frame.astype(str) != "?").all(axis=1)].reset_index(drop=True)
    trees = {path.stem: str(path) for path in TREES.glob("*.yaml")}
    asked = [{"model": "recursive_l", "column": "occupation", "c": 4, "l": rank}]
    fitted = dpmask.TopDownRefinement(
        requirements=[{"columns": COLUMNS, "k": 20, "models": asked}],
        taxonomies={name: trees[name] for name in COLUMNS if name in trees},
        domains={"age": [0, 120]},
        search=search,
    ).fit(frame, seed=1)
    groups = fitted.mask(frame).groupby(COLUMNS, observed=True)["occupation"]
    counts = [sorted(group.astype(str).value_counts(), reverse=True) for _, group in groups]
    worst = max(ranked[0] / sum(ranked[rank - 1 :]) for ranked in counts)
    assert fitted.figures.recursive_l == pytest.approx(worst, rel=1e-12)
    assert 1 < worst < 4
