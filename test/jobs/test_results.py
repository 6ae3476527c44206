"""Results on disk: found again by what they were made from, absent where a file is damaged."""

from contact_estimation.jobs.results import Results, content_hash, key_of


def test_a_result_is_found_by_its_key_only(tmp_path):
    results = Results(tmp_path / "kept")
    results.put(key_of("a", 1), {"error": None, "force": 1.5})
    assert Results(tmp_path / "kept").get(key_of("a", 1)) == {"error": None, "force": 1.5}
    assert results.get(key_of("a", 2)) is None


def test_a_damaged_file_counts_as_absent(tmp_path):
    results = Results(tmp_path)
    results.put("key", {"a": 1})
    (tmp_path / "key.json").write_text('{"a"')
    assert results.get("key") is None


def test_content_decides_the_hash_of_files_and_folders(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_bytes(b"x" * 3_000_000)
    assert content_hash(tmp_path / "one") == content_hash(tmp_path / "two")
    before = content_hash(tmp_path / "one" / "part")
    (tmp_path / "one" / "part").write_bytes(b"x" * 2_999_999 + b"y")
    assert content_hash(tmp_path / "one" / "part") != before
    assert content_hash(tmp_path / "one") != content_hash(tmp_path / "two")
