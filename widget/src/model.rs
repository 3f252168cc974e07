//! The recording, the rules and the view state, and what follows from them.

use std::cell::OnceCell;

use gpumem_analyzer::{
    Analysis, CellRef, FindingGroup, IncrementalAnalyzer, SessionComparison, waiting,
};
use gpumem_charts as charts;
use gpumem_charts::{
    BarSegment, CellChart, CellLayout, LevelsOfDetail, LongRun, Map, PictureExtent, RunDescription,
    Tile, TimeScale,
};
use gpumem_model::recording::{CellIdx, Column, DeviceIdx, Points, Recording, RunIdx};
use gpumem_model::rules::Rules;
use gpumem_model::units::{Bytes, Nanos, Units};
use gpumem_scene::{Density, Scene, Target, Theme};
use gpumem_wire as wire;
use gpumem_wire::WireError;

use crate::keys::{self, KeyAction};
use crate::saved;
use crate::settings::ThresholdSetting;
use crate::state::{Chart, Pointed, UiEvent, ViewState};
use crate::zoom::ZoomWindow;

/// A run is read at its start and its end, sampled or not.
const N_ENDS: usize = 2;

/// What the recording is held against.
struct Baseline {
    name: String,
    recording: Recording,
    compared: Vec<SessionComparison>,
    waiting: Vec<CellRef>,
    analyzer: IncrementalAnalyzer,
}

/// Everything that the page shows, without the page.
pub(crate) struct ReportModel {
    recording: Recording,
    rules: Rules,
    analysis: Analysis,
    analyzer: IncrementalAnalyzer,
    baseline: Option<Baseline>,
    /// Its samples, downsampled for each zoom.
    detail: LevelsOfDetail,
    /// The bytes that each cell kept on the shown device, computed on first use.
    cells: OnceCell<CellChart>,
    state: ViewState,
    /// What the state was before the reader did anything.
    first: ViewState,
    /// Counts changes after which charts must be redrawn.
    version: u64,
    /// The colours of the charts.
    pub(crate) theme: Theme,
    /// Device pixels per logical pixel.
    pub(crate) scale: f64,
}

impl ReportModel {
    /// The first look at a recording.
    pub(crate) fn new(recording: Recording) -> Self {
        let rules = recording.header().rules;
        let mut analyzer = IncrementalAnalyzer::default();
        let analysis = analyzer.analyze(&recording, &rules);
        let first = ViewState::new(&recording, &analysis);
        Self {
            detail: LevelsOfDetail::new(&recording),
            state: first.clone(),
            first,
            recording,
            rules,
            analysis,
            analyzer,
            baseline: None,
            cells: OnceCell::new(),
            version: 0,
            theme: Theme::default(),
            scale: 1.0,
        }
    }

    /// What was recorded.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What follows from it under the rules as they are set.
    pub(crate) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// What the reader looks at.
    pub(crate) fn state(&self) -> &ViewState {
        &self.state
    }

    /// The rules as they are set.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The rules that stand in the recording: where the reader starts from.
    pub(crate) fn recorded_rules(&self) -> &Rules {
        &self.recording.header().rules
    }

    /// Changes whenever charts must be redrawn for the recording or its findings.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// What the reader looks at, as a line that [`Self::restore`] understands.
    pub(crate) fn saved(&self) -> String {
        saved::line(
            &self.state,
            &self.rules,
            (&self.first, self.recorded_rules()),
        )
    }

    /// Restores the view from a saved line.
    pub(crate) fn restore(&mut self, line: &str) {
        let (n_devices, n_cells) = (self.recording.devices().len(), self.recording.cells().len());
        let (state, rules) = saved::read(
            line,
            (&self.first, self.recorded_rules()),
            n_devices,
            n_cells,
        );
        if state.units != self.state.units {
            self.version += 1;
        }
        self.state = ViewState {
            width: self.state.width,
            ..state
        };
        self.cells.take();
        if rules != self.rules {
            self.rules = rules;
            self.judge();
        }
    }

    /// Shows sizes in other units.
    pub(crate) fn set_units(&mut self, units: Units) {
        if self.state.units != units {
            self.state.units = units;
            self.version += 1;
        }
    }

    /// How the reader wants to see sizes.
    pub(crate) fn units(&self) -> Units {
        self.state.units
    }

