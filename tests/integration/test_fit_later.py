"""Fit once, mask later: other tables draw anew and keep what was promised, or are refused; fits are saved and loaded."""

import json
import stat
import warnings

import numpy as np
import pyarrow as pa
import pytest
from conftest import SECRET
from method_examples import EXAMPLES, example, workers

import dpmask
from dpmask.errors import AccessError, InputError, JobError, TargetError
from dpmask.testing.tables import in_partitions, require_alike

OF_ONE_TABLE = {"calibrated_weights", "swapping", "rotation", "microaggregation", "ipso", "dropped", "cells"}
MORE = {
    "of households": dpmask.OfHouseholds(method=dpmask.NoiseAddition(columns=["rent"], scale=0.1), household="home"),
    "dropped": dpmask.TopDownRefinement(
        requirements=[{"columns": ["age", "region"], "k": 3, "of": "households"}],
        domains={"age": [0, 120]},
        household="home",
        suppress_records=0.2,
    ),
    "cells": dpmask.TopDownRefinement(
        requirements=[(["age", "region"], 8)], domains={"age": [0, 120]}, suppress_cells=0.3, at_least={"region": 3}
    ),
    "guided": dpmask.TopDownRefinement(
        requirements=[(["age", "region"], 5)], domains={"age": [0, 120]}, guide={"clusters": 3}
    ),
}
WHOLE = dpmask.FuzzyMicroaggregation(columns=["income", "hours"], clusters=8, minimum_size=5)
NOISE = dpmask.NoiseAddition(columns=["income"], scale=0.3)
REFINED = dpmask.TopDownRefinement(requirements=[(["age", "region"], 5)], domains={"age": [0, 120]})


@pytest.fixture(scope="module")
def frame():
    found = workers()
    home = np.arange(len(found)) // 2
    return found.assign(home=home, rent=500.0 + home * 3.5)


@pytest.fixture(scope="module")
def fitted(frame):
    """Each method fitted once."""
    methods = {name: example(name) for name in EXAMPLES} | MORE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: one.fit(frame, seed=7) for name, one in methods.items()}


def same_after_loading(fit, frame, folder):
    fit.save(folder)
    loaded = dpmask.load(folder, seed=7)
    assert (loaded.method, loaded.key, repr(loaded)) == (fit.method, fit.key, repr(fit))
    assert (loaded.statement(), loaded.claims(), loaded.figures) == (fit.statement(), fit.claims(), fit.figures)
    assert loaded.mask(frame).equals(fit.mask(frame))
    files = list(folder.iterdir())
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, *files)] == [0o700] + [0o600] * len(files)
    assert not [one for one in files if fit.key.secret in one.read_bytes()]


@pytest.mark.parametrize("name", [*EXAMPLES, *MORE])
def test_a_loaded_fit_masks_the_same(fitted, frame, name, tmp_path):
    same_after_loading(fitted[name], frame, tmp_path / "fit")


def test_a_loaded_fit_of_a_whole_table_masks_the_same(frame, tmp_path, limit):
    limit(largest_cell=100)
    same_after_loading(WHOLE.fit(frame, seed=7), frame, tmp_path / "fit")


def test_models_of_cells_are_written_and_read_by_workers(fitted, frame, client, tmp_path):
    name = "fuzzy_microaggregation, cells"
    on_cluster = example(name).fit(in_partitions(frame, 3), seed=7)
    on_cluster.save(tmp_path / "fit")
    assert len(list((tmp_path / "fit").glob("models-0-*.parquet"))) > 0
    loaded = dpmask.load(tmp_path / "fit", seed=7)
    require_alike(loaded.mask(in_partitions(frame, 3)).compute(), fitted[name].mask(frame))


@pytest.mark.parametrize("name", [*EXAMPLES, *MORE])
def test_another_table_is_drawn_for_anew_or_refused(fitted, frame, name):
    fit, other = fitted[name], frame.iloc[::-1].reset_index(drop=True)  # the same groups, so promises hold
    if name.split(",")[0] in OF_ONE_TABLE or name == "fuzzy_microaggregation, cells":
        with pytest.raises(
            InputError, match=r"another table, or key, than it was fitted with, and .* Fit to this table"
        ):
            fit.mask(other)
        return
    masked = fit.mask(other)
    require_alike(fit.mask(in_partitions(other, 3)).compute(), masked)
    if name.split(",")[0] in {"noise", "pseudonyms"}:
        old = fit.mask_rows(pa.Table.from_pandas(other[list(fit.inputs)]), 0).to_pandas()
        assert (old[fit.changes[0]] != masked[fit.changes[0]]).mean() > 0.9, "the draws of the first table"


def test_the_difference_of_two_months_is_not_the_true_one(frame):
    """Everybody earns a little more; what the releases differ by says so of nobody."""
    later = frame.assign(income=frame["income"] * 1.01)
    fit = NOISE.fit(frame, key=SECRET)
    noise = [fit.mask(month)["income"] - month["income"] for month in (frame, later, later)]
    assert noise[1].equals(noise[2])
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 5 / np.sqrt(len(frame))  # five standard errors


