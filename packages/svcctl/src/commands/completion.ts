import { loadKubeconfig, resourcePath } from '@wheelhouse/client';
import { acceptedMetaGroups } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { type FlagSpec, parseFlags } from '../flags.ts';
import { type CliIo, usageError } from '../io.ts';
import { listAt, nameOf, withGroup } from '../objects.ts';
import { globalFlags, Session } from '../session.ts';

/** The scripts call `svcctl __complete` with the words of the line and follow its directive. */
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
    # Bash splits words at these characters and completes the last part.
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
    # Pass an empty last word as well.
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

/** Prints a script that completes words by running svcctl itself. */
export const completionCommand: Command = {
  name: 'completion',
  completes: 'shells',
  summary: 'Output shell completion code for the specified shell (bash, zsh or fish)',
  usage: 'SHELL',
  async run(session, args) {
    const [shell, ...more] = args;
    if (shell === undefined) throw usageError('completion', 'Shell not specified.');
    if (more.length > 0)
      throw usageError('completion', 'Too many arguments. Expected only the shell type.');
    const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
    if (script === undefined) {
      throw usageError('completion', `Unsupported shell type ${JSON.stringify(shell)}.`);
    }
    session.io.out(script);
    return 0;
  },
};

/** Whether the shell completes file names if no candidate matches. */
type Directive = 'files' | 'no files';

interface Completion {
  /** A value, optionally followed by a tab and a description. */
  readonly candidates: readonly string[];
  readonly directive: Directive;
}

const directives: Readonly<Record<Directive, string>> = { files: ':0', 'no files': ':4' };

/**
 * Completes a command line for a shell. Prints one candidate per line, then `:0` if the shell
 * should complete file names, else `:4`. Prints no candidates and no error if the server is
 * unreachable, since the user is still typing. Resolves with the exit code; never rejects.
 * @param words the words after the program's name; the last one is incomplete and may be empty
 * @param load loads all commands
 */
export async function complete(
  io: CliIo,
  words: readonly string[],
  load: () => Promise<readonly Command[]>,
): Promise<number> {
  const last = words.at(-1) ?? '';
  let completion: Completion = { candidates: [], directive: 'no files' };
  try {
    completion = await completeLine(io, {
      commands: await load(),
      before: words.slice(0, -1),
      last,
    });
  } catch {
    // The command reports the error when it runs.
  }
  const lines = completion.candidates.filter(
    (candidate) => candidate.startsWith(last) && !/[\r\n]/.test(candidate),
  );
  io.out([...lines, directives[completion.directive]].map((line) => `${line}\n`).join(''));
  return 0;
}

/** The command and flags at the cursor. */
interface CursorPosition {
  readonly command: Command | undefined;
  readonly commands: readonly Command[];
  readonly specs: readonly FlagSpec[];
  /** The words after the command's name. */
  readonly rest: readonly string[];
}

async function completeLine(
  io: CliIo,
  line: {
    readonly commands: readonly Command[];
    readonly before: readonly string[];
    readonly last: string;
  },
): Promise<Completion> {
  const { commands, before, last } = line;
  const position = locateCommand(commands, before);
  const pendingFlag = flagWithoutValue(position, before.at(-1));
  if (pendingFlag !== undefined) return flagValues(io, position, { flag: pendingFlag, prefix: '' });
  const equals = last.indexOf('=');
  if (last.startsWith('--') && equals > 0) {
    const flag = position.specs.find(({ name }) => name === last.slice(2, equals));
    if (flag === undefined) return { candidates: [], directive: 'no files' };
    return flagValues(io, position, { flag, prefix: last.slice(0, equals + 1) });
  }
  if (last.startsWith('-')) {
    const candidates = position.specs.map(({ name, help }) => `--${name}\t${help}`);
    return { candidates, directive: 'no files' };
  }
  return completeArguments(io, position, last);
}