    /// Holds the recording against another one.
    pub(crate) fn set_baseline(&mut self, name: &str, recording: Recording) {
        self.baseline = Some(Baseline {
            name: name.to_owned(),
            recording,
            compared: Vec::new(),
            waiting: Vec::new(),
            analyzer: IncrementalAnalyzer::default(),
        });
        self.version += 1;
        self.cells.take();
        self.judge();
    }

    /// The name of the baseline, what became of each cell, and the cells that have not run again, where
    /// there is one.
    pub(crate) fn compared(&self) -> Option<(&str, &[SessionComparison], &[CellRef])> {
        let baseline = self.baseline.as_ref()?;
        Some((&baseline.name, &baseline.compared, &baseline.waiting))
    }

    /// Takes in frames; those before a faulty one are taken in all the same.
    pub(crate) fn apply(&mut self, frames: &[u8]) -> Result<(), WireError> {
        let was_empty = self.recording.runs().is_empty();
        let recorded = *self.recorded_rules();
        let read = wire::apply(&mut self.recording, frames);
        if self.rules == recorded {
            // Who moved none goes on with what the session is judged by.
            self.rules = *self.recorded_rules();
        }
        self.detail = LevelsOfDetail::new(&self.recording);
        self.analysis = self.analyzer.analyze(&self.recording, &self.rules);
        self.version += 1;
        self.cells.take();
        self.compare();
        self.first = ViewState::new(&self.recording, &self.analysis);
        if was_empty {
            self.state.device = self.first.device;
        }
        read
    }

    /// Takes in what the reader did, and returns the state before it.
    pub(crate) fn handle(&mut self, event: UiEvent) -> ViewState {
        let next = self.state.after(event, &self.recording, &self.analysis);
        if next.device != self.state.device {
            self.cells.take();
        }
        std::mem::replace(&mut self.state, next)
    }

    /// What a key that was pressed on a chart, which shows these targets, means.
    pub(crate) fn event_of(
        &self,
        key: KeyAction,
        chart: Chart,
        targets: &[Target],
    ) -> Option<UiEvent> {
        let pointed = self.state.pointed;
        Some(match key {
            KeyAction::Step(step) => UiEvent::Stepped(chart, step, targets.to_vec()),
            KeyAction::Peak => UiEvent::Pointed(Some(self.highest(chart)?)),
            KeyAction::Cross => {
                pointed?.run()?;
                UiEvent::Crossed
            }
            KeyAction::Choose => match pointed?.target {
                Target::Field(field) => self.entering(field, Some(0))?,
                _ => UiEvent::Clicked(Some(pointed?.run()?)),
            },
            KeyAction::Zoom(_) | KeyAction::Pan(_) | KeyAction::Whole if !chart.has_time() => {
                return None;
            }
            KeyAction::Zoom(factor) => UiEvent::Zoomed(self.zoomed(self.middle(), factor)),
            KeyAction::Pan(share) => {
                UiEvent::Zoomed(self.with_window(|window| window.panned(share)))
            }
            KeyAction::Whole => UiEvent::Zoomed(None),
            KeyAction::Measure => UiEvent::Measured(keys::other_measure(self.state.measure)),
            KeyAction::Pace => UiEvent::Paced(keys::other_pace(self.state.pace)),
            KeyAction::Device => UiEvent::Switched(self.next_device()?),
            KeyAction::Help => UiEvent::Helped(!self.state.help),
            KeyAction::Clear => match chart {
                Chart::Holders if !self.state.inside.is_empty() => self.leaving(),
                _ => UiEvent::Cleared,
            },
            KeyAction::Row(_) | KeyAction::Search => return None,
        })
    }

    /// Whether the samples of some run show more than its ends, which the rows show.
    pub(crate) fn has_samples(&self) -> bool {
        let device = self.state.device;
        let mut series = self.recording.all_samples();
        series.any(|(_, of, _, points)| of == device && points.len() > N_ENDS)
    }

    /// The holders of the shown device, if a look found them.
    pub(crate) fn map(&self) -> Option<Map> {
        self.map_inside(&self.state.inside)
    }

    fn map_inside(&self, inside: &[String]) -> Option<Map> {
        let view = charts::ChartView {
            inside: inside.to_vec(),
            ..self.view(Chart::Holders)
        };
        charts::holder_map(&self.recording, &view)
    }

