import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  base64ErrorAt,
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  problemText,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { parseYaml } from '../yaml.ts';

/** The type of a member of a kubeconfig. Unlisted members may have any type. */
export type Shape =
  | 'text'
  | 'boolean'
  | 'base64'
  | { readonly listOf: Shape }
  | { readonly mapOf: Shape }
  | { readonly members: Readonly<Record<string, Shape>> };

const extensions: Shape = { listOf: { members: { name: 'text' } } };

const cluster: Shape = {
  members: {
    server: 'text',
    'tls-server-name': 'text',
    'insecure-skip-tls-verify': 'boolean',
    'certificate-authority': 'text',
    'certificate-authority-data': 'base64',
    'proxy-url': 'text',
    'disable-compression': 'boolean',
    extensions,
  },
};

const exec: Shape = {
  members: {
    command: 'text',
    args: { listOf: 'text' },
    env: { listOf: { members: { name: 'text', value: 'text' } } },
    apiVersion: 'text',
    installHint: 'text',
    provideClusterInfo: 'boolean',
    interactiveMode: 'text',
  },
};

const user: Shape = {
  members: {
    'client-certificate': 'text',
    'client-certificate-data': 'base64',
    'client-key': 'text',
    'client-key-data': 'base64',
    token: 'text',
    tokenFile: 'text',
    as: 'text',
    'as-uid': 'text',
    'as-groups': { listOf: 'text' },
    'as-user-extra': { mapOf: { listOf: 'text' } },
    username: 'text',
    password: 'text',
    'auth-provider': { members: { name: 'text', config: { mapOf: 'text' } } },
    exec,
    extensions,
  },
};

const context: Shape = {
  members: { cluster: 'text', user: 'text', namespace: 'text', extensions },
};

const namedEntries = (key: string, body: Shape): Shape => ({
  listOf: { members: { name: 'text', [key]: body } },
});

/** The shape of a whole kubeconfig. */
export const kubeconfigShape: Shape = {
  members: {
    apiVersion: 'text',
    kind: 'text',
    'current-context': 'text',
    preferences: { members: { colors: 'boolean', extensions } },
    clusters: namedEntries('cluster', cluster),
    users: namedEntries('user', user),
    contexts: namedEntries('context', context),
    extensions,
  },
};

/**
 * Finds the first type error in a kubeconfig. Returns undefined if it is valid. Quotes no values.
 */
function shapeError(document: JsonObject): string | undefined {
  const { kind, apiVersion } = document;
  if ((kind ?? 'Config') !== 'Config' || (apiVersion || 'v1') !== 'v1') {
    return (
      `no kind ${JSON.stringify(kind ?? 'Config')} is registered for version ` +
      JSON.stringify(apiVersion || 'v1')
    );
  }
  return typeError(document, kubeconfigShape, '') ?? duplicateName(document);
}

/** Finds the first type error in a value. Null counts as absent. */
function typeError(value: JsonValue, shape: Shape, path: string): string | undefined {
  if (value === null) return undefined;
  if (typeof shape === 'string') return scalarTypeError(value, shape, path);
  if ('listOf' in shape) {
    if (!Array.isArray(value)) return `${path} must be a list`;
    return firstError(value, (item, at) => typeError(item, shape.listOf, `${path}[${at}]`));
  }
  if (!isObject(value)) return `${path} must be a mapping`;
  const prefix = path === '' ? '' : `${path}.`;
  return firstError(Object.keys(value), (name) => {
    const memberType = 'mapOf' in shape ? shape.mapOf : memberShape(shape.members, name);
    const memberValue = member(value, name) ?? null;
    return memberType === undefined ? undefined : typeError(memberValue, memberType, prefix + name);
  });
}

function memberShape(members: Readonly<Record<string, Shape>>, name: string): Shape | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

function scalarTypeError(
  value: JsonValue,
  shape: 'text' | 'boolean' | 'base64',
  path: string,
): string | undefined {
  if (shape === 'boolean') {
    return typeof value === 'boolean' ? undefined : `${path} must be true or false`;
  }
  if (typeof value !== 'string') return `${path} must be a string`;
  if (shape === 'text') return undefined;
  const at = base64ErrorAt(value);
  return at === undefined ? undefined : `${path}: ${problemText({ code: 'base64', at })}`;
}

