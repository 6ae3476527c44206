"""The folder of compiled code."""

import os
from pathlib import Path

import casadi as ca
import pytest

from contact_estimation.codegen import CodegenWarning, cache, compile_function
from contact_estimation.exceptions import CodegenError


def test_the_place_is_chosen_by_variable_then_xdg_then_home(monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, "/chosen/here")
    assert cache.cache_directory() == Path("/chosen/here")
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.cache_directory() == Path("/xdg/contact_estimation")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache.cache_directory() == Path("/home/somebody/.cache/contact_estimation")


def test_a_new_folder_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        folder = cache.open_cache(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_others_can_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(CodegenError, match=f"writable by others.*{mode:o}.*chmod 700"):
        cache.open_cache(tmp_path)


def test_a_read_only_folder_is_refused_even_to_root(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CodegenError, match=r"read-only.*chmod u[+]w"):
            cache.open_cache(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    mine = os.getuid()
    monkeypatch.setattr(cache.os, "getuid", lambda: mine + 1)
    with pytest.raises(CodegenError, match=f"belongs to user {mine}, not to you .{mine + 1}."):
        cache.open_cache(tmp_path)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(CodegenError, match=cache.VARIABLE):
        cache.open_cache(tmp_path / "cache")


@pytest.fixture
def compiled(tmp_path):
    """A function, compiled into a folder of its own, and its shared object."""
    x = ca.SX.sym("x")
    function = ca.Function("square", [x], [x * x], ["x"], ["y"])
    tmp_path.chmod(0o700)
    return function, compile_function(function, cache=tmp_path).path


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how == "flipped":
        content = content[:300] + bytes([content[300] ^ 0xFF]) + content[301:]
    elif how == "truncated":
        content = content[: len(content) // 2]
    elif how == "empty":
        content = b""
    elif how == "link":
        other = path.with_name("elsewhere.so")
        other.write_bytes(content)
        path.symlink_to(other)
        return
    elif how == "pipe":
        os.mkfifo(path)
        return
    path.write_bytes(content)
    path.chmod(0o777 if how == "writable" else 0o500)


@pytest.mark.parametrize("how", ["flipped", "truncated", "empty", "link", "pipe", "writable"])
def test_what_is_not_whole_and_ones_own_is_compiled_anew_and_never_loaded(compiled, tmp_path, how):
    function, path = compiled
    damage(path, how)
    assert not cache.is_sealed(path)
    again = compile_function(function, cache=tmp_path, fallback=False)
    assert again.path == path and cache.is_sealed(path) and not path.is_symlink()
    assert again.evaluate(3.0)[0].item() == 9.0


def test_a_file_of_somebody_else_is_not_loaded(compiled, monkeypatch):
    assert cache.is_sealed(compiled[1])
    mine = os.getuid()
    monkeypatch.setattr(cache.os, "getuid", lambda: mine + 1)
    assert not cache.is_sealed(compiled[1])


def test_a_full_disk_falls_back_with_a_warning(compiled, tmp_path, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    compiled[1].unlink()
    monkeypatch.setattr("contact_estimation.codegen.compiler.seal", full)
    with pytest.warns(CodegenWarning, match="No space left on device"):
        again = compile_function(compiled[0], cache=tmp_path)
    assert again.backend == "vm" and again.evaluate(3.0)[0].item() == 9.0
