"""Values of all types, in rows and in errors."""

import datetime as dt
import uuid
from decimal import Decimal

import pytest

from highwater import BadValue, Database, NoSuchColumn

UTC = dt.timezone.utc
COLUMNS = {
    "i8": -128,
    "i16": -32768,
    "i24": -(2**23),
    "i32": -(2**31),
    "i64": -(2**63),
    "u8": 255,
    "u16": 65535,
    "u24": 2**24 - 1,
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "f32": 0.25,
    "f64": -1e300,
    "decimal(12,2)": Decimal("-19.95"),
    "decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "text(20)": "naïve",
    "binary(20)": b"\x00\xff",
    "fixed(3)": b"abc",
    "bool": True,
    "date": dt.date(1815, 12, 10),
    "time": dt.time(23, 59, 59, 999999),
    "datetime": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "json(80)": '{"a": [1, null]}',
}


@pytest.fixture
def table(db):
    columns = {f"c{n}": f"{ty} null" for n, ty in enumerate(COLUMNS)}
    return db.create_table("all", {"id": "u64", **columns}, "id")


def name_of(ty):
    return f"c{list(COLUMNS).index(ty)}"


def test_values_come_back(db, table, tmp_path):
    values = list(COLUMNS.values())
    with db.transaction() as txn:
        txn.insert(table, (1, *values))
        txn.insert(table, {"id": 2})
        txn.insert(table, [3, *values])
    db.close()
    with Database(tmp_path / "db") as again, again.snapshot() as read:
        rows = list(read.scan("all"))
        assert [list(row.values()) for row in rows] == [[1, *values], [2] + [None] * len(values), [3, *values]]
        assert [type(value) for value in rows[0].values()] == [int] + [type(value) for value in values]
        assert next(read.scan("all").tuples()) == (1, *values)
        assert again.table("all").columns["c22"] == "json(80) null"


@pytest.mark.parametrize(
    "ty, value, reason",
    [
        ("i8", 128, "128 does not fit"),
        ("u64", 2**64, "more than 64 bits"),
        ("u64", "1", "text"),
        ("i32", 1.0, "floating point"),
        ("text(20)", "x" * 21, "21"),
        ("decimal(12,2)", Decimal("0.001"), ""),
        ("decimal(12,2)", Decimal("NaN"), "not a decimal"),
        ("datetime", dt.datetime(2026, 1, 1), "no time zone"),
        ("time", dt.time(1, tzinfo=UTC), "time zone"),
        ("json(80)", "{", "no JSON"),
        ("fixed(3)", b"ab", ""),
        ("text(20)", object(), "a object is no value"),
        ("text(20)", {"a": 1}, "a dict is no value"),
    ],
)
def test_what_does_not_fit_names_its_column(db, table, ty, value, reason):
    with db.transaction() as txn, pytest.raises(BadValue, match=f"column {name_of(ty)}: .*{reason}"):
        txn.insert(table, {"id": 9, name_of(ty): value})


def test_values_of_other_kinds_that_are_exact(db, table):
    plus_two = dt.timezone(dt.timedelta(hours=2))
    with db.transaction() as txn:
        txn.insert(
            table,
            {
                "id": 1,
                name_of("f64"): 7,
                name_of("decimal(12,2)"): 5,
                name_of("json(80)"): {"a": [1]},
                name_of("binary(20)"): bytearray(b"xy"),
                name_of("datetime"): dt.datetime(2026, 7, 1, 1, tzinfo=plus_two),
            },
        )
        row = txn.get(table, 1)
    assert row[name_of("f64")] == 7.0 and isinstance(row[name_of("f64")], float)
    assert str(row[name_of("decimal(12,2)")]) == "5.00"
    assert row[name_of("json(80)")] == '{"a": [1]}'
    assert row[name_of("binary(20)")] == b"xy"
    assert row[name_of("datetime")] == dt.datetime(2026, 6, 30, 23, tzinfo=UTC)


def test_wrong_rows_are_refused(db, table):
    with db.transaction() as txn:
        with pytest.raises(BadValue, match="24 values, not 2"):
            txn.insert(table, (1, 2))
        with pytest.raises(BadValue, match="not a str"):
            txn.insert(table, "row")
        with pytest.raises(NoSuchColumn, match="no column nope") as caught:
            txn.insert(table, {"id": 1, "nope": 1})
        assert caught.value.table == "all"
        with pytest.raises(BadValue):
            txn.insert(table, {})
