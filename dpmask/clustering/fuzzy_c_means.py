"""Fuzzy c-means and entropy-based fuzzy c-means, with tolerance and linear constraints, over Dask.

Every record belongs to every cluster to a degree u_ik. Fuzziness m (FCM) or the entropy weight lambda (EFCM) sets how
sharply: m near 1 and large lambda are almost crisp. A tolerance kappa lets each record move towards the centres by up
to that distance before it counts; constraints such as net + tax = gross hold for every centre, in original units.

Papers: Torra 2020 (EFCM, constraints: Props. 1-5), Torra, Endo and Miyamoto 2009 (tolerance). Passes over the data: one
for the covariance, then one for each iteration, usually below 12 (dpmask.clustering.iteration). Memory per task: one
block of the clustered columns; blocks stay in memory between passes where they fit. Nothing of size records x clusters
is computed, but for ``memberships``, which are lazy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpmask.clustering.center_clustering import CenterClustering, Variant
from dpmask.clustering.fitted_fuzzy_c_means import FittedFuzzyCMeans
from dpmask.engine.draws import Subkey
from dpmask.errors import JobError
from dpmask.kernels.fuzzy.center_sums import largest_fuzziness
from dpmask.parameters import Names, require_flag, require_number, require_texts
from dpmask.table.table import Frame, as_table

__all__ = ["FittedFuzzyCMeans", "FuzzyCMeans"]


@dataclass(frozen=True, kw_only=True)
class FuzzyCMeans(CenterClustering):
    """Fuzzy c-means: every record belongs to every cluster to a degree.

    Parameters
    ----------
    fuzziness
        The papers' m: 1 is crisp, 2 the default. Above 3 the starts lie off the records, where they would be trapped.
    entropy
        The papers' lambda, of the entropy model, in place of fuzziness; "auto" is ten times the value below which all
        centres collapse into one.
    tolerance
        The papers' kappa, in clustering units (standard deviations when standardised): a number, or the name of a
        column with one for each record.
    constraints
        Equations and bounds that every centre satisfies, such as "net + tax = gross" or "age >= 0".
    accelerate
        Whether passes are saved by Anderson acceleration.
    two_grid
        Whether passes over large tables are saved by corrections on a sample.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"net": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0]})
    >>> fitted = dpmask.FuzzyCMeans(clusters=2, fuzziness=1.5).fit(people, seed=1)
    >>> sorted(fitted.centers[:, 0].round(1).tolist())
    [2.0, 12.0]
    >>> fitted.labels(people).nunique()
    2
    """

    fuzziness: float | None = None
    entropy: float | str | None = None
    tolerance: float | str | None = None
    constraints: Names = ()
    accelerate: bool = True
    two_grid: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("accelerate", "two_grid"):
            require_flag(self, name)
        if self.fuzziness is not None and self.entropy is not None:
            raise JobError(f"{self.who}: give either fuzziness or entropy, not both.")
        if self.fuzziness is not None:
            require_number(self, "fuzziness", at_least=1, at_most=largest_fuzziness(self.clusters))
        if self.entropy is not None and self.entropy != "auto":
            require_number(self, "entropy", above=0)
        if self.tolerance is not None and not isinstance(self.tolerance, str):
            require_number(self, "tolerance", at_least=0)
        require_texts(self, "constraints")

    @property
    def variant(self) -> Variant:
        """Which clustering it is."""
        return Variant(
            self.fuzziness, self.entropy, self.tolerance, tuple(self.constraints), self.accelerate, self.two_grid
        )

    def fit(
        self,
        table: Frame,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        key: str | bytes | Subkey | None = None,
        seed: int | None = None,
    ) -> FittedFuzzyCMeans:
        """Find the centres.

        Parameters
        ----------
        table
            A pandas or Dask DataFrame, or a lake.
        columns
            The columns to cluster by; all numeric ones but weight and tolerance by default.
        weight
            A column of weights: a record with weight 3 counts as three.
        key, seed
            What the starts and the sample are drawn by; seed 0 by default.
        """
        subkey = self.subkey("fuzzy c-means", key, seed)
        return self.fit_numbers(as_table(table, self.who), columns, weight, subkey)
