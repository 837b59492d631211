import { accessSync, constants, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
  stringsOf,
} from '@wheelhouse/machinery';
import { certificateFileSource, tokenFileSource } from '../credentials/credential-files.ts';
import {
  execConfigErrors,
  execExtensionNames,
  readExecConfig,
} from '../credentials/exec-config.ts';
import { createExecSource, type ExecHost, processExecHost } from '../credentials/exec-source.ts';
import { type Environment, environmentProxy } from '../environment-proxy.ts';
import {
  type ClientConfig,
  type Credential,
  CredentialError,
  type CredentialSource,
  type Impersonation,
} from './client-config.ts';
import {
  type Kubeconfig,
  KubeconfigError,
  type LocatedEntry,
  readProblem,
  textMember,
} from './kubeconfig.ts';

/**
 * Validates a user entry after overrides, with absolute paths. Returns errors in client-go's
 * wording.
 */
function validateUser(name: string, user: JsonObject): string[] {
  const has = (key: string): boolean => textMember(user, key) !== undefined;
  const errors = validateCertificate(name, user);
  if (isObject(user.exec)) {
    if (isObject(user['auth-provider'])) {
      errors.push(`authProvider cannot be provided in combination with an exec plugin for ${name}`);
    }
    errors.push(...execConfigErrors(readExecConfig(user.exec), name));
  }
  if (has('token') && (has('username') || has('password'))) {
    errors.push(
      `more than one authentication method found for ${name}; ` +
        'found [token basicAuth], only one is allowed',
    );
  }
  const extra = member(user, 'as-user-extra');
  const groups = member(user, 'as-groups');
  const hasDetails =
    has('as-uid') ||
    (Array.isArray(groups) && groups.length > 0) ||
    (isObject(extra) && Object.keys(extra).length > 0);
  if (hasDetails && !has('as')) {
    errors.push(`requesting uid, groups or user-extra for ${name} without impersonating a user`);
  }
  return errors;
}

function validateCertificate(name: string, user: JsonObject): string[] {
  const file = textMember(user, 'client-certificate');
  const data = textMember(user, 'client-certificate-data');
  const keyFile = textMember(user, 'client-key');
  const keyData = textMember(user, 'client-key-data');
  if (file === undefined && data === undefined) return [];
  const errors: string[] = [];
  if (file !== undefined && data !== undefined) {
    errors.push(
      `client-cert-data and client-cert are both specified for ${name}. ` +
        'client-cert-data will override.',
    );
  }
  if (keyFile !== undefined && keyData !== undefined) {
    errors.push(
      `client-key-data and client-key are both specified for ${name}; ` +
        'client-key-data will override',
    );
  }
  if (keyFile === undefined && keyData === undefined) {
    errors.push(
      `client-key-data or client-key must be specified for ${name} ` +
        'to use the clientCert authentication method.',
    );
  }
  errors.push(...checkReadable(file, { what: 'client-cert', name }));
  errors.push(...checkReadable(keyFile, { what: 'client-key', name }));
  return errors;
}

/** Validates a cluster entry. Returns errors in client-go's wording. */
function validateCluster(name: string, cluster: JsonObject): string[] {
  const errors: string[] = [];
  const proxyUrl = textMember(cluster, 'proxy-url');
  const problem = proxyUrl === undefined ? undefined : proxyUrlError(proxyUrl);
  if (problem !== undefined) {
    const quotedUrl = JSON.stringify(proxyUrl);
    errors.push(`invalid 'proxy-url' ${quotedUrl} for cluster ${JSON.stringify(name)}: ${problem}`);
  }
  const file = textMember(cluster, 'certificate-authority');
  if (file !== undefined && textMember(cluster, 'certificate-authority-data') !== undefined) {
    errors.push(
      `certificate-authority-data and certificate-authority are both specified for ${name}. ` +
        'certificate-authority-data will override.',
    );
  }
  errors.push(...checkReadable(file, { what: 'certificate-authority', name }));
  return errors;
}

