import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  invalidGo,
  isObject,
  type JsonObject,
  notSupported,
  pathSegment,
  required,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { ageColumn, column, createdAtColumn, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type { ClusterRole, PolicyRule, Role, RoleBinding, Subject } from '../gen/types/rbac/v1.ts';
import type { ColumnDef, ResourceDef, Stored, Strategy } from '../resource-def.ts';
import { flatMapSteps, goStrings, items, reportedTwice } from '../rules/checks.ts';
import { forEachSteps } from '../rules/fill.ts';

/** Role: permissions on resources of its namespace. */
export function role(dialect: Dialect): ResourceDef {
  return defineKind<Role>({
    dialect,
    facts: 'rbac',
    kind: 'Role',
    scope: 'Namespaced',
    versions: [{ version: 'v1', columns: [nameColumn, createdAtColumn] }],
    strategy: roleStrategy((object) => validateRules(object, { namespaced: true })),
    example: () => ({
      metadata: { name: 'reader', namespace: 'default' },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
    }),
  });
}

function roleStrategy<O>(
  validate: (object: O) => Generator<void, FieldError[]>,
): Partial<Strategy<O>> & Pick<Strategy, 'validateName'> {
  return {
    extraMetadataChecks: { '': ['whole', 'whole', 'change'] },
    validateName: pathSegment,
    validateCreate: (_, object) => validate(object),
    *validateUpdate(_, object) {
      return reportedTwice(yield* validate(object));
    },
    allowCreateOnUpdate: true,
  };
}

/** Validates the rules of a role; only a ClusterRole can have paths (RBAC-3). */
function validateRules(
  object: Stored<Role | ClusterRole>,
  options: { namespaced: boolean },
): Generator<void, FieldError[]> {
  return flatMapSteps(items(object.rules), (rule, index) =>
    validateRule(rule, { ...options, path: `rules[${index}]` }),
  );
}

function validateRule(
  rule: Stored<PolicyRule>,
  options: { namespaced: boolean; path: string },
): FieldError[] {
  const { namespaced, path } = options;
  const errors: FieldError[] = [];
  const verbs = items(rule.verbs);
  const apiGroups = items(rule.apiGroups);
  const resources = items(rule.resources);
  const resourceNames = items(rule.resourceNames);
  const urls = items(rule.nonResourceURLs);
  if (verbs.length === 0) {
    errors.push(required(`${path}.verbs`, 'verbs must contain at least one value'));
  }
  if (urls.length > 0) {
    const refuse = (detail: string) =>
      errors.push(invalidGo(`${path}.nonResourceURLs`, () => goStrings(urls), detail));
    if (namespaced) refuse('namespaced rules cannot apply to non-resource URLs');
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      refuse('rules cannot apply to both regular resources and non-resource URLs');
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    const detail = 'resource rules must supply at least one api group';
    errors.push(required(`${path}.apiGroups`, detail));
  }
  if (resources.length === 0) {
    const detail = 'resource rules must supply at least one resource';
    errors.push(required(`${path}.resources`, detail));
  }
  return errors;
}

/** ClusterRole: permissions in all namespaces, on cluster-wide resources, and on paths. */
export function clusterRole(dialect: Dialect): ResourceDef {
  return defineKind<ClusterRole>({
    dialect,
    facts: 'rbac',
    kind: 'ClusterRole',
    scope: 'Cluster',
    versions: [{ version: 'v1', columns: [nameColumn, createdAtColumn] }],
    strategy: roleStrategy(function* (object) {
      return [
        ...(yield* validateRules(object, { namespaced: false })),
        ...(yield* validateAggregation(object)),
      ];
    }),
    example: () => ({
      metadata: { name: 'reader' },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
        { nonResourceURLs: ['/healthz'], verbs: ['get'] },
      ],
    }),
  });
}

function* validateAggregation(object: Stored<ClusterRole>): Generator<void, FieldError[]> {
  if (object.aggregationRule === undefined || object.aggregationRule === null) return [];
  const path = 'aggregationRule.clusterRoleSelectors';
  const selectors = object.aggregationRule.clusterRoleSelectors ?? [];
  if (selectors.length === 0) {
    const detail = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
    return [required(path, detail)];
  }
  return yield* flatMapSteps(selectors, (selector, index) => {
    const field = `${path}[${index}]`;
    const errors = validateLabelSelector(selector, field);
    // kube-apiserver cannot build the selector, and reports that as a further error.
    return errors.length === 0 ? [] : [...errors, invalid(field, null, 'invalid label selector.')];
  });
}

const bindingColumns: readonly ColumnDef[] = [
  nameColumn,
  column(
    'Role',
    (object) => `${textAt(object, 'roleRef', 'kind')}/${textAt(object, 'roleRef', 'name')}`,
    { description: 'The role that is granted.' },
  ),
  ageColumn,
  subjectsColumn('Users', 'User'),
  subjectsColumn('Groups', 'Group'),
  subjectsColumn('ServiceAccounts', 'ServiceAccount'),
];

/** RoleBinding: grants a Role of its namespace, or a ClusterRole within its namespace (RBAC-1). */
export const roleBinding = (dialect: Dialect): ResourceDef =>
  bindingKind(dialect, {
    kind: 'RoleBinding',
    scope: 'Namespaced',
    roleKinds: ['Role', 'ClusterRole'],
    subject: { apiGroup: groupOf(dialect), kind: 'User', name: 'jane' },
  });

/** ClusterRoleBinding: grants a ClusterRole in all namespaces. */
export const clusterRoleBinding = (dialect: Dialect): ResourceDef =>
  bindingKind(dialect, {
    kind: 'ClusterRoleBinding',
    scope: 'Cluster',
    roleKinds: ['ClusterRole'],
    subject: { kind: 'ServiceAccount', name: 'bot', namespace: 'default' },
  });

