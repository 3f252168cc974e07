//! What the reader sets: over the charts, and over the findings.

use gpumem_core::chart::{Measure, Pace};
use gpumem_core::decimal::rounded;
use gpumem_core::report;
use web_sys::{Element, HtmlElement, HtmlInputElement};

use crate::dom::{Dom, Maker, describe, fill, flag, write};
use crate::keys;
use crate::model::Model;
use crate::settings::Setting;
use crate::state::{Choice, Layer, cells_with};

/// A group of buttons of which one is pressed: `(argument, words)`.
const MEASURES: [(&str, &str); 2] = [("kept", "kept"), ("level", "level")];
/// How sizes are shown.
const UNITS: [(&str, &str); 3] = [("GiB", "GiB"), ("GB", "GB"), ("B", "bytes")];
const PACES: [(&str, &str); 2] = [("runs", "runs"), ("clock", "clock")];
/// How a report leaves the page.
const EXPORTS: [(&str, &str); 6] = [
    ("png", "Picture (PNG)"),
    ("svg", "Picture (SVG)"),
    ("csv", "Runs (CSV)"),
    ("recording", "Recording"),
    ("markdown", "Copy as Markdown"),
    ("python", "Copy as Python"),
];

/// The line over the charts.
pub(crate) struct Header {
    pub(crate) element: Element,
    subtitle: Element,
    measures: Element,
    units: Element,
    devices: Element,
    help_button: Element,
    help: Element,
}

impl Header {
    pub(crate) fn build(make: &Maker) -> Dom<Self> {
        let name = make.text("h2", &[], "GPU memory")?;
        let subtitle = make.empty("span", &[("class", "muted")])?;
        let measures = segments(make, "bars show", "measure", &MEASURES)?;
        let units = segments(make, "units", "units", &UNITS)?;
        let devices = make.empty(
            "div",
            &[
                ("class", "segments"),
                ("role", "group"),
                ("aria-label", "device"),
            ],
        )?;
        let exports = make.empty("div", &[("class", "menu")])?;
        for (argument, words) in EXPORTS {
            exports.append_child(&button(make, "export", argument, words)?.into())?;
        }
        let summary = make.text("summary", &[], "Export")?;
        let export = make.group("details", &[("class", "drop")], &[&summary, &exports])?;
        let help_button = make.text(
            "button",
            &[
                ("type", "button"),
                ("class", "plain"),
                ("data-action", "help"),
                ("aria-label", "keys"),
                ("title", "keys (?)"),
            ],
            "?",
        )?;
        let always = make.group("span", &[("class", "always")], &[&export, &help_button])?;
        let tools = make.group(
            "div",
            &[("class", "tools")],
            &[&measures, &devices, &units, &always],
        )?;
        let line = make.group("div", &[("class", "line")], &[&name, &subtitle, &tools])?;
        let help = help(make)?;
        let element = make.group("header", &[], &[&line, &help])?;
        Ok(Self {
            element,
            subtitle,
            measures,
            units,
            devices,
            help_button,
            help,
        })
    }

    pub(crate) fn show(&self, make: &Maker, model: &Model) -> Dom<()> {
        let (recording, state) = (model.recording(), model.state());
        let device = recording.devices().get(state.device.get());
        let label = device.map_or_else(String::new, |device| {
            format!(" · {} {}", device.label, device.name)
        });
        let subtitle = format!("{}{label}", report::counts(recording));
        write(&self.subtitle, &subtitle);
        let measure = match state.measure {
            Measure::Kept => "kept",
            Measure::Level => "level",
        };
        press(&self.measures, measure)?;
        press(&self.units, state.units.name())?;
        let known: Vec<String> = recording
            .devices()
            .iter()
            .map(|d| d.idx.0.to_string())
            .collect();
        if self.devices.child_element_count() as usize != known.len() {
            let mut buttons = Vec::new();
            for (device, idx) in recording.devices().iter().zip(&known) {
                let button = button(make, "device", idx, &device.label)?;
                describe(&button, "title", &device.name)?;
                buttons.push(button);
            }
            flag(&self.devices, "hidden", buttons.len() < 2)?;
            fill(&self.devices, &buttons)?;
        }
        press(&self.devices, &state.device.0.to_string())?;
        flag(&self.help, "hidden", !state.help)?;
        let expanded = if state.help { "true" } else { "false" };
        Ok(self.help_button.set_attribute("aria-expanded", expanded)?)
    }
}

