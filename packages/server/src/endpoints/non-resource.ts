import { encodeJsonSteps } from '@wheelhouse/codec';
import { type CatalogueSnapshot, versionNamed } from '@wheelhouse/kinds';
import {
  apiVersionOf,
  type BodyPiece,
  type Clock,
  type JsonObject,
  type MaybePromise,
  methodNotAllowedOnPath,
  pathNotFound,
  pause,
  pieceBytes,
  problemText,
  runInSlices,
  sharedPromise,
} from '@wheelhouse/machinery';
import { encodeBytesSteps, jsonEncoding, type ServedEncoding } from '../answer/encodings.ts';
import {
  type AggregatedForm,
  aggregatedFormOf,
  checkRouted,
  negotiate,
  takesGzip,
} from '../answer/rendering.ts';
import {
  answerHeaders,
  compressedMin,
  documentHeaders,
  gzipped,
  sendValue,
} from '../answer/respond.ts';
import {
  aggregatedDiscovery,
  coreVersions,
  groupDocument,
  groupList,
  groupPaths,
  resourceList,
} from '../documents/discovery.ts';
import type { ProfileKind } from '../observe/profiles.ts';
import { requireRequest } from '../registry/permit.ts';
import { backupEndpoint, backupPath } from './backup.ts';
import type { AuthorizedCall, EndpointContext, PlainAnswer } from './call.ts';
import { digestSteps, openApiEndpoint } from './openapi.ts';

/** Answers paths that are not resources: health, version, discovery (API-11, HEALTH-1). */
export async function nonResourceEndpoint(call: AuthorizedCall): Promise<void> {
  const { context, exchange, info } = call;
  requireRequest(call.permit, info);
  const plain = context.plainPath(info.path, info.query, exchange.header('accept'));
  if (plain !== undefined) {
    checkReads(call);
    return sendPlain(call, plain instanceof Promise ? await plain : plain);
  }
  if (await openApiEndpoint(call)) return;
  if (info.path.startsWith('/debug/') && (await debugEndpoint(call))) return;
  if (info.path === backupPath) return backupEndpoint(call);
  if (info.path === '/' || info.path === '/index.html') return sendIndex(call);
  if (/^\/version\/?$/.test(info.path)) return sendVersion(call);
  const { documents } = context.encodings;
  const part = aggregatedParts.get(info.path.replace(/\/$/, ''));
  const form = part && aggregatedFormOf(exchange.header('accept'), documents);
  const value = form === undefined ? documentAt(call) : undefined;
  if (form === undefined && value === undefined) throw pathNotFound();
  checkReads(call);
  if (isRouted(info.path, context.catalogue.snapshot())) checkRouted(exchange, documents);
  if (value !== undefined) return sendDocument(call, value);
  if (part === undefined || form === undefined) return;
  const document = await aggregatedDocument(context, { part, version: form.version });
  await sendAggregated(call, { form, document });
}

/** Answers with a text, compressed if it may be and the client accepts gzip. */
async function sendPlain(call: AuthorizedCall, plain: PlainAnswer): Promise<void> {
  const { exchange } = call;
  const { status } = plain;
  const headers = documentHeaders(call, plain.headers);
  const body = typeof plain.body === 'string' ? Buffer.from(plain.body) : plain.body;
  const gzips = plain.compression === 'gzip' && takesGzip(exchange.header('accept-encoding'));
  if (!gzips) {
    exchange.send({ status, headers, body });
    return;
  }
  headers['content-encoding'] = 'gzip';
  exchange.send({ status, headers, body: await gzipped(body) });
}

/** Whether a document is about built-in kinds and not a list of versions in a named group. */
function isRouted(path: string, { builtins }: CatalogueSnapshot): boolean {
  const [root, group, version] = path.replace(/^\/|\/$/g, '').split('/');
  if (root === 'api') return true;
  if (group === undefined || version === undefined) return false;
  const apiVersion = apiVersionOf({ group, version });
  return builtins.some((def) => versionNamed(def, apiVersion) !== undefined);
}

