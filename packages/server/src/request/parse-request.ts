import {
  badRequest,
  memoized,
  methodNotAllowedOnPath,
  parseFieldSelector,
  parseLabelSelector,
  pathNotFound,
  pathSegment,
  type RequestSubject,
  StatusError,
  type UserInfo,
  type WaitingClient,
} from '@wheelhouse/machinery';
import type { Attributes } from '../registry/permit.ts';
import { isTrue } from './options.ts';

/**
 * What a URL and a method request, before any lookup (API-1, AUTHZ-1).
 */
export interface RequestInfo extends RequestSubject {
  /** `api` or `apis`; empty for other paths. */
  readonly apiPrefix: string;
  /** Empty for collections. A `fieldSelector=metadata.name=x` on list and watch fills it. */
  readonly name: string;
  /** Path segments after the version (and after `namespaces/<ns>` for namespaced resources). */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  /** The error of a malformed request, for a client that may send it. */
  readonly refusal?: StatusError;
}

const verbs: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);
/** After a namespace's name these are its own subresources, not resources inside it. */
const namespaceSubresources = new Set(['status', 'finalize']);
/**
 * Longest path that is served, in bytes as sent; the longest valid path has about a tenth of them.
 */
const pathBytesMax = 8192;
/** Shared by all requests without a query; queries are never modified. */
const noQuery = new URLSearchParams();
/** Parses a query, memoized: a client repeats the same query for each kind of request. */
const parseQuery = memoized((text) => new URLSearchParams(readable(text)), {
  countMax: 256,
  lengthMax: 256,
});

/** Drops pairs with a bad escape or a semicolon, as Go's query parser does. */
function readable(text: string): string {
  if (!text.includes('%') && !text.includes(';')) return text;
  const pairs = text.split('&');
  return pairs.filter((pair) => !pair.includes(';') && !badEscape.test(pair)).join('&');
}

const badEscape = /%(?![0-9a-f]{2})/i;

/**
 * Recently parsed requests by method, then URL: clients repeat the same requests. Two levels avoid
 * concatenating and hashing a combined key for every request.
 */
const requests: ReadonlyMap<string, Map<string, RequestInfo>> = new Map(
  [...verbs.keys()].map((method) => [method, new Map()]),
);
const requestsMax = 1024;
const keptUrlMax = 256;

/**
 * Parses a method and URL (API-1, API-4); results for short URLs are cached. The refusal is 400 for
 * an invalid path (bad escapes, NUL, `.` and `..`, too long), 404 for an API path with an empty
 * segment (unless it follows a `proxy`), and 405 for a method other than GET on the old `/watch/`
 * paths. Only authenticated clients learn it, and gates see such a request as one for its raw path.
 */
export function parseRequest(method: string, url: string): RequestInfo {
  const byUrl = requests.get(method);
  if (byUrl === undefined || url.length > keptUrlMax) return readRequest(method, url);
  const cached = byUrl.get(url);
  if (cached !== undefined) return cached;
  const info = readRequest(method, url);
  if (byUrl.size >= requestsMax) byUrl.clear();
  byUrl.set(url, info);
  return info;
}

function readRequest(method: string, url: string): RequestInfo {
  try {
    return readSoundRequest(method, url);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const [path = ''] = url.slice(0, pathBytesMax).split('?', 1);
    return { ...otherRequest(method, { path, query: noQuery }), refusal: error };
  }
}

/** Throws a StatusError for a malformed request. */
function readSoundRequest(method: string, url: string): RequestInfo {
  const target = url.startsWith('/') ? url : originForm(url);
  const at = target.indexOf('?');
  const path = decodePath(at < 0 ? target : target.slice(0, at));
  const query = at < 0 ? noQuery : parseQuery(target.slice(at + 1));
  const segments = segmentsOf(path);
  const [prefix = '', second = '', third = ''] = segments;
  const isApi = (prefix === 'api' || prefix === 'apis') && segments.length > 1;
  const resourceAt = prefix === 'api' ? 2 : 3;
  if (!isApi || segments.length <= resourceAt) return otherRequest(method, { path, query });
  const emptyAt = segments.indexOf('');
  const isMalformed = emptyAt >= 0 && !isBehindProxy(segments, emptyAt);
  if (isMalformed || path.startsWith('//')) throw pathNotFound();
  const hasGroup = prefix === 'apis';
  return resourceRequest(method, {
    path,
    query,
    apiPrefix: prefix,
    group: hasGroup ? second : '',
    version: hasGroup ? third : second,
    rest: segments.slice(resourceAt),
  });
}

/** Whether a segment belongs to the path that the `proxy` of a Node, Pod, or Service forwards. */
function isBehindProxy(segments: readonly string[], index: number): boolean {
  return segments[0] === 'api' && [4, 6].some((at) => segments[at] === 'proxy' && index > at);
}

