"""Readers of a database that is open."""

import subprocess
import sys

import pytest

import highwater
from highwater import Database

from conftest import ids


def test_a_reader_of_this_process(db, numbers, tmp_path):
    reader = Database.open_reader(tmp_path / "db")
    assert reader.tables() == ["numbers"]
    assert "highwater_trx_commits_total" in reader.metrics()
    with reader.snapshot() as read:
        assert read.get("numbers", 3) == {"id": 3, "square": 9, "name": None}
        with db.transaction() as txn:
            txn.delete(numbers, 3)
        assert read.get("numbers", 3) is not None and read.get("numbers", 99) is None
        assert read.get_by("numbers", "by_square", 81)["id"] == 9
        assert ids(read.scan("numbers", ge=8)) == [8, 9, 10]
        assert ids(read.scan("numbers", gt=8, lt=10)) == [9]
        assert ids(read.scan("numbers", "by_square", le=9, reverse=True, limit=2)) == [3, 2]
        assert list(read.scan("numbers", prefix=2, columns=["square"])) == [{"square": 4}]
        assert read.count("numbers") == 10
        rows = read.scan("numbers")
        assert next(rows)["id"] == 1
        with pytest.raises(highwater.UsageError, match="same_snapshot"):
            read.get("numbers", 1)
        del rows
        same = read.same_snapshot()
        assert same.count("numbers") == read.count("numbers") == 10
        with pytest.raises(highwater.NoSuchTable):
            read.get("nope", 1)
        with pytest.raises(highwater.NoSuchIndex):
            read.scan("numbers", "nope")
        with pytest.raises(highwater.NoSuchColumn):
            read.scan("numbers", columns=["nope"])
        with pytest.raises(highwater.UsageError, match="one begin"):
            read.scan("numbers", ge=1, gt=1)
        assert read.count("numbers") == 10
        rows = read.scan("numbers", limit=2)
    assert ids(rows) == [1, 2]
    with pytest.raises(highwater.UsageError, match="has ended"):
        read.get("numbers", 1)
    with reader.snapshot() as read:
        assert read.count("numbers") == 9


def test_a_reader_in_another_process(db, numbers, tmp_path):
    program = (
        "import sys, highwater\n"
        "with highwater.Database.open_reader(sys.argv[1]).snapshot() as read:\n"
        "    print(sum(row['square'] for row in read.scan('numbers')))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "385\n"), done.stderr


def test_no_process_serves_it(db, tmp_path):
    with pytest.raises(highwater.OpenError, match="no database"):
        Database.open_reader(tmp_path / "none")
    snapshot = Database.open_reader(tmp_path / "db").snapshot()
    db.create_table("t", {"id": "u64"}, "id")
    assert snapshot.count("t") == 0
    db.close()
    with pytest.raises((highwater.ReaderDisconnected, highwater.Closed)):
        snapshot.count("t")
    with pytest.raises(highwater.NotServed, match="no process"):
        Database.open_reader(tmp_path / "db")
