"""What the covariances of the clusters have in common: the shape of a Gaussian mixture."""

from __future__ import annotations

from dataclasses import dataclass

SHAPES = ("spherical", "tied_spherical", "diag", "tied_diag", "tied", "full")
WITH_FACTORS = ("tied", "diag", "full")


@dataclass(frozen=True)
class Shape:
    """A type of covariance, as scikit-learn names it, and a number of factors or None for whole matrices.

    With factors, covariances are loadings times their transpose plus a diagonal: "tied" has both in common,
    "diag" the loadings only, "tied_diag" the diagonal only, "full" neither.
    """

    covariance_type: str
    n_factors: int | None = None

    @property
    def whole(self) -> bool:
        """Whether covariance matrices are written out."""
        return self.n_factors is None and self.covariance_type in ("tied", "full")

    @property
    def own_variances(self) -> bool:
        """Whether every cluster has variances of its own."""
        return self.covariance_type in ("spherical", "diag", "full")

    @property
    def round(self) -> bool:
        """Whether all columns have the same variance."""
        return self.covariance_type in ("spherical", "tied_spherical")

    @property
    def own_loadings(self) -> bool:
        return bool(self.n_factors) and self.covariance_type in ("full", "tied_diag")

    @property
    def q(self) -> int:
        return self.n_factors or 0

    @property
    def tied(self) -> Shape:
        """The same with everything but means in common: what it is started from, and pulled to."""
        if self.whole or self.n_factors:
            return Shape("tied", self.n_factors)
        return Shape("tied_spherical" if self.round else "tied_diag")

    def n_parameters(self, k: int, p: int, n_uninformative: int = 0) -> float:
        """Of k clusters and p columns, `n_uninformative` of which are uninformative about clusters."""
        means = k * (p - n_uninformative) + n_uninformative
        times = k if self.own_variances else 1
        if self.whole:
            covariances = times * p * (p + 1) / 2
        elif self.round:
            covariances = times
        else:
            covariances = times * (p - n_uninformative) + n_uninformative
        loadings = p * self.q - self.q * (self.q - 1) / 2
        return k - 1 + means + covariances + (k if self.own_loadings else 1) * loadings

    def __str__(self) -> str:
        if not self.n_factors:
            return self.covariance_type
        return f"{self.covariance_type}, {self.n_factors} factor{'s' * (self.n_factors > 1)}"
