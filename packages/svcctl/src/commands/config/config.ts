import path from 'node:path';
import { type Kubeconfig, type LocatedEntry, readKubeconfigFile, toYaml } from '@wheelhouse/client';
import { isObject, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError } from '../../io.ts';
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
import { outputFlags, printerOf } from '../../output/output.ts';
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
      help: 'Merge all kubeconfig files (true); false needs --kubeconfig',
    },
    { name: 'raw', type: 'boolean', help: 'Show certificate data and secrets' },
    { name: 'minify', type: 'boolean', help: 'Only what the current context uses' },
    { name: 'flatten', type: 'boolean', help: 'Replace paths of files by their contents' },
  ],
  async run(session, args) {
    requireArgs(0, args);
    const { flags } = session;
    if (!flags.boolean('merge', true) && !flags.has('kubeconfig')) {
      throw new CliError('if merge==false a precise file must be specified');
    }
    const config = await readMerged(session);
    const shown = flags.boolean('minify') ? minified(config, flags.text('context')) : config;
    const entries = (list: ListName) => {
      const made = [...shown[list]]
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .map(([name, entry]) => ({ name, [bodyNames[list]]: bodyFor(session, entry) }));
      return made.length === 0 ? null : made;
    };
    const merged = {
      kind: 'Config',
      apiVersion: 'v1',
      preferences: await preferencesOf(session),
      clusters: entries('clusters'),
      users: entries('users'),
      contexts: entries('contexts'),
      'current-context': shown.currentContext,
    };
    session.io.out((printerOf(session) ?? toYaml)(merged));
    return 0;
  },
};

async function preferencesOf(session: Session): Promise<JsonObject> {
  for (const file of session.kubeconfigFiles) {
    const preferences = (await readKubeconfigFile(file))?.preferences;
    if (isObject(preferences) && Object.keys(preferences).length > 0) return preferences;
  }
  return {};
}

function minified(config: Kubeconfig, override: string | undefined): Kubeconfig {
  const currentContext = override || config.currentContext;
  if (currentContext === '') {
    throw new CliError('current-context must exist in order to minify');
  }
  const only = (list: ListName, name: string, what: string) => {
    if (name === '') return new Map<string, LocatedEntry>();
    const entry = config[list].get(name);
    if (entry === undefined) throw new CliError(`cannot locate ${what} ${name}`);
    return new Map([[name, entry]]);
  };
  const contexts = only('contexts', currentContext, 'context');
  const body = contexts.get(currentContext)?.body;
  return {
    currentContext,
    contexts,
    clusters: only('clusters', textAt(body, 'cluster'), 'cluster'),
    users: only('users', textAt(body, 'user'), 'user'),
  };
}

function bodyFor(session: Session, entry: LocatedEntry): JsonObject {
  // Like kubectl, keep secrets in a self-contained file, which is meant for use.
  if (session.flags.boolean('flatten')) return flattened(session, entry);
  return session.flags.boolean('raw') ? entry.body : redacted(entry.body);
}

const hidden: Readonly<Record<string, string>> = {
  token: 'REDACTED',
  password: 'REDACTED',
  'certificate-authority-data': 'DATA+OMITTED',
  'client-certificate-data': 'DATA+OMITTED',
  'client-key-data': 'DATA+OMITTED',
};

function redacted(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      Object.hasOwn(hidden, name) && value !== '' ? hidden[name] : value,
    ]),
  );
}

const fileNames = ['certificate-authority', 'client-certificate', 'client-key'];

