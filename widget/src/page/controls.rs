//! What the reader sets: over the report, and in its settings.

use gpumem_charts::Pace;
use gpumem_model::recording::{Device, Recording, Status};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_wording as wording;
use web_sys::{Element, HtmlElement, HtmlInputElement};

use crate::dom::{Maker, add, describe, flag, refill, set_attribute, set_bool, set_style, write};
use crate::keys;
use crate::model::ReportModel;
use crate::settings::ThresholdSetting;
use crate::state::Layer;

/// A group of buttons of which one is pressed: `(argument, words)`.
const UNITS: [(&str, &str); 3] = [("GiB", "GiB"), ("GB", "GB"), ("B", "bytes")];
const PACES: [(&str, &str); 2] = [("runs", "a run"), ("clock", "the clock")];
/// More accelerators than this share one button; their tiles distinguish them.
const MANY_DEVICES: usize = 3;
/// How a report leaves the page.
const EXPORTS: [(&str, &str); 7] = [
    ("slide", "Picture 16:9"),
    ("png", "Picture (PNG)"),
    ("svg", "Picture (SVG)"),
    ("html", "Page (HTML)"),
    ("recording", "Recording"),
    ("markdown", "Copy as Markdown"),
    ("python", "Copy as Python"),
];

/// The line over the charts.
pub(crate) struct PageHeader {
    pub(crate) element: Element,
    title: Element,
    subtitle: Element,
    running: Element,
    devices: Element,
    help_button: Element,
    help: Element,
}

impl PageHeader {
    pub(crate) fn build(make: &Maker) -> Self {
        let title = make.empty("h2", &[]);
        let subtitle = make.empty("span.muted", &[]);
        let running = make.empty("span.running", &[]);
        let devices = make.segments("device");
        let exports = make.empty("div.menu", &[]);
        for (argument, words) in EXPORTS {
            add(&exports, &make.button("export", argument, words));
        }
        // Where there is little room, the menu has the list of keys, too.
        add(&exports, &make.button("help", "", "Keys"));
        let summary = make.text("summary", &[], "Export");
        let export = make.group("details.drop", &[], &[&summary, &exports]);
        let help_button = make.text(
            "button.plain",
            &[
                ("data-action", "help"),
                ("aria-label", "keys"),
                ("title", "keys (?)"),
            ],
            "?",
        );
        let always = make.group("span.always", &[], &[&export, &help_button]);
        let tools = make.group("div.tools", &[], &[&devices, &always]);
        let line = make.group("div.line", &[], &[&title, &subtitle, &running, &tools]);
        let help = help(make);
        let element = make.group("header", &[], &[&line, &help]);
        Self {
            element,
            title,
            subtitle,
            running,
            devices,
            help_button,
            help,
        }
    }

    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let (recording, state) = (model.recording(), model.state());
        let device = recording.devices().get(state.device.get());
        let mut summaries = model.analysis().devices.iter();
        let summary = summaries.find(|summary| summary.device == state.device);
        let capacity = summary.and_then(|summary| summary.capacity);
        let capacity = capacity.map(|it| format!(", {}", state.units.size(it)));
        let label = device.map_or_else(String::new, |device| {
            format!("{}{} · ", device.label, capacity.unwrap_or_default())
        });
        let (title, note) = wording::title(recording);
        let note = note.map_or_else(String::new, |note| format!("{note} · "));
        write(&self.title, title);
        write(
            &self.subtitle,
            &format!("{note}{label}{}", wording::counts(recording)),
        );
        if let Some(device) = device {
            describe(&self.subtitle, "title", &device.name);
        }
        write(
            &self.running,
            &goes_on(model, state.units).unwrap_or_default(),
        );
        let choices = choices(recording, state.device.0);
        if self.devices.child_element_count() as usize != choices.len() {
            flag(&self.devices, "hidden", choices.len() < 2);
        }
        let mut buttons = Vec::new();
        for (words, device, is_pressed) in &choices {
            let button = make.button("device", &device.idx.0.to_string(), words);
            describe(&button, "title", &device.name);
            set_bool(&button, "aria-pressed", *is_pressed);
            buttons.push(button);
        }
        refill(&self.devices, &buttons);
        flag(&self.help, "hidden", !state.help);
        set_bool(&self.help_button, "aria-expanded", state.help);
    }
}

