import {
  badRequest,
  methodNotAllowedOnPath,
  noSuchPath,
  parseFieldSelector,
  parseLabelSelector,
  pathSegment,
  type RequestSubject,
  type UserInfo,
  type Waiting,
} from '@wheelhouse/machinery';
import type { Attributes } from '../gates/authz/contract.ts';
import { isTrue } from './options.ts';

/**
 * What a URL and a method ask for, before anything is looked up (API-1, AUTHZ-1). Pure.
 */
export interface RequestInfo extends RequestSubject {
  /** `api` or `apis`; empty for other paths. */
  readonly apiPrefix: string;
  /** Empty for collections. A `fieldSelector=metadata.name=x` on list and watch fills it. */
  readonly name: string;
  /** Path segments after the version (and after `namespaces/<ns>` for namespaced resources). */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

const verbs: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);
/** Below a namespace these are the namespace's own sub-resources, not resources inside it. */
const namespaceSubresources = new Set(['status', 'finalize']);
/** Longest path served, bytes as sent; the longest legal one is about a tenth of it. */
const pathBytesMax = 8192;
/** Shared by all requests without a query; nobody writes to a query. */
const noQuery = new URLSearchParams();
/** Queries read before, by their text: a client sends the same one with each request of a kind. */
const queries = new Map<string, URLSearchParams>();
const queriesMax = 256;
const keptQueryMax = 256;

/** As upstream's parser leaves them out: pairs that cannot be unescaped, or that hold a semicolon. */
function readable(text: string): string {
  if (!text.includes('%') && !text.includes(';')) return text;
  const pairs = text.split('&');
  return pairs.filter((pair) => !pair.includes(';') && !badEscape.test(pair)).join('&');
}

const badEscape = /%(?![0-9a-f]{2})/i;

function parseQuery(text: string): URLSearchParams {
  const cached = queries.get(text);
  if (cached !== undefined) return cached;
  const query = new URLSearchParams(readable(text));
  if (text.length > keptQueryMax) return query;
  if (queries.size >= queriesMax) queries.clear();
  queries.set(text, query);
  return query;
}

/**
 * What was asked for lately with each method, by URL: clients ask for the same things again and
 * again. Not one text of both, which would have to be put together and hashed for every request.
 */
const requests: ReadonlyMap<string, Map<string, RequestInfo>> = new Map(
  [...verbs.keys()].map((method) => [method, new Map()]),
);
const requestsMax = 1024;
const keptUrlMax = 256;

/**
 * What a method and URL ask for (API-1, API-4); what it said of short URLs is remembered. Throws 400
 * for a path that cannot be a legal one (bad escapes, NUL, `.` and `..`, too long), 404 for one with
 * an empty segment in an API path (unless a `proxy` passes it on), 405 for a method other than GET
 * on the old `/watch/` paths.
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
  if (isMalformed || path.startsWith('//')) throw noSuchPath();
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

/** Whether a segment is of the path that the `proxy` of a Node, Pod, or Service passes on. */
function isBehindProxy(segments: readonly string[], index: number): boolean {
  return segments[0] === 'api' && [4, 6].some((at) => segments[at] === 'proxy' && index > at);
}

/** HTTP/1.1 may name the server in the request line: `GET https://host/path`. */
function originForm(url: string): string {
  const found = /^https?:\/\/[^/?]*(.*)$/is.exec(url);
  if (found === null) return `/${url}`;
  const rest = found[1] ?? '';
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

/** Without the slashes at both ends. `.` and `..` are no legal names anywhere, so they never pass. */
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

function invalidName(name: string): Error {
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
  /** What follows the version: one segment at least. */
  readonly rest: readonly string[];
}

function resourceRequest(method: string, found: ApiPath): RequestInfo {
  const { path, query, apiPrefix, group, version } = found;
  let { rest } = found;
  let verb = verbs.get(method) ?? '';
  if (rest[0] === 'watch') {
    rest = rest.slice(1);
    if (rest.length === 0) throw noSuchPath();
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
  if (isCollection && (verb === 'list' || verb === 'watch')) name = nameInSelector(query);
  else if (isCollection && verb === 'delete') verb = 'deletecollection';
  else if (name.includes('%') && verb !== 'create') throw invalidName(name);
  return {
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
 * The one object a list or watch can be about: a rule that allows only that name allows it
 * (AUTHZ-1). A selector that cannot be read is the endpoint's to refuse.
 */
function nameInSelector(query: URLSearchParams): string {
  const selector = query.size === 0 ? null : query.get('fieldSelector');
  if (selector === null || !selector.includes('metadata.name')) return '';
  try {
    const found = parseFieldSelector(selector).find(
      ({ label, operator }) => label === 'metadata.name' && operator === '=',
    );
    const name = found?.value ?? '';
    return pathSegment(name).length === 0 ? name : '';
  } catch {
    return '';
  }
}

/**
 * What authorization looks at of a request (AUTHZ-1).
 * @param client who waits for the verdict, where it need not be waited for without them
 * @param verb asks about another verb on the same object (the create behind a PUT)
 */
export function attributesOf(
  info: RequestInfo,
  user: UserInfo,
  client: Waiting | undefined,
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

/** The old way to watch, `/api/v1/watch/…`, where upstream does not authorize by selectors. */
function isWatchPath({ apiPrefix, path }: RequestInfo): boolean {
  return path.split('/', 5)[apiPrefix === 'api' ? 3 : 4] === 'watch';
}

/** A selector that cannot be read is the endpoint's to refuse; until then it selects everything. */
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
