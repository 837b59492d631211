import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isObject, type JsonObject, member } from '../../base/json.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { parseYaml, toYaml } from '../../client/yaml.ts';
import type { Command } from '../command.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { listAt, objectAt, textAt } from '../objects.ts';
import { outputFlags, printerOf } from '../output.ts';
import type { Session } from '../session.ts';
import { alignLines } from '../table.ts';

type ListName = 'clusters' | 'users' | 'contexts';

const bodyNames: Readonly<Record<ListName, string>> = {
  clusters: 'cluster',
  users: 'user',
  contexts: 'context',
};

/** The file that is changed: the first of the list that there is, else the last. */
function fileToChange(session: Session): string {
  const files = session.kubeconfigFiles;
  const present = files.find((file) => readFile(file) !== undefined);
  return present ?? files.at(-1)!;
}

function readFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

async function readDocument(file: string): Promise<JsonObject> {
  const value = await parseYaml(readFile(file) ?? '');
  const empty = { apiVersion: 'v1', kind: 'Config', clusters: [], contexts: [], users: [] };
  return isObject(value) ? value : { ...empty, 'current-context': '' };
}

/** Changes the file through a neighbour and a rename, so that no reader sees half of it. */
async function changeFile(session: Session, change: (document: JsonObject) => void): Promise<void> {
  const file = fileToChange(session);
  const document = await readDocument(file);
  change(document);
  mkdirSync(path.dirname(file), { recursive: true });
  const partial = `${file}.${process.pid}.partial`;
  writeFileSync(partial, toYaml(document), { mode: 0o600 });
  renameSync(partial, file);
}

/** Sets members of a named entry, making it when it is new; gives whether it was there. */
function setEntry(
  document: JsonObject,
  options: { list: ListName; name: string; values: JsonObject },
): boolean {
  const key = bodyNames[options.list];
  const entries = listAt(document, options.list);
  const found = entries.find((entry) => entry.name === options.name);
  if (found === undefined) {
    document[options.list] = [...entries, { name: options.name, [key]: options.values }];
    return false;
  }
  found[key] = { ...objectAt(found, key), ...options.values };
  return true;
}

function onlyArgument(args: readonly string[], what: string): string {
  const [name, ...more] = args;
  if (name === undefined || more.length > 0) throw new CliError(`exactly one ${what} is required`);
  return name;
}

const viewCommand: Command = {
  name: 'view',
  summary: 'Display the merged kubeconfig settings',
  flags: [
    ...outputFlags,
    { name: 'raw', type: 'boolean', help: 'Show certificate data and secrets' },
    { name: 'minify', type: 'boolean', help: 'Only what the current context uses' },
  ],
  async run(session) {
    const { flags } = session;
    const config = await loadKubeconfig({ files: session.kubeconfigFiles });
    const current = flags.text('context') ?? config.currentContext;
    const context = config.contexts.get(current)?.body;
    const used: Readonly<Record<ListName, string>> = {
      contexts: current,
      clusters: textAt(context, 'cluster'),
      users: textAt(context, 'user'),
    };
    const entries = (list: ListName) =>
      [...config[list]]
        .filter(([name]) => !flags.boolean('minify') || name === used[list])
        .map(([name, { body }]) => ({
          name,
          [bodyNames[list]]: flags.boolean('raw') ? body : redacted(body),
        }));
    const merged = {
      apiVersion: 'v1',
      clusters: entries('clusters'),
      contexts: entries('contexts'),
      'current-context': current,
      kind: 'Config',
      preferences: {},
      users: entries('users'),
    };
    session.io.out((printerOf(session) ?? toYaml)(merged));
    return 0;
  },
};

const hidden: Readonly<Record<string, string>> = {
  token: 'REDACTED',
  password: 'REDACTED',
  'certificate-authority-data': 'DATA+OMITTED',
  'client-certificate-data': 'DATA+OMITTED',
  'client-key-data': 'DATA+OMITTED',
};

function redacted(body: JsonObject): JsonObject {
  const shown: JsonObject = {};
  for (const name of Object.keys(body)) {
    shown[name] = Object.hasOwn(hidden, name) ? hidden[name] : body[name];
  }
  return shown;
}

const getContextsCommand: Command = {
  name: 'get-contexts',
  summary: 'Describe one or many contexts',
  flags: [
    { name: 'no-headers', type: 'boolean', help: 'Leave the heading out' },
    { name: 'output', short: 'o', type: 'text', help: 'name' },
  ],
  async run(session, args) {
    const config = await loadKubeconfig({ files: session.kubeconfigFiles });
    const missing = args.find((name) => !config.contexts.has(name));
    if (missing !== undefined) throw new CliError(`context ${missing} not found`);
    const names = (args.length > 0 ? [...args] : [...config.contexts.keys()]).sort();
    if (session.flags.text('output') === 'name') {
      session.io.out(names.map((name) => `${name}\n`).join(''));
      return 0;
    }
    const rows = names.map((name) => {
      const body = config.contexts.get(name)?.body;
      const mark = name === config.currentContext ? '*' : '';
      return [mark, name, ...['cluster', 'user', 'namespace'].map((key) => textAt(body, key))];
    });
    const head = ['CURRENT', 'NAME', 'CLUSTER', 'AUTHINFO', 'NAMESPACE'];
    session.io.out(alignLines(session.flags.boolean('no-headers') ? rows : [head, ...rows]));
    return 0;
  },
};