/** Removes the server from an absolute request target: `GET https://host/path`. */
function originForm(url: string): string {
  const match = /^https?:\/\/[^/?]*(.*)$/is.exec(url);
  if (match === null) return `/${url}`;
  const rest = match[1] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function decodePath(raw: string): string {
  if (raw.length > pathBytesMax) {
    throw badRequest(`the path of the request is longer than ${pathBytesMax} bytes`);
  }
  let path = raw;
  if (raw.includes('%')) {
    try {
      path = decodeURIComponent(raw);
    } catch {
      throw badRequest(`invalid URL escape in the path ${JSON.stringify(raw)}`);
    }
  }
  if (path.includes('\0')) throw badRequest('the path of the request contains a NUL character');
  return path;
}

/**
 * The segments of a path, without the slashes at both ends. Throws 400 for `.` and `..`, which are
 * never valid names.
 */
function segmentsOf(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path[start] === '/') start += 1;
  while (end > start && path[end - 1] === '/') end -= 1;
  if (start === end) return [];
  const segments = path.slice(start, end).split('/');
  for (const segment of segments) {
    if (segment === '.' || segment === '..') throw invalidName(segment);
  }
  return segments;
}

function invalidName(name: string): StatusError {
  return badRequest(
    `Name parameter invalid: ${JSON.stringify(name)}: ${pathSegment(name).join(';')}`,
  );
}

function otherRequest(
  method: string,
  { path, query }: { path: string; query: URLSearchParams },
): RequestInfo {
  return {
    verb: method.toLowerCase(),
    path,
    isResourceRequest: false,
    apiPrefix: '',
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    parts: [],
    query,
  };
}

interface ApiPath {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly apiPrefix: string;
  readonly group: string;
  readonly version: string;
  /** The segments after the version: at least one. */
  readonly rest: readonly string[];
}

function resourceRequest(method: string, apiPath: ApiPath): RequestInfo {
  const { path, query, apiPrefix, group, version } = apiPath;
  let { rest } = apiPath;
  let verb = verbs.get(method) ?? '';
  const isOldWatch = rest[0] === 'watch';
  if (isOldWatch) {
    rest = rest.slice(1);
    if (rest.length === 0) throw pathNotFound();
    if (method !== 'GET') throw methodNotAllowedOnPath();
    verb = 'watch';
  }
  let namespace = '';
  const [first, inside, below] = rest;
  if (first === 'namespaces' && inside !== undefined) {
    namespace = inside;
    if (below !== undefined && !namespaceSubresources.has(below)) rest = rest.slice(2);
  }
  const [resource = '', pathName = '', subresource = ''] = rest;
  let name = pathName;
  const isCollection = name === '';
  if (method === 'GET' && subresource === '' && isTrue(query.get('watch'))) verb = 'watch';
  if (isCollection && verb === 'get') verb = 'list';
  // Old watch paths are not authorized by selectors.
  if (isCollection && (verb === 'list' || verb === 'watch')) {
    name = isOldWatch ? '' : nameInSelector(query);
  } else if (isCollection && verb === 'delete') verb = 'deletecollection';
  const isInvalid = !isCollection && name.includes('%') && verb !== 'create';
  return {
    ...(isInvalid ? { refusal: invalidName(name) } : {}),
    verb,
    path,
    isResourceRequest: true,
    apiPrefix,
    group,
    version,
    namespace,
    resource,
    subresource,
    name,
    parts: rest,
    query,
  };
}

/**
 * The only object that a list or watch can select, so that a rule for that name allows the request
 * (AUTHZ-1). The endpoint rejects selectors that cannot be parsed.
 */
function nameInSelector(query: URLSearchParams): string {
  const selector = query.size === 0 ? null : query.get('fieldSelector');
  if (selector === null || !selector.includes('metadata.name')) return '';
  try {
    const requirement = parseFieldSelector(selector).find(
      ({ label, operator }) => label === 'metadata.name' && operator === '=',
    );
    const name = requirement?.value ?? '';
    return pathSegment(name).length === 0 ? name : '';
  } catch {
    return '';
  }
}

/**
 * The attributes of a request that authorization considers (AUTHZ-1).
 * @param client the waiting client; an authorizer may give up when it leaves
 * @param verb another verb on the same object (the create that a PUT implies)
 */
export function attributesOf(
  info: RequestInfo,
  user: UserInfo,
  client: WaitingClient | undefined,
  verb = info.verb,
): Attributes {
  const { isResourceRequest, group, version, resource, subresource } = info;
  const { namespace, name, path } = info;
  const plain = {
    user,
    verb,
    isResourceRequest,
    group,
    version,
    resource,
    subresource,
    namespace,
    name,
    path,
    client,
  };
  if (info.query.size === 0 || !selecting.has(verb) || isWatchPath(info)) return plain;
  return { ...plain, ...selectorsOf(info.query) };
}

const selecting = new Set(['list', 'watch', 'deletecollection']);

/** Whether this is the old watch path, `/api/v1/watch/…`, which is not authorized by selectors. */
export function isWatchPath({ apiPrefix, path }: RequestInfo): boolean {
  return path.split('/', 5)[apiPrefix === 'api' ? 3 : 4] === 'watch';
}

/** A selector that cannot be parsed selects everything here; the endpoint rejects it. */
function selectorsOf(query: URLSearchParams): Pick<Attributes, 'fieldSelector' | 'labelSelector'> {
  const fields = selectorIn(query.get('fieldSelector'), parseFieldSelector);
  const labels = selectorIn(query.get('labelSelector'), parseLabelSelector)?.requirements;
  return {
    ...(fields === undefined ? {} : { fieldSelector: fields }),
    ...(labels === undefined ? {} : { labelSelector: labels }),
  };
}

function selectorIn<T>(text: string | null, parse: (text: string) => T): T | undefined {
  if (text === null || text === '') return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
