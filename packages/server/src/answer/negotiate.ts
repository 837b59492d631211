import { covers, type MediaRange, parseAccept } from '@wheelhouse/codec';
import {
  acceptedDiscoveryGroups,
  acceptedMetaGroups,
  type Exchange,
  notAcceptable,
  notRepresentable,
} from '@wheelhouse/machinery';
import { isListByWatch } from '../request/options.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { type Encodings, mediaTypes, type ServedEncoding } from './encodings.ts';
import { jsonOutput, type Output } from './output.ts';

/**
 * What a request's place allows: a watch wants encodings that stream, one that stands for a list no
 * tables, a resource without columns none either, documents no `as=`.
 */
type Place = 'resource' | 'columnless' | 'watch' | 'listByWatch' | 'document';

const isStream = (place: Place) => place === 'watch' || place === 'listByWatch';

type Choice = Output;

const plainChoice: Choice = jsonOutput;
/** For clients that take nothing there is, and may be people. */
const indentedChoice: Choice = { ...jsonOutput, pretty: true };
const transforms = ['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'] as const;
const metaVersions = ['v1', 'v1beta1'] as const;

/** Clients send few different headers, so each is read once; emptied when somebody sends many. */
const memoMax = 500;
type Memo = Record<Place, Map<string, Choice | undefined>>;
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

/**
 * The encoding of an answer, from `Accept`, `pretty` and the User-Agent (CODEC-1, CODEC-2). A clause
 * that asks for something not served is passed over for the next. Throws 406.
 * @param place.beforeRefusal called where a type is known but not to be had this way; it may have
 *   something else to complain of
 */
export function negotiateOutput(
  exchange: Exchange,
  info: RequestInfo,
  place: {
    readonly served: readonly ServedEncoding[];
    /** Whether what is asked for can be shown as a table; absent: it can. */
    readonly tables?: 'some' | 'none';
    readonly beforeRefusal?: () => void;
  },
): Output {
  const { served } = place;
  const kind = place.tables === 'none' ? 'columnless' : placeOf(info);
  const choice = chosen(exchange.header('accept'), kind, served);
  if (choice !== undefined) return withPretty(choice, isPretty(exchange, info.query));
  const header = exchange.header('accept') ?? '';
  const isRouted = info.isResourceRequest && served.every((one) => one.covers === 'objects');
  if (isRouted && !namesServed(header, served)) {
    throw notRepresentable(representations(info, served));
  }
  place.beforeRefusal?.();
  const isUnstreamable =
    choose(parseAccept(header), { place: kind, mustStream: false }, served) !== undefined;
  throw notAcceptable(mediaTypes(served, isUnstreamable));
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

/** The encoding of a failure: plain JSON where the header asks for nothing that a Status comes in. */
export function negotiateFailure(exchange: Exchange, { failures }: Encodings): Output {
  const choice = chosen(exchange.header('accept'), 'document', failures) ?? indentedChoice;
  const at = exchange.url.indexOf('?');
  const query = at < 0 ? '' : exchange.url.slice(at + 1);
  const hasPretty = query.includes('pretty');
  return withPretty(choice, isPretty(exchange, hasPretty ? new URLSearchParams(query) : undefined));
}

function withPretty(choice: Choice, pretty: boolean): Output {
  return pretty && !choice.pretty ? { ...choice, pretty } : choice;
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
): Choice | undefined {
  if (header === undefined || header === '') return plainChoice;
  const memo = memoOf(served)[place];
  if (memo.has(header)) return memo.get(header);
  if (memo.size >= memoMax) memo.clear();
  const choice = choose(parseAccept(header), { place, mustStream: isStream(place) }, served);
  memo.set(header, choice);
  return choice;
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
    return encoding.covers === 'objects' ? { ...base, as: 'none', version: 'v1' } : undefined;
  }
  if (place === 'document') return undefined;
  const as = transforms.find((one) => one === parameters.get('as'));
  const version = metaVersions.find((one) => one === parameters.get('v'));
  const isMeta = acceptedMetaGroups.includes(parameters.get('g') ?? '');
  if (as === undefined || version === undefined || !isMeta) return undefined;
  const hasTables = encoding.tables && place !== 'listByWatch' && place !== 'columnless';
  if (as === 'Table' && !hasTables) return undefined;
  return { ...base, as, version };
}

const humanAgents = ['curl', 'Wget', 'Mozilla/5.0'];

/** `pretty` decides where it is given; otherwise people's tools get it, programs do not. */
function isPretty(exchange: Exchange, query: URLSearchParams | undefined): boolean {
  const given = query?.get('pretty') ?? '';
  if (given !== '') return /^(?:1|t|T|true|True|TRUE)$/.test(given);
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