function proxyUrlError(proxyUrl: string): string | undefined {
  const url = URL.canParse(proxyUrl) ? new URL(proxyUrl) : undefined;
  const scheme = url?.protocol.slice(0, -1) ?? '';
  if (['http', 'https', 'socks5'].includes(scheme)) return undefined;
  return `unsupported scheme ${JSON.stringify(scheme)}, must be http, https, or socks5`;
}

function checkReadable(
  file: string | undefined,
  { what, name }: { what: string; name: string },
): string[] {
  if (file === undefined) return [];
  try {
    accessSync(file, constants.R_OK);
    return [];
  } catch (error) {
    return [`unable to read ${what} ${file} for ${name} due to ${readProblem(file, error)}`];
  }
}

/** Settings that override those of a kubeconfig. File paths are absolute. */
export interface KubeconfigOverrides {
  readonly context?: string | undefined;
  readonly cluster?: string | undefined;
  readonly user?: string | undefined;
  readonly namespace?: string | undefined;
  /** Whether the wording of errors is that of kubectl's commands that need no namespace first. */
  readonly needsNoNamespace?: boolean | undefined;
  readonly server?: string | undefined;
  readonly token?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly certificateAuthority?: string | undefined;
  readonly clientCertificate?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly tlsServerName?: string | undefined;
  readonly asUser?: string | undefined;
  readonly asUid?: string | undefined;
  readonly asGroups?: readonly string[] | undefined;
}

/** The client configuration and the namespace of a context. */
export interface ResolvedContext {
  readonly client: ClientConfig;
  /** The override or the namespace of the context; `default` if neither is set. */
  readonly namespace: string;
}

/** The server if neither a file nor a flag names one. */
const defaultServer = 'http://localhost:8080';

/**
 * Selects a context and creates its client configuration by the rules of client-go: an override
 * replaces the entry's member, relative paths refer to the folder of the entry's file, and
 * credentials are only sent over TLS. Without `proxy-url`, the environment names the proxy. Throws
 * KubeconfigError.
 */
export function resolveContext(
  config: Kubeconfig,
  overrides: KubeconfigOverrides = {},
  options: { readonly execHost?: ExecHost; readonly env?: Environment } = {},
): ResolvedContext {
  const names = selectNames(config, overrides);
  const cluster = withClusterFlags(resolveEntry(config.clusters, names.cluster), overrides);
  const user = withUserFlags(resolveEntry(config.users, names.user), overrides);
  const errors = [...names.errors, ...validateUser(names.user, user)];
  errors.push(...validateCluster(names.cluster, cluster));
  if (errors.length > 0) {
    throw new KubeconfigError(`invalid configuration: ${errors.join(', ')}`, errors);
  }
  const clusterSettings = clusterConfig(cluster);
  const isSecure = clusterSettings.server.startsWith('https:');
  const impersonate = impersonationOf(user);
  return {
    client: {
      ...clusterSettings,
      proxyUrl:
        clusterSettings.proxyUrl ||
        environmentProxy(new URL(clusterSettings.server), options.env ?? {}),
      ...(isSecure ? userConfig(user, { cluster, clusterSettings, host: options.execHost }) : {}),
      impersonate,
    },
    namespace: names.namespace ?? 'default',
  };
}

function selectNames(config: Kubeconfig, overrides: KubeconfigOverrides) {
  const name = overrides.context || config.currentContext;
  const context = config.contexts.get(name)?.body;
  // While kubectl looks for the namespace, it words these errors differently.
  const looksForNamespace = !overrides.namespace && overrides.needsNoNamespace !== true;
  const isMissing = name !== '' && context === undefined;
  const lacksCluster = overrides.cluster && !config.clusters.has(overrides.cluster);
  const cluster = `cluster ${JSON.stringify(overrides.cluster)}`;
  const errors = [
    ...(isMissing ? [`context was not found for specified context: ${name}`] : []),
    ...(lacksCluster ? [`no server found for ${cluster}`] : []),
  ];
  if (isMissing && !looksForNamespace) {
    throw new KubeconfigError(`context ${JSON.stringify(name)} does not exist`);
  }
  if (overrides.user && !config.users.has(overrides.user) && !(looksForNamespace && errors[0])) {
    throw new KubeconfigError(`auth info ${JSON.stringify(overrides.user)} does not exist`);
  }
  if (lacksCluster && !looksForNamespace) throw new KubeconfigError(`${cluster} does not exist`);
  const body = context ?? {};
  return {
    cluster: overrides.cluster || (textMember(body, 'cluster') ?? ''),
    user: overrides.user || (textMember(body, 'user') ?? ''),
    namespace: overrides.namespace || textMember(body, 'namespace'),
    errors,
  };
}

