//! TPC-C against the model store: load, run, conditions, and that every condition can fail.

use super::schema::*;
use super::*;
use crate::store::model::Model;
use crate::store::{RowChanges, money};
use crate::workload::{Silent, load_or_reuse};
use highwater::ValueRef;
use highwater::values;

fn config() -> Config {
    Config { warehouses: 1, ..Config::default() }
}

fn loaded() -> (Model, Tpcc) {
    let store = Model::default();
    let workload = Tpcc::new(config());
    load_or_reuse(&store, &workload, 2, &Silent).unwrap();
    (store, workload)
}

fn broken(store: &Model, workload: &Tpcc) -> Vec<String> {
    let conditions = Workload::<Model>::conditions(workload, store).unwrap();
    assert_eq!(conditions.len(), 12);
    conditions.into_iter().filter(|c| !c.holds).map(|c| c.condition).collect()
}

/// The model scans whole tables for every lookup by prefix, so runs on it are short.
#[test]
fn population_and_every_transaction_keep_the_conditions() {
    let (store, workload) = loaded();
    let rows = ["warehouse", "district", "customer", "history", "new_order", "orders", "item", "stock"]
        .map(|table| store.count(table));
    assert_eq!(rows, [1, 10, 30_000, 30_000, 9_000, 30_000, 100_000, 100_000]);
    assert!((290_000..310_000).contains(&store.count("order_line")));
    assert_eq!(broken(&store, &workload), Vec::<String>::new());

    let mut client = workload.terminal_client(&store, 3).unwrap();
    client.write(Kind::Delivery).unwrap();
    client.read(Kind::OrderStatus).unwrap();
    client.read(Kind::StockLevel).unwrap();
    (0..6).for_each(|_| assert!(client.write(Kind::Payment).unwrap()));
    let rolled_back = (0..400).filter(|_| !client.write(Kind::NewOrder).unwrap()).count();
    assert!((1..=12).contains(&rolled_back), "{rolled_back} of 400 rolled back");
    assert_eq!(store.count("orders"), 30_000 + 400 - rolled_back);
    assert_eq!(store.count("new_order"), 9_000 - 10 + 400 - rolled_back);
    assert_eq!(broken(&store, &workload), Vec::<String>::new());
}

#[test]
fn every_condition_can_fail() {
    let (store, workload) = loaded();
    let tables = Tables::open(&store).unwrap();
    let mut session = store.session().unwrap();
    let mut change = |table: usize, key: &[ValueRef<'_>], column: usize, value: ValueRef<'_>| -> Vec<String> {
        let mut txn = session.begin().unwrap();
        assert!(txn.modify(&table, key, |_, set| set.put(column, value)).unwrap());
        txn.finish().unwrap();
        broken(&store, &workload)
    };
    let expect = |found: Vec<String>, wanted: &[&str]| {
        for condition in wanted {
            assert!(found.iter().any(|c| c == &format!("3.3.2.{condition}")), "{condition} not in {found:?}");
        }
    };
    expect(change(tables.warehouse, &values![1], W_YTD, money(1)), &["1", "8"]);
    expect(change(tables.district, &values![1, 2], D_YTD, money(2)), &["1", "9"]);
    expect(change(tables.district, &values![1, 3], D_NEXT_O_ID, 4000.into()), &["2"]);
    expect(change(tables.orders, &values![1, 4, 2500], O_CARRIER_ID, 3.into()), &["5", "7"]);
    expect(change(tables.orders, &values![1, 5, 7], O_OL_CNT, 99.into()), &["4", "6"]);
    expect(change(tables.customer, &values![1, 6, 8], C_BALANCE, money(77)), &["10", "12"]);
    expect(change(tables.customer, &values![1, 6, 9], C_DELIVERY_CNT, 1.into()), &["11"]);
    let mut txn = session.begin().unwrap();
    assert!(txn.delete(&tables.new_order, &values![1, 9, 2500]).unwrap());
    txn.finish().unwrap();
    expect(broken(&store, &workload), &["3", "5", "11"]);
}

#[test]
fn what_failed_is_tried_again_as_it_was() {
    let (store, workload) = loaded();
    let mut client = workload.terminal_client(&store, 0).unwrap();
    let mut retried = 0;
    for _ in 0..40 {
        store.fail_next();
        let Err(error) = client.run() else { continue };
        assert!(error.is_retryable(), "{error}");
        let (kind, input) = client.again.clone().unwrap();
        store.fail_next();
        if client.run().is_err() {
            assert_eq!(client.again, Some((kind, input)));
        }
        // The model fails once.
        assert_eq!(client.run().unwrap().unwrap().kind, kind as usize);
        assert!(client.again.is_none());
        retried += 1;
    }
    assert!(retried > 20, "{retried}");
    assert_eq!(broken(&store, &workload), Vec::<String>::new());
}

#[test]
fn all_terminals_have_the_same_constants() {
    let (store, workload) = loaded();
    let constants = |number| workload.terminal_client(&store, number).unwrap().terminal.constants;
    assert_eq!(constants(0), constants(1));
}

#[test]
fn acknowledged_commits_are_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = loaded();
    let workload = Tpcc::new(Config { acknowledgements: Some(folder.path().into()), ..config() });
    workload.prepare_acknowledgements(&store, 2).unwrap();
    let mut client = workload.terminal_client(&store, 1).unwrap();
    let committed = (0..50).filter(|_| client.write(Kind::NewOrder).unwrap()).count();
    let found = verify(&store, folder.path(), 2).unwrap();
    assert_eq!((found.commits, found.problems.len()), (committed as u64, 0));
}
