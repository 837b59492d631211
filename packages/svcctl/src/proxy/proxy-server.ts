import { createReadStream, readdirSync, realpathSync, statSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import http from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream';
import type { HttpClient } from '@wheelhouse/client';
import { errorText, isOfOtherSite, piecesWithin } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';
import { describeError } from '../errors.ts';
import { CliError } from '../io.ts';

/** Sends a file of a folder. `name` is a relative, decoded path. */
export type StaticFiles = (name: string, response: ServerResponse) => void;

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/**
 * Serves the files of a folder and nothing outside it. A subfolder is served as its `index.html`,
 * or else as a list of links. Redirects folders without a final slash and files with one.
 */
export function createStaticFiles(folder: string): StaticFiles {
  return (name, response) => {
    const file = resolveInside(folder, name);
    if (file === undefined) return sendError(response, 404, '404 page not found');
    const base = path.basename(name);
    if (base === 'index.html') return redirect(response, './');
    const hasSlash = name === '' || name.endsWith('/');
    const isFolder = statSync(file).isDirectory();
    if (isFolder && !hasSlash) return redirect(response, `${fileUrl(base)}/`);
    if (!isFolder && hasSlash) return redirect(response, `../${fileUrl(base)}`);
    const index = isFolder ? resolveInside(folder, path.join(name, 'index.html')) : undefined;
    if (isFolder && index === undefined) return sendPage(response, linksPage(file));
    sendFile(response, index ?? file);
  };
}

/** The real path of a file or folder; undefined if there is none inside `folder`. */
function resolveInside(folder: string, name: string): string | undefined {
  try {
    const root = realpathSync(folder);
    const file = realpathSync(path.join(root, name));
    // Check after resolving links, which must not lead outside the folder either.
    return file === root || file.startsWith(root + path.sep) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** @param location an escaped URL */
function redirect(response: ServerResponse, location: string): void {
  response.writeHead(301, { location });
  response.end();
}

/** Escapes the name of a file as a relative URL. */
const fileUrl = (name: string): string => encodeURI(name).replace(/[?#']/g, percentEncoded);

/** The escape of one ASCII character in a URL. */
const percentEncoded = (mark: string): string =>
  `%${mark.charCodeAt(0).toString(16).toUpperCase()}`;

function sendFile(response: ServerResponse, file: string): void {
  const type = contentTypes[path.extname(file).toLowerCase()] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type, 'x-content-type-options': 'nosniff' });
  pipeline(createReadStream(file), response, () => {});
}

function sendPage(response: ServerResponse, page: string): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  response.end(page);
}

const htmlEscapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};

/** A page with a link to each entry of a folder. */
function linksPage(folder: string): string {
  const links = readdirSync(folder, { withFileTypes: true })
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort()
    .map((name) => {
      // The prefix keeps a colon in the name from being read as a URL scheme.
      const target = name.includes(':') ? `./${name}` : name;
      return `<a href="${fileUrl(target)}">${name.replace(/[&<>"']/g, (mark) => htmlEscapes[mark] ?? mark)}</a>\n`;
    });
  return (
    '<!doctype html>\n<meta name="viewport" content="width=device-width">\n' +
    `<pre>\n${links.join('')}</pre>\n`
  );
}

/** Filters of a proxy, each a comma-separated list of regular expressions. */
interface ProxyFilterFlags {
  readonly acceptHosts: string;
  readonly acceptPaths: string;
  readonly rejectPaths: string;
  readonly rejectMethods: string;
}

/** The parts of a request that a filter examines. */
interface FilteredRequest {
  readonly method: string;
  /** Decoded. */
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
}

/** Whether the proxy forwards a request. */
type ProxyFilter = (request: FilteredRequest) => boolean;

/**
 * Creates a filter that accepts a request if its path and host (without the port) each match an
 * accepting expression, its path and method match no rejecting one, and no page of another site
 * sent it, which would act with the user's credentials (TRUST-6). Throws CliError for a malformed
 * expression.
 */
export function createProxyFilter(flags: ProxyFilterFlags): ProxyFilter {
  const acceptHosts = compileList(flags.acceptHosts);
  const acceptPaths = compileList(flags.acceptPaths);
  const rejectPaths = compileList(flags.rejectPaths);
  const rejectMethods = compileList(flags.rejectMethods);
  return ({ method, path, headers }) =>
    !matches(rejectPaths, path) &&
    !matches(rejectMethods, method) &&
    matches(acceptPaths, path) &&
    matches(acceptHosts, (headers.host ?? '').replace(/:\d*$/, '')) &&
    !isOfOtherSite({ method, header: (name) => headers[name]?.toString() }, 'http');
}

function compileList(list: string): readonly RE2JS[] {
  // An empty list matches nothing, unlike an empty expression.
  return (list === '' ? [] : list.split(',')).map((text) => {
    try {
      return RE2JS.compile(text);
    } catch (error) {
      throw new CliError(`Error compiling re: ${errorText(error)}`);
    }
  });
}

const matches = (list: readonly RE2JS[], text: string): boolean =>
  list.some((pattern) => pattern.matcher(text).find());

/** Options of a proxy; prefixes begin and end with a slash. */
interface ProxyOptions {
  readonly client: HttpClient;
  readonly filter: ProxyFilter | undefined;
  readonly apiPrefix: string;
  readonly staticPrefix: string;
  readonly files: StaticFiles | undefined;
  /** Delay before TCP probes an idle connection, in milliseconds; 0 for the system's default. */
  readonly keepAliveMs: number;
}

/** Maximum request body in bytes; more than a server accepts. */
const bodyBytesMax = 32 * 1024 * 1024;

/**
 * Creates a server that forwards requests to the API with the client's credentials; the caller
 * makes it listen. It streams responses, so that watches work, but does not upgrade connections.
 */
export function createProxyServer(options: ProxyOptions): http.Server {
  const server = http.createServer((request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else sendError(response, 500, describeError(error).text.trim());
    });
  });
  server.on('connection', (socket) => {
    if (options.keepAliveMs > 0) socket.setKeepAlive(true, options.keepAliveMs);
  });
  return server;
}

