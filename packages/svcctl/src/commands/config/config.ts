import path from 'node:path';
import {
  type Kubeconfig,
  kubeconfigShape,
  type LocatedEntry,
  readKubeconfigFile,
  type Shape,
  toYaml,
} from '@wheelhouse/client';
import { compareText, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { reportFailures } from '../../errors.ts';
import { CliError, usageError } from '../../io.ts';
import {
  bodyNames,
  changeCurrentContext,
  changeEntry,
  defaultFile,
  type ListName,
  readMerged,
  requireArgs,
} from '../../kubeconfig-edit.ts';
import { textAt } from '../../objects.ts';
import { orderedJson, outputFlags, printerOf } from '../../output/output.ts';
import { alignLines, noHeadersFlag } from '../../output/table.ts';
import type { Session } from '../../session.ts';
import {
  setClusterCommand,
  setCommand,
  setContextCommand,
  setCredentialsCommand,
  unsetCommand,
} from './config-set.ts';

const viewCommand: Command = {
  name: 'view',
  summary: 'Display the merged kubeconfig settings',
  flags: [
    ...outputFlags,
    {
      name: 'merge',
      type: 'boolean',
      help: 'Merge all kubeconfig files (default); false requires --kubeconfig',
    },
    { name: 'raw', type: 'boolean', help: 'Show certificate data and secrets' },
    { name: 'minify', type: 'boolean', help: 'Show only what the current context uses' },
    { name: 'flatten', type: 'boolean', help: 'Replace paths of files with their contents' },
  ],
  async run(session, args) {
    if (args.length > 0) {
      throw usageError('config view', `unexpected arguments: [${args.join(' ')}]`);
    }
    const { flags } = session;
    if (!flags.boolean('merge', true) && !flags.has('kubeconfig')) {
      throw new CliError('if merge==false a precise file must be specified');
    }
    const config = await readMerged(session);
    const selected = flags.boolean('minify') ? minify(config, flags.text('context')) : config;
    const entries = (list: ListName) => {
      const result = [...selected[list]]
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .map(([name, entry]) => ({
          name,
          [bodyNames[list]]: withPrintedMembers(list, printedBody(session, entry)),
        }));
      return result.length === 0 ? null : inOrder(result, memberShape(kubeconfigShape, list));
    };
    const merged = {
      kind: 'Config',
      apiVersion: 'v1',
      preferences: inOrder(
        await preferencesOf(session),
        memberShape(kubeconfigShape, 'preferences'),
      ),
      clusters: entries('clusters'),
      users: entries('users'),
      contexts: entries('contexts'),
      'current-context': selected.currentContext,
    };
    const isJson = flags.text('output')?.toLowerCase() === 'json';
    session.io.out((isJson ? orderedJson(session) : (printerOf(session) ?? toYaml))(merged));
    return 0;
  },
};

const memberShape = (shape: Shape | undefined, name: string): Shape | undefined =>
  typeof shape === 'object' && 'members' in shape ? shape.members[name] : undefined;

/** Returns a value with its members in the order of kubectl's types; others follow in byte order. */
function inOrder(value: JsonValue, shape: Shape | undefined): JsonValue {
  if (Array.isArray(value)) {
    const item = typeof shape === 'object' && 'listOf' in shape ? shape.listOf : undefined;
    return value.map((member) => inOrder(member, item));
  }
  if (!isObject(value)) return value;
  const typed = typeof shape === 'object' && 'members' in shape ? Object.keys(shape.members) : [];
  const names = new Set([...typed, ...Object.keys(value).sort(compareText)]);
  const members = [...names].filter((name) => value[name] !== undefined);
  return Object.fromEntries(
    members.map((name) => [name, inOrder(value[name] ?? null, memberShape(shape, name))]),
  );
}

async function preferencesOf(session: Session): Promise<JsonObject> {
  for (const file of session.kubeconfigFiles) {
    const preferences = (await readKubeconfigFile(file))?.preferences;
    if (isObject(preferences) && Object.keys(preferences).length > 0) return preferences;
  }
  return {};
}

function minify(config: Kubeconfig, override: string | undefined): Kubeconfig {
  const currentContext = override || config.currentContext;
  if (currentContext === '') throw new CliError('current-context must exist in order to minify');
  const pick = (list: ListName, name: string, what: string) => {
    if (name === '') return new Map<string, LocatedEntry>();
    const entry = config[list].get(name);
    if (entry === undefined) throw new CliError(`cannot locate ${what} ${name}`);
    return new Map([[name, entry]]);
  };
  const contexts = pick('contexts', currentContext, 'context');
  const body = contexts.get(currentContext)?.body;
  return {
    currentContext,
    contexts,
    clusters: pick('clusters', textAt(body, 'cluster'), 'cluster'),
    users: pick('users', textAt(body, 'user'), 'user'),
  };
}

function printedBody(session: Session, entry: LocatedEntry): JsonObject {
  // Like kubectl, do not redact a self-contained file, which is meant for use.
  if (session.flags.boolean('flatten')) return flatten(session, entry);
  return session.flags.boolean('raw') ? entry.body : redact(entry.body);
}

/** The members that kubectl prints in every entry of a list, and in structures of an entry. */
const printedMembers = {
  clusters: { server: '' },
  contexts: { cluster: '', user: '' },
  users: {},
  exec: { args: null, command: '', env: null, provideClusterInfo: false },
  'auth-provider': { config: null, name: '' },
} as const;

/** Adds the members that kubectl always prints to the body of an entry. */
function withPrintedMembers(list: ListName, body: JsonObject): JsonObject {
  const complete: JsonObject = { ...printedMembers[list], ...body };
  for (const name of ['exec', 'auth-provider'] as const) {
    const value = complete[name];
    if (isObject(value)) complete[name] = { ...printedMembers[name], ...value };
  }
  return complete;
}

const redactions: Readonly<Record<string, string>> = {
  token: 'REDACTED',
  password: 'REDACTED',
  'certificate-authority-data': 'DATA+OMITTED',
  'client-certificate-data': 'DATA+OMITTED',
  'client-key-data': 'DATA+OMITTED',
};

function redact(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      Object.hasOwn(redactions, name) && value !== '' ? redactions[name] : value,
    ]),
  );
}