/** Answers `/` with all paths: groups, versions, documents, and aggregated servers (API-11). */
export function sendIndex(call: AuthorizedCall, aggregated: readonly string[] = []): void {
  const { context } = call;
  const named = [...context.plainPaths(), '/openapi/v2', '/openapi/v3', '/version'];
  const served = groupPaths(context.catalogue.snapshot());
  sendForPeople(call, { paths: [...new Set([...named, ...served, ...aggregated])].sort() });
}

/** Throws 405 for methods other than GET and HEAD, before the encodings of the answer matter. */
function checkReads({ info }: AuthorizedCall): void {
  if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowedOnPath();
}

/** Answers with the server's version: in JSON only; throws 406 to clients that do not accept it. */
function sendVersion(call: AuthorizedCall): void {
  const { context, exchange } = call;
  checkReads(call);
  checkRouted(exchange, jsonAlone);
  sendForPeople(call, { ...context.version });
}

const jsonAlone: readonly ServedEncoding[] = [jsonEncoding];

/** Answers with indented JSON, regardless of what the client accepts. */
function sendForPeople(call: AuthorizedCall, value: JsonObject): void {
  const { exchange } = call;
  checkReads(call);
  const headers = documentHeaders(call, { 'content-type': 'application/json' });
  exchange.send({ status: 200, headers, body: Buffer.from(JSON.stringify(value, null, 2)) });
}

/** Answers with a discovery document in an encoding that the client accepts. Throws 406. */
export async function sendDocument(call: AuthorizedCall, value: JsonObject): Promise<void> {
  const { context, exchange, info } = call;
  const rendering = negotiate(exchange, info, { served: context.encodings.documents });
  await sendValue({ ...call, rendering }, { status: 200, value });
}

function documentAt(call: AuthorizedCall): JsonObject | undefined {
  const { context, info } = call;
  const snapshot = context.catalogue.snapshot();
  const resources = (at: { group: string; version: string }) => {
    const hashes = context.features.enabled('StorageVersionHash') ? undefined : 'omitted';
    return resourceList(snapshot, { ...at, hashes });
  };
  const [root, first, second, ...rest] = info.path.replace(/^\/|\/$/g, '').split('/');
  if (rest.length > 0 || first === '' || second === '') return undefined;
  if (root === 'api') {
    if (first === undefined) return coreVersions({ snapshot, address: context.address() });
    return second === undefined ? resources({ group: '', version: first }) : undefined;
  }
  if (root !== 'apis') return undefined;
  if (first === undefined) return groupList(snapshot);
  if (second === undefined) return groupDocument(snapshot, first);
  return resources({ group: first, version: second });
}

const aggregatedParts: ReadonlyMap<string, 'core' | 'named'> = new Map([
  ['/api', 'core'],
  ['/apis', 'named'],
]);

/** A document's JSON, and its ETag in all encodings. */
export interface TaggedBody {
  readonly json: Buffer;
  readonly etag: string;
  /** Its other encodings and compressed forms, created by the first request for each. */
  readonly bodies: Map<string, Promise<Buffer>>;
}

/** Encodes a document and derives its ETag from the digest of its bytes, in steps. */
export function* taggedBodySteps(document: JsonObject): Generator<void, TaggedBody> {
  const json = yield* encodeJsonSteps(document);
  const etag = `"${(yield* digestSteps('sha512', json)).toUpperCase()}"`;
  return { json, etag, bodies: new Map() };
}

/** Documents by snapshot; collected with the snapshot. */
const aggregatedDocuments = new WeakMap<CatalogueSnapshot, Map<string, Promise<TaggedBody>>>();

function aggregatedDocument(
  { catalogue, clock, dialect, metrics }: EndpointContext,
  { part, version }: { readonly part: 'core' | 'named'; readonly version: string },
): Promise<TaggedBody> {
  const snapshot = catalogue.snapshot();
  const documents = aggregatedDocuments.get(snapshot) ?? new Map<string, Promise<TaggedBody>>();
  aggregatedDocuments.set(snapshot, documents);
  function* steps() {
    const apiVersion = `${dialect.group('apidiscovery')}/${version}`;
    const document = yield* aggregatedDiscovery({ snapshot, part, apiVersion });
    metrics.countDiscoveryAggregation();
    return yield* taggedBodySteps(document);
  }
  return sharedPromise(documents, `${part};${version}`, async () => runInSlices(steps(), clock));
}

