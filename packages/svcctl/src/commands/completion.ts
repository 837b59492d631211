import { loadKubeconfig, resourcePath } from '@wheelhouse/client';
import { acceptedMetaGroups } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { type FlagSpec, Flags, parseFlags } from '../flags.ts';
import { CliError, type CliIo } from '../io.ts';
import { listAt, nameOf, withGroup } from '../objects.ts';
import { globalFlags, Session } from '../session.ts';

/** The scripts call `svcctl __complete` with the words of the line, and follow its response. */
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
    # An empty word counts, too.
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

/** How a shell completes if no candidate matches. */
type Directive =
  /** Completes file names, the shell's default. */
  'files' | 'no files';

interface Answer {
  /** A value, optionally followed by a tab and a description. */
  readonly candidates: readonly string[];
  readonly directive: Directive;
}

const directives: Readonly<Record<Directive, string>> = { files: ':0', 'no files': ':4' };

/**
 * Completes a command line for a shell. Prints one candidate per line, then `:0` to complete file
 * names or `:4` not to. Without a reachable server there are no candidates and no error, since the
 * user is still typing. Resolves with the exit code; never rejects.
 * @param words the words after the program's name; the last one is incomplete and may be empty
 * @param load loads all commands
 */
export async function complete(
  io: CliIo,
  words: readonly string[],
  load: () => Promise<readonly Command[]>,
): Promise<number> {
  const last = words.at(-1) ?? '';
  let answer: Answer = { candidates: [], directive: 'no files' };
  try {
    answer = await answerTo(io, { commands: await load(), before: words.slice(0, -1), last });
  } catch {
    // The command itself reports the error when it runs.
  }
  const lines = answer.candidates.filter((one) => one.startsWith(last) && !/[\r\n]/.test(one));
  io.out([...lines, directives[answer.directive]].map((line) => `${line}\n`).join(''));
  return 0;
}

/** The position of the cursor in the command line. */
interface Place {
  readonly command: Command | undefined;
  readonly commands: readonly Command[];
  readonly specs: readonly FlagSpec[];
  /** The words after the command's name. */
  readonly rest: readonly string[];
}

async function answerTo(
  io: CliIo,
  line: {
    readonly commands: readonly Command[];
    readonly before: readonly string[];
    readonly last: string;
  },
): Promise<Answer> {
  const { commands, before, last } = line;
  const place = placeOf(commands, before);
  const waiting = flagThatWaits(place, before.at(-1));
  if (waiting !== undefined) return flagValues(io, place, { flag: waiting, prefix: '' });
  const equals = last.indexOf('=');
  if (last.startsWith('--') && equals > 0) {
    const flag = place.specs.find(({ name }) => name === last.slice(2, equals));
    if (flag === undefined) return { candidates: [], directive: 'no files' };
    return flagValues(io, place, { flag, prefix: last.slice(0, equals + 1) });
  }
  if (last.startsWith('-')) {
    const candidates = place.specs.map(({ name, help }) => `--${name}\t${help}`);
    return { candidates, directive: 'no files' };
  }
  return argumentsAt(io, place, last);
}

function placeOf(commands: readonly Command[], before: readonly string[]): Place {
  let command: Command | undefined;
  let candidates = commands;
  let rest = [...before];
  const specs = () => [...(command?.flags ?? []), ...globalFlags];
  for (;;) {
    const words = lenient(rest, specs()).rest;
    const [word] = words;
    const next = candidates.find((one) => one.name === word || one.aliases?.includes(word ?? ''));
    if (next === undefined || word === undefined) break;
    rest = rest.toSpliced(rest.indexOf(word), 1);
    command = next;
    candidates = next.subcommands ?? [];
  }
  return { command, commands: candidates, specs: specs(), rest };
}

/** Parses an incomplete line. */
function lenient(args: readonly string[], specs: readonly FlagSpec[]) {
  for (let end = args.length; end > 0; end--) {
    try {
      return parseFlags(args.slice(0, end), specs);
    } catch {
      // The last flag may lack its value.
    }
  }
  return { flags: new Flags(new Map()), rest: [] as readonly string[] };
}

/** The flag whose value the user is typing. */
function flagThatWaits(place: Place, word: string | undefined): FlagSpec | undefined {
  const flag = place.specs.find(({ name, short }) => word === `--${name}` || word === `-${short}`);
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
  place: Place,
  { flag, prefix }: { flag: FlagSpec; prefix: string },
): Promise<Answer> {
  if (fileFlags.has(flag.name)) return { candidates: [], directive: 'files' };
  const values = await valuesOf(io, place, flag.name);
  return { candidates: values.map((value) => prefix + value), directive: 'no files' };
}

