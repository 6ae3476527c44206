"""The folder of compiled code."""

import os
from pathlib import Path

import pytest

from contact_estimation.codegen import cache
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
        with pytest.raises(CodegenError, match="read-only.*chmod u[+]w"):
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
