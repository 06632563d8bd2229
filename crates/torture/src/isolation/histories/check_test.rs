//! Histories made by hand: one for each anomaly, and some that are fine.

use super::*;

fn read(key: Key, list: &[Element]) -> Op {
    Op::Read { key, list: list.to_vec(), statement: 0, locked: false }
}

/// A read in the `n`th statement.
fn read_in(statement: u32, key: Key, list: &[Element]) -> Op {
    Op::Read { key, list: list.to_vec(), statement, locked: false }
}

fn locked(key: Key, list: &[Element]) -> Op {
    Op::Read { key, list: list.to_vec(), statement: 0, locked: true }
}

fn append(key: Key, element: Element) -> Op {
    Op::Append { key, element }
}

/// Transactions of a thread each, committed.
fn history(transactions: &[&[Op]], last: &[(Key, &[Element])]) -> History {
    let each = transactions.iter().enumerate();
    let transactions = each
        .map(|(thread, ops)| Transaction { thread, ops: ops.to_vec(), committed: true, ..Transaction::default() })
        .collect();
    History { transactions, last: last.iter().map(|(key, list)| (*key, list.to_vec())).collect() }
}

fn rolled_back(mut history: History, number: usize) -> History {
    history.transactions[number].committed = false;
    history
}

fn in_one_thread(mut history: History) -> History {
    history.transactions.iter_mut().for_each(|transaction| transaction.thread = 0);
    history
}

