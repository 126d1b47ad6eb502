"""The fits of a job: those of ``dpmask run``, those that ``dpmask fit`` saves, and saved ones that a run takes.

A saved fit masks by the draws of the run. Where these are not the ones that it was fitted with, the table or the key is
another: then what is promised is counted again, and what belongs to one table is refused, before anything is masked.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from dpmask.engine.draws import Subkey
from dpmask.engine.tasks import tasks_named
from dpmask.errors import JobError, TargetError
from dpmask.job.keys import hidden_key
from dpmask.job.model import Job
from dpmask.job.prepare import Prepared, alone_in, check_access, folders, prepare, source_roots
from dpmask.lake.storage import Place
from dpmask.masking.method import FittedMethod, Method
from dpmask.masking.saved import SavedFit, read_fit
from dpmask.table.content import bound_key
from dpmask.table.table import Table


def draws_of(prepared: Prepared) -> Subkey:
    """The key of all that is drawn for this release, bound to the job and to the content of what its steps read."""
    read = {column for method in prepared.job.methods for column in method.reads}
    stored = [name for name in prepared.lake.schema.names if name in read]
    return bound_key(prepared.subkey("draws"), prepared.lake, stored)


def fitted_steps(prepared: Prepared, draws: Subkey, methods: Sequence[Method[Any]]) -> tuple[Table, list[FittedMethod]]:
    """Each method fitted to the table as masked by those before it, or taken from where it was saved; and the table."""
    table: Table = prepared.lake
    keys = [draws.subkey(f"mask[{number}]") for number in range(len(methods))]
    saved = [one.for_job(method, key) for one, method, key in zip(prepared.fitted, methods, keys, strict=False)]
    _refuse_rules_of(prepared.job, saved)
    fitted: list[FittedMethod] = []
    for number, method in enumerate(methods):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are in the outcome
            step = saved[number] if saved else method.fit(table, key=keys[number])
        if step.reused:
            step.check(table)
            step.require_promises(table)
        fitted.append(step)
        table = table.masked_by(step)
    return table, fitted


def _refuse_rules_of(job: Job, steps: Sequence[FittedMethod]) -> None:
    """Refuse rules about figures of a fit on another table: they would judge that one."""
    reused = [name for name, step in zip(job.names, steps, strict=False) if step.reused]
    for number, rule in enumerate(job.rules):
        if rule.measure in reused:
            text = f"'{rule.text}' is about the table that the step was fitted on, and this is another. Take it out."
            raise JobError(job.text.error(("policy", number), text))


def fit_job(job: Job, folder: str, *, trial: bool = False) -> list[FittedMethod]:
    """Fit the steps of a job to its source and save each to a folder of its own, for ``run --fitted``."""
    place = Place(folder)
    if job.file.series is not None:
        raise JobError(job.text.error(("series",), "each release of a series is fitted by itself. Run the job."))
    check_access(job)
    target, private = folders(job)
    if any(one.contains(place) for one in (target, *source_roots(job))):
        raise TargetError(f"{place.url}: a fit is private, and must lie neither in the target nor in the source.")
    if place.files():
        raise TargetError(f"{place.url}: holds something already. Save the fit to a new folder.")
    private.make_private()
    place.make_private()
    with alone_in(private), hidden_key(job.file.key), tasks_named(job.file.name):
        prepared = prepare(job, overwrite=True, trial=trial)
        _, steps = fitted_steps(prepared, draws_of(prepared), job.methods)
        for number, step in enumerate(steps):
            step.save(_of_step(place, number).full_url)
    return steps


def saved_steps(job: Job, folder: str) -> list[SavedFit]:
    """The fits of a job's steps in a folder; those of other steps or parameters are refused."""
    place = Place(folder)
    if job.file.series is not None:
        raise JobError(job.text.error(("series",), "each release of a series is fitted by itself. Leave out --fitted."))
    steps = len(job.methods)
    if _of_step(place, steps).exists():
        raise JobError(f"{place.url}: was fitted for more steps than the job's {steps}. Fit again: dpmask fit.")
    found = []
    for number, method in enumerate(job.methods):
        saved = read_fit(_of_step(place, number).full_url)
        if not method.takes(saved.method):
            text = f"{saved.place.url} was fitted for {_difference(saved.method, method)}. Fit again: dpmask fit."
            raise JobError(job.text.error(("mask", number), text))
        found.append(saved)
    return found


def _of_step(place: Place, number: int) -> Place:
    return place / f"mask-{number}"


def _difference(saved: Method[Any], method: Method[Any]) -> str:
    """What differs, without values."""
    if type(saved) is not type(method):
        return f"another method, {saved.who}"
    theirs, ours = saved.parameters(), method.parameters()
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return f"other parameters ({', '.join(names) or 'household'})"