function bindingKind(
  dialect: Dialect,
  options: Pick<ResourceDef, 'kind' | 'scope'> & {
    /** The kinds of roles that it may grant; the first is that of the example. */
    readonly roleKinds: readonly string[];
    readonly subject: JsonObject;
  },
): ResourceDef {
  const { kind, scope, roleKinds, subject } = options;
  const namespaced = scope === 'Namespaced';
  return defineKind<RoleBinding>({
    dialect,
    facts: 'rbac',
    kind,
    scope,
    versions: [
      {
        version: 'v1',
        ...steppedDefaults((object: BindingLike) => fillBinding(object, dialect)),
        columns: bindingColumns,
      },
    ],
    strategy: bindingStrategy({ dialect, roleKinds, namespaced }),
    example: () => ({
      metadata: { name: 'readers', ...(namespaced && { namespace: 'default' }) },
      roleRef: { apiGroup: groupOf(dialect), kind: roleKinds[0] ?? '', name: 'reader' },
      subjects: [subject],
    }),
  });
}

/** A binding of either kind; both have the same members. */
type BindingLike = Stored<RoleBinding>;

/** Fills the groups of the role and of the subjects; service accounts have none. */
function* fillBinding(object: BindingLike, dialect: Dialect): Generator<void, void> {
  const group = groupOf(dialect);
  const { roleRef, subjects } = object;
  if (isObject(roleRef) && (roleRef.apiGroup ?? '') === '') roleRef.apiGroup = group;
  yield* forEachSteps(subjects ?? [], (subject) => {
    const hasGroup = subject.kind === 'User' || subject.kind === 'Group';
    if (hasGroup && (subject.apiGroup ?? '') === '') subject.apiGroup = group;
  });
}

const groupOf = (dialect: Dialect) => dialect.group('rbac.authorization');

function subjectsColumn(name: string, kind: string): ColumnDef {
  return column(
    name,
    (object) =>
      listAt(object, 'subjects')
        .filter((subject) => textAt(subject, 'kind') === kind)
        .map((subject) =>
          kind === 'ServiceAccount'
            ? `${textAt(subject, 'namespace')}/${textAt(subject, 'name')}`
            : textAt(subject, 'name'),
        )
        .join(', '),
    { priority: 1, description: `Subjects of kind ${kind}.` },
  );
}

interface BindingOptions {
  readonly dialect: Dialect;
  /** The kinds of role that the binding can grant. */
  readonly roleKinds: readonly string[];
  readonly namespaced: boolean;
}

/** Returns the strategy of either kind of binding. */
function bindingStrategy(options: BindingOptions): Strategy<BindingLike> {
  return {
    validateName: pathSegment,
    extraMetadataChecks: { '': ['whole', 'whole', 'change'] },
    validateCreate: (_, object) => validateBinding(object, options),
    *validateUpdate(_, object, old) {
      return [
        ...reportedTwice(yield* validateBinding(object, options)),
        ...validateRoleRefImmutable(object, old),
      ];
    },
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    hasStatus: false,
    deleteAnswers: 'status',
  };
}

function* validateBinding(
  object: BindingLike,
  options: BindingOptions,
): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  const group = groupOf(options.dialect);
  const { apiGroup = '', kind = '', name = '' } = object.roleRef ?? {};
  if (apiGroup !== group) errors.push(notSupported('roleRef.apiGroup', apiGroup, [group]));
  if (!options.roleKinds.includes(kind)) {
    errors.push(notSupported('roleRef.kind', kind, options.roleKinds));
  }
  if (name === '') errors.push(required('roleRef.name'));
  else appendAll(errors, ruleErrors('roleRef.name', name, pathSegment));
  const ofSubjects = yield* flatMapSteps(object.subjects ?? [], (subject, index) =>
    validateSubject(subject, { ...options, path: `subjects[${index}]` }),
  );
  return [...errors, ...ofSubjects];
}

function validateSubject(
  subject: Stored<Subject>,
  options: BindingOptions & { path: string },
): FieldError[] {
  const { path, namespaced } = options;
  const { kind = '', name = '', apiGroup = '', namespace = '' } = subject;
  const group = groupOf(options.dialect);
  const errors = name === '' ? [required(`${path}.name`)] : [];
  if (kind === 'ServiceAccount') {
    if (name !== '') appendAll(errors, ruleErrors(`${path}.name`, name, dnsSubdomain));
    if (apiGroup !== '') errors.push(notSupported(`${path}.apiGroup`, apiGroup, ['']));
    if (!namespaced && namespace === '') errors.push(required(`${path}.namespace`));
  } else if (kind === 'User' || kind === 'Group') {
    if (apiGroup !== group) errors.push(notSupported(`${path}.apiGroup`, apiGroup, [group]));
  } else {
    errors.push(notSupported(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group']));
  }
  return errors;
}

function validateRoleRefImmutable(object: BindingLike, old: BindingLike): FieldError[] {
  const ref = object.roleRef ?? {};
  const before = old.roleRef ?? {};
  const parts = ['apiGroup', 'kind', 'name'] as const;
  if (parts.every((part) => (ref[part] ?? '') === (before[part] ?? ''))) return [];
  const [group, kind, name] = parts.map((part) => JSON.stringify(ref[part] ?? ''));
  const shown = `rbac.RoleRef{APIGroup:${group}, Kind:${kind}, Name:${name}}`;
  return [invalidGo('roleRef', () => shown, 'cannot change roleRef')];
}
