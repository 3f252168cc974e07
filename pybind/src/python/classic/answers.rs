//! The core's answers by the classic rules → the dicts that people know.

use gpumem_classic::{
    ClassicFigure, Figures, HiddenGap, Impact, Insight, Pattern, Report, Severity,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::python::list;

pub(super) fn pattern<'py>(py: Python<'py>, pattern: &Pattern) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "pattern_type": pattern.kind,
        "description": &pattern.description,
        "severity": pattern.severity.name(),
        "affected_functions": &pattern.functions,
        "metrics": figures(py, &pattern.metrics)?,
        "suggestions": &pattern.suggestions,
    }))
}

pub(super) fn insight<'py>(py: Python<'py>, insight: &Insight) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "category": insight.category,
        "title": insight.title,
        "description": &insight.description,
        "impact": insight.impact.name(),
        "confidence": insight.confidence,
        "data": figures(py, &insight.data)?,
        "recommendations": &insight.recommendations,
    }))
}

pub(super) fn gap<'py>(py: Python<'py>, gap: &HiddenGap) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "classification": gap.kind.name(),
        "severity": gap.severity.name(),
        "confidence": gap.confidence,
        "evidence": figures(py, &gap.evidence)?,
        "description": &gap.description,
        "remediation": &gap.remediation,
    }))
}

/// The report; `left_out` lists what could not be judged.
pub(super) fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let summary = &report.summary;
    let score = &report.score;
    let patterns = list(py, &report.patterns, pattern)?;
    let insights = list(py, &report.insights, insight)?;
    let recommendations = report.recommendations.iter().map(|it| {
        Ok(dict!(py, {
            "priority": it.priority,
            "category": it.category,
            "description": &it.description,
            "suggestions": &it.suggestions,
        }))
    });
    let recommendations = PyList::new(py, recommendations.collect::<PyResult<Vec<_>>>()?)?;
    let is_critical = report
        .patterns
        .iter()
        .map(|it| it.severity == Severity::Critical);
    let is_high = report.insights.iter().map(|it| it.impact == Impact::High);
    let answer = dict!(py, {
        "summary": dict!(py, {
            "total_functions_analyzed": summary.n_functions,
            "total_function_calls": summary.n_calls,
            "total_memory_allocated": whole(py, summary.allocated)?,
            "total_execution_time": summary.seconds,
            "analysis_timestamp": summary.ended_at,
        }),
        "critical_issues": chosen(&patterns, is_critical)?,
        "high_impact_insights": chosen(&insights, is_high)?,
        "all_patterns": patterns,
        "all_insights": insights,
        "recommendations": recommendations,
        "optimization_score": dict!(py, {
            "score": score.score,
            "grade": score.grade,
            "description": score.description,
            "issues_found": score.n_issues,
        }),
    });
    if !report.left_out.is_empty() {
        answer.set_item("left_out", &report.left_out)?;
    }
    Ok(answer)
}

/// Those of a list, the same objects.
fn chosen<'py>(
    list: &Bound<'py, PyList>,
    is_chosen: impl Iterator<Item = bool>,
) -> PyResult<Bound<'py, PyList>> {
    let both = list.iter().zip(is_chosen);
    PyList::new(
        list.py(),
        both.filter(|(_, is_chosen)| *is_chosen)
            .map(|(item, _)| item)
            .collect::<Vec<_>>(),
    )
}

fn figures<'py>(py: Python<'py>, figures: &Figures) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, figure) in figures {
        match figure {
            ClassicFigure::Whole(value) => dict.set_item(name, whole(py, *value)?)?,
            ClassicFigure::Real(value) => dict.set_item(name, value)?,
            ClassicFigure::Name(value) => dict.set_item(name, value)?,
            ClassicFigure::Names(value) => dict.set_item(name, value)?,
            ClassicFigure::Named(function, value) => dict.set_item(name, (function, value))?,
        }
    }
    Ok(dict)
}

/// An `int` where the figure is whole, as counts and bytes are.
fn whole(py: Python<'_>, figure: f64) -> PyResult<Bound<'_, PyAny>> {
    let float = figure.into_pyobject(py)?;
    if figure.is_finite() && figure.fract() == 0.0 {
        float.call_method0("__int__")
    } else {
        Ok(float.into_any())
    }
}
