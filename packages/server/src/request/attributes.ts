import {
  parseFieldSelector,
  parseLabelSelector,
  type UserInfo,
  type Waiting,
} from '@wheelhouse/machinery';
import type { Attributes } from '../gates/authz/contract.ts';
import type { RequestInfo } from './request-info.ts';

/**
 * What authorization looks at of a request (AUTHZ-1).
 * @param client who waits for the verdict, where it need not be waited for without them
 * @param verb asks about another verb on the same object (the create behind a PUT)
 */
export function attributesOf(
  info: RequestInfo,
  user: UserInfo,
  client: Waiting | undefined,
  verb = info.verb,
): Attributes {
  const { isResourceRequest, group, version, resource, subresource } = info;
  const { namespace, name, path } = info;
  const plain = {
    user,
    verb,
    isResourceRequest,
    group,
    version,
    resource,
    subresource,
    namespace,
    name,
    path,
    client,
  };
  if (info.query.size === 0 || !selecting.has(verb) || isWatchPath(info)) return plain;
  return { ...plain, ...selectorsOf(info.query) };
}

const selecting = new Set(['list', 'watch', 'deletecollection']);

/** The old way to watch, `/api/v1/watch/…`, where upstream does not authorize by selectors. */
function isWatchPath({ apiPrefix, path }: RequestInfo): boolean {
  return path.split('/', 5)[apiPrefix === 'api' ? 3 : 4] === 'watch';
}

/** A selector that cannot be read is the endpoint's to refuse; until then it selects everything. */
function selectorsOf(query: URLSearchParams): Pick<Attributes, 'fieldSelector' | 'labelSelector'> {
  const fields = readable(query.get('fieldSelector'), parseFieldSelector);
  const labels = readable(query.get('labelSelector'), parseLabelSelector)?.requirements;
  return {
    ...(fields === undefined ? {} : { fieldSelector: fields }),
    ...(labels === undefined ? {} : { labelSelector: labels }),
  };
}

function readable<T>(text: string | null, parse: (text: string) => T): T | undefined {
  if (text === null || text === '') return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