    /// Into a field of the map; `None` where it holds nothing that is known.
    pub(crate) fn entering(&self, field: usize, pointed: Option<usize>) -> Option<UiEvent> {
        let map = self.map()?;
        let entered = map.fields.get(field)?;
        let names = map.inside.iter().chain([entered]);
        let inside = names.map(|field| field.name.clone()).collect();
        (!entered.fields.is_empty()).then_some(UiEvent::Entered(inside, pointed))
    }

    /// Out of the field that the map is inside of, to where that is.
    fn leaving(&self) -> UiEvent {
        let mut inside = self.state.inside.clone();
        let left = inside.pop();
        let around = self.map_inside(&inside);
        let fields = around.map(|map| map.fields).unwrap_or_default();
        let place = fields
            .iter()
            .position(|field| Some(&field.name) == left.as_ref());
        UiEvent::Entered(inside, place)
    }

    /// The largest field of the whole map of which this is true.
    fn field_where(&self, is_it: impl Fn(&Tile) -> bool) -> Option<usize> {
        self.map_inside(&[])?.fields.iter().position(is_it)
    }

    /// The field of a name.
    pub(crate) fn field_of(&self, name: &str) -> Option<usize> {
        self.field_where(|field| field.name == name)
    }

    /// The field of a part of the device: of its name, else the largest of what it is for.
    pub(crate) fn field_about(&self, part: usize) -> Option<usize> {
        let segments = self.segments();
        let part = segments.get(part)?;
        if part.is_name {
            return self.field_of(&part.name);
        }
        let purpose = part.purpose?;
        self.field_where(|field| field.part == Some(purpose))
    }

    /// The name that is pointed at in the map.
    pub(crate) fn pointed_name(&self) -> Option<String> {
        let field = self.state.pointed?.field()?;
        let map = self.map()?;
        let around = map.inside.first();
        let field = around.or_else(|| map.fields.get(field))?;
        Some(field.name.clone())
    }

    /// A view of `factor` times the time around a place on the timeline.
    pub(crate) fn zoomed(&self, x: f64, factor: f64) -> Option<(Nanos, Nanos)> {
        self.with_window(|window| window.zoomed(x, factor))
    }

