import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { Transform, type TransformCallback } from 'node:stream';
import {
  createDeflateRaw,
  createGunzip,
  createGzip,
  createInflateRaw,
  constants as zlib,
} from 'node:zlib';
import { defer } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { responseHeaders } from './proxy-headers.ts';
import type { RelayPlan } from './relay.ts';

/** The addresses that determine how links are rewritten. */
interface LinkPlaces {
  /** The path to prepend to links; escaped, without a trailing slash. */
  readonly prefix: string;
  /** `host:port` of the proxied server. */
  readonly host: string;
  /** `host:port` by which the client addresses this server. */
  readonly clientHost: string;
}

/** Attributes that contain a URL, by element. */
const urlAttributes: Readonly<Record<string, readonly string[]>> = {
  a: ['href'],
  applet: ['codebase'],
  area: ['href'],
  audio: ['src'],
  base: ['href'],
  blockquote: ['cite'],
  body: ['background'],
  button: ['formaction'],
  command: ['icon'],
  del: ['cite'],
  embed: ['src'],
  form: ['action'],
  frame: ['longdesc', 'src'],
  head: ['profile'],
  html: ['manifest'],
  iframe: ['longdesc', 'src'],
  img: ['longdesc', 'src', 'usemap'],
  input: ['src', 'usemap', 'formaction'],
  ins: ['cite'],
  link: ['href'],
  object: ['classid', 'codebase', 'data', 'usemap'],
  q: ['cite'],
  script: ['src'],
  source: ['src'],
  video: ['poster', 'src'],
};

/** Elements whose text contains no tags. */
const rawTextElements = new Set([
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
  'iframe',
  'noembed',
  'noframes',
]);

/** Maximum length of a tag, characters; the excess of a longer one is read as text. */
const tagLengthMax = 16 * 1024;

/**
 * Rewrites a URL that points to the proxied server by an absolute path, so that it leads through
 * the proxy. Returns other URLs unchanged.
 */
export function proxiedUrl(url: string, { prefix, host: ownHost, clientHost }: LinkPlaces): string {
  const [, scheme = '', authority, path = '', rest = ''] =
    /^([A-Za-z][A-Za-z0-9+.-]*:)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/s.exec(url) ?? [];
  const host = authority?.replace(/^.*@/s, '') ?? '';
  const isOwn = host === '' || host === ownHost || host === clientHost;
  const isWeb = scheme === '' || /^https?:$/i.test(scheme);
  if (!isOwn || !isWeb || !path.startsWith('/')) return url;
  const origin = host !== '' && host === clientHost ? `${scheme}//${authority ?? ''}` : '';
  const isProxied = path === prefix || path.startsWith(`${prefix}/`);
  return origin + (isProxied ? path : prefix + posix.normalize(path)) + rest;
}

type AnswerOfPlan = Required<Pick<RelayPlan, 'responseHeaders' | 'transforms'>>;

/**
 * Rewrites redirects and links in pages of a proxied server so that they lead through the proxy.
 */
export function proxiedAnswer(call: ApiCall, places: LinkPlaces): AnswerOfPlan {
  return {
    responseHeaders(lines) {
      const headers = { ...responseHeaders(lines, call.baseHeaders) };
      const { location } = headers;
      if (typeof location === 'string') headers['location'] = proxiedUrl(location, places);
      if (isRewritten(headers)) delete headers['content-length'];
      if (isBrowserWithCertificate(call.exchange)) sandboxPage(headers);
      return headers;
    },
    transforms({ headers, statusCode }: IncomingMessage) {
      const hasBody = call.exchange.method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
      if (!hasBody || !isRewritten(headers)) return [];
      const rewriter = new LinkRewriter(places);
      const flush = zlib.Z_SYNC_FLUSH;
      switch (headers['content-encoding'] ?? '') {
        case 'gzip': {
          const inflate = createGunzip();
          return [inflate, new InflationLimit(inflate), rewriter, createGzip({ flush })];
        }
        case 'deflate': {
          const inflate = createInflateRaw();
          const deflate = createDeflateRaw({ flush });
          return [new ZlibHeaderRemoval(), inflate, new InflationLimit(inflate), rewriter, deflate];
        }
        default:
          return [rewriter];
      }
    },
  };
}

/**
 * Whether the request comes from a browser with a client certificate, which it presents with all
 * requests. A proxy such as kubectl's sends `X-Forwarded-For`; its pages have no certificate.
 */
