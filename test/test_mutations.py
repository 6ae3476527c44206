"""Every mutation of the benchmark changes a line that is there: a list that has fallen behind kills nothing."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
from mutations import MUTATIONS

PACKAGE = Path(__file__).parents[1] / "contact_estimation"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_what_a_mutation_changes_stands_once_in_its_file(mutation):
    assert (PACKAGE / mutation.file).read_text().count(mutation.old) == 1
