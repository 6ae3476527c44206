"""What the pages say to type works: commands parse, name what exists, and run; Python blocks run as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from documentation import PAGES, ROOT, blocks, inline_commands, outputs

from contact_estimation.cli import IDENTIFY, VERBS, build_parser, main

_FENCED = re.compile(r"^ *```.*?^ *```", re.M | re.S)
#: Values that a command gets when it is run here: the same work, less of it.
CHEAP = {"--seconds": "4", "--runs": "1", "--starts": "1", "--evaluations": "2", "--ticks": "20"}
#: Options that a command gets here where the page leaves them at their default: (words it begins with, option).
SHORTER = {
    ("simulate", "mission"): ["--seconds", "4"],
    ("simulate", "plane"): ["--seconds", "4"],
    ("evaluate",): ["--workers", "0"],
    ("mpc", "plane"): ["--duration", "1"],
    ("mpc", "pivot"): ["--duration", "1"],
    ("mpc", "wipe"): ["--duration", "1"],
    ("mpc", "edge"): ["--duration", "1"],
    ("mpc", "press"): ["--duration", "1"],
    ("identify", "probing"): ["--runs", "1"],
    ("identify", "planar", "--example", "table1"): ["--drops", "1"],
}


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


def verb_of(words: list[str]) -> list[str]:
    """Verb, and system of ``identify``, of a ``contact-estimation`` command."""
    return [word for word in words[1:3] if not word.startswith("-")]


def alternatives(words: list[str]) -> list[list[str]]:
    """A command whose word lists alternatives (``batch|probing``) is one command for each."""
    for k, word in enumerate(words):
        if re.fullmatch(r"[\w-]+(\|[\w-]+)+", word):
            return [[*words[:k], choice, *words[k + 1 :]] for choice in word.split("|")]
    return [words]


def check(words: list[str]) -> None:
    """The command would start: the real parser takes it, its script and its options exist."""
    program, *rest = words
    if program == "contact-estimation":
        for command in alternatives(words):
            named = verb_of(command)
            assert named[:1] == [] or named[0] in [*VERBS, "identify"], f"no verb '{named[0]}'"
            if len(command) == 2 and not command[1].startswith("-"):
                continue  # only named
            if named == ["identify", *named[1:]] and named[1:] and len(command) == 3:
                assert named[1] in IDENTIFY
                continue
            try:
                build_parser(*named).parse_args(command[1:])
            except SystemExit as end:
                assert end.code == 0, f"the parser refuses: {' '.join(command)}"
    elif program in ("python", "python3") and rest and rest[0].endswith(".py"):
        script = ROOT / rest[0]
        assert script.is_file(), f"there is no {rest[0]}"
        source = script.read_text()
        helpers = "".join(
            path.read_text()
            for path in script.parent.glob("*.py")
            if f"import {path.stem}" in source or f"from {path.stem} " in source
        )
        for option in (word.split("=")[0] for word in rest if word.startswith("--")):
            assert f'"{option}"' in source + helpers, f"{rest[0]} has no option {option}"
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(rest) <= set(targets), f"make {' '.join(rest)}: targets are {', '.join(targets)}"
    elif program == "ros2" and rest[:2] == ["launch", "contact_estimation"]:
        assert (ROOT / "launch" / rest[2]).is_file(), f"there is no launch file {rest[2]}"


def cheaper(words: list[str]) -> list[str]:
    """The command with :data:`CHEAP` values and :data:`SHORTER` options."""
    words = [CHEAP.get(before, word) for before, word in zip(["", *words], words)]
    for start, options in SHORTER.items():
        if tuple(words[1 : 1 + len(start)]) == start and not {options[0], "--help", "--recording"} & set(words):
            words += options
    return words


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_parse_and_name_what_exists(page):
    for block in blocks(page):
        for words in [] if block.python else block.commands:
            try:
                check(words)
            except AssertionError as error:
                pytest.fail(f"{ids(page)}:{block.line}: {error}")
    for words in inline_commands(page):
        try:
            check(words)
        except AssertionError as error:
            pytest.fail(f"{ids(page)}: `{' '.join(words)}`: {error}")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_stand_in_fenced_blocks(page):
    """Indented ones would not be checked, and a reflow of the text joins them."""
    text = _FENCED.sub("", page.read_text())
    assert not re.findall(r"^ {4,}(?:contact-estimation|python3?|make|ros2|export|pip) .*", text, re.M)


RUN = [page for page in PAGES if any(not block.reason for block in blocks(page))]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Recordings that commands have simulated, by the command: several pages begin with the same one."""
    return tmp_path_factory.mktemp("simulated"), {}


def duplicate(source: Path, target: Path) -> None:
    """Copy a recording, a folder or a file."""
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def start(command: list[str], simulated: tuple[Path, dict]) -> int | str | None:
    """Run a command in this process; returns its exit code. What was simulated once is copied from then on."""
    folder, made = simulated
    if "--out" in command and command[1] == "simulate":
        out, key = Path(command[command.index("--out") + 1]), " ".join(command)
        if key in made:
            duplicate(made[key], out)
            return 0
        made[key] = folder / str(len(made))
        code = main(command[1:])
        duplicate(out, made[key])
        return code
    try:
        return main(command[1:])
    except SystemExit as end:  # --help, --version
        return end.code


