import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  appendAll,
  cut,
  type Dialect,
  type FieldError,
  fieldErrorsText,
  invalid,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
  member,
  objectsOf,
  required,
  textOf,
  textsOf,
} from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration } from '@wheelhouse/schema';
import type { KmsSettings, NamedKey, Provider } from './providers.ts';

/**
 * Resources (`secrets`, `deployments.apps`, `*.apps`, `*.`, `*.*`) and the providers that encrypt
 * them.
 */
export interface EncryptionRule {
  readonly resources: readonly string[];
  /** The first one encrypts; all of them decrypt. */
  readonly providers: readonly Provider[];
}

const keysType = structType('Keys', {
  keys: listType(structType('Key', { name: textType, secret: textType })),
});
const kmsType = structType('KMSConfiguration', {
  apiVersion: textType,
  name: textType,
  cachesize: optional({ type: 'integer', format: 'int32' }),
  endpoint: textType,
  timeout: optional(textType),
});
const configurationType = structType('EncryptionConfiguration', {
  resources: listType(
    structType('ResourceConfiguration', {
      resources: listType(textType),
      providers: listType(
        structType('ProviderConfiguration', {
          aesgcm: optional(keysType),
          aescbc: optional(keysType),
          secretbox: optional(keysType),
          identity: optional(structType('IdentityConfiguration', {})),
          kms: optional(kmsType),
        }),
      ),
    }),
  ),
});

/** The format that preceded `encryptionFormat` and is still accepted. */
const olderFormat = {
  kind: 'EncryptionConfig',
  group: '',
  versions: { v1: configurationType },
} as const satisfies ConfigurationFormat;

/** The format of the configuration file. */
export const encryptionFormat = {
  kind: 'EncryptionConfiguration',
  group: 'apiserver.config',
  versions: { v1: configurationType },
} as const satisfies ConfigurationFormat;

const keyLengths = { aesgcm: [16, 24, 32], aescbc: [16, 24, 32], secretbox: [32] } as const;
const providerTypes = ['aesgcm', 'aescbc', 'secretbox', 'identity', 'kms'] as const;

/**
 * Parses and validates an EncryptionConfiguration, YAML or JSON (STORE-3). Rejects with a
 * ConfigurationError that lists all problems in one line and contains no secrets.
 */
export async function loadEncryptionConfiguration(
  text: string,
  options: { readonly dialect: Dialect; readonly reload: 'automatic' | 'off' },
): Promise<readonly EncryptionRule[]> {
  const { dialect } = options;
  const group = dialect.group(encryptionFormat.group);
  const { object } = await decodeConfiguration(text, { ...encryptionFormat, group }, olderFormat);
  const rules = objectsOf(member(object, 'resources'));
  const errors = rules.length === 0 ? [atLeastOne('resources', 'resources')] : [];
  const context = { ...options, kmsNames: new Set<string>() };
  appendAll(
    errors,
    rules.flatMap((rule, index) => checkRule(rule, `resources[${index}]`, context)),
  );
  if (errors.length > 0) throw new ConfigurationError(fieldErrorsText(errors));
  const read = rules.map((rule) => ({
    resources: textsOf(member(rule, 'resources')),
    providers: objectsOf(member(rule, 'providers')).map(providerOf),
  }));
  checkMasking(read);
  return read;
}

const atLeastOne = (path: string, what: string) =>
  required(path, `at least one ${what} is required`);

interface CheckContext {
  readonly dialect: Dialect;
  readonly reload: 'automatic' | 'off';
  /** Names of the KMS providers before the one being validated. */
  readonly kmsNames: Set<string>;
}

function checkRule(rule: JsonObject, path: string, context: CheckContext): FieldError[] {
  const { dialect } = context;
  const resources = textsOf(member(rule, 'resources'));
  const providers = objectsOf(member(rule, 'providers'));
  const [ofResources, ofProviders] = [`${path}.resources`, `${path}.providers`];
  return [
    ...(resources.length === 0 ? [atLeastOne(ofResources, ofResources)] : []),
    ...checkOverlap(resources, ofResources),
    ...resources.flatMap((resource, index) =>
      checkResource(resource, `${ofResources}[${index}]`, dialect),
    ),
    ...(providers.length === 0 ? [atLeastOne(ofProviders, ofProviders)] : []),
    ...providers.flatMap((provider, index) =>
      checkProvider(provider, `${ofProviders}[${index}]`, context),
    ),
  ];
}

