"""The job file's model: every key, checked, with errors that name the key and the nearest valid one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from dpmask.errors import MOST_LINES, JobError, nearest
from dpmask.job.job_text import JobText, KeyPath
from dpmask.job.roles import expanded
from dpmask.lake.filters import row_filter
from dpmask.masking import METHODS, method_class
from dpmask.masking.method import Method
from dpmask.masking.of_households import OfHouseholds
from dpmask.measures import MEASURES, find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.release.gate import GATE, REASON_LENGTH, GateRisk, default_rules
from dpmask.release.policy import Rule, check_rule, parse_rule
from dpmask.table.lake import Lake, lake_columns, read_lake
from dpmask.table.requirement import HOUSEHOLDS


def _whole(value: object) -> object:
    """Let 1e6 be the integer it means; YAML reads it as text."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return value
    return int(number) if number.is_integer() and not isinstance(value, bool) else value


def _as_list(value: object) -> object:
    """A list of sources, also of a single one."""
    if value == "":
        raise ValueError("it is empty")
    return [value] if isinstance(value, str) else value


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Roles(_Model):
    """The role of every column of the source."""

    identifier: list[str] = Field([], description="dropped; a list may have patterns, such as wgt_*")
    drop: list[str] = Field([], description="left out, too, though no identifier")
    quasi: list[str] = Field([], description="known to an intruder: quasi-identifiers")
    sensitive: list[str] = Field([], description="what an intruder wants to learn")
    weight: list[str] = Field([], description="survey weights")
    household: list[str] = Field(
        [], max_length=1, description="the number of the household: dropped, unless a step gives it pseudonyms"
    )
    plain: list[str] = Field([], description="released as it is")


class CsvFormat(_Model):
    """How CSV files of the source are written."""

    separator: str = Field(",", description="what parts fields: one character")
    encoding: str = Field("utf-8", description="how text is encoded, such as latin-1 or windows-1252")


class Publish(_Model):
    """What a release shows beyond the rest."""

    moments: bool = Field(False, description="losses that, with the release, give moments of the originals")


class JobFile(_Model):
    """A dpmask job."""

    name: str = Field(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$", max_length=200, description="the release's name")
    source: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(_as_list),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
    ] = Field(
        min_length=1,
        description="the lake: any fsspec URL of a folder, a glob or one file of Parquet, or a small CSV; or a list",
    )
    lake_schema: Literal["strict", "union"] = Field(
        "strict",
        alias="schema",
        description="all files have the same columns and types; or what any has, null elsewhere, in the wider type",
    )
    where: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="the rows that are released, such as year = 2026 and region in (north, south)",
    )
    version: int | None = Field(
        None, ge=0, description="of a Delta Lake or Iceberg table: the version or snapshot; by default as it is now"
    )
    csv: CsvFormat = Field(
        default_factory=lambda: CsvFormat(separator=",", encoding="utf-8"), description="of a source of CSV files"
    )
    target: str = Field(min_length=1, description="the folder of the release, public")
    private: str = Field(min_length=1, description="your own folder: staging, internal report, pairing, log")
    series: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$",
        description="the series of releases of the same people: a name, whose ledger lies beside the private folder as "
        "NAME.ledger, or the folder of the ledger itself",
    )
    new: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="of a series whose source grows: release only what is new, a filter as in where, such as "
        "month = '2026-11'; the ledger knows who was in earlier ones",
    )
    key: str | None = Field(
        None,
        pattern=r"^(env|file):.+",
        description="the secret: env:NAME or file:PATH; by default one is made, and kept in the private folder",
    )
    seed: int | None = Field(None, strict=True, description="instead of a key, for trials: dpmask run --trial")
    order: Literal["shuffled", "within_files", "input"] = Field(
        "shuffled", description="rows in a random order over the whole release, only within each file, or as they came"
    )
    block_rows: Annotated[int, BeforeValidator(_whole)] = Field(
        1_000_000, ge=1, description="the most rows a task holds"
    )
    columns: Roles
    missing: dict[str, list[str | int | float]] = Field(
        {}, description='codes that mean a missing value, by column: {occupation: ["?", "NA"]}; read as null'
    )
    accept: dict[str, Annotated[str, Field(min_length=REASON_LENGTH, max_length=1000)]] = Field(
        {},
        description="columns, or order, that the gate would refuse, each with a public reason to release it as it is",
    )
    mask: list[dict[str, Any]] = Field(min_length=1, description="masking steps, applied in order")
    measure: list[dict[str, Any]] = Field([], description="what is measured on the masked table")
    policy: list[str] = Field([], description="rules; a broken one stops the release")
    publish: Publish = Field(
        default_factory=lambda: Publish(moments=False), description="what the release shows beyond the rest"
    )

    def lake(self) -> Lake:
        """The source, opened."""
        return read_lake(block_rows=self.block_rows, missing=self.missing, **self._opening())

    def source_columns(self) -> list[str]:
        """The columns of the source, by its footers alone."""
        return lake_columns(**self._opening())

    def _opening(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "schema": self.lake_schema,
            "csv": dict(self.csv),
            "where": self.filter,
            "version": self.version,
        }

    @property
    def filter(self) -> str | None:
        """The rows that are taken, by ``where`` and by ``new``."""
        return " and ".join(one for one in (self.where, self.new) if one) or None


