"""An intruder with two releases of one key, or with a list of guesses for the key: neither takes the noise off."""

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import several
from conftest import SECRET, people

from dpmask.job.several_releases import PairedRelease, several_attacks
from dpmask.table.table import as_table

STEP = {"method": "noise", "columns": ["income"], "scale": 0.5}
CLOSE = 0.01
ROWS = 1000


@pytest.fixture
def office(place, monkeypatch):
    """An office that releases a table, and again after it has corrected one income, with one key and one folder."""
    monkeypatch.setenv("THE_KEY", SECRET)
    return place


def released(place, table, target):
    place.lake(table)
    job = {"columns": only_income(table), "mask": [STEP], "order": "input", "seed": None, "key": "env:THE_KEY"}
    ended = place.run(target=target, **job)
    assert ended.code == 0, ended.err
    return place.released(target)[1]["income"].to_numpy()


def corrected(table, record, value):
    incomes = table["income"].to_numpy().copy()
    incomes[record] = value
    return table.set_column(table.schema.get_field_index("income"), "income", pa.array(incomes))


def test_one_corrected_value_removes_nobodys_noise(office):
    """The correction is known to the intruder. With shared draws both releases would show the noise of one record, and
    differ in nothing else; with fresh ones the difference is noise of both, for everybody.
    """
    table = people(ROWS)
    original = table["income"].to_numpy()
    one = released(office, table, "one")
    other = released(office, corrected(table, 7, original[7] + 1.0), "two")
    deviation = 0.5 * original.std()
    same = np.isclose(one, other, rtol=1e-6)
    assert same.sum() <= 2, "no record keeps its noise"
    # the difference of two independent draws: five standard errors of a variance of 1000 of them
    assert (one - other).var() == pytest.approx(2 * deviation**2, rel=5 * np.sqrt(2 / ROWS))
    noise = [release - original for release in (one, other)]
    assert abs(np.corrcoef(*noise)[0, 1]) < 5 / np.sqrt(ROWS)
    # the best that is left is the mean of both; it is close for no more than such noise is close to 0 by chance
    found = np.abs((one + other) / 2 - original) <= CLOSE * np.abs(original)
    alone = np.abs(one - original) <= CLOSE * np.abs(original)
    assert found.mean() < 0.05 > alone.mean()


def only_income(table):
    return {"identifier": [name for name in table.schema.names if name != "income"], "sensitive": ["income"]}


def together(office, targets):
    """What ``dpmask attack`` says of the income: by one release, and by all of them."""
    others = [part for target in targets[1:] for part in ("--with", target, "position")]
    ended = office.dpmask(
        "attack", targets[0], "--register", "lake", "--paired-by", "position", *others, "--json", "-", "--sample", "500"
    )
    assert ended.code == 0, ended.err
    return {(one["attack"], one["share"]): one["rate"] for one in ended.json["attacks"]}


def test_several_releases_of_one_key_are_measured_together(office):
    """Each with a corrected value: what is reported is what the intruder achieves, and grows with every release."""
    table = people(4 * ROWS)
    incomes, targets = table["income"].to_numpy(), ["one", "two", "three"]
    releases = []
    for number, target in enumerate(targets):
        values = corrected(table, 7, incomes[7] + number)
        releases.append(released(office, values, target))
    found, more = together(office, targets[:2]), together(office, targets)
    alone = found["values, best estimate of 1 release", "rate"]
    for count, reported in ((2, found), (3, more)):
        rate = reported[f"values, best estimate of {count} releases", "rate"]
        achieved = several.attack(releases[:count], incomes)
        error = np.sqrt(achieved / len(incomes))
        assert achieved <= 1.1 * rate + 2 * error
        assert rate > 1.1 * alone
        assert rate < 2 * alone, "noise was averaged, not removed"
        assert (f"linkage, {count} releases together", "rate") in reported
    assert more["values, best estimate of 3 releases", "rate"] > found["values, best estimate of 2 releases", "rate"]


def test_releases_are_taken_together_by_folders_only(office):
    table = people(ROWS)
    released(office, table, "one")
    ended = office.dpmask("attack", "one", "--register", "lake", "--paired-by", "id", "--with", "one", "private")
    assert ended.code == 2
    assert "Give the private folder of the run of each" in ended.err


def test_noise_that_two_releases_share_is_found():
    """As it was before draws were bound to the content: scales that hardly differ give all of the noise away."""
    rng = np.random.default_rng(1)
    original = pd.DataFrame({"income": rng.lognormal(10, 0.5, 2000), "age": rng.normal(50, 10, 2000)})
    noise = rng.normal(size=original.shape) * original.std().to_numpy()
    releases = [original + 0.5 * noise, original + 0.50001 * noise, original + 0.5 * rng.permutation(noise)]
    tables = [PairedRelease(as_table(one, "test"), ["income", "age"], {}) for one in releases]
    for others, low, high in (([1], 0.999, 1.0), ([2], 0.0, 0.2)):
        taken = several_attacks(as_table(original, "test"), [tables[0], *(tables[one] for one in others)], 500)
        found = {request.name: take() for request, take in taken}
        assert low <= found["values, best estimate of 2 releases"].by_sd <= high
        assert low <= found["linkage, 2 releases together"].rate
        assert found["values, best estimate of 1 release"].by_sd < 0.2


def guessed(fingerprint, guesses):
    """The seed or secret whose fingerprint a release shows, if it is among the guesses, as dpmask made keys before."""
    import hmac

    for guess in guesses:
        for kind in (b"dpmask seed\0", b"dpmask key\0"):
            secret = hashlib.sha256(kind + str(guess).encode()).digest()
            if hmac.digest(secret, b"fingerprint", "sha256").hex()[:16] == fingerprint:
                return guess
    return None


def test_a_search_for_a_seed_finds_that_of_a_trial_only(office):
    """Integers are guessed at once, so a trial is no release; a release's fingerprint is of no integer."""
    office.lake(people(200))
    assert office.run(seed=4711, target="trial", mask=[STEP]).code == 0
    assert guessed(office.released("trial")[0]["key"]["fingerprint"], range(10_000)) == 4711
    assert office.dpmask("verify", "trial", "--strict").code == 4
    assert office.run(seed=None, target="release", mask=[STEP]).code == 0
    assert guessed(office.released("release")[0]["key"]["fingerprint"], range(10_000)) is None
    assert office.dpmask("verify", "release", "--strict").code == 0