def test_k_is_counted_in_every_table(frame):
    fit, few = REFINED.fit(frame, seed=7), frame.head(60)
    rows = fit.mask_rows(pa.Table.from_pandas(few[list(fit.inputs)]), 0).to_pandas()
    sizes = rows.groupby(["age", "region"])["age"].transform("size")
    assert (sizes < 5).any()
    with pytest.raises(InputError, match=f"at least 5 records share each row .* not so of {(sizes < 5).sum()}. Fit"):
        fit.mask(few)


def test_models_of_a_regression_are_counted_in_every_table(fitted, frame):
    with pytest.raises(InputError, match=r"4 models would be used by fewer than 10 of 9 records. Fit"):
        fitted["regression_synthesis"].mask(frame.head(9))


def test_bounds_and_households_are_counted_in_every_table(fitted, frame, limit):
    with pytest.raises(InputError, match="'income' has values outside its bounds"):
        fitted["noise, strata"].mask(frame.assign(income=frame["income"] - 2e6))
    limit(largest_cell=50)  # centres of the whole table
    method = dpmask.OfHouseholds(
        method=dpmask.FuzzyMicroaggregation(columns=["rent"], clusters=4, minimum_size=5), household="home"
    )
    fit = method.fit(frame, seed=7)
    assert fit.mask(frame.iloc[::-1])["rent"].value_counts().min() >= 10
    with pytest.raises(InputError, match=r"at least 5 records share each row of rent, which is not so of 4. Fit"):
        fit.mask(frame.head(8))  # of 4 households


def test_models_of_a_masked_column_cannot_be_counted_again(frame):
    model = {"model": "distinct_l", "column": "region", "l": 2}
    asked = [{"columns": ["age"], "k": 5, "models": [model]}, {"columns": ["region"], "k": 5}]
    fit = dpmask.TopDownRefinement(requirements=asked, domains={"age": [0, 120]}).fit(frame, seed=7)
    with pytest.raises(InputError, match="models limit 'region', which this step masks"):
        fit.mask(frame.head(200))


def test_a_loaded_fit_needs_a_key_and_another_one_draws_anew(frame, tmp_path):
    fit = NOISE.fit(frame, key=SECRET)
    fit.save(tmp_path / "fit")
    with pytest.raises(JobError, match=r"load: give either key= .* or seed="):
        dpmask.load(tmp_path / "fit")
    assert dpmask.load(tmp_path / "fit", key=SECRET).mask(frame).equals(fit.mask(frame))
    assert not dpmask.load(tmp_path / "fit", seed=1).mask(frame)["income"].equals(fit.mask(frame)["income"])
    with pytest.raises(TargetError, match="holds something already"):
        fit.save(tmp_path / "fit")
    (tmp_path / "fit").chmod(0o750)
    with pytest.raises(AccessError, match="chmod 700"):
        dpmask.load(tmp_path / "fit", key=SECRET)


def edited(folder, **changes):
    """Another fit.json, with a hash that is right."""
    from dpmask.masking.saved import _digest

    found = json.loads((folder / "fit.json").read_text()) | changes
    del found["sha256"]
    (folder / "fit.json").write_text(json.dumps(found | {"sha256": _digest(found)}))


DAMAGES = {
    "is damaged: it is not": lambda f: (f / "fit.json").write_bytes((f / "fit.json").read_bytes().replace(b"7", b"8")),
    "is damaged: it is not what": lambda f: (f / "fit.json").write_bytes((f / "fit.json").read_bytes()[:-9]),
    "is damaged: arrays.parquet": lambda f: (f / "arrays.parquet").write_bytes(b"PAR1"),
    "arrays.parquet: ": lambda f: (f / "arrays.parquet").unlink(),
    "is damaged: models-0-00000.parquet": lambda f: (f / "models-0-00000.parquet").write_bytes(b"PAR1"),
    "holds no fit, there is no fit.json": lambda f: (f / "fit.json").unlink(),
    "is no fit of dpmask's": lambda f: edited(f, format="dpmask checkpoint 3"),
    "was written by a newer dpmask": lambda f: edited(f, version=2),
    "is no class of dpmask's": lambda f: edited(f, values={"method": {"class": "subprocess:Popen", "args": "true"}}),
    "dpmask.masking.saved:load holds no data": lambda f: edited(
        f, values={"method": {"class": "dpmask.masking.saved:load"}}
    ),
    "has other parts in this dpmask": lambda f: edited(
        f, values={"method": {"class": "dpmask.masking.noise:NoiseAddition", "scale": 1.0}}
    ),
}


@pytest.mark.parametrize("text", DAMAGES)
def test_a_folder_that_is_not_what_was_written_is_refused(fitted, text, tmp_path):
    fitted["fuzzy_microaggregation"].save(tmp_path / "fit")
    DAMAGES[text](tmp_path / "fit")
    with pytest.raises(InputError, match=text):
        dpmask.load(tmp_path / "fit", seed=7)
