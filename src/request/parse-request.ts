import { badRequest } from '../meta/status.ts';
import type { RequestInfo } from './request-info.ts';

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
const namespaceSubresources = new Set(['status', 'finalize']);

export function parseRequest(method: string, url: string): RequestInfo {
  const at = url.indexOf('?');
  const rawPath = at < 0 ? url : url.slice(0, at);
  const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
  const { path, parts } = splitPath(rawPath);
  const none = {
    path,
    apiPrefix: '',
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    parts: [] as string[],
    query,
  };
  const plain = { ...none, verb: method.toLowerCase(), isResourceRequest: false };
  const [prefix, ...rest] = parts;
  if (prefix !== 'api' && prefix !== 'apis') return plain;
  const skip = prefix === 'api' ? 1 : 2;
  if (rest.length <= skip) return plain;
  const group = prefix === 'api' ? '' : (rest[0] ?? '');
  const version = rest[skip - 1] ?? '';
  let left = rest.slice(skip);
  let verb = verbs[method] ?? method.toLowerCase();
  if (left[0] === 'watch' && left.length > 1) {
    left = left.slice(1);
    verb = 'watch';
  }
  let namespace = '';
  if (left[0] === 'namespaces') {
    namespace = left[1] ?? '';
    if (left.length > 2 && !namespaceSubresources.has(left[2] ?? '')) left = left.slice(2);
  }
  const [resource = '', name = '', subresource = ''] = left;
  const watch = query.get('watch');
  if (verb === 'get' && (watch === 'true' || watch === '1')) verb = 'watch';
  if (name === '' && verb === 'get') verb = 'list';
  if (name === '' && verb === 'delete') verb = 'deletecollection';
  return {
    ...none,
    verb,
    isResourceRequest: true,
    apiPrefix: prefix,
    group,
    version,
    namespace,
    resource,
    subresource,
    name,
    parts: left,
  };
}

/** The decoded path and its segments; an escaped slash is part of its segment. Throws 400. */
function splitPath(rawPath: string): { path: string; parts: string[] } {
  const raw = rawPath.split('/').filter((part) => part !== '');
  if (!rawPath.includes('%')) return { path: rawPath, parts: raw };
  try {
    return {
      path: decodeURIComponent(rawPath),
      parts: raw.map((part) => decodeURIComponent(part)),
    };
  } catch {
    throw badRequest(`invalid URL escape in ${JSON.stringify(rawPath.slice(0, 100))}`);
  }
}
