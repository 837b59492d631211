import { createReadStream, realpathSync, statSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import http from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream';
import type { HttpClient } from '@wheelhouse/client';
import { errorText } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';
import { describeError } from '../errors.ts';
import { CliError } from '../io.ts';

/** Answers with a file of a folder; `name` is relative and decoded. */
export type StaticFiles = (name: string, response: ServerResponse) => void;

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** Serves a folder's files, its `index.html` for a folder, and nothing outside of it. */
export function createStaticFiles(folder: string): StaticFiles {
  return (name, response) => {
    const file = find(folder, name);
    if (file === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' });
      response.end('404 page not found\n');
      return;
    }
    const type = types[path.extname(file).toLowerCase()] ?? 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'x-content-type-options': 'nosniff' });
    pipeline(createReadStream(file), response, () => {});
  };
}

function find(folder: string, name: string): string | undefined {
  try {
    const root = realpathSync(folder);
    let file = realpathSync(path.join(root, name));
    if (statSync(file).isDirectory()) file = realpathSync(path.join(file, 'index.html'));
    // After links and dots are followed: a link must not lead out either.
    return file.startsWith(root + path.sep) && statSync(file).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}

/** Which requests a proxy passes on; each text is a list of expressions joined with commas. */
export interface ProxyFilterFlags {
  readonly acceptHosts: string;
  readonly acceptPaths: string;
  readonly rejectPaths: string;
  readonly rejectMethods: string;
}

export type ProxyFilter = (request: { method: string; path: string; host: string }) => boolean;

/**
 * Makes the filter: paths and hosts must match an accepting expression and nothing may match a
 * rejecting one. A host counts without its port. Throws CliError for a malformed expression.
 */
export function createProxyFilter(flags: ProxyFilterFlags): ProxyFilter {
  const acceptHosts = expressions(flags.acceptHosts);
  const acceptPaths = expressions(flags.acceptPaths);
  const rejectPaths = expressions(flags.rejectPaths);
  const rejectMethods = expressions(flags.rejectMethods);
  return ({ method, path, host }) =>
    !matches(rejectPaths, path) &&
    !matches(rejectMethods, method) &&
    matches(acceptPaths, path) &&
    matches(acceptHosts, host.replace(/:\d*$/, ''));
}

function expressions(list: string): readonly RE2JS[] {
  return list.split(',').map((text) => {
    try {
      return RE2JS.compile(text);
    } catch (error) {
      throw new CliError(`Error compiling re: ${errorText(error)}`);
    }
  });
}

const matches = (list: readonly RE2JS[], text: string): boolean =>
  list.some((one) => one.matcher(text).find());

/** A proxy's parts; prefixes begin and end with a slash. */
export interface ProxyOptions {
  readonly client: HttpClient;
  readonly filter: ProxyFilter | undefined;
  readonly apiPrefix: string;
  readonly staticPrefix: string;
  readonly files: StaticFiles | undefined;
  /** How often idle connections are probed; 0: the system's way. */
  readonly keepAliveMs: number;
}

/** Most of a request's body that is passed on; a server takes less. */
const bodyBytesMax = 32 * 1024 * 1024;

/**
 * Makes a server that passes requests on to the API with the client's credentials; not listening
 * yet. Answers stream through, so that watches do. Connections are not upgraded.
 */
export function createProxyServer(options: ProxyOptions): http.Server {
  const server = http.createServer((request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, describeError(error).text.trim());
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
  const target = targetOf(request);
  if (target === undefined) return refuse(response, 400, 'Bad Request');
  const { path, query } = target;
  if (options.files !== undefined && path.startsWith(options.staticPrefix)) {
    const file = decoded(path.slice(options.staticPrefix.length));
    return options.files(file ?? '', response);
  }
  if (!path.startsWith(options.apiPrefix)) return refuse(response, 404, 'Not Found');
  // A prefix that begins as the API's own paths do is part of these.
  const kept = options.apiPrefix.startsWith('/api');
  const apiPath = kept ? path : `/${path.slice(options.apiPrefix.length)}`;
  const shown = decoded(apiPath);
  if (shown === undefined) return refuse(response, 400, 'Bad Request');
  const requestInfo = {
    method: request.method ?? 'GET',
    path: shown,
    host: request.headers.host ?? '',
  };
  if (options.filter?.(requestInfo) === false) return refuse(response, 403, 'Forbidden');
  await passOn(options.client, { request, response, path: apiPath + query });
}

/** The path with its `..` resolved, and the query with its question mark. */
function targetOf(request: IncomingMessage): { path: string; query: string } | undefined {
  const text = request.url ?? '/';
  if (!text.startsWith('/') || !URL.canParse(`http://proxy${text}`)) return undefined;
  const { pathname, search } = new URL(`http://proxy${text}`);
  return { path: pathname, query: search };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

/** Headers about one connection, which mean nothing on the next. */
const hopHeaders: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'host', 'content-length', 'expect'],
]);

async function passOn(
  client: HttpClient,
  { request, response, path }: { request: IncomingMessage; response: ServerResponse; path: string },
): Promise<void> {
  const body = await bodyOf(request);
  if (body === 'too large') return refuse(response, 413, 'Request Entity Too Large');
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const answer = await client.stream({
    method: request.method ?? 'GET',
    path,
    headers: endToEnd(request.headers),
    body,
    signal: gone.signal,
  });
  response.writeHead(answer.status, {
    ...endToEnd(answer.headers),
    ...lengthOf(answer.headers),
  } as OutgoingHttpHeaders);
  response.flushHeaders();
  // An end on either side ends the other; there is nobody left to tell.
  pipeline(answer.body, response, () => {});
}

function endToEnd(headers: http.IncomingHttpHeaders): Record<string, string | readonly string[]> {
  const named = String(headers.connection ?? '')
    .split(',')
    .map((one) => one.trim().toLowerCase());
  const kept: [string, string | readonly string[]][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || hopHeaders.has(name) || named.includes(name)) continue;
    kept.push([name, value]);
  }
  return Object.fromEntries(kept);
}

/** The answer's length as the server told it, which also tells the end of an answer to HEAD. */
function lengthOf(headers: http.IncomingHttpHeaders): OutgoingHttpHeaders {
  const length = headers['content-length'];
  return length === undefined ? {} : { 'content-length': length };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined | 'too large'> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return 'too large';
    chunks.push(chunk);
  }
  return bytes === 0 ? undefined : Buffer.concat(chunks);
}
