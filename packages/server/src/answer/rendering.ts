import { covers, type MediaRange, parseAccept } from '@wheelhouse/codec';
import {
  acceptedDiscoveryGroups,
  acceptedMetaGroups,
  acceptsCoding,
  type Exchange,
  memoized,
  notAcceptable,
  notRepresentable,
} from '@wheelhouse/machinery';
import { isListByWatch, type ListsByWatch } from '../request/options.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import {
  type Encodings,
  jsonEncoding,
  mediaTypes,
  type ServedEncoding,
  watchTypes,
} from './encodings.ts';

/**
 * Restrictions on the forms of an answer: a watch needs a streaming encoding, a watch that replaces
 * a list and a resource without columns have no tables, and documents have no `as=`.
 */
type Place = 'resource' | 'columnless' | 'watch' | 'listByWatch' | 'document';

/**
 * How the answer to a request is written. It is decided once, when the request is routed, and
 * applies to every answer of the request and every frame of a stream.
 */
export interface Rendering {
  readonly encoding: ServedEncoding;
  /** Whether text is indented for people. */
  readonly pretty: boolean;
  /** `object`: the object or list itself; otherwise the form that `as=` names. */
  readonly shape: 'object' | (typeof shapes)[number];
  /** Version of a Table or a PartialObjectMetadata. */
  readonly shapeVersion: (typeof metaVersions)[number];
  /** `gzip`: the client accepts gzip, and long bodies are compressed (CODEC-7). */
  readonly compression: 'none' | 'gzip';
}

const shapes = ['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'] as const;
const metaVersions = ['v1', 'v1beta1'] as const;

/** The decision of one clause of `Accept`; `Renderings` adds the rest. */
type Choice = Omit<Rendering, 'compression'>;

/** All renderings of one choice, created once instead of for every request. */
interface Renderings {
  readonly plain: Rendering;
  readonly pretty: Rendering;
  readonly gzip: Rendering;
  readonly prettyGzip: Rendering;
}

function renderingsOf(choice: Choice): Renderings {
  return {
    plain: { ...choice, compression: 'none' },
    pretty: { ...choice, compression: 'none', pretty: true },
    gzip: { ...choice, compression: 'gzip' },
    prettyGzip: { ...choice, compression: 'gzip', pretty: true },
  };
}

const plainRenderings = renderingsOf({
  encoding: jsonEncoding,
  pretty: false,
  shape: 'object',
  shapeVersion: 'v1',
});

/** Plain JSON, for answers before or outside negotiation. */
export const jsonRendering = plainRenderings.plain;

/**
 * Maximum number of cached choices by header; clients send few different ones. The cache is cleared
 * when it is full.
 */
const memoMax = 500;
/** Longer headers are parsed each time, so that clients cannot fill the memory with them. */
const memoizedLengthMax = 1_024;
type Memo = Record<Place, Map<string, Renderings | undefined>>;
const memos = new WeakMap<readonly ServedEncoding[], Memo>();

function memoOf(served: readonly ServedEncoding[]): Memo {
  let memo = memos.get(served);
  if (memo === undefined) {
    memo = {
      resource: new Map(),
      columnless: new Map(),
      watch: new Map(),
      listByWatch: new Map(),
      document: new Map(),
    };
    memos.set(served, memo);
  }
  return memo;
}

/** The facts about a request's target that negotiation needs. */
export interface Negotiable {
  readonly served: readonly ServedEncoding[];
  /** Whether the target can be shown as a table; absent: it can. */
  readonly tables?: 'some' | 'none';
  /** Whether the server compresses answers; absent: it does not. */
  readonly compression?: 'on' | 'off';
  /** For a watch: whether it may replace a list; absent: it may. */
  readonly listsByWatch?: ListsByWatch | undefined;
  /**
   * Called before a 406, for types that are not served or for a form of a served type; may throw
   * another error.
   */
  readonly beforeRefusal?: (refused: 'types' | 'form') => void;
}

/**
 * The rendering of an answer, from `Accept`, `Accept-Encoding`, `pretty`, and the User-Agent
 * (CODEC-1, CODEC-2, CODEC-7). A clause that requests something that is not served is skipped.
 * Throws 406.
 */
export function negotiate(exchange: Exchange, info: RequestInfo, target: Negotiable): Rendering {
  const { served } = target;
  const kind = target.tables === 'none' ? 'columnless' : placeOf(info, target);
  const renderings = chosen(exchange.header('accept'), kind, served);
  if (renderings === undefined) throw refusalOf(exchange, info, { ...target, kind });
  const pretty = isPretty(exchange, info.query);
  if (target.compression === 'on' && isCompressed(exchange, info)) {
    return pretty ? renderings.prettyGzip : renderings.gzip;
  }
  return pretty ? renderings.pretty : renderings.plain;
}

