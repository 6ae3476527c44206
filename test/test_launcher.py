"""The installed command and node scripts: run they run, imported again by a process they started they do nothing."""

import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).parents[1] / "scripts" / "launcher.py.in"


@pytest.fixture
def launcher(tmp_path):
    """The script as the build writes it, for a module that says that it ran."""
    (tmp_path / "said.py").write_text("def main():\n    return 7\n")
    script = tmp_path / "script.py"
    script.write_text(TEMPLATE.read_text().replace("@MODULE@", "said").replace("@PYTHON@", sys.executable))
    script.chmod(0o700)
    return script


def test_it_runs_and_hands_on_the_exit_code(launcher, monkeypatch):
    monkeypatch.syspath_prepend(str(launcher.parent))
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(launcher), run_name="__main__")
    assert stop.value.code == 7


def test_imported_by_a_spawned_process_it_does_not_run(launcher, monkeypatch):
    monkeypatch.syspath_prepend(str(launcher.parent))
    runpy.run_path(str(launcher), run_name="__mp_main__")


def blocks_interrupts(pid: int) -> bool:
    """Whether the kernel keeps Ctrl-C from a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:"))
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


def interrupted(script: Path) -> bool:
    """Start a script and interrupt it where the kernel shows that it blocks that, or a second later; whether it did."""
    with subprocess.Popen([script], cwd=script.parent, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 1.0
        while not (early := blocks_interrupts(process.pid)) and time.monotonic() < end:
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(120.0) == 0
        assert process.stderr.read() == ""
    return early


def test_ctrl_c_while_the_interpreter_starts_ends_it_quietly(launcher):
    (launcher.parent / "said.py").write_text("import time\n\n\ndef main():\n    time.sleep(120)\n")
    assert any(interrupted(launcher) for _ in range(5)), "the interpreter starts with Ctrl-C in force"
