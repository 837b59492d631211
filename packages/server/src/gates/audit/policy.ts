import type { RequestSubject, UserInfo } from '@wheelhouse/machinery';
import type { AuditLevel, AuditStage } from './event.ts';

/** The resources that a rule concerns. */
export interface GroupResources {
  /** Empty: the core group; `*`: any. */
  readonly group: string;
  /** Empty: all of the group. `pods`, `pods/log`, `pods/*`, `scale` of any kind, `*`. */
  readonly resources: readonly string[];
  /** Empty: objects of any name. */
  readonly resourceNames: readonly string[];
}

/**
 * One rule: the requests that it matches (an empty list matches all), and what to record of them.
 */
export interface PolicyRule {
  readonly level: AuditLevel;
  readonly users: readonly string[];
  readonly userGroups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly GroupResources[];
  readonly namespaces: readonly string[];
  readonly nonResourceURLs: readonly string[];
  readonly omitStages: readonly AuditStage[];
  /** Undefined: the policy's own value. */
  readonly omitManagedFields: boolean | undefined;
}

export interface Policy {
  readonly rules: readonly PolicyRule[];
  /** Stages that every rule omits, in addition to its own. */
  readonly omitStages: readonly AuditStage[];
  readonly omitManagedFields: boolean;
}

/** The attributes of a request that a policy considers. */
export type AuditedRequest = RequestSubject;

/** What to record of a request. */
export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: ReadonlySet<AuditStage>;
  readonly omitManagedFields: boolean;
}

/** Decides what to record of a request; `user` is absent for an unauthenticated request. */
export type DecideAudit = (request: AuditedRequest, user: UserInfo | undefined) => AuditDecision;

/** The first matching rule decides; a request that matches none is not recorded (OPS-2). */
export function auditPolicy(policy: Policy): DecideAudit {
  const rules = policy.rules.map((rule) => ({
    rule,
    decision: {
      level: rule.level,
      omitStages: new Set([...policy.omitStages, ...rule.omitStages]),
      omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields,
    },
  }));
  const nothing: AuditDecision = {
    level: 'None',
    omitStages: new Set(),
    omitManagedFields: policy.omitManagedFields,
  };
  return (request, user) =>
    rules.find(({ rule }) => matches(rule, request, user))?.decision ?? nothing;
}

function matches(rule: PolicyRule, request: AuditedRequest, user: UserInfo | undefined): boolean {
  const { users, userGroups, verbs, namespaces, resources, nonResourceURLs } = rule;
  if (users.length > 0 && !users.includes(user?.name ?? '')) return false;
  if (userGroups.length > 0 && user?.groups.some((one) => userGroups.includes(one)) !== true) {
    return false;
  }
  if (verbs.length > 0 && !verbs.includes(request.verb)) return false;
  if (namespaces.length > 0 || resources.length > 0) return matchesResource(rule, request);
  if (nonResourceURLs.length === 0) return true;
  return !request.isResourceRequest && nonResourceURLs.some((one) => onPath(one, request.path));
}

function onPath(pattern: string, path: string): boolean {
  if (pattern === path) return true;
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1));
}

function matchesResource(rule: PolicyRule, request: AuditedRequest): boolean {
  if (!request.isResourceRequest) return false;
  const { namespaces, resources } = rule;
  if (namespaces.length > 0 && !namespaces.includes(request.namespace)) return false;
  return resources.length === 0 || resources.some((one) => covers(one, request));
}

function covers(
  { group, resources, resourceNames }: GroupResources,
  request: AuditedRequest,
): boolean {
  if (group !== '*' && group !== request.group) return false;
  if (resources.length === 0) return true;
  if (resourceNames.length > 0 && !resourceNames.includes(request.name)) return false;
  const { resource, subresource } = request;
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  return resources.some(
    (one) =>
      one === '*' ||
      one === whole ||
      one === `${resource}/*` ||
      (subresource !== '' && one === `*/${subresource}`),
  );
}
