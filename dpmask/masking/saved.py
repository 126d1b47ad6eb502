"""A fit in a private folder, to mask with later. No key is in it; what was learnt from records is.

``fit.json``: ``format`` and ``version``, the ``dpmask`` that wrote it, the ``method``,
``content`` (which columns and how many rows the table had, and keyed digests of them, by which the table is
known again), the ``key``'s fingerprint, ``values``, ``collections`` (the files of each), ``files`` (the SHA-256 of
each) and the ``sha256`` of all of that. ``values`` are plain ones, and {"class": NAME, part: ...} for a part of the
fit, {"tuple": [...]}, {"mapping": [[name, value], ...]}, {"fraction": "1/3"}, {"float": "inf"}, {"key": [purposes]},
{"array": number}, {"collection": number}.

``arrays.parquet`` has one row, and in column n the array of that number as a list; the metadata ``dpmask`` has their
shapes and orders. Models of cells, which may be many, are such files of their own, whose metadata have their values,
too: workers write and read them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from dpmask import __version__
from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, make_key
from dpmask.engine.tasks import Position
from dpmask.errors import DpmaskError, InputError, JobError, TargetError
from dpmask.lake.array_files import packed, unpacked
from dpmask.lake.storage import OWNER_ONLY, Place
from dpmask.masking.method import FittedMethod, Method, own_classes
from dpmask.masking.state import State, put_together, taken_apart
from dpmask.table.content import Content, digest_key

_FORMAT, _VERSION = "dpmask fit", 1
_FIT, _ARRAYS = "fit.json", "arrays.parquet"


def save(fitted: FittedMethod, folder: str | os.PathLike[str]) -> None:
    """Write a fit to a new private folder, ``fit.json`` last."""
    place = Place(os.fspath(folder))
    if place.files():
        raise TargetError(f"{place.url}: holds something already. Save the fit to a new folder.")
    place.make_private()
    state = taken_apart(fitted, fitted.key)
    written = [
        collection.with_positions().map(partial(_write_part, place, number), "save models")
        for number, collection in enumerate(state.collections)
    ]
    files = dict(one for part in written for one in part)
    files[_ARRAYS] = _write(place / _ARRAYS, packed(state.arrays))
    content = fitted.fitted_on
    found = {
        "format": _FORMAT,
        "version": _VERSION,
        "dpmask": __version__,
        "method": fitted.who,
        "content": content and [content.columns, content.rows, [f"{one:032x}" for one in content.digests]],
        "key": fitted.key.fingerprint,
        "values": state.values,
        "collections": [[name for name, _ in part] for part in written],
        "files": files,
    }
    _write(place / _FIT, json.dumps(found | {"sha256": _digest(found)}, indent=1, allow_nan=False).encode())


def load(
    folder: str | os.PathLike[str], *, key: str | bytes | Subkey | None = None, seed: int | None = None
) -> FittedMethod:
    """Load a fit that was saved, to mask with.

    Parameters
    ----------
    folder
        The private folder that ``save`` wrote, or its URL.
    key, seed
        The secret that draws, or for trials an integer, as for ``fit``: none is in the folder. With that of the fit,
        the table that it was fitted on is masked to the same bytes; another one draws anew.

    Returns
    -------
    FittedMethod
        What ``fit`` returned.

    Examples
    --------
    >>> import dpmask, pandas, tempfile
    >>> people = pandas.DataFrame({"income": [2100.5, 3900.0, 2750.25, 1800.0]})
    >>> fitted = dpmask.NoiseAddition(columns=["income"], scale=0.1).fit(people, seed=7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(f"{folder}/noise")
    ...     again = dpmask.load(f"{folder}/noise", seed=7)
    >>> again.mask(people).equals(fitted.mask(people))
    True

    """
    saved = read_fit(folder)
    if saved.content is None:
        raise JobError(f"{saved.place.url}: is the fit of a job. Mask with it by dpmask run JOB.yaml --fitted FOLDER.")
    secret = make_key("load", key=key, seed=seed)
    columns, rows, digests = saved.content
    content = Content(columns, rows, digests, digest_key(secret, columns))
    return saved.fitted(saved.method.own_key(content.bound(secret)), content)


class SavedFit(NamedTuple):
    """A fit as it was read from its folder, whole."""

    place: Place
    method: Method[Any]
    content: tuple[tuple[str, ...], int, tuple[int, ...]] | None
    key: str
    digest: str
    state: State

    def for_job(self, method: Method[Any], draws: Subkey) -> FittedMethod:
        """The fitted method with the draws of a job, and its parameters, which may ask for less."""
        own = method.own_key(draws)
        found = self.fitted(own)
        object.__setattr__(found, "method", method)
        if own.fingerprint == self.key:
            return found
        return found.with_key(own.subkey(f"fitted on another table, {self.digest}").rooted())

    def fitted(self, key: Subkey, content: Content | None = None) -> FittedMethod:
        """The fitted method, with draws of this key."""
        found: FittedMethod = put_together(self.state, key, own_classes())
        object.__setattr__(found, "fitted_on", content)
        return found


def read_fit(folder: str | os.PathLike[str]) -> SavedFit:
    """What a folder holds; refused if it is no fit, a newer one, or not what was written."""
    place = Place(os.fspath(folder))
    place.require_private()
    if not (place / _FIT).exists():
        raise InputError(f"{place.url}: holds no fit, there is no {_FIT}. Make one: fitted.save(folder), dpmask fit.")
    damaged = InputError(f"{place.url}: is damaged: it is not what was written. Fit again.")
    try:
        found = json.loads((place / _FIT).read())
        if found["format"] != _FORMAT:
            raise InputError(f"{place.url}: is no fit of dpmask's.")
        if found["version"] > _VERSION:
            raise InputError(f"{place.url}: was written by a newer dpmask, {found['dpmask']}. This is {__version__}.")
        digest = found.pop("sha256")
        if digest != _digest(found):
            raise damaged
        arrays, _ = unpacked(_read(place, _ARRAYS, found["files"]))
        collections = [
            Collection.of_shards(partial(_read_part, place, found["files"]), names, "load models")
            for names in found["collections"]
        ]
        state = State(found["values"], arrays, collections)
        method = put_together(State(found["values"]["method"], arrays), None, own_classes())
        content = found["content"]
        if content is not None:
            content = tuple(content[0]), content[1], tuple(int(one, 16) for one in content[2])
        return SavedFit(place, method, content, found["key"], digest, state)
    except DpmaskError:
        raise
    except Exception:
        raise damaged from None


def _digest(found: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _write(place: Place, data: bytes) -> str:
    place.write(data, OWNER_ONLY)
    return hashlib.sha256(data).hexdigest()


def _read(place: Place, name: str, files: Mapping[str, str]) -> bytes:
    data = (place / name).read()
    if hashlib.sha256(data).hexdigest() != files[name]:
        raise InputError(f"{place.url}: is damaged: {name} is not what was written. Fit again.")
    return data


def _write_part(place: Place, number: int, content: Any, position: Position) -> tuple[str, str]:
    """One block of a collection in a file of its own: its name and its digest."""
    name, state = f"models-{number}-{position.number:05d}.parquet", taken_apart(content)
    return name, _write(place / name, packed(state.arrays, state.values))


def _read_part(place: Place, files: Mapping[str, str], name: str) -> Any:
    arrays, values = unpacked(_read(place, name, files))
    return put_together(State(values, arrays), None, {})
