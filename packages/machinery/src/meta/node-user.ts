import type { UserInfo } from './types.ts';

const namePrefix = 'system:node:';
const group = 'system:nodes';

/**
 * The node a user is: one named `system:node:<name>` in group `system:nodes` (AUTHZ-9). Undefined
 * for anybody else; empty for a node that does not say which.
 */
export function nodeOfUser(user: UserInfo): string | undefined {
  if (!user.name.startsWith(namePrefix) || !user.groups.includes(group)) return undefined;
  return user.name.slice(namePrefix.length);
}
