import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
  truthType,
} from '@wheelhouse/codec';
import { matchesUrl } from '@wheelhouse/kinds';
import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  fieldErrorsText,
  invalid,
  type JsonObject,
  member,
  notSupported,
  objectsOf,
  type RequestSubject,
  required,
  textOf,
  textsOf,
  type UserInfo,
} from '@wheelhouse/machinery';
import { type AuditLevel, type AuditStage, auditLevels, auditStages } from './event.ts';

/** The resources that a rule matches. */
interface GroupResources {
  /** Empty: the core group. */
  readonly group: string;
  /** Empty: all of the group. Otherwise names such as `pods` and `pods/log`, and wildcards. */
  readonly resources: readonly string[];
  /** Empty: objects of any name. */
  readonly resourceNames: readonly string[];
}

/** One rule: which requests it matches (an empty list matches all), and what to record of them. */
interface PolicyRule {
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

interface Policy {
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

/**
 * Creates the decision function of a policy (OPS-2): the first matching rule decides, and a request
 * that matches none is not recorded.
 */
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
  if (users.length > 0 && (user === undefined || !users.includes(user.name))) return false;
  if (userGroups.length > 0 && user?.groups.some((group) => userGroups.includes(group)) !== true) {
    return false;
  }
  if (verbs.length > 0 && !verbs.includes(request.verb)) return false;
  if (namespaces.length > 0 || resources.length > 0) return matchesResource(rule, request);
  if (nonResourceURLs.length === 0) return true;
  return (
    !request.isResourceRequest &&
    nonResourceURLs.some((pattern) => matchesUrl(pattern, request.path))
  );
}

function matchesResource(rule: PolicyRule, request: AuditedRequest): boolean {
  if (!request.isResourceRequest) return false;
  const { namespaces, resources } = rule;
  if (namespaces.length > 0 && !namespaces.includes(request.namespace)) return false;
  return resources.length === 0 || resources.some((resource) => covers(resource, request));
}

function covers(
  { group, resources, resourceNames }: GroupResources,
  request: AuditedRequest,
): boolean {
  if (group !== request.group) return false;
  if (resources.length === 0) return true;
  if (resourceNames.length > 0 && !resourceNames.includes(request.name)) return false;
  const { resource, subresource } = request;
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  return resources.some(
    (pattern) =>
      pattern === '*' ||
      pattern === whole ||
      pattern === `${resource}/*` ||
      (subresource !== '' && pattern === `*/${subresource}`),
  );
}

const texts = listType(textType);
const groupResourcesType = structType('GroupResources', {
  group: textType,
  resources: texts,
  resourceNames: texts,
});
const policyType = structType('Policy', {
  metadata: { schema: { type: 'object', preserveUnknownFields: true } },
  rules: listType(
    structType('PolicyRule', {
      level: textType,
      users: texts,
      userGroups: texts,
      verbs: texts,
      resources: listType(groupResourcesType),
      namespaces: texts,
      nonResourceURLs: texts,
      omitStages: texts,
      omitManagedFields: optional(truthType),
    }),
  ),
  omitStages: texts,
  omitManagedFields: truthType,
});

/** The file of `--audit-policy-file` (OPS-2). */
export const auditPolicyFormat = {
  kind: 'Policy',
  group: 'audit',
  versions: { v1: policyType },
} as const satisfies ConfigurationFormat;

/**
 * Reads and validates an audit policy in YAML or JSON (OPS-2). Rejects with a ConfigurationError
 * that lists all errors in one line, in kube-apiserver's wording. Unknown and duplicate members are
 * ignored, with a warning.
 */
export async function loadAuditPolicy(
  text: string,
  { dialect, warn }: { readonly dialect: Dialect; readonly warn: (message: string) => void },
): Promise<Policy> {
  const { object } = await decodeConfiguration(text, {
    ...auditPolicyFormat,
    group: dialect.group(auditPolicyFormat.group),
    onStrictProblems: (problems) =>
      warn(`Audit policy contains errors, falling back to lenient decoding: ${problems}`),
  });
  const rules = objectsOf(member(object, 'rules'));
  const errors = [
    ...checkStages(object, 'omitStages'),
    ...rules.flatMap((rule, index) => checkRule(rule, `rules[${index}]`)),
  ];
  if (errors.length > 0) throw new ConfigurationError(fieldErrorsText(errors));
  if (rules.length === 0) throw new ConfigurationError('loaded illegal policy with 0 rules');
  return {
    rules: rules.map(ruleOf),
    omitStages: textsOf(member(object, 'omitStages')) as AuditStage[],
    omitManagedFields: member(object, 'omitManagedFields') === true,
  };
}

function ruleOf(rule: JsonObject): PolicyRule {
  const omitManagedFields = member(rule, 'omitManagedFields');
  return {
    level: textOf(member(rule, 'level')) as AuditLevel,
    users: textsOf(member(rule, 'users')),
    userGroups: textsOf(member(rule, 'userGroups')),
    verbs: textsOf(member(rule, 'verbs')),
    resources: objectsOf(member(rule, 'resources')).map(groupResourcesOf),
    namespaces: textsOf(member(rule, 'namespaces')),
    nonResourceURLs: textsOf(member(rule, 'nonResourceURLs')),
    omitStages: textsOf(member(rule, 'omitStages')) as AuditStage[],
    omitManagedFields: typeof omitManagedFields === 'boolean' ? omitManagedFields : undefined,
  };
}

function groupResourcesOf(value: JsonObject): GroupResources {
  return {
    group: textOf(member(value, 'group')),
    resources: textsOf(member(value, 'resources')),
    resourceNames: textsOf(member(value, 'resourceNames')),
  };
}

function checkRule(rule: JsonObject, path: string): FieldError[] {
  const urls = textsOf(member(rule, 'nonResourceURLs'));
  const resources = objectsOf(member(rule, 'resources'));
  const isBoth =
    urls.length > 0 && resources.length + textsOf(member(rule, 'namespaces')).length > 0;
  const why = 'rules cannot apply to both regular resources and non-resource URLs';
  return [
    ...checkLevel(textOf(member(rule, 'level')), `${path}.level`),
    ...urls.flatMap((url, index) => checkUrl(url, `${path}.nonResourceURLs[${index}]`)),
    ...resources.flatMap((resource) =>
      checkResources(groupResourcesOf(resource), `${path}.resources`),
    ),
    ...checkStages(rule, `${path}.omitStages`),
    ...(isBoth ? [invalid(`${path}.nonResourceURLs`, [...urls], why)] : []),
  ];
}

function checkLevel(level: string, path: string): FieldError[] {
  if (level === '') return [required(path)];
  const isKnown = (auditLevels as readonly string[]).includes(level);
  return isKnown ? [] : [notSupported(path, level, auditLevels)];
}

function checkUrl(url: string, path: string): FieldError[] {
  if (url === '*') return [];
  const errors: FieldError[] = [];
  if (!url.startsWith('/')) {
    errors.push(invalid(path, url, "non-resource URL rules must begin with a '/' character"));
  }
  if (url.slice(0, -1).includes('*')) {
    const why = "non-resource URL wildcards '*' must be the final character of the rule";
    errors.push(invalid(path, url, why));
  }
  return errors;
}

function checkResources(
  { group, resources, resourceNames }: GroupResources,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const problems = group === '' ? [] : dnsSubdomain(group);
  if (problems.length > 0) errors.push(invalid(`${path}.group`, group, problems.join(',')));
  if (resourceNames.length > 0 && resources.length === 0) {
    const why = 'using resourceNames requires at least one resource';
    errors.push(invalid(`${path}.resourceNames`, [...resourceNames], why));
  }
  return errors;
}

function checkStages(holder: JsonObject, path: string): FieldError[] {
  const allowedStages: readonly string[] = auditStages;
  return textsOf(member(holder, 'omitStages')).flatMap((stage, index) =>
    allowedStages.includes(stage)
      ? []
      : [invalid(`${path}[${index}]`, stage, `allowed stages are ${auditStages.join(',')}`)],
  );
}
