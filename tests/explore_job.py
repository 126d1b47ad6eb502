"""A small job for tests of the explorer, written as a person would, with comments."""

from conftest import people, write_lake

TEXT = """\
# What a neighbour knows, refined; incomes as means of a few.
name: people
source: lake
target: release
private: private
seed: 7                       # a trial
columns:
  identifier: [id, name, seen, money]
  quasi: [age, region, born]  # known to anybody
  sensitive:
    - income                  # of a year
    - rate
  plain: [member, children]
accept: {children: "invented people, made for a test"}
mask:
  - method: refinement
    requirements:
      - {columns: [age, region, born], k: 20}   # one in twenty
    domains: {age: [0, 100], born: [1970-01-01, 2030-01-01]}
    guide: {clusters: 6}      # to stay apart
  - {method: microaggregation, columns: [income, rate], k: 4}
measure:
  - {measure: partition_agreement, clusters: 6, repeats: 1}
  - {measure: il1s, columns: [income, rate]}
policy:
  - gate.smallest >= 20
  - microaggregation.smallest >= 4
  - il1s.value <= 0.9
  - gate.attacks <= 1
  - gate.linkage <= 1
"""


def write_job(folder, rows=400, text=TEXT):
    """A lake and its job file."""
    write_lake(folder / "lake", people(rows).drop_columns(["money"]) if "money" not in text else people(rows))
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return "job.yaml"
