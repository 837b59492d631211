import type { Authorizer } from './contract.ts';

/** Allows everything (`--authorization-mode=AlwaysAllow`). */
export const alwaysAllow: Authorizer = {
  name: 'AlwaysAllow',
  authorize: () => ({ decision: 'allow', reason: '' }),
};

/** Allows nothing, without stopping authorizers behind it, as upstream does. */
export const alwaysDeny: Authorizer = {
  name: 'AlwaysDeny',
  authorize: () => ({ decision: 'no-opinion', reason: 'Everything is forbidden.' }),
};

/** Allows members of the groups everything; stands before all other authorizers (AUTHZ-10). */
export function createPrivilegedGroupAuthorizer(
  groups: readonly string[] = ['system:masters'],
): Authorizer {
  const privileged = new Set(groups);
  return {
    name: 'PrivilegedGroup',
    authorize: ({ user }) =>
      user.groups.some((group) => privileged.has(group))
        ? { decision: 'allow', reason: '' }
        : { decision: 'no-opinion', reason: '' },
  };
}
