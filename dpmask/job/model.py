"""The job file's model: every key, checked, with errors that name the key and the nearest valid one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from dpmask.errors import JobError, nearest
from dpmask.job.job_text import JobText, KeyPath
from dpmask.masking import METHODS, method_class
from dpmask.masking.method import Method
from dpmask.measures import MEASURES, find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.release.policy import Rule, check_rule, parse_rule


def _whole(value: object) -> object:
    """Let 1e6 be the integer it means; YAML reads it as text."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return value
    return int(number) if number.is_integer() and not isinstance(value, bool) else value


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Roles(_Model):
    """The role of every column of the source."""

    identifier: list[str] = Field([], description="dropped")
    quasi: list[str] = Field([], description="known to an intruder: quasi-identifiers")
    sensitive: list[str] = Field([], description="what an intruder wants to learn")
    weight: list[str] = Field([], description="survey weights")
    plain: list[str] = Field([], description="released as it is")


class JobFile(_Model):
    """A dpmask job."""

    name: str = Field(pattern=r"^[^\x00-\x1f\x7f]+$", description="the release's name")
    source: str = Field(
        min_length=1, description="the lake: any fsspec URL of a folder, a glob or one file of Parquet, or a small CSV"
    )
    target: str = Field(min_length=1, description="the folder of the release, public")
    private: str = Field(min_length=1, description="your own folder: staging, internal report, pairing, log")
    key: str | None = Field(None, pattern=r"^(env|file):.+", description="the secret: env:NAME or file:PATH")
    seed: int | None = Field(None, strict=True, description="instead of key, for experiments; marked in the manifest")
    order: Literal["shuffled", "input"] = Field("shuffled", description="row order inside each released file")
    block_rows: Annotated[int, BeforeValidator(_whole)] = Field(
        1_000_000, ge=1, description="the most rows a task holds"
    )
    columns: Roles
    mask: list[dict[str, Any]] = Field(min_length=1, description="masking steps, applied in order")
    measure: list[dict[str, Any]] = Field([], description="what is measured on the masked table")
    policy: list[str] = Field([], description="rules; a broken one stops the release")


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
        return [*roles.quasi, *roles.sensitive, *roles.weight, *roles.plain]

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


def read_job(url: str) -> Job:
    """Read and check a job file. All that is wrong with it is reported at once."""
    return understood(JobText(url))


def understood(text: JobText) -> Job:
    """The job that a text describes."""
    file = _validated(JobFile, text.values, text, ())
    if (file.key is None) == (file.seed is None):
        raise JobError(
            text.error((), "give either key: env:NAME (a secret) or seed: NUMBER (for experiments), and not both.")
        )
    methods = tuple(_method(text, number, dict(step)) for number, step in enumerate(file.mask))
    steps = tuple(_label(text, ("mask", n), step, step["method"]) for n, step in enumerate(file.mask))
    measures = tuple(_measure(text, number, dict(step), file.columns) for number, step in enumerate(file.measure))
    names = [measure.name for measure in measures]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise JobError(text.error(("measure", number), f"'{name}' stands twice. Name this one with as: NAME."))
    for number, name in enumerate(steps):
        if name in names or ("as" in file.mask[number] and steps.count(name) > 1):
            raise JobError(
                text.error(("mask", number), f"'{name}' names something else, too. Choose another as: NAME.")
            )
    judged = {name: method.judged for name, method in zip(steps, methods, strict=True) if steps.count(name) == 1}
    judged |= {measure.name: measure.judged for measure in measures}
    rules = tuple(_rule(text, number, rule, judged) for number, rule in enumerate(file.policy))
    return Job(text, file, methods, steps, measures, rules)


def _method(text: JobText, number: int, step: dict[str, Any]) -> Any:
    path: KeyPath = ("mask", number)
    cls = _choice(text, path, step.pop("method", None), "method", METHODS, method_class)
    step.pop("as", None)
    parameters = _validated(parameter_model(cls), step, text, path)
    try:
        return cls(**dict(parameters))
    except JobError as error:
        raise JobError(text.error(path, str(error))) from None


def _measure(text: JobText, number: int, step: dict[str, Any], roles: Roles) -> MeasureRequest:
    path: KeyPath = ("measure", number)
    name = step.pop("measure", None)
    measure = _choice(text, path, name, "measure", MEASURES, find_measure)
    label = _label(text, path, step, name)
    step.pop("as", None)
    columns = step.get("columns")
    if isinstance(columns, list) and (not columns or len(set(map(str, columns))) < len(columns)):
        raise JobError(text.error((*path, "columns"), "must be a list of one or more different columns."))
    declared = {key: getattr(roles, role) for key, role in measure.roles.items() if key not in step}
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
        known = list(model.model_fields)
        lines = [_described(text, path, dict(one), model, known) for one in error.errors(include_url=False)]
        raise JobError("\n".join(lines)) from None


def _takes_flag(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is None or field.annotation in {bool, Any}


def _described(text: JobText, base: KeyPath, error: dict[str, Any], model: type[BaseModel], known: list[str]) -> str:
    """One of pydantic's findings in our words."""
    path: KeyPath = (*base, *error["loc"])
    if error["type"] == "extra_forbidden":
        parent = error["loc"][:-1]
        names = list(Roles.model_fields) if parent == ("columns",) else known
        return text.error(path, f"is not a key here. {nearest(str(error['loc'][-1]), names)}")
    if error["type"] == "missing":
        return text.error(path, "is missing.")
    if path[:1] == ("key",):
        return text.error(path, "must be env:NAME or file:PATH; the secret itself does not belong in a job file.")
    if path == ("seed",):
        return text.error(path, "must be an integer.")
    message = error["msg"]
    expected = (
        message.replace("Input should be", "must be", 1) if message.startswith("Input") else f"is wrong: {message}"
    )
    return text.error(path, f"{expected}; got {type(error['input']).__name__} {_shown(error['input'])}.")


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
            option["required"] = [choice, *option.get("required", [])]
            options.append(option)
        schema["properties"][key]["items"] = {"oneOf": options}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema
