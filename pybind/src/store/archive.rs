//! What is kept: sessions that are over or run in other kernels, and baselines.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpumem_core::analyze::{Analysis, analyze};
use gpumem_core::history::{Ending, LastRun, Remains, StoredSession};
use gpumem_core::printable::printable;
use gpumem_core::recording::{Frame, Missing, Recording, Run, Status};
use gpumem_core::report;
use gpumem_core::source_text;
use gpumem_core::units::{Bytes, Nanos};

use super::file::{self, Changes, Facts, Fault, SessionFile, Stored, put_aside};
use super::folder::{self, Entry, notebook_hash};
use super::origin::Origin;
use super::remains;
use super::row::{Place, encoded};
use super::writer::{now_millis, now_nanos, now_seconds};
use crate::child;

/// The folder of baselines, in that of the sessions.
const BASELINES: &str = "baselines";
/// The facts of a session are read of so many of the newest, to find the last one of a notebook.
const N_SEARCHED: usize = 8;

/// What is kept in a folder, as seen by one process.
pub(crate) struct Archive {
    pub(crate) folder: PathBuf,
    pub(crate) origin: Origin,
    /// The session that this process writes: it is not read back.
    pub(crate) own: Option<String>,
    /// This process keeps its sessions there.
    pub(crate) is_written: bool,
}

/// Why a session or a baseline cannot be opened.
#[derive(Debug)]
pub(crate) enum ArchiveError {
    /// There is none of that name.
    Unknown(String),
    /// The disk or the file fails.
    Failed(String),
}

/// A session that was opened.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) recording: Recording,
    /// Where its child processes are kept.
    pub(crate) children: PathBuf,
    pub(crate) session: StoredSession,
}

impl Archive {
    /// The newest sessions, and how many more there are.
    pub(crate) fn sessions(&self, n_shown: usize) -> (Vec<StoredSession>, usize) {
        let entries = self.entries();
        let shown = entries.iter().take(n_shown);
        let sessions = shown.map(|entry| match self.open_entry(entry, judged) {
            Ok(opened) => opened.session,
            Err(fault) => unreadable(entry, &fault),
        });
        (sessions.collect(), entries.len().saturating_sub(n_shown))
    }

    /// The session of that id, of which the beginning is enough; or `last`: the last one of this
    /// notebook, else of all.
    pub(crate) fn open(&self, which: &str) -> Result<Opened, ArchiveError> {
        let entries = self.entries();
        let entry = if which == "last" {
            let notebook = notebook_hash(self.origin.notebook.as_deref());
            let of_notebook = entries.iter().find(|entry| entry.notebook == notebook);
            of_notebook.or(entries.first())
        } else {
            let which = which.to_ascii_lowercase();
            let named = |entry: &&Entry| !which.is_empty() && entry.id.starts_with(&which);
            entries.iter().find(named)
        };
        let Some(entry) = entry else {
            let words = if entries.is_empty() {
                self.none_kept()
            } else {
                let (which, place) = (printable(which), self.folder.display());
                format!("no session '{which}' in {place}: %gpumem sessions lists them")
            };
            return Err(ArchiveError::Unknown(words));
        };
        // Nobody asks here what was found in it.
        let opened = self.open_entry(entry, |_| Analysis::default());
        opened.map_err(|fault| {
            let words = fault.words();
            ArchiveError::Failed(format!("{}: {words}", entry.path.display()))
        })
    }

    /// That no session is kept, or none but this one.
    pub(crate) fn none_kept(&self) -> String {
        let own = self.own.as_deref().unwrap_or_default();
        let entries = folder::entries(&self.folder, now_millis());
        let is_kept = entries.iter().any(|entry| own.starts_with(&entry.id));
        let but_own = if is_kept { " but this one" } else { "" };
        format!("no session{but_own} is kept in {}", self.folder.display())
    }

    /// The sessions of a folder, the newest first, with what is found in them; those that cannot be read are
    /// left out.
    pub(crate) fn all(&self) -> Vec<(Opened, Analysis)> {
        let entries = self.entries();
        entries
            .iter()
            .filter_map(|entry| self.with_analysis(entry).ok())
            .collect()
    }