async function valuesOf(io: CliIo, place: Place, flag: string): Promise<readonly string[]> {
  if (Object.hasOwn(fixedValues, flag)) return fixedValues[flag] ?? [];
  const own = place.command?.flags?.some(({ name }) => name === flag) === true;
  if (own) return [];
  switch (flag) {
    case 'namespace':
      return inSession(io, place, (session) => namesOf(session, 'namespaces'));
    case 'context':
      return entryNames(io, place, 'contexts');
    case 'cluster':
      return entryNames(io, place, 'clusters');
    case 'user':
      return entryNames(io, place, 'users');
    default:
      return [];
  }
}

async function argumentsAt(io: CliIo, place: Place, last: string): Promise<Answer> {
  const { command, commands } = place;
  const { rest } = lenient(place.rest, place.specs);
  if (commands.length > 0 && rest.length === 0) {
    const candidates = commands.map(({ name, summary }) => `${name}\t${summary}`);
    return { candidates: candidates.sort(), directive: 'no files' };
  }
  return {
    candidates: await candidatesFor(io, place, { command, rest, last }),
    directive: 'no files',
  };
}

async function candidatesFor(
  io: CliIo,
  place: Place,
  at: { command: Command | undefined; rest: readonly string[]; last: string },
): Promise<readonly string[]> {
  const { command, rest, last } = at;
  switch (command?.completes) {
    case 'objects':
      return inSession(io, place, (session) => objectsAt(session, rest, last));
    case 'pods':
    case 'nodes': {
      const type = command.completes;
      if (last.includes('/')) {
        return inSession(io, place, (session) => objectsAt(session, [], last));
      }
      return inSession(io, place, (session) => objectsAt(session, [type, ...rest], last));
    }
    case 'types':
      return rest.length > 0 ? [] : inSession(io, place, (session) => typesAt(session, ''));
    case 'verb-and-type':
      if (rest.length === 0) return apiVerbs;
      return rest.length > 1 ? [] : inSession(io, place, (session) => typesAt(session, ''));
    case 'contexts':
    case 'clusters':
    case 'users':
      return rest.length > 0 ? [] : entryNames(io, place, command.completes);
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
  place: Place,
  list: 'contexts' | 'clusters' | 'users',
): Promise<readonly string[]> {
  return inSession(io, place, async (session) => {
    const config = await loadKubeconfig({ files: session.kubeconfigFiles });
    return [...config[list].keys()].sort();
  });
}

/** Longest wait for a server: a shell that hangs is worse than one without candidates. */
const serverWaitMs = 5_000;

/** Runs with the flags of the line, such as its server, user, and namespace. */
async function inSession<T>(
  io: CliIo,
  place: Place,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const { flags } = lenient(place.rest, place.specs);
  const quiet: CliIo = { ...io, err: () => {} };
  const session = new Session({
    io: quiet,
    flags,
    ownFlags: place.command?.flags ?? [],
    timeoutMs: serverWaitMs,
  });
  try {
    await session.prepare();
    return await run(session);
  } finally {
    session.close();
  }
}

/** Completes types, then names of objects, or both joined with a slash. */
async function objectsAt(
  session: Session,
  rest: readonly string[],
  last: string,
): Promise<readonly string[]> {
  const slash = last.indexOf('/');
  if (slash > 0) {
    const type = last.slice(0, slash);
    return (await namesOf(session, type)).map((name) => `${type}/${name}`);
  }
  const [type, ...typedNames] = rest;
  if (type === undefined) return typesAt(session, last.slice(0, last.lastIndexOf(',') + 1));
  if (type.includes('/')) return [];
  return (await namesOf(session, type)).filter((name) => !typedNames.includes(name));
}

/** Resource types with their groups, prefixed with the types already typed. */
async function typesAt(session: Session, prefix: string): Promise<readonly string[]> {
  const { resources } = await session.discovery();
  return resources
    .filter((one) => one.preferred && one.verbs.includes('get'))
    .map(({ resource, group }) => prefix + withGroup(resource, group))
    .sort();
}

/** Maximum number of names. */
const namesMax = '500';

async function namesOf(session: Session, type: string): Promise<readonly string[]> {
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
