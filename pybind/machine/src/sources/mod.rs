//! Where levels come from. A source gives its devices and a reading of each; it
//! knows nothing of cells.
//!
//! **Driver** sources are read without the GIL, by the sampler's thread too.
//! **Framework** sources are read under the GIL, and only where the framework is
//! imported and initialised already: reading must not wake one up.

mod bitsandbytes;
mod cuda;
mod cupy;
mod driver_worker;
mod drivers;
mod framework;
mod guarded;
pub mod host;
mod jax;
mod join;
mod numba;
mod nvml;
pub mod process;
mod rmm;
mod service;
mod sim;
mod tensorflow;
pub mod torch;
mod unified;
mod visible;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gpumem_model::recording::{
    AllocatorLevels, DeviceKey, DeviceKind, DriverLevels, Level, Reading, Source, SourceState,
    Unknown,
};
use gpumem_model::segments::Segments;
use gpumem_model::units::Bytes;
use pyo3::{PyResult, Python};

pub use drivers::Drivers;
use drivers::{DriverAnswer, PendingAnswers};
use framework::FrameworkSource;
use join::{Joined, join};
use visible::Visibility;

/// Timeout at start-up; later answers reach the first run.
pub const PATIENCE_OF_A_START: Duration = Duration::from_millis(20);
/// Timeout of `%gpumem status`.
pub const PATIENCE_OF_A_QUESTION: Duration = Duration::from_secs(1);

/// A device as a source finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDevice {
    /// Outlives the session, and is the same from every source.
    pub key: DeviceKey,
    /// As people write it: `cuda:0`, `sim:0`, `host`.
    pub label: String,
    /// As its maker calls it.
    pub name: String,
    /// What kind of device it is.
    pub kind: DeviceKind,
}

/// Why a source is not read: one sentence for `%gpumem status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused(pub Cow<'static, str>);

/// A source's answer to the query of its devices.
pub(crate) type Answer = Result<Vec<SourceDevice>, Unused>;

/// The processes on one device, each with its bytes, or why they are unknown.
pub type ProcessList = Result<Vec<(u32, Level)>, String>;

/// The processes on each device of a source, by the device's key.
type ProcessLists = Result<Vec<(DeviceKey, ProcessList)>, Unused>;

/// What each process uses of each device, by the device's key and the process's number.
pub type UsedByProcess = BTreeMap<DeviceKey, BTreeMap<u32, Bytes>>;

/// A source that needs no GIL.
pub(crate) trait DriverSource: Send {
    fn source(&self) -> Source;
    /// Tells at once, on any thread and without the driver, why there is nothing to ask it.
    fn absence(&self) -> fn() -> Option<Unused> {
        || None
    }
    /// What it said of its devices last stands as long as this process lives.
    fn is_final(&self) -> bool {
        false
    }
    /// The visible devices in the source's order, or why it has none. Called for every run: takes
    /// microseconds.
    fn devices(&mut self, visibility: &Visibility) -> Answer;
    /// The levels of one of them. A failure is an unknown level with its reason.
    fn read(&mut self, key: &DeviceKey) -> DriverLevels;
    /// The processes on each of its devices.
    fn processes(&mut self, _visibility: &Visibility) -> ProcessLists {
        Ok(Vec::new())
    }
    /// What of these levels is cheap enough to be read a thousand times a second.
    fn sample(&mut self, key: &DeviceKey) -> DriverLevels {
        self.read(key)
    }
}

/// The queries of the drivers, and their deadline.
pub struct PendingReadings {
    asking: PendingAnswers,
    chosen: Vec<Source>,
    patience: Duration,
}

/// Every source of the session, and the devices that they have in common.
///
/// The owner keeps it behind no lock that is waited for with the GIL held: asking
/// a framework runs Python, which may let another thread in.
pub struct Sources {
    drivers: Drivers,
    frameworks: Vec<Box<dyn FrameworkSource>>,
    /// `None`: every source that answers.
    chosen: Option<Vec<Source>>,
    /// What open runs ask for instead, by the number of each; the latest prevails.
    chosen_for_runs: Vec<(u64, Option<Vec<Source>>)>,
    /// The devices that CUDA shows; from the environment until CUDA is started.
    visibility: Visibility,
    answers: Vec<(Source, Answer)>,
    devices: Vec<Joined>,
}

