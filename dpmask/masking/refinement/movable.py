"""What of a refinement may be moved: shares that are left out, each requirement, the guide, and importance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmask.clustering.partition import ALGORITHMS
from dpmask.masking.movable import GROUP_SIZE, Movable, ParameterRange, Trial, movable_numbers

SHARES = {
    "suppress_records": ParameterRange(0, 0.5, of_first_step=True),
    "suppress_cells": ParameterRange(0, 0.5),
}
_K = ParameterRange(1, whole=True, counts="records")
_GUIDE = ParameterRange(
    2,
    256,
    whole=True,
    trial=Trial("guides of about six clusters keep most when the recipient's algorithm is unknown", (4, 6, 8)),
)
_IMPORTANCE = ParameterRange(0.1, 10)
_MODELS = {
    "distinct_l": {"l": ParameterRange(2, whole=True)},
    "entropy_l": {"l": ParameterRange(1.1)},
    "recursive_l": {"c": ParameterRange(0.1), "l": ParameterRange(2, whole=True)},
    "confidence": {"most": ParameterRange(0.05, 1)},
    "t_closeness": {"t": ParameterRange(0.01, 1)},
}


def movable_parts(given: Mapping[str, Any], masks: Sequence[str]) -> Iterator[Movable]:
    """Everything of a step, as a job gives it, that may be moved; ``masks`` are the columns that are refined."""
    yield from movable_numbers({"suppress_records": 0.0, **given}, SHARES)
    yield from _of_requirements(given["requirements"])
    guide = given.get("guide")
    if isinstance(guide, Mapping) and "clusters" in guide:
        yield Movable(("guide", "clusters"), "clusters of the guide", guide["clusters"], _GUIDE)
        algorithm = guide.get("algorithm", ALGORITHMS[0])
        yield Movable(("guide", "algorithm"), "algorithm of the guide", algorithm, choices=ALGORITHMS)
    importance = given.get("importance") or {}
    for column in masks:
        yield Movable(("importance", column), f"importance of {column}", importance.get(column, 1.0), _IMPORTANCE)


def _of_requirements(given: Sequence[Any]) -> Iterator[Movable]:
    """The k of each, of which a sweep tries that with most columns, and the limits of models."""
    columns = [one["columns"] if isinstance(one, Mapping) else one[0] for one in given]
    sized = [at for at, one in enumerate(given) if not isinstance(one, Mapping) or "k" in one]
    tried = max(sized, key=lambda at: len(columns[at]), default=None)
    for at, one in enumerate(given):
        by = ", ".join(columns[at])
        if at in sized:
            name = "k" if isinstance(one, Mapping) else 1
            sizes = _K._replace(trial=GROUP_SIZE) if at == tried else _K
            yield Movable(("requirements", at, name), f"k of {by}", one[name], sizes)
        for number, model in enumerate(one.get("models", ()) if isinstance(one, Mapping) else ()):
            for limit, ends in _MODELS[model["model"]].items():
                if limit in model:
                    label = f"{limit} of {model['model']}, {model['column']} by {by}"
                    yield Movable(("requirements", at, "models", number, limit), label, model[limit], ends)