fn help(make: &Maker) -> Dom<Element> {
    let list = make.empty("dl", &[])?;
    for (names, words) in keys::LIST {
        let term = make.empty("dt", &[])?;
        for name in names.split(' ') {
            term.append_child(&make.text("kbd", &[], name)?.into())?;
        }
        list.append_child(&term)?;
        list.append_child(&make.text("dd", &[], words)?.into())?;
    }
    let attributes = [
        ("class", "help"),
        ("role", "region"),
        ("aria-label", "keys"),
        ("hidden", ""),
    ];
    make.group("div", &attributes, &[&list])
}

/// The line between the growth chart and the timeline.
pub(crate) struct Tools {
    pub(crate) element: Element,
    search: HtmlInputElement,
    found: Element,
    layers: Vec<(Layer, HtmlInputElement)>,
    paces: Element,
    whole: Element,
}

impl Tools {
    pub(crate) fn build(make: &Maker) -> Dom<Self> {
        let search: HtmlInputElement = make.typed(
            "input",
            &[
                ("type", "search"),
                ("class", "search"),
                ("placeholder", "find a cell"),
                ("aria-label", "find cells by their source"),
                ("data-input", "search"),
                ("autocomplete", "off"),
                ("spellcheck", "false"),
                ("dir", "auto"),
            ],
        )?;
        let found = make.empty("output", &[("class", "muted")])?;
        let shown = make.empty(
            "span",
            &[
                ("class", "layers"),
                ("role", "group"),
                ("aria-label", "timeline shows"),
            ],
        )?;
        let mut layers = Vec::new();
        for layer in Layer::ALL {
            let input: HtmlInputElement = make.typed(
                "input",
                &[
                    ("type", "checkbox"),
                    ("data-input", "layer"),
                    ("data-argument", layer.name()),
                ],
            )?;
            let words = make.text("span", &[], layer.name())?;
            let label = make.group("label", &[], &[&input, &words])?;
            shown.append_child(&label)?;
            layers.push((layer, input));
        }
        let paces = segments(make, "time runs", "pace", &PACES)?;
        let whole = make.text(
            "button",
            &[
                ("type", "button"),
                ("class", "plain"),
                ("data-action", "whole"),
                ("title", "Home, or double click"),
            ],
            "whole session",
        )?;
        let right = make.group("div", &[("class", "tools")], &[&whole, &shown, &paces])?;
        let element = make.group(
            "div",
            &[("class", "line between")],
            &[&search, &found, &right],
        )?;
        Ok(Self {
            element,
            search,
            found,
            layers,
            paces,
            whole,
        })
    }

    pub(crate) fn show(&self, model: &Model) -> Dom<()> {
        let state = model.state();
        let mut layers = state.layers;
        for (layer, input) in &self.layers {
            input.set_checked(*layer.of(&mut layers));
        }
        let pace = match state.pace {
            Pace::Runs => "runs",
            Pace::Clock => "clock",
        };
        press(&self.paces, pace)?;
        flag(&self.whole, "hidden", state.span.is_none())?;
        let text = match &state.chosen {
            Some(Choice::Search(text)) => text.as_str(),
            _ => "",
        };
        // While somebody types, the field has blanks that the search has not.
        if self.search.value().trim() != text {
            self.search.set_value(text);
        }
        let found = (!text.is_empty()).then(|| {
            let cells = cells_with(model.recording(), text);
            let runs = model.recording().runs().iter();
            let n_runs = runs
                .filter(|run| cells.binary_search(&run.cell).is_ok())
                .count();
            format!(
                "{} found, {}",
                counted(cells.len(), "cell"),
                counted(n_runs, "run")
            )
        });
        self.found.set_text_content(found.as_deref());
        Ok(())
    }

    /// The keyboard goes into the search field.
    pub(crate) fn focus_search(&self) -> Dom<()> {
        Ok(self.search.focus()?)
    }
}

