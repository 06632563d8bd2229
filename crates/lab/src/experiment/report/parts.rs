//! The parts of the page that are text: tiles, claims, tables, notes.

use super::chart::number;
use crate::experiment::outcome::title_of;
use crate::experiment::{Outcome, Row, Table};
use highwater_bench::report::escape;
use std::collections::BTreeSet;

/// What was done, on what.
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
    let text = format!(
        "{}. Source: {}. Scale {}, {} on {}, each setting {times}.",
        outcome.about.trim_end_matches('.'),
        outcome.source,
        outcome.scale,
        subjects.join(", "),
        if chosen("device") == "local" {
            "this machine's disk".into()
        } else {
            format!("the emulated {}", chosen("device"))
        },
    );
    escape(&text)
}

/// For each subject, how many claims hold.
pub(super) fn tiles(outcome: &Outcome) -> String {
    let tile = |subject: &str| {
        let of = || outcome.claims.iter().filter(|claim| claim.subject == subject);
        let (all, holding) = (of().count(), of().filter(|claim| claim.holds).count());
        let class = if holding == all { "good" } else { "bad" };
        format!(
            "<div class=\"tile {class}\"><div class=\"name\">{}</div><div class=\"value\">{holding} of {all}</div><div class=\"note\">claims hold</div></div>\n",
            escape(title_of(subject))
        )
    };
    outcome.subjects().into_iter().map(tile).collect()
}

fn card(title: &str, body: &str) -> String {
    format!("<section class=\"card wide\"><h2>{}</h2>{body}</section>\n", escape(title))
}

/// A line a claim, a column a subject.
pub(super) fn claims(outcome: &Outcome) -> String {
    let subjects = outcome.subjects();
    let mut texts: Vec<&str> = Vec::new();
    for claim in &outcome.claims {
        if !texts.contains(&claim.text.as_str()) {
            texts.push(&claim.text);
        }
    }
    if texts.is_empty() {
        return String::new();
    }
    let verdict = |text: &str, subject: &str| -> String {
        let found = outcome.claims.iter().find(|claim| claim.text == text && claim.subject == subject);
        found.map_or_else(String::new, |claim| {
            let (class, word) = if claim.holds { ("mark", "holds") } else { ("mark bad", "does not hold") };
            format!("<span class=\"{class}\">{word}</span> <span class=\"detail\">{}</span>", escape(&claim.detail))
        })
    };
    let head: String = subjects.iter().map(|subject| format!("<th>{}</th>", escape(title_of(subject)))).collect();
    let rows: String = texts
        .iter()
        .map(|text| {
            let cells: String = subjects.iter().map(|subject| format!("<td>{}</td>", verdict(text, subject))).collect();
            format!("<tr><td class=\"text\">{}</td>{cells}</tr>\n", escape(text))
        })
        .collect();
    let table =
        format!("<table><thead><tr><th>The document says</th>{head}</tr></thead><tbody>\n{rows}</tbody></table>");
    card("Claims", &format!("<div class=\"scroll\">{table}</div>"))
}

/// A table of the experiment's.
pub(super) fn table(table: &Table) -> String {
    let class = |n: usize| if n < table.texts { "" } else { " class=\"n\"" };
    let cells = |tag: &str, cells: &[String]| -> String {
        cells.iter().enumerate().map(|(n, cell)| format!("<{tag}{}>{}</{tag}>", class(n), escape(cell))).collect()
    };
    let mut before = None;
    let mut rows = String::new();
    for row in &table.rows {
        // A line where the first column changes, so that subjects can be told apart.
        let first = before.is_some_and(|name| Some(name) != row.first());
        before = row.first();
        rows += &format!("<tr{}>{}</tr>\n", if first { " class=\"first\"" } else { "" }, cells("td", row));
    }
    let caption = match table.caption.as_str() {
        "" => String::new(),
        text => format!("<p class=\"caption\">{}</p>", escape(text)),
    };
    let head = cells("th", &table.head);
    card(
        &table.title,
        &format!(
            "{caption}<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>"
        ),
    )
}

/// Ratios kept and what differs.
pub(super) fn notes(outcome: &Outcome) -> String {
    let items: String = outcome.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    card("What was kept of the paper's setup, and what differs", &format!("<ul class=\"notes\">{items}</ul>"))
}

/// Every row with every value, folded.
pub(super) fn rows(outcome: &Outcome) -> String {
    let names = |pick: fn(&Row) -> Vec<&String>| -> Vec<&String> {
        outcome.rows.iter().flat_map(pick).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let settings = names(|row| row.setting.keys().collect());
    let values = names(|row| row.measured.keys().collect());
    let mut head = "<th>subject</th>".to_string();
    settings.iter().for_each(|name| head += &format!("<th>{}</th>", escape(&name.replace('_', " "))));
    values.iter().for_each(|name| head += &format!("<th class=\"n\">{}</th>", escape(&name.replace('_', " "))));
    let row = |row: &Row| -> String {
        let mut cells = format!("<td>{}</td>", escape(title_of(&row.subject)));
        settings.iter().for_each(|name| cells += &format!("<td>{}</td>", escape(row.get(name))));
        values.iter().for_each(|name| cells += &format!("<td class=\"n\">{}</td>", value(row, name)));
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = outcome.rows.iter().map(row).collect();
    let table = format!("<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>");
    folded("All measured values (median, least to greatest)", &format!("<div class=\"scroll\">{table}</div>"))
}

fn value(row: &Row, name: &str) -> String {
    let Some(median) = row.measured.get(name) else { return String::new() };
    let spread = match row.spread.get(name) {
        Some([least, greatest]) if row.repetitions > 1 => {
            format!(" <span class=\"spread\">{} to {}</span>", number(*least), number(*greatest))
        }
        _ => String::new(),
    };
    format!("{}{spread}", number(*median))
}

fn folded(title: &str, body: &str) -> String {
    format!(
        "<section class=\"card wide\"><details><summary><h2>{}</h2></summary>{body}</details></section>\n",
        escape(title)
    )
}

/// Everything that was chosen, folded.
pub(super) fn config(outcome: &Outcome) -> String {
    let pair = |name: &str, value: &str| {
        format!("<tr><td class=\"k\">{}</td><td class=\"v\">{}</td></tr>\n", escape(name), escape(value))
    };
    let mut pairs: String = outcome.config.iter().map(|(name, value)| pair(name, value)).collect();
    for row in &outcome.rows {
        let setting = row.setting.values().cloned().collect::<Vec<_>>().join(" ");
        row.info.iter().for_each(|(name, text)| pairs += &pair(&format!("{} {setting}: {name}", row.subject), text));
    }
    folded("Configuration", &format!("<div class=\"columns\"><table>{pairs}</table></div>"))
}
