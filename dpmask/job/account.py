"""What a run did, as plain values: the manifest, the statement and the report are all made from this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from dpmask import __version__
from dpmask.engine.cluster.connect import COMPUTING
from dpmask.job.prepare import Prepared
from dpmask.release.claims import standing_claims
from dpmask.release.policy import Verdict


def account(
    prepared: Prepared, fitted: Sequence[Any], rows: int, results: Mapping[str, Any], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """Everything of a run that people or programs may want to read; ``public_part`` is what they may see."""
    job, schema = prepared.job, prepared.lake.schema
    for step in fitted:
        schema = step.masked_schema(schema)
    masked = {column for step in fitted for column in step.changes}
    return {
        "name": job.file.name,
        "run": prepared.run,
        "dpmask": __version__,
        "libraries": {name: version(name) for name in COMPUTING},
        "key": {"fingerprint": prepared.key.fingerprint, "experiment": prepared.key.experiment},
        "rows": rows,
        "order": job.file.order,
        "schema": [
            {"name": name, "type": str(schema.field(name).type), "role": job.role(name), "masked": name in masked}
            for name in prepared.columns
        ],
        "dropped": job.file.columns.identifier,
        "steps": [_step(said, step) for said, step in zip(job.file.mask, fitted, strict=True)],
        "claims": standing_claims(fitted),
        "measures": [_measure(measure, results[measure.name]) for measure in job.measures],
        "policy": [{"rule": one.rule.text, "judged": one.judged, "held": one.held} for one in verdicts],
    }


def public_part(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The account without what would help an intruder: no risk, no weakness, no value a rule was judged by."""
    public = {name: value for name, value in whole.items() if name not in {"steps", "measures", "policy"}}
    public["steps"] = [_public_step(step) for step in whole["steps"]]
    shown = [measure for measure in whole["measures"] if measure["public"]]
    public["information_loss"] = [
        {key: one[key] for key in ("name", "measure", "values", "explanation")} for one in shown
    ]
    public["policy"] = [{"rule": rule["rule"], "held": rule["held"]} for rule in whole["policy"]]
    return public


def _public_step(step: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {name: value for name, value in step["parameters"].items() if name not in step["withheld"]}
    told = {"method": step["method"], "parameters": parameters, "statement": step["statement"]}
    return told | ({"solution": step["solution"]} if step["solution"] else {})


def _step(said: Mapping[str, Any], step: Any) -> dict[str, Any]:
    parameters = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(step.method).items()
    }
    return {
        "method": said["method"],
        "parameters": parameters,
        "withheld": list(step.method.withheld),
        "statement": step.statement(),
        "solution": step.solution(),
        "weaknesses": step.weaknesses(),
        "figures": step.figures.to_dict() if step.figures else None,
    }


def _measure(measure: Any, result: Any) -> dict[str, Any]:
    return {
        "name": measure.name,
        "measure": measure.measure,
        "public": result.public,
        "judged": {field: getattr(result, field) for field in result.judged},
        "values": result.to_dict(),
        "explanation": result.explain(),
        "about": result.described(),
    }
