import { type FieldError, goQuoted, invalid } from '../../meta/field-error.ts';

interface UrlParts {
  readonly scheme: string;
  readonly hasUser: boolean;
  readonly query: string;
  readonly fragment: string;
}

/** What is wrong with an address that must be of https and nothing but a place (AUTHN-8). */
export function urlErrors(field: string, text: string): readonly FieldError[] {
  const parts = parseUrl(text);
  if (typeof parts === 'string') return [invalid(field, text, parts)];
  const details: string[] = [];
  if (parts.scheme !== 'https') details.push('URL scheme must be https');
  if (parts.hasUser) details.push('URL must not contain a username or password');
  if (parts.query !== '') details.push('URL must not contain a query');
  if (parts.fragment !== '') details.push('URL must not contain a fragment');
  return details.map((detail) => invalid(field, text, detail));
}

/** The parts of a URL as Go's `url.Parse` sees them; a text is what it says against the URL. */
function parseUrl(text: string): UrlParts | string {
  const hash = text.indexOf('#');
  const [place, fragment] = hash < 0 ? [text, ''] : [text.slice(0, hash), text.slice(hash + 1)];
  const wrong = (why: string) => `parse ${goQuoted(place)}: ${why}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them
  if (/[\u0000-\u001f\u007f]/.test(place)) {
    return wrong('net/url: invalid control character in URL');
  }
  if (place.startsWith(':')) return wrong('missing protocol scheme');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(place)?.[1] ?? '';
  const rest = scheme === '' ? place : place.slice(scheme.length + 1);
  const mark = rest.indexOf('?');
  const [before, query] = mark < 0 ? [rest, ''] : [rest.slice(0, mark), rest.slice(mark + 1)];
  const parts = { scheme: scheme.toLowerCase(), query, fragment, hasUser: false };
  if (!before.startsWith('/')) {
    const [segment = ''] = before.split('/', 1);
    const isPath = scheme === '';
    if (isPath && segment.includes(':')) {
      return wrong('first path segment in URL cannot contain colon');
    }
    return parts;
  }
  const slash = before.indexOf('/', 2);
  const isPlace = before.startsWith('//');
  const authority = !isPlace ? '' : slash < 0 ? before.slice(2) : before.slice(2, slash);
  const path = !isPlace ? before : slash < 0 ? '' : before.slice(slash);
  const why = authorityProblem(authority) ?? escapeProblem(path);
  return why === undefined ? { ...parts, hasUser: authority.includes('@') } : wrong(why);
}

function authorityProblem(authority: string): string | undefined {
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  const closing = host.lastIndexOf(']');
  if (host.startsWith('[') && closing < 0) return "missing ']' in host";
  const colon = host.indexOf(':', closing + 1);
  const port = colon < 0 ? '' : host.slice(colon);
  if (!/^(:\d*)?$/.test(port)) return `invalid port ${goQuoted(port)} after host`;
  const odd = /[\s"\\^`{|}]/.exec(host)?.[0];
  if (odd !== undefined) return `invalid character ${goQuoted(odd)} in host name`;
  return escapeProblem(host);
}

function escapeProblem(text: string): string | undefined {
  const wrong = /%(?![0-9A-Fa-f]{2}).{0,2}/su.exec(text)?.[0];
  return wrong === undefined ? undefined : `invalid URL escape ${goQuoted(wrong)}`;
}