const clusterFiles = ['certificate-authority'];
const userFiles = ['client-certificate', 'client-key', 'tokenFile'];

/** The members of an entry, with relative paths made absolute. */
function resolveEntry(entries: ReadonlyMap<string, LocatedEntry>, name: string): JsonObject {
  const entry = entries.get(name);
  if (entry === undefined) return {};
  const body: JsonObject = { ...entry.body };
  for (const file of [...clusterFiles, ...userFiles]) {
    const value = textMember(body, file);
    if (value !== undefined) body[file] = path.resolve(entry.folder, value);
  }
  const { exec } = body;
  const command = isObject(exec) ? textMember(exec, 'command') : undefined;
  // A bare name is looked up in PATH.
  if (isObject(exec) && command?.includes(path.sep)) {
    body.exec = { ...exec, command: path.resolve(entry.folder, command) };
  }
  return body;
}

/** Copies the members that have a value. */
function withValues(
  body: JsonObject,
  values: Readonly<Record<string, JsonValue | undefined>>,
): JsonObject {
  const merged = { ...body };
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== '') setMember(merged, name, value);
  }
  return merged;
}

function withClusterFlags(body: JsonObject, overrides: KubeconfigOverrides): JsonObject {
  const { server, tlsServerName, insecureSkipTlsVerify, certificateAuthority } = overrides;
  const merged = withValues(
    { server: defaultServer, ...body },
    {
      server,
      'tls-server-name': tlsServerName,
      'insecure-skip-tls-verify': insecureSkipTlsVerify,
      'certificate-authority': certificateAuthority,
    },
  );
  if (!merged.server) merged.server = defaultServer;
  // Either override replaces all trust settings of the file, so that they cannot conflict.
  if (insecureSkipTlsVerify === true || certificateAuthority) {
    delete merged['certificate-authority-data'];
    merged['insecure-skip-tls-verify'] = insecureSkipTlsVerify === true;
    merged['certificate-authority'] = certificateAuthority ?? '';
  }
  // The TLS server name in the file belongs to the server in the file.
  if (server && !tlsServerName) delete merged['tls-server-name'];
  return merged;
}

function withUserFlags(body: JsonObject, overrides: KubeconfigOverrides): JsonObject {
  const { asGroups } = overrides;
  const merged = withValues(body, {
    token: overrides.token,
    username: overrides.username,
    password: overrides.password,
    'client-certificate': overrides.clientCertificate,
    'client-key': overrides.clientKey,
    as: overrides.asUser,
    'as-uid': overrides.asUid,
    'as-groups': asGroups === undefined || asGroups.length === 0 ? undefined : [...asGroups],
  });
  if (overrides.token) delete merged['tokenFile'];
  return merged;
}

function clusterConfig(cluster: JsonObject): ClientConfig {
  const server = textMember(cluster, 'server') ?? defaultServer;
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  const proxyUrl = textMember(cluster, 'proxy-url');
  if (proxyUrl?.startsWith('socks5:')) {
    throw new KubeconfigError('proxy-url supports only http and https, not socks5');
  }
  const caPem = dataOrFile(cluster, 'certificate-authority');
  if (insecure && caPem !== undefined) {
    throw new KubeconfigError(
      'specifying a root certificates file with the insecure flag is not allowed',
    );
  }
  return {
    server: normalizeServerUrl(server.includes('://') ? server : `http://${server}`),
    caPem,
    insecureSkipTlsVerify: insecure,
    tlsServerName: textMember(cluster, 'tls-server-name'),
    proxyUrl,
  };
}