class Job(NamedTuple):
    """A job file, understood."""

    text: JobText
    file: JobFile
    methods: tuple[Method[Any], ...]
    names: tuple[str, ...]  # of the methods, for the policy
    measures: tuple[MeasureRequest, ...]
    rules: tuple[Rule, ...]

    @property
    def released(self) -> list[str]:
        """Columns by role, but for those that are dropped, as the job file lists them."""
        roles = self.file.columns
        return [*roles.quasi, *roles.sensitive, *roles.weight, *self._households(shown=True), *roles.plain]

    def _households(self, *, shown: bool) -> list[str]:
        """The number of households, if it is released (``shown``), or if it is not: only as a pseudonym."""
        given = {name for method in self.methods for name in method.masks}
        return [name for name in self.file.columns.household if (name in given) == shown]

    @property
    def shown_source(self) -> str:
        """The source, for messages."""
        return ", ".join(self.file.source)

    @property
    def dropped(self) -> list[str]:
        """Columns that are not released."""
        return [*self.file.columns.identifier, *self.file.columns.drop, *self._households(shown=False)]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The masking steps in one spelling, however the file wrote them."""
        steps = zip(self.file.mask, self.methods, strict=True)
        return [{"method": step["method"], **method.parameters()} for step, method in steps]

    @property
    def origins(self) -> dict[str, str]:
        """Columns that steps add, and those of the source that they come from."""
        origins: dict[str, str] = {}
        for method in self.methods:
            origins |= {new: origins.get(old, old) for new, old in method.origins.items()}
        return origins

    def origin(self, column: str) -> str:
        """The column of the source that a column comes from."""
        return self.origins.get(column, column)

    def role(self, column: str) -> str:
        """A column's declared role; a new one has that of the column it comes from."""
        return next(role for role, columns in self.file.columns if self.origin(column) in columns)


def read_job(url: str, settings: Sequence[str] = ()) -> Job:
    """Read and check a job file, changed by ``settings``. All that is wrong with it is reported at once."""
    return understood(JobText(url, settings))


def understood(text: JobText) -> Job:
    """The job that a text describes."""
    file = _validated(JobFile, text.values, text, ())
    if file.key is not None and file.seed is not None:
        raise JobError(text.error(("seed",), "give key: env:NAME (a secret) or seed: NUMBER (for trials), not both."))
    if file.key is not None and file.key.removeprefix("env:") in text.variables:
        raise JobError(
            text.error(("key",), f"the secret of {file.key} must not stand in a text of the job, as ${{...}}.")
        )
    if file.new is not None and file.series is None:
        raise JobError(text.error(("new",), "needs series: NAME, whose ledger knows who was released before."))
    for key in ("where", "new"):
        _check_filter(text, key, getattr(file, key))
    roles = expanded(text, file.columns, file.source_columns)
    file = file.model_copy(update={"columns": roles})
    methods = tuple(_method(text, number, dict(step), roles) for number, step in enumerate(file.mask))
    steps = tuple(_label(text, ("mask", n), step, step["method"]) for n, step in enumerate(file.mask))
    numeric = _numeric_weights(roles, methods)
    measures = tuple(_measure(text, number, dict(step), roles, numeric) for number, step in enumerate(file.measure))
    names = [measure.name for measure in measures]
    for number, name in enumerate(names):
        _refuse_reserved(text, ("measure", number), name)
        if name in names[:number]:
            raise JobError(text.error(("measure", number), f"'{name}' stands twice. Name this one with as: NAME."))
    for number, name in enumerate(steps):
        _refuse_reserved(text, ("mask", number), name)
        if name in names or ("as" in file.mask[number] and steps.count(name) > 1):
            raise JobError(
                text.error(("mask", number), f"'{name}' names something else, too. Choose another as: NAME.")
            )
    judged = {name: method.judged for name, method in zip(steps, methods, strict=True) if steps.count(name) == 1}
    judged |= {measure.name: measure.judged for measure in measures}
    judged[GATE] = GateRisk.judged
    rules = tuple(_rule(text, number, rule, judged) for number, rule in enumerate(file.policy))
    return Job(text, file, methods, steps, measures, (*rules, *default_rules(rules, series=file.series is not None)))