/// A threshold of the rules.
struct Slider {
    setting: Setting,
    row: Element,
    input: HtmlInputElement,
    mark: HtmlElement,
    value: Element,
    reset: Element,
}

/// The thresholds, over the findings.
pub(crate) struct Thresholds {
    pub(crate) element: Element,
    sliders: Vec<Slider>,
}

impl Thresholds {
    pub(crate) fn build(make: &Maker) -> Dom<Self> {
        let sliders = Setting::ALL
            .into_iter()
            .map(|setting| Slider::build(make, setting))
            .collect::<Dom<Vec<_>>>()?;
        let list = make.empty("div", &[("class", "sliders")])?;
        for slider in &sliders {
            list.append_child(&slider.row)?;
        }
        let summary = make.text("summary", &[], "Thresholds")?;
        let element = make.group("details", &[("class", "thresholds")], &[&summary, &list])?;
        Ok(Self { element, sliders })
    }

    pub(crate) fn show(&self, model: &Model) -> Dom<()> {
        let is_of_device = |setting: Setting| match setting {
            Setting::Growth | Setting::HostGrowth => model.growth_setting() == setting,
            Setting::Runs | Setting::Cache => true,
        };
        for slider in &self.sliders {
            flag(&slider.row, "hidden", !is_of_device(slider.setting))?;
            slider.show(model)?;
        }
        Ok(())
    }
}

impl Slider {
    fn build(make: &Maker, setting: Setting) -> Dom<Self> {
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
        )?;
        let mark: HtmlElement = make.typed("span", &[("class", "mark")])?;
        let value = make.empty("output", &[])?;
        let reset = make.link("reset", setting.name(), "")?;
        let track = make.group("span", &[("class", "track")], &[&input, &mark])?;
        let label = make.text("span", &[("class", "name")], setting.label())?;
        let control = make.group("label", &[("class", "control")], &[&label, &track, &value])?;
        let row = make.group("div", &[("class", "setting")], &[&control, &reset])?;
        Ok(Self {
            setting,
            row,
            input,
            mark,
            value,
            reset,
        })
    }

    fn show(&self, model: &Model) -> Dom<()> {
        let (setting, rules) = (self.setting, model.rules());
        let (recorded, units) = (model.recorded_rules(), model.units());
        let shown = setting.shown(rules, units);
        let (position, recorded_position) = (setting.position(rules), setting.position(recorded));
        self.input.set_value(&position.to_string());
        self.input.set_attribute("aria-valuetext", &shown)?;
        self.value.set_text_content(Some(&shown));
        let share = f64::from(recorded_position) / f64::from(setting.last());
        self.mark.style().set_property("--at", &rounded(share, 4))?;
        let words = setting.recorded(recorded, units);
        self.mark.set_title(&words);
        self.reset.set_text_content(Some(&words));
        flag(&self.reset, "disabled", position == recorded_position)
    }
}

/// Buttons of which one is pressed.
pub(super) fn segments(
    make: &Maker,
    label: &str,
    action: &str,
    of: &[(&str, &str)],
) -> Dom<Element> {
    let attributes = [
        ("class", "segments"),
        ("role", "group"),
        ("aria-label", label),
    ];
    let group = make.empty("div", &attributes)?;
    for (argument, words) in of {
        group.append_child(&button(make, action, argument, words)?.into())?;
    }
    Ok(group)
}

fn button(make: &Maker, action: &str, argument: &str, words: &str) -> Dom<Element> {
    let attributes = [
        ("type", "button"),
        ("data-action", action),
        ("data-argument", argument),
    ];
    make.text("button", &attributes, words)
}

/// Presses the button of that argument, and lets go of the others.
pub(super) fn press(segments: &Element, argument: &str) -> Dom<()> {
    let mut next = segments.first_element_child();
    while let Some(button) = next {
        let is_it = button.get_attribute("data-argument").as_deref() == Some(argument);
        button.set_attribute("aria-pressed", if is_it { "true" } else { "false" })?;
        next = button.next_element_sibling();
    }
    Ok(())
}

fn counted(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}