    /// The session in a file; `None` if that is none.
    pub(crate) fn of_file(path: &Path) -> Option<Result<(Opened, Analysis), ArchiveError>> {
        let facts = file::facts(path).ok()?;
        let session = facts.get("session")?;
        let archive = Self {
            folder: path.parent()?.to_owned(),
            origin: Origin::default(),
            own: None,
            is_written: false,
        };
        let opened = archive.with_analysis(&Entry::named(path, session));
        Some(opened.map_err(|fault| {
            let words = fault.words();
            ArchiveError::Failed(format!("{}: {words}", path.display()))
        }))
    }

    fn with_analysis(&self, entry: &Entry) -> Result<(Opened, Analysis), Fault> {
        let mut analysis = Analysis::default();
        let opened = self.open_entry(entry, |recording| {
            analysis = judged(recording);
            analysis.clone()
        })?;
        Ok((opened, analysis))
    }

    /// The last session of this notebook, if it died. Reads as little as that takes.
    pub(crate) fn last_that_died(&self) -> Option<StoredSession> {
        let notebook = notebook_hash(self.origin.notebook.as_deref());
        let entries = self.entries().into_iter();
        let mut of_notebook = entries
            .filter(|entry| entry.notebook == notebook)
            .take(N_SEARCHED);
        let (entry, facts) = of_notebook.find_map(|entry| {
            let facts = file::facts(&entry.path).ok()?;
            self.origin.is_of(&facts).then_some((entry, facts))
        })?;
        let ended_well =
            facts.contains_key("ended") && facts.get("ran_out").is_none_or(|it| it != "true");
        if ended_well {
            return None;
        }
        let session = self.open_entry(&entry, judged).ok()?.session;
        session.died().then_some(session)
    }

    /// Keeps a recording under a name, in place of what had it.
    pub(crate) fn save_baseline(
        &self,
        name: &str,
        recording: &Recording,
    ) -> Result<(), ArchiveError> {
        let path = self.baseline_path(name);
        self.write_baseline(&path, name, recording)
            .map_err(|fault| {
                let words = fault.words();
                ArchiveError::Failed(format!("{}: {words}", path.display()))
            })
    }

    /// The recording that was kept under a name, of this notebook if there is one.
    pub(crate) fn baseline(&self, name: &str) -> Result<Recording, ArchiveError> {
        let own = self.baseline_path(name);
        let found = if own.exists() {
            Some(own)
        } else {
            let mut others = self.baselines().into_iter();
            others
                .find(|(known, _)| known == name)
                .map(|(_, path)| path)
        };
        let Some(path) = found else {
            let names = self.baseline_names();
            let there_is = if names.is_empty() {
                "none yet: %gpumem baseline NAME sets one".to_owned()
            } else {
                names.join(", ")
            };
            let name = printable(name);
            return Err(ArchiveError::Unknown(format!(
                "no baseline '{name}': there is {there_is}"
            )));
        };
        let read = file::read(&path).map(|stored| stored.recording);
        read.map_err(|fault| ArchiveError::Failed(format!("{}: {}", path.display(), fault.words())))
    }

