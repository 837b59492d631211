import { statSync } from 'node:fs';
import { kubeconfigShape, type Shape } from '@wheelhouse/client';
import {
  base64ErrorAt,
  booleanOf,
  cut,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  problemText,
  setMember,
} from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import {
  bodyNames,
  changeCurrentContext,
  changeEntry,
  changeFile,
  defaultFile,
  type ListName,
  readMerged,
  requireArgs,
  storedPath,
} from '../../kubeconfig-edit.ts';
import { listAt, objectAt, textAt } from '../../objects.ts';
import type { Session } from '../../session.ts';

/** The member that a dotted name refers to. */
interface Property {
  /** The list and entry; undefined for a member of the file itself. */
  readonly entry: { readonly list: ListName; readonly name: string } | undefined;
  /** The path below the entry. */
  readonly path: readonly string[];
  readonly shape: Shape;
}

const isList = (name: string): name is ListName => Object.hasOwn(bodyNames, name);

/**
 * Parses a dotted name. The name of an entry may contain dots: it ends before the first part that
 * is a member of such entries. Throws CliError.
 */
function parseProperty(text: string): Property {
  if (text === '') throw new CliError('you must specify a property');
  const [head = '', ...rest] = text.split('.');
  if (!isList(head)) {
    const path = [head, ...rest];
    return { entry: undefined, path, shape: shapeAt(kubeconfigShape, path, text) };
  }
  const entries = shapeAt(kubeconfigShape, [head], text);
  const body = bodyShape(entries, bodyNames[head]);
  if (rest.length === 0) return { entry: { list: head, name: '' }, path: [], shape: entries };
  const memberIndex = rest.findIndex((part, at) => at > 0 && Object.hasOwn(body.members, part));
  const end = memberIndex < 0 ? rest.length : memberIndex;
  const path = rest.slice(end);
  return {
    entry: { list: head, name: rest.slice(0, end).join('.') },
    path,
    shape: shapeAt(body, path, text),
  };
}

type Members = Extract<Shape, { members: unknown }>;

function bodyShape(entries: Shape, key: string): Members {
  const item = typeof entries === 'object' && 'listOf' in entries ? entries.listOf : undefined;
  const memberSchema =
    typeof item === 'object' && 'members' in item ? item.members[key] : undefined;
  if (typeof memberSchema === 'object' && 'members' in memberSchema) return memberSchema;
  throw new Error(`the kubeconfig's ${key} has no members`);
}

function shapeAt(shape: Shape, path: readonly string[], text: string): Shape {
  let at = shape;
  for (const part of path) {
    if (typeof at === 'object' && 'members' in at && Object.hasOwn(at.members, part)) {
      at = at.members[part]!;
    } else if (typeof at === 'object' && 'mapOf' in at) {
      at = at.mapOf;
    } else if (typeof at !== 'object' || 'listOf' in at) {
      throw new CliError(`unable to parse one or more field values of ${text}`);
    } else {
      const problem = at === kubeconfigShape ? ' after [] at api.Config' : `: there is no ${part}`;
      throw new CliError(`unable to parse ${text}${problem}`);
    }
  }
  return at;
}

/** Sets one value by its path, which kubeconfig's structure must have; map keys may be new. */
export const setCommand: Command = {
  name: 'set',
  summary: 'Set an individual value in a kubeconfig file',
  usage: 'PROPERTY_NAME PROPERTY_VALUE',
  flags: [
    {
      name: 'set-raw-bytes',
      type: 'boolean',
      help: 'Treat values of byte fields as raw bytes, not base64',
    },
  ],
  async run(session, args) {
    const [name = '', value = ''] = await requireArgs(session, args, 2);
    if (value === '') throw new CliError('you cannot use set to unset a property');
    const property = parseProperty(name);
    const parsed = parseValue(session, property.shape, value);
    await change(session, property, (body) => setAt(body, property.path, parsed));
    session.io.out(`Property ${JSON.stringify(name)} set.\n`);
    return 0;
  },
};

function parseValue(session: Session, shape: Shape, value: string): string | boolean {
  if (typeof shape !== 'string') throw new CliError("can't set a map to a value");
  if (shape === 'text') return value;
  if (shape === 'boolean') {
    const boolean = booleanOf(value);
    if (boolean !== undefined) return boolean;
    throw new CliError(
      problemText({ code: 'number', parser: 'ParseBool', text: value, problem: 'syntax' }),
    );
  }
  if (session.flags.boolean('set-raw-bytes')) return Buffer.from(value).toString('base64');
  const at = base64ErrorAt(value);
  if (at === undefined) return Buffer.from(value, 'base64').toString('base64');
  throw new CliError(`error decoding input value: ${problemText({ code: 'base64', at })}`);
}