const fileNames = ['certificate-authority', 'client-certificate', 'client-key'];

function flatten(session: Session, { body, folder }: LocatedEntry): JsonObject {
  const result = { ...body };
  for (const name of fileNames) {
    const file = textAt(body, name);
    if (file === '') continue;
    const data = `${name}-data`;
    if (textAt(body, data) !== '')
      throw new CliError(`cannot have values for both path and contents`);
    delete result[name];
    const bytes = session.readFile(path.resolve(folder, file), (why) => why);
    result[data] = bytes.toString('base64');
  }
  return result;
}

const getContextsCommand: Command = {
  name: 'get-contexts',
  completes: 'contexts',
  summary: 'Describe one or many contexts',
  usage: '[(-o|--output=)name] [CONTEXT_NAME…]',
  flags: [noHeadersFlag, { name: 'output', short: 'o', type: 'text', help: 'name' }],
  async run(session, args) {
    const format = session.flags.text('output') ?? '';
    if (format !== '' && format !== 'name') {
      throw new CliError(
        `--output ${format} is not available in svcctl config get-contexts; ` +
          'resetting to default output format',
      );
    }
    const config = await readMerged(session);
    const requested = args.length > 0 ? args : [...config.contexts.keys()];
    const names = requested.filter((name) => config.contexts.has(name)).sort();
    if (format === 'name') session.io.out(names.map((name) => `${name}\n`).join(''));
    else session.io.out(contextTable(session, config, names));
    const missing = requested.filter((name) => !config.contexts.has(name));
    return reportFailures(
      session.io,
      missing.map((name) => new CliError(`context ${name} not found`)),
    );
  },
};

function contextTable(session: Session, config: Kubeconfig, names: readonly string[]): string {
  const rows = names.map((name) => {
    const body = config.contexts.get(name)?.body;
    const mark = name === config.currentContext ? '*' : '';
    return [mark, name, ...['cluster', 'user', 'namespace'].map((key) => textAt(body, key))];
  });
  const head = ['CURRENT', 'NAME', 'CLUSTER', 'AUTHINFO', 'NAMESPACE'];
  return alignLines(session.flags.boolean('no-headers') ? rows : [head, ...rows]);
}

