"""The search mondrian: against its definition on random tables, for any shards, and what is refused."""

import pytest
from mondrian_reference import MondrianReference
from test_refinement_models import ILLS, KINDS, method, model_case

from dpmask.engine.limits import limits as changed_limits
from dpmask.errors import InputError


def reference(frame, requirements, guided, importance):
    names = dict.fromkeys(name for one in requirements for name in one["columns"])
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    kinds = {name: KINDS[name] for name in names}
    return MondrianReference(records, kinds, requirements, list(frame["class"]), guided, {"ill": ILLS}, importance)


def released(frame, found):
    names = list(found.method.masks)
    masked = found.mask(frame)[names].astype(object)
    return masked.where(masked.notna(), None).to_dict("list")


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize("part", range(2))
def test_regions_against_their_definition(part):
    """The boxes of all records of 60 random tables: trees, numbers, missing values, mixtures of models, importance.

    With the smallest shards most regions are cut by passes, which must not change them.
    """
    cut = 0
    for seed in range(30 * part, 30 * part + 30):
        frame, requirements, importance = model_case(seed)
        requirements = [one if seed % 5 else {**one, "models": []} for one in requirements]
        guided = seed % 3 > 0
        guide = {"column": "class"} if guided else "distortion"
        plain = reference(frame, requirements, guided, importance)
        asked = method(frame, requirements, guide, importance, search="mondrian")
        expected = plain.regions()
        if expected is None:
            with pytest.raises(InputError, match="before anything is refined"):
                asked.fit(frame, seed=0)
            continue
        found = asked.fit(frame, seed=0)
        labels = {name: [plain.label(name, one) for one in nodes] for name, nodes in expected.items()}
        assert released(frame, found) == {name: labels[name] for name in asked.masks}, seed
        cut += found.figures.regions
        for name in asked.masks:
            lost = sum(plain.lost_of(name, one) for one in expected[name]) / len(frame)
            assert found.figures.losses[name] == pytest.approx(lost, rel=1e-9, abs=1e-12)
        if seed % 10 == 1:
            with changed_limits(refinement_shard_rows=20, refinement_cells=50):
                assert released(frame, asked.fit(frame, seed=0)) == released(frame, found)
    assert cut > 60