function setAt(body: JsonObject, path: readonly string[], value: string | boolean): void {
  const last = path.at(-1)!;
  let at = body;
  for (const part of path.slice(0, -1)) {
    const next = member(at, part);
    const copy: JsonObject = isObject(next) ? { ...next } : {};
    setMember(at, part, copy);
    at = copy;
  }
  setMember(at, last, value);
}

function unsetAt(body: JsonObject, path: readonly string[]): void {
  let at: JsonObject = body;
  for (const part of path.slice(0, -1)) {
    const next = member(at, part);
    if (!isObject(next)) return;
    at = next;
  }
  delete at[path.at(-1)!];
}

/** Removes one value by its path; succeeds if there is none. */
export const unsetCommand: Command = {
  name: 'unset',
  summary: 'Unset an individual value in a kubeconfig file',
  usage: 'PROPERTY_NAME',
  async run(session, args) {
    const [name = ''] = await requireArgs(session, args, 1);
    await unset(session, parseProperty(name));
    session.io.out(`Property ${JSON.stringify(name)} unset.\n`);
    return 0;
  },
};

async function unset(session: Session, property: Property): Promise<void> {
  const { entry, path } = property;
  if (entry === undefined) {
    await change(session, property, (body) => unsetAt(body, path));
    return;
  }
  const config = await readMerged(session);
  if (path.length > 0) {
    if (!config[entry.list].has(entry.name)) {
      throw new CliError(`current map key \`${entry.name}\` is invalid`);
    }
    await change(session, property, (body) => unsetAt(body, path));
    return;
  }
  const names = entry.name === '' ? [...config[entry.list].keys()] : [entry.name];
  for (const name of names.filter((candidate) => config[entry.list].has(candidate))) {
    await changeEntry(session, { list: entry.list, name }, () => undefined);
  }
}

async function change(
  session: Session,
  { entry, path }: Property,
  edit: (body: JsonObject) => void,
): Promise<void> {
  if (entry !== undefined) {
    if (path.length === 0) throw new CliError("can't set a map to a value");
    await changeEntry(session, entry, (body) => {
      edit(body);
      return body;
    });
    return;
  }
  if (path[0] === 'current-context') {
    const holder: JsonObject = {};
    edit(holder);
    await changeCurrentContext(session, String(holder['current-context'] ?? ''));
    return;
  }
  // Every file has the same kind and version, which cannot change.
  if (path[0] !== 'kind' && path[0] !== 'apiVersion') await changeFile(defaultFile(session), edit);
}

const embedFlag: FlagSpec = {
  name: 'embed-certs',
  type: 'boolean',
  help: 'Store the contents of the files instead of their paths',
};

/** Sets a member, or deletes it if the value is empty. */
function setOrDelete(body: JsonObject, name: string, value: JsonValue): void {
  if (value === '' || value === false) delete body[name];
  else setMember(body, name, value);
}

async function requireEntryName(
  session: Session,
  args: readonly string[],
  what: string,
): Promise<string> {
  const [name = ''] = await requireArgs(session, args, 1);
  if (name === '') throw new CliError(`you must specify a non-empty ${what} name`);
  return name;
}

/** Checks the files of `--embed-certs` before a write. Throws CliError. */
function checkEmbedded(session: Session, names: readonly string[]): void {
  if (!session.flags.boolean('embed-certs')) return;
  const flagNames = names.filter((name) => (session.flags.text(name) ?? '') !== '');
  if (flagNames.length === 0) {
    throw new CliError(`you must specify a --${names.join(' or --')} to embed`);
  }
  for (const name of flagNames) {
    const file = session.flags.text(name) ?? '';
    if (statSync(session.path(file), { throwIfNoEntry: false }) !== undefined) continue;
    throw new CliError(
      `could not stat ${name} file ${file}: stat ${file}: no such file or directory`,
    );
  }
}

/**
 * Stores a file's path or, with `--embed-certs`, its contents. Returns whether the flag names a
 * file.
 */
function setFile(
  session: Session,
  body: JsonObject,
  { name, kubeconfig }: { name: string; kubeconfig: string },
): boolean {
  const file = session.flags.text(name);
  if (file === undefined) return false;
  const data = `${name}-data`;
  if (session.flags.boolean('embed-certs')) {
    delete body[name];
    const bytes = session.readFile(session.path(file), (why) => why);
    setOrDelete(body, data, bytes.toString('base64'));
  } else {
    setOrDelete(body, name, file === '' ? '' : storedPath(kubeconfig, session.path(file)));
    if (file !== '') delete body[data];
  }
  return file !== '';
}

