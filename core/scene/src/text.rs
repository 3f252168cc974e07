//! How wide a text is, decided by a table: the same natively and in the browser,
//! so that what is cut and what is left out does not depend on installed fonts.

use crate::Face;

const ELLIPSIS: char = '…';

/// Advances of the letters from space to tilde in thousandths of the font size.
/// They are those of the bundled fonts; other sans-serifs run narrower.
type Advances = [u16; 95];

#[rustfmt::skip]
const SANS: Advances = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
    603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

#[rustfmt::skip]
const BOLD: Advances = [
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365,
    696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580,
    1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850,
    733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500,
    500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687,
    716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
];

const MONO_ADVANCE: u16 = 602;
/// What East Asian letters and pictographs take.
const WIDE: u16 = 1000;
/// What other letters and signs take at most, near enough.
const OTHER: u16 = 840;

/// The width of a text in logical pixels; `size` as in CSS.
pub fn width(text: &str, face: Face, size: f64) -> f64 {
    let thousandths: u32 = text.chars().map(|c| u32::from(advance(c, face))).sum();
    f64::from(thousandths) * size / 1000.0
}

/// The text, cut so that it fits with an ellipsis; empty where not even one
/// letter and the ellipsis do.
pub fn fitted(text: &str, face: Face, size: f64, room: f64) -> String {
    if width(text, face, size) <= room {
        return text.to_owned();
    }
    let mut used = width(&ELLIPSIS.to_string(), face, size);
    let mut kept = String::new();
    for letter in text.chars() {
        used += f64::from(advance(letter, face)) * size / 1000.0;
        if used > room {
            break;
        }
        kept.push(letter);
    }
    kept.truncate(kept.trim_end().len());
    if !kept.is_empty() {
        kept.push(ELLIPSIS);
    }
    kept
}

fn advance(letter: char, face: Face) -> u16 {
    let wide = matches!(u32::from(letter), 0x1100..=0x115f | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe4f | 0xff00..=0xff60 | 0x1_f000..);
    let of = |table: &Advances| {
        let idx = u32::from(letter).checked_sub(u32::from(' '));
        let known = idx.and_then(|idx| table.get(idx as usize)).copied();
        known.unwrap_or(if letter == ELLIPSIS { WIDE } else { OTHER })
    };
    match face {
        _ if wide => WIDE,
        Face::Mono => MONO_ADVANCE,
        Face::Sans => of(&SANS),
        Face::Bold => of(&BOLD),
    }
}

/// The text on at most `most` lines, broken between words; what does not fit is cut.
pub fn lines(text: &str, face: Face, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let n_lines = lines.len();
        let line = &mut lines[n_lines - 1];
        let space = if line.is_empty() { "" } else { " " };
        let longer = format!("{line}{space}{word}");
        let is_last = n_lines == most;
        if line.is_empty() || is_last || width(&longer, face, size) <= room {
            *line = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
        .iter()
        .map(|line| fitted(line, face, size, room))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::text::*;

    #[track_caller]
    fn check(text: &str, room: f64, shown: &str) {
        assert_eq!(fitted(text, Face::Mono, 10.0, room), shown);
    }

    #[test]
    fn a_text_is_cut_where_it_does_not_fit() {
        check("import torch", 73.0, "import torch");
        check("import torch", 48.0, "import…");
        check("import torch", 42.0, "impor…");
        check("import torch", 12.1, "i…");
        check("import torch", 12.0, "");
    }

    #[test]
    fn a_long_text_is_broken_between_words_and_cut_at_the_end() {
        let broken =
            |room: f64, most: usize| lines("import torch as nn", Face::Mono, 10.0, room, most);
        assert_eq!(broken(200.0, 3), ["import torch as nn"]);
        assert_eq!(broken(80.0, 3), ["import torch", "as nn"]);
        assert_eq!(broken(45.0, 2), ["import", "torch…"]);
    }

    proptest! {
        #[test]
        fn a_cut_text_fits(text in "\\PC{0,40}", room in 0.0..200.0_f64) {
            let shown = fitted(&text, Face::Sans, 11.0, room);
            prop_assert!(width(&shown, Face::Sans, 11.0) <= room);
        }
    }
}
