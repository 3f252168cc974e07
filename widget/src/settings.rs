//! The thresholds that the reader moves, each a slider of whole positions: size, runs and share. Those of the
//! statistics are set from Python.

use gpumem_model::recording::DeviceKind;
use gpumem_model::rules::{FEWEST_RUNS, Rules, Threshold};
use gpumem_model::units::{Bytes, Units};

use crate::threshold;

/// A threshold of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThresholdSetting {
    /// The smallest growth that counts on a device.
    Growth,
    /// The same for host memory.
    HostGrowth,
    /// The fewest runs for a leak.
    Runs,
    /// The share of free cache above which fragmentation is analysed.
    Cache,
}

impl ThresholdSetting {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Growth, Self::HostGrowth, Self::Runs, Self::Cache];

    /// The name in the page and in what is saved.
    pub(crate) const fn name(self) -> &'static str {
        self.threshold().name()
    }

    /// Which threshold it moves.
    const fn threshold(self) -> Threshold {
        match self {
            Self::Growth => Threshold::MinGrowth,
            Self::HostGrowth => Threshold::MinHostGrowth,
            Self::Runs => Threshold::MinRuns,
            Self::Cache => Threshold::FragmentationRatio,
        }
    }

    /// The one of growth on a device of that kind.
    pub(crate) fn of_growth(kind: DeviceKind) -> Self {
        let of_growth = kind.growth_threshold();
        let mut all = Self::ALL.into_iter();
        let setting = all.find(|setting| setting.threshold() == of_growth);
        setting.unwrap_or(Self::Growth)
    }

    /// The setting of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.name() == name)
    }

    /// What people read beside the slider.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Growth => "Smallest growth that counts",
            Self::HostGrowth => "The same on the host",
            Self::Runs => "Runs that tell a leak",
            Self::Cache => "Free cache that is looked into",
        }
    }

    /// The last position; the first is 0.
    pub(crate) const fn last(self) -> u32 {
        match self {
            Self::Growth | Self::HostGrowth => threshold::LAST,
            Self::Runs => 27,
            Self::Cache => 18,
        }
    }

    /// Where the slider stands under these rules.
    pub(crate) fn position(self, rules: &Rules) -> u32 {
        let position = match self {
            Self::Growth => threshold::position_of(rules.min_growth),
            Self::HostGrowth => threshold::position_of(rules.min_host_growth),
            Self::Runs => u32::try_from(rules.min_runs)
                .unwrap_or(u32::MAX)
                .saturating_sub(FEWEST_RUNS),
            Self::Cache => (rules.fragmentation_ratio * 20.0).round() as u32 - 1,
        };
        position.min(self.last())
    }

    /// Moves the slider.
    pub(crate) fn set(self, rules: &mut Rules, position: u32) {
        let position = position.min(self.last());
        match self {
            Self::Growth => rules.min_growth = threshold::size_at(position),
            Self::HostGrowth => rules.min_host_growth = threshold::size_at(position),
            Self::Runs => rules.min_runs = (position + FEWEST_RUNS) as usize,
            Self::Cache => rules.fragmentation_ratio = f64::from(position + 1) / 20.0,
        }
    }

    /// Moves the slider to the recording's threshold, which may lie between two positions.
    pub(crate) fn reset(self, rules: &mut Rules, recorded: &Rules) {
        match self {
            Self::Growth => rules.min_growth = recorded.min_growth,
            Self::HostGrowth => rules.min_host_growth = recorded.min_host_growth,
            Self::Runs => rules.min_runs = recorded.min_runs,
            Self::Cache => rules.fragmentation_ratio = recorded.fragmentation_ratio,
        }
    }

    /// The threshold in words.
    pub(crate) fn shown(self, rules: &Rules, units: Units) -> String {
        let size = |bytes: Bytes| units.size(bytes);
        match self {
            Self::Growth => size(rules.min_growth),
            Self::HostGrowth => size(rules.min_host_growth),
            Self::Runs => format!("{} runs", rules.min_runs),
            Self::Cache => format!("{:.0} %", rules.fragmentation_ratio * 100.0),
        }
    }

    /// The threshold of the recording in words, which a reset goes back to.
    pub(crate) fn recorded(self, rules: &Rules, units: Units) -> String {
        let is_moved = rules.moved().any(|it| it == self.threshold());
        let whose = if is_moved { "recording's " } else { "default " };
        whose.to_owned() + &self.shown(rules, units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_found_again() {
        for setting in ThresholdSetting::ALL {
            for position in 0..=setting.last() {
                let mut rules = Rules::default();
                setting.set(&mut rules, position);
                assert_eq!(setting.position(&rules), position, "{setting:?}");
            }
        }
    }

    #[test]
    fn a_reset_goes_between_two_positions() {
        let recorded = Rules {
            min_growth: Bytes::mib(5),
            ..Rules::default()
        };
        let mut rules = Rules::default();
        ThresholdSetting::Growth.reset(&mut rules, &recorded);
        assert_eq!(rules, recorded);
    }

    #[test]
    fn only_the_defaults_are_called_so() {
        let rules = Rules {
            min_runs: 12,
            ..Rules::default()
        };
        let words = |setting: ThresholdSetting| setting.recorded(&rules, Units::Binary);
        assert_eq!(words(ThresholdSetting::Runs), "recording's 12 runs");
        assert_eq!(words(ThresholdSetting::Growth), "default 1 MiB");
    }

    #[test]
    fn the_defaults_have_a_position_of_their_own() {
        let usual = Rules::default();
        for setting in ThresholdSetting::ALL {
            let mut rules = usual;
            setting.set(&mut rules, setting.position(&usual));
            let [shown, expected] = [rules, usual].map(|it| setting.shown(&it, Units::Binary));
            assert_eq!(shown, expected);
        }
    }
}
