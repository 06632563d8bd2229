//! The parts of the page that are text: lead, tiles, claims, tables, notes.

use super::Tally;
use crate::experiment::outcome::title_of;
use crate::experiment::{Claim, Outcome, Row, Verdict};
use highwater_report::numbers::short;
use highwater_report::{Markup, Table, Tile, Tone, Width, card, folded, mark, pairs};
use maud::html;
use std::collections::BTreeSet;

/// The lead: the experiment and its subjects.
pub(super) fn lead(outcome: &Outcome) -> String {
    let chosen = |name: &str| outcome.config.get(name).map_or("", String::as_str);
    let subjects: Vec<&str> = outcome.subjects().into_iter().map(title_of).collect();
    let times = |name: &str| if chosen(name) == "1" { "once".into() } else { format!("{} times", chosen(name)) };
    let servers = match outcome.config.get("repetitions_of_servers") {
        Some(of_servers) if of_servers != chosen("repetitions") => {
            format!(" (on servers {})", times("repetitions_of_servers"))
        }
        _ => String::new(),
    };
    let medians = if chosen("repetitions") == "1" { "" } else { ", medians" };
    let times = format!("{}{servers}{medians}", times("repetitions"));
    format!(
        "{}. Source: {}. Scale {}, {} on {}, each setting {times}.",
        outcome.about.trim_end_matches('.'),
        outcome.source,
        outcome.scale,
        subjects.join(", "),
        if chosen("device") == "local" {
            "this machine's disk".into()
        } else {
            format!("the emulated {}", chosen("device").replace('+', " and the emulated "))
        },
    )
}

/// For each subject, how many claims hold.
pub(super) fn tiles(outcome: &Outcome) -> Vec<Tile> {
    let tile = |subject: &str| {
        Tally::of(outcome.claims.iter().filter(|claim| claim.subject == subject)).tile(title_of(subject))
    };
    outcome.subjects().into_iter().map(tile).collect()
}

/// A line a claim, a column a subject.
pub fn claims_table(outcome: &Outcome) -> Option<Table<Markup>> {
    let subjects = outcome.subjects();
    let mut texts: Vec<&str> = Vec::new();
    for claim in &outcome.claims {
        if !texts.contains(&claim.text.as_str()) {
            texts.push(&claim.text);
        }
    }
    let row = |text: &&str| {
        let of = |subject: &&str| outcome.claims.iter().find(|claim| claim.text == *text && claim.subject == *subject);
        let verdicts = subjects.iter().map(|subject| of(subject).map_or(html! {}, verdict));
        [html! { span.text { (text) } }].into_iter().chain(verdicts).collect()
    };
    let head: Vec<&str> = ["The document says"].into_iter().chain(subjects.iter().map(|s| title_of(s))).collect();
    let table = Table::new("Claims", head.len(), &head).with(texts.iter().map(row));
    (!texts.is_empty()).then_some(table)
}

fn verdict(claim: &Claim) -> Markup {
    let tone = match claim.verdict {
        Verdict::Holds => Tone::Good,
        Verdict::Lost => Tone::Bad,
        Verdict::Undecided => Tone::Plain,
    };
    html! { (mark(tone, claim.verdict.text())) " " span.detail { (claim.detail) } }
}

/// Ratios kept and what differs.
pub(super) fn notes(outcome: &Outcome) -> Markup {
    let items = html! { ul.notes { @for note in &outcome.notes { li { (note) } } } };
    card("What was kept of the paper's setup, and what differs", Width::Full, items)
}

/// Every row with every value, folded.
pub(super) fn rows(outcome: &Outcome) -> Markup {
    let names = |pick: fn(&Row) -> Vec<&String>| -> Vec<&String> {
        outcome.rows.iter().flat_map(pick).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let settings = names(|row| row.setting.keys().collect());
    let values = names(|row| row.measured.keys().collect());
    let head: Vec<String> = settings.iter().chain(&values).map(|name| name.replace('_', " ")).collect();
    let head: Vec<&str> = ["subject"].into_iter().chain(head.iter().map(String::as_str)).collect();
    let row = |row: &Row| {
        let texts = [title_of(&row.subject)].into_iter().chain(settings.iter().map(|name| row.get(name)));
        texts.map(|text| html! { (text) }).chain(values.iter().map(|name| value(row, name))).collect()
    };
    let table = Table::new("", 1 + settings.len(), &head).with(outcome.rows.iter().map(row));
    folded("All measured values (median, least to greatest)", false, html! { (table) })
}

fn value(row: &Row, name: &str) -> Markup {
    let spread = row.spread.get(name).filter(|_| row.repetitions > 1);
    html! {
        @if let Some(median) = row.measured.get(name) {
            (short(*median))
            @if let Some([least, greatest]) = spread { " " span.spread { (short(*least)) " to " (short(*greatest)) } }
        }
    }
}

/// Everything that was chosen, folded.
pub(super) fn config(outcome: &Outcome) -> Markup {
    let mut values: Vec<(String, &str)> =
        outcome.config.iter().map(|(name, value)| (name.clone(), value.as_str())).collect();
    for row in &outcome.rows {
        let setting = row.setting.values().cloned().collect::<Vec<_>>().join(" ");
        let info = row.info.iter().map(|(name, text)| (format!("{} {setting}: {name}", row.subject), text.as_str()));
        values.extend(info);
    }
    folded("Configuration", false, pairs(values.iter().map(|(name, value)| (name.as_str(), *value))))
}