def _check_filter(text: JobText, key: str, given: str | None) -> None:
    try:
        if given is not None:
            row_filter(given)
    except JobError as error:
        raise JobError(text.error((key,), str(error))) from None


def _numeric_weights(roles: Roles, methods: Sequence[Any]) -> list[str]:
    """The weights that measures take by themselves: those that are released as numbers."""
    labels = {name for method in methods for group in method.required_groups for name in group}
    return [name for name in roles.weight if name not in labels]


def _refuse_reserved(text: JobText, path: KeyPath, name: str) -> None:
    if name.split()[:1] == [GATE]:
        raise JobError(text.error((*path, "as"), f"'{name}' is what the gate is called. Choose another name."))


def _method(text: JobText, number: int, step: dict[str, Any], roles: Roles) -> Any:
    path: KeyPath = ("mask", number)
    cls = _choice(text, path, step.pop("method", None), "method", METHODS, method_class)
    step.pop("as", None)
    of, own = step.pop("of", None), "household" in parameter_model(cls).model_fields
    if of not in (None, HOUSEHOLDS):
        raise JobError(text.error((*path, "of"), f"must be {HOUSEHOLDS}: each is masked once; got {of!r}."))
    numbered = next(iter(roles.household), None)
    household = step.pop("household", numbered) if of and not own else step.get("household", numbered)
    if of and household is None:
        raise JobError(
            text.error((*path, "of"), "needs the number of households. Declare columns: {household: [NAME]}.")
        )
    parameters = _validated(parameter_model(cls), step | ({"household": household} if own else {}), text, path)
    try:
        method = cls(**dict(parameters))
        return OfHouseholds(method=method, household=str(household)) if of else method
    except JobError as error:
        raise JobError(text.error(path, str(error))) from None


def _measure(text: JobText, number: int, step: dict[str, Any], roles: Roles, weights: Sequence[str]) -> MeasureRequest:
    path: KeyPath = ("measure", number)
    name = step.pop("measure", None)
    measure = _choice(text, path, name, "measure", MEASURES, find_measure)
    label = _label(text, path, step, name)
    step.pop("as", None)
    columns = step.get("columns")
    if isinstance(columns, list) and (not columns or len(set(map(str, columns))) < len(columns)):
        raise JobError(text.error((*path, "columns"), "must be a list of one or more different columns."))
    declared = {key: getattr(roles, role) for key, role in measure.roles.items() if key not in step}
    if "weight" in declared and "weighted" in measure.parameters:
        declared["weight"] = list(weights)
    parameters = _validated(parameter_model(measure.function), declared | step, text, path)
    return MeasureRequest(label, str(name), dict(parameters))


def _label(text: JobText, path: KeyPath, step: Mapping[str, Any], name: Any) -> str:
    """What results of a step are called."""
    label = step.get("as", name)
    if not isinstance(label, str):
        raise JobError(text.error((*path, "as"), f"must be a name; got {label!r}."))
    return label


def _choice(text: JobText, path: KeyPath, name: Any, key: str, known: Any, find: Callable[[str], Any]) -> Any:
    if not isinstance(name, str):
        raise JobError(text.error(path, f"says no {key}:. {key.capitalize()}s built: {', '.join(sorted(known))}."))
    if name not in known:
        built = f"{key.capitalize()}s built: {', '.join(sorted(known))}."
        close = nearest(name, known)
        hint = f"{close} " if close.startswith("Did") else ""
        raise JobError(text.error((*path, key), f"there is no {key} '{name}'. {hint}{built}"))
    return find(name)


