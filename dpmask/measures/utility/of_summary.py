"""Losses that follow from a summary of both tables: each is a function of it, and shares its passes with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from dpmask.kernels.warm_up import NO_KERNELS, KernelUse
from dpmask.measures.measure import Measure, Need
from dpmask.measures.utility.summary import Summary, summarised
from dpmask.measures.utility.weights import one_weight
from dpmask.results import Loss
from dpmask.table.table import Frame

Found_co = TypeVar("Found_co", bound=Loss, covariant=True)
Found = TypeVar("Found", bound=Loss)


class SummaryLoss(Protocol[Found_co]):
    """The public function of such a loss."""

    __name__: str
    result: type[Any]
    needs: Need
    from_summary: Callable[[Summary], Any]

    def __call__(
        self,
        original: Frame,
        masked: Frame,
        *,
        columns: Sequence[str],
        weight: str | Sequence[str] | None = None,
        weighted: bool = True,
    ) -> Found_co:
        """The loss of the masked table."""


def of_summary(
    result: type[Found], needs: Need, require: Callable[[Sequence[str]], None] | None = None
) -> Callable[[Callable[[Summary], Found]], SummaryLoss[Found]]:
    """Make a function of a summary that of two tables; ``require`` refuses columns before anything is read."""

    def decorate(from_summary: Callable[[Summary], Found]) -> SummaryLoss[Found]:
        who = from_summary.__name__

        def loss(
            original: Frame,
            masked: Frame,
            *,
            columns: Sequence[str],
            weight: str | Sequence[str] | None = None,
            weighted: bool = True,
        ) -> Found:
            if require is not None:
                require(columns)
            own = one_weight(weight, who, weighted=weighted)
            return from_summary(summarised(original, masked, columns, needs, who, own))

        loss.__name__ = loss.__qualname__ = who
        loss.__module__, loss.__doc__ = from_summary.__module__, from_summary.__doc__
        loss.__annotations__["return"] = result
        public = cast("SummaryLoss[Found]", loss)
        public.result, public.needs, public.from_summary = result, needs, from_summary
        return public

    return decorate


def summary_measure(
    function: SummaryLoss[Found],
    *,
    check: Callable[..., None] | None = None,
    varied: bool = False,
    least_columns: int = 1,
    kernels: KernelUse = NO_KERNELS,
) -> Measure[Found]:
    """The measure of such a loss."""
    return Measure(
        function=function,
        result=function.result,
        roles={"weight": "weight"},
        check=check,
        varied=varied,
        least_columns=least_columns,
        needs=function.needs,
        from_summary=function.from_summary,
        kernels=kernels,
    )
