"""The installed command and node scripts: run they run, imported again by a process they started they do nothing."""

import runpy
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).parents[1] / "scripts" / "launcher.py.in"


@pytest.fixture
def launcher(tmp_path):
    """The script as the build writes it, for a module that says that it ran."""
    (tmp_path / "said.py").write_text("def main():\n    return 7\n")
    script = tmp_path / "script.py"
    script.write_text(TEMPLATE.read_text().replace("@MODULE@", "said"))
    return script


def test_it_runs_and_hands_on_the_exit_code(launcher, monkeypatch):
    monkeypatch.syspath_prepend(str(launcher.parent))
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(launcher), run_name="__main__")
    assert stop.value.code == 7


def test_imported_by_a_spawned_process_it_does_not_run(launcher, monkeypatch):
    monkeypatch.syspath_prepend(str(launcher.parent))
    runpy.run_path(str(launcher), run_name="__mp_main__")