function bodyIn(
  encoding: ServedEncoding,
  { json, bodies }: TaggedBody,
  clock: Pick<Clock, 'monotonic'>,
): MaybePromise<Buffer> {
  if (encoding.form === 'json') return json;
  return sharedPromise(bodies, encoding.form, async () => {
    const steps = encodeBytesSteps({ encoding, pretty: false }, json);
    const body = await runInSlices(steps, clock);
    return Buffer.isBuffer(body) ? body : runInSlices(collectSteps(body), clock);
  });
}

function* collectSteps(pieces: Iterable<BodyPiece>): Generator<void, Buffer> {
  const buffers: Buffer[] = [];
  for (const piece of pieces) {
    buffers.push(pieceBytes(piece));
    yield;
  }
  return Buffer.concat(buffers);
}

/**
 * Answers with the aggregated form, whose ETag is the same in all encodings; 304 if it matches. A
 * long one is compressed if the client accepts gzip (CODEC-7).
 */
export async function sendAggregated(
  call: AuthorizedCall,
  { form, document }: { readonly form: AggregatedForm; readonly document: TaggedBody },
): Promise<void> {
  const { exchange, context } = call;
  const { etag, bodies } = document;
  const { mediaType, form: name } = form.encoding;
  const contentType = `${mediaType};g=${form.group};v=${form.version};as=APIGroupDiscoveryList`;
  const headers = {
    ...answerHeaders(call, contentType),
    etag,
    vary: 'Accept',
    'cache-control': 'public',
  };
  if (exchange.header('if-none-match') === etag) {
    exchange.send({ status: 304, headers, body: Buffer.alloc(0) });
    return;
  }
  const body = await bodyIn(form.encoding, document, context.clock);
  const gzips =
    context.compressResponses &&
    body.length > compressedMin &&
    takesGzip(exchange.header('accept-encoding'));
  if (!gzips) {
    exchange.send({ status: 200, headers, body });
    return;
  }
  const zipped = await sharedPromise(bodies, `${name};gzip`, () => gzipped(body));
  const compressed = { 'content-encoding': 'gzip', vary: 'Accept, Accept-Encoding' };
  exchange.send({ status: 200, headers: { ...headers, ...compressed }, body: zipped });
}

/** Available profiles, with their default duration in seconds. */
const profiles: ReadonlyMap<string, { readonly kind: ProfileKind; readonly seconds: number }> =
  new Map([
    ['allocs', { kind: 'allocs', seconds: 10 }],
    ['heap', { kind: 'heap', seconds: 10 }],
    ['profile', { kind: 'profile', seconds: 30 }],
  ]);
/**
 * Maximum duration of a profile in seconds; longer profiles would keep too many samples in memory.
 */
const secondsMax = 600;
/** The highest log verbosity. */
const verbosityMax = 2 ** 31 - 1;
const flagBytesMax = 64 * 1024;

/**
 * Answers paths below `/debug/pprof` and `/debug/flags` if `--profiling` is on. Resolves with false
 * for other paths.
 */
async function debugEndpoint(call: AuthorizedCall): Promise<boolean> {
  const { context, info } = call;
  if (context.profiling === 'off') return false;
  const [, , area, name, ...rest] = info.path.split('/');
  if (area === 'pprof') {
    if (name === undefined) redirectToIndex(call);
    else if (name === '') sendPage(call, profileIndex);
    else await sendProfile(call, rest.length === 0 ? name : '');
    return true;
  }
  if (area !== 'flags') return false;
  if (name === 'v' && rest.length === 0) await setVerbosity(call);
  else sendPage(call, flagIndex);
  return true;
}

const profileIndex = `<html>
<head><title>/debug/pprof/</title></head>
<body>
<h1>/debug/pprof/</h1>
<ul>
<li><a href="profile">profile</a>: where the processor's time goes, for <code>seconds</code> (30)</li>
<li><a href="heap">heap</a>: what is allocated within <code>seconds</code> (10) and still in use at
their end; <code>gc=1</code> collects garbage first</li>
<li><a href="allocs">allocs</a>: what is allocated within <code>seconds</code> (10)</li>
</ul>
<p>Profiles are in the pprof format: <code>go tool pprof</code> reads them.</p>
</body>
</html>
`;

