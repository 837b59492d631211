import { type PolicyRule, policyRule, trimStars } from '@wheelhouse/kinds';
import type { UserInfo } from '@wheelhouse/machinery';
import type { Attributes, AuthorizationResult, Authorizer } from '../contract.ts';
import type { AbacPolicy } from './abac-policy.ts';

/** An authorizer with a fixed list of policies. */
export interface AbacAuthorizer extends Authorizer {
  /** All rules that apply to the user in the namespace. */
  rulesFor(user: UserInfo, namespace: string): readonly PolicyRule[];
}

/** Decides by the policies of an ABAC file (AUTHZ-2): the first matching one allows. */
export function createAbacAuthorizer(policies: readonly AbacPolicy[]): AbacAuthorizer {
  const allowed: AuthorizationResult = { decision: 'allow', reason: '' };
  const noOpinion: AuthorizationResult = { decision: 'no-opinion', reason: 'No policy matched.' };
  return {
    name: 'ABAC',
    authorize: (attributes) =>
      policies.some((policy) => matches(policy, attributes)) ? allowed : noOpinion,
    rulesFor: (user, namespace) =>
      policies
        .filter((policy) => isAbout(policy, user) && fits(policy.namespace, namespace))
        .flatMap(rulesOf),
  };
}

const readVerbs = ['get', 'list', 'watch'];

function matches(policy: AbacPolicy, attributes: Attributes): boolean {
  if (!isAbout(policy, attributes.user)) return false;
  if (policy.readonly && !readVerbs.includes(attributes.verb)) return false;
  if (!attributes.isResourceRequest) return isPathMatch(policy.nonResourcePath, attributes.path);
  return (
    fits(policy.namespace, attributes.namespace) &&
    fits(policy.resource, attributes.resource) &&
    fits(policy.apiGroup, attributes.group)
  );
}

/**
 * Whether a policy names the user: both its user and its group must match, and at least one must be
 * set.
 */
function isAbout({ user, group }: AbacPolicy, asking: UserInfo): boolean {
  if (user !== '' && user !== '*' && user !== asking.name) return false;
  if (group !== '' && group !== '*' && !asking.groups.includes(group)) return false;
  return user !== '' || group !== '';
}

function fits(wanted: string, actual: string): boolean {
  return wanted === '*' || wanted === actual;
}

function isPathMatch(wanted: string, path: string): boolean {
  if (wanted === '*' || wanted === path) return true;
  return wanted.endsWith('*') && path.startsWith(trimStars(wanted));
}

function rulesOf(policy: AbacPolicy): PolicyRule[] {
  const verbs = policy.readonly ? readVerbs : ['*'];
  const rules: PolicyRule[] = [];
  if (policy.resource !== '') {
    const [apiGroups, resources] = [[policy.apiGroup], [policy.resource]];
    rules.push(policyRule({ verbs, apiGroups, resources }));
  }
  if (policy.nonResourcePath !== '') {
    rules.push(policyRule({ verbs, nonResourceURLs: [policy.nonResourcePath] }));
  }
  return rules;
}