function checkOverlap(resources: readonly string[], path: string): FieldError[] {
  const parsed = resources.map(groupResourceOf);
  // `secrets` and `secrets.` are the same resource.
  const different = new Set(parsed.map(({ group, resource }) => `${resource}.${group}`));
  const hasDuplicates = different.size < resources.length;
  const counts = new Map<string, number>();
  for (const { group } of parsed) counts.set(group, (counts.get(group) ?? 0) + 1);
  const overlaps = parsed.some(({ group, resource }) => {
    if (resource !== '*') return false;
    return (group === '*' ? resources.length : (counts.get(group) ?? 0)) > 1;
  });
  const duplicate = 'the same resource cannot be specified multiple times';
  const overlap =
    "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
  return [
    ...(hasDuplicates ? [invalid(path, [...resources], duplicate)] : []),
    ...(overlaps ? [invalid(path, [...resources], overlap)] : []),
  ];
}

/** Resources that the server stores for itself and does not serve. */
const internalResources = ['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations'];

function checkResource(resource: string, path: string, dialect: Dialect): FieldError[] {
  const why = resourceProblem(resource, dialect);
  return why === undefined ? [] : [invalid(path, resource, why)];
}

function resourceProblem(resource: string, dialect: Dialect): string | undefined {
  if (resource !== resource.toLowerCase())
    return 'resource name should not contain capital letters';
  if (resource === '*') {
    return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
  }
  if (internalResources.includes(resource))
    return 'resources which do not have REST API/s cannot be encrypted';
  const { group, resource: name } = groupResourceOf(resource);
  const events = dialect.group('events');
  if (group === events) {
    return `'*.${events}' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file`;
  }
  if (group === 'extensions') {
    return "'extensions' group has been removed and cannot be used for encryption";
  }
  if (group !== '*' || name === '*') return undefined;
  return 'encrypting the same resource across groups is not supported';
}

function checkProvider(provider: JsonObject, path: string, context: CheckContext): FieldError[] {
  const presentTypes = providerTypes.filter((type) => isObject(member(provider, type)));
  const [type] = presentTypes;
  if (type === undefined) {
    const why =
      'provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity';
    return [invalid(path, {}, why)];
  }
  if (presentTypes.length > 1) {
    const why =
      'more than one provider specified in a single element, should split into different list elements';
    return [invalid(path, {}, why)];
  }
  if (type === 'kms') return checkKms(jsonObject(member(provider, type)), `${path}.kms`, context);
  if (type === 'identity') return [];
  const keys = objectsOf(member(jsonObject(member(provider, type)), 'keys'));
  if (keys.length === 0) return [atLeastOne(`${path}.${type}.keys`, 'keys')];
  return keys.flatMap((key, index) =>
    checkKey(key, { path: `${path}.${type}.keys[${index}]`, lengths: keyLengths[type] }),
  );
}

const kmsDefaults = { apiVersion: 'v1', timeout: '3s', cacheSize: 1000 };

function checkKms(kms: JsonObject, path: string, context: CheckContext): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = (field: string, value: JsonValue, why: string) =>
    errors.push(invalid(`${path}.${field}`, value, why));
  const version = versionOf(kms);
  const name = textOf(member(kms, 'name'));
  if (name === '') {
    errors.push(required(`${path}.name`, 'name is a mandatory field for a provider'));
  }
  if (version !== 'v1' && name.includes(':')) {
    wrong('name', name, `invalid KMS provider name ${name}, must not contain ':'`);
  }
  const mustBeUnique = context.reload === 'automatic' || version !== 'v1';
  if (mustBeUnique && context.kmsNames.has(name)) {
    wrong('name', name, `duplicate KMS provider name ${name}, names must be unique`);
  }
  context.kmsNames.add(name);
  const timeout = timeoutOf(kms);
  const duration = parseGoDuration(timeout);
  if (duration === undefined) wrong('timeout', timeout, goDurationError(timeout));
  else if (duration <= 0n) wrong('timeout', timeout, 'timeout should be a positive value');
  const endpoint = textOf(member(kms, 'endpoint'));
  const endpointProblem = endpointError(endpoint);
  if (endpointProblem !== undefined) wrong('endpoint', endpoint, endpointProblem);
  const size = member(kms, 'cachesize');
  if (version !== 'v1' && isNumber(size)) {
    wrong('cachesize', size, 'cachesize is not supported in v2');
  }
  if (version === 'v1' && size === 0) {
    wrong('cachesize', 0, 'cachesize should be a positive value, or negative to disable');
  }
  if (version !== 'v1' && version !== 'v2') {
    const why = 'unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported';
    wrong('apiVersion', version, why);
  }
  return errors;
}

