"""What an intruder has: the public folder of a release, and a register with the originals of everybody in it.

Nothing of dpmask is used here. The true pairing serves to score a guess, and to give an intruder the few records he may
know; no attack reads it for anything else.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

INTERVAL = re.compile(r"([\[(])(-?[\d.e+-]+|-inf), (-?[\d.e+-]+|inf)([\])])")
CERTAIN = 1e6
"""The squared distance to a row whose label a record cannot have."""


class Release(NamedTuple):
    """The public folder: its manifest, its rows, and the file that each came in."""

    manifest: dict
    statement: str
    rows: pd.DataFrame
    files: np.ndarray

    @property
    def methods(self):
        return [step["method"] for step in self.manifest["steps"]]

    def step(self, method):
        return next(step for step in self.manifest["steps"] if step["method"] == method)


def see(folder):
    folder = Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tables = [pq.read_table(folder / file["path"]).to_pandas() for file in manifest["files"]]
    files = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    statement = next(one["path"] for one in manifest["documents"] if one["path"].endswith(".md"))
    text = (folder / statement).read_text(encoding="utf-8")
    return Release(manifest, text, pd.concat(tables, ignore_index=True), files)


def known_columns(release, register):
    """Columns of both that differ between people, but for those declared plain."""
    plain = {one["name"] for one in release.manifest["schema"] if one["role"] == "plain"}
    both = [name for name in release.rows.columns if name in register.columns and name not in plain]
    return [name for name in both if register[name].nunique() > 1]


def is_number(values):
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def numeric_columns(release, register):
    return [
        name for name in known_columns(release, register) if is_number(release.rows[name]) and is_number(register[name])
    ]


def numbers(release, register, columns):
    """These columns of both in standard deviations of the register, people x columns."""
    ours, theirs = (frame[columns].to_numpy(float) for frame in (register, release.rows))
    mean, sd = np.nanmean(ours, axis=0), np.nanstd(ours, axis=0)
    return np.nan_to_num((ours - mean) / sd), np.nan_to_num((theirs - mean) / sd)


def label_distances(release, register):
    """The sum over all columns of labels: what a label cannot stand for is far away, but for swapped and drawn ones."""
    far = np.zeros((len(register), len(release.rows)))
    uncertain = {
        name
        for step in release.manifest["steps"]
        if step["method"] != "refinement"
        for name in [*(step["parameters"].get("columns") or []), *(step["parameters"].get("dependents") or [])]
    }
    for name in set(known_columns(release, register)) - set(numeric_columns(release, register)):
        values, places = np.unique(register[name].astype(str), return_inverse=True)
        labels, rows = np.unique(release.rows[name].astype(str), return_inverse=True)
        fits = np.array([[_fits(release, name, label, value) for label in labels] for value in values])
        far += (2.0 if name in uncertain else CERTAIN) * ~fits[np.ix_(places, rows)]
    return far


def _fits(release, column, label, value):
    """Whether a released label may stand for an original value: by itself, as an interval, by the manifest's trees."""
    if label in ("*", value):
        return True
    found = INTERVAL.fullmatch(label)
    if found:
        low, high = float(found[2]), float(found[3])
        number = float(value)
        return low < number < high or (number == low and found[1] == "[") or (number == high and found[4] == "]")
    trees = [step["parameters"].get("taxonomies", {}).get(column) for step in release.manifest["steps"]]
    return any(value in _leaves_below(tree, label) for tree in trees if tree)


def _leaves_below(tree, label, inside=False):
    inside = inside or tree["value"] == label
    if "children" not in tree:
        return {tree["value"]} if inside else set()
    return set().union(*(_leaves_below(child, label, inside) for child in tree["children"]))


def squared(ours, theirs):
    """Squared Euclidean distances of all pairs."""
    found = (ours**2).sum(axis=1)[:, None] + (theirs**2).sum(axis=1)[None, :] - 2 * ours @ theirs.T
    return np.maximum(found, 0)


class Links(NamedTuple):
    """How many people an attack links to their own row: ties count by the chance to hit."""

    rate: float
    attacked: int

    @property
    def error(self):
        """Of the rate, one standard error: everybody is attacked once, so it is that of a binomial share."""
        return float(np.sqrt(max(self.rate * (1 - self.rate), 1 / self.attacked) / self.attacked))


def links(distances, truth, attacked=None):
    """Everybody takes one of the nearest rows at random; ``truth`` is the row of each person, -1 for none."""
    attacked = np.arange(len(truth)) if attacked is None else attacked
    near = distances <= distances.min(axis=1, keepdims=True) + 1e-9
    own = (truth >= 0) & near[np.arange(len(truth)), truth]
    return Links(float(np.mean((own / near.sum(axis=1))[attacked])), len(attacked))


def whitened(ours, theirs, covariance):
    """Both in the coordinates in which this covariance is the identity; directions without any are left out."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values.max()
    scale = vectors[:, kept] / np.sqrt(values[kept])
    return ours @ scale, theirs @ scale
