"""Every step, column, order and release has draws of its own: no two can be solved for the original."""

import numpy as np
import pyarrow as pa
import pytest
from conftest import people


def test_steps_draw_for_themselves(place):
    """Two steps of the same noise add variances; draws used twice would add standard deviations: four times the variance."""
    table = people()
    place.lake(table)
    step = {"method": "noise", "columns": ["income"], "scale": 0.1}
    assert place.run(mask=[step, step], order="input").code == 0
    noise = place.released()[1]["income"].to_numpy() - table["income"].to_numpy()
    # five standard errors of a variance of 600 draws
    assert noise.var() == pytest.approx(2 * (0.1 * table["income"].to_numpy().std()) ** 2, rel=5 * np.sqrt(2 / 600))


def noise_of(place, table, target, **changes):
    assert place.run(target=target, order="input", **changes).code == 0
    return place.released(target)[1]["income"].to_numpy() - table["income"].to_numpy()


def test_releases_of_one_key_do_not_share_their_noise(place):
    """Another scale, name or table draws anew: no two releases can be solved for the original."""
    table = people()
    place.lake(table)
    step = {"method": "noise", "columns": ["income", "age"], "scale": 0.1}
    first = noise_of(place, table, "one", mask=[step])
    others = {
        "scale": noise_of(place, table, "two", mask=[step | {"scale": 0.3}]),
        "columns": noise_of(place, table, "three", mask=[step | {"columns": ["income"]}]),
        "name": noise_of(place, table, "four", mask=[step], name="other"),
    }
    for what, other in others.items():
        # 600 pairs: five standard errors of a correlation of 0
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / np.sqrt(600), what
    last_year = people(seed=9)
    place.lake(last_year)
    others = noise_of(place, last_year, "six", mask=[step])
    assert abs(np.corrcoef(first, others)[0, 1]) < 5 / np.sqrt(600), "another table, the same job and key"


def test_columns_and_order_draw_for_themselves(place):
    table = people()
    place.lake(table)
    mask = [{"method": "noise", "columns": ["income", "rate"], "scale": 0.1}]
    assert place.run(mask=mask, block_rows=10**6).code == 0
    released = place.by_original(table)
    noise = [
        released[n].cast(pa.float64()).to_numpy(zero_copy_only=False)
        - table[n].cast(pa.float64()).to_numpy(zero_copy_only=False)
        for n in ("income", "rate")
    ]
    order = np.argsort(place.pairing(place.released()[0]))
    present = ~np.isnan(noise[1])
    for one, other in ((noise[0], noise[1]), (noise[0], order.astype(float))):
        assert abs(np.corrcoef(one[present], other[present])[0, 1]) < 5 / np.sqrt(present.sum())
