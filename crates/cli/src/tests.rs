//! The command line as users type it.

use super::CommandLine;
use clap::{CommandFactory, Parser};

fn refused(line: &str) -> String {
    let error = CommandLine::try_parse_from(line.split_whitespace()).expect_err(line);
    assert_eq!(error.exit_code(), 2, "{line}");
    error.to_string()
}

#[test]
fn the_definition_is_sound() {
    CommandLine::command().debug_assert();
}

#[test]
fn every_engine_option_is_an_argument_of_bench() {
    let mut command = CommandLine::command();
    let bench = command.find_subcommand_mut("bench").expect("bench");
    let tpcc = bench.find_subcommand("tpcc").expect("tpcc");
    for knob in highwater::config::KNOBS.iter().filter(|k| k.name != "create_if_missing") {
        let long = knob.name.replace('_', "-");
        assert!(tpcc.get_arguments().any(|a| a.get_long() == Some(long.as_str())), "--{long}");
    }
}

#[test]
fn promised_command_lines_parse() {
    for line in [
        "highwater bench tpcc --warehouses 2 --threads 4 --seconds 20 --dir D --json -",
        "highwater bench sysbench oltp_write_only --tables 4 --table-size 100000 --rand-type pareto --events 1000 --dir D",
        "highwater bench sysbench --dir D --buffer-pool-size 128M --flush-method O_DSYNC --doublewrite off",
        "highwater bench ycsb F --records 1M --dir D --report r.html",
        "highwater bench user-table --bytes 500M --dir D --flush_log_at_trx_commit 2",
        "highwater import D t f.csv --primary-key a,b --index i=a --no-header --delimiter tab",
        "highwater export D t - --null NULL",
        "highwater bench tpcc --device samsung-pm953-960gb --capacity 2G --clock virtual --placement redo=1,doublewrite=2",
        "highwater torture crash --runs 30 --dir D --seed 7",
        "highwater lab list",
        "highwater lab run flush-neighbors --subject highwater,mysql --device local --scale quick --out D --resume --strict",
        "highwater lab run stall --out D --repetitions 2 --seed 7 --work-dir W --json -",
    ] {
        if let Err(error) = CommandLine::try_parse_from(line.split_whitespace()) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn wrong_use_says_what_is_wrong() {
    for (line, reason) in [
        ("highwater", "Usage"),
        ("highwater bench tpcc", "--dir"),
        ("highwater bench tpcc --dir D --device simple-2gb", "cannot be used with"),
        ("highwater bench tpcc --dir D --capacity 4G", "cannot be used with"),
        ("highwater bench tpcc --device simple-2gb --clock lunar", "virtual"),
        ("highwater bench tpcc --dir D --warehouses 0", "warehouses"),
        ("highwater bench tpcc --dir D --seconds -1", "-1"),
        ("highwater bench tpcc --dir D --warehouse-count 3", "--warehouse-count"),
        ("highwater bench sysbench read_mostly --dir D", "read_only"),
        ("highwater bench sysbench --dir D --rand-type flat", "pareto"),
        ("highwater bench user-table --dir D --bytes 5X", "5X"),
        ("highwater import D t f.csv --delimiter ab", "one character"),
        ("highwater lab run stall", "--out"),
        ("highwater lab run stall --out D --repetitions 0", "repetitions"),
    ] {
        let found = refused(line);
        assert!(found.contains(reason), "{line}: {found}");
    }
}
