"""What charts are made of: marks as SVG text, scales with round ticks, and the frame that a page shows them in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from dpmask.errors import printable

BEFORE, AFTER, LIMIT = "#4c7fd0", "#e08214", "#c8375a"
"""Blue, orange and red: distinct to all kinds of eyes, on white, on black and in print."""
LETTER = 7.6
"""The widest an average letter is, in pixels."""
PAD = 2
_LINE = 12
_THOUSAND, _MILLION, _BILLION = 1e5, 1e6, 1e9


class AxisScale:
    """Values to pixels, from one end to the other; by ratios where ``logarithmic``."""

    def __init__(self, low: float, high: float, start: float, end: float, *, logarithmic: bool = False) -> None:
        self.logarithmic, self.start, self.end = logarithmic, start, end
        self.low, self.high = low, high
        self._ends = (math.log10(low), math.log10(high)) if logarithmic else (low, high)

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> AxisScale:
        """A scale with a margin round some values; it ends at 0 rather than beyond it."""
        low, high = min(values), max(values)
        margin = 0.08 * (high - low) or 0.1 * abs(high) or 0.01
        return cls(max(low - margin, 0.0) if low >= 0 else low - margin, high + margin, start, end)

    def __call__(self, value: float) -> float:
        """Where a value lies; one beyond the ends lies at the end."""
        low, high = self._ends
        if self.logarithmic:
            value = math.log10(value) if value > 0 else low
        reach = high / 2 - low / 2  # halves: the difference of two doubles may be none
        share = (value / 2 - low / 2) / reach if reach > 0 else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Some round values between the ends."""
        return self._ratios(most) if self.logarithmic else list(self._even(most))

    def _even(self, most: int) -> Iterator[float]:
        least = (self.high / 2 - self.low / 2) / most * 2
        if not 0 < least < math.inf:
            return
        step = 10.0 ** math.floor(math.log10(least))
        step *= next(by for by in (1, 2, 5, 10) if step * by >= least * (1 - 1e-9))
        at = math.ceil(self.low / step - 1e-9)
        while at * step <= self.high * (1 + 1e-12) or at * step <= self.high + 1e-9 * step:
            yield float(f"{at * step:.12g}")
            at += 1

    def _ratios(self, most: int) -> list[float]:
        first, last = math.floor(self._ends[0]), math.ceil(self._ends[1])
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
            found = [one for one in found if self.low * (1 - 1e-9) <= one <= self.high * (1 + 1e-9)]
            if len(found) <= most:
                return found
        by = -(-len(found) // most)
        return found[::by]


def tick_text(value: float) -> str:
    """A round number in few letters: 20,000, 150k, 2M."""
    size = abs(value)
    for unit, letter in ((_BILLION, "bn"), (_MILLION, "M")):
        if size >= unit:
            return f"{value / unit:.4g}{letter}" if size < 1e4 * unit else f"{value:.3g}"
    if size >= _THOUSAND:
        return f"{value / 1e3:.4g}k"
    return f"{value:,.6g}" if size >= 1e-4 or not value else f"{value:.2g}"  # noqa: PLR2004


def share_text(share: float) -> str:
    """A share with as many digits as it has to show: 0.01 %, 1.03 %, 12.5 %, 50 %."""
    percent = 100 * share
    text = f"{percent:.{1 if abs(percent) >= 10 else 2}f}".rstrip("0").rstrip(".")  # noqa: PLR2004
    return f"{text} %" if float(text) or not percent else "< 0.01 %"


def across(ticks: Sequence[tuple[float, str]], top: float, bottom: float) -> Iterator[str]:
    """Lines from top to bottom, and below them what each stands for; a text does not run into the one before it."""
    end = -math.inf
    for x, text in ticks:
        yield line(x, top, x, bottom + 4)
        half = LETTER * len(text) / 2
        if x - half > end:
            yield mark_text(x, bottom + 14, text, "middle")
            end = x + half + 4


def upwards(ticks: Sequence[tuple[float, str]], left: float, right: float) -> Iterator[str]:
    """Lines from left to right, and at their left what each stands for."""
    for y, text in ticks:
        yield line(left, y, right, y)
        yield mark_text(left - 5, y, text, "end")


def line(x: float, y: float, to_x: float, to_y: float, how: str = 'stroke="currentColor" stroke-opacity="0.18"') -> str:
    """A straight line, faint by default."""
    return f'<path d="M{number(x)},{number(y)}L{number(to_x)},{number(to_y)}" {how}/>'


def rect(x: float, y: float, width: float, height: float, how: str) -> str:
    """A bar."""
    size = f'width="{number(max(width, 0.0))}" height="{number(max(height, 0.0))}"'
    return f'<rect x="{number(x)}" y="{number(y)}" {size} {how}/>'


def circle(x: float, y: float, radius: float, how: str) -> str:
    """A point."""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" {how}/>'


def mark_text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    """A text beside marks."""
    place = f'x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text {place} fill="currentColor" {more}>{escape(printable(text))}</text>'


def upright(x: float, y: float, text: str) -> str:
    """A text that is read from below."""
    return mark_text(x, y, text, "middle", f'transform="rotate(-90 {number(x)} {number(y)})"')


def shortened(text: str, most: int) -> str:
    """A text of at most so many letters."""
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def room(names: Sequence[str]) -> float:
    """How wide the longest of the texts at the left is, at most."""
    return LETTER * max(map(len, names), default=0) + 12


def number(value: float) -> str:
    """A length in pixels."""
    return f"{value:.1f}".removesuffix(".0")


def chart(marks: Sequence[str], width: float, height: float, label: str) -> Markup:
    """Marks as one chart."""
    group = f'<g font-family="sans-serif" font-size="{_LINE}">{"".join(marks)}</g></svg>'
    return inline(group, number(width), number(height), label)


def inline(marks: str, width: str, height: str, label: str) -> Markup:
    """An SVG for the middle of a page: as wide as there is room, and labelled for readers who cannot see it."""
    label = printable(label)
    opening = (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" style="max-width:{width}px">'
        f"<title>{escape(label)}</title>"
    )
    return Markup(opening + marks)  # noqa: S704  made of numbers, and of text that was escaped
