//! Report, score and grade of the classic rules.

use super::calls::is_usable;
use super::insights::Impact;
use super::{Calls, ClassicThresholds, Insight, Pattern, Severity, insights, patterns};

const N_RECOMMENDATIONS: usize = 10;

/// Figures over all calls: [`Report::summary`].
#[derive(Debug, Clone, PartialEq)]
pub struct CallSummary {
    /// Distinct names.
    pub n_functions: usize,
    /// Calls.
    pub n_calls: usize,
    /// Bytes.
    pub allocated: f64,
    /// Seconds.
    pub seconds: f64,
    /// When the last call ended; `None` if there is none.
    pub ended_at: Option<f64>,
}

/// Something to do. [`Report::recommendations`] lists the most urgent first.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// `high` or `medium`.
    pub priority: &'static str,
    /// The pattern's kind or the insight's category.
    pub category: &'static str,
    /// One sentence.
    pub description: String,
    /// What to do.
    pub suggestions: Vec<String>,
}

/// 100 minus points for each pattern and insight, not below 0. Part of a [`Report`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// From 0 to 100.
    pub score: i64,
    /// From A to F.
    pub grade: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Patterns and insights together.
    pub n_issues: usize,
}

/// Everything that the classic rules find.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Figures over all calls.
    pub summary: CallSummary,
    /// Every pattern.
    pub patterns: Vec<Pattern>,
    /// Every insight.
    pub insights: Vec<Insight>,
    /// At most ten.
    pub recommendations: Vec<Recommendation>,
    /// Score and grade.
    pub score: Score,
    /// What could not be computed: one sentence each.
    pub left_out: Vec<String>,
}

/// Patterns, insights, recommendations and score of the calls.
pub fn report(calls: &Calls, thresholds: &ClassicThresholds) -> Report {
    let insights = insights(calls, thresholds);
    report_on(calls, patterns(calls, thresholds), insights)
}

/// The report on calls whose patterns and insights are already known.
pub fn report_on(
    calls: &Calls,
    patterns: Vec<Pattern>,
    (insights, unattributed): (Vec<Insight>, Vec<String>),
) -> Report {
    Report {
        summary: summary(calls),
        recommendations: recommendations(&patterns, &insights),
        score: score(&patterns, &insights),
        patterns,
        insights,
        left_out: [calls.left_out(), unattributed].concat(),
    }
}

/// The score of these findings.
fn score(patterns: &[Pattern], insights: &[Insight]) -> Score {
    let of_patterns: i64 = patterns
        .iter()
        .map(|pattern| match pattern.severity {
            Severity::Critical => 20,
            Severity::Warning => 10,
            Severity::Info => 5,
        })
        .sum();
    let of_insights: i64 = insights
        .iter()
        .map(|insight| match insight.impact {
            Impact::High => 15,
            Impact::Medium => 8,
        })
        .sum();
    let score = (100 - of_patterns - of_insights).max(0);
    let (grade, description) = match score {
        90.. => ("A", "little to do"),
        80.. => ("B", "good, with a few things to look at"),
        70.. => ("C", "works, and could do with less memory"),
        60.. => ("D", "memory is wasted or lost in several places"),
        _ => ("F", "memory will run out or is mostly wasted"),
    };
    Score {
        score,
        grade,
        description,
        n_issues: patterns.len() + insights.len(),
    }
}

fn summary(calls: &Calls) -> CallSummary {
    let total = |figures: &[f64]| calls.usable(figures).map(|(_, figure)| figure).sum();
    CallSummary {
        n_functions: calls.n_functions(),
        n_calls: calls.len(),
        allocated: total(&calls.allocated),
        seconds: total(&calls.seconds),
        ended_at: calls.ended_at.filter(|at| is_usable(*at)),
    }
}

/// Critical patterns, then insights of high impact, then warnings.
fn recommendations(patterns: &[Pattern], insights: &[Insight]) -> Vec<Recommendation> {
    let of_pattern = |priority: &'static str| {
        move |pattern: &Pattern| Recommendation {
            priority,
            category: pattern.kind,
            description: pattern.description.clone(),
            suggestions: pattern.suggestions.clone(),
        }
    };
    let with = |severity: Severity| {
        patterns
            .iter()
            .filter(move |pattern| pattern.severity == severity)
    };
    let of_insights = insights
        .iter()
        .filter(|insight| insight.impact == Impact::High)
        .map(|insight| Recommendation {
            priority: "high",
            category: insight.category,
            description: insight.description.clone(),
            suggestions: insight.recommendations.clone(),
        });
    with(Severity::Critical)
        .map(of_pattern("high"))
        .chain(of_insights)
        .chain(with(Severity::Warning).map(of_pattern("medium")))
        .take(N_RECOMMENDATIONS)
        .collect()
}
