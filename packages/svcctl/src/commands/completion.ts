import type { Command } from '../command.ts';
import { CliError } from '../io.ts';

/** A shell asks `__complete` with the words of the line, and does what its answer says. */
const bash = `# Completion of svcctl for bash. Load it: source <(svcctl completion bash)
_svcctl_complete() {
    local line="\${COMP_LINE:0:COMP_POINT}" words=() out=() last broken
    read -r -a words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    last="\${words[\${#words[@]}-1]}"
    while IFS= read -r broken; do out+=("$broken"); done \\
        < <("\${words[0]}" __complete "\${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    (( \${#out[@]} == 0 )) && return
    # Bash breaks words at these and completes what is behind.
    broken="\${last%"\${last##*[=:]}"}"
    local directive="\${out[\${#out[@]}-1]}" candidate
    unset "out[\${#out[@]}-1]"
    for candidate in "\${out[@]}"; do
        candidate="\${candidate%%$'\\t'*}"
        COMPREPLY+=("\${candidate#"$broken"}")
    done
    if [[ "$directive" == ":0" ]]; then
        compopt -o default 2>/dev/null
    elif (( \${#COMPREPLY[@]} == 1 )) && [[ "\${COMPREPLY[0]}" == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _svcctl_complete svcctl
`;

const zsh = `#compdef svcctl
# Completion of svcctl for zsh. Load it: source <(svcctl completion zsh)
_svcctl() {
    local -a out described
    local directive one
    out=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
    directive="\${out[-1]}"
    out=("\${(@)out[1,-2]}")
    for one in "\${out[@]}"; do
        [[ -z "$one" ]] && continue
        one="\${one//:/\\\\:}"
        described+=("\${one/$'\\t'/:}")
    done
    if [[ "$directive" == ":0" ]]; then
        _files
    else
        _describe 'svcctl' described
    fi
}
if [[ "\${funcstack[1]}" == "_svcctl" ]]; then
    _svcctl "$@"
else
    compdef _svcctl svcctl
fi
`;

const fish = `# Completion of svcctl for fish. Load it: svcctl completion fish | source
function __svcctl_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    # An empty word is a word as well.
    test (count $last) -eq 0; and set last ''
    set -l out ($words[1] __complete $words[2..-1] $last 2>/dev/null)
    test (count $out) -eq 0; and return
    if test "$out[-1]" = ":0"
        __fish_complete_path (commandline -ct)
        return
    end
    test (count $out) -gt 1; and string join \\n $out[1..-2]
end
complete -c svcctl -f -a '(__svcctl_complete)'
`;

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };

export const completionCommand: Command = {
  name: 'completion',
  completes: 'shells',
  summary: 'Output shell completion code for the specified shell (bash, zsh or fish)',
  usage: 'SHELL',
  async run(session, args) {
    const [shell, ...more] = args;
    if (shell === undefined) throw new CliError('Shell not specified.');
    if (more.length > 0) throw new CliError('Too many arguments. Expected only the shell type.');
    const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
    if (script === undefined) {
      throw new CliError(`Unsupported shell type ${JSON.stringify(shell)}.`);
    }
    session.io.out(script);
    return 0;
  },
};