const currentContextCommand: Command = {
  name: 'current-context',
  summary: 'Display the current-context',
  async run(session) {
    const { currentContext } = await loadKubeconfig({ files: session.kubeconfigFiles });
    if (currentContext === '') throw new CliError('current-context is not set');
    session.io.out(`${currentContext}\n`);
    return 0;
  },
};

const useContextCommand: Command = {
  name: 'use-context',
  aliases: ['use'],
  summary: 'Set the current-context in a kubeconfig file',
  usage: 'CONTEXT_NAME',
  async run(session, args) {
    const name = onlyArgument(args, 'context name');
    const { contexts } = await loadKubeconfig({ files: session.kubeconfigFiles });
    if (!contexts.has(name)) {
      throw new CliError(`no context exists with the name: ${JSON.stringify(name)}`);
    }
    await changeFile(session, (document) => {
      document['current-context'] = name;
    });
    session.io.out(`Switched to context ${JSON.stringify(name)}.\n`);
    return 0;
  },
};

/** Values of the flags given, under the names the file has for them. */
function flagValues(session: Session, names: readonly string[]): JsonObject {
  const values: JsonObject = {};
  for (const name of names) {
    if (session.flags.has(name)) values[name] = session.flags.text(name) ?? '';
  }
  return values;
}

/** Puts a file's content in place of its path, for `--embed-certs`. */
function embed(session: Session, values: JsonObject, names: readonly string[]): JsonObject {
  if (!session.flags.boolean('embed-certs')) return values;
  const embedded: JsonObject = { ...values };
  for (const name of names) {
    const file = member(values, name);
    if (typeof file !== 'string') continue;
    delete embedded[name];
    embedded[`${name}-data`] = readFileSync(session.path(file)).toString('base64');
  }
  return embedded;
}

const embedFlag: FlagSpec = {
  name: 'embed-certs',
  type: 'boolean',
  help: "Store the files' contents instead of their paths",
};

const setClusterCommand: Command = {
  name: 'set-cluster',
  summary: 'Set a cluster entry in kubeconfig',
  usage: 'NAME [--server=…] [--certificate-authority=…] [--insecure-skip-tls-verify]',
  flags: [embedFlag],
  async run(session, args) {
    const name = onlyArgument(args, 'cluster name');
    const values = flagValues(session, ['server', 'certificate-authority', 'tls-server-name']);
    if (session.flags.has('insecure-skip-tls-verify')) {
      values['insecure-skip-tls-verify'] = session.flags.boolean('insecure-skip-tls-verify');
    }
    const complete = embed(session, values, ['certificate-authority']);
    await changeFile(session, (document) => {
      setEntry(document, { list: 'clusters', name, values: complete });
    });
    session.io.out(`Cluster ${JSON.stringify(name)} set.\n`);
    return 0;
  },
};

const setCredentialsCommand: Command = {
  name: 'set-credentials',
  summary: 'Set a user entry in kubeconfig',
  usage: 'NAME [--token=…] [--client-certificate=… --client-key=…] [--username=… --password=…]',
  flags: [
    embedFlag,
    { name: 'username', type: 'text', help: 'User name for basic authentication' },
    { name: 'password', type: 'text', help: 'Password for basic authentication' },
  ],
  async run(session, args) {
    const name = onlyArgument(args, 'user name');
    const files = ['client-certificate', 'client-key'];
    const values = flagValues(session, ['token', 'username', 'password', ...files]);
    const complete = embed(session, values, files);
    await changeFile(session, (document) => {
      setEntry(document, { list: 'users', name, values: complete });
    });
    session.io.out(`User ${JSON.stringify(name)} set.\n`);
    return 0;
  },
};

const setContextCommand: Command = {
  name: 'set-context',
  summary: 'Set a context entry in kubeconfig',
  usage: '[NAME | --current] [--cluster=…] [--user=…] [--namespace=…]',
  flags: [{ name: 'current', type: 'boolean', help: 'Change the current context' }],
  async run(session, args) {
    const { currentContext } = await loadKubeconfig({ files: session.kubeconfigFiles });
    const current = session.flags.boolean('current');
    const name = current ? currentContext : onlyArgument(args, 'context name');
    if (name === '') throw new CliError('no current context is set');
    const values = flagValues(session, ['cluster', 'user', 'namespace']);
    let existed = false;
    await changeFile(session, (document) => {
      existed = setEntry(document, { list: 'contexts', name, values });
    });
    session.io.out(`Context ${JSON.stringify(name)} ${existed ? 'modified' : 'created'}.\n`);
    return 0;
  },
};

function deleteCommandOf(name: string, list: ListName): Command {
  const what = bodyNames[list];
  return {
    name,
    summary: `Delete the specified ${what} from the kubeconfig`,
    usage: 'NAME',
    async run(session, args) {
      const wanted = onlyArgument(args, `${what} name`);
      const file = fileToChange(session);
      const found = listAt(await readDocument(file), list).some((entry) => entry.name === wanted);
      if (!found) throw new CliError(`cannot delete ${what} ${wanted}, not in ${file}`);
      await changeFile(session, (document) => {
        document[list] = listAt(document, list).filter((entry) => entry.name !== wanted);
      });
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
    currentContextCommand,
    useContextCommand,
    setClusterCommand,
    setCredentialsCommand,
    setContextCommand,
    deleteCommandOf('delete-context', 'contexts'),
    deleteCommandOf('delete-cluster', 'clusters'),
    deleteCommandOf('delete-user', 'users'),
  ],
};
