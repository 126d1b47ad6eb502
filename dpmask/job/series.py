"""A job in a series: its ledger, which of its people earlier releases hold, and what must be refused before masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey
from dpmask.engine.secrets import new_secret
from dpmask.errors import JobError, PolicyRefusal, TargetError, VerificationError
from dpmask.job.keys import kept
from dpmask.job.model import Job
from dpmask.lake.storage import Place
from dpmask.masking.earlier_releases import EarlierRelease, EarlierReleases
from dpmask.masking.method import Method
from dpmask.measures import find_measure
from dpmask.release.ledger import Entry, Ledger, read_ledger
from dpmask.table.people import KnownPeople, complete_blocks, known_people, people_of
from dpmask.table.requirement import Requirement
from dpmask.table.table import Table

_KEY = "key"
_HINT = "Give these people another series only if nobody can have both."


def ledger_place(series: str, private: Place) -> Place:
    """Where the ledger of a series lies: beside the private folder, unless the job gives its folder."""
    return Place(series) if "/" in series else private.parent / f"{series}.ledger"


def open_series(job: Job, private: Place, run: str, *, keep: bool, signer: Ed25519PublicKey | None) -> JobSeries | None:
    """The series of a job and its ledger, if it is of any."""
    if job.file.series is None:
        return None
    if not job.file.columns.identifier:
        text = "needs a column declared as identifier, by which the same people are found in all releases."
        raise JobError(job.text.error(("series",), text))
    place = ledger_place(job.file.series, private)
    if Place(job.file.target).contains(place):
        raise TargetError(f"{place.url}: the ledger of a series is private, and must not lie in the target.")
    place.make_private() if keep else place.require_private()
    ledger = read_ledger(place, job.file.series.rstrip("/").rsplit("/", 1)[-1].removesuffix(".ledger"), signer)
    if ledger.entries and not (place / _KEY).exists():
        raise VerificationError(f"{place.url}: its key is missing, by which people are found again. Restore it.")
    key = Subkey(bytes.fromhex(kept(place / _KEY, new_secret, keep=keep))[:32])
    if any(one.content["digests"] != key.fingerprint for one in ledger.entries):
        raise VerificationError(f"{place.url}: its key is another than that of its entries. Restore it.")
    return JobSeries(ledger, key, ledger.of_run(run))


class JobSeries(NamedTuple):
    """A series as a job finds it: the ledger, the key of its digests, and the job's own entry, if it was entered."""

    ledger: Ledger
    key: Subkey
    own: Entry | None

    @property
    def earlier(self) -> tuple[Entry, ...]:
        """The entries that this release must be checked against: later ones were checked against it."""
        return self.ledger.entries if self.own is None else self.ledger.entries[: self.own.number - 1]

    @property
    def head(self) -> str:
        """The hash of the last of them."""
        return self.earlier[-1].hash if self.earlier else ""

    def passes(self, job: Job) -> int:
        """Passes over the table that it adds, if earlier releases hold its people: who they are, and what is shown.

        A refinement counts people once; of others the rows are kept, meet those of earlier releases, and are attacked.
        """
        if _alone(job.methods):
            return 2 if self.earlier else 1
        return 2 + (1 + find_measure("differencing").passes if self.earlier else 0)

    def lost(self, target: Place) -> VerificationError:
        """The error where a release of the series stands that its ledger does not know."""
        return VerificationError(
            f"{target.url}: is of the series '{self.ledger.name}', and {self.ledger.place.url} has no entry of it. "
            "Restore the ledger from a backup."
        )

    def checked(self, job: Job, table: Table) -> CheckedSeries:
        """The job's methods, bound to the releases that hold its people: one pass. Others are refused."""
        refinement = _alone(job.methods)
        grouped = {name for one in requirements([refinement] if refinement else []) for name in one.columns}
        counted = sorted({*grouped, *job.released})
        identifiers = {name: str(table.schema.field(name).type) for name in job.file.columns.identifier}
        for one in self.earlier:
            if one.content["identifiers"] != identifiers:
                raise PolicyRefusal(
                    f"series: release {one.number} finds people by {_typed(one.content['identifiers'])}, this one by "
                    f"{_typed(identifiers)}. Take the same."
                )
        known = known_people(self.key, list(identifiers), counted, [self.ledger.people(one) for one in self.earlier])
        found = people_of(table, known)
        whole, partly = complete_blocks(found, known)
        there = {number for number in whole if found.there[number]}
        met = [one for one in self.earlier if (there | set(partly)) & set(one.content["blocks"])]
        if met and job.file.new is not None:
            raise PolicyRefusal(
                f"new: {int(found.there.sum()):,} people of {job.file.new} are in {_these(met)} of the series already, "
                "so that they are not new. Take new: out, and release the table as a whole."
            )
        for one in met:
            self._require_same(one, counted, there, found.changed, partly)
        checked = CheckedSeries(self, job.methods, found.new, sorted(there), identifiers, counted)
        if met and job.file.order != "shuffled":
            raise PolicyRefusal("series: rows must be shuffled (order), or two releases show which rows are the same.")
        if met and refinement is None and all(one.content.get("kept") is not None for one in met):
            return checked._replace(differenced=tuple(met))
        if met and (refinement is None or any(one.content["cuts"] is None for one in met)):
            raise PolicyRefusal(
                f"series: {_these(met)} of '{self.ledger.name}' hold people of this table. What several releases show "
                "together is counted where each is masked by one refinement, whose columns all have trees, and all "
                "else is released as it is; or measured, where none is masked by one refinement alone. This release "
                f"and those do not go together. {_HINT}"
            )
        if refinement is None:
            return checked
        beside = tuple(name for name in sorted(job.released) if name not in grouped)
        if not met:
            return checked
        return checked._replace(methods=(refinement.after(EarlierReleases(tuple(map(_earlier, met)), known, beside)),))

    def _require_same(
        self, one: Entry, counted: Sequence[str], there: set[int], changed: NDArray[np.int64], partly: Mapping[int, int]
    ) -> None:
        """Refuse other columns, people who are gone, and people whose values have changed."""
        blocks = set(one.content["blocks"])
        if one.content["counted"] != counted:
            other = sorted(set(one.content["counted"]) ^ set(counted))
            raise PolicyRefusal(
                f"series: release {one.number} holds people of this table with other columns: {', '.join(other)} "
                f"are only in one of both. Release the same columns, if need be generalised to one value. {_HINT}"
            )
        if blocks - there:
            gone = sum(partly.get(number, 0) for number in blocks - there)
            raise PolicyRefusal(
                f"series: {f'{gone:,} ' if gone else ''}people of release {one.number} are missing in this table, "
                "others are there: who is gone shows in both releases. Deletions cannot be checked (that needs "
                f"m-invariance). Release all of them again. {_HINT}"
            )
        number = int(changed[sorted(blocks)].sum())
        if number:
            raise PolicyRefusal(
                f"series: {number:,} people of release {one.number} have other values now in some of "
                f"{', '.join(counted)}. What both releases show of them cannot be counted. {_HINT}"
            )


