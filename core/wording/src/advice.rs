//! What to do against growth.

use super::{Prose, code, prose};
use gpumem_analyzer::Advice;
use gpumem_model::holders::RootKind;

/// How a tensor that its own graph keeps is not kept in the next run; what is kept now stays.
pub(super) fn against_graph_cycle(kind: RootKind) -> Prose {
    match kind {
        RootKind::HookCycle => prose![
            "Python's collector does not see the graph: return ",
            code("t.detach()"),
            " from the pack hook of ",
            code("saved_tensors_hooks"),
            ", or compute under ",
            code("torch.no_grad()")
        ],
        RootKind::GradientCycle => prose![
            "after ",
            code("backward(create_graph=True)"),
            " the gradient keeps a graph of its parameter: set ",
            code(".grad = None"),
            " once it is used, or take gradients with ",
            code("torch.autograd.grad")
        ],
        _ => prose![
            "Python's collector does not see the graph: save it with ",
            code("ctx.save_for_backward"),
            " instead of an attribute of ",
            code("ctx"),
            ", or keep ",
            code(".detach()"),
            " of it"
        ],
    }
}

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
        Advice::LookAt { path } => look_at(path),
        Advice::RemoveHooks { object } => prose![
            "hooks of ",
            code(object),
            " keep it: register each once, or call ",
            code(".remove()"),
            " of the handle that registering returns"
        ],
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
        Advice::LookAtLibraries => "C or C++ code may keep it: a profiler, compiled shapes, a plan cache; or malloc has not \
             given back what was freed"
            .into(),
        Advice::BreakGraphCycle { kind } => against_graph_cycle(*kind),
        Advice::NoGrad { framework } => prose![
            "if no backward pass follows, compute under ",
            code(&format!("{framework}.no_grad()")),
            ": then no graph keeps the activations"
        ],
    }
}

/// The largest object, whose path may lead through what Python has no expression for.
fn look_at(path: &str) -> Prose {
    let largest = "keep only what you need of it: the largest is ";
    if let Some((tensor, _)) = path.split_once(".grad_fn") {
        return prose![largest, "in the graph of ", code(tensor)];
    }
    let Some((object, inside)) = path.split_once(".<") else {
        return prose![largest, code(path)];
    };
    let variable_of = |step: &str| {
        let (_, variable) = inside.rsplit_once(step)?;
        (!variable.contains('<')).then_some(variable)
    };
    let variable = variable_of("locals>.").or_else(|| variable_of("closure>."));
    let Some(variable) = variable else {
        return prose![largest, "below ", code(object)];
    };
    prose![
        largest,
        code(variable),
        ", a variable of a function below ",
        code(object)
    ]
}

#[cfg(test)]
mod tests {
    use super::look_at;

    #[test]
    fn a_path_that_is_no_expression_is_put_into_words() {
        let check = |path: &str, expected: &str| {
            let said = look_at(path).plain();
            let said = said.strip_prefix("keep only what you need of it: the largest is ");
            assert_eq!(said, Some(expected));
        };
        check("trainer.logs[3]", "trainer.logs[3]");
        check(
            "registry[<finalize>].args[1]",
            "registry[<finalize>].args[1]",
        );
        check(
            "pending.<element>.<inside>.<locals>.x",
            "x, a variable of a function below pending",
        );
        check(
            "hooks[0].<closure>.store[36]",
            "store[36], a variable of a function below hooks[0]",
        );
        check("losses[3].grad_fn._saved_self", "in the graph of losses[3]");
        check("rows._mgr.<inside>[1]", "below rows._mgr");
    }
}
