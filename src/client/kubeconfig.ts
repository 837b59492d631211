import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isObject, type JsonObject, type JsonValue, member } from '../base/json.ts';
import type { ClientConfig } from './client-config.ts';
import { parseYaml } from './yaml.ts';

/** A kubeconfig that cannot be used. */
export class KubeconfigError extends Error {}

/** Named entries of one or several kubeconfig files; the first to name an entry wins. */
export interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, LocatedEntry>;
  readonly users: ReadonlyMap<string, LocatedEntry>;
  readonly contexts: ReadonlyMap<string, LocatedEntry>;
}

/** An entry's body, and the folder its relative paths start from. */
export interface LocatedEntry {
  readonly body: JsonObject;
  readonly folder: string;
  readonly file: string;
}

/** The files a client reads: `--kubeconfig`, else `$KUBECONFIG` (a path list), else the home's. */
export function kubeconfigFiles(options: {
  readonly flag?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}): readonly string[] {
  if (options.flag !== undefined && options.flag !== '') return [options.flag];
  const listed = (options.env['KUBECONFIG'] ?? '')
    .split(path.delimiter)
    .filter((one) => one !== '');
  return listed.length > 0 ? listed : [path.join(options.home, '.kube', 'config')];
}

/**
 * Reads and merges files. Absent ones count as empty, except a single one that was asked for by
 * flag (`required`). Rejects with KubeconfigError.
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
    const document = await readDocument(file, options.required ?? false);
    if (document === undefined) continue;
    addEntries(clusters, { document, list: 'clusters', key: 'cluster', file });
    addEntries(users, { document, list: 'users', key: 'user', file });
    addEntries(contexts, { document, list: 'contexts', key: 'context', file });
    if (currentContext === '') currentContext = stringOf(document, 'current-context') ?? '';
  }
  return { currentContext, clusters, users, contexts };
}

async function readDocument(file: string, required: boolean): Promise<JsonObject | undefined> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (!required && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new KubeconfigError(`${(error as Error).message}`);
  }
  let value: JsonValue;
  try {
    value = await parseYaml(text);
  } catch (error) {
    throw new KubeconfigError(
      `error loading config file ${JSON.stringify(file)}: ${String(error)}`,
    );
  }
  if (value === null) return undefined;
  if (!isObject(value)) {
    throw new KubeconfigError(`error loading config file ${JSON.stringify(file)}: not a mapping`);
  }
  return value;
}

function addEntries(
  into: Map<string, LocatedEntry>,
  from: { document: JsonObject; list: string; key: string; file: string },
): void {
  const list = member(from.document, from.list);
  if (!Array.isArray(list)) return;
  for (const entry of list) {
    if (!isObject(entry)) continue;
    const name = stringOf(entry, 'name');
    const body = member(entry, from.key);
    if (name === undefined || into.has(name)) continue;
    const folder = path.dirname(path.resolve(from.file));
    into.set(name, { body: isObject(body) ? body : {}, folder, file: from.file });
  }
}

function stringOf(object: JsonObject, name: string): string | undefined {
  const value = member(object, name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** What the command line may override. */
export interface KubeconfigOverrides {
  readonly context?: string | undefined;
  readonly cluster?: string | undefined;
  readonly user?: string | undefined;
  readonly namespace?: string | undefined;
  readonly server?: string | undefined;
  readonly token?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly certificateAuthority?: string | undefined;
  readonly clientCertificate?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly tlsServerName?: string | undefined;
  readonly asUser?: string | undefined;
  readonly asGroups?: readonly string[] | undefined;
}

export interface ResolvedContext {
  readonly client: ClientConfig;
  /** The context's namespace or the override; `default` when neither says. */
  readonly namespace: string;
  /** Whether flag or context named the namespace. */
  readonly namespaceGiven: boolean;
}

