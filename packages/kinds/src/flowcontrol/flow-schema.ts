import {
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  notSupported,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type {
  FlowSchema,
  FlowSchemaSpec,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  PriorityLevelConfiguration,
  ResourcePolicyRule,
  Subject,
} from '../gen/types/flowcontrol/v1.ts';
import {
  type Findings,
  type ResourceDef,
  type Stored,
  type Strategy,
  standardVerbs,
} from '../resource-def.ts';
import { flatMapSteps, goStrings, validateStar } from '../rules/checks.ts';
import { ensure, objectAt } from '../rules/fill.ts';
import { validateMandatory } from './default-objects.ts';

/** FlowSchema: assigns requests to a priority level (OPS-3). */
export function flowSchema(dialect: Dialect): ResourceDef {
  return defineKind<FlowSchema>({
    dialect,
    facts: 'flowcontrol',
    kind: 'FlowSchema',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        rowOrder: compareMatchingOrder,
        columns: [
          nameColumn,
          column('PriorityLevel', (object) => object.spec?.priorityLevelConfiguration?.name ?? '', {
            description: 'Priority level of the requests.',
          }),
          column('MatchingPrecedence', (object) => object.spec?.matchingPrecedence ?? 0, {
            description: 'Matching precedence; lower values are tried first.',
          }),
          column(
            'DistinguisherMethod',
            (object) => (object.spec?.distinguisherMethod?.type ?? '') || '<none>',
            { description: 'Method by which flows are distinguished.' },
          ),
          ageColumn,
          column('MissingPL', missing, {
            description: 'Whether the referenced priority level is missing.',
          }),
        ],
      },
    ],
    generation: true,
    strategy: flowStrategy((object) => validateFlowSchema(object, dialect)),
    subresources: [statusSubresource],
    example: () => ({ spec: { priorityLevelConfiguration: { name: 'example' } } }),
  });
}

function fillDefaults(object: Stored<FlowSchema>): void {
  const spec = ensure(object, 'spec');
  if ((spec.matchingPrecedence ?? 0) === 0) spec.matchingPrecedence = 1000;
}

/** The order in which schemas are matched. */
function compareMatchingOrder(left: Stored<FlowSchema>, right: Stored<FlowSchema>): number {
  const [first, second] = [left, right].map((schema) =>
    numberAt(schema, 'spec', 'matchingPrecedence'),
  );
  if (first !== second) return first! - second!;
  return (left.metadata.name ?? '') < (right.metadata.name ?? '') ? -1 : 1;
}

function missing(object: Stored<FlowSchema>): string {
  const dangling = (object.status?.conditions ?? []).find(
    (condition) => (condition.type ?? '') === 'Dangling',
  );
  return (dangling?.status ?? '') || '?';
}

/** Validates a FlowSchema except its metadata. */
function* validateFlowSchema(
  object: Stored<FlowSchema>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  return [
    ...validatePrecedence(spec, object.metadata.name ?? ''),
    ...validateMethod(spec),
    ...validateLevel(spec),
    ...(yield* flatMapSteps(spec.rules ?? [], (rule, index) =>
      validateRule(rule, `spec.rules[${index}]`),
    )),
    ...validateMandatory(object, { dialect, kind: 'FlowSchema' }),
    ...validateFlowConditions(object),
  ];
}

const precedenceMax = 10000;

function validatePrecedence(spec: Stored<FlowSchemaSpec>, name: string): FieldError[] {
  const precedence = spec.matchingPrecedence ?? 0;
  const refuse = (detail: string) => [invalid('spec.matchingPrecedence', precedence, detail)];
  if (precedence <= 0) return refuse('must be a positive value');
  if (precedence > precedenceMax) return refuse(`must not be greater than ${precedenceMax}`);
  if (precedence > 1 || name === 'exempt') return [];
  return refuse("only the schema named 'exempt' may have matchingPrecedence 1");
}

const methods = ['ByNamespace', 'ByUser'];

