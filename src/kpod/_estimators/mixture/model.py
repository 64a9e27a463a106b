"""What a fitted Gaussian mixture does with rows: probabilities, densities, imputed entries, new samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor
from kpod._engine.table import Table
from kpod._estimators import in_partitions
from kpod._estimators.parameters import check_integer
from kpod._estimators.table_model import TableModel
from kpod._inputs import collections, frames, validation
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.completion import drawn, expected, given_observed
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.mixture_parameters import Parameters
from kpod._mixture.outlying_cells import Prices, bitmap


class MixtureModel(TableModel):
    """The parameters of a mixture, in the units of the table it was fitted to."""

    n_components: int
    random_state: Any
    weights_: Floats
    means_: Floats
    loadings_: Floats
    covariance_type_: str
    n_factors_: int | None
    _variances: Floats
    _whole: Floats | None
    _rates: Floats | None
    _prices: Floats | None
    counts_: Floats
    lower_bounds_: Floats
    shape_bics_: dict[str, float]
    selected_: NDArray[np.bool_]

    @property
    def n_clusters_(self) -> int:
        """The number of clusters of the fit."""
        return len(self.means_)

    @property
    def cluster_centers_(self) -> Floats:
        """The means."""
        return self.means_

    @property
    def covariances_(self) -> Any:
        """The covariances, in the shape of `covariance_type_`."""
        check_is_fitted(self)
        shape = self._shape()
        if shape.whole or shape.q:
            whole = self._whole
            if whole is None:
                whole = self.loadings_ @ self.loadings_.transpose(0, 2, 1)
                columns = np.arange(self.n_features_in_)
                whole[:, columns, columns] += self._variances
            return whole[0] if shape == shape.tied else whole
        some = self._variances if shape.own_variances else self._variances[0]
        return np.nanmean(some, axis=-1) if shape.round else some

    def predict(self, X: Any) -> Labels:
        """The most likely cluster of each row by its observed columns; -1 where there are none.

        Returns
        -------
        ndarray of shape (n_samples,)
            For a Dask array or DataFrame, a lazy Dask collection; for a Spark DataFrame, that DataFrame with
            a column `cluster`, also lazy.
        """
        if collections.is_collection(X):
            return in_partitions.applied(self, X, "predict", None)
        with self._fitted_table(X, here=True) as (table, executor):
            return self._labels(table, self._posterior(table, executor)[0])

    def predict_proba(self, X: Any) -> Floats:
        """How likely each cluster is for each row, given the row's observed entries.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The cluster proportions for a row with nothing observed. For a Dask collection, a lazy one.
        """
        if collections.is_collection(X):
            check_is_fitted(self)
            names = [f"cluster_{i}" for i in range(self.n_clusters_)]
            return in_partitions.applied(self, X, "predict_proba", names)
        with self._fitted_table(X, here=True) as (table, executor):
            return self._posterior(table, executor)[0]

    def score_samples(self, X: Any) -> Floats:
        """The log density of the observed entries of each row; 0 where there are none.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        with self._fitted_table(X, here=True) as (table, executor):
            return self._posterior(table, executor)[1]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of the log densities of the rows."""
        with self._fitted_table(X, sample_weight, here=True) as (table, executor):
            return float(np.average(self._posterior(table, executor)[1], weights=table.weights))

    def bic(self, X: Any) -> float:
        """The Bayesian information criterion on X: the lower, the better."""
        found = self.score_samples(X)
        return -2 * float(found.sum()) + self._n_parameters() * float(np.log(len(found)))

    def aic(self, X: Any) -> float:
        """The Akaike information criterion on X: the lower, the better."""
        return -2 * float(self.score_samples(X).sum()) + 2 * self._n_parameters()

    def sample(self, n_samples: int = 1) -> tuple[Floats, Labels]:
        """Random rows of the mixture, complete, and the clusters they are from.

        Drawn by `random_state`: the same int gives the same rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Cluster by cluster; NaN in a column of which nothing was observed in `fit`.
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, 1)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        labels = np.repeat(np.arange(self.n_clusters_), rng.multinomial(n_samples, self.weights_))
        nothing = np.full((n_samples, self.n_features_in_), np.nan)
        found = np.empty_like(nothing)
        own = self._parameters(Units(np.zeros(self.n_features_in_), 1.0))
        for given in given_observed(nothing, own):
            one_hot = np.eye(self.n_clusters_)[labels[given.rows]]
            found[given.rows] = drawn(given._replace(posterior=one_hot), rng)
        return np.where(np.isnan(self.column_means_), np.nan, found), labels.astype(np.int32)

    def impute(
        self, X: Any, *, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """X with its gaps filled by what the mixture expects, given the rest of the row.

        Conditional means are the best guess of each entry, but vary less than the entries would: to find
        out how certain a result is, take several draws, analyse each, and pool the results (multiple
        imputation). A row with nothing observed gets the means of the mixture; a column with no observed
        entries in `fit` stays missing.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return standard deviations as well.
        n_draws : int or None, default=None
            The number of tables to draw at random, given what is observed, instead of the conditional means.
        random_state : int, RandomState instance or None, default=None
            Determines the draws.

        Returns
        -------
        X : a table of the same kind: array, pandas, polars or pyarrow; or a list of `n_draws` of them.
        std : ndarray of shape (n_samples, n_features)
            With `return_std`: 0 where the entry was observed.

        Examples
        --------
        >>> import numpy as np
        >>> from kpod import GaussianMixture
        >>> x = np.random.default_rng(0).normal(size=100)
        >>> X = np.column_stack([x, 2 * x + 0.1 * np.random.default_rng(1).normal(size=100)])
        >>> model = GaussianMixture(covariance_type="full", n_factors=None, random_state=0).fit(X)
        >>> model.impute([[1, np.nan]]).round(1)
        array([[1., 2.]])
        """
        if sparse.issparse(X):
            raise ValueError(
                "impute does not accept sparse tables: the result would be dense. Pass the rows you need as "
                "an array with NaN."
            )
        if n_draws is not None:
            check_integer("n_draws", n_draws, 1)
            if return_std:
                raise ValueError("return_std goes with conditional means, not with n_draws.")
        if collections.is_collection(X):
            if return_std or n_draws is not None:
                raise ValueError(
                    "return_std and n_draws are for tables in memory, not for those of Dask or Spark: pass "
                    "a sample of the rows, or one partition after the other."
                )
            return in_partitions.applied(self, X, "impute")
        with self._fitted_table(X, here=True) as (table, _):
            units = table.units
        values = validation.as_array(X, self)
        gaps = np.isnan(values)
        z = units.to(np.asarray(values, np.float64))
        z[gaps | np.isnan(units.shift)] = np.nan
        parameters = self._parameters(units)
        if self._prices is not None:  # outlying cells stay as they are, and are not used for the others
            z[self._in_units(units).outliers(z, parameters)] = np.nan

        def filled(found: Floats) -> Any:
            complete = np.where(gaps, units.back(found), values).astype(values.dtype)
            return frames.with_values(X, complete, gaps.any(axis=0))

        if n_draws is not None:
            rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
            draws = np.empty((n_draws, *z.shape))
            for given in given_observed(z, parameters):
                for number in range(n_draws):
                    draws[number, given.rows] = drawn(given, rng)
            return [filled(draw) for draw in draws]
        means, spreads = np.empty(z.shape), np.empty(z.shape)
        for given in given_observed(z, parameters):
            means[given.rows], spreads[given.rows] = expected(given)
        if not return_std:
            return filled(means)
        std = np.where(gaps, spreads / units.scale, 0.0)
        return filled(means), np.where(np.isnan(self.column_means_) & gaps, np.nan, std)

    def _validate(self, X: Any, executor: Executor, *, reset: bool, weight: str | None = None) -> Any:
        validation.refuse_dask(X)
        return super()._validate(X, executor, reset=reset, weight=weight)

    def _shape(self) -> Shape:
        return Shape(self.covariance_type_, self.n_factors_)

    def _standard_deviations(self) -> Floats:
        """Of each cluster and column; NaN in a column of which nothing was observed."""
        factors = (self.loadings_**2).sum(axis=2) if self._whole is None else 0.0
        return np.sqrt(self._variances + factors)

    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each column of the whole mixture."""
        means = self.weights_ @ self.means_
        around = self._standard_deviations() ** 2 + (self.means_ - means) ** 2
        return means, np.sqrt(self.weights_ @ around)

    def _covariance(self, cluster: int, columns: Positions) -> Floats:
        """The covariance matrix of some columns within a cluster."""
        if self._whole is not None:
            return self._whole[0 if len(self._whole) == 1 else cluster][np.ix_(columns, columns)]
        loadings = self.loadings_[cluster, columns]
        return np.asarray(loadings @ loadings.T + np.diag(self._variances[cluster, columns]))

    def _covariance_along(self, cluster: int, directions: Floats) -> Floats:
        """The covariance matrix of a cluster projected onto some directions (p, m), without its matrix."""
        variances = np.nan_to_num(self._variances[cluster])
        if self._whole is not None:
            whole = self._whole[0 if len(self._whole) == 1 else cluster]
            return np.asarray(directions.T @ np.nan_to_num(whole) @ directions)
        along = self.loadings_[cluster].T @ directions
        return np.asarray(along.T @ along + directions.T @ (variances[:, None] * directions))

    def _n_parameters(self) -> float:
        live = ~np.isnan(self.column_means_)
        n_uninformative = int((live & ~self.selected_).sum())
        n_rates = 0 if self._rates is None else int((self._rates[0] != 0.5).sum()) * self.n_clusters_
        return self._shape().n_parameters(self.n_clusters_, int(live.sum()), n_uninformative) + n_rates

    def _parameters(self, units: Units) -> Parameters:
        """The parameters in some units; of a column that is ignored, any."""
        return Parameters(
            self.weights_,
            units.to(self.means_),
            np.where(np.isnan(self._variances), 1.0, self._variances * units.scale * units.scale),
            self.loadings_ * units.scale,
            None if self._whole is None else self._whole * units.scale * units.scale,
            self._rates,
        )

    def _posterior(self, table: Table, executor: Executor) -> tuple[Floats, Floats]:
        """Probabilities of the clusters, and log densities in the table's own units."""
        parameters = self._parameters(table.units)
        if parameters.means.shape[1] != table.n_columns:
            raise ValueError("The model is damaged: its means do not match its columns. Fit it again.")
        if self._prices is None:
            posterior, evidence = Entries(table, executor).posterior(parameters)
        else:
            prices, masks, paid = self._in_units(table.units), [], []
            for block in table.blocks:
                entries = block.entries(np.arange(block.n_rows))
                outliers = prices.outliers(entries, parameters)
                masks.append(bitmap(np.isnan(entries) | outliers))
                paid.append(prices.log_density(entries, outliers))
            posterior, evidence = Entries(table, executor, masks).posterior(parameters)
            evidence += np.concatenate(paid)
        evidence += table.observed * np.log(table.units.scale)
        if parameters.rates is None:
            evidence[table.observed == 0] = 0.0
        return posterior, evidence

    def _in_units(self, units: Units) -> Prices:
        """What cells are outliers, in some units."""
        assert self._prices is not None
        return Prices(*self._prices).in_units(units)

    def _outlier_cells(self, table: Table) -> Positions:
        """Rows and columns of the outlying cells (m, 2)."""
        parameters, prices = self._parameters(table.units), self._in_units(table.units)
        found = []
        for block in table.blocks:
            cells = np.argwhere(prices.outliers(block.entries(np.arange(block.n_rows)), parameters))
            found.append(cells + np.array([block.first, 0]))
        return np.concatenate(found)

    def _labels(self, table: Table, posterior: Floats) -> Labels:
        labels = posterior.argmax(axis=1).astype(np.int32)
        if self._rates is None:
            labels[table.observed == 0] = -1
        return labels

    def _about_rows(self, table: Table, executor: Executor) -> dict[str, Any]:
        """Results for the rows of the fit, by the parameters as they are kept."""
        posterior, evidence = self._posterior(table, executor)
        counts, weighted = np.zeros((self.n_clusters_, table.n_columns)), posterior
        if table.weights is not None:
            weighted = posterior * table.weights[:, None]
        for block in table.blocks:
            first = block.first
            for part in block.columns(np.arange(block.n_columns)):
                counts += weighted[first : first + len(part)].T @ ~np.isnan(part)
                first += len(part)
        return ({} if self._prices is None else {"outlier_cells_": self._outlier_cells(table)}) | {
            "counts_": counts,
            "labels_": self._labels(table, posterior),
            "lower_bound_": float(np.average(evidence, weights=table.weights)),
        }