impl Default for Sources {
    /// Every source there is, chosen automatically. Starts nothing.
    fn default() -> Self {
        Self {
            drivers: Drivers::new(
                vec![
                    Box::new(cuda::CudaSource::default()),
                    Box::new(nvml::NvmlSource::default()),
                ],
                vec![Box::new(host::HostSource::new()), Box::new(sim::SimDriver)],
            ),
            frameworks: vec![
                Box::new(torch::TorchSource::default()),
                Box::new(cupy::CupySource::default()),
                Box::new(jax::JaxSource::default()),
                Box::new(tensorflow::TensorflowSource::default()),
                Box::new(rmm::RmmSource::default()),
                Box::new(numba::NumbaSource::default()),
                Box::new(bitsandbytes::BitsandbytesSource::default()),
                Box::new(sim::SimAllocator),
            ],
            chosen: None,
            chosen_for_runs: Vec::new(),
            visibility: Visibility::default(),
            answers: Vec::new(),
            devices: Vec::new(),
        }
    }
}

impl Sources {
    /// The sources that the sampler's thread shares.
    pub fn drivers(&self) -> Drivers {
        self.drivers.clone()
    }

    /// Reads these sources alone (the host stays); `auto` or no name at all: every one that answers. An error
    /// says which name is no source.
    pub fn choose(&mut self, names: &[String]) -> Result<(), String> {
        self.chosen = self.named(names)?;
        Ok(())
    }

    /// The same for a run, until it is over.
    pub fn choose_for_run(&mut self, number: u64, names: &[String]) -> Result<(), String> {
        let chosen = self.named(names)?;
        self.chosen_for_runs.push((number, chosen));
        Ok(())
    }

    /// Forgets what was chosen for that run.
    pub fn run_is_over(&mut self, number: u64) {
        self.chosen_for_runs.retain(|(it, _)| *it != number);
    }

    /// `None` for every one that answers.
    fn named(&self, names: &[String]) -> Result<Option<Vec<Source>>, String> {
        let known = self.names();
        let find = |name: &str| {
            let source = Source::from_name(name).filter(|source| known.contains(source));
            source.ok_or_else(|| {
                let known: Vec<_> = known.iter().map(|source| source.name()).collect();
                let known = known.join(", ");
                format!("unknown source {name:?}: use {known}, or auto")
            })
        };
        let names = names.iter().map(|name| name.trim());
        let (auto, named): (Vec<&str>, Vec<&str>) = names.partition(|name| *name == "auto");
        let chosen: Vec<Source> = named.into_iter().map(find).collect::<Result<_, _>>()?;
        if chosen.contains(&Source::Sim) {
            crate::sim::ensure_device();
        }
        let is_automatic = chosen.is_empty() || !auto.is_empty();
        Ok((!is_automatic).then_some(chosen))
    }

    /// Sets the drivers to work on the levels of this instant, for `read` to collect: who has
    /// something else to do meanwhile waits the less for them.
    pub fn order(&mut self) -> PendingReadings {
        self.ask_drivers(driver_worker::PATIENCE)
    }

    /// The levels of every device, as ordered just now, in the order of the sources. Devices that
    /// have appeared since the last time (a framework that was imported meanwhile) are among them.
    pub fn read(
        &mut self,
        py: Python<'_>,
        ordered: PendingReadings,
    ) -> Vec<(SourceDevice, Reading)> {
        let said = self.collect(py, ordered);
        let frameworks = &mut self.frameworks;
        let readings = self.devices.iter().map(|joined| {
            let mut driver = joined.levels(&said);
            driver.service_limit = service::limit(&joined.found).into();
            let allocators = allocators(py, frameworks, joined);
            (joined.found.clone(), Reading { driver, allocators })
        });
        let mut readings: Vec<(SourceDevice, Reading)> = readings.collect();
        unified::share_with_host(&mut readings);
        readings
    }

