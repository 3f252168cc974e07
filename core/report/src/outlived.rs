//! What should be dead, as soon as somebody asks.

use gpumem_heap::Holders;
use gpumem_model::holders::Outlived;
use gpumem_model::units::Units;
use gpumem_wording::{Sign, outlived};

use super::{to_text, wrapped};

/// Who keeps what these variables held, which are gone: two lines for each, at most `width` columns wide.
/// Empty if nobody does.
pub fn outlived_lines(found: &Holders, names: &[String], is_deleted: bool, width: usize) -> String {
    let all = found.devices.iter().flat_map(|it| &it.outlived);
    let of_names = all.filter(|it| names.contains(&it.name) && !it.is_rebound);
    let lines = of_names.flat_map(|it| lines(it, is_deleted, width));
    to_text(&lines.collect::<Vec<_>>())
}

fn lines(found: &Outlived, is_deleted: bool, width: usize) -> impl Iterator<Item = String> {
    let (title, way_out) = outlived(found, is_deleted, Units::Binary);
    let title = wrapped(&format!("{} {}", Sign::Note, title.plain()), width);
    let way_out = format!("  {}", way_out.plain());
    // Code is never broken.
    let way_out = if found.code.is_empty() {
        wrapped(&way_out, width)
    } else {
        way_out
    };
    let way_out = (!way_out.trim().is_empty()).then_some(way_out);
    [title].into_iter().chain(way_out)
}
