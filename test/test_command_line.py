"""What every verb has in common: how it is interrupted, and which broken pipe is an error."""

import functools
import signal
import subprocess
import sys

import pytest

from contact_estimation import cli


@pytest.fixture
def quits():
    """A handler as that of the launcher, which ends the process."""

    def end(*_):
        raise SystemExit(0)

    found = signal.signal(signal.SIGINT, end)
    yield end
    signal.signal(signal.SIGINT, found)


def verb(monkeypatch, work):
    """Let the verb ``doctor`` do something else."""
    monkeypatch.setattr("contact_estimation.commands.doctor.run", lambda args: work())


def test_ctrl_c_interrupts_a_verb_that_the_launcher_started(quits, monkeypatch):
    """Its clean-up runs, and the exit code says so."""
    tidied = []

    def work():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            tidied.append(True)

    verb(monkeypatch, work)
    assert cli.main(["doctor"]) == 130 and tidied
    assert signal.getsignal(signal.SIGINT) is quits


def test_ctrl_c_while_the_command_line_takes_it_over_leaves_no_traceback(quits, monkeypatch):
    take = signal.signal

    def take_and_interrupt(number, handler):
        take(number, handler)
        if handler is signal.default_int_handler:
            signal.raise_signal(number)

    monkeypatch.setattr(signal, "signal", take_and_interrupt)
    assert cli.main(["doctor"]) == 130
    assert signal.getsignal(signal.SIGINT) is quits


def test_a_command_in_the_background_still_ignores_ctrl_c(monkeypatch):
    verb(monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
    found = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert cli.main(["doctor"]) == 0
    finally:
        signal.signal(signal.SIGINT, found)


@pytest.mark.parametrize("module", ["contact_estimation.exceptions", "contact_estimation.cli"])
def test_ctrl_c_while_modules_load_leaves_no_traceback(module):
    """After the command line's own modules come those of its verb, such as numpy."""
    words = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "contact_estimation",
        "calibrate",
        "absent.npz",
        "--robot",
        "ur16e",
    ]
    # A shell starts what it has in the background, as these tests, without SIGINT, and the child would inherit that.
    listen = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=listen
    ) as process:
        while not process.stderr.readline().rstrip().endswith(module):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        text = process.stderr.read()
        assert process.wait(60.0) == 130
    assert "Traceback" not in text


def test_a_broken_pipe_is_an_error_unless_it_is_the_outputs(monkeypatch, capsys):
    def work():
        raise BrokenPipeError(32, "Broken pipe")

    verb(monkeypatch, work)
    assert cli.main(["doctor"]) == 2
    assert "Broken pipe" in capsys.readouterr().err
    monkeypatch.setattr(cli, "_nobody_reads", lambda: True)
    assert cli.main(["doctor"]) == 0


@pytest.mark.parametrize(
    "words",
    ["mpc press", "identify probing", "identify planar --example wheel", "simulate linear_contact", "rtde-server"],
)
def test_a_seed_below_zero_is_refused_by_every_verb(words, capsys):
    assert cli.main([*words.split(), "--seed", "-1"]) == 2
    assert "--seed must not be negative, found -1" in capsys.readouterr().err
