//! Options under InnoDB's names.

use crate::config::{FlushLog, OPTION_TABLE, Options};

fn set(options: &[(&str, &str)]) -> Options {
    let mut all = Options::default();
    options.iter().for_each(|(name, value)| all.set(name, value).unwrap());
    all
}

#[test]
fn a_configuration_of_innodb_is_understood() {
    let theirs = set(&[
        ("innodb_buffer_pool_size", "64M"),
        ("--innodb-redo-log-capacity", "32M"),
        ("innodb-flush-log-at-trx-commit", "2"),
        ("innodb_doublewrite", "OFF"),
        ("innodb_flush_method", "O_DSYNC"),
        ("innodb_max_dirty_pages_pct", "62.5"),
        ("innodb_old_blocks_time", "250"),
        ("innodb_lock_wait_timeout", "50"),
        ("innodb_log_group_home_dir", "/srv/redo"),
    ]);
    let ours = set(&[
        ("buffer_pool_size", "64M"),
        ("log_file_size", "32M"),
        ("doublewrite", "off"),
        ("flush_method", "O_DSYNC"),
        ("max_dirty_pages_pct", "62.5"),
        ("old_blocks_time_ms", "250"),
        ("lock_wait_timeout_ms", "50000"),
        ("log_dir", "/srv/redo"),
    ]);
    assert_eq!(theirs, Options { flush_log_at_trx_commit: FlushLog::Write, ..ours });
}

#[test]
fn each_option_has_its_name_behind_the_prefix() {
    for option in OPTION_TABLE.iter().filter(|option| !option.default.is_empty()) {
        set(&[(&format!("innodb_{}", option.name), option.default)]);
    }
    let mut names: Vec<&str> = OPTION_TABLE.iter().map(|option| option.name).collect();
    names.extend(OPTION_TABLE.iter().flat_map(|option| option.innodb).map(|other| other.name));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name is of two options");
}

#[test]
fn a_refusal_names_the_option() {
    let refused = |name, value| Options::default().set(name, value).unwrap_err().to_string();
    for value in ["soon", "99999999999999999999", "18446744073709552"] {
        let text = refused("innodb_lock_wait_timeout", value);
        assert!(text.starts_with("option lock-wait-timeout-ms: "), "{value}: {text}");
    }
    assert!(refused("innodb_buffer_pool_size", "12Q").starts_with("option buffer-pool-size: "));
    assert_eq!(refused("innodb_no_such_thing", "1"), "option innodb-no-such-thing: no such option");
}
