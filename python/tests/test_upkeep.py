"""Tables by name, migrations, options, backups, checks, counters, read-only openings."""

import pytest

import highwater
from highwater import Database

from conftest import ids


def test_tables(db, numbers):
    assert [table.name for table in db.tables()] == ["numbers"]
    with pytest.raises(highwater.TableExists):
        db.create_table("numbers", {"id": "u64"}, "id")
    with pytest.raises(highwater.SchemaError, match="column a: .*int"):
        db.create_table("t", {"a": "int"}, "a")
    with pytest.raises(highwater.SchemaError):
        db.create_table("t", {"a": "u8"}, "b")
    with pytest.raises(highwater.SchemaError):
        db.table_or_create("numbers", {"id": "u64"}, "id")
    changed = db.migrate(
        "numbers",
        {"id": "u64", "square": "i64", "name": "text(400) null", "added": "u8"},
        "id",
        indexes={"by_square": "square", "by_name": ["name desc"]},
        defaults={"added": 7},
    )
    assert list(changed.columns) == ["id", "square", "name", "added"]
    with db.snapshot() as read:
        assert read.get(changed, 1) == {"id": 1, "square": 1, "name": None, "added": 7}
        with pytest.raises(highwater.TableChanged):
            read.get(numbers, 1)
    renamed = db.rename_table(changed, "squares")
    assert renamed.name == "squares"
    db.truncate_table("squares")
    with db.snapshot() as read:
        assert read.scan("squares").count() == 0
    db.drop_table("squares")
    assert db.tables() == []


def test_rows_expire_and_collations_compare(db):
    table = db.create_table(
        "sessions",
        {"id": "u64", "login": "text(20)", "until": "datetime null"},
        "id",
        indexes={"by_until": ["until"], "by_login": highwater.Index(["login"], unique=True)},
        expires="until",
        collations={"login": "ascii_ci"},
    )
    import datetime as dt

    with db.transaction() as txn:
        txn.insert(table, (1, "Ada", dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc)))
        txn.insert(table, (2, "Grace", None))
        assert txn.get(table, 1) is None
        assert txn.get_by(table, "by_login", "GRACE")["id"] == 2


def test_options(db):
    db.set_option("io_capacity", "4000")
    assert db.options["io_capacity"] == "4000"
    with pytest.raises(highwater.BadOption, match="flush-method"):
        db.set_option("flush_method", "fsync")
    assert "\nhighwater_trx_commits_total " in db.metrics()
    assert db.metrics(openmetrics=True).endswith("# EOF\n")


def test_backups_are_restored(db, numbers, tmp_path):
    db.backup(tmp_path / "monday")
    with db.transaction() as txn:
        txn.insert(numbers, (11, 121, "late"))
    db.flush_log()
    db.backup(tmp_path / "tuesday", base=tmp_path / "monday")
    assert db.check() == []
    Database.restore([tmp_path / "monday", tmp_path / "tuesday"], tmp_path / "copy")
    with Database(tmp_path / "copy", read_only=True) as copy, copy.snapshot() as read:
        assert ids(read.scan("numbers")) == list(range(1, 12))
        with pytest.raises(highwater.UsageError):
            copy.transaction()
    with pytest.raises(highwater.UsageError):
        db.backup(tmp_path / "monday")


def test_a_database_in_memory():
    with Database.in_memory(buffer_pool_size=4 << 20) as db:
        table = db.table_or_create("t", {"id": "u64"}, "id", long_keys=True, log_changes=True)
        with db.transaction() as txn:
            txn.insert(table, (1,))
        assert repr(table) == "<highwater.Table t>"


def test_damage_is_an_error_of_its_own(tmp_path):
    with Database(tmp_path / "db") as db:
        db.create_table("t", {"id": "u64"}, "id")
    (tmp_path / "db" / "redo").write_bytes(b"x" * 8192)
    with pytest.raises((highwater.Corrupt, highwater.OpenError)):
        Database(tmp_path / "db")