function locateCommand(commands: readonly Command[], before: readonly string[]): CursorPosition {
  let command: Command | undefined;
  let candidates = commands;
  let rest = [...before];
  const specs = () => [...(command?.flags ?? []), ...globalFlags];
  for (;;) {
    const words = parseIncomplete(rest, specs()).rest;
    const [word] = words;
    const next = candidates.find(
      (candidate) => candidate.name === word || candidate.aliases?.includes(word ?? ''),
    );
    if (next === undefined || word === undefined) break;
    rest = rest.toSpliced(rest.indexOf(word), 1);
    command = next;
    candidates = next.subcommands ?? [];
  }
  return { command, commands: candidates, specs: specs(), rest };
}

/** Parses an incomplete line, ignoring its end if necessary. */
function parseIncomplete(args: readonly string[], specs: readonly FlagSpec[]) {
  for (let end = args.length; end > 0; end--) {
    try {
      return parseFlags(args.slice(0, end), specs);
    } catch {
      // The last flag may lack its value.
    }
  }
  return parseFlags([], specs);
}

/** The flag whose value the user is typing. */
function flagWithoutValue(
  position: CursorPosition,
  word: string | undefined,
): FlagSpec | undefined {
  const flag = position.specs.find(
    ({ name, short }) => word === `--${name}` || word === `-${short}`,
  );
  return flag === undefined || flag.type === 'boolean' || flag.bare !== undefined
    ? undefined
    : flag;
}

const fileFlags: ReadonlySet<string> = new Set([
  ...['filename', 'kubeconfig', 'certificate-authority', 'client-certificate', 'client-key'],
  ...['patch-file', 'from-file', 'from-env-file', 'www', 'unix-socket'],
  ...['kustomize', 'cert', 'key', 'output-directory'],
]);

const fixedValues: Readonly<Record<string, readonly string[]>> = {
  output: ['json', 'yaml', 'name', 'wide', 'jsonpath', 'jsonpath-file', 'custom-columns'],
  'dry-run': ['none', 'server', 'client'],
  validate: ['strict', 'warn', 'ignore'],
  'exec-interactive-mode': ['IfAvailable', 'Never', 'Always'],
  'bound-object-kind': ['Node', 'Pod', 'Secret'],
};

async function flagValues(
  io: CliIo,
  position: CursorPosition,
  { flag, prefix }: { flag: FlagSpec; prefix: string },
): Promise<Completion> {
  if (fileFlags.has(flag.name)) return { candidates: [], directive: 'files' };
  const values = await completeFlag(io, position, flag.name);
  return { candidates: values.map((value) => prefix + value), directive: 'no files' };
}

async function completeFlag(
  io: CliIo,
  position: CursorPosition,
  flag: string,
): Promise<readonly string[]> {
  if (Object.hasOwn(fixedValues, flag)) return fixedValues[flag] ?? [];
  const isOwnFlag = position.command?.flags?.some(({ name }) => name === flag) === true;
  if (isOwnFlag) return [];
  switch (flag) {
    case 'namespace':
      return withSession(io, position, (session) => objectNames(session, 'namespaces'));
    case 'context':
      return entryNames(io, position, 'contexts');
    case 'cluster':
      return entryNames(io, position, 'clusters');
    case 'user':
      return entryNames(io, position, 'users');
    default:
      return [];
  }
}

async function completeArguments(
  io: CliIo,
  position: CursorPosition,
  last: string,
): Promise<Completion> {
  const { command, commands } = position;
  const { rest } = parseIncomplete(position.rest, position.specs);
  if (commands.length > 0 && rest.length === 0) {
    const candidates = commands.map(({ name, summary }) => `${name}\t${summary}`);
    return { candidates: candidates.sort(), directive: 'no files' };
  }
  return {
    candidates: await argumentCandidates(io, position, { command, rest, last }),
    directive: 'no files',
  };
}

