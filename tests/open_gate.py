"""What a data holder writes to have a job through the gate: tests that are not about the gate write it like this."""

REASON = "invented people, made for a test"
NO_LIMIT = ["gate.linkage <= 1", "gate.attacks <= 1"]


def opened(job):
    """The job with a reason for every column that no step masks, and with limits that always hold.

    One that accepts anything itself, or nothing, is left as it is.
    """
    if "accept" in job:
        return job
    names = _unprotected(job)
    said = dict(job) | ({"accept": dict.fromkeys(names, REASON)} if names else {})
    policy = job.get("policy", [])
    if isinstance(policy, list) and not any(str(rule).startswith("gate.") for rule in policy):
        said["policy"] = [*policy, *NO_LIMIT]
    return said


def _unprotected(job):
    """Columns that no step masks, plain ones too: few records may be alone with them. None of a job that is wrong."""
    try:
        masked = {name for step in job["mask"] for name in _masks(step)}
        roles = [job["columns"].get(role, []) for role in ("quasi", "sensitive", "weight", "plain")]
        names = [name for columns in roles for name in columns if name not in masked]
    except (KeyError, TypeError, AttributeError):
        return []
    return [*names, "order"] if job.get("order", "shuffled") != "shuffled" else names


def _masks(step):
    if "requirements" in step:
        return [name for one in step["requirements"] for name in (one["columns"] if isinstance(one, dict) else one[0])]
    if "groups" in step:
        return [name for group in step["groups"] for name in group]
    return step.get("dependents", step.get("columns", []))
