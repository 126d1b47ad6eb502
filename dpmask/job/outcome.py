"""What came of a run, typed: the content of result.json and of ``dpmask run --json``, described by a JSON Schema.

An outcome is never changed: each stage of a run adds what it found, which gives a new one. What a run did not come to
is left out of its JSON.
"""

from __future__ import annotations

import ast
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from dpmask.errors import DpmaskError, Interrupted, PolicyRefusal

Status = Literal["released", "already released", "refused", "failed", "interrupted"]
Stage = Literal["read", "mask", "measure", "decide", "shuffle", "publish", "verify"]
Exhibits = SkipJsonSchema[dict[str, Any]]
"""How pages draw values (dpmask.results.Exhibit); no part of the JSON."""
Absent = SkipJsonSchema[None]


class _OutcomePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # parts are built with the whole


class About(_OutcomePart):
    """What a measure is."""

    model_config = ConfigDict(extra="allow")

    definition: str
    """What it measures."""
    direction: str
    """Which direction is worse."""
    source: str
    """Where it comes from."""


class MeasureOutcome(_OutcomePart):
    """What a measure found."""

    name: str
    """What the job and its policy call it: the measure's name, or its `as`."""
    measure: str
    """The measure, as `dpmask explain` knows it."""
    public: bool
    """Whether the release shows it. Risks are never public."""
    judged: dict[str, float | int | None]
    """The numbers that a policy may name."""
    values: dict[str, Any]
    """All that it found; each measure's page in the guide describes it."""
    explanation: str
    """What the numbers mean, in a sentence or two."""
    about: About
    """What the measure is."""
    first: SkipJsonSchema[bool] = Field(False, exclude=True, repr=False)
    automatic: SkipJsonSchema[bool] = Field(False, exclude=True, repr=False)
    lost: SkipJsonSchema[bool] = Field(False, exclude=True, repr=False)
    larger_is_better: SkipJsonSchema[bool] = Field(False, exclude=True, repr=False)
    shares: SkipJsonSchema[list[str]] = Field([], exclude=True, repr=False)
    headlines: SkipJsonSchema[list[Any]] = Field([], exclude=True, repr=False)
    exhibits: Exhibits = Field({}, exclude=True, repr=False)


class StepOutcome(_OutcomePart):
    """What a masking step did."""

    method: str
    """The method, as the job names it."""
    parameters: dict[str, Any]
    """Every parameter of the method, with its default where the job gives none."""
    withheld: list[str]
    """Parameters that the release does not show."""
    statement: str
    """What readers of the release may know of what was done."""
    solution: dict[str, Any] | None
    """What programs can read of the step in the manifest, if anything."""
    weaknesses: list[str]
    """What it does not protect against."""
    figures: dict[str, Any] | None
    """The method's own figures, if it has any; a policy may name the judged ones."""
    for_analysts: list[str] = []
    """What an analyst of the release must know to use it."""
    consistency: dict[str, Any] | None = None
    """What the step did to zeros, missing values and edit rules of the numbers that it masks: before and after it."""
    name: SkipJsonSchema[str] = Field("", exclude=True, repr=False)
    about: SkipJsonSchema[About | None] = Field(None, exclude=True, repr=False)
    exhibits: Exhibits = Field({}, exclude=True, repr=False)
    solution_exhibits: Exhibits = Field({}, exclude=True, repr=False)
    consistency_exhibits: Exhibits = Field({}, exclude=True, repr=False)


class RuleOutcome(_OutcomePart):
    """A rule of the policy, and whether it holds."""

    rule: str
    """The rule as the job writes it."""
    judged: float
    """The value it was judged by: the worse end of the 95 % interval where the value was found on a sample."""
    held: bool
    """Whether it holds. A release is published only if all of them do."""
    columns: list[str]
    """The columns that it is about."""


class Resumed(_OutcomePart):
    """What a run with --resume took over from its checkpoint."""

    passes: int
    """Passes that were not computed again."""
    files: int
    """Masked files that were not written again."""


