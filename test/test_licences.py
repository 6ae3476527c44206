"""Every pinned dependency stands in docs/licences.md with the licence that its installed metadata state."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Package -> licence, of the rows of the page.
LISTED = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", (ROOT / "docs/licences.md").read_text(), flags=re.M))


def pinned():
    """Names in the requirements that a robot needs: the library, ROS 2, and the tests."""
    text = "\n".join((ROOT / "requirements" / f"{name}.txt").read_text() for name in ("core", "ros"))
    return sorted(set(re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[a-z]+\])?==", text, flags=re.M)), key=str.lower)


def stated(name):
    """Licence in the metadata of an installed package, as words."""
    found = metadata.metadata(name)
    package = re.sub(r"^ros_(jazzy_)?", "", name.replace("-", "_"))
    described = Path(sys.prefix) / "share" / package / "package.xml"  # ROS packages state it there
    if name.startswith("ros-") and described.exists():
        return " ".join(re.findall(r"<license[^>]*>([^<]*)", described.read_text())).lower()
    classifiers = [c.rpartition(" :: ")[2] for c in found.get_all("Classifier") or [] if c.startswith("License")]
    return " ".join([found.get("License-Expression") or "", (found.get("License") or "")[:400], *classifiers]).lower()


def test_the_page_lists_every_dependency_and_no_other():
    assert sorted(LISTED, key=str.lower) == pinned()


@pytest.mark.parametrize("name", pinned())
def test_the_listed_licence_is_the_stated_one(name):
    try:
        words = stated(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    word = re.match(r"[A-Za-z]+", LISTED[name]).group()
    family = {"LGPL": "gnu lesser"}.get(word, word.lower())
    told = words.strip() not in ("", "%license")  # some packages state nothing
    assert not told or family in words, f"{name}: the page says {LISTED[name]}, its metadata {words[:80]}"
