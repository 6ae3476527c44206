"""Settings are refused with the file, the path of the key, what was found and what was expected."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from contact_estimation import settings
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import from_mapping, key, non_negative, positive, probability


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A nested group."""

    gain: float = key(1.0, doc="a gain", unit="N/m", check=positive)
    share: float = key(0.5, doc="a share", check=probability)


@dataclass(frozen=True, kw_only=True)
class Outer:
    """One key of every kind."""

    name: str = key(doc="a name")
    count: int = key(3, doc="a count", check=non_negative)
    fast: bool = key(False, doc="a switch")
    form: str = key("round", doc="a word of some", choices=("round", "square"))
    axis: list[float] = key([0.0, 0.0, 1.0], doc="three numbers", length=3, unit="m")
    word_or_axis: list[float] | str = key("start", doc="numbers or a word", length=3, choices=("start",))
    limit: float | None = key(None, doc="a number or nothing", check=positive)
    inner: Inner = key(Inner(), doc="a group")
    parts: list[Inner] = key([], doc="many groups")
    table: dict[str, float] = key({}, doc="numbers by name")

    def __post_init__(self):
        if self.name == "forbidden":
            raise ConfigError("key 'name' must not be 'forbidden'")


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A type the schema does not know."""

    value: bytes = key(doc="bytes")


def refused(**mapping) -> str:
    with pytest.raises(ConfigError) as error:
        from_mapping(Outer, {"name": "n"} | mapping, "my.yaml")
    assert str(error.value).startswith("my.yaml: ")
    return str(error.value)


def test_what_is_silent_takes_its_default_and_values_are_converted():
    value = from_mapping(
        Outer,
        {
            "name": "n",
            "count": 4.0,
            "limit": 2,
            "inner": {"gain": "1e-3"},
            "parts": [{}, {"share": 1}],
            "word_or_axis": [1, 2, 3],
            "table": {"a": 1},
        },
        "my.yaml",
    )
    assert value == Outer(
        name="n",
        count=4,
        limit=2.0,
        inner=Inner(gain=1e-3),
        parts=[Inner(), Inner(share=1.0)],
        word_or_axis=[1.0, 2.0, 3.0],
        table={"a": 1.0},
    )
    assert isinstance(value.count, int) and isinstance(value.limit, float)
    assert from_mapping(Outer, {"name": "n"}, "x").axis is not from_mapping(Outer, {"name": "n"}, "x").axis


@pytest.mark.parametrize(
    "mapping, message",
    [
        ({"cuont": 3}, "unknown key 'cuont'; the nearest known key is 'count'. Known here: axis, count"),
        ({"inner": {"gian": 3}}, "unknown key 'inner.gian'; the nearest known key is 'inner.gain'"),
        ({"parts": [{}, {"shar": 3}]}, "unknown key 'parts[1].shar'; the nearest known key is 'parts[1].share'"),
        ({"zzz": 1}, "unknown key 'zzz'; the nearest known key is"),
        ({"count": "many"}, "'count' must be a number, found 'many'"),
        ({"count": True}, "'count' must be a number, found True"),
        ({"count": [1]}, "'count' must be a number, found [1]"),
        ({"count": 1.5}, "'count' must be a whole number, found 1.5"),
        ({"count": -1}, "'count' must not be negative, found -1"),
        ({"inner": {"gain": 0}}, "'inner.gain' must be greater than 0, found 0 N/m"),
        ({"inner": {"gain": float("nan")}}, "'inner.gain' must be finite, found nan"),
        ({"inner": {"gain": float("inf")}}, "'inner.gain' must be finite, found inf"),
        ({"inner": {"share": 1.1}}, "'inner.share' must lie between 0 and 1, found 1.1"),
        ({"inner": 3}, "inner must be a mapping, found 3"),
        ({"fast": 1}, "'fast' must be true or false, found 1"),
        ({"fast": "yes"}, "'fast' must be true or false, found 'yes'"),
        ({"name": 3}, "'name' must be a word, found 3"),
        ({"form": "rond"}, "'form' is 'rond'; expected one of round, square (nearest: 'round')"),
        ({"axis": 1.0}, "'axis' must be a list, found 1.0"),
        ({"axis": [1, 2]}, "'axis' has 2 entries, expected 3"),
        ({"axis": [1, 2, "x"]}, "'axis[2]' must be a number, found 'x'"),
        ({"word_or_axis": [1, 2]}, "'word_or_axis' has 2 entries, expected 3"),
        ({"limit": -2}, "'limit' must be greater than 0, found -2"),
        ({"count": None}, "'count' must be a number, found None"),
        ({"word_or_axis": None}, "'word_or_axis' must not be empty"),
        ({"parts": {}}, "'parts' must be a list, found {}"),
        ({"table": [1]}, "'table' must be a mapping, found [1]"),
        ({"table": {"a": "b"}}, "'table.a' must be a number, found 'b'"),
        ({"name": "forbidden"}, "key 'name' must not be 'forbidden'"),
    ],
)
def test_what_is_wrong_is_named(mapping, message):
    assert message in refused(**mapping)


def test_a_missing_key_says_what_it_is_for():
    with pytest.raises(ConfigError, match=r"my.yaml: key 'name' is missing \(a name\)"):
        from_mapping(Outer, {}, "my.yaml")


@pytest.mark.parametrize("mapping", [None, [], "words"])
def test_only_a_mapping_is_settings(mapping):
    with pytest.raises(ConfigError, match=r"my.yaml: top level must be a mapping"):
        from_mapping(Outer, mapping, "my.yaml")


def test_replace_is_checked_and_leaves_the_original():
    before = from_mapping(Outer, {"name": "n", "inner": {"gain": 5}}, "x")
    after = settings.replace(before, count=7)
    assert (after.count, after.inner.gain, before.count) == (7, 5.0, 3)
    with pytest.raises(ConfigError, match=r"override: 'count' must not be negative"):
        settings.replace(before, count=-7)


def test_mapping_and_back():
    value = from_mapping(Outer, {"name": "n", "parts": [{"gain": 2}]}, "x")
    assert from_mapping(Outer, settings.to_mapping(value), "x") == value


def test_reference_lists_every_key_with_its_path():
    names = [name for name, _ in settings.reference(Outer)]
    assert {"name", "inner", "inner.gain", "parts", "parts[].share"} <= set(names)


def test_a_type_the_schema_does_not_know_is_a_programming_error():
    with pytest.raises(TypeError, match=r"settings key value.*not supported"):
        from_mapping(Odd, {"value": b""}, "x")


def test_yaml_files(tmp_path):
    with pytest.raises(ConfigError, match=r"no such configuration file: .*absent.yaml"):
        settings.load_yaml(tmp_path / "absent.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [1,\n")
    with pytest.raises(ConfigError, match=r"bad.yaml is not valid YAML"):
        settings.load_yaml(bad)
    with pytest.raises(ConfigError, match=r"bad.yaml is not valid YAML: line 2, column 1: .*flow") as error:
        settings.load_yaml(bad)
    assert "unicode string" not in str(error.value)
    bad.write_text("")
    with pytest.raises(ConfigError, match="found nothing"):
        settings.load_yaml(bad)
    bad.write_text("- 1\n")
    with pytest.raises(
        ConfigError, match=r"bad.yaml: expected a mapping of keys to values at the top level, found list"
    ):
        settings.load_yaml(bad)
    good = tmp_path / "good.yaml"
    good.write_text("name: n\ncount: 1e1\n")
    assert settings.from_yaml(Outer, good).count == 10


@pytest.mark.parametrize(
    "content, words",
    [
        (b"name: a\nname: b\n", "line 2, column 1: the key 'name' stands twice, before in line 1"),
        (b"name: n\ninner: {value: 1, value: 2}\n", "the key 'value' stands twice"),
        (b"name: n\ncount: !!int abc\n", "not valid YAML"),
        (b"name: n\ncount: !!float x\n", "not valid YAML"),
        (b"name: !!python/object/apply:os.system [true]\n", "not valid YAML"),
        (b"name: " + b"[" * 20_000, "not valid YAML"),
        (b"name: \xff\xfe\x00\n", "UTF-8"),
        (b"name: \x07\n", "not valid YAML"),
        (b"name: n\ncount: 1e308\n", "'count' must be 0 or of a size between"),
        (b"name: n\ncount: " + b"9" * 400 + b"\n", "'count' must be 0 or of a size between"),
        (b"name: n\ncount: .nan\n", "'count' must be finite"),
        (b"name: n\ncount: 1e-308\n", "'count' must be 0 or of a size between"),
        (b"name: &a [*a]\n", "'name' must be a word"),
        (b"{? [1, 2] : 3}\n", "bad.yaml"),
    ],
)
def test_hostile_files_end_in_an_error_that_names_the_place(tmp_path, content, words):
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        settings.from_yaml(Outer, bad)
    assert "bad.yaml" in str(caught.value) and len(str(caught.value)) < 2000


def test_aliases_that_multiply_do_not(tmp_path):
    lines = ["a0: &a0 [x, x]"] + [f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]" for k in range(1, 60)]
    bad = tmp_path / "bad.yaml"
    bad.write_text("\n".join([*lines, "name: *a59", ""]))
    with pytest.raises(ConfigError) as caught:
        settings.from_yaml(Outer, bad)
    assert len(str(caught.value)) < 2000


def test_shipped_names_and_paths(tmp_path, monkeypatch):
    assert settings.find_config("robots", "ur16e").parts[-2:] == ("ur16e", "robot.yaml")
    with pytest.raises(
        ConfigError,
        match=r"there is no robot 'ur16' .nearest: 'ur16e'.. Shipped: .*fr3.*or give the path of a YAML file",
    ):
        settings.find_config("robots", "ur16")
    with pytest.raises(ConfigError, match=r"no such configuration file: other/ur16e"):
        settings.find_config("robots", "other/ur16e")
    path = tmp_path / "mine.yml"
    path.write_text("")
    assert settings.find_config("robots", str(path)) == path
    with pytest.raises(
        ConfigError,
        match=r"nothing.yaml that this package ships was not found; looked in .*Reinstall "
        r"the package",
    ):
        settings.share_file("config", "nothing.yaml")
