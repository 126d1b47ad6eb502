"""Intruders who know some records, or some columns: maps that undo a rotation, and neighbours that tell a secret."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import people
from parts import in_parts
from scipy.stats import ortho_group

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.kernels.hash_sample import hash_sample, merge_hash_samples, position_words, record_words_of
from dpmask.kernels.linkage.neighbours import Queries, merge_nearest, nearest
from dpmask.kernels.linkage.recovery import linear, rotation

COLUMNS = list("abcd")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4))
    table = pd.DataFrame(np.exp(mixed / 3), columns=COLUMNS)
    return table.assign(sick=np.where(table["a"] + rng.normal(size=400) > 2, "yes", "no"), pay=table.sum(axis=1))


def rotated(frame, matrix):
    return pd.DataFrame(frame[COLUMNS].to_numpy() @ matrix + 7, columns=COLUMNS, index=frame.index)


def test_a_rotation_is_undone_by_few_known_records(frame):
    turn = ortho_group.rvs(4, random_state=1)
    found = dpmask.risk.known_records(frame, rotated(frame, turn), columns=COLUMNS, known=6)
    assert (found.rate, found.interval) == (1.0, (1.0, 1.0))
    assert found.error < 1e-9
    assert found.guessing < 0.1
    assert (found.attacked, found.known) == (394, 6)
    assert found.parts["rotation: rate"] == found.parts["linear: rate"] == 1.0
    # as many known as columns leave a linear map open; a rotation, but for a reflection
    few = dpmask.risk.known_records(frame, rotated(frame, turn), columns=COLUMNS, known=4)
    assert few.rate == few.parts["rotation: rate"] > few.parts["linear: rate"]
    assert "Larger shares and a smaller error mean more risk" in few.explain()
    assert json.loads(json.dumps(few.to_dict()))["rate"] == few.rate


def test_a_stretched_rotation_needs_the_linear_map(frame):
    turn = ortho_group.rvs(4, random_state=1) * [1, 5, 0.2, 3]
    found = dpmask.risk.known_records(frame, rotated(frame, turn), columns=COLUMNS, known=10)
    assert found.parts["linear: rate"] == 1.0 > found.parts["rotation: rate"]
    assert found.rate == 1.0


def test_noise_and_strangers_withstand(frame):
    rng = np.random.default_rng(3)
    masked = frame[COLUMNS] + frame[COLUMNS].std().to_numpy() * rng.normal(size=(400, 4))
    found = dpmask.risk.known_records(frame, masked, columns=COLUMNS)
    assert found.records < 0.02
    assert found.rate < 0.12  # values, one by one: some are near by chance
    assert found.interval[0] <= found.rate <= found.interval[1] < 1
    assert found.error > 0.3


def test_maps_by_hand():
    original = np.array([[0.0, 2, 0], [0, 0, 4]])
    quarter = np.array([[0.0, -1], [1, 0]])
    masked = quarter @ original + np.array([[5.0], [1]])
    for fit in (rotation, linear):
        assert fit(original, masked).recovered(masked) == pytest.approx(original, abs=1e-12)
    assert rotation(original, masked).matrix == pytest.approx(
        quarter
    )  # rows times matrix: the inverse turn, transposed


ATTACK = {"columns": COLUMNS, "known": 15, "intruders": 3}
GUESS = {"columns": COLUMNS[:2], "target": "sick", "sample": 50}


def both_measures(frame, masked):
    return dpmask.risk.known_records(frame, masked, **ATTACK), dpmask.risk.attribute_inference(frame, masked, **GUESS)


@pytest.fixture(scope="module")
def shifted(frame):
    return frame.assign(**(frame[COLUMNS] * 1.01 + 0.3))


@pytest.fixture(scope="module")
def alone(frame, shifted):
    return both_measures(frame, shifted)


def test_they_do_not_depend_on_partitions(frame, shifted, alone, partitions):
    found = both_measures(in_parts(frame, partitions), in_parts(shifted, partitions))
    for one, other in zip(alone, found, strict=True):
        assert other.parts == pytest.approx(dict(one.parts), rel=1e-9, abs=1e-12)
        assert other.attacked == one.attacked


def inferred(frame, masked, columns, target, persons, tolerance):
    """Nearest masked records by a loop, with and without the own one; ties share."""
    known = (frame[columns] - frame[columns].mean()) / frame[columns].std(ddof=0)
    seen = (masked[columns] - masked[columns].mean()) / masked[columns].std(ddof=0)
    scores = []
    for person in persons:
        distance = ((seen - known.loc[person]) ** 2).sum(axis=1, skipna=False)
        row = []
        for others in (distance, distance.drop(person)):
            tied = masked.loc[others.index[np.isclose(others, others.min(), rtol=1e-12)], target]
            truth = frame.loc[person, target]
            right = (tied == truth) if isinstance(truth, str) else (tied - truth).abs() <= tolerance
            row.append(right.mean())
        scores.append(row)
    return np.mean(scores, axis=0)


@pytest.mark.parametrize(("target", "tolerance"), [("sick", 0.0), ("pay", 0.05)])
def test_inference_equals_a_loop(frame, target, tolerance):
    rng = np.random.default_rng(5)
    masked = frame.assign(
        a=(frame["a"] * 2).round() / 2, b=frame["b"].round(), pay=frame["pay"] + 0.05 * rng.normal(size=400)
    )
    masked.loc[7, "a"] = np.nan
    found = dpmask.risk.attribute_inference(frame, masked, columns=["a", "b"], target=target, sample=400)
    wanted = inferred(frame, masked, ["a", "b"], target, frame.index, 0.05 * frame["pay"].std(ddof=0))
    assert (found.rate, found.guessing) == pytest.approx(tuple(wanted), rel=1e-12)
    assert found.excess == pytest.approx((found.rate - found.guessing) / (1 - found.guessing))
    assert found.attacked == 400
    assert found.interval[0] < found.rate < found.interval[1]
    assert found.intervals["excess"][0] <= found.excess <= found.intervals["excess"][1]


def test_an_untouched_record_gives_its_secret_away(frame):
    found = dpmask.risk.attribute_inference(frame, frame, columns=COLUMNS, target="sick", sample=100)
    assert found.rate == 1.0 > found.guessing
    assert "taking part costs 100.00%" in found.explain()
    assert json.loads(json.dumps(found.to_dict()))["excess"] == 1.0


def test_nearest_merge_to_those_of_the_whole():
    rng = np.random.default_rng(0)
    records, secret = rng.integers(0, 4, (2, 90)).astype(float), rng.integers(0, 2, 90).astype(float)
    queries = Queries(records[:, :30], np.arange(30), secret[:30])
    whole = nearest(queries, records, secret, 0, 0.0)
    parts = [nearest(queries, records[:, s : s + 30], secret[s : s + 30], s, 0.0) for s in (0, 30, 60)]
    merged = merge_nearest(merge_nearest(parts[0], parts[1]), parts[2])
    for one, other in zip(whole, merged, strict=True):
        assert one.tolist() == other.tolist()
    assert (whole.distance[0] == 0).all()


def test_the_chosen_are_the_smallest_wherever_they_lie():
    values = np.random.default_rng(1).integers(0, 9, (2, 200)).astype(float)
    words, places = record_words_of(list(values), 3), np.arange(200)
    whole = hash_sample(words, places, values, 20)
    cuts = [slice(0, 5), slice(5, 5), slice(5, 120), slice(120, 200)]
    parts = [hash_sample(words[c], places[c], values[:, c], 20) for c in cuts]
    merged = parts[0]
    for part in parts[1:]:
        merged = merge_hash_samples(merged, part, 20)
    assert merged.positions.tolist() == whole.positions.tolist()
    assert sorted(words)[:20] == whole.words.tolist()
    assert set(record_words_of(list(values), 4)) != set(words)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"known": 1}, "known must be an integer from 2"),
        ({"known": True}, "known must be an integer"),
        ({"intruders": 1}, "intruders must be an integer from 2"),
        ({"tolerance": 0}, "tolerance must be a number > 0"),
        ({"columns": ["sick"]}, "must be numeric"),
        ({"columns": ["e"]}, "no column 'e'"),
    ],
)
def test_bad_arguments_of_known_records(frame, changes, text):
    with pytest.raises(JobError, match=text):
        dpmask.risk.known_records(frame, frame, **({"columns": COLUMNS} | changes))


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"target": "a"}, JobError, "target another one"),
        ({"columns": []}, JobError, "one or more known columns"),
        ({"sample": 5}, JobError, "sample must be an integer from 10"),
        ({"tolerance": -1}, JobError, "tolerance must be a number >= 0"),
        ({"columns": ["sick"], "target": "a"}, JobError, "must be numeric"),
        ({"target": "nothing"}, InputError, "no record has a value in all of a, nothing"),
        ({"columns": ["same"]}, InputError, "is constant"),
    ],
)
def test_bad_arguments_of_attribute_inference(frame, changes, error, text):
    given = frame.assign(nothing=np.nan, same=1.0)
    with pytest.raises(error, match=text):
        dpmask.risk.attribute_inference(given, given, **({"columns": ["a"], "target": "sick"} | changes))


def test_persons_are_chosen_by_what_they_are(frame, shifted, alone):
    """Not by where they lie: another order of the records finds the same neighbours."""
    _, found = both_measures(frame.sample(frac=1, random_state=1), shifted)
    assert found.parts == pytest.approx(dict(alone[1].parts), rel=1e-9, abs=1e-12)


def test_equal_records_are_chosen_as_often_as_others():
    """Chosen by positions: of a table in which half of the people are alike, about half of the chosen are."""
    words, positions = position_words(np.arange(1000.0), 3)
    chosen = hash_sample(words, positions, np.zeros((1, 1000)), 200)
    assert 70 < (chosen.positions < 500).sum() < 130


def test_too_few_records(frame):
    with pytest.raises(InputError, match="more than 6 records must be complete"):
        dpmask.risk.known_records(frame.iloc[:6], frame.iloc[:6], columns=COLUMNS)


def test_in_a_job(place):
    place.lake(people())
    measure = [
        {"measure": "known_records", "columns": ["income", "age"]},
        {"measure": "attribute_inference", "columns": ["income", "age"], "target": "name", "sample": 200},
    ]
    refused = place.run(measure=measure, policy=["attribute_inference.rate <= 0.001"])
    assert refused.code == 3, refused.err
    held = place.run(measure=measure, policy=["known_records.rate <= 1", "attribute_inference.excess <= 1"])
    assert held.code == 0, held.err
    assert place.released()[0]["information_loss"] == []
    named = [{"measure": "attribute_inference", "columns": ["income"], "target": "id"}]
    ended = place.dpmask("plan", place.job(measure=named))
    assert (ended.code, "column 'id' is an identifier" in ended.err) == (2, True)