async function serve(
  options: ProxyOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const target = parseTarget(request);
  if (target === undefined) return sendError(response, 400, 'Bad Request');
  const { path, query } = target;
  if (path.includes('//')) return redirect(response, path.replace(/\/{2,}/g, '/') + query);
  if (options.files !== undefined && path.startsWith(options.staticPrefix)) {
    const file = decodePath(path.slice(options.staticPrefix.length));
    return options.files(file ?? '', response);
  }
  if (!path.startsWith(options.apiPrefix)) return sendError(response, 404, 'Not Found');
  // A prefix that begins with /api, like the API's own paths, stays part of the path.
  const keepsPrefix = options.apiPrefix.startsWith('/api');
  const apiPath = keepsPrefix ? path : `/${path.slice(options.apiPrefix.length)}`;
  const decodedPath = decodePath(apiPath);
  if (decodedPath === undefined) return sendError(response, 400, 'Bad Request');
  const requestInfo = {
    method: request.method ?? 'GET',
    path: decodedPath,
    headers: request.headers,
  };
  if (options.filter?.(requestInfo) === false) return sendError(response, 403, 'Forbidden');
  await forward(options.client, { request, response, path: apiPath + query });
}

/** The normalized path, and the query with its question mark. */
function parseTarget(request: IncomingMessage): { path: string; query: string } | undefined {
  const text = request.url ?? '/';
  if (!text.startsWith('/') || !URL.canParse(`http://proxy${text}`)) return undefined;
  const { pathname, search } = new URL(`http://proxy${text}`);
  return { path: pathname, query: search };
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function sendError(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

/** Hop-by-hop headers. */
const hopHeaders: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'host', 'content-length', 'expect'],
]);

async function forward(
  client: HttpClient,
  { request, response, path }: { request: IncomingMessage; response: ServerResponse; path: string },
): Promise<void> {
  const body = await readBody(request);
  if (body === 'too large') return sendError(response, 413, 'Request Entity Too Large');
  const disconnect = new AbortController();
  response.on('close', () => disconnect.abort());
  const upstream = await client.stream({
    method: request.method ?? 'GET',
    path,
    headers: endToEndHeaders(request.headers),
    body,
    signal: disconnect.signal,
  });
  response.writeHead(upstream.status, {
    ...endToEndHeaders(upstream.headers),
    ...contentLength(upstream.headers),
  } as OutgoingHttpHeaders);
  response.flushHeaders();
  // The end of either side closes the other. Nobody is left to report an error to.
  pipeline(upstream.body, response, () => {});
}

function endToEndHeaders(
  headers: http.IncomingHttpHeaders,
): Record<string, string | readonly string[]> {
  const connectionHeaders = String(headers.connection ?? '')
    .split(',')
    .map((item) => item.trim().toLowerCase());
  const forwarded: [string, string | readonly string[]][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || hopHeaders.has(name) || connectionHeaders.includes(name)) continue;
    forwarded.push([name, value]);
  }
  return Object.fromEntries(forwarded);
}

/** The server's Content-Length, which clients also expect in a response to HEAD. */
function contentLength(headers: http.IncomingHttpHeaders): OutgoingHttpHeaders {
  const length = headers['content-length'];
  return length === undefined ? {} : { 'content-length': length };
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined | 'too large'> {
  const pieces = await piecesWithin(request as AsyncIterable<Buffer>, bodyBytesMax);
  if (pieces === undefined) return 'too large';
  const body = Buffer.concat(pieces);
  return body.length === 0 ? undefined : body;
}