const flagIndex = `<html>
<head><title>/debug/flags/</title></head>
<body>
<h1>/debug/flags/</h1>
<ul>
<li>v: PUT sets the verbosity of the log</li>
</ul>
</body>
</html>
`;

function sendPage(call: AuthorizedCall, page: string): void {
  const headers = answerHeaders(call, 'text/html; charset=utf-8');
  headers['x-content-type-options'] = 'nosniff';
  call.exchange.send({ status: 200, headers, body: Buffer.from(page) });
}

function redirectToIndex(call: AuthorizedCall): void {
  const headers = answerHeaders(call, 'text/html; charset=utf-8');
  headers['location'] = '/debug/pprof/';
  const body = Buffer.from('<a href="/debug/pprof/">Found</a>.\n\n');
  call.exchange.send({ status: 302, headers, body });
}

function sendText(call: AuthorizedCall, answer: { status: number; text: string }): void {
  const headers = answerHeaders(call, 'text/plain');
  headers['x-content-type-options'] = 'nosniff';
  call.exchange.send({ status: answer.status, headers, body: Buffer.from(`${answer.text}\n`) });
}

function refuseProfile(call: AuthorizedCall, status: number, text: string): void {
  const headers = answerHeaders(call, 'text/plain; charset=utf-8');
  headers['x-content-type-options'] = 'nosniff';
  headers['x-go-pprof'] = '1';
  call.exchange.send({ status, headers, body: Buffer.from(`${text}\n`) });
}

async function sendProfile(call: AuthorizedCall, name: string): Promise<void> {
  const { context, exchange, info } = call;
  const profile = profiles.get(name);
  if (profile === undefined) return refuseProfile(call, 404, 'Unknown profile');
  const { kind } = profile;
  if (Number(info.query.get('debug') ?? '0') > 0) {
    return refuseProfile(call, 400, 'profiles are served in the pprof format alone, without debug');
  }
  const seconds = secondsOf(info.query.get('seconds') ?? '', profile);
  if (seconds === undefined) {
    const rule = `must be a positive integer, at most ${secondsMax}`;
    return refuseProfile(call, 400, `invalid value for "seconds" - ${rule}`);
  }
  const { takeProfile, ProfileInUse } = await import('../observe/profiles.ts');
  const gone = new AbortController();
  exchange.onAbort(() => gone.abort());
  const { signal } = gone;
  const collect = Number(info.query.get('gc') ?? '0') > 0;
  try {
    const during = () => pause(context.clock, { ms: seconds * 1000, signal, where: 'endpoint' });
    const body = await takeProfile(kind, during, { collect, clock: context.clock });
    const headers = answerHeaders(call, 'application/octet-stream');
    headers['content-disposition'] = `attachment; filename="${name}"`;
    headers['x-content-type-options'] = 'nosniff';
    exchange.send({ status: 200, headers, body });
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof ProfileInUse)) throw error;
    refuseProfile(call, 500, `Could not enable profiling: another profile is being taken`);
  }
}

/** The requested seconds of a profile; undefined if they are invalid. */
function secondsOf(
  text: string,
  { kind, seconds }: { readonly kind: ProfileKind; readonly seconds: number },
): number | undefined {
  if (text === '') return seconds;
  const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  // For the CPU profile a malformed duration means the default, as in Go.
  if (kind === 'profile' && !(number > 0)) return seconds;
  return number > 0 && number <= secondsMax ? number : undefined;
}

/** PUT sets the log verbosity until the server exits; other methods are not allowed. */
async function setVerbosity(call: AuthorizedCall): Promise<void> {
  const { context, exchange, info } = call;
  const answer = (status: number, text: string) => sendText(call, { status, text });
  if (info.verb !== 'put') return answer(406, 'unsupported http method');
  const text = (await exchange.body(flagBytesMax)).toString();
  const refuse = (problem: 'syntax' | 'range') =>
    answer(400, problemText({ code: 'number', parser: 'ParseUint', text, problem }));
  if (!/^\d+$/.test(text)) return refuse('syntax');
  if (Number(text) > verbosityMax) return refuse('range');
  const { setVerbosity: set } = context.logger;
  if (set === undefined) return answer(400, 'the log of this server has one verbosity');
  set(Number(text));
  answer(200, `successfully set klog.logging.verbosity to ${Number(text)}`);
}
