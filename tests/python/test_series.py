"""Echo state networks on series as estimators of scikit-learn."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import subprocess
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", "1.6", reason="scikit-learn 1.6 or later is not installed")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import tarn
from tarn.series import ESNForecaster, ESNRegressor, _Table, lorenz, mackey_glass


def test_check_estimator_of_the_regressor() -> None:
    check_estimator(ESNRegressor(units=20), expected_failed_checks=ESNRegressor.EXPECTED_FAILED_CHECKS)


def test_check_estimator_of_the_forecaster() -> None:
    check_estimator(ESNForecaster(units=20), expected_failed_checks=ESNRegressor.EXPECTED_FAILED_CHECKS)


def test_regressor_learns_what_needs_memory() -> None:
    """The target is the input five rows ago: no function of the row alone can know it."""
    x = np.random.default_rng(1).uniform(-1, 1, (1500, 1))
    y = np.roll(x[:, 0], 5)
    model = ESNRegressor(units=100, input_scaling=0.2, random_state=3).fit(x[:1000], y[:1000])
    assert model.score(x[1000:], y[1000:]) > 0.9
    several = ESNRegressor(units=100, input_scaling=0.2, random_state=3).fit(x[:1000], np.stack([y, 2 * y], 1)[:1000])
    assert np.allclose(several.predict(x)[:, 0], model.predict(x)) and several.coef_.shape == (100, 2)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(x), model.predict(x))


def test_states_follow_the_equation() -> None:
    x = mackey_glass(60)
    model = ESNRegressor(units=30, lr=0.4, sr=0.8, standardize=False, warmup=5).fit(x, x[:, 0])
    w, win, bias = model.matrices()
    assert np.isclose(np.abs(np.linalg.eigvals(w)).max(), 0.8, atol=1e-5)
    state, states = np.zeros(30), model.transform(x)
    for row, found in zip(x, states):
        state = 0.6 * state + 0.4 * np.tanh(w @ state + win @ row + bias)
        assert np.allclose(found, state, rtol=0, atol=1e-12)
    assert list(model.get_feature_names_out()[:2]) == ["unit0", "unit1"]


def test_without_recurrence() -> None:
    """A search over the spectral radius begins at 0: the states are functions of the rows."""
    x = mackey_glass(60)
    model = ESNRegressor(units=30, sr=0, standardize=False, warmup=5).fit(x, x[:, 0])
    w, win, bias = model.matrices()
    assert not w.any() and np.allclose(model.transform(x), np.tanh(x @ win.T + bias), rtol=0, atol=1e-12)
    assert len(ESNForecaster(units=30, sr=0, warmup=5).fit(x).forecast(3)) == 3
    for wrong in (-0.1, float("nan")):
        with pytest.raises(tarn.UsageError, match="a spectral radius that is not negative|a number is expected, not NAN"):
            ESNRegressor(units=30, sr=wrong).fit(x, x[:, 0])


def test_forecaster_forecasts(tmp_path: Path) -> None:
    x = mackey_glass(2300)
    model = ESNForecaster(units=200, warmup=100).fit(x[:2000])
    assert np.abs(model.predict(x[:2100])[1999:2099] - x[2000:2100]).max() < 0.05
    ahead = model.forecast(40)
    assert np.abs(ahead - x[2000:2040]).max() < 0.1
    assert np.array_equal(model.forecast(40, x[:2000]), ahead)
    assert np.array_equal(clone(model).fit(x[:2000]).forecast(40), ahead)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).forecast(40), ahead)
    assert lorenz(50).shape == (50, 3)


@pytest.mark.skipif("TARN" not in os.environ, reason="TARN does not name the program")
def test_forecaster_is_the_programs(tmp_path: Path) -> None:
    run: Any = lambda *words: subprocess.run([os.environ["TARN"], "series", *words], check=True, cwd=tmp_path)
    run("generate", "mackey-glass", "--rows", "600", "--output", "x.csv")
    run("train", "x.csv", "--units", "50", "--rows", "500", "--output", "esn")
    x = np.loadtxt(tmp_path / "x.csv", skiprows=1).reshape(-1, 1)
    assert np.array_equal(x, mackey_glass(600))
    ESNForecaster(units=50, warmup=100).fit(x[:500]).save(tmp_path / "own")
    weights = [(tmp_path / name).read_bytes() for name in ("esn", "own")]
    tensors = [data[8 + int.from_bytes(data[:8], "little") :] for data in weights]
    assert tensors[0] == tensors[1]


def test_an_interrupt_leaves_the_numbers() -> None:
    """The library goes on reading them, and its call has the structure only."""
    values = np.ones((5, 1))
    alive, argument = weakref.ref(values), ctypes.byref(_Table(values).series)
    del values
    gc.collect()
    assert alive() is not None
    del argument
    gc.collect()
    assert alive() is None


def test_what_is_refused() -> None:
    x = mackey_glass(50)
    with pytest.raises(NotFittedError):
        ESNForecaster().forecast(3)
    with pytest.raises(tarn.UsageError, match="units 0"):
        ESNForecaster(units=0).fit(x)
    with pytest.raises(tarn.UsageError, match='activation "sigmoid": one of tanh, relu'):
        ESNForecaster(activation="sigmoid").fit(x)
    with pytest.raises(TypeError, match="random_state: a whole number is expected, not None"):
        ESNRegressor(random_state=None).fit(x, x[:, 0])
    with pytest.raises(tarn.UsageError, match="random_state -1: a whole number from 0 on is expected"):
        ESNRegressor(random_state=-1).fit(x, x[:, 0])
    with pytest.raises(tarn.DataError, match="constant"):
        ESNForecaster(units=10).fit(np.ones((50, 1)))
    with pytest.raises(tarn.UsageError, match="warmup of 50"):
        ESNRegressor(units=10, warmup=50).fit(x, x[:, 0])
