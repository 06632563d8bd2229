"""To Arrow and pandas, and from them."""

import datetime as dt
import uuid
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import highwater

UTC = dt.timezone.utc
TYPES = [
    ("i8", pa.int8(), -5),
    ("i24", pa.int32(), 5),
    ("u64", pa.uint64(), 2**64 - 1),
    ("f32", pa.float32(), 0.5),
    ("f64", pa.float64(), 1e300),
    ("decimal(12,2)", pa.decimal128(12, 2), Decimal("19.95")),
    ("text(20)", pa.string(), "naïve"),
    ("binary(20)", pa.binary(), b"\x00"),
    ("fixed(3)", pa.binary(3), b"abc"),
    ("bool", pa.bool_(), True),
    ("date", pa.date32(), dt.date(2026, 1, 31)),
    ("time", pa.time64("us"), dt.time(1, 2, 3, 4)),
    ("datetime", pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 31, tzinfo=UTC)),
    ("uuid", pa.binary(16), uuid.UUID(int=7)),
    ("json(80)", pa.string(), "[1]"),
]


@pytest.fixture
def table(db):
    return db.create_table("all", {"id": "u64", **{f"c{n}": f"{ty} null" for n, (ty, _, _) in enumerate(TYPES)}}, "id")


def storage(column_type):
    return getattr(column_type, "storage_type", column_type)


def test_all_types_go_to_arrow_and_back(db, table):
    with db.transaction() as txn:
        txn.insert(table, (1, *(value for _, _, value in TYPES)))
        txn.insert(table, {"id": 2})
    with db.snapshot() as read:
        arrow = read.scan(table).to_arrow()
    assert arrow.num_rows == 2
    assert [storage(field.type) for field in arrow.schema] == [pa.uint64()] + [arrow_type for _, arrow_type, _ in TYPES]
    assert not arrow.schema.field("id").nullable and arrow.schema.field("c0").nullable
    assert arrow.schema.field("c5").type == pa.decimal128(12, 2)

    copy = db.create_table("copy", dict(table.columns), "id")
    with db.transaction() as txn:
        assert txn.insert_arrow(copy, arrow) == 2
    with db.snapshot() as read:
        assert list(read.scan(copy)) == list(read.scan(table))


def test_many_rows_are_several_batches(db, numbers):
    with db.transaction() as txn:
        txn.insert_many(numbers, ((n, n, "x" * (n % 40)) for n in range(11, 20001)))
    with db.snapshot() as read:
        reader = pa.RecordBatchReader.from_stream(read.scan(numbers, columns=["id"]))
        batches = list(reader)
        assert len(batches) == 3 and sum(batch.num_rows for batch in batches) == 20000
        frame = read.scan(numbers, le=5, reverse=True).to_pandas()
    assert list(frame["id"]) == [5, 4, 3, 2, 1] and list(frame.columns) == ["id", "square", "name"]


def test_frames_of_pandas_are_inserted(db):
    table = db.create_table(
        "sales",
        {"id": "u64", "at": "datetime", "price": "decimal(10,2)", "rate": "f64", "kind": "text(9)", "note": "text(9) null"},
        "id",
    )
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "at": pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True),
            "price": [5, 7],
            "rate": [1, 2],
            "kind": pd.Categorical(["b", "a"]),
        }
    )
    with db.transaction() as txn:
        assert txn.insert_arrow(table, frame) == 2
        row = txn.get(table, 2)
    assert row == {
        "id": 2,
        "at": dt.datetime(2026, 1, 2, tzinfo=UTC),
        "price": Decimal("7.00"),
        "rate": 2.0,
        "kind": "a",
        "note": None,
    }


def test_what_arrow_has_and_a_table_has_not(db, numbers):
    with db.transaction() as txn:
        with pytest.raises(highwater.NoSuchColumn, match="nope"):
            txn.insert_arrow(numbers, pa.table({"id": [20], "square": [1], "nope": [1]}))
        with pytest.raises(highwater.DuplicateKey):
            txn.insert_arrow(numbers, pa.table({"id": [20, 1], "square": [1, 1]}))
        with pytest.raises(highwater.BadValue, match="column name, row 0 of its batch: Arrow's type"):
            txn.insert_arrow(numbers, pa.table({"id": [20], "square": [1], "name": [[1, 2]]}))
        with pytest.raises(highwater.UsageError, match="a list has no __arrow_c_stream__"):
            txn.insert_arrow(numbers, [1])
        assert txn.scan(numbers).count() == 10
    times = db.create_table("times", {"at": "datetime"}, "at")
    with db.transaction() as txn:
        with pytest.raises(highwater.BadValue, match="without a time zone"):
            txn.insert_arrow(times, pa.table({"at": pa.array([0], pa.timestamp("us"))}))
        with pytest.raises(highwater.BadValue, match="no number of microseconds"):
            txn.insert_arrow(times, pa.table({"at": pa.array([1], pa.timestamp("ns", "UTC"))}))
        assert txn.insert_arrow(times, pa.table({"at": pa.array([1000], pa.timestamp("ns", "UTC"))})) == 1


def test_a_stream_whose_transaction_ends_says_so(db, numbers):
    with db.snapshot() as read:
        reader = pa.RecordBatchReader.from_stream(read.scan(numbers))
    with pytest.raises(Exception, match="has ended"):
        reader.read_all()
