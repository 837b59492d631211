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

  /** Copies the text between rewritten tags at once, since most tags contain no link. */
  #rewrite(text: string): string {
    const parts: string[] = [];
    let copied = 0;
    let from = 0;
    this.#rest = '';
    while (from < text.length && this.#rest === '') {
      if (this.#endMarker !== undefined) {
        from = this.#skip(text, from, this.#endMarker);
        continue;
      }
      const start = text.indexOf('<', from);
      if (start < 0) break;
      if (!isLetter(text.charCodeAt(start + 1))) {
        from = this.#passOther(text, start);
        continue;
      }
      const end = this.#tagEnd(text, start);
      // Continuing after the first character would read the rest again for each `<` in it.
      from = end ?? start + tagLengthMax;
      if (end === undefined) continue;
      const tag = text.slice(start, end);
      const rewritten = this.#rewriteTag(tag);
      if (rewritten === tag) continue;
      parts.push(text.slice(copied, start), rewritten);
      copied = end;
    }
    parts.push(text.slice(copied, text.length - this.#rest.length));
    return parts.join('');
  }

  /** Passes text up to the end marker, which is matched case-insensitively; returns its index. */
  #skip(text: string, from: number, until: string): number {
    const pattern = new RegExp(until, 'gi');
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    if (match !== null) {
      this.#endMarker = undefined;
      return match.index;
    }
    const certain = Math.max(from, text.length - until.length);
    this.#rest = text.slice(certain);
    return text.length;
  }

  /** Passes a `<` that begins no tag, or the start of a comment; returns the index after it. */
  #passOther(text: string, start: number): number {
    const begin = text.slice(start, start + 4);
    if (begin === '<!--') {
      this.#endMarker = '-->';
      return start + 4;
    }
    if (!'<!--'.startsWith(begin)) return start + 1;
    this.#rest = text.slice(start);
    return text.length;
  }

  /** Returns the end of a tag; undefined if the tag is too long or the text must wait for it. */
  #tagEnd(text: string, start: number): number | undefined {
    const reading = tagEnd(text, start, start === 0 ? this.#reading : fromStart);
    this.#reading = fromStart;
    if (reading.end === undefined && text.length < start + tagLengthMax) {
      this.#reading = reading;
      this.#rest = text.slice(start);
    }
    return reading.end;
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
    const code = text.charCodeAt(index);
    if (state === '"' || state === "'") {
      if (code === state.charCodeAt(0)) state = 'names';
    } else if (code === greaterThan) return { length: index - start, state, end: index + 1 };
    else if (code === equalsSign && state === 'names') state = 'before';
    else if (isSpace(code)) state = state === 'value' ? 'names' : state;
    else if (state === 'before') state = quoteOf.get(code) ?? 'value';
  }
  return { length: limit - start, state, end: undefined };
}

const greaterThan = 0x3e;
const equalsSign = 0x3d;
const quoteOf: ReadonlyMap<number, TagState> = new Map([
  [0x22, '"'],
  [0x27, "'"],
]);

/** Whether a character code is that of an ASCII letter; that of a missing one, NaN, is not. */
function isLetter(code: number): boolean {
  const lowercase = code | 0x20;
  return lowercase >= 0x61 && lowercase <= 0x7a;
}

/** Whether a Latin-1 character is white space to regular expressions. */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0;
}