function isBrowserWithCertificate(exchange: ApiCall['exchange']): boolean {
  const isOfBrowser = exchange.header('sec-fetch-site') !== undefined;
  if (!isOfBrowser || exchange.header('x-forwarded-for') !== undefined) return false;
  return exchange.connection.peerCertificates().length > 0;
}

/**
 * Gives a page an opaque origin (TRUST-6). Otherwise the page, which comes from a Pod, could send
 * requests as the user who views it.
 */
function sandboxPage(headers: Record<string, string | readonly string[]>): void {
  const policies = [headers['content-security-policy'] ?? []].flat();
  headers['content-security-policy'] = [...policies, sandbox];
}

const sandbox =
  'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts ' +
  'allow-top-navigation-by-user-activation';

/** Removes the zlib header from deflated data, which may have one or not. */
class ZlibHeaderRemoval extends Transform {
  #head: Buffer | undefined = Buffer.alloc(0);

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    if (this.#head === undefined) {
      done(null, chunk);
      return;
    }
    const head = Buffer.concat([this.#head, chunk]);
    if (head.length < 2) {
      this.#head = head;
      done();
      return;
    }
    this.#head = undefined;
    const isZlib = (head.readUInt8(0) & 0x0f) === 8 && head.readUInt16BE(0) % 31 === 0;
    done(null, isZlib ? head.subarray(2) : head);
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#head);
  }
}

/** Size to which every page may inflate, bytes, and the maximum ratio beyond. */
const inflatedBytesMin = 16 * 1024 * 1024;
const inflatedPerByteMax = 100;

/** Passes inflated data through, and fails if it is too large for its compressed size. */
class InflationLimit extends Transform {
  readonly #source: { readonly bytesWritten: number };
  #bytes = 0;

  constructor(source: { readonly bytesWritten: number }) {
    super();
    this.#source = source;
  }

  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#bytes += piece.length;
    const bytesMax = inflatedBytesMin + inflatedPerByteMax * this.#source.bytesWritten;
    if (this.#bytes > bytesMax) done(new Error('the page exceeds the maximum compression ratio'));
    else done(null, piece);
  }
}

/** Whether the body is rewritten: a page in a supported encoding that is not a redirect. */
function isRewritten(headers: Readonly<Record<string, unknown>>): boolean {
  const type = String(headers['content-type'] ?? '');
  const encoding = headers['content-encoding'] ?? '';
  const isRedirect = (headers['location'] ?? '') !== '';
  const isPage = (type.split(';', 1)[0] ?? '').trim() === 'text/html';
  return isPage && !isRedirect && ['', 'gzip', 'deflate'].includes(String(encoding));
}

/** The position in a tag: among names, before a value, in a value, or in a quoted value. */
type TagState = 'names' | 'before' | 'value' | '"' | "'";

/** Bytes rewritten per turn; a slice that consists of links takes a few milliseconds. */
const sliceBytes = 8 * 1024;

/** Rewrites the URLs in the tags of a page. All other bytes pass unchanged. */
export class LinkRewriter extends Transform {
  readonly #places: LinkPlaces;
  /** Unprocessed text: the start of a tag, comment, or end marker that is not complete. */
  #rest = '';
  /** The progress of scanning the tag at the start of `#rest`. */
  #reading: TagReading = fromStart;
  /** The marker that ends text without tags; undefined outside of such text. */
  #endMarker: string | undefined;

  constructor(places: LinkPlaces) {
    super();
    this.#places = places;
  }

  // Decoding as Latin-1 preserves all bytes, and what is searched for is ASCII.
  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#rewriteSlices(piece, done);
  }

