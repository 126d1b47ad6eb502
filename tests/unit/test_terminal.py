"""What commands print: tables that fit the terminal, colours where they are wanted, lines elsewhere; nothing obeyed."""

import os
import pty
import re
import subprocess
import sys
import termios

import pytest

from dpmask.terminal.output import places
from dpmask.terminal.progress import _cut, _time

TABLE = """
from dpmask.terminal.table import show_table
show_table(["measure", "found", "verdict"], [["gate", "3", "holds, " + "and more " * 12], ["日本\\x1b[2J", "12", "no"]],
           right=[1], colours=["green", "red"])
"""
STAGES = """
import time
from dpmask.engine.progress import StepLine
from dpmask.terminal import Progress
progress = Progress()
progress.stage("read")
progress.stage("mask")
progress.passes("fit \\x1b[2J of a very long name that does not fit into this line", 0, 4)
time.sleep(2.3)
progress.passes("fit \\x1b[2J of a very long name that does not fit into this line", 1, 4)
time.sleep(0.7)
progress.passes("fit \\x1b[2J of a very long name that does not fit into this line", 4, 4)
progress.retried("fit", 2)
for number in range(50):
    progress.passes(StepLine(f"refinement {number}: age"), 0, 0)
    time.sleep(0.02)
progress.passes("dashboard: there", 0, 0)
progress.close()
"""


def on_terminal(script, columns, **environment):
    """What a script writes to a terminal of so many columns, and its lines as they stand there in the end."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns)) if hasattr(termios, "tcsetwinsize") else None
    known = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}}
    environment = {**known, "TERM": "xterm", "PYTHONUTF8": "1", "COLUMNS": str(columns), **environment}
    with subprocess.Popen([sys.executable, "-c", script], stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        written = b""
        try:
            while chunk := os.read(master, 4096):
                written += chunk
        except OSError:  # the other end is closed
            pass
    os.close(master)
    assert process.returncode == 0, written.decode()
    text = written.decode()
    plain = re.sub(r"\x1b\[\d+m", "", text)
    lines = [line.rsplit("\r\x1b[K", 1)[-1] for line in plain.split("\r\n")]
    return text, [line for line in lines if line]


@pytest.mark.parametrize("columns", [60, 200])
def test_a_table_fits_its_terminal(columns):
    text, lines = on_terminal(TABLE, columns)
    assert all(places(line) <= columns for line in lines)
    assert len(lines) == (3 if columns == 200 else 5)
    assert {places(line) - places(line.lstrip()) for line in lines[2:-1]} <= {20}  # below the column that it goes on
    assert "\x1b[32mholds" in text
    assert r"日本\x1b[2J" in lines[-1]
    assert "\x1b[2J" not in text


def test_a_column_without_room_goes_below_the_others():
    script = """
from dpmask.terminal.table import show_table
show_table(["column", "number", "masked by"], [["a" * 30, "1", "refinement, " * 5], ["b", "2", ""]], right=[1])
"""
    _, lines = on_terminal(script, 50)
    assert all(places(line) <= 50 for line in lines)
    assert [line[:4].strip() for line in lines] == ["colu", "", "aaaa", "", "", "b"]
    assert lines[1] == "    masked by"
    assert len({len(lines[at]) for at in (0, 2, 5)}) == 1  # numbers end in line
    _, lines = on_terminal(script.replace('"1",', '"1" * 25,'), 50)  # two of the columns have no room
    assert all(places(line) <= 50 for line in lines)
    assert lines[1] == "    number  masked by"
    assert lines[3].startswith(f"    {'1' * 25}  refinement,")


def test_no_colour_where_none_is_wanted():
    assert "\x1b" not in on_terminal(TABLE, 80, NO_COLOR="1")[0]
    piped = subprocess.run([sys.executable, "-c", TABLE], capture_output=True, text=True, check=True)
    assert "\x1b" not in piped.stdout
    assert max(map(len, piped.stdout.splitlines())) > 100  # as long as they are


def test_a_stage_is_one_line_with_a_bar_and_an_estimate():
    text, lines = on_terminal(STAGES, 60)
    assert re.fullmatch(r"read +\d\.\d s", lines[0])
    assert re.fullmatch(r"\[ +\d\.\d s\]   fit: 2 tasks failed, trying again", lines[1])
    assert re.fullmatch(
        r"\[ +\d\.\d s\]   dashboard: there", lines[2]
    )  # steps of a loop leave no lines, other notes do
    assert re.fullmatch(r"mask +\d\.\d s  1 pass", lines[3])
    assert len(lines) == 4
    drawn = [part for part in re.split(r"\r\x1b\[K", text) if "█" in part or "░" in part]
    assert all(places(part) < 60 for part in drawn)
    assert any(re.search(r"█{5}░{15} \d\.\d s, about \d+\.\d s left of f", part) for part in drawn)
    assert any(re.search(r"░{20} \d\.\d s  refinement \d+: age$", part) for part in drawn)
    assert "\x1b[2J" not in text


def test_a_stage_that_heads_others_has_no_time_of_its_own():
    script = """
from dpmask.terminal import Progress
progress = Progress()
for name in ("1 of 2: k = 3", "  mask", "  measure", "2 of 2: k = 5", "  measured before"):
    progress.stage(name)
progress.close()
"""
    _, lines = on_terminal(script, 60)
    assert lines[::3] == ["1 of 2: k = 3", "2 of 2: k = 5"]
    assert [line.rindex("s") for line in lines[1:3]] == [16, 16]  # in line
    assert lines[1].startswith("  mask ")


def test_every_step_is_a_line_elsewhere():
    piped = subprocess.run([sys.executable, "-c", STAGES], capture_output=True, text=True, check=True)
    assert sum("refinement" in line for line in piped.stderr.splitlines()) == 50


def test_times_and_lines():
    assert [_time(one) for one in (4.21, 187, 3723)] == ["4.2 s", "3:07", "1:02:03"]
    assert (_cut("abc", 9), _cut("日本語", 5), _cut("日本語", 1)) == ("abc", "日本", "")
