"""A job: its file read and checked, each step a method and each measure a request, with errors that name the key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.errors import JobError, nearest
from dpmask.job.file import JobFile, Roles
from dpmask.job.job_text import JobText, KeyPath
from dpmask.job.roles import expanded
from dpmask.job.validation import parameter_model, validated
from dpmask.lake.filters import row_filter
from dpmask.masking import METHODS, PSEUDONYMS, method_class
from dpmask.masking.method import Method
from dpmask.masking.of_households import OfHouseholds
from dpmask.measures import CONSISTENCY, MEASURES, find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.release.gate import GATE, GateRisk, default_rules
from dpmask.release.policy import Rule, check_rule, parse_rule
from dpmask.table.requirement import HOUSEHOLDS


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
        """The number of households, if it is released (``shown``), or if it is not: a step gives it pseudonyms."""
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
    def drawn_steps(self) -> list[dict[str, Any]]:
        """The steps as draws are bound to them."""
        steps = zip(self.file.mask, self.methods, strict=True)
        return [{"method": step["method"], **method.drawn_parameters()} for step, method in steps]

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
    file = validated(JobFile, text.values, text, ())
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
    unnamed = _unnamed_households(text, roles.household, methods)
    if unnamed:
        file = file.model_copy(update={"mask": [*file.mask, {"method": PSEUDONYMS, "columns": list(unnamed)}]})
        methods = (*methods, _method(text, len(methods), dict(file.mask[-1]), roles))
    steps = tuple(_label(text, ("mask", n), step, step["method"]) for n, step in enumerate(file.mask))
    numeric = _numeric_weights(roles, methods)
    measures = tuple(_measure(text, number, dict(step), roles, numeric) for number, step in enumerate(file.measure))
    measures += tuple(_asked_by_policy(text, file.policy, {*steps, *(one.name for one in measures)}, roles, numeric))
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
    if CONSISTENCY not in judged and all(measure.measure != CONSISTENCY for measure in measures):
        judged[CONSISTENCY] = find_measure(CONSISTENCY).result.judged  # every job takes it
    judged[GATE] = GateRisk.judged
    rules = tuple(_rule(text, number, rule, judged) for number, rule in enumerate(file.policy))
    return Job(text, file, methods, steps, measures, (*rules, *default_rules(rules, series=file.series is not None)))


def _unnamed_households(text: JobText, household: Sequence[str], methods: Sequence[Method[Any]]) -> Sequence[str]:
    """The number of households that is released, where no step masks it: it gets pseudonyms after all of them."""
    given = text.values["columns"].get("household")
    dropped = isinstance(given, dict) and given.get("release") is False
    masking = [number for number, method in enumerate(methods) if set(household) & set(method.masks)]
    if masking and dropped:
        found = f"masks {household[0]}, which columns.household drops by release: false. Leave one of them out."
        raise JobError(text.error(("mask", masking[0]), found))
    return [] if masking or dropped else household


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
    parameters = validated(parameter_model(cls), step | ({"household": household} if own else {}), text, path)
    bounds = getattr(parameters, "bounds", None)
    if isinstance(bounds, Mapping):  # noise would make weights negative
        weights = {name: (0, None) for name in roles.weight if name in parameters.columns and name not in bounds}
        parameters = parameters.model_copy(update={"bounds": {**bounds, **weights}})
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
    parameters = validated(parameter_model(measure.function), declared | step, text, path)
    return MeasureRequest(label, str(name), dict(parameters))


def _asked_by_policy(
    text: JobText, policy: Sequence[str], known: set[str], roles: Roles, weights: Sequence[str]
) -> Iterator[MeasureRequest]:
    """Measures that only rules name, and whose columns follow from the roles, such as groups."""
    for name in dict.fromkeys(line.split(".")[0].strip() for line in policy):
        if name in MEASURES and name not in known:
            fields = parameter_model(find_measure(name).function).model_fields
            if all(key in find_measure(name).roles for key, one in fields.items() if one.is_required()):
                yield _measure(text, len(policy), {"measure": name}, roles, weights)


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