    /// What the timeline shows, on the scale of the whole.
    pub(crate) fn with_window<T>(&self, look: impl FnOnce(&ZoomWindow<'_>) -> T) -> T {
        let shown = self.time_scale();
        let whole = charts::ChartView {
            span: None,
            ..self.view(Chart::Timeline)
        };
        let whole = charts::time_scale(&self.recording, &whole);
        look(&ZoomWindow {
            whole: &whole,
            shown: &shown,
            span: self.state.span,
        })
    }

    /// Where instants are on the timeline.
    pub(crate) fn time_scale(&self) -> TimeScale {
        charts::time_scale(&self.recording, &self.view(Chart::Timeline))
    }

    /// Moves a threshold and analyses again.
    pub(crate) fn set(&mut self, setting: ThresholdSetting, position: u32) {
        let recorded = &self.recording.header().rules;
        if position == setting.position(recorded) {
            setting.reset(&mut self.rules, recorded);
        } else {
            setting.set(&mut self.rules, position);
        }
        self.judge();
    }

    /// The threshold of growth of the device that is shown.
    pub(crate) fn growth_setting(&self) -> ThresholdSetting {
        let device = self.recording.devices().get(self.state.device.get());
        ThresholdSetting::of_growth(device.map(|device| device.kind).unwrap_or_default())
    }

    /// The picture of a chart.
    pub(crate) fn scene(&self, chart: Chart) -> Scene {
        let view = self.view(chart);
        let (recording, analysis) = (&self.recording, &self.analysis);
        match chart {
            Chart::Row | Chart::Run => Scene::default(),
            Chart::Cells => self.cells().over_time(self.layout(), view.units),
            Chart::Now => charts::now(recording, analysis, &view),
            Chart::Timeline => charts::timeline_from(&self.detail, recording, analysis, &view),
            Chart::Minimap => charts::minimap(recording, analysis, &view),
            Chart::Holders => charts::treemap(recording, analysis, &view),
        }
    }

    /// What a chart's picture depends on, and nothing else.
    pub(crate) fn view(&self, chart: Chart) -> charts::ChartView {
        let state = &self.state;
        let bare = charts::ChartView {
            width: state.width,
            density: Density(self.scale),
            device: state.device,
            units: state.units,
            ..charts::ChartView::default()
        };
        let selected = || state.selected(&self.recording, &self.analysis);
        match chart {
            Chart::Row | Chart::Run | Chart::Cells | Chart::Now => bare,
            Chart::Minimap => charts::ChartView {
                pace: state.pace,
                ..bare
            },
            Chart::Timeline => charts::ChartView {
                selected: selected(),
                span: state.span,
                pace: state.pace,
                layers: state.layers,
                ..bare
            },
            Chart::Holders => charts::ChartView {
                selected: selected(),
                moment: state.moment,
                inside: state.inside.clone(),
                ..bare
            },
        }
    }

    /// The report as one picture.
    pub(crate) fn picture(&self, extent: PictureExtent) -> Scene {
        let state = &self.state;
        let view = charts::ChartView {
            width: state.width.max(640.0),
            density: Density(self.scale_of_picture(extent)),
            measure: state.measure,
            ..self.view(Chart::Now)
        };
        charts::picture(&self.recording, &self.analysis, &view, extent)
    }

    /// Device pixels to one of the picture's, which is looked at elsewhere too.
    pub(crate) fn scale_of_picture(&self, extent: PictureExtent) -> f64 {
        match extent {
            PictureExtent::Slide => PictureExtent::SLIDE_SCALE,
            PictureExtent::FirstScreen => self.scale.max(2.0),
        }
    }

    /// What fills the device that is shown.
    pub(crate) fn segments(&self) -> Vec<BarSegment> {
        charts::segments(&self.recording, &self.analysis, self.state.device)
    }

    /// What each cell kept on the device that is shown.
    pub(crate) fn cells(&self) -> &CellChart {
        let (recording, analysis) = (&self.recording, &self.analysis);
        let cells = || {
            let mut cells = charts::cells(recording, analysis, self.state.device);
            if let Some(before) = self.cells_before() {
                cells.hold_against(&before);
            }
            cells
        };
        self.cells.get_or_init(cells)
    }

    /// What the cells of the baseline kept on the same device.
    fn cells_before(&self) -> Option<CellChart> {
        let before = &self.baseline.as_ref()?.recording;
        let shown = self.recording.devices().get(self.state.device.get())?;
        let mut devices = before.devices().iter();
        let device = devices.find(|it| it.key == shown.key)?.idx;
        let analysis = IncrementalAnalyzer::default().analyze(before, &self.rules);
        Some(charts::cells(before, &analysis, device))
    }

    /// The long run of a cell, by the iterations that the reader wants.
    pub(crate) fn long_run(&self, cell: CellIdx) -> Option<LongRun<'_>> {
        let place = (cell, self.state.device);
        LongRun::of_cell(&self.recording, &self.analysis, place, self.state.in_loop)
    }

    /// The cell whose row shows what a finding in a loop rests on.
    pub(crate) fn row_about(&self, finding: &str) -> Option<CellIdx> {
        let finding = self.analysis.finding(finding)?;
        LongRun::of_finding(&self.recording, &self.analysis, finding)?;
        finding.cell.as_ref().map(|cell| cell.idx)
    }

    /// What is pointed at in words, if that is a run or what happened in one.
    pub(crate) fn reading(&self, pointed: Pointed) -> Option<RunDescription> {
        self.reading_in_run(pointed)
            .or_else(|| self.cells().reading(pointed.run()?, self.units()))
    }

    fn reading_in_run(&self, pointed: Pointed) -> Option<RunDescription> {
        let cell = self.state.row.filter(|_| pointed.chart == Chart::Run)?;
        let run = self.long_run(cell)?;
        let at = match pointed.target {
            Target::Look(idx) => run.looks().get(idx)?.at,
            _ => pointed.at?,
        };
        let (row, _) = self.cells().find(run.run())?;
        Some(run.reading(at, &row.name, self.units()))
    }

    /// The columns of the panel of cells.
    pub(crate) fn layout(&self) -> CellLayout {
        CellLayout::new(self.state.width)
    }

    /// The worst finding that is about a part of the device.
    pub(crate) fn finding_about(&self, part: usize) -> Option<&str> {
        let kind = self.segments().get(part)?.kind;
        let found = self.analysis.finding_about(self.state.device, kind);
        found.map(|finding| finding.id.as_str())
    }