const isNumber = (value: unknown): value is number => typeof value === 'number';
const versionOf = (kms: JsonObject) => textOf(member(kms, 'apiVersion')) || kmsDefaults.apiVersion;
const timeoutOf = (kms: JsonObject) => textOf(member(kms, 'timeout') ?? kmsDefaults.timeout);

function endpointError(endpoint: string): string | undefined {
  if (endpoint === '') return 'endpoint is a mandatory field for a kms';
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(endpoint)?.[1]?.toLowerCase() ?? '';
  if (scheme !== 'unix') {
    return `unsupported scheme ${JSON.stringify(scheme)} for KMS provider, only unix is supported`;
  }
  if (pathOf(endpoint) !== undefined) return undefined;
  return 'invalid endpoint for kms provider, error: it has no path';
}

/** The path of the socket: the URL's path without the slash before the `@` of an abstract name. */
function pathOf(endpoint: string): string | undefined {
  const rest = endpoint.slice('unix:'.length);
  const path = rest.startsWith('//') ? rest.slice(2).replace(/^[^/]*/, '') : rest;
  try {
    const decoded = decodeURIComponent(path);
    if (decoded === '' || decoded.includes('\0')) return undefined;
    return decoded.startsWith('/@') ? decoded.slice(1) : decoded;
  } catch {
    return undefined;
  }
}

function kmsOf(kms: JsonObject): KmsSettings {
  const size = member(kms, 'cachesize');
  return {
    type: 'kms',
    name: textOf(member(kms, 'name')),
    apiVersion: versionOf(kms) === 'v2' ? 'v2' : 'v1',
    socketPath: pathOf(textOf(member(kms, 'endpoint'))) ?? '',
    timeoutMs: Math.max(1, Number(parseGoDuration(timeoutOf(kms)) ?? 0n) / 1e6),
    cacheSize: isNumber(size) ? size : kmsDefaults.cacheSize,
  };
}

function checkKey(
  key: JsonObject,
  { path, lengths }: { readonly path: string; readonly lengths: readonly number[] },
): FieldError[] {
  const [name, secret] = [textOf(member(key, 'name')), textOf(member(key, 'secret'))];
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.name`, 'name is a mandatory field for a key'));
  if (secret === '') {
    errors.push(required(`${path}.secret`, 'secret is a mandatory field for a key'));
    return errors;
  }
  const bytes = decodeSecret(secret);
  const wrong = (why: string) => errors.push(invalid(`${path}.secret`, 'REDACTED', why));
  if (bytes === undefined) wrong('secrets must be base64 encoded');
  else if (!lengths.includes(bytes.length)) {
    const expected = `[${lengths.join(' ')}]`;
    wrong(`secret is not of the expected length, got ${bytes.length}, expected one of ${expected}`);
  }
  return errors;
}

const base64Text = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * Decodes padded base64 and ignores line ends and unused bits, as Go does; undefined if the text is
 * malformed.
 */
function decodeSecret(text: string): Buffer | undefined {
  const plain = text.replaceAll(/[\r\n]/g, '');
  if (plain.length % 4 !== 0 || !base64Text.test(plain)) return undefined;
  return Buffer.from(plain, 'base64');
}

/** Throws ConfigurationError for a rule that an earlier rule for its group overrides. */
function checkMasking(rules: readonly EncryptionRule[]): void {
  const earlier = new Set<string>();
  for (const resource of rules.flatMap(({ resources }) => resources)) {
    const byGroup = `*.${groupResourceOf(resource).group}`;
    const mask = [byGroup, '*.*'].find((pattern) => earlier.has(pattern));
    if (mask !== undefined) {
      throw new ConfigurationError(
        `resource ${JSON.stringify(resource)} is masked by earlier rule ${JSON.stringify(mask)}`,
      );
    }
    earlier.add(resource);
  }
}

function providerOf(provider: JsonObject): Provider {
  const type = providerTypes.find((providerType) => isObject(member(provider, providerType)));
  if (type === undefined || type === 'identity') return { type: 'identity' };
  if (type === 'kms') return kmsOf(jsonObject(member(provider, type)));
  const keys = objectsOf(member(jsonObject(member(provider, type)), 'keys'));
  return { type, keys: keys.map(keyOf) };
}

function keyOf(key: JsonObject): NamedKey {
  const secret = decodeSecret(textOf(member(key, 'secret'))) ?? Buffer.alloc(0);
  return { name: textOf(member(key, 'name')), secret };
}

/** Splits a name such as `deployments.apps`; a name without a dot is in the core group. */
export function groupResourceOf(text: string): { group: string; resource: string } {
  const [resource, group = ''] = cut(text, '.');
  return { group, resource };
}
