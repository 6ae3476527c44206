"""``identify planar``: exactly one JSON object with the promised keys; mistakes end with a message and 2."""

import json

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.cli import main
from contact_estimation.studies.planar import table1
from contact_estimation.studies.planar.table1 import BODIES, add_noise, random_drop


def run(capsys, *argv):
    code = main(["identify", "planar", *argv])
    return code, capsys.readouterr()


def test_table1(capsys, monkeypatch):
    assert table1.SNRS == (40, 30, 20, 10)
    monkeypatch.setattr(table1, "SNRS", (40,))
    code, out = run(capsys, "--example", "table1", "--seed", "2", "--drops", "1", "--json")
    table = json.loads(out.out)
    single = table.pop("mean_absolute_error_of_one_drop")
    for key in ("bound_ratio", "random_m_over_i_error", "random_m_over_i_prior_error"):
        rows = table.pop(key)
        assert set(rows) == {"square", "ellipse"} and set(rows["square"]) == {"40"}
    assert code == 0 and set(table) == {"square", "ellipse"} and set(single) == set(table)
    assert all(set(rows) == {"40"} and rows["40"] >= 0 for rows in table.values())
    assert all(single[name] == pytest.approx(rows) for name, rows in table.items())  # one drop: both are the same


def test_impacts(capsys, tmp_path):
    path = str(shared_file("data/ellipse_impacts/ellipse_impacts_odd.npz"))
    code, out = run(capsys, "--impacts", path, "--json", "--figure", str(tmp_path / "f.png"))
    found = json.loads(out.out)
    assert code == 0 and {"m_over_i", "interval_total", "impulse_error_pct"} <= set(found)
    assert found["verdict"] == "good" and found["reasons"] == []
    assert found["interval"][0] < found["m_over_i"] < found["interval"][1]
    assert (tmp_path / "f.png").stat().st_size > 10_000


def test_impact_laws(capsys):
    """Friction that follows the slip explains the real ellipse better than friction against the slip at the end."""
    path = str(shared_file("data/ellipse_impacts/ellipse_impacts_odd.npz"))
    found = json.loads(run(capsys, "--impacts", path, "--json", "--laws")[1].out)
    laws = {law["law"]: law["error_pct"] for law in found["laws"]}
    assert laws["newton"] < laws["complementary_newton"] < 6.0 and laws["poisson"] < laws["complementary_poisson"]


@pytest.mark.parametrize("example, key", [("wheel", "worst_pct"), ("arm-disk", "parameters")])
def test_examples(capsys, tmp_path, example, key):
    code, out = run(capsys, "--example", example, "--json", "--figure", str(tmp_path / "f.png"))
    assert code == 0 and key in json.loads(out.out) and (tmp_path / "f.png").exists()
    code, out = run(capsys, "--example", example)
    assert code == 0 and "error" in out.out


def test_tosses(capsys, tmp_path):
    path = str(tmp_path / "tosses.npz")
    with np.load(shared_file("data/cube_tosses/cube_tosses_000_399.npz")) as recorded:
        np.savez(path, data=recorded["data"], start=recorded["start"][:200], length=recorded["length"][:200])
    code, out = run(capsys, "--tosses", path, "--json")
    found = json.loads(out.out)
    assert code == 0 and {"m_over_i", "interval", "friction", "friction_interval"} <= set(found)
    assert found["verdict"] == "good" and found["interval_total"][0] < found["interval"][0]


def test_recorded_drop(capsys, tmp_path):
    body, rng = BODIES["square"], np.random.default_rng(5)
    run_ = random_drop(body, rng)
    q, v = add_noise(run_, 40.0, rng)
    for name, arrays in (("with", {"v": v}), ("without", {})):
        np.savez(tmp_path / f"{name}.npz", t=run_.t, q=q if arrays else run_.q, **arrays)
        path = str(tmp_path / f"{name}.npz")
        code, out = run(capsys, "--drop", path, "--shape", "square:1", "--friction", "0.7", "--json")
        found = json.loads(out.out)
        assert code == 0 and found["status"] == "local" and found["m_over_i"] == pytest.approx(6.0, rel=0.05)
        assert found["verdict"] == "good" and found["reasons"] == []
        assert found["interval_total"][0] <= found["interval"][0] < found["interval"][1] <= found["interval_total"][1]
    for argv in (["--shape", "circle:1"], ["--shape", "ellipse:1"], []):
        assert run(capsys, "--drop", str(tmp_path / "with.npz"), "--friction", "0.7", *argv)[0] == 2
    np.savez(tmp_path / "warped.npz", t=run_.t**2, q=q)
    code, out = run(
        capsys, "--drop", str(tmp_path / "warped.npz"), "--shape", "square:1", "--friction", "0.7", "--json"
    )
    assert code == 3 and json.loads(out.out)["verdict"] == "failed" and json.loads(out.out)["reasons"]


def test_mistakes(capsys, tmp_path):
    none = {"pre": np.zeros((0, 6)), "post": np.zeros((0, 6)), "n": np.zeros((0, 3)), "d": np.zeros((0, 3))}
    np.savez(tmp_path / "empty.npz", **none)
    for argv in (
        ["--impacts", str(tmp_path / "absent.npz")],
        ["--impacts", str(tmp_path / "empty.npz")],
        ["--tosses", str(tmp_path / "empty.npz")],
        ["--example", "table1", "--drops", "0"],
        ["--example", "table1", "--seed", "-1"],
        ["--example", "wheel", "--noise", "-1"],
    ):
        code, out = run(capsys, *argv)
        assert code == 2 and out.out == "" and out.err.strip()


@pytest.mark.parametrize("source", ["--drop", "--window"])
def test_a_figure_that_is_not_drawn_is_refused(source, capsys, tmp_path):
    code, out = run(capsys, source, str(tmp_path / "any.npz"), "--figure", str(tmp_path / "f.png"))
    assert code == 2 and "--figure draws examples, --impacts and --tosses" in out.err


def test_impact_laws_without_impacts_are_refused(capsys):
    code, out = run(capsys, "--example", "table1", "--laws")
    assert code == 2 and "give it with --impacts" in out.err