def _rule(text: JobText, number: int, line: str, judged: Mapping[str, Sequence[str]]) -> Rule:
    try:
        rule = parse_rule(line)
        check_rule(rule, judged)
    except JobError as error:
        raise JobError(text.error(("policy", number), str(error))) from None
    return rule


@cache
def parameter_model(target: Callable[..., Any]) -> type[BaseModel]:
    """A model of the keyword parameters of a method class or a measure function."""
    hints = get_type_hints(target.__init__ if inspect.isclass(target) else target)
    factories = {one.name: one.default_factory for one in getattr(target, "__dataclass_fields__", {}).values()}
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            factory = factories.get(name, MISSING)
            fields[name] = (hints[name], default if factory is MISSING else Field(default_factory=factory))
    return create_model(target.__name__, __base__=_Model, **fields)


def _validated(model: type[Any], values: Any, text: JobText, path: KeyPath) -> Any:
    wrong = [name for name, value in values.items() if isinstance(value, bool) and not _takes_flag(model, name)]
    if wrong:
        raise JobError(text.error((*path, wrong[0]), "must not be true or false."))
    try:
        return model.model_validate(values)
    except ValidationError as error:
        known = [field.alias or name for name, field in model.model_fields.items()]
        found = error.errors(include_url=False)
        lines = [_described(text, path, dict(one), model, known) for one in found[:MOST_LINES]]
        left = "\n" * (len(found) - len(lines))  # a message counts them
        raise JobError("\n".join(lines) + left) from None


def _takes_flag(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is None or field.annotation in {bool, Any}


def _described(text: JobText, base: KeyPath, error: dict[str, Any], model: type[BaseModel], known: list[str]) -> str:
    """One of pydantic's findings in our words."""
    path: KeyPath = (*base, *error["loc"])
    if error["type"] == "extra_forbidden":
        parent = error["loc"][:-1]
        inner: dict[Any, type[BaseModel]] = {("columns",): Roles, ("csv",): CsvFormat, ("publish",): Publish}
        names = list(inner[parent].model_fields) if parent in inner else known
        return text.error(path, f"is not a key here. {nearest(str(error['loc'][-1]), names)}")
    return text.error(path, _in_our_words(path, error))


def _in_our_words(path: KeyPath, error: dict[str, Any]) -> str:
    kind, limits, message = error["type"], error.get("ctx", {}), error["msg"].removeprefix("Value error, ")
    words = {
        "missing": "is missing.",
        "string_pattern_mismatch": "must be a text on one line, without control characters, and not empty.",
        "too_long": f"takes {limits.get('max_length')} at most; it has {limits.get('actual_length')}.",
    }
    if limits.get("min_length") == 1:
        words |= dict.fromkeys(("too_short", "string_too_short"), "must not be empty.")
    if path[:1] == ("key",):
        return "must be env:NAME or file:PATH; the secret itself does not belong in a job file."
    if path[:1] == ("accept",) and kind == "string_too_short":
        return f"must give a reason of {REASON_LENGTH} or more characters; the release shows it."
    if path == ("seed",):
        return "must be an integer."
    if kind in words:
        return words[kind]
    begun = message.replace("Input should be", "must be", 1) if message.startswith("Input") else f"is wrong: {message}"
    return f"{begun}; got {type(error['input']).__name__} {_shown(error['input'])}."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."  # noqa: PLR2004


def json_schema() -> dict[str, Any]:
    """The job file's JSON Schema, with the methods and measures that are built."""
    schema = JobFile.model_json_schema()
    steps = {
        "mask": ("method", METHODS, method_class),
        "measure": ("measure", MEASURES, lambda name: find_measure(name).function),
    }
    for key, (choice, known, find) in steps.items():
        options = []
        for name in known:
            target = find(name)
            option = parameter_model(target).model_json_schema()
            option["title"] = name
            option["description"] = (inspect.getdoc(target) or "").split("\n\n")[0]
            option["properties"] = {choice: {"const": name}, **option.get("properties", {})}
            option["properties"]["as"] = {"type": "string", "description": "another name for the result"}
            if key == "mask":
                option["properties"]["of"] = {"const": HOUSEHOLDS, "description": "each household is masked once"}
            option["required"] = [choice, *option.get("required", [])]
            options.append(option)
        schema["properties"][key]["items"] = {"oneOf": options}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema
