//! The page of all experiments: a line for each, every claim, links to the reports.

use super::{Overview, Part, State};
use crate::experiment::outcome::title_of;
use crate::experiment::report::{Tally, claims_table};
use highwater_bench::{Error, Result};
use highwater_report::numbers::thousands;
use highwater_report::{Markup, Page, Table, Tile, Tone, Width, card, folded, mark, pairs};
use maud::html;
use std::collections::BTreeSet;

/// The page as text.
///
/// # Errors
/// None in practice: every key of the JSON is text.
pub(super) fn html(overview: &Overview) -> Result<String> {
    let json = serde_json::to_string(overview).map_err(|e| Error::Usage(format!("as JSON: {e}")))?;
    let claims = overview.experiments.iter().filter_map(claims);
    let page = Page {
        title: "All experiments: Highwater",
        brand: "Highwater laboratory",
        heading: "All experiments",
        lead: &lead(overview),
        tiles: tiles(overview),
        groups: vec![[experiments(overview)].into_iter().chain(claims).chain([config(overview)]).collect()],
        footer: "Each claim is a statement of a source document. It is computed from the measurements of the report \
                 that its heading links to.",
        json: &json,
    };
    Ok(page.html())
}

/// Subjects that were measured, in order.
fn subjects(overview: &Overview) -> Vec<&str> {
    let mut names = Vec::new();
    for name in overview.outcomes().flat_map(|outcome| outcome.subjects()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn builds(overview: &Overview) -> Vec<&str> {
    let builds = overview.outcomes().filter_map(|outcome| outcome.config.get("builds"));
    builds.flat_map(|builds| builds.split(',')).collect::<BTreeSet<_>>().into_iter().collect()
}

fn lead(overview: &Overview) -> String {
    let names: Vec<&str> = subjects(overview).into_iter().map(title_of).collect();
    format!(
        "What source documents say about how storage engines write to flash, measured again on this machine. Scale {}; \
         {}; build {}; {} processors.",
        overview.scale,
        names.join(", "),
        builds(overview).join(", "),
        overview.config.get("processors").map_or("?", String::as_str)
    )
}

/// The number of experiments with results, and for each subject the number of claims that hold.
fn tiles(overview: &Overview) -> Vec<Tile> {
    let finished = overview.outcomes().count();
    let value = format!("{finished} of {}", overview.experiments.len());
    let tone = if overview.failed().is_empty() { Tone::Plain } else { Tone::Bad };
    let experiments = Tile::new("Experiments", value, "").note("finished").tone(tone);
    let of_subject = |subject: &str| {
        let claims = overview.outcomes().flat_map(|outcome| &outcome.claims);
        Tally::of(claims.filter(|claim| claim.subject == subject)).tile(title_of(subject))
    };
    [experiments].into_iter().chain(subjects(overview).into_iter().map(of_subject)).collect()
}

/// A line an experiment: what it is, where it ran, how many claims hold.
fn experiments(overview: &Overview) -> Markup {
    let subjects = subjects(overview);
    let titles: Vec<&str> = subjects.iter().map(|subject| title_of(subject)).collect();
    let head = [&["Experiment", "Source", "Device"][..], &titles, &["Seconds"]].concat();
    let row = |part: &Part| {
        let device = part.outcome.as_ref().and_then(|outcome| outcome.config.get("device"));
        let first = [
            html! { (name(part)) span.detail { (part.about) } },
            html! { (part.source) },
            html! { (device.map_or("", String::as_str)) },
        ];
        let tallies = subjects.iter().map(|subject| tally(part, subject));
        first.into_iter().chain(tallies).chain([html! { (thousands(part.seconds.round() as u64)) }]).collect()
    };
    Table::new("Experiments", head.len() - 1, &head).with(overview.experiments.iter().map(row)).card(Width::Full)
}

/// The name, with a link to the report, or with the reason for a missing report.
fn name(part: &Part) -> Markup {
    match part.state {
        State::Finished => html! { a href=(format!("{}/report.html", part.experiment)) { (part.experiment) } },
        State::Failed => html! { (part.experiment) " " (mark(Tone::Bad, "failed")) span.detail { (part.reason) } },
        State::LeftOut => html! { (part.experiment) " " (mark(Tone::Plain, "left out")) span.detail { (part.reason) } },
    }
}

fn tally(part: &Part, subject: &str) -> Markup {
    let claims = part.outcome.iter().flat_map(|outcome| &outcome.claims).filter(|claim| claim.subject == subject);
    let tally = Tally::of(claims);
    html! { @if tally.all() > 0 { (mark(tally.tone(), &tally.text())) span.detail { (tally.note()) } } }
}

/// The claims of an experiment.
fn claims(part: &Part) -> Option<Markup> {
    let table = claims_table(part.outcome.as_ref()?)?;
    let link = html! { p.caption { (part.about) ". " (name(part)) } };
    Some(card(&part.experiment, Width::Full, html! { (link) (table) }))
}

fn config(overview: &Overview) -> Markup {
    let builds = builds(overview).join(", ");
    let chosen = overview.config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    folded("Configuration", false, pairs(chosen.chain([("builds", builds.as_str())])))
}