/**
 * Creates or changes a cluster; only the members whose flags are set change. A new server removes
 * the TLS server name, which belongs to the old one.
 */
export const setClusterCommand: Command = {
  name: 'set-cluster',
  completes: 'clusters',
  summary: 'Set a cluster entry in kubeconfig',
  usage: 'NAME [--server=…] [--certificate-authority=…] [--insecure-skip-tls-verify]',
  flags: [
    embedFlag,
    { name: 'proxy-url', type: 'text', help: 'Proxy through which to reach the server' },
  ],
  async run(session, args) {
    const { flags } = session;
    const name = await requireEntryName(session, args, 'cluster');
    const skips = flags.boolean('insecure-skip-tls-verify');
    if (skips && (flags.text('certificate-authority') ?? '') !== '') {
      throw new CliError(
        'you cannot specify a certificate authority and insecure mode at the same time',
      );
    }
    checkEmbedded(session, ['certificate-authority']);
    await changeEntry(session, { list: 'clusters', name }, (body, kubeconfig) => {
      // The TLS server name belongs to the old server.
      if (flags.has('server')) setOrDelete(body, 'tls-server-name', '');
      for (const member of ['server', 'tls-server-name', 'proxy-url']) {
        if (flags.has(member)) setOrDelete(body, member, flags.text(member) ?? '');
      }
      if (flags.has('insecure-skip-tls-verify'))
        setOrDelete(body, 'insecure-skip-tls-verify', skips);
      if (skips) {
        delete body['certificate-authority'];
        delete body['certificate-authority-data'];
      }
      if (setFile(session, body, { name: 'certificate-authority', kubeconfig })) {
        delete body['insecure-skip-tls-verify'];
      }
      return body;
    });
    session.io.out(`Cluster ${JSON.stringify(name)} set.\n`);
    return 0;
  },
};

/** Creates or changes a user. Rejects a token together with a user name or password. */
export const setCredentialsCommand: Command = {
  name: 'set-credentials',
  completes: 'users',
  summary: 'Set a user entry in kubeconfig',
  usage: 'NAME [--token=…] [--client-certificate=… --client-key=…] [--exec-command=…]',
  flags: [
    embedFlag,
    { name: 'auth-provider', type: 'text', help: 'Auth provider of the entry' },
    {
      name: 'auth-provider-arg',
      type: 'items',
      help: 'KEY=VALUE for the auth provider; KEY- removes it',
    },
    { name: 'exec-command', type: 'text', help: 'Program that provides credentials' },
    { name: 'exec-api-version', type: 'text', help: 'API version of the program' },
    { name: 'exec-arg', type: 'items', help: 'Arguments of the program' },
    { name: 'exec-env', type: 'list', help: 'NAME=VALUE for its environment; NAME- removes it' },
    {
      name: 'exec-interactive-mode',
      type: 'text',
      help: 'Whether it may prompt: Never, IfAvailable, or Always',
    },
    {
      name: 'exec-provide-cluster-info',
      type: 'boolean',
      help: 'Pass information about the cluster to the program',
    },
  ],
  async run(session, args) {
    const name = await requireEntryName(session, args, 'user');
    checkMethods(session);
    checkEmbedded(session, ['client-certificate', 'client-key']);
    const changes = {
      env: parseChanges(session, 'exec-env'),
      provider: parseChanges(session, 'auth-provider-arg'),
    };
    await changeEntry(session, { list: 'users', name }, (body, kubeconfig) => {
      for (const file of ['client-certificate', 'client-key']) {
        setFile(session, body, { name: file, kubeconfig });
      }
      setSecrets(session, body);
      setProvider(session, body, changes.provider);
      setExec(session, body, changes.env);
      return body;
    });
    session.io.out(`User ${JSON.stringify(name)} set.\n`);
    return 0;
  },
};

function checkMethods(session: Session): void {
  const isSet = (name: string): boolean => (session.flags.text(name) ?? '') !== '';
  if (isSet('token') && (isSet('username') || isSet('password'))) {
    throw new CliError(
      'you cannot specify more than one authentication method at the same time: ' +
        '--token, --username/--password',
    );
  }
  const mode = session.flags.text('exec-interactive-mode');
  if (mode !== undefined && !['IfAvailable', 'Never', 'Always'].includes(mode)) {
    throw new CliError('invalid interactive mode type, can be only IfAvailable, Never, Always');
  }
}

