import type { Attributes } from '../authz/contract.ts';
import { type FieldRequirement, parseFieldSelector } from '../meta/selectors.ts';
import type { UserInfo } from '../meta/types.ts';
import type { RequestInfo } from './request-info.ts';

/**
 * What authorization looks at of a request (AUTHZ-1).
 * @param verb asks about another verb on the same object (the create behind a PUT)
 */
export function attributesOf(info: RequestInfo, user: UserInfo, verb = info.verb): Attributes {
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
  };
  const fieldSelector = selecting.has(verb) ? fieldsOf(info.query) : undefined;
  return fieldSelector === undefined ? plain : { ...plain, fieldSelector };
}

const selecting = new Set(['list', 'watch', 'deletecollection']);

/** A selector that cannot be read is the endpoint's to refuse; until then it selects everything. */
function fieldsOf(query: URLSearchParams): readonly FieldRequirement[] | undefined {
  const text = query.size === 0 ? null : query.get('fieldSelector');
  if (text === null || text === '') return undefined;
  try {
    return parseFieldSelector(text);
  } catch {
    return undefined;
  }
}