function validateMethod(spec: Stored<FlowSchemaSpec>): FieldError[] {
  const method = spec.distinguisherMethod;
  const type = method?.type ?? '';
  if (method === undefined || methods.includes(type)) return [];
  const shown = `flowcontrol.FlowDistinguisherMethod{Type:${JSON.stringify(type)}}`;
  const error = notSupported('spec.distinguisherMethod.type', type, methods);
  return [{ ...error, message: error.message.replace(JSON.stringify(type), () => shown) }];
}

function validateLevel(spec: Stored<FlowSchemaSpec>): FieldError[] {
  const name = spec.priorityLevelConfiguration?.name ?? '';
  const field = 'spec.priorityLevelConfiguration.name';
  return name === ''
    ? [required(field, 'must reference a priority level')]
    : ruleErrors(field, name, dnsSubdomain);
}

function* validateRule(
  rule: Stored<PolicyRulesWithSubjects>,
  path: string,
): Generator<void, FieldError[]> {
  const subjects = rule.subjects ?? [];
  const errors = yield* flatMapSteps(subjects, (subject, index) =>
    validateSubject(subject, `${path}.subjects[${index}]`),
  );
  if (subjects.length === 0) {
    errors.push(required(`${path}.subjects`, 'subjects must contain at least one value'));
  }
  const [resources, others] = [rule.resourceRules ?? [], rule.nonResourceRules ?? []];
  if (resources.length === 0 && others.length === 0) {
    const detail = 'at least one of resourceRules and nonResourceRules has to be non-empty';
    errors.push(required(path, detail));
  }
  return [
    ...errors,
    ...(yield* flatMapSteps(resources, (resourceRule, index) =>
      validateResources(resourceRule, `${path}.resourceRules[${index}]`),
    )),
    ...(yield* flatMapSteps(others, (nonResourceRule, index) =>
      validateUrls(nonResourceRule, `${path}.nonResourceRules[${index}]`),
    )),
  ];
}

/** The member that describes each kind of subject. */
const subjectMembers: Readonly<Record<string, string>> = {
  ServiceAccount: 'serviceAccount',
  User: 'user',
  Group: 'group',
};

function validateSubject(subject: Stored<Subject>, path: string): FieldError[] {
  const kind = subject.kind ?? '';
  const own = Object.hasOwn(subjectMembers, kind) ? subjectMembers[kind] : undefined;
  if (own === undefined) {
    return [notSupported(`${path}.kind`, kind, Object.keys(subjectMembers).sort())];
  }
  const described = objectAt(subject, own);
  const errors =
    described === undefined
      ? [required(`${path}.${own}`, `${own} is required when subject kind is '${kind}'`)]
      : validateNamed(described, `${path}.${own}`, kind);
  const others = Object.entries(subjectMembers).filter(
    ([, name]) => name !== own && objectAt(subject, name) !== undefined,
  );
  return [
    ...errors,
    ...others.map(([otherKind, name]) =>
      forbiddenField(
        `${path}.${name}`,
        `${name} is forbidden when subject kind is not '${otherKind}'`,
      ),
    ),
  ];
}

function validateNamed(described: JsonObject, path: string, kind: string): FieldError[] {
  const name = textAt(described, 'name');
  const field = `${path}.name`;
  if (kind !== 'ServiceAccount') return name === '' ? [required(field)] : [];
  const namespace = textAt(described, 'namespace');
  const wrongName = name === '*' ? [] : ruleErrors(field, name, dnsSubdomain);
  const noNamespace = required(`${path}.namespace`, 'must specify namespace for service account');
  return [
    ...(name === '' ? [required(field)] : wrongName),
    ...(namespace === '' ? [noNamespace] : ruleErrors(`${path}.namespace`, namespace, dnsLabel)),
  ];
}

function* validateResources(
  rule: Stored<ResourcePolicyRule>,
  path: string,
): Generator<void, FieldError[]> {
  const list = (name: string, plural: string, singular: string) => {
    const values = listAt(rule, name).map(String);
    const detail = `resource rules must supply at least one ${singular}`;
    const field = `${path}.${name}`;
    return values.length === 0 ? [required(field, detail)] : validateStar(values, field, plural);
  };
  return [
    ...validateVerbs(rule, path),
    ...list('apiGroups', 'api groups', 'api group'),
    ...list('resources', 'resources', 'resource'),
    ...(yield* validateNamespaces(rule, `${path}.namespaces`)),
  ];
}