class CheckedSeries(NamedTuple):
    """A job that may be the next release of its series, as far as that is known before masking."""

    series: JobSeries
    methods: tuple[Method[Any], ...]
    new: NDArray[np.uint64]
    blocks: list[int]
    identifiers: dict[str, str]
    counted: list[str]
    differenced: tuple[Entry, ...] = ()
    """Earlier releases of these people that are not counted exactly, so that they are attacked with this one."""

    def measured(self, job: Job, original: Table, masked: Table) -> tuple[Any, Any] | None:
        """What an intruder achieves who has this release and earlier ones, if that is not counted."""
        from dpmask.job.differencing import differenced

        if not self.differenced:
            return None
        return differenced(job, original, masked, self.differenced, self._identity, self.series.ledger.place)

    def kept(self, job: Job, run: str, original: Table, masked: Table, fitted: Sequence[Any]) -> dict[str, Any] | None:
        """Keep what this release shows of each person, if later ones cannot be counted exactly."""
        from dpmask.job.differencing import kept

        if self._cuts(fitted) is not None or _alone(job.methods):
            return None
        return kept(job, original, masked, self._identity, self.series.ledger.place / f"rows-{run}")

    @property
    def _identity(self) -> KnownPeople:
        """What digests people, without those who are known."""
        return known_people(self.series.key, list(self.identifiers), self.counted, [])

    def warnings(self, fitted: Sequence[Any]) -> list[str]:
        """What the data holder should know of the series."""
        place, found = self.series.ledger.place.url, []
        if not self.series.earlier:
            found.append(f"series: the first release of '{self.series.ledger.name}'; its ledger is {place}.")
        if self._cuts(fitted) is None and _alone(self.methods):
            found.append(
                "series: later releases of these people will be refused: what they show together can only be counted "
                "where one refinement masks, whose columns all have trees, and nothing is left out."
            )
        return found

    def _cuts(self, fitted: Sequence[Any]) -> dict[str, Any] | None:
        """The cut of each column; None where later releases cannot be counted."""
        cuts = fitted[0].series_cuts if len(fitted) == 1 else None
        return None if cuts is None else dict(cuts)

    def entered(
        self, content: Mapping[str, Any], fitted: Sequence[Any], signer: Ed25519PrivateKey | None
    ) -> dict[str, Any]:
        """Enter the release, unless it is: what its manifest shows of the series. Called before it is published.

        ``content`` has what ``kept`` describes.
        """
        ledger, own = self.series.ledger, self.series.own
        cuts = self._cuts(fitted)
        whole = {
            **content,
            "digests": self.series.key.fingerprint,
            "identifiers": self.identifiers,
            "counted": self.counted,
            "cuts": cuts,
            "required": [[list(sets), one.k] for one in requirements(self.methods) for sets in one.sets],
            "blocks": [*self.blocks, *([len(self.series.earlier)] if len(self.new) else [])],
        }
        if own is None:
            _, own = ledger.add(whole, self.new, signer)
        elif any(own.content[name] != value for name, value in whole.items() if name != "source"):
            raise TargetError(
                f"{ledger.place.url}: this job was entered as release {own.number} of the series with other content, "
                "and may have been published. Give the job another name to release it as one more."
            )
        else:
            ledger.write_head()
        return {"name": ledger.name, "number": own.number, "entry": own.hash}


def _earlier(one: Entry) -> EarlierRelease:
    required = tuple((tuple(columns), k) for columns, k in one.content["required"])
    return EarlierRelease(one.number, frozenset(one.content["blocks"]), one.content["cuts"], required)


def requirements(methods: Sequence[Method[Any]]) -> list[Requirement]:
    """What a job's methods require of groups."""
    return [one for method in methods for one in method.group_requirements]


def _alone(methods: Sequence[Method[Any]]) -> Method[Any] | None:
    """The job's only step, if it is counted in series."""
    return methods[0] if len(methods) == 1 and methods[0].counted_in_series else None


def _these(entries: Sequence[Entry]) -> str:
    numbers = ", ".join(str(one.number) for one in entries)
    return f"release{'s' if len(entries) > 1 else ''} {numbers}"


def _typed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in columns.items())
