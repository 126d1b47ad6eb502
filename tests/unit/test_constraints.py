"""Constraints as people write them, and what is refused."""

import numpy as np
import pytest

from dpmask.constraints.sets import ConstraintError, parse_constraints

COLUMNS = ["net", "tax", "gross", "age", "v1", "v2", "v3", "año", "net income", "e3", "größe.m", "आयु"]


def row(**coefficients):
    return [coefficients.get(column, 0.0) for column in COLUMNS]


def one(text):
    parsed = parse_constraints([text], COLUMNS)
    assert parsed.coefficients.shape == (1, len(COLUMNS))
    assert parsed.texts == (text,)
    return parsed.coefficients[0].tolist(), parsed.constants[0]


@pytest.mark.parametrize(
    ("text", "coefficients", "constant"),
    [
        ("net + tax = gross", {"net": 1, "tax": 1, "gross": -1}, 0),
        ("net+tax=gross", {"net": 1, "tax": 1, "gross": -1}, 0),
        ("net + tax == gross", {"net": 1, "tax": 1, "gross": -1}, 0),
        ("gross = net + tax", {"net": -1, "tax": -1, "gross": 1}, 0),
        ("1.16*v1 + 1.07*v2 = v3", {"v1": 1.16, "v2": 1.07, "v3": -1}, 0),
        ("1.16 v1 + 1.07v2 = v3", {"v1": 1.16, "v2": 1.07, "v3": -1}, 0),
        ("v1*1.16 + v2·1.07 − v3 = 0", {"v1": 1.16, "v2": 1.07, "v3": -1}, 0),
        ("net - tax = 10", {"net": 1, "tax": -1}, 10),
        ("net - 10 = tax + 5", {"net": 1, "tax": -1}, 15),
        ("2 (net + tax) = gross", {"net": 2, "tax": 2, "gross": -1}, 0),
        ("2(net - 3)(4) = gross", {"net": 8, "gross": -1}, 24),
        ("(net + tax) / 4 = gross / 2", {"net": 0.25, "tax": 0.25, "gross": -0.5}, 0),
        ("-net - -tax = +gross", {"net": -1, "tax": 1, "gross": -1}, 0),
        ("net = 5", {"net": 1}, 5),
        ("1e3 net = 2.5E-3 tax", {"net": 1000, "tax": -0.0025}, 0),
        ("2 e3 = 1", {"e3": 2}, 1),
        (".5net + 2.tax = 0", {"net": 0.5, "tax": 2}, 0),
        ("0.1 net + 0.2 net = tax", {"net": 0.3, "tax": -1}, 0),
        ("net + tax - tax = gross", {"net": 1, "gross": -1}, 0),
        ("año = net", {"año": 1, "net": -1}, 0),
        ("an\u0303o = net", {"año": 1, "net": -1}, 0),  # the same word, its tilde a letter of its own
        ("größe.m = आयु", {"größe.m": 1, "आयु": -1}, 0),
        ("\tnet\n+ tax = gross ", {"net": 1, "tax": 1, "gross": -1}, 0),
    ],
)
def test_equalities(text, coefficients, constant):
    assert one(text) == (row(**coefficients), constant)


@pytest.mark.parametrize("quote", "`'\"")
def test_names_with_spaces(quote):
    found = parse_constraints([f"{quote}net income{quote} + tax = gross"], COLUMNS).coefficients[0]
    assert found[COLUMNS.index("net income")] == 1.0


@pytest.mark.parametrize("text", ["age >= 0", "0 <= age", "age ≥ 0", "-age <= 0", "2*age - 3 >= -3", "3 age >= 2 age"])
def test_lower_bounds(text):
    parsed = parse_constraints([text], COLUMNS)
    assert parsed.coefficients.shape == (0, len(COLUMNS))
    assert parsed.lower[COLUMNS.index("age")] == 0.0
    assert np.isfinite(parsed.lower).sum() == 1
    assert not np.isfinite(parsed.upper).any()


def test_bounds_add_up():
    parsed = parse_constraints(["0 <= age <= 120", "age >= 18", "age <= 130", "0.1 * net <= 0.3"], COLUMNS)
    assert (parsed.lower[3], parsed.upper[3], parsed.upper[0]) == (18.0, 120.0, 3.0)


