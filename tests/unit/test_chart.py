"""Charts are well-formed and say what they show."""

from xml.etree import ElementTree

from dpmask.report.chart import convergence_chart


def test_convergence_chart():
    svg = convergence_chart({"original": [1.0, 1e-3, 1e-7], "warm": [0.1], "none": []})
    root = ElementTree.fromstring(svg)
    lines = [line.attrib["points"].split() for line in root.iter("polyline")]
    assert [len(points) for points in lines] == [3, 2, 1, 2]
    heights = [float(point.split(",")[1]) for point in lines[0]]
    assert heights == sorted(heights), "smaller shifts lie lower"
    assert "original, warm" in root.attrib["aria-label"]
    assert convergence_chart({}) == ""


def test_zero_shift_and_one_pass():
    assert ElementTree.fromstring(convergence_chart({"a": [0.0]})) is not None
