//! One of several accelerators is chosen by its tile, which says how full it is.

use gpumem_charts::device_tiles;
use gpumem_wording::Sign;
use web_sys::{Element, HtmlElement};

use crate::dom::{Maker, flag, refill, share};
use crate::model::ReportModel;

/// The tiles, where there is a choice.
pub(crate) struct Tiles {
    pub(crate) element: Element,
}

impl Tiles {
    pub(crate) fn build(make: &Maker) -> Self {
        let label = [("role", "group"), ("aria-label", "devices"), ("hidden", "")];
        Self {
            element: make.empty("div.tiles", &label),
        }
    }

    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let (device, units) = (model.state().device, model.units());
        let (tiles, n_more) = device_tiles(model.recording(), model.analysis(), device, units);
        flag(&self.element, "hidden", tiles.is_empty());
        let mut elements = Vec::new();
        for tile in tiles {
            let name = make.text("b", &[], &tile.label);
            let sign = make.text(
                "span.sign",
                &[],
                if tile.leaks { Sign::Alert.glyph() } else { "" },
            );
            let (leaks, rest): (HtmlElement, HtmlElement) =
                (make.typed("i.leak", &[]), make.typed("i", &[]));
            share(&leaks, tile.shares.0);
            share(&rest, tile.shares.1);
            flag(&leaks, "hidden", tile.shares.0 == 0.0);
            let bar = make.group("span.fill", &[], &[&leaks, &rest]);
            let words = make.text("span.muted", &[], &tile.words);
            let pressed = if tile.device == device {
                "true"
            } else {
                "false"
            };
            let attributes = [
                ("data-action", "device"),
                ("data-argument", &*tile.device.0.to_string()),
                ("aria-pressed", pressed),
            ];
            elements.push(make.group("button.tile", &attributes, &[&name, &sign, &bar, &words]));
        }
        if n_more > 0 {
            let words = format!("… and {n_more} more devices");
            elements.push(make.text("span.muted", &[], &words));
        }
        refill(&self.element, &elements);
    }
}
