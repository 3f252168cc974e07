//! What is kept: sessions that are over or run in other kernels, and baselines.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use gpumem_analyzer::{Analysis, analyze};
use gpumem_jobs::history::{LastRun, Remains, SessionEnding, StoredSession};
use gpumem_model::printable::printable;
use gpumem_model::recording::{Frame, Missing, Recording, Run, Status};
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_report as report;
use gpumem_wire as wire;

use super::file::{self, ReadSession, SessionFacts, StoreFault, facts_of};
use super::folder::{self, SessionFile, notebook_hash};
use super::origin::{BASELINE, KEPT, SessionOrigin, with_facts, without_facts};
use super::owner;
use super::writer::{now_millis, now_nanos};
use crate::recording::child;
use gpumem_base::files;

/// The folder of baselines, in that of the sessions.
const BASELINES: &str = "baselines";
/// The most sessions examined, newest first, to find the last one of a notebook.
const N_SEARCHED: usize = 8;
/// The last one of a notebook is not searched for any longer.
const SEARCH: Duration = Duration::from_secs(2);

/// What is kept in a folder, as seen by one process.
pub(crate) struct Archive {
    pub(crate) folder: PathBuf,
    pub(crate) origin: SessionOrigin,
    /// The session that this process writes: it is not read back.
    pub(crate) own: Option<String>,
    /// This process keeps its sessions there.
    pub(crate) is_written: bool,
}

/// Why a session or a baseline cannot be opened.
#[derive(Debug)]
pub(crate) enum ArchiveError {
    Unknown(String),
    /// The disk or the file fails.
    Failed(String),
}

pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) recording: Recording,
    pub(crate) children: PathBuf,
    pub(crate) session: StoredSession,
    /// What was damaged or cut off.
    pub(crate) damage: Option<String>,
}

