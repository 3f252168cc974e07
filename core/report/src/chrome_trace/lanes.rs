//! Slices of one track must be nested. What overlaps otherwise, as two tasks do, goes to another track.

use super::event::Micros;

/// The tracks so far: for each, the ends of the slices that are open, outermost first.
#[derive(Debug, Default)]
pub(super) struct Lanes(Vec<Vec<Micros>>);

impl Lanes {
    /// A track where these times fit, if possible this one. Slices are placed in the order in which
    /// they begin, longer ones first.
    pub(super) fn place(&mut self, preferred: usize, (start, end): (Micros, Micros)) -> usize {
        let others = 0..self.0.len();
        let mut tried = std::iter::once(preferred).chain(others);
        let lane = tried.find(|lane| self.fits(*lane, start, end));
        let lane = lane.unwrap_or(self.0.len());
        if lane >= self.0.len() {
            self.0.resize(lane + 1, Vec::new());
        }
        self.0[lane].push(end);
        lane
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn fits(&mut self, lane: usize, start: Micros, end: Micros) -> bool {
        let Some(open) = self.0.get_mut(lane) else {
            return false;
        };
        while open.pop_if(|end| *end <= start).is_some() {}
        open.last().is_none_or(|around| end <= *around)
    }
}
