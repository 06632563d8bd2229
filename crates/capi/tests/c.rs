//! Programs in C, compiled against an installed library and run.
//!
//! Rules
//! 1. They are compiled as a user's are: by pkg-config, with warnings that are errors.
//! 2. Each gets a folder of its own for its databases.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command; what it prints is part of the failure.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [&output.stdout[..], &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{}{}", output.status, said[0], said[1]);
    said[0].clone()
}

/// The prefix where the library of this build is installed.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            let prefix = tempfile::tempdir().unwrap();
            install("--prefix", prefix.path());
            prefix
        })
        .path()
}

/// Installs the library of this build, to `--prefix` or `--folder`.
fn install(option: &str, folder: &Path) {
    let built = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let mut install = Command::new(here().join("../../scripts/install-capi"));
    run(install.arg(option).arg(folder).arg("--built").arg(built));
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    pkg_config_of(prefix(), arguments)
}

fn pkg_config_of(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("highwater").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    run(&mut command).split_whitespace().map(String::from).collect()
}

/// Compiles a program of this folder.
fn compiled(compiler: &str, standard: &str, source: &str, folder: &Path, libraries: &[String]) -> PathBuf {
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.arg(standard).args(STRICT).args(pkg_config(&["--cflags"]));
    command.arg(here().join("tests").join(source)).arg("-o").arg(&program).args(libraries).arg("-lpthread");
    run(&mut command);
    program
}

/// Compiles a program and runs it in a folder of its own; what it prints.
fn printed(source: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled("cc", "-std=c11", source, folder.path(), &pkg_config(&["--libs"]));
    run(Command::new(program).current_dir(folder.path()).env("LD_LIBRARY_PATH", prefix().join("lib")))
}

#[test]
fn the_first_example_runs_and_is_that_of_the_readme() {
    assert_eq!(printed("first.c"), "1 Ada Lovelace\n");
    let readme = include_str!("../README.md");
    let example = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(example, Some(include_str!("first.c")));
}

#[test]
fn values_of_all_types_come_back() {
    printed("types.c");
}

#[test]
fn transactions_lock_wait_and_roll_back() {
    printed("transactions.c");
}

#[test]
fn cursors_go_both_ways() {
    printed("cursors.c");
}

#[test]
fn wrong_calls_are_refused() {
    printed("misuse.c");
}

#[test]
fn databases_are_backed_up_checked_and_followed() {
    printed("upkeep.c");
}

#[test]
fn the_static_library_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut libraries = vec![prefix().join("lib/libhighwater.a").display().to_string()];
    let private = pkg_config(&["--static", "--libs-only-l"]).into_iter().filter(|library| library != "-lhighwater");
    libraries.extend(private);
    let program = compiled("cc", "-std=c11", "first.c", folder.path(), &libraries);
    assert_eq!(run(Command::new(program).current_dir(folder.path())), "1 Ada Lovelace\n");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled("c++", "-std=c++11", "version.cc", folder.path(), &pkg_config(&["--libs"]));
    let mut command = Command::new(program);
    let version = run(command.env("LD_LIBRARY_PATH", prefix().join("lib")));
    assert_eq!(version.trim_end(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_files_of_an_archive_are_found_where_they_are_put() {
    let folder = tempfile::tempdir().unwrap();
    let (unpacked, moved) = (folder.path().join("archive"), folder.path().join("moved"));
    install("--folder", &unpacked);
    std::fs::rename(unpacked, &moved).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(STRICT).arg(here().join("tests/first.c")).args(["-o", "program"]);
    compiler.args(pkg_config_of(&moved, &["--cflags", "--libs"])).current_dir(folder.path());
    run(&mut compiler);
    let mut program = Command::new(folder.path().join("program"));
    program.current_dir(folder.path()).env("LD_LIBRARY_PATH", moved.join("lib"));
    assert_eq!(run(&mut program), "1 Ada Lovelace\n");
}

#[test]
fn a_folder_and_a_prefix_are_refused_together() {
    let mut install = Command::new(here().join("../../scripts/install-capi"));
    let output = install.args(["--folder", "a", "--prefix", "/b"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("neither --prefix nor --destdir"));
}

#[test]
fn programs_name_the_library_by_its_soname() {
    let library = prefix().join("lib/libhighwater.so.0");
    let dynamic = run(Command::new("readelf").arg("--dynamic").arg(&library));
    assert!(dynamic.contains("Library soname: [libhighwater.so.0]"), "{dynamic}");
    let exported = run(Command::new("nm").args(["--dynamic", "--defined-only", "--format=just-symbols"]).arg(&library));
    let others: Vec<_> = exported.lines().filter(|name| !name.starts_with("highwater_")).collect();
    assert!(others.is_empty() && exported.lines().count() > 80, "{others:?}");
}
