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

/// The example lines of a command's help.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().filter(|line| line.starts_with("  highwater "));
    let of_shell = |line: &str| line.find(" | ").or_else(|| line.find(" > ")).unwrap_or(line.len());
    lines.map(|line| line[..of_shell(line)].trim().to_string()).collect()
}

/// Every command that help shows, with its whole name.
fn commands(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
    let below = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let below = below.flat_map(|one| commands(one, &format!("{name} {}", one.get_name())));
    std::iter::once((name.to_string(), command.clone())).chain(below).collect()
}

#[test]
fn every_help_has_an_example_of_its_command_that_parses() {
    let all = commands(&CommandLine::command(), "highwater");
    assert!(all.len() > 20, "{} commands", all.len());
    for (name, command) in all {
        let examples = examples(&command);
        // `inspect` takes its folder before what it shows.
        let own = |line: &String| name.split(' ').all(|word| line.split(' ').any(|given| given == word));
        assert!(examples.iter().any(own), "{name} --help has no example");
        for line in &examples {
            assert!(own(line), "{name} --help has an example of another command: {line}");
            let parsed = CommandLine::try_parse_from(words(line));
            assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.map(drop).unwrap_err());
        }
    }
}

/// The words of a command line; a word in single quotes may have blanks.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in line.split('\'').enumerate() {
        match at % 2 {
            1 => words.push(piece.to_string()),
            _ => words.extend(piece.split_whitespace().map(String::from)),
        }
    }
    words
}

#[test]
fn every_engine_option_is_an_argument_of_bench() {
    let mut command = CommandLine::command();
    let bench = command.find_subcommand_mut("bench").expect("bench");
    let tpcc = bench.find_subcommand("tpcc").expect("tpcc");
    for option in highwater::config::OPTION_TABLE.iter().filter(|k| k.name != "create_if_missing") {
        let long = option.name.replace('_', "-");
        assert!(tpcc.get_arguments().any(|a| a.get_long() == Some(long.as_str())), "--{long}");
    }
}

#[test]
fn promised_command_lines_parse() {
    for line in [
        "highwater bench tpcc --warehouses 2 --threads 4 --seconds 20 --dir D --json -",
        "highwater bench sysbench oltp_write_only --tables 4 --table-size 100000 --rand-type pareto --events 1000 \
         --dir D",
        "highwater bench sysbench --dir D --buffer-pool-size 128M --flush-method O_DSYNC --doublewrite off",
        "highwater bench sysbench --dir D --secondary-indexes 4 --create-indexes before --load-only \
         --change-buffering memory",
        "highwater bench ycsb F --records 1M --dir D --report r.html",
        "highwater bench user-table --bytes 500M --dir D --flush_log_at_trx_commit 2",
        "highwater bench user-table --bytes 500M --dir D --innodb-buffer-pool-size 64M --innodb_lock_wait_timeout 5",
        "highwater import D t f.csv --primary-key a,b --index i=a --no-header --delimiter tab",
        "highwater export D t - --null NULL",
        "highwater bench tpcc --device samsung-pm953-960gb --capacity 2G --clock virtual \
         --placement redo=1,doublewrite=2",
        "highwater torture crash --runs 30 --dir D --seed 7",
        "highwater torture power --cuts 3000 --seed 7 --change-buffering memory",
        "highwater bench tpcc --dir D --seconds 60 --backup-to B --backup-rate 32M",
        "highwater backup D B2 --base B1 --max-rate 64M --json -",
        "highwater restore B1 B2 B3 --to D --redo R --until 123456 --skip-check",
        "highwater restore B1 B2 --verify",
        "highwater lab list",
        "highwater lab run flush-neighbors --subject highwater,mysql --device local --scale quick --out D --resume \
         --strict",
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
        ("highwater bench sysbench --dir D --secondary-indexes 9", "0..=8"),
        ("highwater bench user-table --dir D --bytes 5X", "5X"),
        ("highwater import D t f.csv --delimiter ab", "one character"),
        ("highwater restore B", "--to"),
        ("highwater restore --to D", "BACKUP"),
        ("highwater restore B --to D --verify", "cannot be used with"),
        ("highwater bench tpcc --dir D --backup-rate 1M", "--backup-to"),
        ("highwater lab run stall", "--out"),
        ("highwater lab run stall --out D --repetitions 0", "repetitions"),
        ("highwater lab run peers --out D --clients 4,0", "clients"),
        ("highwater lab run peers --out D --highwater-option", "NAME=VALUE"),
    ] {
        let found = refused(line);
        assert!(found.contains(reason), "{line}: {found}");
    }
}