    /// The findings that share the line of this one in the verdict, or just this one.
    pub(crate) fn together(&self, finding: &str) -> Vec<String> {
        let ids = |verdict: &FindingGroup<'_>| -> Vec<String> {
            let findings = verdict.findings().iter();
            findings.map(|finding| finding.id.clone()).collect()
        };
        let verdicts = self.analysis.verdicts();
        let mut all = verdicts.iter().map(ids);
        let found = all.find(|ids| ids.first().is_some_and(|first| first == finding));
        found.unwrap_or_else(|| vec![finding.to_owned()])
    }

    /// Nothing but its figures is known of the finding: there is no fix to show first.
    pub(crate) fn is_bare(&self, finding: &str) -> bool {
        self.analysis.finding(finding).is_some_and(|it| {
            let has_fix = it.fix.as_ref().is_some_and(|fix| !fix.elsewhere);
            !has_fix && it.release().is_none()
        })
    }

    /// Every figure that a finding rests on, in the order of the findings.
    pub(crate) fn figures(&self) -> Vec<f64> {
        let findings = self.analysis.findings.iter();
        let evidence = findings.flat_map(|finding| &finding.evidence);
        evidence.map(|figure| figure.value).collect()
    }

    fn judge(&mut self) {
        let before = std::mem::take(&mut self.analysis.findings);
        let (analyzer, analysis) = (&mut self.analyzer, &mut self.analysis);
        analyzer.judge(analysis, &self.recording, &self.rules);
        if !charts::draw_alike(&before, &self.analysis.findings) {
            self.version += 1;
            self.cells.take();
        }
        self.compare();
    }

    fn compare(&mut self) {
        if let Some(baseline) = &mut self.baseline {
            let (analyzer, before) = (&mut baseline.analyzer, &baseline.recording);
            baseline.compared = analyzer.compare(&self.recording, before, &self.rules);
            baseline.waiting = waiting(&self.recording, before, &self.rules);
        }
    }

    /// Where the highest level of the device was, as far as it is in view.
    fn highest(&self, chart: Chart) -> Option<Pointed> {
        let device = self.state.device;
        let (from, to) = self
            .state
            .span
            .unwrap_or((Nanos::ZERO, Nanos::new(u64::MAX)));
        let is_in_view = |run: RunIdx| {
            let run = self.recording.run(run);
            run.parent.is_none() && run.started <= to && run.ended.is_none_or(|end| end >= from)
        };
        let rows = self.analysis.rows.iter();
        let (run, peak) = rows
            .filter(|row| row.device == device && is_in_view(row.run))
            .filter_map(|row| Some((row.run, row.peak?.low())))
            .max_by_key(|(run, peak)| (*peak, std::cmp::Reverse(*run)))?;
        Some(Pointed {
            chart,
            target: Target::Run(run),
            at: self.instant_of(run, device, peak),
        })
    }

    /// When a sample of the run reached that level in any of its metrics.
    fn instant_of(&self, run: RunIdx, device: DeviceIdx, level: Bytes) -> Option<Nanos> {
        let reaches = |points: &Points, idx: usize| {
            let metrics = [
                points.allocated(),
                points.process_used(),
                points.device_used(),
            ];
            let mut levels = metrics
                .into_iter()
                .filter_map(|metric: &Column| metric.get(idx));
            levels.any(|known| known == level)
        };
        let mut series = self.recording.samples_of(run, device);
        series.find_map(|(_, points)| {
            let idx = (0..points.len()).find(|idx| reaches(points, *idx))?;
            Some(points.at()[idx])
        })
    }

    /// Where the keyboard zooms: at the run that is read out, else in the middle.
    fn middle(&self) -> f64 {
        let scale = self.time_scale();
        let run = self.state.pointed.and_then(Pointed::run);
        match run.map(|run| self.recording.run(run)) {
            Some(run) => f64::midpoint(
                scale.x(run.started),
                scale.x(run.ended.unwrap_or(run.started)),
            ),
            None => f64::midpoint(scale.edges().0, scale.edges().1),
        }
    }

    fn next_device(&self) -> Option<DeviceIdx> {
        let n_devices = u32::try_from(self.recording.devices().len()).ok()?;
        (n_devices > 1).then(|| DeviceIdx((self.state.device.0 + 1) % n_devices))
    }
}