const currentContextCommand: Command = {
  name: 'current-context',
  summary: 'Display the current-context',
  async run(session) {
    const { currentContext } = await readMerged(session);
    if (currentContext === '') throw new CliError('current-context is not set');
    session.io.out(`${currentContext}\n`);
    return 0;
  },
};

function createNamesCommand(name: string, list: ListName): Command {
  return {
    name,
    summary: `Display ${list} defined in the kubeconfig`,
    async run(session) {
      const names = [...(await readMerged(session))[list].keys()].sort();
      session.io.out(['NAME', ...names].map((line) => `${line}\n`).join(''));
      return 0;
    },
  };
}

const getClustersCommand = createNamesCommand('get-clusters', 'clusters');
const getUsersCommand = createNamesCommand('get-users', 'users');

const useContextCommand: Command = {
  name: 'use-context',
  completes: 'contexts',
  aliases: ['use'],
  summary: 'Set the current-context in a kubeconfig file',
  usage: 'CONTEXT_NAME',
  async run(session, args) {
    const [name = ''] = await requireArgs(session, args, 1);
    if (name === '') throw new CliError('empty context names are not allowed');
    if (!(await readMerged(session)).contexts.has(name)) {
      throw new CliError(`no context exists with the name: ${JSON.stringify(name)}`);
    }
    await changeCurrentContext(session, name);
    session.io.out(`Switched to context ${JSON.stringify(name)}.\n`);
    return 0;
  },
};

const renameContextCommand: Command = {
  name: 'rename-context',
  completes: 'contexts',
  summary: 'Rename a context from the kubeconfig file',
  usage: 'CONTEXT_NAME NEW_NAME',
  async run(session, args) {
    const [name = '', newName = ''] = await requireArgs(session, args, 2);
    if (newName === '') throw new CliError('You must specify a new non-empty context name');
    const { contexts, currentContext } = await readMerged(session);
    const quoted = JSON.stringify(name);
    const context = contexts.get(name);
    const file = defaultFile(session);
    if (context === undefined) {
      throw new CliError(`cannot rename the context ${quoted}, it's not in ${file}`);
    }
    if (contexts.has(newName)) {
      throw new CliError(
        `cannot rename the context ${quoted}, ` +
          `the context ${JSON.stringify(newName)} already exists in ${file}`,
      );
    }
    await changeEntry(session, { list: 'contexts', name: newName }, () => context.body);
    await changeEntry(session, { list: 'contexts', name }, () => undefined);
    if (currentContext === name) await changeCurrentContext(session, newName);
    session.io.out(`Context ${quoted} renamed to ${JSON.stringify(newName)}.\n`);
    return 0;
  },
};

function createDeleteCommand(name: string, list: ListName): Command {
  const what = bodyNames[list];
  return {
    name,
    summary: `Delete the specified ${what} from the kubeconfig`,
    usage: 'NAME',
    completes: list,
    async run(session, args) {
      const config = await readMerged(session);
      const [requested = '', ...others] = args;
      if (args.length === 0 || others.length > 0) {
        if (list === 'users') throw usageError(`config ${name}`, 'user to delete is required');
        session.io.out(await session.help());
        return 0;
      }
      if (!config[list].has(requested)) {
        throw new CliError(`cannot delete ${what} ${requested}, not in ${defaultFile(session)}`);
      }
      const { file } = await changeEntry(session, { list, name: requested }, () => undefined);
      if (list === 'contexts' && config.currentContext === requested) {
        session.io.err(
          'warning: this removed your active context, use "svcctl config use-context" ' +
            'to select a different one\n',
        );
      }
      session.io.out(`deleted ${what} ${requested} from ${file}\n`);
      return 0;
    },
  };
}

/** The commands that read and change kubeconfig files; none contacts a server. */
export const configCommand: Command = {
  name: 'config',
  summary: 'Modify kubeconfig files',
  usage: 'SUBCOMMAND',
  subcommands: [
    viewCommand,
    getContextsCommand,
    getClustersCommand,
    getUsersCommand,
    currentContextCommand,
    useContextCommand,
    renameContextCommand,
    setClusterCommand,
    setCredentialsCommand,
    setContextCommand,
    setCommand,
    unsetCommand,
    createDeleteCommand('delete-context', 'contexts'),
    createDeleteCommand('delete-cluster', 'clusters'),
    createDeleteCommand('delete-user', 'users'),
  ],
};
