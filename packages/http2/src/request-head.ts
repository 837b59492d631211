import { entryOverheadBytes, type FieldSink } from './hpack-decoder.ts';

const colon = 0x3a;

/** Headers of which only the first value is used, because several cannot be joined. */
const singletons = new Set([
  'authorization',
  'content-length',
  'content-type',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'user-agent',
]);

/**
 * The decoded header block of a request or of trailers. It records the first violation of RFC 9113,
 * 8.1 to 8.3, and continues, because the decoder must read the whole block. Above `bytesMax` it
 * drops further fields and sets `tooLarge`.
 */
export class RequestHead implements FieldSink {
  method: string | undefined;
  path: string | undefined;
  scheme: string | undefined;
  authority: string | undefined;
  /** Alternating names and values without pseudo-headers. */
  readonly lines: string[] = [];
  /** The value of `content-length`; undefined if absent. */
  contentLength: number | undefined;
  waitsForContinue = false;
  tooLarge = false;
  malformed: string | undefined;
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds a decoded field. */
  field(name: string, value: string, faults: number): void {
    this.#bytes += name.length + value.length + entryOverheadBytes;
    if (this.#bytes > this.#bytesMax) {
      this.tooLarge = true;
      return;
    }
    if (faults !== 0) this.malformed ??= 'field with forbidden characters';
    else if (name.charCodeAt(0) === colon) this.#pseudo(name, value);
    else this.#regular(name, value);
  }

  /** The joined values of a header by lower-case name. */
  header(name: string): string | undefined {
    const { lines } = this;
    let joined: string | undefined;
    for (let index = 0; index < lines.length; index += 2) {
      if (lines[index] !== name) continue;
      const value = lines[index + 1] ?? '';
      if (joined === undefined) {
        joined = value;
        if (singletons.has(name)) break;
      } else joined = `${joined}${name === 'cookie' ? '; ' : ', '}${value}`;
    }
    return name === 'host' ? (this.authority ?? joined) : joined;
  }

  /** Must be called after the last field of a request. */
  check({ hasBody }: { hasBody: boolean }): void {
    if (this.tooLarge || this.malformed !== undefined) return;
    const { method, path, scheme } = this;
    if (!hasBody && (this.contentLength ?? 0) > 0) this.malformed = 'missing body';
    else if (method === undefined) this.malformed = 'no :method';
    else if (method === 'CONNECT') {
      const isPlain = scheme === undefined && path === undefined && this.authority !== undefined;
      if (!isPlain) this.malformed = 'CONNECT with :scheme or :path, or without :authority';
    } else if (scheme === undefined) this.malformed = 'no :scheme';
    else if (path === undefined || !isPath(path, method)) this.malformed = 'invalid :path';
  }

  /** Must be called after the last field of trailers, which have no pseudo-headers. */
  checkTrailers(): void {
    const { method, path, scheme, authority } = this;
    if ((method ?? path ?? scheme ?? authority) !== undefined) {
      this.malformed ??= 'pseudo-header in trailers';
    }
  }

  #pseudo(name: string, value: string): void {
    if (this.lines.length > 0) this.malformed ??= 'pseudo-header after a regular one';
    else if (name === ':path') this.path = this.#once(this.path, value);
    else if (name === ':method') {
      this.method = this.#once(this.method, value);
      if (!isToken(value)) this.malformed ??= 'invalid :method';
    } else if (name === ':scheme') this.scheme = this.#once(this.scheme, value);
    else if (name === ':authority') this.authority = this.#once(this.authority, value);
    else this.malformed ??= 'unknown pseudo-header';
  }

  #once(before: string | undefined, value: string): string {
    if (before !== undefined) this.malformed ??= 'duplicate pseudo-header';
    return value;
  }

  #regular(name: string, value: string): void {
    this.lines.push(name, value);
    switch (name) {
      case 'content-length':
        this.#setContentLength(value);
        break;
      case 'expect':
        this.waitsForContinue = value.toLowerCase() === '100-continue';
        break;
      case 'te':
        if (value.toLowerCase() !== 'trailers') this.malformed ??= 'te other than trailers';
        break;
      case 'connection':
      case 'keep-alive':
      case 'proxy-connection':
      case 'transfer-encoding':
      case 'upgrade':
        this.malformed ??= 'connection-specific header';
        break;
    }
  }

  #setContentLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : undefined;
    if (length === undefined || (this.contentLength ?? length) !== length) {
      this.malformed ??= 'invalid content-length';
    }
    this.contentLength = length;
  }
}

function isToken(text: string): boolean {
  return text === 'GET' || /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}

const slash = 0x2f;

/** Whether a path is `/…` without spaces and control characters, or the asterisk of OPTIONS. */
function isPath(path: string, method: string): boolean {
  if (path === '*') return method === 'OPTIONS';
  if (path.charCodeAt(0) !== slash) return false;
  for (let at = 1; at < path.length; at += 1) {
    const unit = path.charCodeAt(at);
    if (unit <= 0x20 || unit === 0x7f) return false;
  }
  return true;
}
