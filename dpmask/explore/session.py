"""A session of the explorer: the setting, what was tried, undo and redo, saving; no browser and no server.

>>> explorer = Explorer("job.yaml")                        # doctest: +SKIP
>>> explorer.move("mask[0].k", 10).risk                    # doctest: +SKIP
Estimate(name='gate.linkage', value=0.012, interval=(0.009, 0.015))
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dpmask.engine.yaml_text import TextLimits, load
from dpmask.errors import DpmaskError, InputError, JobError, TargetError, nearest
from dpmask.explore.controls import Changes, Control, controls_of, flow_text, moved_values, settings_of
from dpmask.explore.evaluation import Estimate, Evaluated, Sample, ScaledJobs, evaluated
from dpmask.explore.job_edit import difference, edited
from dpmask.explore.proportion import in_proportion, with_as_large_clusters
from dpmask.job.job_text import JobText
from dpmask.job.model import Job, understood
from dpmask.job.prepare import check_access, folders, prepare
from dpmask.job.sweep import goals_of
from dpmask.lake.storage import Place
from dpmask.release.manifest import canonical
from dpmask.table.content import bound_key
from dpmask.table.keyed_sample import keyed_sample

SAMPLE_ROWS = 5_000
"""Records of the sample: on so many a move of any ready job takes less than 2 s."""
_KEPT, _POINTS = "explore", "points.json"
_MOST_POINTS, _MOST_PICTURES = 500, 50


@dataclass(frozen=True)
class Tried:
    """A setting that was tried, and what it came to, as far as it is kept."""

    changes: Mapping[str, Any]
    values: Mapping[str, Estimate]
    risk: Estimate
    loss: Estimate
    broken: tuple[str, ...]

    def to_dict(self, start: Mapping[str, Any]) -> dict[str, Any]:
        """For JSON, with all that was set: the next session may start elsewhere."""
        return {
            "setting": {**start, **self.changes},
            "values": list(self.values.values()),
            "risk": self.risk,
            "loss": self.loss,
            "broken": self.broken,
        }


class Exact(NamedTuple):
    """What a setting came to on everything: the numbers that a policy may name, and the rules that it breaks."""

    values: Mapping[str, float]
    broken: tuple[str, ...]
    risk: float
    loss: float


@dataclass
class _History:
    """Settings in the order in which they were taken, and which one is set."""

    settings: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    at: int = 0

    def take(self, changes: dict[str, Any]) -> None:
        if changes != self.settings[self.at]:
            self.settings[self.at + 1 :] = [changes]
            self.at += 1


class Explorer:
    """A job whose parameters are moved on a sample of its source.

    Parameters
    ----------
    url
        The job file.
    settings
        Changes to it, as ``--set`` has them; they are not saved.
    rows
        About how many records the sample has.
    risk, loss
        What settings are compared by, as a policy names it; by default the first measured rate, and loss.
    """

    def __init__(
        self,
        url: str,
        *,
        settings: Sequence[str] = (),
        rows: int = SAMPLE_ROWS,
        risk: str | None = None,
        loss: str | None = None,
    ) -> None:
        self.url, self.given, self.asked_rows = url, tuple(settings), rows
        self._text = JobText(url, settings)
        self._written = _read_text(url)
        self._values = load(self._written, self._text.url)
        self.job = understood(self._text)
        if self.job.file.series is not None:
            text = (
                "a release of a series depends on the earlier ones, which a sample does not show. Explore without it."
            )
            raise JobError(self._text.error(("series",), text))
        check_access(self.job)
        self.goals = goals_of(self.job, risk, loss)
        self.controls = controls_of(self.job)
        self.sample = self._sampled(rows)
        self._history, self._lock = _History(), threading.RLock()
        self._pictures: dict[bytes, Evaluated] = {}
        self.exact: dict[bytes, Exact] = {}
        """What was found on everything, by setting."""
        self.tried: dict[bytes, Tried] = self._kept()

    def _sampled(self, rows: int) -> Sample:
        prepared = prepare(self.job, overwrite=True, trial=True, keep=False)
        unset = {one.name: None for one in self.controls if one.paths}
        fixed = [moved_values(self._text.values, self.controls, unset), prepared.versions, rows]
        self._identity = hashlib.sha256(flow_text(fixed).encode()).hexdigest()
        household = next(iter(self.job.file.columns.household), None)
        table = keyed_sample(prepared.lake, rows, prepared.key.subkey("explore"), household=household)
        whole = table.rows == prepared.lake.rows
        draws = None if whole else bound_key(prepared.key.subkey("explore draws"), table, table.schema.names)
        return Sample(prepared.lake, table, draws)

    @property
    def changes(self) -> dict[str, Any]:
        """What is set and differs from the job file."""
        return dict(self._history.settings[self._history.at])

    def value(self, control: Control) -> Any:
        """What a control is set to."""
        return self.changes.get(control.name, control.value)

    @property
    def can_undo(self) -> bool:
        """Whether there is an earlier setting."""
        return self._history.at > 0

    @property
    def can_redo(self) -> bool:
        """Whether a setting was undone."""
        return self._history.at + 1 < len(self._history.settings)

    def control(self, name: str) -> Control:
        """The control of that name."""
        found = next((one for one in self.controls if one.name == name), None)
        if found is None:
            raise JobError(f"The job has no '{name}' to move. {nearest(name, [one.name for one in self.controls])}")
        return found

    def move(self, name: str, value: Any) -> Evaluated:
        """Set one control; a value that the job cannot have leaves everything as it was."""
        control = self.control(name)
        value = control.checked(value)
        with self._lock:
            changes = {one: given for one, given in self.changes.items() if one != name}
            return self.go(changes | ({} if value == control.value else {name: value}))

    def go(self, changes: Changes) -> Evaluated:
        """Take a setting, such as one that was tried before."""
        with self._lock:
            found = self.at(changes)
            self._history.take(dict(changes))
            return found

    def undo(self) -> Evaluated:
        """Go back by one setting."""
        with self._lock:
            self._history.at -= self.can_undo
            return self.current()

    def redo(self) -> Evaluated:
        """Take back an undo."""
        with self._lock:
            self._history.at += self.can_redo
            return self.current()

    def current(self) -> Evaluated:
        """What the setting came to on the sample."""
        return self.at(self.changes)

    def at(self, changes: Changes) -> Evaluated:
        """What a setting comes to on the sample: computed once, unless many were tried since."""
        with self._lock:
            key = setting_key(changes)
            if key not in self._pictures:
                found = self._evaluated(changes)
                while len(self._pictures) >= _MOST_PICTURES:
                    del self._pictures[next(iter(self._pictures))]
                self._pictures[key] = found
                broken = tuple(line.rule for line in found.verdict if not line.held)
                self.tried[key] = Tried(dict(changes), found.values, found.risk, found.loss, broken)
                self._keep()
            return self._pictures[key]

    def _evaluated(self, changes: Changes) -> Evaluated:
        try:
            return evaluated(self._jobs_at(changes), self.sample, self.goals)
        except InputError as error:
            if self.sample.whole:
                raise
            rows = f"{self.sample.table.rows:,} of {self.sample.lake.rows:,} records"
            raise InputError(f"{error} The sample has {rows}; a larger one may do: --rows.") from None

    def job_at(self, changes: Changes) -> Job:
        """The job with a setting in place of its own."""
        return self._job_of(moved_values(self._text.values, self.controls, changes))

    def _job_of(self, values: dict[str, Any]) -> Job:
        return understood(self._text.with_values(values))

    def _jobs_at(self, changes: Changes) -> ScaledJobs:
        """The same as it is taken on the sample."""
        values, share = moved_values(self._text.values, self.controls, changes), self.sample.share
        job = self._job_of(values)
        if self.sample.whole:
            return ScaledJobs(job, job, job, {})
        larger = with_as_large_clusters(values, job.methods, share)
        smaller, changed = in_proportion(values, job.methods, share)
        return ScaledJobs(job, self._job_of(larger), self._job_of(smaller), changed)

    def settings_at(self, changes: Changes) -> list[str]:
        """A setting as ``--set`` of the job file as it is now takes it, after those that were given."""
        now = load(self._written, self._text.url)
        return [*self.given, *settings_of(now, moved_values(self._values, self.controls, changes))]

    def text(self) -> str:
        """The job file with what is set, comments and all."""
        wanted = moved_values(self._values, self.controls, self.changes)
        return edited(self._written, wanted, self._text.url)

    def difference(self) -> str:
        """What saving would change in the job file."""
        return difference(self._written, self.text(), os.path.basename(self.url))

    def save(self, name: str | None = None) -> str:
        """Write the job file, or another beside it, with what is set; the address of what was written.

        A file that somebody changed meanwhile is not written over, nor another one that is there.
        """
        own = Place(self.url)
        place = own if name in (None, "", os.path.basename(self.url)) else own.parent / _checked_name(str(name))
        with self._lock:
            new = self.text()
            if place.url == own.url and _read_text(self.url) != self._written:
                raise TargetError(f"{own.url}: was changed by somebody since. Start again, or save under another name.")
            if place.url != own.url and place.exists():
                raise TargetError(f"{place.url}: is there already. Save under another name.")
            place.write(new.encode())
            if place.url == own.url:
                self._written = new
        return place.url

    @property
    def _points(self) -> Place:
        return folders(self.job)[1] / _KEPT / _POINTS

    def _keep(self) -> None:
        """Keep what was tried in the private folder, for the next session on the same job and source."""
        found = list(self.tried.values())[-_MOST_POINTS:]
        folders(self.job)[1].make_private()
        start = {one.name: one.value for one in self.controls}
        content = {"of": self._identity, "points": [one.to_dict(start) for one in found]}
        self._points.write(json.dumps(content).encode())

    def _kept(self) -> dict[bytes, Tried]:
        start = {one.name: one.value for one in self.controls}
        try:
            content = json.loads(self._points.read())
            points = content["points"] if content["of"] == self._identity else []
            found = [_tried(one, start, self.goals) for one in points if set(one["setting"]) == set(start)]
        except (DpmaskError, ValueError, KeyError, TypeError):
            return {}
        return {setting_key(one.changes): one for one in found}


def setting_key(changes: Changes) -> bytes:
    """A key that differs where settings differ."""
    return canonical(dict(sorted(changes.items())))


def _tried(point: Mapping[str, Any], start: Mapping[str, Any], goals: Sequence[Any]) -> Tried:
    changes = {name: value for name, value in point["setting"].items() if value != start[name]}
    values = {name: _estimate(name, value, interval) for name, value, interval in point["values"]}
    risk, loss = (_estimate(*point[name]) for name in ("risk", "loss"))
    if (risk.name, loss.name) != tuple(goal.name for goal in goals):
        risk, loss = (values[goal.name] for goal in goals)
    return Tried(changes, values, risk, loss, tuple(point["broken"]))


def _estimate(name: str, value: float, interval: Sequence[float] | None) -> Estimate:
    return Estimate(str(name), float(value), None if interval is None else (float(interval[0]), float(interval[1])))


def _read_text(url: str) -> str:
    try:
        return Place(url).read(TextLimits().size).decode()
    except InputError as error:
        raise JobError(str(error)) from None


def _checked_name(name: str) -> str:
    fits = name == os.path.basename(name) and name.endswith((".yaml", ".yml")) and name.isprintable()
    if not fits or name.startswith("."):
        raise JobError("Save under: must be the name of a file beside the job file that ends with .yaml.")
    return name