/// The anomalies, each once.
fn anomalies(history: &History, setting: Setting) -> Vec<Anomaly> {
    let mut found: Vec<Anomaly> = check(history, setting).into_iter().map(|finding| finding.anomaly).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Those that the setting forbids.
fn forbidden(history: &History, setting: Setting) -> Vec<Anomaly> {
    anomalies(history, setting).into_iter().filter(|anomaly| anomaly.is_forbidden(setting)).collect()
}

/// The second begins when the first was acknowledged, in another thread: each level with views shows it.
#[test]
fn what_was_acknowledged_before_is_seen() {
    let mut stale = history(&[&[append(1, 10)], &[read(1, &[])]], &[(1, &[10])]);
    assert_eq!(anomalies(&stale, Setting::Serializable), []);
    let moments = [(1, 2), (3, 4)];
    for (transaction, (begun, ended)) in stale.transactions.iter_mut().zip(moments) {
        (transaction.begun, transaction.ended) = (begun, ended);
    }
    for setting in [Setting::ReadCommitted, Setting::RepeatableRead, Setting::Serializable] {
        assert_eq!(forbidden(&stale, setting), [Anomaly::View], "{setting:?}");
    }
    // If they are concurrent either order is right.
    stale.transactions[1].begun = 1;
    assert_eq!(anomalies(&stale, Setting::Serializable), []);
}

#[test]
fn a_serial_history_has_no_anomaly() {
    let serial = history(
        &[
            &[read(1, &[]), append(1, 10), read(1, &[10]), append(2, 20)],
            &[read(1, &[10]), append(1, 11), append(1, 12), Op::Undo(1), read(2, &[20]), read(1, &[10, 11])],
            &[read(1, &[10, 11]), read(2, &[20]), append(2, 21)],
        ],
        &[(1, &[10, 11]), (2, &[20, 21])],
    );
    for setting in Setting::ALL {
        assert_eq!(check(&serial, setting), []);
        assert_eq!(check(&in_one_thread(serial.clone()), setting), []);
    }
}

#[test]
fn g0_is_found() {
    let dirty =
        history(&[&[append(1, 10), append(2, 20)], &[append(1, 11), append(2, 21)]], &[(1, &[10, 11]), (2, &[21, 20])]);
    assert_eq!(forbidden(&dirty, Setting::ReadUncommitted), [Anomaly::G0]);
}

#[test]
fn g1a_is_found_also_of_appends_that_were_taken_back() {
    let aborted = rolled_back(history(&[&[append(1, 10)], &[read(1, &[10])]], &[(1, &[])]), 0);
    assert_eq!(forbidden(&aborted, Setting::ReadCommitted), [Anomaly::G1a]);
    assert_eq!(forbidden(&aborted, Setting::ReadUncommitted), []);
    let undone = history(&[&[append(1, 10), Op::Undo(1), append(1, 11)], &[read(1, &[10])]], &[(1, &[11])]);
    assert_eq!(forbidden(&undone, Setting::ReadCommitted), [Anomaly::G1a]);
}

#[test]
fn g1b_is_found() {
    let intermediate = history(&[&[append(1, 10), append(1, 11)], &[read(1, &[10])]], &[(1, &[10, 11])]);
    assert!(forbidden(&intermediate, Setting::ReadCommitted).contains(&Anomaly::G1b));
    assert_eq!(forbidden(&intermediate, Setting::ReadUncommitted), []);
}

#[test]
fn g1c_is_found() {
    let circular =
        history(&[&[append(1, 10), read(2, &[20])], &[append(2, 20), read(1, &[10])]], &[(1, &[10]), (2, &[20])]);
    assert!(forbidden(&circular, Setting::ReadCommitted).contains(&Anomaly::G1c));
    assert_eq!(forbidden(&circular, Setting::ReadUncommitted), []);
}

#[test]
fn a_lost_update_is_found() {
    let lost = history(&[&[read(1, &[]), append(1, 10)], &[read(1, &[]), append(1, 11)]], &[(1, &[10, 11])]);
    assert_eq!(anomalies(&lost, Setting::RepeatableRead), [Anomaly::P4, Anomaly::GSingle]);
    assert_eq!(forbidden(&lost, Setting::RepeatableRead), []);
    assert_eq!(forbidden(&lost, Setting::FirstCommitterWins), [Anomaly::P4, Anomaly::GSingle]);
    // Written over as a whole, it is missing.
    let gone = history(&[&[read(1, &[]), append(1, 10)], &[read(1, &[]), append(1, 11)]], &[(1, &[11])]);
    assert_eq!(forbidden(&gone, Setting::ReadUncommitted), [Anomaly::Atomicity]);
}

/// A view that sees a part of what had committed.
#[test]
fn read_skew_is_found() {
    let skewed = history(
        &[&[append(1, 10), append(2, 20)], &[read_in(1, 1, &[]), read_in(2, 2, &[20])]],
        &[(1, &[10]), (2, &[20])],
    );
    assert_eq!(forbidden(&skewed, Setting::ReadCommitted), []);
    assert_eq!(forbidden(&skewed, Setting::RepeatableRead), [Anomaly::View]);
    assert_eq!(forbidden(&skewed, Setting::FirstCommitterWins), [Anomaly::GSingle, Anomaly::View]);
    assert_eq!(forbidden(&skewed, Setting::Serializable), [Anomaly::GSingle, Anomaly::View]);
    let mut one_statement = skewed.clone();
    one_statement.transactions[1].ops = vec![read(1, &[]), read(2, &[20])];
    assert_eq!(forbidden(&one_statement, Setting::ReadCommitted), [Anomaly::View]);
    // An observed transaction vanishes: the later statement sees less than the earlier one.
    let mut vanishes = skewed.clone();
    vanishes.transactions[1].ops = vec![read_in(1, 2, &[20]), read_in(2, 1, &[])];
    assert_eq!(forbidden(&vanishes, Setting::ReadCommitted), [Anomaly::View]);
}

#[test]
fn a_fuzzy_read_is_found() {
    let fuzzy = history(&[&[append(1, 10)], &[read_in(1, 1, &[]), read_in(2, 1, &[10])]], &[(1, &[10])]);
    assert_eq!(forbidden(&fuzzy, Setting::ReadCommitted), []);
    assert!(forbidden(&fuzzy, Setting::RepeatableRead).contains(&Anomaly::View));
    assert!(forbidden(&fuzzy, Setting::FirstCommitterWins).contains(&Anomaly::Fuzzy));
    // The newest version, locked, may differ from the snapshot's.
    let newest = history(&[&[append(1, 10)], &[read(1, &[]), locked(1, &[10])]], &[(1, &[10])]);
    assert_eq!(forbidden(&newest, Setting::RepeatableRead), []);
    assert!(forbidden(&newest, Setting::FirstCommitterWins).contains(&Anomaly::Fuzzy));
}

#[test]
fn write_skew_is_found() {
    let skew = history(&[&[read(2, &[]), append(1, 10)], &[read(1, &[]), append(2, 20)]], &[(1, &[10]), (2, &[20])]);
    assert_eq!(anomalies(&skew, Setting::FirstCommitterWins), [Anomaly::G2]);
    assert_eq!(forbidden(&skew, Setting::FirstCommitterWins), []);
    assert_eq!(forbidden(&skew, Setting::Serializable), [Anomaly::G2, Anomaly::View]);
}

/// Two readers see two transactions in different orders: no views of one database do that.
#[test]
fn a_long_fork_is_found() {
    let fork = history(
        &[&[append(1, 10)], &[append(2, 20)], &[read(1, &[10]), read(2, &[])], &[read(1, &[]), read(2, &[20])]],
        &[(1, &[10]), (2, &[20])],
    );
    assert_eq!(forbidden(&fork, Setting::RepeatableRead), [Anomaly::View]);
    assert_eq!(forbidden(&fork, Setting::FirstCommitterWins), [Anomaly::View]);
}

/// A transaction does not see what its own thread has committed before.
#[test]
fn a_stale_view_is_found() {
    let stale = in_one_thread(history(&[&[append(1, 10)], &[read(1, &[])]], &[(1, &[10])]));
    for setting in [Setting::ReadCommitted, Setting::RepeatableRead, Setting::Serializable] {
        assert_eq!(forbidden(&stale, setting), [Anomaly::View]);
    }
}

#[test]
fn own_appends_have_to_be_seen() {
    for list in [&[][..], &[10, 9], &[10, 10]] {
        let blind = history(&[&[append(1, 10), read(1, list)], &[append(1, 9)]], &[(1, &[9, 10])]);
        assert!(forbidden(&blind, Setting::ReadUncommitted).contains(&Anomaly::Internal), "{list:?}");
    }
}

#[test]
fn what_is_left_is_what_committed() {
    let part = rolled_back(history(&[&[append(1, 10), append(2, 20)]], &[(1, &[10])]), 0);
    assert_eq!(forbidden(&part, Setting::ReadUncommitted), [Anomaly::Atomicity]);
    let twice = history(&[&[append(1, 10)]], &[(1, &[10, 10])]);
    assert!(forbidden(&twice, Setting::ReadUncommitted).contains(&Anomaly::Atomicity));
    let unknown = history(&[&[read(1, &[5])]], &[(1, &[])]);
    assert_eq!(forbidden(&unknown, Setting::ReadUncommitted), [Anomaly::Order]);
    let other_order = history(&[&[append(1, 10)], &[append(1, 11)], &[read(1, &[11])]], &[(1, &[10, 11])]);
    assert_eq!(forbidden(&other_order, Setting::ReadUncommitted), [Anomaly::Order]);
}
