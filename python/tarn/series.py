"""Echo state networks on time series (docs/series.md), as scikit-learn estimators.

    from tarn.series import ESNForecaster, ESNRegressor, lorenz

    series = lorenz(3000)
    forecast = ESNForecaster(units=300).fit(series[:2000]).forecast(500)
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError("tarn.series needs scikit-learn 1.6 or later") from missing

from . import _binding as c
from ._check import bounds, whole
from ._library import Handle, PathLike, call, choice, fill, lib, path_bytes, words
from .errors import UsageError

Array = NDArray[np.float64]
ACTIVATIONS = words("TARN_ESN_", ("TANH", "RELU"))
_validated: Any = validate_data  # has no annotations, and a type checker takes those of its defaults
_Doubles = ctypes.POINTER(ctypes.c_double)


def _doubles(values: Array) -> Any:
    """A pointer to the numbers of an array, which must be C-contiguous and stay alive while the library uses them."""
    return values.ctypes.data_as(_Doubles)


class _Table:
    """An array [rows, columns] as a series of the library, without a copy."""

    def __init__(self, values: Array) -> None:
        names = [str(i + 1).encode() for i in range(values.shape[1])]
        items = (ctypes.c_char_p * len(names))(*names)
        self.series = c.tarn_series(values.shape[0], values.shape[1], items, _doubles(values))
        # The structure holds only the address, and after an interrupt the library may still be using it.
        self.series.kept = values, items


class _Owned:
    """Memory of a series created by the library; arrays that are views of it keep it alive."""

    def __init__(self, handle: Handle) -> None:
        series = handle.pointer.contents
        self.handle = handle
        self.__array_interface__ = {
            "shape": (series.rows, series.columns),
            "typestr": "<f8",
            "data": (ctypes.cast(series.values, ctypes.c_void_p).value, False),
            "version": 3,
        }


def _series_handle() -> Handle:
    return Handle(c.tarn_series, "tarn_series_close")


def _generate(system: int, rows: int, given: dict[str, Any]) -> Array:
    recipe = c.tarn_series_recipe()
    lib.tarn_series_recipe_default(ctypes.byref(recipe), system)
    fill(recipe, {"rows": rows, **given})
    handle = _series_handle()
    call("tarn_series_generate", handle.out(), ctypes.byref(recipe))
    return np.asarray(_Owned(handle))


def mackey_glass(rows: int = 5000, *, tau: float | None = None, dt: float | None = None) -> Array:
    """The Mackey-Glass series [rows, 1]."""
    return _generate(c.TARN_SERIES_MACKEY_GLASS, rows, {"tau": tau, "dt": dt})


def lorenz(rows: int = 10000, *, dt: float | None = None) -> Array:
    """The Lorenz system's x, y and z [rows, 3]."""
    return _generate(c.TARN_SERIES_LORENZ, rows, {"dt": dt})


