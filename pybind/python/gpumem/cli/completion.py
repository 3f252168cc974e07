"""``completion``: what a shell needs to complete commands and options, made from their parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpumem.cli import exits

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

ABOUT = """Print the completion of a shell: of commands, options and files, after `jupyter gpumem`
and `jupyter-gpumem`."""

EXAMPLES = """examples:
  source <(jupyter gpumem completion bash)      # in ~/.bashrc
  source <(jupyter gpumem completion zsh)       # in ~/.zshrc, after compinit
  jupyter gpumem completion fish | source       # in ~/.config/fish/config.fish"""

# What Jupyter itself completes after `jupyter` stays.
BASH = r"""_gpumem() {
    local at=$COMP_CWORD words=("${COMP_WORDS[@]}") options
    [[ ${words[0]##*/} == jupyter ]] && words=("${words[@]:1}") at=$((at - 1))
    case $at:${words[1]} in
        1:*) options="%(commands)s" ;;
%(cases)s
    esac
    if [[ $at == 1 || ${words[at]} == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "${words[at]}"))
    fi
}
_gpumem_jupyter() {
    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == gpumem ]]; then
        _gpumem
    elif [[ -n $_gpumem_before ]]; then
        "$_gpumem_before" "$@"
    elif [[ $COMP_CWORD == 1 ]]; then
        COMPREPLY=($(compgen -W gpumem -- "$2"))
    fi
}
if [[ $(complete -p jupyter 2>/dev/null) =~ -F\ ([^ ]+) ]]; then
    [[ ${BASH_REMATCH[1]} == _gpumem_jupyter ]] || _gpumem_before=${BASH_REMATCH[1]}
fi
complete -o default -F _gpumem jupyter-gpumem
complete -o default -F _gpumem_jupyter jupyter
"""

# zsh takes bash's.
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"

SEEN = "__fish_seen_subcommand_from"

Completed = dict[str, tuple[str, dict[str, str]]]
"""The help of each command and of its options."""


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: Namespace) -> int:
    """Print the completion."""
    from gpumem.cli import COMMANDS, parsers

    _, found = parsers("jupyter gpumem")
    completed = {it: (COMMANDS[it], _options(parser)) for it, parser in found.items()}
    print(SHELLS[options.shell](completed), end="")
    return exits.OK


def _options(parser: ArgumentParser) -> dict[str, str]:
    actions = [it for it in parser._actions if it.option_strings]
    help_of = {it: " ".join((it.help or "").replace("%%", "%").split()) for it in actions}
    return {name: help_of[it] for it in actions for name in it.option_strings}


def _bash(completed: Completed) -> str:
    cases = [f'        *:{it}) options="{" ".join(own)}" ;;' for it, (_, own) in completed.items()]
    return BASH % {"commands": " ".join(completed), "cases": "\n".join(cases)}


def _zsh(completed: Completed) -> str:
    return ZSH + _bash(completed)


def _fish(completed: Completed) -> str:
    lines = ["complete -c jupyter -n __fish_use_subcommand -a gpumem"]
    for program, is_ours in (("jupyter-gpumem", ""), ("jupyter", f"{SEEN} gpumem; and ")):
        begin = f"complete -c {program} -n '{is_ours}"
        for command, (purpose, options) in completed.items():
            no_other = f"not {SEEN} {' '.join(completed)}"
            lines.append(f"{begin}{no_other}' -f -a {command} -d {_quoted(purpose)}")
            for option, text in options.items():
                kind = "-l" if option.startswith("--") else "-s"
                name = f"{kind} {option.lstrip('-')}"
                lines.append(f"{begin}{SEEN} {command}' {name} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "\\'"))


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
