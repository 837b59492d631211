import { type FieldError, invalid, invalidGo, notSupported, required } from '@wheelhouse/machinery';
import { listAt } from '../cells.ts';
import type {
  NamedRuleWithOperations,
  RuleWithOperations,
} from '../gen/types/admissionregistration/v1.ts';
import { goList, goStrings } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** Which operations on which resources a webhook or policy is about. */

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const scopes = ['*', 'Cluster', 'Namespaced'];

/** One rule with its operations. */
export function validateOperationRule(
  rule: Stored<RuleWithOperations | NamedRuleWithOperations>,
  path: string,
): FieldError[] {
  const ruleOperations = (rule.operations ?? []).map(String);
  const field = `${path}.operations`;
  const errors = ruleOperations.length === 0 ? [required(field)] : [];
  if (ruleOperations.length > 1 && ruleOperations.includes('*')) {
    const shown = goList('admissionregistration.OperationType', ruleOperations);
    const detail = "if '*' is present, must not specify other operations";
    errors.push(invalidGo(field, () => shown, detail));
  }
  ruleOperations.forEach((operation, index) => {
    if (operations.includes(operation)) return;
    errors.push(notSupported(`${field}[${index}]`, operation, operations));
  });
  const scope = rule.scope;
  const isKnown = scope === undefined || scopes.includes(String(scope));
  return [
    ...errors,
    ...validateNames(rule, `${path}.apiGroups`, 'API groups'),
    ...validateNames(rule, `${path}.apiVersions`, 'API versions'),
    ...(rule.apiVersions ?? []).flatMap((version, index) =>
      version === '' ? [required(`${path}.apiVersions[${index}]`)] : [],
    ),
    ...validateResources((rule.resources ?? []).map(String), `${path}.resources`),
    ...(isKnown ? [] : [notSupported(`${path}.scope`, scope, scopes)]),
  ];
}

function validateNames(
  rule: Stored<RuleWithOperations | NamedRuleWithOperations>,
  field: string,
  what: string,
): FieldError[] {
  const values = listAt(rule, field.slice(field.lastIndexOf('.') + 1)).map(String);
  if (values.length === 0) return [required(field)];
  if (values.length === 1 || !values.includes('*')) return [];
  const detail = `if '*' is present, must not specify other ${what}`;
  return [invalidGo(field, () => goStrings(values), detail)];
}

function validateResources(resources: readonly string[], field: string): FieldError[] {
  if (resources.length === 0) return [required(field)];
  const allOf = new Set<string>();
  const everywhere = new Set<string>();
  const errors = resources.flatMap((text, index): FieldError[] => {
    const at = `${field}[${index}]`;
    if (text === '') return [required(at)];
    const slash = text.indexOf('/');
    if (slash < 0) return [];
    const [resource, part] = [text.slice(0, slash), text.slice(slash + 1)];
    const covered = [
      ...(allOf.has(resource) ? [`${resource}/*`] : []),
      ...(everywhere.has(part) ? [`*/${part}`] : []),
    ];
    if (part === '*') allOf.add(resource);
    if (resource === '*') everywhere.add(part);
    return covered.map((by) =>
      invalid(at, text, `if '${by}' is present, must not specify ${text}`),
    );
  });
  return [...errors, ...validateStars(resources, field)];
}

function validateStars(resources: readonly string[], field: string): FieldError[] {
  const refuse = (detail: string) => invalidGo(field, () => goStrings(resources), detail);
  const errors: FieldError[] = [];
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(refuse("if '*/*' is present, must not specify other resources"));
  }
  // The last one without a sub-resource decides, as upstream.
  const plain = resources.filter((text) => text !== '' && !text.includes('/'));
  if (plain.includes('*') && plain.at(-1) !== '*') {
    const detail = "if '*' is present, must not specify other resources without subresources";
    errors.push(refuse(detail));
  }
  return errors;
}