function normalizeServerUrl(server: string): string {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.host === '') {
    throw new KubeconfigError(`the server ${JSON.stringify(server)} is not an http or https URL`);
  }
  url.search = '';
  url.hash = '';
  return url.href.replace(/\/$/, '');
}

interface UserContext {
  readonly cluster: JsonObject;
  readonly clusterSettings: ClientConfig;
  readonly host: ExecHost | undefined;
}

function userConfig(user: JsonObject, context: UserContext): Partial<ClientConfig> {
  const certificatePem = dataOrFile(user, 'client-certificate');
  const keyPem = certificatePem === undefined ? undefined : dataOrFile(user, 'client-key');
  const token = tokenSource(user);
  const username = textMember(user, 'username');
  const password = textMember(user, 'password');
  const basicAuth =
    username === undefined && password === undefined
      ? undefined
      : { username: username ?? '', password: password ?? '' };
  const hasCredential =
    token !== undefined || basicAuth !== undefined || certificatePem !== undefined;
  // Other credentials take precedence over the plugin.
  const credentials = hasCredential
    ? certificateFiles(user, { certificatePem, keyPem })
    : createPlugin(user, context);
  return { certificatePem, keyPem, token, basicAuth, credentials };
}

/** The source of a certificate whose files may change; undefined for one in the kubeconfig. */
function certificateFiles(user: JsonObject, first: Credential): CredentialSource | undefined {
  const isInline = ['client-certificate-data', 'client-key-data'].some(
    (name) => textMember(user, name) !== undefined,
  );
  const certificate = textMember(user, 'client-certificate');
  const key = textMember(user, 'client-key');
  if (isInline || certificate === undefined || key === undefined) return undefined;
  return certificateFileSource({ certificate, key }, first);
}

function createPlugin(user: JsonObject, context: UserContext): CredentialSource | undefined {
  if (!isObject(user.exec)) return undefined;
  const { cluster, clusterSettings } = context;
  try {
    return createExecSource({
      config: readExecConfig(user.exec),
      cluster: {
        server: clusterSettings.server,
        tlsServerName: clusterSettings.tlsServerName,
        insecureSkipTlsVerify: clusterSettings.insecureSkipTlsVerify,
        caPem: clusterSettings.caPem,
        proxyUrl: clusterSettings.proxyUrl,
        disableCompression: cluster['disable-compression'] === true,
        config: pluginExtension(cluster),
      },
      host: context.host ?? processExecHost,
    });
  } catch (error) {
    if (error instanceof CredentialError) throw new KubeconfigError(error.message);
    throw error;
  }
}

function pluginExtension(cluster: JsonObject): JsonValue | undefined {
  const list = member(cluster, 'extensions');
  if (!Array.isArray(list)) return undefined;
  const extension = list
    .filter(isObject)
    .find(({ name }) => execExtensionNames.includes(String(name)));
  return extension === undefined ? undefined : member(extension, 'extension');
}

function tokenSource(user: JsonObject): (() => string | undefined) | undefined {
  const token = textMember(user, 'token');
  const file = textMember(user, 'tokenFile');
  if (file !== undefined) return tokenFileSource({ file, fallback: token });
  return token === undefined ? undefined : () => token;
}

function impersonationOf(user: JsonObject): Impersonation | undefined {
  const name = textMember(user, 'as');
  if (name === undefined) return undefined;
  const extra = member(user, 'as-user-extra');
  const pairs = isObject(extra) ? Object.keys(extra) : [];
  return {
    user: name,
    uid: textMember(user, 'as-uid'),
    groups: stringsOf(member(user, 'as-groups')),
    extra: new Map(pairs.map((key) => [key, stringsOf(member(extra as JsonObject, key))])),
  };
}

function dataOrFile(body: JsonObject, name: string): string | undefined {
  const data = textMember(body, `${name}-data`);
  if (data !== undefined) return Buffer.from(data, 'base64').toString();
  const file = textMember(body, name);
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new KubeconfigError(`unable to read ${name}: ${readProblem(file, error)}`);
  }
}
