"""Transactions: commits, rollbacks, locks, conflicts, threads, forks."""

import multiprocessing
import threading
import time

import pytest

import highwater
from highwater import Database

from conftest import ids


def test_leaving_commits_and_an_exception_rolls_back(db, numbers):
    with db.transaction() as txn:
        assert txn.update(numbers, 1, {"name": "one"}) and not txn.update(numbers, 99, {"name": "x"})
    with pytest.raises(ZeroDivisionError), db.transaction() as txn:
        assert txn.delete(numbers, 1) and not txn.delete(numbers, 99)
        1 / 0
    with db.snapshot() as read:
        assert read.get(numbers, 1) == {"id": 1, "square": 1, "name": "one"}
        assert read.get(numbers, 99) is None
        assert read.get_by(numbers, "by_square", 49)["id"] == 7
    with db.transaction() as txn:
        txn.delete("numbers", 2)
        txn.rollback()
    assert not txn.is_open
    with pytest.raises(highwater.UsageError, match="has ended"):
        txn.commit()
    with db.snapshot() as read:
        assert read.get("numbers", (2,))["square"] == 4


def test_upserts_and_replacements(db, numbers):
    with db.transaction() as txn:
        with pytest.raises(highwater.DuplicateKey) as caught:
            txn.insert(numbers, (1, 2, "x"))
        assert (caught.value.table, caught.value.index, caught.value.retryable) == ("numbers", "PRIMARY", False)
        assert isinstance(caught.value, highwater.Error)
        assert not txn.upsert(numbers, {"id": 1, "square": 5}) and txn.upsert(numbers, (11, 121, "new"))
        assert not txn.upsert(numbers, (1, 6, "six"), ["name"])
        assert txn.get(numbers, 1) == {"id": 1, "square": 5, "name": "six"}
        assert txn.replace(numbers, (1, 7, None)) is None
        assert txn.get(numbers, 1)["name"] is None
        point = txn.savepoint()
        with pytest.raises(highwater.DuplicateKey):
            txn.insert_many(numbers, [(n, 0, None) for n in range(3000, 0, -1)])
        assert txn.scan(numbers).count() == 11
        assert txn.insert_many(numbers, [{"id": n, "square": 0} for n in range(100, 3000)]) == 2900
        txn.rollback_to(point)
        assert txn.scan(numbers).count() == 11
        with pytest.raises(ZeroDivisionError):
            txn.insert_many(numbers, ((n, 1 // (n - 2050), None) for n in range(50, 3000)))
        assert txn.scan(numbers).count() == 11


def test_auto_increment_gives_its_number(db):
    table = db.create_table("users", {"id": "u64", "name": "text(9)"}, "id", auto_increment="id")
    with db.transaction() as txn:
        assert [txn.insert(table, {"name": name}) for name in "ab"] == [1, 2]
        assert txn.insert(table, (7, "c")) is None


def test_locks(db, numbers):
    with db.transaction() as one, db.transaction() as other:
        one.update(numbers, 1, {"name": "mine"})
        with pytest.raises(highwater.LockNotAvailable) as caught:
            other.get_for_update(numbers, 1, nowait=True)
        assert caught.value.retryable
        assert other.get_for_share(numbers, 1, skip_locked=True) is None
        begin = time.monotonic()
        with pytest.raises(highwater.LockTimeout):
            other.get_for_update(numbers, 1, lock_timeout=0.05)
        assert time.monotonic() - begin < 1.5
        assert other.scan(numbers, for_update=True, skip_locked=True).first()["id"] == 2
        with pytest.raises(highwater.UsageError):
            other.scan(numbers, for_update=True, for_share=True)


def test_conflicts_and_snapshots(db, numbers):
    careful = db.transaction(first_committer_wins=True, durability="none")
    old = db.snapshot()
    assert careful.get(numbers, 3)["square"] == old.get(numbers, 3)["square"] == 9
    same = old.same_snapshot()
    with db.transaction(isolation="serializable") as txn:
        txn.update(numbers, 3, {"square": 10})
    assert old.get(numbers, 3)["square"] == same.get(numbers, 3)["square"] == 9
    with pytest.raises(highwater.WriteConflict):
        careful.update(numbers, 3, {"square": 11})
    careful.rollback()
    old.close()
    with pytest.raises(highwater.UsageError):
        old.get(numbers, 3)
    assert same.is_open
    same.close()
    with pytest.raises(highwater.UsageError, match="read-committed"):
        db.transaction(isolation="none")
    with pytest.raises(highwater.UsageError, match="'sync'"):
        db.transaction(durability="often")


def test_transact_runs_again_after_a_conflict(db, numbers):
    runs = []

    def work(txn):
        square = txn.get(numbers, 4)["square"]
        runs.append(square)
        if len(runs) == 1:
            with db.transaction() as other:
                other.update(numbers, 4, {"square": 100})
        txn.update(numbers, 4, {"square": square + 1})
        return "done"

    assert db.transact(work, first_committer_wins=True) == "done"
    assert runs == [16, 100]
    with db.snapshot() as read:
        assert read.get(numbers, 4)["square"] == 101

    def fails(txn):
        txn.delete(numbers, 4)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        db.transact(fails)
    with db.snapshot() as read:
        assert read.get(numbers, 4) is not None


def test_the_gil_is_released_while_a_call_waits(db, numbers):
    """A thread waits for a lock; this one continues, and sees that the transaction is in use."""
    holder, waiter = db.transaction(), db.transaction(lock_timeout=30)
    holder.update(numbers, 1, {"name": "mine"})
    caught = []

    def wait():
        while not caught:
            try:
                waiter.update(numbers, 1, {"name": "yours"})
            except highwater.UsageError as error:
                # The first thread is in its call just now.
                assert "another thread" in str(error)
            except highwater.Interrupted as error:
                caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            waiter.savepoint()
        except highwater.UsageError as error:
            assert "another thread" in str(error)
            break
        time.sleep(0.001)
    assert thread.is_alive()
    waiter.interrupt()
    thread.join(20)
    assert len(caught) == 1
    holder.rollback()
    waiter.rollback()


def test_threads_of_one_database(db, numbers):
    def add(start):
        for n in range(start, start + 50):
            db.transact(lambda txn: txn.insert(numbers, (n, n, None)), durability="none")

    threads = [threading.Thread(target=add, args=(start,)) for start in (100, 200, 300, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with db.snapshot() as read:
        assert read.scan(numbers).count() == 210


def in_child(db, txn, results):
    found = []
    for call in (lambda: db.snapshot(), lambda: txn.get("numbers", 1), lambda: txn.commit(), lambda: db.close()):
        try:
            call()
            found.append("nothing")
        except highwater.Error as error:
            found.append(type(error).__name__)
    results.put(found)


def test_a_forked_child_gets_errors(db, numbers):
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    txn = db.transaction()
    txn.delete(numbers, 1)
    child = fork.Process(target=in_child, args=(db, txn, results))
    child.start()
    assert results.get(timeout=30) == ["Forked"] * 4
    child.join(30)
    assert child.exitcode == 0
    txn.rollback()


def test_a_forgotten_transaction_is_rolled_back(db, numbers):
    txn = db.transaction()
    txn.delete(numbers, 1)
    del txn
    with db.snapshot() as read:
        assert read.get(numbers, 1) is not None


def test_closing_ends_transactions_whose_objects_live_on(tmp_path):
    db = Database(tmp_path / "db")
    table = db.create_table("t", {"id": "u64"}, "id")
    with db.transaction() as txn:
        txn.insert_many(table, [(1,), (2,)])
    open_txn, read = db.transaction(isolation="read-committed"), db.snapshot()
    scan = open_txn.scan(table)
    rows, same = iter(scan), read.same_snapshot()
    assert next(rows) == {"id": 1} and read.get(table, 2) is not None
    open_txn.insert(table, (3,))
    db.close()
    db.close()
    calls = [
        lambda: open_txn.insert(table, (4,)),
        lambda: open_txn.insert("t", (4,)),
        lambda: next(rows),
        lambda: list(scan),
        lambda: same.get(table, 1),
        lambda: read.get("t", 1),
        db.snapshot,
        db.tables,
        lambda: db.options,
        open_txn.commit,
    ]
    for call in calls:
        with pytest.raises(highwater.Closed):
            call()
    with Database(tmp_path / "db") as again, again.snapshot() as read:
        assert ids(read.scan("t")) == [1, 2]


def test_what_cannot_be_opened(db, numbers, tmp_path):
    with pytest.raises(highwater.OpenError, match="in use"):
        Database(tmp_path / "db")
    with pytest.raises(highwater.OpenError):
        Database(tmp_path / "none", create_if_missing=False)
    with pytest.raises(highwater.BadOption, match="no-such-option"):
        Database(tmp_path / "other", no_such_option=1)