/** The 406 of a request that accepts none of the encodings of its target. */
function refusalOf(
  exchange: Exchange,
  info: RequestInfo,
  target: Negotiable & { readonly kind: Place },
): Error {
  const { served, kind } = target;
  const header = exchange.header('accept') ?? '';
  if (isRouted(kind, served) && !namesServed(header, served)) {
    target.beforeRefusal?.('types');
    return notRepresentable(representations(info, served));
  }
  target.beforeRefusal?.('form');
  const isUnstreamable =
    choose(parseAccept(header), { place: kind, mustStream: false }, served) !== undefined;
  return notAcceptable(isUnstreamable ? watchTypes(served) : mediaTypes(served));
}

/** Only gets and lists are compressed. */
function isCompressed(exchange: Exchange, { verb }: RequestInfo): boolean {
  if (exchange.method !== 'GET' || (verb !== 'get' && verb !== 'list')) return false;
  return takesGzip(exchange.header('accept-encoding'));
}

/** Whether an `Accept-Encoding` names gzip with a weight other than 0. */
export function takesGzip(accepted: string | undefined): boolean {
  return accepted !== undefined && namesGzip(accepted);
}

const namesGzip = memoized((accepted) => accepted !== '' && acceptsCoding(accepted, 'gzip'), {
  countMax: memoMax,
  lengthMax: memoizedLengthMax,
});

/**
 * Whether a place belongs to a built-in kind, for which kube-apiserver's router checks `Accept`.
 */
function isRouted(place: Place, served: readonly ServedEncoding[]): boolean {
  return place !== 'document' && served.every((encoding) => encoding.covers === 'objects');
}

/** Whether any clause names a served type, with any parameters, or all types. */
function namesServed(header: string, served: readonly ServedEncoding[]): boolean {
  const isNamed = (range: MediaRange) => range.type === '*' || range.subtype !== '*';
  return parseAccept(header).some(
    (range) => isNamed(range) && served.some((encoding) => covers(range, encoding)),
  );
}

/**
 * Throws 406 if `Accept` names none of the encodings of a document that kube-apiserver routes like
 * a built-in kind (CODEC-1).
 */
export function checkRouted(exchange: Exchange, served: readonly ServedEncoding[]): void {
  const header = exchange.header('accept') ?? '';
  if (header !== '' && !namesServed(header, served)) throw notRepresentable(mediaTypes(served));
}

/** Media types in which a path could be answered, including watches of collections. */
function representations(info: RequestInfo, served: readonly ServedEncoding[]): string[] {
  const isCollection = info.verb === 'watch' || (info.verb === 'list' && info.parts.length < 2);
  return [...mediaTypes(served), ...(isCollection ? watchTypes(served) : [])];
}

/**
 * The rendering of a failure, which may occur before the request is routed. If the client accepts
 * no encoding of a Status, it is indented JSON, because the reader may be a person.
 */
export function failureRendering(exchange: Exchange, { failures }: Encodings): Rendering {
  const renderings = chosen(exchange.header('accept'), 'document', failures);
  if (renderings === undefined) return plainRenderings.pretty;
  const at = exchange.url.indexOf('?');
  const query = at < 0 ? '' : exchange.url.slice(at + 1);
  const hasPretty = query.includes('pretty');
  const pretty = isPretty(exchange, hasPretty ? new URLSearchParams(query) : undefined);
  return pretty ? renderings.pretty : renderings.plain;
}

function placeOf(info: RequestInfo, { listsByWatch }: Pick<Negotiable, 'listsByWatch'>): Place {
  if (!info.isResourceRequest) return 'document';
  if (info.verb !== 'watch') return 'resource';
  return listsByWatch !== 'refused' && isListByWatch(info.query) ? 'listByWatch' : 'watch';
}

function chosen(
  header: string | undefined,
  place: Place,
  served: readonly ServedEncoding[],
): Renderings | undefined {
  if (header === undefined || header === '') return plainRenderings;
  const memo = memoOf(served)[place];
  if (memo.has(header)) return memo.get(header);
  const isRefused = isRouted(place, served) && !namesServed(header, served);
  const ranges = isRefused ? [] : parseAccept(header);
  const choice =
    place === 'listByWatch'
      ? chooseListByWatch(ranges, served)
      : choose(ranges, { place, mustStream: place === 'watch' }, served);
  const renderings = choice && renderingsOf(choice);
  if (header.length > memoizedLengthMax) return renderings;
  if (memo.size >= memoMax) memo.clear();
  memo.set(header, renderings);
  return renderings;
}

