"""What the explorer keeps between moves is computed once for the same content, and nothing is kept by default."""

from functools import partial

import numpy as np

from dpmask.engine.remembered import remembered, remembering


def test_once_for_the_same_content_where_somebody_keeps_it():
    values, asked = np.arange(6.0), []

    def compute():
        asked.append(1)
        return len(asked)

    assert [remembered("fit", lambda: [values], compute) for _ in range(2)] == [1, 2]
    memory = {}
    with remembering(memory):
        assert [remembered("fit", lambda: [values], compute) for _ in range(2)] == [3, 3]
        others = (("other", values), ("fit", values + 1), ("fit", values.reshape(2, 3)))
        assert [remembered(purpose, partial(list, [content]), compute) for purpose, content in others] == [4, 5, 6]
        assert remembered("fit", lambda: [values.copy()], compute) == 3
        for number in range(400):
            remembered(f"fit {number}", lambda: [values], compute)
    assert len(memory) <= 256
    assert remembered("fit", lambda: [values], compute) == len(asked)