/** Sets a token, or a user name with a password, and deletes the other one. */
function setSecrets(session: Session, body: JsonObject): void {
  const { flags } = session;
  const set = (name: string): boolean => {
    if (!flags.has(name)) return false;
    setOrDelete(body, name, flags.text(name) ?? '');
    return flags.text(name) !== '';
  };
  const token = set('token');
  const basic = [set('username'), set('password')].includes(true);
  if (basic) delete body['token'];
  if (token) {
    delete body['username'];
    delete body['password'];
  }
}

interface PairChanges {
  readonly set: ReadonlyMap<string, string>;
  readonly remove: ReadonlySet<string>;
}

/** Reads the KEY=VALUE and KEY- items of a flag. Throws CliError. */
function parseChanges(session: Session, flag: string): PairChanges {
  const set = new Map<string, string>();
  const remove = new Set<string>();
  for (const argument of session.flags.list(flag)) {
    const [key, value] = cut(argument, '=');
    if (value === undefined && key.length > 1 && key.endsWith('-')) remove.add(key.slice(0, -1));
    else if (value !== undefined && key !== '') set.set(key, value);
    else throw new CliError(`invalid ${flag} format: ${argument}`);
  }
  return { set, remove };
}

function setProvider(session: Session, body: JsonObject, changes: PairChanges): void {
  const flag = session.flags.text('auth-provider');
  const present = objectAt(body, 'auth-provider');
  const isOther = flag !== undefined && textAt(present, 'name') !== flag;
  if (flag === undefined && !isObject(body['auth-provider'])) return;
  const provider: JsonObject = isOther ? { name: flag } : { ...present };
  const config: JsonObject = { ...objectAt(provider, 'config') };
  for (const key of changes.remove) delete config[key];
  for (const [key, value] of changes.set) setMember(config, key, value);
  body['auth-provider'] = { ...provider, config };
}

/** Changes the credential plugin; does nothing if the entry has none and no command is set. */
function setExec(session: Session, body: JsonObject, changes: PairChanges): void {
  const { flags } = session;
  const command = flags.text('exec-command');
  if (command === undefined && !isObject(body.exec)) return;
  const exec: JsonObject = { ...objectAt(body, 'exec') };
  if (command !== undefined) {
    exec.command = command;
    delete exec.args;
  }
  const args = flags.list('exec-arg');
  if (args.length > 0) exec.args = [...args];
  if (flags.has('exec-api-version')) exec.apiVersion = flags.text('exec-api-version') ?? '';
  if (flags.has('exec-interactive-mode')) {
    exec.interactiveMode = flags.text('exec-interactive-mode') ?? '';
  }
  if (flags.has('exec-provide-cluster-info')) {
    exec.provideClusterInfo = flags.boolean('exec-provide-cluster-info');
  }
  const env = changeEnv(listAt(exec, 'env'), changes);
  if (env.length > 0) exec.env = env;
  else delete exec.env;
  body.exec = exec;
}

function changeEnv(present: readonly JsonObject[], changes: PairChanges): JsonObject[] {
  const updated = present
    .filter((variable) => !changes.remove.has(textAt(variable, 'name')))
    .map((variable) => {
      const value = changes.set.get(textAt(variable, 'name'));
      return value === undefined ? variable : { ...variable, value };
    });
  const names = new Set(updated.map((variable) => textAt(variable, 'name')));
  const added = [...changes.set].filter(([name]) => !names.has(name));
  return [...updated, ...added.map(([name, value]) => ({ name, value }))];
}

/** Creates or changes a context; an empty flag removes its member. */
export const setContextCommand: Command = {
  name: 'set-context',
  completes: 'contexts',
  summary: 'Set a context entry in kubeconfig',
  usage: '[NAME | --current] [--cluster=…] [--user=…] [--namespace=…]',
  flags: [{ name: 'current', type: 'boolean', help: 'Change the current context' }],
  async run(session, args) {
    const { flags } = session;
    const name = await selectContext(session, args);
    const { existed } = await changeEntry(session, { list: 'contexts', name }, (body) => {
      for (const member of ['cluster', 'user', 'namespace']) {
        if (flags.has(member)) setOrDelete(body, member, flags.text(member) ?? '');
      }
      return body;
    });
    session.io.out(`Context ${JSON.stringify(name)} ${existed ? 'modified' : 'created'}.\n`);
    return 0;
  },
};

async function selectContext(session: Session, args: readonly string[]): Promise<string> {
  if (args.length > 1) await requireArgs(session, args, 1);
  const [name = ''] = args;
  if (!session.flags.boolean('current')) {
    if (name !== '') return name;
    throw new CliError('you must specify a non-empty context name or --current');
  }
  if (name !== '') throw new CliError('you cannot specify both a context name and --current');
  const { currentContext } = await readMerged(session);
  if (currentContext === '') throw new CliError('no current context is set');
  return currentContext;
}