def told(line: str, timed: int) -> tuple[list[str], list[float]]:
    """Words and numbers of a printed line, without its last ``timed`` columns."""
    words = [word for word in re.split(r"[\s,\[\]()]+", line) if word]
    words = words[: len(words) - timed] if timed and len(words) > timed else words
    numbers = [re.fullmatch(r"[-+]?\d+(\.\d+)?", word) is not None for word in words]
    return (
        [word for word, number in zip(words, numbers) if not number],
        [float(word) for word, number in zip(words, numbers) if number],
    )


def same(shown: str, printed: str, timed: int) -> bool:
    """Whether a line of a page is what was printed: within 5 %, in a table also within 0.1 (bounds of noise)."""
    (words, numbers), (own_words, own_numbers) = told(shown, timed), told(printed, timed)
    near = 0.1 if timed else 1e-3
    return words == own_words and own_numbers == pytest.approx(numbers, rel=0.05, abs=near)


def missing_lines(shown: list[str], printed: list[str]) -> list[str]:
    """Lines of a page that were not printed; columns of times on this machine are not compared."""
    timed = 0
    lost = []
    for line in shown:
        header = line.count("[µs]")
        if not any(same(line, other, 0 if header else timed) for other in printed):
            lost.append(line)
        timed = header or timed
    return lost


@pytest.mark.parametrize("page", RUN, ids=ids)
def test_blocks_run_in_the_order_of_the_page(page, tmp_path, monkeypatch, capsys, simulated):
    """In one folder and one Python session per page, so that a block may use what the ones before it made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "figures" / "probing").mkdir(parents=True)
    session: dict = {"__name__": "page"}
    shown = outputs(page)
    for block in blocks(page):
        if block.reason:
            continue
        if block.python:
            exec(compile(block.text, f"{ids(page)}:{block.line}", "exec"), session)
            continue
        for words in block.commands:
            if words[0] == "make":
                continue  # what make starts has tests and CI steps of its own
            assert words[0] == "contact-estimation", (
                f"{ids(page)}:{block.line}: mark '{words[0]}' as not run, and say why"
            )
            for command in alternatives(words if block.line in shown else cheaper(words)):
                assert start(command, simulated) == 0, (
                    f"{ids(page)}:{block.line}: {' '.join(command)}: {capsys.readouterr().err}"
                )
        if block.line in shown:
            printed = capsys.readouterr().out.splitlines()
            lost = missing_lines(shown[block.line], printed)
            assert not lost, f"{ids(page)} shows what is not printed any more: {lost}; printed: {printed}"
        capsys.readouterr()


def test_the_site_lists_every_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import site_sources

    listed = site_sources.navigation(site_sources.pages(), site_sources.reference())
    for page in PAGES[2:]:
        assert f"- {page.relative_to(ROOT / 'docs')}\n" in listed


def test_the_collector_sees_blocks_marks_and_running_text(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Text with `contact-estimation fit --robot` and `contact-estimation fit ...`.\n\n"
        "```\ncontact-estimation doctor  # a comment\ncontact-estimation replay A \\\n  --robot ur16e\n```\n\n"
        "<!-- not run: needs a robot -->\n```bash\nros2 launch x y\n```\n\n"
        "```python\nx = 1\n```\n\n```yaml\na: 1\n```\n\n```\n+--drawing--+\n```\n"
    )
    first, second, third = blocks(page)
    assert first.commands == [
        ["contact-estimation", "doctor"],
        ["contact-estimation", "replay", "A", "--robot", "ur16e"],
    ]
    assert (first.reason, second.reason, third.python) == ("", "needs a robot", True)
    assert inline_commands(page) == [["contact-estimation", "fit", "--robot"]]


def test_printed_lines_are_compared_by_words_and_numbers():
    shown = ["observer  force [N]  step [µs]", "ekf  7.12  30", "stiffness 27018 N/m (95 %: 26459 .. 27577)"]
    assert not missing_lines(shown[:2], ["observer   force [N]   step [µs]", "ekf   7.2    99"])
    assert missing_lines(shown[:2], ["observer   force [N]   step [µs]", "ekf   8.2    30"]) == shown[1:2]
    assert not missing_lines(shown[2:], ["stiffness 27001 N/m (95 %: 26459 .. 27500)"])
    assert missing_lines(shown[2:], ["stiffness 30001 N/m (95 %: 26459 .. 27577)"]) == shown[2:]


@pytest.mark.parametrize(
    "words",
    [
        "contact-estimation replya bag --robot ur16e",
        "contact-estimation replay bag --robto ur16e",
        "contact-estimation fit bag --robot ur16e --out x --objective best",
        "python benchmark/no_such.py",
        "python benchmark/replay_speed.py --no-such",
        "make coffee",
    ],
)
def test_a_wrong_command_is_found(words, capsys):
    with pytest.raises((AssertionError, SystemExit)):
        check(words.split())