/** Picks the context and makes a client's configuration of it. Throws KubeconfigError. */
export function resolveContext(
  config: Kubeconfig,
  overrides: KubeconfigOverrides = {},
): ResolvedContext {
  const name = overrides.context ?? config.currentContext;
  const context = config.contexts.get(name);
  if (context === undefined && name !== '') {
    throw new KubeconfigError(
      overrides.context === undefined
        ? `current-context ${JSON.stringify(name)} does not exist`
        : `context ${JSON.stringify(name)} does not exist`,
    );
  }
  const body = context?.body ?? {};
  const clusterName = overrides.cluster ?? stringOf(body, 'cluster') ?? '';
  const userName = overrides.user ?? stringOf(body, 'user') ?? '';
  const cluster = named(config.clusters, { kind: 'cluster', name: clusterName });
  const user = named(config.users, { kind: 'auth info', name: userName });
  const namespace = overrides.namespace ?? stringOf(body, 'namespace');
  return {
    client: { ...clusterConfig(cluster, overrides), ...userConfig(user, overrides) },
    namespace: namespace ?? 'default',
    namespaceGiven: namespace !== undefined,
  };
}

function named(
  entries: ReadonlyMap<string, LocatedEntry>,
  wanted: { kind: string; name: string },
): LocatedEntry | undefined {
  const found = entries.get(wanted.name);
  if (found === undefined && wanted.name !== '') {
    throw new KubeconfigError(`${wanted.kind} ${JSON.stringify(wanted.name)} does not exist`);
  }
  return found;
}

/** Where clients go when nobody says. */
export const defaultServer = 'http://localhost:8080';

function clusterConfig(
  cluster: LocatedEntry | undefined,
  overrides: KubeconfigOverrides,
): ClientConfig {
  const body = cluster?.body ?? {};
  const server = overrides.server ?? stringOf(body, 'server') ?? defaultServer;
  const insecure = overrides.insecureSkipTlsVerify ?? body['insecure-skip-tls-verify'] === true;
  const caPem = insecure
    ? undefined
    : (readOverride(overrides.certificateAuthority) ??
      dataOrFile(cluster, 'certificate-authority'));
  return {
    server: server.includes('://') ? server : `https://${server}`,
    caPem,
    insecureSkipTlsVerify: insecure,
    tlsServerName: overrides.tlsServerName ?? stringOf(body, 'tls-server-name'),
  };
}

function userConfig(
  user: LocatedEntry | undefined,
  overrides: KubeconfigOverrides,
): Partial<ClientConfig> {
  const body = user?.body ?? {};
  const username = stringOf(body, 'username');
  const asUser = overrides.asUser ?? stringOf(body, 'as');
  return {
    certificatePem:
      readOverride(overrides.clientCertificate) ?? dataOrFile(user, 'client-certificate'),
    keyPem: readOverride(overrides.clientKey) ?? dataOrFile(user, 'client-key'),
    token: tokenSource(user, overrides),
    basicAuth:
      username === undefined ? undefined : { username, password: stringOf(body, 'password') ?? '' },
    impersonate:
      asUser === undefined ? undefined : { user: asUser, groups: overrides.asGroups ?? [] },
  };
}

function tokenSource(
  user: LocatedEntry | undefined,
  overrides: KubeconfigOverrides,
): (() => string | undefined) | undefined {
  const fixed = overrides.token ?? (user === undefined ? undefined : stringOf(user.body, 'token'));
  if (fixed !== undefined) return () => fixed;
  const file = user === undefined ? undefined : stringOf(user.body, 'tokenFile');
  if (user === undefined || file === undefined) return undefined;
  return () => readPem(path.resolve(user.folder, file)).trim();
}

function dataOrFile(entry: LocatedEntry | undefined, name: string): string | undefined {
  if (entry === undefined) return undefined;
  const data = stringOf(entry.body, `${name}-data`);
  if (data !== undefined) return Buffer.from(data, 'base64').toString();
  const file = stringOf(entry.body, name);
  return file === undefined ? undefined : readPem(path.resolve(entry.folder, file));
}

function readOverride(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readPem(file);
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new KubeconfigError(`unable to read ${file}: ${(error as Error).message}`);
  }
}