def test_several_equalities_keep_their_texts():
    texts = ["net + tax = gross", "age >= 0", "v1 = v2 = v3"]
    parsed = parse_constraints(texts, COLUMNS)
    assert parsed.texts == (texts[0], texts[2], texts[2])
    assert parsed.coefficients[1:].tolist() == [row(v1=1, v2=-1), row(v2=1, v3=-1)]


def test_a_single_text_and_none():
    assert len(parse_constraints("net + tax = gross", COLUMNS).constants) == 1
    assert parse_constraints([], COLUMNS).coefficients.shape == (0, len(COLUMNS))


@pytest.mark.parametrize(
    ("text", "reason", "pointed"),
    [
        ("net + taxx = gross", "there is no column 'taxx'; did you mean 'tax'?", "taxx"),
        ("net + zzzzzz = gross", "known: net, tax", "zzzzzz"),
        ("net * tax = gross", "a product of columns is not linear", "net * tax"),
        ("2 (net)(tax) = 1", "a product of columns is not linear", "2 (net)(tax)"),
        ("net / tax = 1", "division by a column is not linear", "net / tax"),
        ("net / (1 - 1) = 1", "division by zero", "net / (1 - 1)"),
        ("net ^ 2 = 1", "a power is not linear", "^"),
        ("net ** 2 = 1", "a power is not linear", "**"),
        ("= gross", "a number or a column is missing here", "="),
        ("net + tax =", "a number or a column is missing here", " "),
        ("net + = tax", "a number or a column is missing here", "="),
        ("net = (tax", "this parenthesis is not closed", "("),
        ("net = tax)", "an operator is missing before ')'", ")"),
        ("net = ()", "a number or a column is missing here", ")"),
        ("net income = 5", "a name with spaces stands in backticks", "income"),
        ("2 3 = net", "an operator is missing before '3'", "3"),
        ("net + tax", "a constraint needs =, <= or >=", "net + tax"),
        ("", "it is empty", " "),
        ("   ", "it is empty", " "),
        ("net > 0", "write >=", ">"),
        ("net < 0", "write <=", "<"),
        ("net != 0", "only =, <= and >= can be kept", "!="),
        ("1,16 net = tax", "with a point", ","),
        ("net = 16% tax", "percentage", "%"),
        ("net = 1e999", "too large", "1e999"),
        ("net = 0." + "1" * 200, "too long", "0." + "1" * 200),
        ("1e200*1e200 net = tax", "too large", "1e200*1e200 net = tax"),
        ("net = $tax", "'$' is not understood", "$"),
        ("net = `tax", "this quote is not closed", "`tax"),
        ("net - net = 0", "it says nothing about any column", "net - net = 0"),
        ("1 = 2", "it says nothing about any column", "1 = 2"),
        ("0 net = 2", "it says nothing about any column", "0 net = 2"),
        ("net <= gross", "one column only", "net <= gross"),
        ("120 <= age <= 0", "no age keeps this bound", "age <= 0"),
        ("__import__('os').system('x') = 1", "'.' is not understood", "."),
        ("__import__('os') = 1", "there is no column '__import__'", "__import__"),
        ("net\x1b = 1", "is not understood", "\ufffd"),
        ("net = " + "(" * 60 + "tax" + ")" * 60, "more than 50", "("),
        ("net = " + "-" * 5000 + "tax", "more than 50", "-"),
    ],
)
def test_refusals_show_the_text_and_point_at_the_part(text, reason, pointed):
    with pytest.raises(ConstraintError) as caught:
        parse_constraints([text], COLUMNS)
    message, shown, marks = str(caught.value).split("\n")
    assert reason in message
    assert shown.strip() in message
    start, end = marks.index("^"), len(marks)
    assert shown.ljust(end)[start:end] == pointed


def test_marks_stand_under_wide_letters():
    with pytest.raises(ConstraintError) as caught:
        parse_constraints(["収入 + 税 = x"], ["収入", "税"])
    assert str(caught.value).split("\n")[2] == "    " + " " * 12 + "^"


def test_tiny_numbers_cost_nothing():
    assert parse_constraints(["net + 1e-999999999 tax = 0"], COLUMNS).coefficients[0].tolist() == row(net=1)


def test_only_text_is_accepted():
    with pytest.raises(ConstraintError, match=r"must be text.*got int"):
        parse_constraints([5], COLUMNS)
