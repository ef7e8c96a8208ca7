"""What a release says of its errors: unbiased numbers beside biased ones, and what the errors rest on, in every format and back."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow.csv as pa_csv

import policygraph as pg
from policygraph.distributions.noise import gaussian_noise, laplace_noise
from policygraph.distributions.replay import Replay
from policygraph.mechanisms.additive import Additive
from policygraph.release.release import Errors, Release

AGES = pg.Domain({"age": 4})
QUERY = pg.queries.identity(AGES)


class Cut(Additive):
    """Laplace noise, negative counts cut off: biased, with errors of its own and the noisy counts beside."""

    def errors_of(self, points):
        return [Errors(np.arange(4.0), np.arange(4.0) * 2, "simulated")]

    def publish(self, points, randomness):
        return self.released(np.maximum(points, 0), randomness, self.errors_of(points), points)


def made():
    plain = pg.Laplace().calibrate(QUERY, pg.Policy(AGES), pg.Epsilon("1/10"))
    ready = Cut(plain.mechanism, plain.query, plain.policy, plain.loss, plain.sensitivity)
    return ready.run([5, 0, 2, 0], pg.SeededRng(2))


def test_unbiased_numbers_and_errors_are_read_back_from_every_format():
    release = made()
    [table] = release.tables
    assert table.errors == "simulated"
    assert (np.asarray(table.unbiased) < 0).any()
    assert "root mean squared error 0 to 3, 95 % within 0 to 6 (simulated)" in str(release)
    for back in (Release.from_parquet(release.to_bytes()),):
        [again] = back.tables
        assert np.array_equal(again.values, table.values)
        assert np.array_equal(again.unbiased, table.unbiased)
        assert np.array_equal(again.deviation, table.deviation)
        assert np.array_equal(again.within_95, table.within_95)
        assert again.errors == "simulated"
        assert back.to_bytes() == release.to_bytes()
    sink = io.BytesIO()
    release.to_csv(sink)
    columns = pa_csv.read_csv(io.BytesIO(sink.getvalue()))
    assert columns.column("unbiased").to_pylist() == np.asarray(table.unbiased).tolist()
    assert set(columns.column("errors").to_pylist()) == {"simulated"}
    listed = json.loads(release.to_json())["tables"][0]
    assert listed["unbiased"] == np.asarray(table.unbiased).tolist()
    assert listed["errors"] == "simulated"


def test_exact_errors_add_no_column_and_old_records_are_read():
    release = pg.release(QUERY, pg.Policy(AGES), [5, 0, 2, 0], epsilon=1, rng=pg.SeededRng(1))
    assert release.tables[0].errors == "exact"
    assert not {"unbiased", "errors"} & set(release.table().column_names)
    parts = [
        {key: value for key, value in part.items() if key != "errors"} for part in release.record["parts"]
    ]
    old = Release(
        tuple(replace(table, errors=None) for table in release.tables), {**release.record, "parts": parts}
    )
    back = Release.from_parquet(old.to_bytes())
    assert back.tables[0].errors is None
    assert "errors" not in json.loads(back.to_json())["tables"][0]
    assert back.to_bytes() == old.to_bytes()


def test_public_draws_repeat_and_have_the_stated_distribution():
    for noise in (laplace_noise(pg.Epsilon("1/3").value), gaussian_noise(pg.Epsilon("19/2").value)):
        draws = Replay("a name", [1.5, -2.0]).draws(noise, (40, 5_000))
        assert np.array_equal(draws, Replay("a name", [1.5, -2.0]).draws(noise, (40, 5_000)))
        assert not np.array_equal(draws, Replay("a name", [1.5, -2.5]).draws(noise, (40, 5_000)))
        squares = draws.astype(float) ** 2
        error = squares.std() / np.sqrt(squares.size)
        assert abs(squares.mean() - noise.variance) < 6 * error
        assert abs(draws.mean()) < 6 * np.sqrt(noise.variance / draws.size)
