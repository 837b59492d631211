import { encodeJson, encodeYaml } from '@wheelhouse/codec';
import { type JsonObject, type JsonValue, type Random, randomOf } from '@wheelhouse/machinery';
import { type FuzzKind, fuzzKinds } from './objects.ts';

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** Whether the client disconnects in the middle of the request. */
  readonly abandons: boolean;
}

const names = ['a', 'b', 'c', 'x-1'];
const oddNames = [
  '..',
  '.',
  '%2e%2e',
  'A_B',
  '%00',
  '%ff',
  'a%2fb',
  '-',
  'x'.repeat(300),
  '%F0%9F%92%A9',
  '__proto__',
  'constructor',
  '{name}',
  'a b',
  ' ',
];
const oddTexts = [
  '',
  ' ',
  '\u0000',
  '\ud800',
  'é',
  '💩',
  '__proto__',
  'constructor',
  '-1',
  '0',
  '9999999999999999999',
  '1e400',
  'NaN',
  '2020-01-01T00:00:00Z',
  'x'.repeat(5000),
  '../..',
  '$(x)',
  "'",
  '"',
  '\\',
  '\n',
  '{}',
  '[]',
  '(a+)+$',
  'a=b',
  'a in (b',
  '!',
  '5%',
  '1Gi',
  '-1m',
];
const oddNumbers: readonly JsonValue[] = [
  0,
  -1,
  1,
  0.5,
  1e308,
  -1e-308,
  2 ** 31,
  2 ** 53,
  2n ** 63n,
  -(2n ** 63n),
  65536,
];
const mediaTypes = [
  'application/json',
  'application/yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/vnd.svc.protobuf',
  'application/cbor',
  'application/apply-patch+cbor',
  'text/plain',
  '*/*',
  'application/json;charset=x',
  'nonsense',
  'a/b;c=";"',
];
const patchTypes = mediaTypes.slice(2, 6);
const accepts = [
  'application/json',
  'application/yaml',
  '*/*',
  'text/html',
  'application/json;as=Table;g=meta.svc.io;v=v1',
  'application/json;as=PartialObjectMetadata;g=meta.svc.io;v=v1',
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  'application/vnd.svc.protobuf',
  'application/vnd.svc.protobuf,application/json',
  'application/cbor',
  'application/json;q=0',
  ',;,=',
  'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList',
  'application/*;q=0.5, application/yaml;q=0.6',
];
const parameters: Readonly<Record<string, readonly string[]>> = {
  labelSelector: ['app=a', 'app!=a', 'app in (a,b)', '!app', 'a=b,c', '((', 'a in (', ',', 'a==b'],
  fieldSelector: [
    'metadata.name=a',
    'metadata.namespace!=b',
    'spec.nodeName=',
    'status.phase=Running',
    'nope=1',
    '=',
    'a=b=c',
  ],
  resourceVersion: ['0', '1', '5', '-1', 'abc', '9223372036854775808', '1.5'],
  resourceVersionMatch: ['Exact', 'NotOlderThan', 'Nope'],
  limit: ['0', '1', '2', '500', '-1', 'x', '99999999999'],
  continue: ['', 'abc', 'eyJ2IjoibWV0YS5zdmMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0', '%%%'],
  timeoutSeconds: ['1', '0', '-1', 'x'],
  allowWatchBookmarks: ['true', 'x'],
  sendInitialEvents: ['true', 'false', 'x'],
  fieldManager: ['m', '', 'x'.repeat(200), '\u0001'],
  fieldValidation: ['Strict', 'Warn', 'Ignore', 'Nope'],
  dryRun: ['All', 'None', ''],
  force: ['true', 'x'],
  pretty: ['true', 'x', '1'],
  gracePeriodSeconds: ['0', '5', '-1', 'x', '99999999999999999999'],
  propagationPolicy: ['Orphan', 'Background', 'Foreground', 'Nope'],
  orphanDependents: ['true', 'x'],
  includeObject: ['None', 'Object', 'Nope'],
};
const otherPaths = [
  '/',
  '/api',
  '/apis',
  '/version',
  '/livez',
  '/readyz?verbose',
  '/healthz/store',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/apis/apps/v1',
  '/metrics',
  '/api/v1',
  '/apis/apps',
  '/apis/apps/v1',
  '/apis/none/v1/x',
  '/api/v1/watch/pods?timeoutSeconds=1',
  '/api/v1/proxy',
  '/none',
  '//',
  '/%zz',
  '/api/v1/namespaces/a/pods/b/c/d/e',
  '/apis/%00/v1/x',
];
const methods = [
  ...['GET', 'GET', 'GET', 'POST', 'POST', 'POST', 'POST'],
  ...['PUT', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'DELETE'],
];
const oddMethods = ['HEAD', 'OPTIONS', 'TRACE', 'PURGE', 'LIST'];
/** Namespaces of the fuzzer; created before the first request. */
export const fuzzNamespaces = ['fuzz-a', 'fuzz-b'];