class _Network(BaseEstimator):  # type: ignore[misc]
    """The common part of the estimators: the parameters of a reservoir."""

    n_features_in_: int

    def __init__(
        self,
        units: int = 500,
        *,
        sr: float = 0.9,
        lr: float = 1.0,
        input_scaling: float = 1.0,
        bias_scaling: float = 0.5,
        input_connectivity: float = 1.0,
        rc_connectivity: float = 0.1,
        activation: str = "tanh",
        ridge: float = 1e-6,
        warmup: int | None = None,
        standardize: bool = True,
        random_state: int = 1,
    ) -> None:
        self.units = units
        self.sr = sr
        self.lr = lr
        self.input_scaling = input_scaling
        self.bias_scaling = bias_scaling
        self.input_connectivity = input_connectivity
        self.rc_connectivity = rc_connectivity
        self.activation = activation
        self.ridge = ridge
        self.warmup = warmup
        self.standardize = standardize
        self.random_state = random_state

    def _options(self, rows: int) -> Any:
        options = c.tarn_esn_options()
        lib.tarn_esn_default(ctypes.byref(options))
        names = ("units", "sr", "lr", "input_scaling", "bias_scaling", "input_connectivity", "rc_connectivity", "ridge")
        fill(options, {name: getattr(self, name) for name in names})
        options.activation = choice("activation", self.activation, ACTIVATIONS)
        options.standardize = self.standardize
        options.warmup = self._warmup(rows)
        options.seed = whole("random_state", self.random_state, *bounds(ctypes.c_uint64))
        return options

    def _warmup(self, rows: int) -> int:
        return min(100, rows // 10) if self.warmup is None else self.warmup

    def _reservoir(self, columns: int) -> Handle:
        """Drawn again from the parameters: the same parameters give the same bits."""
        handle = Handle(c.tarn_reservoir, "tarn_reservoir_close")
        call("tarn_reservoir_open", handle.out(), columns, ctypes.byref(self._options(0)))
        return handle

    def matrices(self) -> tuple[Array, Array, Array]:
        """The reservoir's W [units, units], Win [units, columns] and bias [units]. W[i, j] is the weight from unit j to
        unit i."""
        check_is_fitted(self)
        columns = self.n_features_in_
        w, win, bias = np.zeros((self.units, self.units)), np.zeros((self.units, columns)), np.zeros(self.units)
        reservoir = self._reservoir(columns)
        call("tarn_reservoir_matrices", reservoir, _doubles(w), _doubles(win), _doubles(bias))
        return w, win, bias

    def _run(self, inputs: Array) -> Array:
        """The states [rows, units] after each row, starting from zeros."""
        reservoir = self._reservoir(inputs.shape[1])
        states = np.empty((len(inputs), self.units))
        call("tarn_reservoir_states", reservoir, _doubles(states), None, _doubles(inputs), len(inputs))
        return states


class ESNRegressor(RegressorMixin, TransformerMixin, _Network):  # type: ignore[misc]
    """Regression of arbitrary targets on the states of a reservoir that reads the rows of X in order.

    Rows are time steps: `fit`, `predict` and `transform` (the states) each start with a zero state at the first row of
    X. So a prediction depends on the preceding rows, and `check_estimator` passes except for the two checks that
    reorder or split the rows (`EXPECTED_FAILED_CHECKS`). The first `warmup` states (None: 100, or a tenth of the rows
    if there are fewer than 1000) are excluded from the regression. `standardize` scales the columns of X to mean 0 and
    variance 1 over the rows of `fit`. Parameters are those of `tarn series train`."""

    EXPECTED_FAILED_CHECKS = {
        "check_methods_subset_invariance": "rows are points in time: what a row gives depends on those before it",
        "check_methods_sample_order_invariance": "rows are points in time: their order is what is learnt",
    }

    def fit(self, X: ArrayLike, y: ArrayLike) -> ESNRegressor:
        X, y = _validated(self, X, y, dtype=np.float64, order="C", multi_output=True, y_numeric=True)
        inputs, targets = np.asarray(X), np.ascontiguousarray(y, np.float64)
        warmup = self._options(len(inputs)).warmup
        if warmup >= len(inputs):
            raise UsageError(f"{len(inputs)} samples leave none behind a warmup of {warmup}")
        self.mean_ = inputs.mean(0) if self.standardize else np.zeros(inputs.shape[1])
        scale = inputs.std(0) if self.standardize else np.ones(inputs.shape[1])
        self.scale_ = np.where(scale > 0, scale, 1.0)  # a constant column has no information and does no harm
        states = self._run((inputs - self.mean_) / self.scale_)[warmup:]
        outputs = targets.reshape(len(inputs), -1)[warmup:]
        coef, intercept, used = np.empty((self.units, outputs.shape[1])), np.empty(outputs.shape[1]), ctypes.c_double()
        call(
            "tarn_ridge_regress",
            _doubles(coef),
            _doubles(intercept),
            ctypes.byref(used),
            _doubles(states),
            _doubles(outputs),
            *states.shape,
            outputs.shape[1],
            self.ridge,
        )
        self.ridge_ = used.value  # increased if the regression needed it
        self.coef_ = coef if targets.ndim == 2 else coef[:, 0]
        self.intercept_ = intercept if targets.ndim == 2 else float(intercept[0])
        return self

    def transform(self, X: ArrayLike) -> Array:
        """The states of the reservoir [rows, units]; row t has the state after row t of X."""
        check_is_fitted(self)
        inputs = np.asarray(_validated(self, X, dtype=np.float64, order="C", reset=False))
        return self._run((inputs - self.mean_) / self.scale_)

    def predict(self, X: ArrayLike) -> Array:
        """One target per row."""
        states = self.transform(X)
        found: Array = states @ self.coef_ + self.intercept_
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """unit0, unit1, ... for `transform`."""
        check_is_fitted(self)
        return np.array([f"unit{i}" for i in range(self.units)], object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # on samples that are not a series
        return tags


class ESNForecaster(_Network):
    """The network of `tarn series`: it forecasts the next row of a series from all rows before it. `fit(X)` trains on
    the rows of X; `predict(X)` forecasts for each row of X the next one; `forecast(steps)` continues after the rows of
    `fit`, with each forecast as the next input."""

    def fit(self, X: ArrayLike, y: object = None) -> ESNForecaster:
        values = np.asarray(_validated(self, X, dtype=np.float64, order="C", ensure_min_samples=3))
        options, table = self._options(len(values)), _Table(values)
        esn = Handle(c.tarn_esn, "tarn_esn_close")
        call("tarn_esn_train", esn.out(), ctypes.byref(table.series), len(values), ctypes.byref(options))
        info = c.tarn_esn_info()
        call("tarn_esn_describe", esn, ctypes.byref(info))
        self._esn = esn
        self.series_ = values.copy()
        self.nrmse_, self.ridge_, self.edges_ = info.nrmse, info.ridge, info.edges
        return self

    def _forecast(self, values: Array, begin: int, steps: int, mode: int) -> Array:
        table, found = _Table(values), _series_handle()
        call("tarn_esn_forecast", self._esn, found.out(), ctypes.byref(table.series), begin, steps, mode)
        return np.asarray(_Owned(found))

    def predict(self, X: ArrayLike) -> Array:
        """For each row of X, the forecast of the next row."""
        check_is_fitted(self)
        values = np.asarray(_validated(self, X, dtype=np.float64, order="C", reset=False))
        return self._forecast(values, 1, len(values), c.TARN_FORECAST_ONE_STEP)

    def forecast(self, steps: int, X: ArrayLike | None = None) -> Array:
        """The `steps` rows after those of X (None: those of `fit`); NAN from the point where a forecast diverges."""
        check_is_fitted(self)
        values = self.series_
        if X is not None:
            values = np.asarray(_validated(self, X, dtype=np.float64, order="C", reset=False))
        return self._forecast(values, len(values), steps, c.TARN_FORECAST_CLOSED)

    def save(self, path: PathLike) -> None:
        """Writes a file for `tarn series forecast`."""
        check_is_fitted(self)
        call("tarn_esn_save", self._esn, path_bytes(path))

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the network as the contents of its file."""
        kept: Any = super().__getstate__()
        state: dict[str, Any] = dict(kept)
        if "_esn" in state:
            with tempfile.TemporaryDirectory(prefix="tarn-") as folder:
                path = os.path.join(folder, "esn")
                self.save(path)
                with open(path, "rb") as file:
                    state["_esn"] = file.read()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        data = state.get("_esn")
        if data is not None:
            esn = Handle(c.tarn_esn, "tarn_esn_close")
            with tempfile.TemporaryDirectory(prefix="tarn-") as folder:
                path = os.path.join(folder, "esn")
                with open(path, "wb") as file:
                    file.write(data)
                call("tarn_esn_open", esn.out(), path_bytes(path))
            state = {**state, "_esn": esn}
        super().__setstate__(state)
