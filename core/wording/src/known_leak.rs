//! What is known of a library's leak, around what the finding itself says.

use super::{Presentation, Prose, prose};
use gpumem_analyzer::Finding;
use gpumem_analyzer::known_leaks::{CatalogueEntry, KnownCure, KnownLeak, LeakPattern, Versions};

impl Presentation {
    /// A library's leak, if it is known: its title and cure first, then what happens where.
    pub(super) fn known(mut self, finding: &Finding) -> Self {
        let Some(known) = &finding.known_leak else {
            return self;
        };
        let entry = known.entry;
        let version = known.version.as_ref();
        let version = version.map_or_else(String::new, |it| format!("with {} {it}", entry.library));
        let title: Prose = entry.title.into();
        let outlook = [&self.title, &self.outlook, &version.into()];
        self.outlook = Prose::joined(outlook, "; ");
        self.row = prose![entry.title, ": ", self.row];
        self.line.insert(0, title.clone());
        self.title = title;
        self.tag = Some(format!("known leak · {}", entry.library));
        self.link = Some(entry.link);
        self.known = vec![
            ("affects", affects(known).into()),
            ("cure proven", proof(entry).into()),
        ];
        let cause = Prose::of_ticked(entry.cause);
        match (&mut self.remedy, entry.cure) {
            (Some(remedy), KnownCure::Call(_)) => remedy.reason = Some(cause),
            (_, KnownCure::Change(change)) => {
                self.advice = vec![prose![Prose::of_ticked(change), ": ", cause]];
            }
            _ => self.advice.push(cause),
        }
        self
    }
}

/// `transformers 4.34 and later; 5.23.0 here`.
fn affects(known: &KnownLeak) -> String {
    let CatalogueEntry {
        library, versions, ..
    } = known.entry;
    let range = match *versions {
        Versions {
            since: "",
            healed: None,
        } => format!("{library}; no version without it is known"),
        Versions {
            since,
            healed: None,
        } => format!("{library} {since} and later"),
        Versions {
            since: "",
            healed: Some(healed),
        } => format!("{library} before {healed}"),
        Versions {
            since,
            healed: Some(healed),
        } => format!("{library} {since} to before {healed}"),
    };
    match &known.version {
        Some(version) => format!("{range}; {version} here"),
        None => range,
    }
}

fn proof(entry: &CatalogueEntry) -> &'static str {
    match entry.pattern {
        LeakPattern::Outside { .. } => "no: it needs a GPU; from the library's documentation",
        _ => "on the real library, CPU: leaks, matched, cured, the healthy twin is quiet",
    }
}