  /** Rewrites a piece in slices, and yields to other work after each (TRUST-2). */
  #rewriteSlices(piece: Buffer, done: TransformCallback): void {
    if (this.destroyed) return;
    const text = this.#rest + piece.toString('latin1', 0, sliceBytes);
    this.push(Buffer.from(this.#rewrite(text), 'latin1'));
    if (piece.length <= sliceBytes) {
      done();
      return;
    }
    const end = () => this.destroy(new Error('cannot rewrite the page'));
    defer({ where: 'aggregation', end }, () =>
      this.#rewriteSlices(piece.subarray(sliceBytes), done),
    );
  }

  override _flush(done: TransformCallback): void {
    done(null, Buffer.from(this.#rest, 'latin1'));
  }

  #rewrite(text: string): string {
    const parts: string[] = [];
    let from = 0;
    this.#rest = '';
    while (from < text.length) {
      const next = this.#endMarker === undefined ? this.#tag(text, from) : this.#skip(text, from);
      parts.push(next.text);
      from = next.end;
      if (this.#rest !== '') break;
    }
    return parts.join('');
  }

  /** Reads text up to the end marker, which is matched case-insensitively. */
  #skip(text: string, from: number): { text: string; end: number } {
    const until = this.#endMarker ?? '';
    const pattern = new RegExp(until, 'gi');
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    if (match !== null) {
      this.#endMarker = undefined;
      return { text: text.slice(from, match.index), end: match.index };
    }
    const certain = Math.max(from, text.length - until.length);
    this.#rest = text.slice(certain);
    return { text: text.slice(from, certain), end: text.length };
  }

  /** Reads text up to and including the next tag or start of a comment. */
  #tag(text: string, from: number): { text: string; end: number } {
    const start = text.indexOf('<', from);
    if (start < 0) return { text: text.slice(from), end: text.length };
    const wait = () => {
      this.#rest = text.slice(start);
      return { text: text.slice(from, start), end: text.length };
    };
    const begin = text.slice(start, start + 4);
    if (begin === '<!--') {
      this.#endMarker = '-->';
      return { text: text.slice(from, start + 4), end: start + 4 };
    }
    if ('<!--'.startsWith(begin)) return wait();
    if (!/^<[A-Za-z]/.test(begin)) {
      return { text: text.slice(from, start + 1), end: start + 1 };
    }
    const reading = tagEnd(text, start, start === 0 ? this.#reading : fromStart);
    this.#reading = fromStart;
    const { end } = reading;
    if (end === undefined) {
      const longest = start + tagLengthMax;
      if (text.length < longest) {
        this.#reading = reading;
        return wait();
      }
      // Continuing after the first character would read the rest again for each `<` in it.
      return { text: text.slice(from, longest), end: longest };
    }
    return { text: text.slice(from, start) + this.#rewriteTag(text.slice(start, end)), end };
  }

  #rewriteTag(tag: string): string {
    const name = (/^<([^\s/>]+)/.exec(tag)?.[1] ?? '').toLowerCase();
    if (rawTextElements.has(name) && !tag.endsWith('/>')) this.#endMarker = `</${name}`;
    if (!Object.hasOwn(urlAttributes, name)) return tag;
    const urlNames = urlAttributes[name] ?? [];
    const head = tag.slice(0, name.length + 1);
    const attributes = /(?<=[\s/"'])([^\s/>="']+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s>"'][^\s>]*)/g;
    const rewritten = tag
      .slice(head.length)
      .replace(attributes, (all, attribute: string, equals: string, value: string) => {
        if (!urlNames.includes(attribute.toLowerCase())) return all;
        const url = /^["']/.test(value) ? value.slice(1, -1) : value;
        const proxied = proxiedUrl(decodeSlashes(url.trim()), this.#places);
        if (proxied === decodeSlashes(url.trim())) return all;
        return `${attribute}${equals}"${proxied.replaceAll('"', '&#34;')}"`;
      });
    return head + rewritten;
  }
}

/** Decodes the character references of slashes and colons, which some templates emit. */
function decodeSlashes(url: string): string {
  return url.replaceAll(/&#x2f;|&#47;/gi, '/').replaceAll(/&#x3a;|&#58;/gi, ':');
}

/** The progress of scanning a tag. */
interface TagReading {
  /** Number of characters scanned. */
  readonly length: number;
  readonly state: TagState;
  /** The index after the tag's `>`; undefined if none was found. */
  readonly end: number | undefined;
}

const fromStart: TagReading = { length: 1, state: 'names', end: undefined };

/** Finds the `>` that ends a tag; values may contain the character too. */
function tagEnd(text: string, start: number, before: TagReading): TagReading {
  let { state } = before;
  const limit = Math.min(text.length, start + tagLengthMax);
  for (let index = start + before.length; index < limit; index += 1) {
    const character = text[index] ?? '';
    if (state === '"' || state === "'") {
      if (character === state) state = 'names';
    } else if (character === '>') return { length: index - start, state, end: index + 1 };
    else if (character === '=' && state === 'names') state = 'before';
    else if (/\s/.test(character)) state = state === 'value' ? 'names' : state;
    else if (state === 'before') {
      state = character === '"' || character === "'" ? character : 'value';
    }
  }
  return { length: limit - start, state, end: undefined };
}
