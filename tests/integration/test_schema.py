"""The job file's JSON Schema, for editors and checks."""

import json
import subprocess
import sys

from dpmask.masking import METHODS


def test_it_is_json_and_nothing_else_is_said():
    ended = subprocess.run([sys.executable, "-m", "dpmask.cli", "schema"], capture_output=True, text=True, check=True)
    options = json.loads(ended.stdout)["properties"]["mask"]["items"]["oneOf"]
    assert {option["title"] for option in options} == set(METHODS)
    assert ended.stderr == ""
