import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import { acceptsCoding, type Exchange, type ResponseHeaders } from '@wheelhouse/machinery';

/** The path of the console; it ends in a slash. */
export const consolePath = '/console/';

/**
 * The page may load its own files and call its own server only: no inline scripts or styles, no
 * framing, no form submission. Trusted Types make the browser reject text used as markup or script.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const securityHeaders: ResponseHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const types: ReadonlyMap<string, string> = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.txt', 'text/plain; charset=utf-8'],
]);

/** Content encodings in order of preference. */
const codings = ['br', 'gzip'] as const;

/**
 * Suffix of the files, which the build compresses with Brotli. Other encodings are made on demand,
 * since few clients need them and the package stays small.
 */
const brotliSuffix = '.br';
const compress = promisify(gzip);
const decompress = promisify(brotliDecompress);

/** One file in one encoding. */
interface Form {
  readonly body: Buffer;
  /** Entity tag of the encoded bytes, which differs between encodings. */
  readonly etag: string;
}

interface StaticFile {
  readonly type: string;
  /** `immutable` if the name contains a hash, so that the contents never change. */
  readonly caching: 'immutable' | 'revalidated';
  readonly plain: Form;
  readonly encoded: ReadonlyMap<string, Form>;
}

/** The files of the console, cached in memory after their first request. */
export interface StaticFiles {
  /** Handles a request for `consolePath` or below with any method. Never rejects. */
  answer(exchange: Exchange): Promise<void>;
}

/** A source of the console's compressed files. */
export interface FileSource {
  /** Lists the names of all files, such as `index.html.br`. Rejects if they cannot be read. */
  names(): Promise<readonly string[]>;
  /** Reads a file. */
  read(name: string): Promise<Buffer>;
}

/** Returns a source that reads the files of a directory. */
export function folderSource(directory: string): FileSource {
  return {
    names: () => readdir(directory),
    read: (name) => readFile(join(directory, name)),
  };
}

/**
 * Serves the built files (CLIENT-4). They contain no data and need no credential. Reads names on
 * the first request and each file when it is requested; only listed names are served, so no path
 * leaves the folder. Reports read errors to `onFault`, and to the client as 404; the next request
 * retries.
 */
export function createStaticFiles(options: {
  readonly source: FileSource;
  readonly onFault: (error: unknown) => void;
}): StaticFiles {
  const { source, onFault } = options;
  let names: Promise<ReadonlySet<string>> | undefined;
  const files = new Map<string, Promise<StaticFile | undefined>>();
  const fileOf = async (name: string): Promise<StaticFile | undefined> => {
    names ??= source.names().then((list) => new Set(list));
    const present = await names;
    if (!present.has(name + brotliSuffix)) return undefined;
    const file = files.get(name) ?? load(source, name);
    files.set(name, file);
    return file;
  };
  return {
    async answer(exchange) {
      const path = exchange.url.split('?', 1)[0] ?? '';
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
        return sendText(exchange, { status: 405, text: 'Method Not Allowed', allow: 'GET, HEAD' });
      }
      // Relative, since a proxy may have added a prefix.
      if (`${path}/` === consolePath) return sendRedirect(exchange, 'console/');
      try {
        const file = await fileOf(path.slice(consolePath.length) || 'index.html');
        if (file === undefined) sendText(exchange, { status: 404, text: 'Not Found' });
        else sendFile(exchange, file);
      } catch (error) {
        names = undefined;
        files.clear();
        onFault(error);
        sendText(exchange, { status: 404, text: 'The console has not been built' });
      }
    },
  };
}

/** Undefined if the path is not a file of the console. */
async function load(source: FileSource, name: string): Promise<StaticFile | undefined> {
  const type = types.get(extname(name));
  if (type === undefined) return undefined;
  const compressed = await source.read(name + brotliSuffix);
  const plain = await decompress(compressed);
  const encoded = new Map([
    ['br', formOf(compressed)],
    ['gzip', formOf(await compress(plain))],
  ]);
  const caching = /-[A-Z0-9]{8}\.\w+$/.test(name) ? 'immutable' : 'revalidated';
  return { type, caching, plain: formOf(plain), encoded };
}

function formOf(body: Buffer): Form {
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
}

function sendFile(exchange: Exchange, file: StaticFile): void {
  const accepted = exchange.header('accept-encoding') ?? '';
  const coding = codings.find(
    (candidate) => file.encoded.has(candidate) && acceptsCoding(accepted, candidate),
  );
  const form = (coding && file.encoded.get(coding)) ?? file.plain;
  const headers = {
    ...securityHeaders,
    'content-type': file.type,
    'cache-control':
      file.caching === 'immutable' ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'Accept-Encoding',
    etag: form.etag,
    ...(coding === undefined ? {} : { 'content-encoding': coding }),
  };
  const isCached = matchesEtag(exchange.header('if-none-match'), form.etag);
  const status = isCached ? 304 : 200;
  exchange.send({ status, headers, body: isCached ? Buffer.alloc(0) : form.body });
}

/** Whether an `If-None-Match` header matches a tag; weak tags match, too. */
function matchesEtag(condition: string | undefined, etag: string): boolean {
  if (condition === undefined) return false;
  const tags = condition.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

function sendRedirect(exchange: Exchange, location: string): void {
  exchange.send({
    status: 308,
    headers: { ...securityHeaders, location, 'cache-control': 'no-cache' },
    body: Buffer.alloc(0),
  });
}

function sendText(
  exchange: Exchange,
  answer: { readonly status: number; readonly text: string; readonly allow?: string },
): void {
  const { status, text, allow } = answer;
  exchange.send({
    status,
    headers: {
      ...securityHeaders,
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      ...(allow === undefined ? {} : { allow }),
    },
    body: Buffer.from(`${text}\n`),
  });
}