/** The request with a number; a seed and a number always determine the same request. */
export function fuzzRequest(seed: number, number: number, token: string): FuzzRequest {
  const random = randomOf(Math.imul(seed, 0x9e3779b1) ^ number);
  const kind = random.pick(fuzzKinds);
  const method = random.chance(0.03) ? random.pick(oddMethods) : random.pick(methods);
  const isCollection =
    method === 'POST' ? random.chance(0.95) : random.chance(method === 'GET' ? 0.3 : 0.03);
  const name = random.chance(0.05) ? random.pick(oddNames) : random.pick(names);
  const isOther = random.chance(0.06);
  const path = isOther ? random.pick(otherPaths) : objectPath(random, { kind, name, isCollection });
  const hasBody = random.chance(method === 'GET' || method === 'DELETE' ? 0.1 : 0.97);
  const type = contentType(random, method);
  return {
    method,
    path: path + (path.includes('?') ? '' : query(random, method)),
    headers: headersOf(random, { token, ...(hasBody ? { type } : {}) }),
    body: hasBody ? bodyOf(random, { kind, name, method, type }) : undefined,
    abandons: random.chance(0.01),
  };
}

function objectPath(
  random: Random,
  { kind, name, isCollection }: { kind: FuzzKind; name: string; isCollection: boolean },
): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const namespace = random.chance(0.02) ? random.pick(oddNames) : random.pick(fuzzNamespaces);
  const inNamespace = kind.namespaced ? !random.chance(0.04) : random.chance(0.02);
  const place = inNamespace ? `/namespaces/${encoded(namespace)}` : '';
  const sub = random.chance(0.1) ? `/${random.pick([...kind.subresources, 'status', 'nope'])}` : '';
  const object = isCollection ? '' : `/${encoded(name)}${sub}`;
  return `${root}${place}/${kind.resource}${object}`;
}

/** Names already contain their escapes; a blank would break the request line. */
function encoded(name: string): string {
  return name.replaceAll(' ', '%20').replaceAll('{', '%7B').replaceAll('}', '%7D');
}