/// The devices to choose from, and whether each is shown: many accelerators are one choice.
fn choices(recording: &Recording, shown: u32) -> Vec<(String, &Device, bool)> {
    let is_accelerator = |device: &&Device| device.kind.is_accelerator();
    let accelerators: Vec<&Device> = recording.devices().iter().filter(is_accelerator).collect();
    let is_shown = |device: &Device| device.idx.0 == shown;
    let mut choices = Vec::new();
    if accelerators.len() > MANY_DEVICES {
        let one = accelerators.iter().find(|device| is_shown(device));
        let words = format!("{} GPUs", accelerators.len());
        choices.push((words, *one.unwrap_or(&accelerators[0]), one.is_some()));
    }
    for device in recording.devices() {
        if accelerators.len() <= MANY_DEVICES || !is_accelerator(&device) {
            choices.push((device.label.clone(), device, is_shown(device)));
        }
    }
    choices
}

/// `In [67] is running: +75 MiB so far`, or that the kernel died in it.
fn goes_on(model: &ReportModel, units: Units) -> Option<String> {
    let runs = model.recording().runs();
    let run = runs.iter().rfind(|run| run.parent.is_none())?;
    if run.ended.is_some() {
        return None;
    }
    let number = run
        .execution_count
        .map_or_else(|| "a cell".to_owned(), |n| format!("In [{n}]"));
    let device = model.state().device;
    let mut rows = model.analysis().rows.iter();
    let row = rows.rfind(|row| row.run == run.idx && row.device == device);
    let kept = row.and_then(|row| Some(row.so_far?.since(row.before?)));
    let kept = kept.filter(|kept| *kept != ByteDelta::ZERO);
    let kept = kept.map(|kept| format!("{} so far", units.change(kept)));
    let long_run = model.long_run(run.cell).filter(|it| it.run() == run.idx);
    let turned = long_run.map(|it| format!("{} {}", it.unit(), it.n_iterations()));
    let known: Vec<String> = turned.into_iter().chain(kept).collect();
    let known = match known.join(", ") {
        known if known.is_empty() => known,
        known => format!(": {known}"),
    };
    let how = match run.status {
        Status::Died => "was running when the kernel died",
        _ => "is running",
    };
    Some(format!("● {number} {how}{known}"))
}

fn help(make: &Maker) -> Element {
    let list = make.empty("dl", &[]);
    for (names, words) in keys::LIST {
        let term = make.empty("dt", &[]);
        for name in names.split(' ') {
            add(&term, &make.text("kbd", &[], name));
        }
        add(&list, &term);
        add(&list, &make.text("dd", &[], words));
    }
    let attributes = [("role", "region"), ("aria-label", "keys"), ("hidden", "")];
    make.group("div.help", &attributes, &[&list])
}

/// The settings: how sizes and time are shown, what counts as growth, and the samples over time.
pub(crate) struct Settings {
    pub(crate) element: Element,
    units: Element,
    layers: Vec<(Layer, HtmlInputElement)>,
    paces: Element,
    whole: Element,
    /// All that is about the samples over time.
    over_time: Vec<Element>,
    thresholds: ThresholdSliders,
    dismissed: Element,
}

impl Settings {
    /// With the canvases of the samples over time.
    pub(crate) fn build(make: &Maker, timeline: &Element, minimap: &Element) -> Self {
        let units = segments(make, "units", "units", &UNITS);
        let paces = segments(make, "time runs", "pace", &PACES);
        let shown = make.empty(
            "span.layers",
            &[("role", "group"), ("aria-label", "timeline shows")],
        );
        let mut layers = Vec::new();
        for layer in Layer::ALL {
            let input: HtmlInputElement = make.typed(
                "input",
                &[
                    ("type", "checkbox"),
                    ("data-input", "layer"),
                    ("data-argument", layer.name()),
                ],
            );
            let words = make.text("span", &[], layer.label());
            let swatch = make.empty("i", &[("class", layer.name())]);
            let label = make.group("label", &[], &[&input, &swatch, &words]);
            add(&shown, &label);
            layers.push((layer, input));
        }
        let thresholds = ThresholdSliders::build(make);
        let dismissed = make.link("restore", "", "");
        let whole = make.text(
            "button.plain",
            &[("data-action", "whole"), ("title", "Home, or double click")],
            "whole session",
        );
        let of_time = make.text("h3", &[], "Samples over time");
        let line = make.group("div.line", &[], &[&of_time, &whole]);
        let charts = make.group("figure.samples", &[], &[timeline, minimap]);
        let row = |words, control: &Element| {
            let words = make.text("span.name", &[], words);
            make.group("div.setting", &[], &[&words, control])
        };
        let units_row = row("Sizes in", &units);
        let step = row("Over time, one step is", &paces);
        let layers_row = row("Over time, show", &shown);
        let parts = [
            &units_row,
            &thresholds.element,
            &dismissed,
            &line,
            &step,
            &layers_row,
            &charts,
        ];
        let element = make.group("div.panel.settings", &[], &parts);
        let over_time = vec![line, step, layers_row, charts];
        Self {
            element,
            units,
            layers,
            paces,
            whole,
            over_time,
            thresholds,
            dismissed,
        }
    }

