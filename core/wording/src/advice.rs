//! What to do against growth.

use gpumem_analyzer::Advice;

pub(super) fn against_growth(advice: &Advice) -> String {
    match advice {
        Advice::KeepNumbers { list } => format!(
            "`{list}` is appended to and never emptied; if it holds tensors, keep numbers \
             (`.item()` of a scalar) or `.detach()` them"
        ),
        Advice::LookAt { path } => {
            format!("keep only what you need of it: the largest is `{path}`")
        }
        Advice::FindWhatLoopCollects => {
            "find what the loop collects: a list, a dict, a tensor that is added to \
             (`total += loss` keeps every graph; `total += loss.item()` does not)"
                .to_owned()
        }
        Advice::FindWhatOutlives => {
            "find what outlives the cell and grows with every run: a list or a dict (empty it at the top \
             of the cell), or displayed results (end their line with `;`)"
                .to_owned()
        }
        Advice::NoGrad { framework } => format!(
            "if no backward pass follows, compute under `{framework}.no_grad()`: then no graph keeps the activations"
        ),
    }
}
