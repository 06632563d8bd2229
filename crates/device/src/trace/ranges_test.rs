//! Tests of `ranges`.

use super::*;

fn range(name: &str, first_lba: u32, blocks: u32, first_block_in_file: u32) -> NamedRange {
    NamedRange { name: name.into(), first_lba, blocks, first_block_in_file }
}

#[test]
fn file_maps_are_read_and_damage_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.files.csv");
    std::fs::write(&path, "10,5,data/a,b.ibd,0\n20,1,c,7\n").unwrap();
    assert_eq!(read_files(&path).unwrap(), [range("data/a,b.ibd", 10, 5, 0), range("c", 20, 1, 7)]);
    assert_eq!(file_map_of(&folder.path().join("x.csv.zst")), Some(path.clone()));
    std::fs::write(&path, "10,5,a,0\nten,1,c,7\n").unwrap();
    assert!(read_files(&path).unwrap_err().to_string().contains("record 2"));
}

#[test]
fn the_doublewrite_buffer_follows_its_file() {
    let files = [range("data/ibdata1", 1000, 300, 0), range("data/ibdata1", 5000, 2000, 300), range("x", 9, 9, 0)];
    let found = doublewrite(&files);
    assert_eq!(found, [range("doublewrite", 1256, 44, 256), range("doublewrite", 5000, 468, 300)]);
    assert_eq!(found.iter().map(|r| r.blocks).sum::<u32>(), 512);
}

#[test]
fn rules_are_parsed_and_resolved() {
    let named = [range("journal", 100, 50, 0), range("data/t/a.ibd", 7, 1, 0), range("data/t/b.ibd", 9, 1, 0)];
    let resolve = |text: &str| text.parse::<StreamRule>().and_then(|rule| rule.resolve(&named));
    assert_eq!(resolve("1=journal").unwrap(), [named[0].clone()]);
    assert_eq!(resolve("2=data/*.ibd").unwrap().len(), 2);
    assert_eq!(resolve("3=10-19").unwrap()[0].blocks, 10);
    assert_eq!(resolve("3=10+5").unwrap()[0].blocks, 5);
    let error = resolve("1=jornal").unwrap_err().to_string();
    assert!(error.contains("1=jornal") && error.contains("there are: journal, data/t/a.ibd"), "{error}");
    for bad in ["journal", "x=journal", "1="] {
        assert!(bad.parse::<StreamRule>().is_err(), "{bad}");
    }
    assert!(resolve("1=19-10").is_err());
}

#[test]
fn patterns_match_as_in_a_shell() {
    for (pattern, name, fits) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "acb", false),
        ("*", "", true),
        ("*.ibd", "x.ibd.ibd", true),
        ("a", "ab", false),
        ("a*b*b", "ab", false),
        ("a*b*b", "abb", true),
        ("*ä*", "käse", true),
    ] {
        assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
    }
}

#[test]
fn rules_files_may_have_comments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules");
    std::fs::write(&path, "# hot\n1=journal # ring\n\n2 = data/ib_logfile*\n").unwrap();
    let rules = read_rules(&path).unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!((rules[1].stream, rules[1].what.as_str()), (2, "data/ib_logfile*"));
}

#[test]
fn a_ring_outside_all_files_is_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut text = String::new();
    for i in 0..9000u32 {
        text += &format!("{i},W,{},1\n", 50_000 + i % 2000);
        text += &format!("{i},W,{},4\n", 4 * (i % 3000));
    }
    std::fs::write(&path, text).unwrap();
    let trace = Trace::open(&path).unwrap();
    let files = [range("data", 0, 20_000, 0)];
    assert_eq!(find_journal(&trace, &files, 100_000).unwrap(), Some(range("journal", 50_000, 2000, 0)));
    assert_eq!(find_journal(&trace, &[range("all", 0, 60_000, 0)], 100_000).unwrap(), None);
}

#[test]
fn ranges_as_text() {
    let range: NamedRange = "journal=262144+2048".parse().unwrap();
    assert_eq!((range.name.as_str(), range.first_lba, range.blocks), ("journal", 262_144, 2048));
    assert_eq!("a=5-5".parse::<NamedRange>().unwrap().blocks, 1);
    for bad in ["", "journal", "=1+1", "a=", "a=9-1", "a=1+0", "a=x+1"] {
        assert!(bad.parse::<NamedRange>().is_err(), "{bad}");
    }
}

#[test]
fn rules_that_cannot_be_say_why() {
    let fails = |text: &str| text.parse::<StreamRule>().unwrap_err().to_string();
    assert!(fails("300=journal").contains("0 to 15"));
    assert!(fails("x=journal").contains("not a number"));
    for range in ["1=5-3", "1=0+0", "1=0+99999999999"] {
        assert!(fails(range).contains("no range: expected FIRST-LAST"), "{range}");
    }
    "1=5-year-plan".parse::<StreamRule>().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.txt");
    std::fs::write(&path, "# two\n1=journal\n\n300=journal\n").unwrap();
    let error = read_rules(&path).unwrap_err().to_string();
    assert!(error.contains("rules.txt: line 4: 300=journal"), "{error}");

    let named = |name: &str| NamedRange { name: name.into(), first_lba: 0, blocks: 1, first_block_in_file: 0 };
    let files: Vec<_> = (0..20).map(|i| named(&format!("a/{i}.ibd"))).chain([named("journal")]).collect();
    let error = "1=redo".parse::<StreamRule>().unwrap().resolve(&files).unwrap_err().to_string();
    assert!(error.contains("there are: journal, a/0.ibd"), "{error}");
}

/// Each `*` more once multiplied the time by the length of the name.
#[test]
fn a_pattern_of_many_parts_is_matched_at_once() {
    assert!(!matches(&("*a".repeat(40) + "*b"), &"a".repeat(4000)));
}

#[test]
fn a_stretch_beyond_the_last_block_number_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.files.csv");
    for line in ["4294967295,1,ibdata1,0", "0,4294967295,ibdata1,300"] {
        std::fs::write(&path, format!("{line}\n")).unwrap();
        let error = read_files(&path).unwrap_err().to_string();
        assert!(error.contains(line), "{error}");
    }
}

/// One write at the end of the largest device took 16 GiB of memory, whatever the device.
#[test]
fn the_journal_is_looked_for_on_the_device_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "0,W,4294967290,1\n").unwrap();
    assert_eq!(find_journal(&Trace::open(&path).unwrap(), &[], 1000).unwrap(), None);
}
