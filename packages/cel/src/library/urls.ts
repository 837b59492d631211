import type { Library } from '../types/functions.ts';
import { CelError, EntryMap, List, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';

interface Url {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

const type = 'kubernetes.URL';
const hostForm = /^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9\-_.~!$&'()*+,;=<>"%\u0080-\uffff]*)(?::(\d*))?$/;

function hasControls(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them too
  return /[\u0000-\u001f\u007f]/.test(text);
}

/** An absolute URL or path, as Go's `url.ParseRequestURI` takes it; undefined otherwise. */
function parse(text: string): Url | undefined {
  if (text === '' || hasControls(text)) return undefined;
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1];
  const rest = scheme === undefined ? text : text.slice(scheme.length + 1);
  const isOpaque = !rest.startsWith('/');
  if (isOpaque && scheme === undefined) return undefined;
  const mark = rest.indexOf('?');
  const [before, query] = mark < 0 ? [rest, ''] : [rest.slice(0, mark), rest.slice(mark + 1)];
  if (isOpaque) return { scheme: (scheme ?? '').toLowerCase(), host: '', path: '', query };
  const hasHost = before.startsWith('//') && (scheme !== undefined || !before.startsWith('///'));
  if (!hasHost)
    return checked({ scheme: (scheme ?? '').toLowerCase(), host: '', path: before, query });
  const slash = before.indexOf('/', 2);
  const authority = slash < 0 ? before.slice(2) : before.slice(2, slash);
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  const path = slash < 0 ? '' : before.slice(slash);
  if (!hostForm.test(host)) return undefined;
  return checked({ scheme: (scheme ?? '').toLowerCase(), host, path, query });
}

function checked(url: Url): Url | undefined {
  return /%(?![0-9A-Fa-f]{2})/.test(url.path) ? undefined : url;
}

class UrlValue extends Opaque<Url> {}

function read([text]: readonly Value[]): Value {
  const url = parse(asText(text));
  if (url === undefined) {
    const shown = JSON.stringify(text);
    const why = hasControls(asText(text))
      ? `parse ${shown}: net/url: invalid control character in URL`
      : `parse ${shown}: invalid URI for request`;
    throw new CelError(`URL parse error during conversion from string: ${why}`);
  }
  return new UrlValue({ type, value: url, key: asText(text) });
}

function url(value: Value | undefined): Url {
  if (!(value instanceof UrlValue)) throw misfit(value, type);
  return value.value;
}

const hostname = (value: Value | undefined) =>
  (hostForm.exec(url(value).host)?.[1] ?? '').replace(/^\[|\]$/g, '');

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

function query([value]: readonly Value[]): Value {
  const valuesByName = new Map<string, Value[]>();
  for (const pair of url(value).query.split('&')) {
    if (pair === '' || pair.includes(';')) continue;
    const at = pair.indexOf('=');
    const name = decoded(at < 0 ? pair : pair.slice(0, at));
    const item = decoded(at < 0 ? '' : pair.slice(at + 1));
    if (name === undefined || item === undefined) continue;
    const values = valuesByName.get(name);
    if (values === undefined) valuesByName.set(name, [item]);
    else values.push(item);
  }
  const entries = [...valuesByName].map(
    ([name, items]) => [`s${name}`, [name, new List(items)] as const] as const,
  );
  return new EntryMap(new Map(entries));
}

function escapedPath([value]: readonly Value[]): Value {
  return url(value).path.replace(/[^A-Za-z0-9$&+,/:;=@\-_.~!*'()[\]%]/gu, (point) =>
    encodeURIComponent(point),
  );
}

/** URLs. */
export const urls: Library = [
  [`url(string): ${type}`, read],
  ['isURL(string): bool', ([text]) => parse(asText(text)) !== undefined],
  [`${type}.getScheme(): string`, ([value]) => url(value).scheme],
  [`${type}.getHost(): string`, ([value]) => url(value).host],
  [`${type}.getHostname(): string`, ([value]) => hostname(value)],
  [`${type}.getPort(): string`, ([value]) => hostForm.exec(url(value).host)?.[2] ?? ''],
  [`${type}.getEscapedPath(): string`, escapedPath],
  [`${type}.getQuery(): map(string, list(string))`, query],
];