async function argumentCandidates(
  io: CliIo,
  position: CursorPosition,
  cursor: { command: Command | undefined; rest: readonly string[]; last: string },
): Promise<readonly string[]> {
  const { command, rest, last } = cursor;
  switch (command?.completes) {
    case 'objects':
      return withSession(io, position, (session) => objectCandidates(session, rest, last));
    case 'pods':
    case 'nodes': {
      const type = command.completes;
      if (last.includes('/')) {
        return withSession(io, position, (session) => objectCandidates(session, [], last));
      }
      return withSession(io, position, (session) =>
        objectCandidates(session, [type, ...rest], last),
      );
    }
    case 'types':
      return rest.length > 0
        ? []
        : withSession(io, position, (session) => typeCandidates(session, ''));
    case 'verb-and-type':
      if (rest.length === 0) return apiVerbs;
      return rest.length > 1
        ? []
        : withSession(io, position, (session) => typeCandidates(session, ''));
    case 'contexts':
    case 'clusters':
    case 'users':
      return rest.length > 0 ? [] : entryNames(io, position, command.completes);
    case 'shells':
      return rest.length > 0 ? [] : Object.keys(scripts);
    default:
      return [];
  }
}

const apiVerbs = [
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'],
];

async function entryNames(
  io: CliIo,
  position: CursorPosition,
  list: 'contexts' | 'clusters' | 'users',
): Promise<readonly string[]> {
  return withSession(io, position, async (session) => {
    const config = await loadKubeconfig({ files: session.kubeconfigFiles });
    return [...config[list].keys()].sort();
  });
}

/** Time limit of a request: a shell that hangs is worse than one without candidates. */
const serverWaitMs = 5_000;

/** Runs with a session that has the flags of the line, such as its server, user, and namespace. */
async function withSession<T>(
  io: CliIo,
  position: CursorPosition,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const { flags } = parseIncomplete(position.rest, position.specs);
  const quiet: CliIo = { ...io, err: () => {} };
  const session = new Session({
    io: quiet,
    flags,
    ownFlags: position.command?.flags ?? [],
    timeoutMs: serverWaitMs,
  });
  try {
    await session.prepare();
    return await run(session);
  } finally {
    session.close();
  }
}

/** Completes types, then names of objects, or `TYPE/NAME`. */
async function objectCandidates(
  session: Session,
  rest: readonly string[],
  last: string,
): Promise<readonly string[]> {
  const slash = last.indexOf('/');
  if (slash > 0) {
    const type = last.slice(0, slash);
    return (await objectNames(session, type)).map((name) => `${type}/${name}`);
  }
  const [type, ...typedNames] = rest;
  if (type === undefined) return typeCandidates(session, last.slice(0, last.lastIndexOf(',') + 1));
  if (type.includes('/')) return [];
  return (await objectNames(session, type)).filter((name) => !typedNames.includes(name));
}

/** Completes resource types with their groups. `prefix` has the types that precede a comma. */
async function typeCandidates(session: Session, prefix: string): Promise<readonly string[]> {
  const { resources } = await session.discovery();
  return resources
    .filter((resource) => resource.preferred && resource.verbs.includes('get'))
    .map(({ resource, group }) => prefix + withGroup(resource, group))
    .sort();
}

/** Maximum number of names that are listed. */
const namesMax = '500';

async function objectNames(session: Session, type: string): Promise<readonly string[]> {
  const resource = await session.resource(type);
  const everywhere = !resource.namespaced || session.flags.boolean('all-namespaces');
  const accept = acceptedMetaGroups.map(
    (group) => `application/json;as=PartialObjectMetadataList;v=v1;g=${group}`,
  );
  const { object } = await session.client.send({
    path: resourcePath(resource, everywhere ? {} : { namespace: session.namespace }),
    query: { limit: namesMax },
    accept: [...accept, 'application/json'].join(','),
  });
  return listAt(object, 'items').map(nameOf).sort();
}
