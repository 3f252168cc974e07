//! What to do against growth.

use super::{Prose, code, prose};
use gpumem_analyzer::Advice;

pub(super) fn against_growth(advice: &Advice) -> Prose {
    match advice {
        Advice::KeepNumbers { list } => prose![
            code(list),
            " is appended to and never emptied; if it holds tensors, keep numbers (",
            code(".item()"),
            " of a scalar) or ",
            code(".detach()"),
            " them"
        ],
        Advice::LookAt { path } => {
            prose!["keep only what you need of it: the largest is ", code(path)]
        }
        Advice::FindWhatLoopCollects => prose![
            "find what the loop collects: a list, a dict, a tensor that is added to (",
            code("total += loss"),
            " keeps every graph; ",
            code("total += loss.item()"),
            " does not)"
        ],
        Advice::FindWhatOutlives => prose![
            "find what outlives the cell and grows with every run: a list or a dict (empty it at the top of the \
             cell), or displayed results (end their line with ",
            code(";"),
            ")"
        ],
        Advice::NoGrad { framework } => prose![
            "if no backward pass follows, compute under ",
            code(&format!("{framework}.no_grad()")),
            ": then no graph keeps the activations"
        ],
    }
}
