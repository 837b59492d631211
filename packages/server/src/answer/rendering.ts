import { covers, type MediaRange, parseAccept } from '@wheelhouse/codec';
import {
  acceptedDiscoveryGroups,
  acceptedMetaGroups,
  type Exchange,
  notAcceptable,
  notRepresentable,
  takesCoding,
} from '@wheelhouse/machinery';
import { isListByWatch } from '../request/options.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import { type Encodings, jsonEncoding, mediaTypes, type ServedEncoding } from './encodings.ts';

/**
 * What a request's place allows: a watch wants encodings that stream, one that stands for a list no
 * tables, a resource without columns none either, documents no `as=`.
 */
type Place = 'resource' | 'columnless' | 'watch' | 'listByWatch' | 'document';

const isStream = (place: Place) => place === 'watch' || place === 'listByWatch';

/**
 * How the answer to a request is written, decided once, when the request is routed: every answer of the
 * request follows it, a stream of events to its last frame.
 */
export interface Rendering {
  readonly encoding: ServedEncoding;
  /** Whether the text is laid out for people. */
  readonly pretty: boolean;
  /** `object`: the object or the list itself; else the form that `as=` names. */
  readonly shape: 'object' | (typeof shapes)[number];
  /** Version of a table or of metadata alone. */
  readonly shapeVersion: (typeof metaVersions)[number];
  /** `gzip`: the client takes compressed bodies, which long ones then are (CODEC-7). */
  readonly compression: 'none' | 'gzip';
}

const shapes = ['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'] as const;
const metaVersions = ['v1', 'v1beta1'] as const;

/** What a clause of `Accept` decides. The rest is added as `Renderings`. */
type Choice = Omit<Rendering, 'compression'>;

/** All renderings that one choice can lead to, made once, so that no request makes one. */
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

/** Clients send few different headers, so each is read once; emptied when somebody sends many. */
const memoMax = 500;
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

/** What negotiation knows of a request's target. */
export interface Negotiable {
  readonly served: readonly ServedEncoding[];
  /** Whether the target can be shown as a table; absent: it can. */
  readonly tables?: 'some' | 'none';
  /** Whether the server compresses answers at all; absent: it does not. */
  readonly compression?: 'on' | 'off';
  /** Called before a 406 for a type that is served, but not in this form; may throw another error. */
  readonly beforeRefusal?: () => void;
}

/**
 * The rendering of an answer, from `Accept`, `Accept-Encoding`, `pretty`, and the User-Agent (CODEC-1,
 * CODEC-2, CODEC-7). A clause that asks for something not served is passed over for the next.
 * Throws 406.
 */
export function negotiate(exchange: Exchange, info: RequestInfo, target: Negotiable): Rendering {
  const { served } = target;
  const kind = target.tables === 'none' ? 'columnless' : placeOf(info);
  const renderings = chosen(exchange.header('accept'), kind, served);
  if (renderings === undefined) throw refusalOf(exchange, info, { ...target, kind });
  const pretty = isPretty(exchange, info.query);
  if (target.compression === 'on' && isCompressed(exchange, info)) {
    return pretty ? renderings.prettyGzip : renderings.gzip;
  }
  return pretty ? renderings.pretty : renderings.plain;
}

/** The 406 of a request that takes nothing that its target is served in. */
function refusalOf(
  exchange: Exchange,
  info: RequestInfo,
  target: Negotiable & { readonly kind: Place },
): Error {
  const { served, kind } = target;
  const header = exchange.header('accept') ?? '';
  const isRouted = info.isResourceRequest && served.every((one) => one.covers === 'objects');
  if (isRouted && !namesServed(header, served)) {
    return notRepresentable(representations(info, served));
  }
  target.beforeRefusal?.();
  const isUnstreamable =
    choose(parseAccept(header), { place: kind, mustStream: false }, served) !== undefined;
  return notAcceptable(mediaTypes(served, isUnstreamable));
}

/** Only gets and lists are compressed. */
function isCompressed(exchange: Exchange, { verb }: RequestInfo): boolean {
  if (exchange.method !== 'GET' || (verb !== 'get' && verb !== 'list')) return false;
  return takesGzip(exchange.header('accept-encoding') ?? '');
}

/** Values of `Accept-Encoding` by whether they take gzip. */
const codings = new Map<string, boolean>();