    pub(crate) fn show(&self, model: &ReportModel) {
        let state = model.state();
        press(&self.units, state.units.name());
        let mut layers = state.layers;
        for (layer, input) in &self.layers {
            input.set_checked(*layer.flag_mut(&mut layers));
        }
        let pace = match state.pace {
            Pace::Runs => "runs",
            Pace::Clock => "clock",
        };
        press(&self.paces, pace);
        flag(&self.whole, "hidden", state.span.is_none());
        for part in &self.over_time {
            flag(part, "hidden", !model.has_samples());
        }
        let n_dismissed = state.dismissed.len();
        write(
            &self.dismissed,
            &format!("Show what was dismissed ({n_dismissed})"),
        );
        flag(&self.dismissed, "disabled", n_dismissed == 0);
        self.thresholds.show(model);
    }
}

/// A threshold of the rules.
struct Slider {
    setting: ThresholdSetting,
    row: Element,
    input: HtmlInputElement,
    mark: HtmlElement,
    value: Element,
    reset: Element,
}

/// The thresholds, among the settings.
struct ThresholdSliders {
    pub(crate) element: Element,
    sliders: Vec<Slider>,
}

impl ThresholdSliders {
    fn build(make: &Maker) -> Self {
        let sliders = ThresholdSetting::ALL
            .into_iter()
            .map(|setting| Slider::build(make, setting))
            .collect::<Vec<_>>();
        let element = make.empty("div.sliders", &[]);
        for slider in &sliders {
            add(&element, &slider.row);
        }
        Self { element, sliders }
    }

    fn show(&self, model: &ReportModel) {
        let is_of_device = |setting: ThresholdSetting| match setting {
            ThresholdSetting::Growth | ThresholdSetting::HostGrowth => {
                model.growth_setting() == setting
            }
            _ => true,
        };
        for slider in &self.sliders {
            flag(&slider.row, "hidden", !is_of_device(slider.setting));
            slider.show(model);
        }
    }
}

impl Slider {
    fn build(make: &Maker, setting: ThresholdSetting) -> Self {
        let input: HtmlInputElement = make.typed(
            "input",
            &[
                ("type", "range"),
                ("min", "0"),
                ("max", &setting.last().to_string()),
                ("step", "1"),
                ("aria-label", setting.label()),
                ("data-input", "threshold"),
                ("data-argument", setting.name()),
            ],
        );
        let mark: HtmlElement = make.typed("span.mark", &[]);
        let value = make.empty("output", &[]);
        let reset = make.link("reset", setting.name(), "");
        let track = make.group("span.track", &[], &[&input, &mark]);
        let label = make.text("span.name", &[], setting.label());
        let control = make.group("label.control", &[], &[&label, &track, &value]);
        let row = make.group("div.setting", &[], &[&control, &reset]);
        Self {
            setting,
            row,
            input,
            mark,
            value,
            reset,
        }
    }

    fn show(&self, model: &ReportModel) {
        let (setting, rules) = (self.setting, model.rules());
        let (recorded, units) = (model.recorded_rules(), model.units());
        let shown = setting.shown(rules, units);
        let (position, recorded_position) = (setting.position(rules), setting.position(recorded));
        self.input.set_value(&position.to_string());
        set_attribute(&self.input, "aria-valuetext", &shown);
        self.value.set_text_content(Some(&shown));
        let share = f64::from(recorded_position) / f64::from(setting.last());
        set_style(&self.mark, "--at", &format!("{share:.4}"));
        let words = setting.recorded(recorded, units);
        self.mark.set_title(&words);
        self.reset.set_text_content(Some(&words));
        flag(&self.reset, "disabled", position == recorded_position);
    }
}

/// Buttons of which one is pressed.
pub(super) fn segments(make: &Maker, label: &str, action: &str, of: &[(&str, &str)]) -> Element {
    let group = make.segments(label);
    for (argument, words) in of {
        add(&group, &make.button(action, argument, words));
    }
    group
}

/// Presses the button of that argument, and lets go of the others.
pub(super) fn press(segments: &Element, argument: &str) {
    let mut next = segments.first_element_child();
    while let Some(button) = next {
        let is_it = button.get_attribute("data-argument").as_deref() == Some(argument);
        set_bool(&button, "aria-pressed", is_it);
        next = button.next_element_sibling();
    }
}
