"""Scans as iterators: ranges, indexes, order, limits, concurrent changes."""

import pytest

import highwater
from highwater import Index

from conftest import ids


@pytest.fixture(params=["snapshot", "transaction"])
def read(request, db, numbers):
    with getattr(db, request.param)() as txn:
        yield txn


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({}, range(1, 11)),
        ({"ge": 3, "le": 5}, [3, 4, 5]),
        ({"gt": 3, "lt": 5}, [4]),
        ({"ge": (9,)}, [9, 10]),
        ({"reverse": True, "limit": 3}, [10, 9, 8]),
        ({"le": 4, "reverse": True}, [4, 3, 2, 1]),
        ({"prefix": 7}, [7]),
        ({"limit": 0}, []),
        ({"gt": 10}, []),
        ({"index": "by_square", "ge": 50, "lt": 100}, [8, 9]),
        ({"index": "by_square", "reverse": True, "le": 16}, [4, 3, 2, 1]),
    ],
)
def test_ranges(read, numbers, arguments, expected):
    scan = read.scan(numbers, **arguments)
    assert ids(scan) == list(expected) == ids(scan)
    assert scan.count() == len(list(expected))
    assert (scan.first() or {}).get("id") == next(iter(expected), None)


def test_columns_and_tuples(read, numbers):
    scan = read.scan(numbers, columns=["square", "id"], limit=2)
    assert list(scan) == [{"square": 1, "id": 1}, {"square": 4, "id": 2}]
    assert list(scan.tuples()) == [(1, 1), (4, 2)]
    assert scan.estimate() == 2


def test_wrong_scans_are_refused(read, numbers):
    with pytest.raises(highwater.UsageError, match="one begin"):
        read.scan(numbers, ge=1, gt=1)
    with pytest.raises(highwater.UsageError):
        read.scan(numbers, prefix=1, le=4)
    with pytest.raises(highwater.NoSuchIndex) as caught:
        read.scan(numbers, "nope")
    assert (caught.value.table, caught.value.index) == ("numbers", "nope")
    with pytest.raises(highwater.NoSuchColumn):
        read.scan(numbers, columns=["nope"])
    with pytest.raises(highwater.NoSuchTable):
        read.scan("nope")
    with pytest.raises(highwater.BadValue, match="column id"):
        list(read.scan(numbers, ge="x"))


def test_a_transaction_changes_what_it_scans(db, numbers):
    with db.transaction() as txn:
        for row in txn.scan(numbers, for_update=True):
            if row["id"] % 2:
                txn.delete(numbers, row["id"])
            else:
                txn.update(numbers, row["id"], {"name": f"n{row['id']}"})
        assert ids(txn.scan(numbers)) == [2, 4, 6, 8, 10]
        assert txn.scan(numbers, lt=6).delete() == 2
    with db.snapshot() as read:
        assert [row["name"] for row in read.scan(numbers)] == ["n6", "n8", "n10"]
        with pytest.raises(highwater.UsageError):
            read.scan(numbers).delete()


def test_a_scan_ends_with_its_transaction(db, numbers):
    with db.transaction() as txn:
        rows = iter(txn.scan(numbers))
        next(rows)
    with pytest.raises(highwater.UsageError, match="has ended"):
        next(rows)


def test_a_snapshot_is_read_in_batches(db, numbers):
    with db.transaction() as txn:
        txn.insert_many(numbers, ((n, n, None) for n in range(11, 1001)))
    with db.snapshot() as read:
        assert ids(read.scan(numbers)) == list(range(1, 1001))
        assert ids(read.scan(numbers, reverse=True, limit=300)) == list(range(1000, 700, -1))


def test_indexes(db):
    people = db.create_table(
        "people",
        {"id": "u64", "last": "text(40)", "first": "text(40)", "born": "u16 null"},
        ["id"],
        indexes={
            "by_name": ["last", "first"],
            "youngest": ["born desc"],
            "by_begin": Index(["last(2)"], covering=["born"]),
        },
    )
    assert people.indexes == {"by_name": ["last", "first"], "youngest": ["born desc"], "by_begin": ["last(2)"]}
    assert people.primary_key == ["id"] and people.columns["born"] == "u16 null"
    with db.transaction() as txn:
        txn.insert(people, (1, "Lovelace", "Ada", 1815))
        txn.insert(people, (2, "Hopper", "Grace", 1906))
        txn.insert(people, (3, "Lovell", "Jim", None))
    with db.snapshot() as read:
        assert ids(read.scan(people, "youngest")) == [2, 1, 3]
        assert ids(read.scan(people, "by_name", starts_with="Love")) == [1, 3]
        assert ids(read.scan(people, "by_name", prefix=("Lovell", "Jim"))) == [3]
        assert ids(read.scan(people, "by_begin", prefix="Lo")) == [1, 3]
    db.create_index(people, "by_first", Index(["first"], unique=True))
    with db.transaction() as txn, pytest.raises(highwater.DuplicateKey) as caught:
        txn.insert("people", (4, "Byron", "Ada", 1788))
    assert caught.value.index == "by_first"
    db.drop_index("people", "by_first")
    assert "by_first" not in db.table("people").indexes
