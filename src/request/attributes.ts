import type { Attributes } from '../authz/contract.ts';
import type { UserInfo } from '../meta/types.ts';
import type { RequestInfo } from './request-info.ts';

/**
 * What authorization looks at of a request (AUTHZ-1).
 * @param verb asks about another verb on the same object (the create behind a PUT)
 */
export function attributesOf(info: RequestInfo, user: UserInfo, verb = info.verb): Attributes {
  const { isResourceRequest, group, version, resource, subresource } = info;
  const { namespace, name, path } = info;
  return {
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
}
