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
  required,
  textOf,
  textsOf,
} from '@wheelhouse/machinery';
import { type AuditLevel, type AuditStage, auditLevels, auditStages } from './event.ts';
import type { GroupResources, Policy, PolicyRule } from './policy.ts';

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

export const auditPolicyFormat = {
  kind: 'Policy',
  group: 'audit',
  versions: { v1: policyType },
} as const satisfies ConfigurationFormat;

/**
 * Reads an audit policy, YAML or JSON, and validates it like kube-apiserver (OPS-2). Rejects with a
 * ConfigurationError that lists all errors in one line.
 */
export async function loadAuditPolicy(text: string, dialect: Dialect): Promise<Policy> {
  const { object } = await decodeConfiguration(text, {
    ...auditPolicyFormat,
    group: dialect.group(auditPolicyFormat.group),
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
    ...resources.flatMap((one) => checkResources(groupResourcesOf(one), `${path}.resources`)),
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
  const problems = group === '' || group === '*' ? [] : dnsSubdomain(group);
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
