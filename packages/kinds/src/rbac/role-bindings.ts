import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalidGo,
  isObject,
  notSupported,
  pathSegment,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ClusterRoleBinding, RoleBinding, Subject } from '../gen/types/rbac/v1.ts';
import type { ColumnDef, ResourceDef, Strategy } from '../resource-def.ts';
import { flatMapSteps, reportedTwice } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

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
export function roleBinding(dialect: Dialect): ResourceDef {
  const group = dialect.group('rbac.authorization');
  return defineKind<RoleBinding>({
    dialect,
    facts: 'rbac',
    kind: 'RoleBinding',
    resource: 'rolebindings',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillBinding(object, dialect),
        columns: bindingColumns,
      },
    ],
    strategy: bindingStrategy({
      dialect,
      roleKinds: ['Role', 'ClusterRole'],
      namespaced: true,
    }),
    example: () => ({
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'readers', namespace: 'default' },
      roleRef: { apiGroup: group, kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup: group, kind: 'User', name: 'jane' }],
    }),
  });
}

/** A binding of either kind; both have the same members. */
type BindingLike = Stored<RoleBinding>;

/** Fills the groups of the role and of the subjects; service accounts have none. */
function fillBinding(object: BindingLike, dialect: Dialect): void {
  const group = groupOf(dialect);
  const { roleRef, subjects } = object;
  if (isObject(roleRef) && (roleRef.apiGroup ?? '') === '') roleRef.apiGroup = group;
  for (const subject of subjects ?? []) {
    const hasGroup = subject.kind === 'User' || subject.kind === 'Group';
    if (hasGroup && (subject.apiGroup ?? '') === '') subject.apiGroup = group;
  }
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

/** ClusterRoleBinding: grants a ClusterRole in all namespaces. */
export function clusterRoleBinding(dialect: Dialect): ResourceDef {
  const group = dialect.group('rbac.authorization');
  return defineKind<ClusterRoleBinding>({
    dialect,
    facts: 'rbac',
    kind: 'ClusterRoleBinding',
    resource: 'clusterrolebindings',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillBinding(object, dialect),
        columns: bindingColumns,
      },
    ],
    strategy: bindingStrategy({ dialect, roleKinds: ['ClusterRole'], namespaced: false }),
    example: () => ({
      apiVersion: `${group}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'readers' },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'bot', namespace: 'default' }],
    }),
  });
}
