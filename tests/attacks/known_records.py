"""Some known records undo a map that is the same for everybody: a rotation, memberships, or both.

The intruder knows which rows belong to so many people, fits an affine map from their originals (and logits of released
shares, for memberships) to their rows, and looks for everybody else by what the map gives.
"""

import numpy as np
from intruder import links, numbers, squared

KNOWN = 20


def attack(release, register, truth, known=KNOWN):
    columns = [
        name
        for step in release.manifest["steps"]
        if step["method"] in {"rotation", "membership_transform"}
        for name in step["parameters"]["columns"]
    ]
    ours, theirs = numbers(release, register, list(dict.fromkeys(columns)))
    rng = np.random.default_rng(0)
    some = rng.permutation(np.flatnonzero(truth >= 0))[:known]
    found = _ranked(ours, theirs) if "membership_transform" in release.methods else ours
    inputs = np.column_stack([found, np.ones(len(found))])
    fitted, *_ = np.linalg.lstsq(inputs[some], theirs[truth[some]], rcond=None)
    others = np.setdiff1d(np.arange(len(truth)), some)
    return links(squared(inputs @ fitted, theirs), truth, others)


def _ranked(ours, theirs):
    """Originals by the released value of the same rank: what any map that keeps the order, S, makes of them."""
    return np.column_stack(
        [np.sort(theirs[:, column])[np.argsort(np.argsort(ours[:, column]))] for column in range(ours.shape[1])]
    )
