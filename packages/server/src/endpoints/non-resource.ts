import { encodeJsonSteps } from '@wheelhouse/codec';
import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import {
  type BodyPiece,
  type Clock,
  type JsonObject,
  type MaybePromise,
  methodNotAllowedOnPath,
  pathNotFound,
  pieceBytes,
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
import { requireRequest } from '../registry/permit.ts';
import {
  aggregatedDiscovery,
  coreVersions,
  groupDocument,
  groupList,
  groupPaths,
  resourceList,
} from '../views/discovery.ts';
import { backupEndpoint, backupPath } from './backup.ts';
import type { AuthorizedCall, EndpointContext, PlainAnswer } from './call.ts';
import { debugEndpoint } from './debug.ts';
import { digestSteps, openApiEndpoint } from './openapi.ts';

/** Answers paths that are not resources: health, version, discovery (API-11, HEALTH-1). */
export async function nonResourceEndpoint(call: AuthorizedCall): Promise<void> {
  const { context, exchange, info } = call;
  requireRequest(call.permit, info);
  const plain = context.plainPath(info.path, info.query, exchange.header('accept'));
  if (plain !== undefined) {
    if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowedOnPath();
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
  if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowedOnPath();
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
  const isServed = (def: ResourceDef) =>
    def.group === group && def.versions.some((versionDef) => versionDef.version === version);
  return root === 'api' || (version !== undefined && builtins.some(isServed));
}

/** Answers `/` with all paths: groups, versions, documents, and aggregated servers (API-11). */
export function sendIndex(call: AuthorizedCall, aggregated: readonly string[] = []): void {
  const { context } = call;
  const named = [...context.plainPaths(), '/openapi/v2', '/openapi/v3', '/version'];
  const served = groupPaths(context.catalogue.snapshot());
  sendForPeople(call, { paths: [...new Set([...named, ...served, ...aggregated])].sort() });
}

/** Answers with the server's version: in JSON only; throws 406 to clients that do not accept it. */
function sendVersion(call: AuthorizedCall): void {
  const { context, exchange } = call;
  checkRouted(exchange, jsonAlone);
  sendForPeople(call, { ...context.version });
}

const jsonAlone: readonly ServedEncoding[] = [jsonEncoding];

/** Answers with indented JSON, regardless of what the client accepts. */
function sendForPeople(call: AuthorizedCall, value: JsonObject): void {
  const { exchange, info } = call;
  if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowedOnPath();
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