impl Archive {
    /// What others have written to a folder.
    pub(crate) fn of_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            origin: SessionOrigin::default(),
            own: None,
            is_written: false,
        }
    }

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
            let named = |entry: &&SessionFile| !which.is_empty() && entry.id.starts_with(&which);
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
        // Its findings are not needed here.
        let opened = self.open_entry(entry, |_| Analysis::default());
        opened.map_err(|fault| failed(&entry.path, &fault))
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
        let path = &fs::canonicalize(path).ok()?;
        let header = file::read_header(path);
        let says_so = |facts: SessionFacts| facts.get(KEPT).is_some_and(|it| it == "session");
        let is_session = match &header {
            Some(header) => says_so(facts_of(header)),
            // The end of a file says again what it is.
            None => {
                SessionFile::from_path(path).is_some()
                    || file::has_frames(path)
                        && file::read(path, u64::MAX).is_ok_and(|it| says_so(it.facts))
            }
        };
        if !is_session {
            return None;
        }
        let archive = Self::of_folder(path.parent()?.to_owned());
        let session = header.map(|header| header.session).unwrap_or_default();
        let opened = archive.with_analysis(&SessionFile::named(path, &session));
        Some(opened.map_err(|fault| failed(path, &fault)))
    }

    fn with_analysis(&self, entry: &SessionFile) -> Result<(Opened, Analysis), StoreFault> {
        let mut analysis = Analysis::default();
        let opened = self.open_entry(entry, |recording| {
            analysis = judged(recording);
            analysis.clone()
        })?;
        Ok((opened, analysis))
    }

    /// The last session of this notebook, if it died. Reads no more than both ends of a few files.
    pub(crate) fn last_that_died(&self) -> Option<StoredSession> {
        let began = Instant::now();
        let notebook = notebook_hash(self.origin.notebook.as_deref());
        let entries = self.entries().into_iter();
        let mut of_notebook = entries
            .filter(|entry| entry.notebook == notebook)
            .take(N_SEARCHED)
            .take_while(|_| began.elapsed() < SEARCH);
        let (entry, stored) = of_notebook.find_map(|entry| {
            let stored = file::read_ends(&entry.path).ok()?;
            self.origin.is_of(&stored.facts).then_some((entry, stored))
        })?;
        let analysis = judged(&stored.recording);
        let session = self.session_of(&entry, &stored, &analysis);
        session.died().then_some(session)
    }

    /// Keeps a recording under a name, in place of the baseline that had it.
    pub(crate) fn save_baseline(
        &self,
        name: &str,
        recording: &Recording,
    ) -> Result<(), ArchiveError> {
        let path = self.baseline_path(name);
        if fs::symlink_metadata(&path).is_ok() && baseline_name(&path).is_none() {
            let words = "this file is no baseline, and is not replaced".to_owned();
            return Err(failed(&path, &StoreFault::Other(words)));
        }
        let mut facts = self.origin.facts("baseline");
        facts.insert(BASELINE.to_owned(), name.to_owned());
        let header = with_facts(recording.header(), &facts);
        let frames = recording.frames().map(|frame| match frame {
            Frame::Header(_) => Frame::Header(header.clone()),
            frame => frame,
        });
        let written = folder::create_folder(path.parent().unwrap_or(&self.folder))
            .and_then(|()| files::write(&path, &wire::encode_frames(frames)));
        written.map_err(|error| failed(&path, &error.into()))
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
        let read = file::read(&path, u64::MAX);
        read.map(|stored| recorded(stored.recording))
            .map_err(|fault| failed(&path, &fault))
    }

    pub(crate) fn baseline_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.baselines().into_iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        names
    }

    fn entries(&self) -> Vec<SessionFile> {
        let mut entries = folder::entries(&self.folder, now_millis());
        let own = self.own.as_deref().unwrap_or_default();
        entries.retain(|entry| own.is_empty() || !own.starts_with(&entry.id));
        // A file that was lost says no more than the one that took its place.
        let mut known = BTreeSet::new();
        entries.retain(|entry| known.insert((entry.started, entry.id.clone())));
        entries
    }

    fn open_entry(
        &self,
        entry: &SessionFile,
        judge: impl FnOnce(&Recording) -> Analysis,
    ) -> Result<Opened, StoreFault> {
        let mut stored = file::read(&entry.path, u64::MAX)?;
        let analysis = judge(&stored.recording);
        let session = self.session_of(entry, &stored, &analysis);
        let cut = stored.cut.take();
        let cut = cut.filter(|_| session.ending != SessionEnding::Running);
        let mut recording = recorded(stored.recording);
        let cut_off = report::cut_off(&session);
        if cut_off.is_some() {
            let open = recording.runs().iter().filter(|run| run.ended.is_none());
            for run in open.cloned().collect::<Vec<_>>() {
                // It refers to what it referred to.
                drop(recording.apply(Frame::Run(Run {
                    status: Status::Died,
                    ..run
                })));
            }
        }
        for words in cut_off.into_iter().chain(cut.clone()) {
            // It refers to nothing.
            drop(recording.apply(Frame::Missing(Missing { words })));
        }
        Ok(Opened {
            path: entry.path.clone(),
            recording,
            children: child::folder(&self.folder, &entry.id),
            damage: session.damage.clone().or(cut),
            session,
        })
    }

    fn session_of(
        &self,
        entry: &SessionFile,
        stored: &ReadSession,
        analysis: &Analysis,
    ) -> StoredSession {
        let (facts, recording) = (&stored.facts, &stored.recording);
        let ended = recording.finish().map(|finish| finish.at);
        let is_running = ended.is_none() && owner::is_running(&entry.path, facts) == Some(true);
        let remains = Remains {
            is_running,
            ended_in_order: ended.is_some(),
            was_killed: ended.is_none() && !is_running && owner::was_killed(facts),
        };
        let last = LastRun::judged(recording, analysis);
        let known_at = last.as_ref().map(|last| last.at);
        let at = ended.or(known_at).unwrap_or_default();
        let anchor = recording.header().wall_anchor.get();
        let ended_at = anchor.saturating_add(at.get());
        let own_machine = facts.get("machine") == self.origin.machine.as_ref();
        StoredSession {
            id: entry.id.clone(),
            notebook: facts.get("notebook").cloned(),
            host: facts.get("machine").filter(|_| !own_machine).cloned(),
            // The clock may have been set back since.
            age: now_nanos()
                .checked_sub(ended_at)
                .filter(|_| anchor > 0)
                .map(Nanos::new),
            ending: SessionEnding::from_remains(&remains, last.as_ref()),
            n_runs: recording
                .runs()
                .iter()
                .filter(|run| run.parent.is_none())
                .count(),
            last,
            worst: report::worst_finding(recording, analysis),
            baseline: facts.get(BASELINE).cloned(),
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

    /// The newest first.
    fn baselines(&self) -> Vec<(String, PathBuf)> {
        let folder = self.folder.join(BASELINES);
        let mut found: Vec<(SystemTime, String, PathBuf)> = folder::names(&folder)
            .filter_map(|path| {
                let written = fs::symlink_metadata(&path).ok()?.modified().ok()?;
                Some((written, baseline_name(&path)?, path))
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        found
            .into_iter()
            .map(|(_, name, path)| (name, path))
            .collect()
    }
}

/// The name of the baseline in a file; `None` if it is none.
fn baseline_name(path: &Path) -> Option<String> {
    if path.extension()? != folder::EXTENSION {
        return None;
    }
    facts_of(&file::read_header(path)?).remove(BASELINE)
}

/// As it was recorded, without what only its file says.
fn recorded(mut recording: Recording) -> Recording {
    let header = without_facts(recording.header());
    // It refers to nothing.
    drop(recording.apply(Frame::Header(header)));
    recording
}

fn failed(path: &Path, fault: &StoreFault) -> ArchiveError {
    ArchiveError::Failed(format!("{}: {}", path.display(), fault.message()))
}

fn judged(recording: &Recording) -> Analysis {
    analyze(recording, &recording.header().rules)
}

fn unreadable(entry: &SessionFile, fault: &StoreFault) -> StoredSession {
    StoredSession {
        id: entry.id.clone(),
        notebook: None,
        host: None,
        age: None,
        ending: SessionEnding::Lost,
        last: None,
        n_runs: 0,
        worst: None,
        baseline: None,
        size: Bytes::new(entry.size()),
        damage: Some(fault.message()),
    }
}
