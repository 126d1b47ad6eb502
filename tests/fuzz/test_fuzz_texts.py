"""Constraints, policies, taxonomies, cluster files, manifests: any text is read or refused, never a bug."""

import yaml
from fuzz_tools import COUNTS, bounded, print_counts, refused_or_right
from hypothesis import given
from hypothesis import strategies as st

from dpmask.constraints.sets import parse_constraints
from dpmask.engine.cluster.file import read_description
from dpmask.engine.yaml_text import load
from dpmask.release.manifest import content_hash, parse, spelled
from dpmask.release.policy import parse_rule
from dpmask.table.taxonomy import read_taxonomy

TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([10**50, -(10**30), 1e308, 5e-324]))
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT, st.dates().map(str)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.one_of(TEXT, st.integers()), inner, max_size=5)
    ),
    max_leaves=20,
)
PIECES = st.lists(
    st.sampled_from(["net", "tax", "+", "-", "*", "/", "=", "<=", ">=", "(", ")", "0", "1", "1e999", "2.5", "'", "`", "≤", " ", ".", "gone"]),
    max_size=25,
)  # fmt: skip
TERMS = st.lists(
    st.tuples(st.sampled_from(["", "2 * ", "1e-3*", "-"]), st.sampled_from(["net", "tax", "3", "gone"])).map("".join),
    min_size=1,
    max_size=4,
).map(" + ".join)
YAML_TEXT = st.one_of(
    TEXT,
    PLAIN.map(lambda value: yaml.safe_dump(value, allow_unicode=True)),
    st.lists(st.sampled_from(["a", ":", " ", "\n", "- ", "&a ", "*a", "[", "]", "{", "}", ",", "? ", "<<", "!!int ", "|", '"', "#", "\t", "1"]), max_size=40).map("".join),
)  # fmt: skip


@bounded(300)
@given(
    st.one_of(
        TEXT,
        PIECES.map(" ".join),
        PIECES.map("".join),
        st.tuples(TERMS, st.sampled_from([" = ", "<=", " >= "]), TERMS).map("".join),
    )
)
def test_constraints(text):
    refused_or_right(parse_constraints, [text], ["net", "tax"])


@bounded(200)
@given(
    st.one_of(
        TEXT,
        st.tuples(TEXT, TEXT, st.sampled_from(["<=", "<", ">="]), NUMBERS).map(
            lambda p: f"{p[0]}.{p[1]} {p[2]} {p[3]}"
        ),
    )
)
def test_policies(text):
    refused_or_right(parse_rule, text)


@bounded(300)
@given(YAML_TEXT)
def test_yaml(text):
    refused_or_right(load, text, "file")


@bounded(200)
@given(PLAIN)
def test_taxonomies_from_values(value):
    if isinstance(value, dict | list):
        refused_or_right(read_taxonomy, value, "fuzz")


@bounded(150)
@given(YAML_TEXT, st.sampled_from(["yaml", "json", "csv"]))
def test_taxonomy_files(tmp_path_factory, text, ending):
    path = tmp_path_factory.getbasetemp() / f"tree.{ending}"
    path.write_text(text, encoding="utf-8", newline="")
    refused_or_right(read_taxonomy, str(path), "fuzz")


KEYS = st.sampled_from(["cluster", "address", "options", "workers", "adapt", "wait", "config", "more"])


@bounded(200)
@given(
    st.one_of(
        YAML_TEXT,
        st.tuples(
            st.sampled_from([{}, {"cluster": "distributed.LocalCluster"}]), st.dictionaries(KEYS, PLAIN, max_size=3)
        ).map(lambda both: yaml.safe_dump(both[0] | both[1], allow_unicode=True)),
    )
)
def test_cluster_files(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "cluster.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    refused_or_right(read_description, str(path))


GOOD = {
    "format": "dpmask release 2", "release": "0" * 16, "run": "0" * 32, "name": "n", "dpmask": "1", "libraries": {}, "key": {},
    "rows": 1, "order": "shuffled", "schema": [{"name": "x", "type": "double", "role": "plain", "masked": True}], "dropped": [],
    "claims": [{"columns": ["x"], "smallest_group": 1}], "steps": [], "information_loss": [], "policy": [],
    "files": [{"path": f"data/{'0' * 16}/part-00000.parquet", "rows": 1, "bytes": 1, "sha256": "0" * 64, "nulls": {"x": 0}}],
    "documents": [], "signature": None, "trial": False,
}  # fmt: skip


@bounded(300)
@given(st.lists(st.tuples(st.sampled_from(sorted(GOOD)), PLAIN), min_size=1, max_size=3), st.booleans())
def test_manifests_with_other_values(changes, resealed):
    manifest = GOOD | dict(changes)
    try:
        manifest["sha256"] = content_hash(manifest) if resealed else "0" * 64
        data = spelled(manifest)
    except (ValueError, TypeError):  # JSON has no such value
        return
    refused_or_right(parse, data, "manifest.json")


@bounded(200)
@given(st.integers(0, 2000), st.binary(max_size=5), st.integers(0, 5))
def test_manifests_with_other_bytes(at, added, removed):
    data = spelled(GOOD | {"sha256": content_hash(GOOD)})
    at %= len(data)
    changed = data[:at] + added + data[at + removed :]
    assert refused_or_right(parse, changed, "manifest.json") == (changed == data)


def test_how_many_were_tried(capsys):
    """The last of the file: what was tried, and what came of it. Of every kind some were right.

    Other files of the same process count commands, which have exit codes: they are not judged here.
    """
    with capsys.disabled():
        print_counts()
    assert sum(COUNTS.values()) > 1000
    refused = {name.removesuffix(": refused") for name in COUNTS if name.endswith(": refused")}
    assert refused >= {"parse_constraints", "parse_rule", "load", "read_taxonomy", "read_description", "parse"}
    assert {name for name in refused if COUNTS[f"{name}: accepted"] == 0} == set()