/**
 * Like kube-apiserver, this passes over tables for the shape alone; the stream has the encoding of
 * the first clause.
 */
function chooseListByWatch(
  ranges: readonly MediaRange[],
  served: readonly ServedEncoding[],
): Choice | undefined {
  const choice = choose(ranges, { place: 'listByWatch', mustStream: false }, served);
  const stream = choose(ranges, { place: 'watch', mustStream: true }, served);
  return choice && stream && { ...choice, encoding: stream.encoding };
}

function choose(
  ranges: readonly MediaRange[],
  { place, mustStream }: { readonly place: Place; readonly mustStream: boolean },
  served: readonly ServedEncoding[],
): Choice | undefined {
  for (const range of ranges) {
    for (const encoding of served) {
      if (!covers(range, encoding)) continue;
      const choice = choiceOf(range, encoding, place);
      if (choice === undefined) continue;
      // Like kube-apiserver, this does not look for a later clause that streams.
      return mustStream && !encoding.streams ? undefined : choice;
    }
  }
  return undefined;
}

function choiceOf(
  { parameters }: MediaRange,
  encoding: ServedEncoding,
  place: Place,
): Choice | undefined {
  const stream = parameters.get('stream') ?? '';
  if (stream !== '' && (stream !== 'watch' || !encoding.streams)) return undefined;
  const serverVersion = parameters.get('sv') ?? '';
  if (serverVersion !== '' && (serverVersion !== 'v1' || place === 'document')) return undefined;
  const base = { encoding, pretty: parameters.get('pretty') === '1' };
  const isTransform = ['as', 'g', 'v'].some((name) => parameters.has(name));
  if (!isTransform) {
    return encoding.covers === 'objects'
      ? { ...base, shape: 'object', shapeVersion: 'v1' }
      : undefined;
  }
  if (place === 'document') return undefined;
  const shape = shapes.find((name) => name === parameters.get('as'));
  const shapeVersion = metaVersions.find((metaVersion) => metaVersion === parameters.get('v'));
  const isMeta = acceptedMetaGroups.includes(parameters.get('g') ?? '');
  if (shape === undefined || shapeVersion === undefined || !isMeta) return undefined;
  const hasTables = encoding.tables && place !== 'listByWatch' && place !== 'columnless';
  if (shape === 'Table' && !hasTables) return undefined;
  return { ...base, shape, shapeVersion };
}

const humanAgents = ['curl', 'Wget', 'Mozilla/5.0'];

/** Whether to indent: according to `pretty` in the query, otherwise for interactive tools only. */
function isPretty(exchange: Exchange, query: URLSearchParams | undefined): boolean {
  const pretty = query?.get('pretty') ?? '';
  if (pretty !== '') return /^(?:1|t|T|true|True|TRUE)$/.test(pretty);
  const agent = exchange.header('user-agent') ?? '';
  return humanAgents.some((humanAgent) => agent.startsWith(humanAgent));
}

/** The form of aggregated discovery that a client requests (API-11). */
export interface AggregatedForm {
  readonly version: 'v2' | 'v2beta1';
  /** The group as the client wrote it, which the Content-Type of the answer repeats. */
  readonly group: string;
  readonly encoding: ServedEncoding;
}

/** The aggregated form, if any clause of `Accept` requests it; undefined: plain discovery. */
export function aggregatedFormOf(
  accept: string | undefined,
  served: readonly ServedEncoding[],
): AggregatedForm | undefined {
  if (accept === undefined || !accept.includes('APIGroupDiscoveryList')) return undefined;
  for (const range of parseAccept(accept)) {
    const encoding = served.find((offered) => covers(range, offered));
    const form = encoding && formOf(range, encoding);
    if (form !== undefined) return form;
  }
  return undefined;
}

function formOf({ parameters }: MediaRange, encoding: ServedEncoding): AggregatedForm | undefined {
  if (parameters.get('as') !== 'APIGroupDiscoveryList') return undefined;
  const group = parameters.get('g') ?? '';
  const version = (['v2', 'v2beta1'] as const).find((name) => name === parameters.get('v'));
  if (version === undefined || !acceptedDiscoveryGroups.includes(group)) return undefined;
  return { version, group, encoding };
}