function query(random: Random, method: string): string {
  const parts: string[] = [];
  if (method === 'GET' && random.chance(0.05)) parts.push('watch=true', 'timeoutSeconds=1');
  if (random.chance(0.5)) return parts.length === 0 ? '' : `?${parts.join('&')}`;
  for (let count = random.below(4); count > 0; count -= 1) {
    const parameter = random.pick(Object.keys(parameters));
    const values = parameters[parameter] as readonly string[];
    const value = random.chance(0.05) ? random.pick(oddTexts) : random.pick(values);
    parts.push(`${parameter}=${encodeURIComponent(wellFormed(value))}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

function contentType(random: Random, method: string): string {
  if (random.chance(0.05)) return random.pick(mediaTypes);
  if (method === 'PATCH') return random.pick(patchTypes);
  return random.chance(0.15) ? 'application/yaml' : 'application/json';
}

function headersOf(
  random: Random,
  { token, type }: { token: string; type?: string },
): Record<string, string> {
  const wrong = random.pick(['Bearer wrong', 'Bearer ', 'Basic eDp5', 'Bearer a.b.c', token]);
  const credentials = random.chance(0.03) ? wrong : `Bearer ${token}`;
  return {
    ...(random.chance(0.01) ? {} : { authorization: credentials }),
    accept: random.chance(0.3) ? random.pick(accepts) : 'application/json',
    ...(type === undefined ? {} : { 'content-type': type }),
    ...(random.chance(0.05) ? { 'accept-encoding': 'gzip' } : {}),
    ...(random.chance(0.05)
      ? { 'user-agent': random.pick(['curl/8', 'x'.repeat(2000), 'é/1']) }
      : {}),
    ...(random.chance(0.02) ? { 'impersonate-user': random.pick(oddTexts.slice(4, 12)) } : {}),
  };
}

function bodyOf(
  random: Random,
  of: { kind: FuzzKind; name: string; method: string; type: string },
): Buffer {
  if (random.chance(0.02)) return randomBytes(random);
  const value =
    of.type === 'application/json-patch+json' ? operations(random) : document(random, of);
  const rounds = random.chance(0.6) ? 0 : 1 + random.below(4);
  const mutated = Array.from({ length: rounds }).reduce<JsonValue>(
    (held) => mutate(random, held),
    structuredClone(value),
  );
  const isYaml = of.type.endsWith('yaml') && random.chance(0.7);
  const bytes = isYaml ? Buffer.from(encodeYaml(mutated)) : encodeJson(mutated);
  return random.chance(0.1) ? scratched(random, bytes) : bytes;
}

function document(
  random: Random,
  { kind, name, method }: { kind: FuzzKind; name: string; method: string },
): JsonValue {
  if (method === 'DELETE') {
    return { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
  }
  const group = kind.group === '' ? '' : `${kind.group}/`;
  const own = random.chance(0.9) ? kind : random.pick(fuzzKinds);
  const metadata: JsonObject = {
    name,
    labels: { app: random.pick(['a', 'b']) },
    ...(random.chance(0.05) ? { finalizers: ['fuzz.io/keep'] } : {}),
    ...(random.chance(0.05) ? { resourceVersion: String(random.below(500)) } : {}),
    ...(random.chance(0.03) ? { generateName: 'gen-' } : {}),
  };
  return { apiVersion: group + kind.version, kind: own.kind, metadata, ...own.body };
}

const patchPaths = [
  '',
  '/',
  '/metadata/labels/app',
  '/metadata/name',
  '/spec',
  '/spec/containers/0',
  '/spec/containers/-',
  '/data/a',
  '/data/b~1c',
  '/__proto__/x',
  '/metadata/finalizers',
  '/spec/replicas',
  '/status',
  '/kind',
  '/metadata/managedFields',
  '/a/0/b/-1',
  'nope',
];

function operations(random: Random): JsonValue {
  return Array.from({ length: random.below(6) }, () => ({
    op: random.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'nope']),
    path: random.pick(patchPaths),
    ...(random.chance(0.3) ? { from: random.pick(patchPaths) } : {}),
    ...(random.chance(0.8) ? { value: oddValue(random) } : {}),
  }));
}

/** Replaces lone surrogates, as encoding to bytes does. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString('utf8');
}

function oddValue(random: Random): JsonValue {
  const values: readonly (() => JsonValue)[] = [
    () => null,
    () => random.chance(0.5),
    () => random.pick(oddNumbers),
    () => wellFormed(random.pick(oddTexts)),
    () => [],
    () => ({}),
    () => [oddValue(random), 1, 'x'],
    () => ({ [wellFormed(random.pick(oddTexts))]: wellFormed(random.pick(oddTexts)) }),
    () => nested(random.pick([5, 100, 600])),
    () => new Array(random.pick([10, 2000])).fill('x'),
  ];
  return random.pick(values)();
}

function nested(depth: number): JsonValue {
  let value: JsonValue = 'deep';
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

/** Replaces, removes, adds, or duplicates one node anywhere in the value. */
function mutate(random: Random, value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null || random.chance(0.15)) return oddValue(random);
  if (Array.isArray(value)) {
    const at = random.below(value.length + 1);
    if (at === value.length || random.chance(0.2)) value.push(oddValue(random));
    else value[at] = mutate(random, value[at] as JsonValue);
    return value;
  }
  const members = Object.keys(value);
  const member = random.pick([...members, 'metadata', 'spec']);
  const choice = random.below(100);
  if (choice < 15) delete value[member];
  else if (choice < 30) value[wellFormed(random.pick(oddTexts))] = oddValue(random);
  else value[member] = mutate(random, value[member] ?? null);
  return value;
}

/** Damages the text: cuts it off, changes a byte, or duplicates a part. */
function scratched(random: Random, bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes;
  const at = random.below(bytes.length);
  if (random.chance(0.3)) return bytes.subarray(0, at);
  if (random.chance(0.5)) {
    const changed = Buffer.from(bytes);
    changed[at] = random.below(256);
    return changed;
  }
  const end = Math.min(bytes.length, at + random.below(40));
  return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
}

const oddStarts = [
  Buffer.alloc(0),
  Buffer.from('k8s\0'),
  Buffer.from([0xd9, 0xd9, 0xf7]),
  Buffer.from('['.repeat(20_000)),
  Buffer.from('{"a":'.repeat(3000)),
  Buffer.from('a: &a [*a]'),
  Buffer.from('- '.repeat(3000)),
  Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
];

function randomBytes(random: Random): Buffer {
  const noise = Buffer.from(Array.from({ length: random.below(60) }, () => random.below(256)));
  return Buffer.concat([random.pick(oddStarts), noise]);
}
