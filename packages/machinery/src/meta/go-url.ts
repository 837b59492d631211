import { posix } from 'node:path';
import { cut } from '../base/texts.ts';
import { showValue } from './field-error.ts';

/** A URL as parsed by Go's `url.Parse`; absent parts are empty. */
interface GoUrl {
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
  const [location, fragment] = cut(text, '#');
  const url = parseLocation(location, 'reference');
  if (typeof url === 'string' || fragment === undefined) return url;
  const why = escapeProblem(fragment);
  return why === undefined ? { ...url, fragment } : `parse ${showValue(text)}: ${why}`;
}

/**
 * Parses an absolute URL or an absolute path as a request line contains it, which has no fragment:
 * a `#` is part of the URL. Returns Go's error text if it is malformed.
 */
export function parseGoRequestUrl(text: string): GoUrl | string {
  return parseLocation(text, 'request');
}

function parseLocation(location: string, form: 'reference' | 'request'): GoUrl | string {
  const wrong = (why: string) => `parse ${showValue(location)}: ${why}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go rejects them
  if (/[\u0000-\u001f\u007f]/.test(location)) {
    return wrong('net/url: invalid control character in URL');
  }
  if (location === '' && form === 'request') return wrong('empty url');
  if (location.startsWith(':')) return wrong('missing protocol scheme');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(location)?.[1] ?? '';
  const rest = scheme === '' ? location : location.slice(scheme.length + 1);
  const [before, query = ''] = cut(rest, '?');
  const bare = {
    scheme: scheme.toLowerCase(),
    user: undefined,
    host: '',
    path: '',
    query,
    fragment: '',
  };
  if (location === '*') return { ...bare, path: '*' };
  if (!before.startsWith('/')) {
    if (scheme !== '') return bare;
    if (form === 'request') return wrong('invalid URI for request');
    const [segment = ''] = before.split('/', 1);
    if (segment.includes(':')) return wrong('first path segment in URL cannot contain colon');
    const why = escapeProblem(before);
    return why === undefined ? { ...bare, path: before } : wrong(why);
  }
  const mayHaveAuthority = scheme !== '' || (form === 'reference' && !before.startsWith('///'));
  const hasAuthority = before.startsWith('//') && mayHaveAuthority;
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

/** Scheme with colon, authority, path, query with its mark, and fragment of a valid URL. */
const urlForm = /^([A-Za-z][A-Za-z0-9+.-]*:)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(?:#(.*))?$/su;

/**
 * Returns the text with which Go prints a valid URL: texts that differ only in the case of the
 * scheme or in superfluous escapes are the same.
 */
export function printGoUrl(text: string): string {
  const parts = urlForm.exec(text);
  if (parts === null) return text;
  const [, scheme = '', authority, path = '', query = '', fragment = ''] = parts;
  const isOpaque = scheme !== '' && authority === undefined && !path.startsWith('/');
  const location = isOpaque ? path : escapedOnce(path, pathByte);
  const printed = fragment === '' ? '' : `#${escapedOnce(fragment, fragmentByte)}`;
  return `${scheme.toLowerCase()}${printAuthority(authority, path)}${location}${query}${printed}`;
}

function printAuthority(authority: string | undefined, path: string): string {
  if (authority === undefined || (authority === '' && path === '')) return '';
  const at = authority.lastIndexOf('@');
  const host = escapeOthers(unescapedBytes(authority.slice(at + 1)), hostByte);
  if (at < 0) return `//${host}`;
  const user = authority.slice(0, at);
  const [name, password] = cut(user, ':');
  const printed = (part: string) => escapeOthers(unescapedBytes(part), userByte);
  if (password === undefined) return `//${printed(name)}@${host}`;
  return `//${printed(name)}:${printed(password)}@${host}`;
}

const hostByte = /[^A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"]/g;
const userByte = /[^A-Za-z0-9\-_.~$&+,;=]/g;
const pathByte = /[^A-Za-z0-9\-_.~$&+,/:;=@]/g;
const fragmentByte = /[^A-Za-z0-9\-_.~$&+,/:;=?@!()*]/g;

/** Keeps a text that contains nothing but escapes and characters that URLs contain. */
function escapedOnce(text: string, special: RegExp): string {
  const isEscaped = /^[A-Za-z0-9\-_.~$&+,/:;=?@!'()*[\]%]*$/.test(text);
  return isEscaped ? text : escapeOthers(unescapedBytes(text), special);
}

/** The bytes of a text without escapes, one in each character. */
function unescapedBytes(text: string): string {
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  return bytes.replace(/%([0-9a-f]{2})/gi, (_, hex) => byteText(Number.parseInt(hex, 16)));
}

/**
 * Normalizes a path as client-go does: removes empty and dot segments and a trailing slash, then
 * escapes it. A strict server redirects clients that send other paths.
 * @param path without escapes: a percent sign is literal
 */
export function normalizePath(path: string): string {
  const bytes = Buffer.from(path, 'utf8').toString('latin1');
  return escapeOthers(cleanPath(bytes), pathByte);
}

/**
 * Like `normalizePath`, for the path of a URL, whose escapes are decoded first: `/%2F/d` is `/d`.
 */
export function normalizeUrlPath(path: string): string {
  return escapeOthers(cleanPath(unescapedBytes(path)), pathByte);
}

function cleanPath(path: string): string {
  const clean = posix.normalize(`/${path}`);
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean;
}

function escapeOthers(bytes: string, special: RegExp): string {
  return bytes.replace(special, (byte) => {
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
  const zone = host.startsWith('[') ? host.indexOf('%25') : -1;
  if (zone < 0 || zone > closing) return hostTextProblem(host, 'name');
  return (
    hostTextProblem(host.slice(0, zone), 'name') ??
    hostTextProblem(host.slice(zone, closing), 'zone') ??
    hostTextProblem(host.slice(closing), 'name')
  );
}

/**
 * Validates the characters and escapes of a host. The escapes of a name stand for characters beyond
 * ASCII, those of a zone for the characters that a host contains, or a space.
 */
function hostTextProblem(text: string, part: 'name' | 'zone'): string | undefined {
  for (const { 0: odd, index } of text.matchAll(/[^\w.~!$&'()*+,;=:[\]<>"\u0080-\u{10ffff}-]/gu)) {
    if (odd !== '%') return `invalid character ${showValue(odd)} in host name`;
    const triplet = text.slice(index, index + 3);
    const code = /^%[0-9a-f]{2}$/i.test(triplet)
      ? Number.parseInt(triplet.slice(1), 16)
      : undefined;
    const isZoneText = code !== undefined && /[\w .~!$&'()*+,;=:[\]<>"-]/.test(byteText(code));
    const isValid =
      triplet === '%25' || (code !== undefined && (part === 'zone' ? isZoneText : code >= 0x80));
    if (!isValid) return `invalid URL escape ${showValue(triplet)}`;
  }
  return undefined;
}

const byteText = (code: number): string => String.fromCharCode(code);

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