function firstError<T>(
  items: readonly T[],
  check: (item: T, at: number) => string | undefined,
): string | undefined {
  for (const [at, item] of items.entries()) {
    const problem = check(item, at);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function duplicateName(document: JsonObject): string | undefined {
  return firstError(['clusters', 'users', 'contexts'], (list) => {
    const entries = member(document, list);
    if (!Array.isArray(entries)) return undefined;
    const seen = new Set<JsonValue | undefined>();
    return firstError(entries, (entry) => {
      const name = isObject(entry) ? (member(entry, 'name') ?? '') : '';
      if (seen.has(name)) return `duplicate name ${JSON.stringify(name)} in ${list}`;
      seen.add(name);
      return undefined;
    });
  });
}

/** The kubeconfig is invalid or unreadable. */
export class KubeconfigError extends Error {
  /** Errors in the entries in use, one per line; empty for other failures. */
  readonly errors: readonly string[];

  constructor(message: string, errors: readonly string[] = []) {
    super(message);
    this.name = 'KubeconfigError';
    this.errors = errors;
  }
}

/** The entries of one or more kubeconfig files by name. The first definition of a name wins. */
export interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, LocatedEntry>;
  readonly users: ReadonlyMap<string, LocatedEntry>;
  readonly contexts: ReadonlyMap<string, LocatedEntry>;
}

/** The body of an entry, its file, and the folder to which its relative paths refer. */
export interface LocatedEntry {
  readonly body: JsonObject;
  readonly folder: string;
  readonly file: string;
}

/** Maximum size of a file. */
const fileBytesMax = 16 * 1024 * 1024;

/**
 * Returns the files that a client reads: `--kubeconfig`, else the path list in `$SVCCONFIG` or, if
 * that is unset, `$KUBECONFIG`, else the file in the home directory. Skips empty and repeated
 * items.
 */
export function kubeconfigFiles(options: {
  readonly flag?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}): readonly string[] {
  if (options.flag !== undefined && options.flag !== '') return [options.flag];
  const list = options.env['SVCCONFIG'] || options.env['KUBECONFIG'] || '';
  const listed = new Set(list.split(path.delimiter).filter((file) => file !== ''));
  return listed.size > 0 ? [...listed] : [path.join(options.home, '.kube', 'config')];
}

/**
 * Reads and merges files. Skips missing files unless they are `required`. Rejects with
 * KubeconfigError.
 */
export async function loadKubeconfig(options: {
  readonly files: readonly string[];
  readonly required?: boolean;
}): Promise<Kubeconfig> {
  const clusters = new Map<string, LocatedEntry>();
  const users = new Map<string, LocatedEntry>();
  const contexts = new Map<string, LocatedEntry>();
  let currentContext = '';
  for (const file of options.files) {
    const document = await readKubeconfigFile(file, options.required ?? false);
    if (document === undefined) continue;
    addEntries(clusters, { document, list: 'clusters', key: 'cluster', file });
    addEntries(users, { document, list: 'users', key: 'user', file });
    addEntries(contexts, { document, list: 'contexts', key: 'context', file });
    if (currentContext === '') currentContext = textMember(document, 'current-context') ?? '';
  }
  return { currentContext, clusters, users, contexts };
}

/**
 * Reads the document of one file. Resolves with undefined if it is empty or, unless required,
 * missing. Rejects with KubeconfigError.
 */
export async function readKubeconfigFile(
  file: string,
  required = false,
): Promise<JsonObject | undefined> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = systemErrorCode(error);
    if (!required && code === 'ENOENT') return undefined;
    if (required && code === 'ENOENT') {
      throw new KubeconfigError(`stat ${file}: no such file or directory`);
    }
    throw loadError(file, readProblem(file, error));
  }
  if (text.length > fileBytesMax) throw loadError(file, 'the file is too large');
  return parseKubeconfig(text, file);
}

const openProblems: Readonly<Record<string, string | undefined>> = {
  EACCES: 'permission denied',
  ENOENT: 'no such file or directory',
  ENOTDIR: 'not a directory',
};

/** Words an error of reading a file like Go. */
export function readProblem(file: string, error: unknown): string {
  const code = systemErrorCode(error) ?? '';
  if (code === 'EISDIR') return `read ${file}: is a directory`;
  const why = openProblems[code];
  return why === undefined ? errorText(error) : `open ${file}: ${why}`;
}

const loadError = (file: string, why: string): KubeconfigError =>
  new KubeconfigError(`error loading config file "${file}": ${why}`);

/**
 * Parses the text of a kubeconfig. Resolves with undefined if it is empty. `file` is for messages.
 */
export async function parseKubeconfig(text: string, file: string): Promise<JsonObject | undefined> {
  let value: JsonValue;
  try {
    value = await parseYaml(text);
  } catch (error) {
    throw loadError(file, errorText(error));
  }
  if (value === null) return undefined;
  if (!isObject(value)) throw loadError(file, 'not a mapping');
  const wrong = shapeError(value);
  if (wrong !== undefined) throw loadError(file, wrong);
  return value;
}

function addEntries(
  into: Map<string, LocatedEntry>,
  source: { document: JsonObject; list: string; key: string; file: string },
): void {
  const list = member(source.document, source.list);
  if (!Array.isArray(list)) return;
  const folder = path.dirname(path.resolve(source.file));
  for (const entry of list) {
    const name = isObject(entry) ? (textMember(entry, 'name') ?? '') : '';
    const body = isObject(entry) ? member(entry, source.key) : undefined;
    if (into.has(name)) continue;
    into.set(name, { body: isObject(body) ? body : {}, folder, file: source.file });
  }
}

/** The value of a member if it is a nonempty string. */
export function textMember(object: JsonObject, name: string): string | undefined {
  const value = member(object, name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}