function flattened(session: Session, { body, folder }: LocatedEntry): JsonObject {
  const made = { ...body };
  for (const name of fileNames) {
    const file = textAt(body, name);
    if (file === '') continue;
    const data = `${name}-data`;
    if (textAt(body, data) !== '')
      throw new CliError(`cannot have values for both path and contents`);
    delete made[name];
    const bytes = session.readFile(path.resolve(folder, file), (why) => why);
    made[data] = bytes.toString('base64');
  }
  return made;
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
      throw new CliError(`--output ${format} is not available in svcctl config get-contexts`);
    }
    const config = await readMerged(session);
    const wanted = args.length > 0 ? args : [...config.contexts.keys()];
    const names = wanted.filter((name) => config.contexts.has(name)).sort();
    if (format === 'name') session.io.out(names.map((name) => `${name}\n`).join(''));
    else session.io.out(contextTable(session, config, names));
    const missing = wanted.filter((name) => !config.contexts.has(name));
    for (const name of missing) session.io.err(`error: context ${name} not found\n`);
    return missing.length > 0 ? 1 : 0;
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
  async run(session, args) {
    requireArgs(0, args);
    const { currentContext } = await readMerged(session);
    if (currentContext === '') throw new CliError('current-context is not set');
    session.io.out(`${currentContext}\n`);
    return 0;
  },
};

function namesCommand(name: string, list: ListName): Command {
  return {
    name,
    summary: `Display ${list} defined in the kubeconfig`,
    async run(session) {
      const names = [...(await readMerged(session))[list].keys()].sort();
      session.io.out(['NAME', ...names].map((one) => `${one}\n`).join(''));
      return 0;
    },
  };
}

const getClustersCommand = namesCommand('get-clusters', 'clusters');
const getUsersCommand = namesCommand('get-users', 'users');

const useContextCommand: Command = {
  name: 'use-context',
  completes: 'contexts',
  aliases: ['use'],
  summary: 'Set the current-context in a kubeconfig file',
  usage: 'CONTEXT_NAME',
  async run(session, args) {
    const [name = ''] = requireArgs(1, args);
    if (name === '') throw new CliError('you must specify a current-context');
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
    const [name = '', newName = ''] = requireArgs(2, args);
    if (newName === '') throw new CliError('You must specify a new non-empty context name');
    const { contexts, currentContext } = await readMerged(session);
    const quoted = JSON.stringify(name);
    const found = contexts.get(name);
    const file = defaultFile(session);
    if (found === undefined) {
      throw new CliError(`cannot rename the context ${quoted}, it's not in ${file}`);
    }
    if (contexts.has(newName)) {
      throw new CliError(
        `cannot rename the context ${quoted}, ` +
          `the context ${JSON.stringify(newName)} already exists in ${file}`,
      );
    }
    await changeEntry(session, { list: 'contexts', name: newName }, () => found.body);
    await changeEntry(session, { list: 'contexts', name }, () => undefined);
    if (currentContext === name) await changeCurrentContext(session, newName);
    session.io.out(`Context ${quoted} renamed to ${JSON.stringify(newName)}.\n`);
    return 0;
  },
};

function deleteCommandOf(name: string, list: ListName): Command {
  const what = bodyNames[list];
  return {
    name,
    summary: `Delete the specified ${what} from the kubeconfig`,
    usage: 'NAME',
    completes: list,
    async run(session, args) {
      const [wanted = ''] = requireArgs(1, args);
      const config = await readMerged(session);
      if (!config[list].has(wanted)) {
        throw new CliError(`cannot delete ${what} ${wanted}, not in ${defaultFile(session)}`);
      }
      const { file } = await changeEntry(session, { list, name: wanted }, () => undefined);
      if (list === 'contexts' && config.currentContext === wanted) {
        session.io.err(
          'warning: this removed your active context, use "svcctl config use-context" ' +
            'to select a different one\n',
        );
      }
      session.io.out(`deleted ${what} ${wanted} from ${file}\n`);
      return 0;
    },
  };
}

export const configCommand: Command = {
  name: 'config',
  summary: 'Modify kubeconfig files',
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
    deleteCommandOf('delete-context', 'contexts'),
    deleteCommandOf('delete-cluster', 'clusters'),
    deleteCommandOf('delete-user', 'users'),
  ],
};