class Outcome(_OutcomePart):
    """What came of `dpmask run`. Keys that the run did not come to are absent.

    While a run is under way its result.json has the status `running` and the job's name only.
    """

    status: Status
    """What came of the run."""
    exit_code: int
    """0 released or already released; 1 a bug; 2 bad job file or arguments, credentials, or a target in
    the way; 3 refused by the policy; 4 input missing or unusable; 5 cluster or storage failed, worth a retry;
    130 interrupted."""
    passes: dict[str, int]
    """Passes over the blocks, by stage."""
    tasks: dict[str, int]
    """Tasks of those passes, by stage."""
    retries: dict[str, int]
    """Tasks that failed and were tried again, by stage."""
    job: str | Absent = None
    """The job file."""
    name: str | Absent = None
    """The job's name."""
    stage: Stage | Absent = None
    """The last stage that began."""
    run: str | Absent = None
    """The digest of job, input and key; also the name of the run's folder in the private folder."""
    trial: bool | Absent = None
    """Whether it is a trial: what it wrote is not a release."""
    source_rows: int | Absent = None
    """Records in the source."""
    source_bytes: int | Absent = None
    """Size of the source's files."""
    source_version: str | Absent = None
    """Of a Delta Lake or Iceberg table: the version or the snapshot that was read."""
    seconds: dict[str, float] | Absent = None
    """Wall time of each stage."""
    checkpoint: str | Absent = None
    """Where a run with --resume goes on from, if the run left anything there."""
    warnings: list[str] | Absent = None
    """What the data holder should know."""
    rows: int | Absent = None
    """Records in the release, or masked for it."""
    report: str | Absent = None
    """The internal report."""
    measures: list[MeasureOutcome] | Absent = None
    """What was measured, in the order of the job."""
    policy: list[RuleOutcome] | Absent = None
    """The rules of the policy, in the order of the job."""
    steps: list[StepOutcome] | Absent = None
    """The masking steps, in the order of the job."""
    resumed: Resumed | Absent = None
    """What was taken over from a checkpoint."""
    release: str | Absent = None
    """The folder of the release."""
    files: int | Absent = None
    """Files of data in the release."""
    release_bytes: int | Absent = None
    """Size of these files."""
    kind: str | Absent = None
    """The class of the error."""
    error: str | Absent = None
    """Why there is no release, and what to do."""

    def known(self, *names: str) -> dict[str, Any]:
        """Of these fields, or of all, those that the run came to."""
        return {name: getattr(self, name) for name in names or self.model_fields_set if name in self.model_fields_set}

    def adding(self, **found: Any) -> Outcome:
        """With what a stage found."""
        return Outcome(**(self.known() | found))

    def without_checkpoint(self) -> Outcome:
        """When there is nothing left to go on from."""
        return Outcome(**{name: value for name, value in self.known().items() if name != "checkpoint"})

    def counting(self, counts: str, stage: str, number: int) -> Outcome:
        """With so many more passes, tasks or retries of a stage."""
        before: dict[str, int] = getattr(self, counts)
        return self.adding(**{counts: before | {stage: before.get(stage, 0) + number}})

    def failing(self, error: DpmaskError) -> Outcome:
        """With the error that ended the run."""
        status = {PolicyRefusal: "refused", Interrupted: "interrupted"}.get(type(error), "failed")
        return self.adding(status=status, exit_code=error.exit_code, kind=type(error).__name__, error=str(error))

    def to_dict(self) -> dict[str, Any]:
        """The outcome, for JSON."""
        return self.model_dump(exclude_unset=True)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a run's result."""
    schema = Outcome.model_json_schema(mode="serialization")
    for described in schema["properties"].values():
        described.pop("default", None)  # what is not known is absent
    parts = {**schema["$defs"], Outcome.__name__: schema}
    for name, field, text in _texts_of_fields():
        if field in parts[name]["properties"]:
            parts[name]["properties"][field]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _texts_of_fields() -> list[tuple[str, str, str]]:
    """Class, field and the text below it. Read when a schema is asked for: it takes as long as a small run's passes."""
    classes = [node for node in ast.parse(Path(__file__).read_text()).body if isinstance(node, ast.ClassDef)]
    return [
        (node.name, field.target.id, cleandoc(text.value.value))
        for node in classes
        for field, text in pairwise(node.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    ]
