"""Records as an intruder against synthetic values has them: his register, and what the release shows of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.design import Design
from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_numeric
from dpmask.table.encoders.base import NumberEncoder
from dpmask.table.encoders.numeric import NumericEncoder
from dpmask.table.encoders.one_hot import DummyEncoder
from dpmask.table.encoders.texts import text_values
from dpmask.table.pairs import masked_name


class SynthesisedRecords(NamedTuple):
    """Some records in units of the originals, each columns x records.

    Those are z = (1, x), known and released dependents, and the z that the release shows.
    """

    z: Floats
    y: Floats
    released: Floats
    shown: Floats

    @classmethod
    def of(cls, design: Design, values: Floats) -> SynthesisedRecords:
        """Those whose units lie one below the other."""
        p, t = design.width, len(design.dependents)
        return cls(*np.split(values, [p, p + t, p + 2 * t]))


def complete_records(design: Design, rows: Rows) -> tuple[SynthesisedRecords, NDArray[np.bool_]]:
    """A block's records that lack nothing, and which these are."""
    units = design.units(rows)
    released = design.outputs.upright.to_units(released_dependents(design, rows))
    kept = units.whole & np.isfinite(released).all(axis=0)
    return SynthesisedRecords(
        units.z[:, kept], units.y[:, kept], released[:, kept], shown_z(design, rows)[:, kept]
    ), kept


def released_dependents(design: Design, rows: Rows) -> Floats:
    """The released dependents."""
    return np.array([floats(rows, masked_name(name)) for name in design.dependents])


def shown_z(design: Design, rows: Rows) -> Floats:
    """The z of a block's released independents; the mean stands for what another step withheld or made a label."""
    parts = [_shown_values(part, rows) for part in design.predictors.parts]
    z = np.ones((design.width, rows.num_rows))
    z[1:] = design.inputs.upright.to_units(np.concatenate(parts))
    return np.where(np.isfinite(z), z, 0.0)


def _shown_values(part: NumberEncoder, rows: Rows) -> Floats:
    here, numeric = part.on(masked_name(part.column)), is_numeric(rows.schema.field(masked_name(part.column)).type)
    if isinstance(here, DummyEncoder) and not numeric:
        return here.encode_known(rows)
    if isinstance(here, NumericEncoder) and numeric:
        return here.encode(rows)
    return np.full((part.size, rows.num_rows), np.nan)


def is_present(rows: Rows, column: str) -> NDArray[np.bool_]:
    """Which values of an original column are not missing."""
    if is_numeric(rows.schema.field(column).type):
        return ~np.isnan(floats(rows, column))
    return ~np.isnan(text_values(rows, column).lookup(_present, np.nan))


def _present(_: str) -> float:
    return 1.0
