import { posix } from 'node:path';
import { showValue } from './field-error.ts';

/** A URL as parsed by Go's `url.Parse`; absent parts are empty. */
export interface GoUrl {
  readonly scheme: string;
  /** User and password as written; undefined without an `@`. */
  readonly user: string | undefined;
  readonly host: string;
  readonly path: string;
  readonly query: string;
  readonly fragment: string;
}

/**
 * Parses a URL. Returns Go's error text (`parse ":": missing protocol scheme`) if it is malformed.
 */
export function parseGoUrl(text: string): GoUrl | string {
  const hash = text.indexOf('#');
  const [location, fragment] = hash < 0 ? [text, ''] : [text.slice(0, hash), text.slice(hash + 1)];
  const wrong = (why: string) => `parse ${showValue(location)}: ${why}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go rejects them
  if (/[\u0000-\u001f\u007f]/.test(location)) {
    return wrong('net/url: invalid control character in URL');
  }
  if (location.startsWith(':')) return wrong('missing protocol scheme');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(location)?.[1] ?? '';
  const rest = scheme === '' ? location : location.slice(scheme.length + 1);
  const mark = rest.indexOf('?');
  const [before, query] = mark < 0 ? [rest, ''] : [rest.slice(0, mark), rest.slice(mark + 1)];
  const bare = {
    scheme: scheme.toLowerCase(),
    user: undefined,
    host: '',
    path: '',
    query,
    fragment,
  };
  if (!before.startsWith('/')) {
    if (scheme !== '') return bare;
    const [segment = ''] = before.split('/', 1);
    if (segment.includes(':')) return wrong('first path segment in URL cannot contain colon');
    const why = escapeProblem(before);
    return why === undefined ? { ...bare, path: before } : wrong(why);
  }
  const hasAuthority = before.startsWith('//') && (scheme !== '' || !before.startsWith('///'));
  const slash = before.indexOf('/', 2);
  const authority = !hasAuthority ? '' : slash < 0 ? before.slice(2) : before.slice(2, slash);
  const path = !hasAuthority ? before : slash < 0 ? '' : before.slice(slash);
  const at = authority.lastIndexOf('@');
  const host = authority.slice(at + 1);
  const why =
    hostProblem(host) ?? userProblem(authority.slice(0, Math.max(at, 0))) ?? escapeProblem(path);
  if (why !== undefined) return wrong(why);
  return { ...bare, user: at < 0 ? undefined : authority.slice(0, at), host, path };
}

/**
 * Normalizes a path as client-go does: removes empty and dot segments and a trailing slash, then
 * escapes it. A strict server redirects clients that send other paths.
 * @param path without escapes: a percent sign is literal
 */
export function normalizePath(path: string): string {
  const bytes = Buffer.from(path, 'utf8').toString('latin1');
  return escapeBytes(cleanPath(bytes));
}

/**
 * Like `normalizePath`, for the path of a URL, whose escapes are decoded first: `/%2F/d` is `/d`.
 */
export function normalizeUrlPath(path: string): string {
  const bytes = Buffer.from(path, 'utf8').toString('latin1');
  const plain = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return escapeBytes(cleanPath(plain));
}

function cleanPath(path: string): string {
  const clean = posix.normalize(`/${path}`);
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean;
}

function escapeBytes(bytes: string): string {
  return bytes.replace(/[^A-Za-z0-9\-_.~$&+,/:;=@]/g, (byte) => {
    const hex = byte.charCodeAt(0).toString(16).toUpperCase();
    return `%${hex.padStart(2, '0')}`;
  });
}

function hostProblem(host: string): string | undefined {
  const closing = host.lastIndexOf(']');
  if (host.startsWith('[') && closing < 0) return "missing ']' in host";
  const colon = host.startsWith('[') ? closing + 1 : host.lastIndexOf(':');
  const port = colon < 0 ? '' : host.slice(colon);
  if (!/^(:\d*)?$/.test(port)) return `invalid port ${showValue(port)} after host`;
  const odd = /[\s\\^`{|}]/.exec(host)?.[0];
  if (odd !== undefined) return `invalid character ${showValue(odd)} in host name`;
  return escapeProblem(host);
}

/** Go's message for invalid user info has no details. */
function userProblem(user: string): string | undefined {
  return /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)
    ? escapeProblem(user)
    : 'net/url: invalid userinfo';
}

function escapeProblem(text: string): string | undefined {
  const wrong = /%(?![0-9A-Fa-f]{2}).{0,2}/su.exec(text)?.[0];
  return wrong === undefined ? undefined : `invalid URL escape ${showValue(wrong)}`;
}