const verbs: readonly string[] = [...standardVerbs, 'proxy'].sort();

function validateVerbs(
  rule: Stored<ResourcePolicyRule | NonResourcePolicyRule>,
  path: string,
): FieldError[] {
  const ruleVerbs = (rule.verbs ?? []).map(String);
  const field = `${path}.verbs`;
  if (ruleVerbs.length === 0) return [required(field, 'verbs must contain at least one value')];
  if (ruleVerbs.includes('*')) return validateStar(ruleVerbs, field, 'verbs');
  if (ruleVerbs.every((verb) => verbs.includes(verb))) return [];
  const error = notSupported(field, '', verbs);
  return [{ ...error, message: error.message.replace('""', () => goStrings(ruleVerbs)) }];
}

function* validateNamespaces(
  rule: Stored<ResourcePolicyRule>,
  field: string,
): Generator<void, FieldError[]> {
  const namespaces = (rule.namespaces ?? []).map(String);
  if (namespaces.length === 0 && rule.clusterScope !== true) {
    const detail = 'resource rules that are not cluster scoped must supply at least one namespace';
    return [required(field, detail)];
  }
  if (namespaces.includes('*')) return validateStar(namespaces, field, 'namespaces');
  const intro = "each member of this list must be '*' or a DNS-1123 label; ";
  return yield* flatMapSteps(namespaces, (name, index) =>
    dnsLabel(name).map((message) => invalid(`${field}[${index}]`, name, `${intro}${message}`)),
  );
}

function* validateUrls(
  rule: Stored<NonResourcePolicyRule>,
  path: string,
): Generator<void, FieldError[]> {
  const urls = (rule.nonResourceURLs ?? []).map(String);
  const field = `${path}.nonResourceURLs`;
  const errors = validateVerbs(rule, path);
  if (urls.length === 0) {
    const detail = 'nonResourceURLs must contain at least one value';
    return [...errors, required(field, detail)];
  }
  if (urls.includes('*')) return [...errors, ...validateStar(urls, field, 'non-resource URLs')];
  const ofUrls = yield* flatMapSteps(urls, (url, index) => validateUrl(url, `${field}[${index}]`));
  return [...errors, ...ofUrls];
}

function validateUrl(url: string, field: string): FieldError[] {
  const refuse = (detail: string) => [invalid(field, url, detail)];
  if (url === '') return refuse('must not be empty');
  if (url === '/') return [];
  if (!url.startsWith('/')) return refuse('must start with slash');
  if (url.includes(' ')) return refuse('must not contain white-space');
  if (url.includes('//')) return refuse('must not contain double slash');
  const star = url.indexOf('*');
  if (star < 0 || (star === url.length - 1 && url.endsWith('/*'))) return [];
  return refuse('wildcard can only do suffix matching');
}

/**
 * Returns the strategy of this group's kinds.
 * @param validate validates an object except its metadata
 */
export function flowStrategy<O extends Stored<FlowSchema | PriorityLevelConfiguration>>(
  validate: (object: O) => Findings,
): Partial<Strategy<O>> & Pick<Strategy, 'validateName'> {
  return {
    extraMetadataChecks: { '': ['whole'], status: [] },
    validateName: dnsSubdomain,
    hasStatus: true,
    resetFields: { '': ['status'], status: ['metadata', 'spec'] },
    validateCreate: (_, object) => validate(object),
    validateUpdate: (context, object) =>
      context.subresource === 'status' ? validateFlowConditions(object) : validate(object),
  };
}

/** Validates the conditions of this group's kinds, whose types must be unique and not empty. */
export function validateFlowConditions(
  object: Stored<FlowSchema | PriorityLevelConfiguration>,
): FieldError[] {
  const types = new Set<string>();
  return (object.status?.conditions ?? []).flatMap((condition, index) => {
    const type = condition.type ?? '';
    const field = `status.conditions[${index}].type`;
    const repeated = types.has(type) ? [duplicate(field, type)] : [];
    types.add(type);
    return type === '' ? [...repeated, required(field, 'must not be empty')] : repeated;
  });
}