/** Whether an `Accept-Encoding` names gzip with a weight other than 0. */
export function takesGzip(accepted: string): boolean {
  if (accepted === '') return false;
  const cached = codings.get(accepted);
  if (cached !== undefined) return cached;
  const takes = takesCoding(accepted, 'gzip');
  if (codings.size >= memoMax) codings.clear();
  codings.set(accepted, takes);
  return takes;
}

/** Whether any clause names a type there is, whatever it wants of it. */
function namesServed(header: string, served: readonly ServedEncoding[]): boolean {
  return parseAccept(header).some((range) => served.some((one) => covers(range, one)));
}

/** What a path of a built-in kind could be answered in: collections can be watched as well. */
function representations(info: RequestInfo, served: readonly ServedEncoding[]): string[] {
  const isCollection = info.verb === 'watch' || (info.verb === 'list' && info.parts.length < 2);
  return [...mediaTypes(served), ...(isCollection ? mediaTypes(served, true) : [])];
}

/**
 * The rendering of a failure, which may come before the request is routed: plain JSON where the header
 * asks for nothing that a Status comes in, laid out, since that may be a person.
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

function placeOf(info: RequestInfo): Place {
  if (!info.isResourceRequest) return 'document';
  if (info.verb !== 'watch') return 'resource';
  return isListByWatch(info.query) ? 'listByWatch' : 'watch';
}

function chosen(
  header: string | undefined,
  place: Place,
  served: readonly ServedEncoding[],
): Renderings | undefined {
  if (header === undefined || header === '') return plainRenderings;
  const memo = memoOf(served)[place];
  if (memo.has(header)) return memo.get(header);
  if (memo.size >= memoMax) memo.clear();
  const choice = choose(parseAccept(header), { place, mustStream: isStream(place) }, served);
  const renderings = choice && renderingsOf(choice);
  memo.set(header, renderings);
  return renderings;
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
      // Upstream, too, gives up here instead of looking for a later clause that streams.
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
  const base = {
    encoding,
    pretty: parameters.get('pretty') === '1',
  };
  const isTransform = ['as', 'g', 'v'].some((name) => parameters.has(name));
  if (!isTransform) {
    return encoding.covers === 'objects'
      ? { ...base, shape: 'object', shapeVersion: 'v1' }
      : undefined;
  }
  if (place === 'document') return undefined;
  const shape = shapes.find((one) => one === parameters.get('as'));
  const shapeVersion = metaVersions.find((one) => one === parameters.get('v'));
  const isMeta = acceptedMetaGroups.includes(parameters.get('g') ?? '');
  if (shape === undefined || shapeVersion === undefined || !isMeta) return undefined;
  const hasTables = encoding.tables && place !== 'listByWatch' && place !== 'columnless';
  if (shape === 'Table' && !hasTables) return undefined;
  return { ...base, shape, shapeVersion };
}

const humanAgents = ['curl', 'Wget', 'Mozilla/5.0'];

/** `pretty` decides when the query has it; otherwise interactive tools get indented JSON. */
function isPretty(exchange: Exchange, query: URLSearchParams | undefined): boolean {
  const pretty = query?.get('pretty') ?? '';
  if (pretty !== '') return /^(?:1|t|T|true|True|TRUE)$/.test(pretty);
  const agent = exchange.header('user-agent') ?? '';
  return humanAgents.some((one) => agent.startsWith(one));
}

/** What a client asks of aggregated discovery (API-11). */
export interface AggregatedForm {
  readonly version: 'v2' | 'v2beta1';
  /** The group as the client wrote it; its answer's Content-Type names the same. */
  readonly group: string;
  readonly encoding: ServedEncoding;
}

/** The aggregated form, when any clause of `Accept` asks for it; undefined: plain discovery. */
export function aggregatedFormOf(
  accept: string | undefined,
  served: readonly ServedEncoding[],
): AggregatedForm | undefined {
  if (accept === undefined || !accept.includes('APIGroupDiscoveryList')) return undefined;
  for (const range of parseAccept(accept)) {
    const encoding = served.find((one) => covers(range, one));
    const form = encoding && formOf(range, encoding);
    if (form !== undefined) return form;
  }
  return undefined;
}

function formOf(
  { parameters, subtype }: MediaRange,
  encoding: ServedEncoding,
): AggregatedForm | undefined {
  if (parameters.get('as') !== 'APIGroupDiscoveryList' || subtype === 'yaml') return undefined;
  const group = parameters.get('g') ?? '';
  const version = (['v2', 'v2beta1'] as const).find((one) => one === parameters.get('v'));
  if (version === undefined || !acceptedDiscoveryGroups.includes(group)) return undefined;
  return { version, group, encoding };
}