    /// The levels of every device that are available without waiting: allocators' counters now, and
    /// the last response of a slow driver.
    pub fn read_at_once(&mut self, py: Python<'_>) -> Vec<(SourceDevice, Reading)> {
        let chosen = self.chosen_sources();
        let frameworks = self.ask_frameworks(py, &chosen);
        // A framework may have started since the drivers were queried.
        let n_drivers = self.answers.len().saturating_sub(frameworks.len());
        if !self.answers[n_drivers..].iter().eq(&frameworks) {
            let of_drivers = self.answers[..n_drivers].iter().cloned();
            self.take_answers(of_drivers.chain(frameworks).collect());
        }
        let said = self.drivers.at_once();
        let frameworks = &mut self.frameworks;
        let levels = self.devices.iter().map(|joined| {
            let reading = Reading {
                driver: joined.levels(&said),
                allocators: allocators(py, frameworks, joined),
            };
            (joined.found.clone(), reading)
        });
        levels.collect()
    }

    /// The accelerators with their levels, and who is on them.
    pub fn processes(&mut self, py: Python<'_>) -> Vec<(SourceDevice, DriverLevels, ProcessList)> {
        let said = self.ask(py, PATIENCE_OF_A_QUESTION);
        let pending = self.is_chosen(Source::Nvml).then(|| {
            let answer = self.drivers.ask_processes(Source::Nvml, &self.visibility);
            py.detach(move || answer.recv_timeout(PATIENCE_OF_A_QUESTION))
        });
        let lists = match pending {
            None => Err(not_chosen()),
            Some(Ok(lists)) => lists,
            Some(Err(_)) => Err(Unused("the driver does not answer".into())),
        };
        let accelerators = self
            .devices
            .iter()
            .filter(|it| it.found.kind.is_accelerator());
        accelerators
            .map(|joined| {
                let levels = joined.levels(&said);
                let list = processes_on(joined, &levels, &lists);
                (joined.found.clone(), levels, list)
            })
            .collect()
    }

    /// What each process uses of each GPU, if the driver says it at once.
    pub fn used_by_process(&mut self, py: Python<'_>) -> UsedByProcess {
        let mut used = UsedByProcess::new();
        if !self.is_chosen(Source::Nvml) {
            return used;
        }
        let answer = self.drivers.ask_processes(Source::Nvml, &self.visibility);
        let lists = py.detach(move || answer.recv_timeout(driver_worker::PATIENCE));
        let lists = lists.unwrap_or_else(|_| Ok(Vec::new()));
        for joined in &self.devices {
            let listed = processes_on(joined, &DriverLevels::default(), &lists);
            let known = listed.into_iter().flatten();
            let known = known.filter_map(|(pid, level)| Some((pid, level.known()?)));
            used.insert(joined.found.key.clone(), known.collect());
        }
        used
    }

    /// Sets the peak counters of these devices, or of all, to the present levels, where the
    /// framework can; what failed, in words.
    pub fn reset_peaks(&mut self, py: Python<'_>, labels: &[String]) -> Vec<String> {
        self.ask(py, driver_worker::PATIENCE);
        let mut failures = Vec::new();
        for joined in &self.devices {
            let label = &joined.found.label;
            if !labels.is_empty() && !labels.contains(label) {
                continue;
            }
            for framework in &mut self.frameworks {
                let source = framework.source();
                if let Some(key) = joined.key_for(source)
                    && let Err(error) = framework.reset_peak(py, key)
                {
                    let source = source.name();
                    failures.push(format!(
                        "{source} did not reset the peak of {label}: {error}"
                    ));
                }
            }
        }
        failures
    }

