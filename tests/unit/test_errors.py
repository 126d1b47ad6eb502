"""Messages: short, printable, and with what to do at their end."""

from dpmask.errors import LONGEST_LINE, JobError, printable


def test_a_long_line_keeps_its_end():
    """A file of 1,000 columns without roles: what to do about them is read, too."""
    message = str(JobError(f"columns {', '.join(f'column_{n}' for n in range(1000))} have no role. Declare each."))
    assert len(message) == LONGEST_LINE
    assert message.startswith("columns column_0, column_1")
    assert message.endswith("have no role. Declare each.")


def test_escapes_count():
    shown = printable("\x1b" * 400, 100)
    assert len(shown) == 100
    assert shown.isprintable()
    assert printable("short") == "short"
