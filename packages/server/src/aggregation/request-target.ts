import type { RequestInfo } from '../request/request-info.ts';

/** Stand as they are in a path; everything else but unreserved characters is escaped. */
const plain = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/**
 * The path as this server has understood and authorized it, escaped anew: what another server makes
 * of the client's own escapes might be another path.
 */
export function escapedPath(path: string): string {
  return path
    .split('/')
    .map((segment) =>
      encodeURIComponent(segment)
        .replaceAll(plain, (escaped) => decodeURIComponent(escaped))
        .replaceAll(/[!'()*]/g, (character) => `%${hex(character)}`),
    )
    .join('/');
}

const hex = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();

/** Path and query for another server. */
export function requestTarget({ path, query }: Pick<RequestInfo, 'path' | 'query'>): string {
  const text = query.toString();
  return escapedPath(path) + (text === '' ? '' : `?${text}`);
}