    /// Where memory lies on the device of that label, as it was read last.
    pub fn segments(
        &mut self,
        py: Python<'_>,
        label: &str,
    ) -> PyResult<Option<Result<Segments, String>>> {
        let mut devices = self.devices.iter();
        let Some(joined) = devices.find(|joined| joined.found.label == label) else {
            return Ok(None);
        };
        for framework in &mut self.frameworks {
            if let Some(key) = joined.key_for(framework.source())
                && let Some(found) = framework.segments(py, key)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Each source, whether it is read, and why.
    pub fn states(&mut self, py: Python<'_>, patience: Duration) -> Vec<SourceState> {
        let mut said = self.ask(py, patience);
        let frameworks = &mut self.frameworks;
        let allocators = self.devices.iter().flat_map(|joined| {
            let levels = allocators(py, frameworks, joined);
            levels
                .into_iter()
                .map(|it| (joined.found.label.as_str(), it))
        });
        let allocators: Vec<(&str, AllocatorLevels)> = allocators.collect();
        for said in &mut said {
            let devices = relabelled(&self.devices, said.source, &said.response.devices);
            said.response = Arc::new(driver_worker::Response::now(
                devices,
                said.response.levels.clone(),
            ));
        }
        self.names()
            .into_iter()
            .map(|source| {
                let answers = self.answers.iter().filter(|(of, _)| *of == source);
                let answers = answers.map(|(_, answer)| relabelled(&self.devices, source, answer));
                let answers: Vec<Answer> = answers.collect();
                let (used, mut reason) = reason(answers.iter());
                let said = said.iter().filter(|said| said.source == source);
                let of_driver = said.flat_map(join::levels_said);
                let counted = allocators.iter().filter(|(_, it)| it.source == source);
                let of_allocator = counted.flat_map(|(label, levels)| {
                    let named = levels.named();
                    named.map(|(name, level)| (*label, name, level))
                });
                for note in join::notes(of_driver.chain(of_allocator)) {
                    reason.push_str("; ");
                    reason.push_str(&note);
                }
                if let Some(note) = host::note().filter(|_| source == Source::Host) {
                    reason.push_str("; ");
                    reason.push_str(note);
                }
                SourceState {
                    source,
                    used,
                    reason,
                }
            })
            .collect()
    }

    /// Asks every chosen source for its devices, and joins them where they are the same.
    fn ask(&mut self, py: Python<'_>, patience: Duration) -> Vec<DriverAnswer> {
        let ordered = self.ask_drivers(patience);
        self.collect(py, ordered)
    }

    fn ask_drivers(&mut self, patience: Duration) -> PendingReadings {
        let chosen = self.chosen_sources();
        if !self.is_cuda_listed() {
            self.visibility = Visibility::of_environment();
        }
        PendingReadings {
            asking: self.drivers.ask(&chosen, &self.visibility, patience),
            chosen,
            patience,
        }
    }

    /// The answers of the drivers, which work while the frameworks are read.
    fn collect(&mut self, py: Python<'_>, ordered: PendingReadings) -> Vec<DriverAnswer> {
        let PendingReadings {
            asking,
            chosen,
            patience,
        } = ordered;
        let frameworks = self.ask_frameworks(py, &chosen);
        let drivers = &self.drivers;
        let said = if patience > driver_worker::PATIENCE {
            py.detach(|| drivers.collect(asking))
        } else {
            drivers.collect(asking)
        };
        let of_drivers = said
            .iter()
            .map(|said| (said.source, &said.response.devices));
        let of_frameworks = frameworks.iter().map(|(source, answer)| (*source, answer));
        let answers = of_drivers.chain(of_frameworks);
        let known = self
            .answers
            .iter()
            .map(|(source, answer)| (*source, answer));
        if !answers.clone().eq(known) {
            let answers = answers.map(|(source, it)| (source, it.clone()));
            self.take_answers(answers.collect());
        }
        said
    }

    fn ask_frameworks(&mut self, py: Python<'_>, chosen: &[Source]) -> Vec<(Source, Answer)> {
        let frameworks = self.frameworks.iter_mut().map(|framework| {
            let source = framework.source();
            let answer = if chosen.contains(&source) {
                let devices = framework.devices(py);
                devices.unwrap_or_else(|error| Err(Unused(error.to_string().into())))
            } else {
                Err(not_chosen())
            };
            (source, answer)
        });
        frameworks.collect()
    }

    fn take_answers(&mut self, answers: Vec<(Source, Answer)>) {
        self.answers = answers;
        self.devices = join(&self.answers);
        self.drivers
            .plan(self.devices.iter().map(Joined::plan).collect());
    }

    fn chosen_sources(&self) -> Vec<Source> {
        let sources = Source::ALL.into_iter();
        sources.filter(|it| self.is_chosen(*it)).collect()
    }

    fn is_chosen(&self, source: Source) -> bool {
        let of_run = self.chosen_for_runs.last().map(|(_, chosen)| chosen);
        let chosen = of_run.unwrap_or(&self.chosen).as_ref();
        source == Source::Host || chosen.is_none_or(|chosen| chosen.contains(&source))
    }

    /// CUDA runs and has listed its devices: the environment no longer matters.
    fn is_cuda_listed(&self) -> bool {
        let mut answers = self.answers.iter();
        answers.any(|(source, answer)| *source == Source::Cuda && answer.is_ok())
    }

    /// The sources there are, each once, in the order in which they are named to the user.
    fn names(&self) -> Vec<Source> {
        let mut names = self.drivers.names();
        names.extend(self.frameworks.iter().map(|framework| framework.source()));
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The levels of a device from every framework that knows it.
fn allocators(
    py: Python<'_>,
    frameworks: &mut [Box<dyn FrameworkSource>],
    joined: &Joined,
) -> Vec<AllocatorLevels> {
    let levels = frameworks.iter_mut().filter_map(|framework| {
        let source = framework.source();
        let read = framework.read(py, joined.key_for(source)?);
        Some(read.unwrap_or_else(|error| AllocatorLevels::failed(source, &error.to_string())))
    });
    levels.collect()
}

/// A source's devices in the order in which they are read, with CUDA's labels if they are known.
fn relabelled(devices: &[Joined], source: Source, answer: &Answer) -> Answer {
    let found = answer.as_ref().map_err(Clone::clone)?;
    let read = devices.iter().filter_map(|joined| {
        let key = joined.key_for(source)?;
        let found = found.iter().find(|found| found.key == *key)?;
        Some(SourceDevice {
            label: joined.found.label.clone(),
            ..found.clone()
        })
    });
    Ok(read.collect())
}

/// The processes on a device; a simulated device belongs to its own process.
fn processes_on(joined: &Joined, levels: &DriverLevels, lists: &ProcessLists) -> ProcessList {
    if joined.found.kind == DeviceKind::Simulated {
        return Ok(vec![(std::process::id(), levels.device_used.clone())]);
    }
    let lists = lists.as_ref().map_err(|Unused(why)| why.clone())?;
    let key = joined.key_for(Source::Nvml);
    let list = key.and_then(|key| lists.iter().find(|(of, _)| of == key));
    list.map_or_else(
        || Err("NVIDIA's management library does not know this device".to_owned()),
        |(_, list)| list.clone(),
    )
}

fn not_chosen() -> Unused {
    Unused("left out by `%gpumem use`; `%gpumem use auto` reads every source that answers".into())
}

/// One sentence on a source from what its halves (driver and allocator) answered.
fn reason<'a>(answers: impl Iterator<Item = &'a Answer>) -> (bool, String) {
    let mut labels: Vec<&str> = Vec::new();
    let mut why_not = None;
    for answer in answers {
        match answer {
            Ok(found) => labels.extend(found.iter().map(|found| found.label.as_str())),
            Err(Unused(reason)) => why_not = Some(reason.as_ref()),
        }
    }
    labels.dedup();
    match labels.as_slice() {
        [] => (false, why_not.unwrap_or("it has no device").to_owned()),
        labels => (true, format!("reads {}", labels.join(", "))),
    }
}

/// Every level of a driver unknown, in the source's own words.
fn failed(words: &str) -> DriverLevels {
    let level = Level::Unknown(Unknown::Failed(words.into()));
    DriverLevels {
        device_used: level.clone(),
        process_used: level.clone(),
        capacity: level,
        ..DriverLevels::default()
    }
}
