"""Small charts as inline SVG: drawn from numbers alone, light or dark with the page, readable in print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 480, 200, 60, 30
_DASHES = ("none", "6 3", "2 3", "8 3 2 3")


def convergence_chart(shifts: Mapping[str, Sequence[float]]) -> str:
    """How far each pass moved the centres, on a logarithmic scale, one line for each clustering."""
    logs = {name: [math.log10(max(value, 1e-300)) for value in values] for name, values in shifts.items() if values}
    if not logs:
        return ""
    low = math.floor(min(min(values) for values in logs.values()))
    high = max(math.ceil(max(max(values) for values in logs.values())), low + 1)
    longest = max(len(values) for values in logs.values())
    parts = [_axes(low, high, longest)]
    for number, ((name, values), dash) in enumerate(zip(logs.items(), _DASHES, strict=False)):
        points = " ".join(f"{_x(n, longest):.1f},{_y(value, low, high):.1f}" for n, value in enumerate(values))
        x, y = _LEFT + _WIDTH + 12, 20 + 18 * number
        style = f'fill="none" stroke="currentColor" stroke-dasharray="{dash}"'
        parts += [f'<polyline points="{line}" {style}/>' for line in (points, f"{x},{y} {x + 24},{y}")]
        parts.append(f'<text x="{x + 30}" y="{y + 4}">{name}</text>')
    label = "Shift of the centres in each pass, logarithmic: " + ", ".join(logs)
    size = f'viewBox="0 0 {_LEFT + _WIDTH + 110} {_HEIGHT + _BOTTOM + 20}"'
    style = 'font-size="12" fill="currentColor" style="max-width:40rem;width:100%"'
    return f'<svg {size} {style} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _axes(low: int, high: int, longest: int) -> str:
    step = max(1, (high - low) // 5)
    ticks = "".join(
        f'<text x="{_LEFT - 8}" y="{_y(power, low, high) + 4:.1f}" text-anchor="end">1e{power}</text>'
        f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{_y(power, low, high):.1f}" y2="{_y(power, low, high):.1f}" '
        'stroke="currentColor" stroke-opacity="0.2"/>'
        for power in range(low, high + 1, step)
    )
    below = _HEIGHT + _BOTTOM
    ends = f'<text x="{_LEFT}" y="{below}">pass 1</text>'
    ends += f'<text x="{_LEFT + _WIDTH}" y="{below}" text-anchor="end">{longest}</text>' if longest > 1 else ""
    return ticks + ends


def _x(number: int, longest: int) -> float:
    return _LEFT + _WIDTH * number / max(longest - 1, 1)


def _y(value: float, low: int, high: int) -> float:
    return 10 + _HEIGHT * (high - value) / (high - low)