    /// The names of all baselines.
    pub(crate) fn baseline_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.baselines().into_iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        names
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = folder::entries(&self.folder, now_millis());
        let own = self.own.as_deref().unwrap_or_default();
        entries.retain(|entry| own.is_empty() || !own.starts_with(&entry.id));
        // What was put aside says no more than the file that took its place.
        let whole: BTreeSet<String> = entries
            .iter()
            .filter(|entry| !entry.is_aside())
            .map(|entry| entry.id.clone())
            .collect();
        entries.retain(|entry| !(entry.is_aside() && whole.contains(&entry.id)));
        entries
    }

    fn open_entry(
        &self,
        entry: &Entry,
        judge: impl FnOnce(&Recording) -> Analysis,
    ) -> Result<Opened, Fault> {
        let mut path = entry.path.clone();
        let stored = match file::read(&path) {
            Err(Fault::Corrupt(words)) if !entry.is_aside() => {
                path = put_aside(&path, now_seconds())?;
                file::read(&path).map_err(|_| Fault::Corrupt(words))?
            }
            read => read?,
        };
        let analysis = judge(&stored.recording);
        let session = self.session_of(entry, &path, &stored, &analysis);
        let mut recording = stored.recording;
        if let Some(words) = report::cut_off(&session) {
            let open = recording.runs().iter().filter(|run| run.ended.is_none());
            for run in open.cloned().collect::<Vec<_>>() {
                // It refers to what it referred to.
                drop(recording.apply(Frame::Run(Run {
                    status: Status::Died,
                    ..run
                })));
            }
            // It refers to nothing.
            drop(recording.apply(Frame::Missing(Missing { words })));
        }
        Ok(Opened {
            path,
            recording,
            children: child::folder(&self.folder, &entry.id),
            session,
        })
    }

    fn session_of(
        &self,
        entry: &Entry,
        path: &Path,
        stored: &Stored,
        analysis: &Analysis,
    ) -> StoredSession {
        let (facts, recording) = (&stored.facts, &stored.recording);
        let ended = facts.get("ended").and_then(|at| at.parse().ok());
        let remains = Remains {
            is_running: ended.is_none() && remains::is_running(path, facts),
            ended_in_order: ended.is_some(),
            was_killed: ended.is_none() && remains::was_killed(facts),
        };
        let last = LastRun::judged(recording, analysis);
        let known_at = last.as_ref().map(|last| last.at);
        let at = ended.map(Nanos::new).or(known_at).unwrap_or_default();
        let anchor = recording.header().wall_anchor.get();
        let ended_at = anchor.saturating_add(at.get());
        let own_host = facts.get("host") == self.origin.host.as_ref();
        StoredSession {
            id: entry.id.clone(),
            notebook: facts.get("notebook").cloned(),
            host: facts.get("host").filter(|_| !own_host).cloned(),
            // The clock may have been set back since.
            age: now_nanos()
                .checked_sub(ended_at)
                .filter(|_| anchor > 0)
                .map(Nanos::new),
            ending: Ending::of(&remains, last.as_ref()),
            n_runs: recording
                .runs()
                .iter()
                .filter(|run| run.parent.is_none())
                .count(),
            last,
            worst: report::worst_finding(recording, analysis),
            baseline: facts.get("baseline").cloned(),
            size: Bytes::new(entry.size()),
            damage: stored.damage.clone(),
        }
    }

    fn baseline_path(&self, name: &str) -> PathBuf {
        let notebook = notebook_hash(self.origin.notebook.as_deref());
        let hash = source_text::hash(name).0;
        let file = format!("{hash:016x}-{notebook}.{}", folder::EXTENSION);
        self.folder.join(BASELINES).join(file)
    }

    fn write_baseline(&self, path: &Path, name: &str, recording: &Recording) -> Result<(), Fault> {
        let header = recording.header();
        let mut facts = self.origin.facts(&header.session, header.wall_anchor.get());
        facts.insert("baseline".to_owned(), name.to_owned());
        let beside = folder::beside(path, &format!(".{}.tmp", std::process::id()));
        drop(fs::remove_file(&beside));
        let written = write_whole(&beside, &facts, recording);
        if let Err(fault) = written {
            drop(fs::remove_file(&beside));
            return Err(fault);
        }
        Ok(fs::rename(&beside, path)?)
    }

    /// The newest first.
    fn baselines(&self) -> Vec<(String, PathBuf)> {
        let files = fs::read_dir(self.folder.join(BASELINES));
        let files = files.into_iter().flatten().flatten();
        let mut found: Vec<(std::time::SystemTime, String, PathBuf)> = files
            .filter_map(|file| {
                let path = file.path();
                if path.extension()? != folder::EXTENSION {
                    return None;
                }
                let name = file::facts(&path).ok()?.get("baseline")?.clone();
                Some((file.metadata().ok()?.modified().ok()?, name, path))
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        found
            .into_iter()
            .map(|(_, name, path)| (name, path))
            .collect()
    }
}

fn judged(recording: &Recording) -> Analysis {
    analyze(recording, &recording.header().rules)
}

fn write_whole(path: &Path, facts: &Facts, recording: &Recording) -> Result<(), Fault> {
    let mut file = SessionFile::create(path, facts)?;
    let frames = recording.frames().zip(0..);
    let changes: Changes = frames
        .map(|(frame, n)| (Place::of(&frame, n), Some(encoded(frame))))
        .collect();
    file.write(&changes, &Facts::new())?;
    file.close();
    Ok(())
}

fn unreadable(entry: &Entry, fault: &Fault) -> StoredSession {
    StoredSession {
        id: entry.id.clone(),
        notebook: None,
        host: None,
        age: None,
        ending: if matches!(fault, Fault::Locked) {
            Ending::Running
        } else {
            Ending::Lost
        },
        last: None,
        n_runs: 0,
        worst: None,
        baseline: None,
        size: Bytes::new(entry.size()),
        damage: Some(fault.words()),
    }
}
