import type { Dialect, JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { messageOf, objectOf, objectsOf, textOf, textsOf } from './failure.ts';
import type { Kind } from './kinds.ts';

/** The identity of a user according to the server. */
export interface Subject {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Requests the identity of the user. Rejects like the API. */
export async function whoAmI(api: Api, dialect: Dialect): Promise<Subject> {
  const group = dialect.group('authentication');
  const review = await api.json({
    method: 'POST',
    path: `/apis/${group}/v1/selfsubjectreviews`,
    body: { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' },
  });
  const info = objectOf(objectOf(review, 'status'), 'userInfo');
  return { user: textOf(info, 'username'), groups: textsOf(info, 'groups') };
}

/** An action to check. */
export interface Attempt {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Subresource; empty for the resource itself. */
  readonly subresource: string;
  /** Empty for all namespaces, or for a cluster-scoped kind. */
  readonly namespace: string;
  /** Empty for any name. */
  readonly name: string;
}

/** The decision of the server. */
export interface AccessDecision {
  readonly isAllowed: boolean;
  /** An explicit denial, which other authorizers cannot override. */
  readonly isDenied: boolean;
  readonly reason: string;
  readonly evaluationError: string;
}

/**
 * Checks whether the user or another subject may perform an action. Rejects like the API, with 403
 * if the user may not check other subjects.
 */
export async function canI(
  api: Api,
  options: { readonly dialect: Dialect; readonly attempt: Attempt; readonly subject?: Subject },
): Promise<AccessDecision> {
  const { dialect, attempt, subject } = options;
  const authorization = dialect.group('authorization');
  const [resource, kind] =
    subject === undefined
      ? ['selfsubjectaccessreviews', 'SelfSubjectAccessReview']
      : ['subjectaccessreviews', 'SubjectAccessReview'];
  const review = await api.json({
    method: 'POST',
    path: `/apis/${authorization}/v1/${resource}`,
    body: {
      apiVersion: `${authorization}/v1`,
      kind,
      spec: {
        resourceAttributes: withoutEmpty({ ...attempt }),
        ...(subject === undefined ? {} : { user: subject.user, groups: [...subject.groups] }),
      },
    },
  });
  const status = objectOf(review, 'status');
  return {
    isAllowed: status.allowed === true,
    isDenied: status.denied === true,
    reason: textOf(status, 'reason'),
    evaluationError: textOf(status, 'evaluationError'),
  };
}

function withoutEmpty(members: Record<string, string>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ''));
}

/** The permissions of the user in a namespace. */
export interface OwnRules {
  readonly rules: readonly ResourceRule[];
  /** Non-resource paths and their verbs. */
  readonly paths: readonly { readonly path: string; readonly verbs: readonly string[] }[];
  /** Whether an authorizer cannot list its rules, so that there may be more. */
  readonly isIncomplete: boolean;
  readonly evaluationError: string;
}

/** Lists the permissions of the user in a namespace. Rejects like the API. */
export async function ownRules(
  api: Api,
  { dialect, namespace }: { readonly dialect: Dialect; readonly namespace: string },
): Promise<OwnRules> {
  const authorization = dialect.group('authorization');
  const review = await api.json({
    method: 'POST',
    path: `/apis/${authorization}/v1/selfsubjectrulesreviews`,
    body: {
      apiVersion: `${authorization}/v1`,
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    },
  });
  const status = objectOf(review, 'status');
  return {
    rules: objectsOf(status, 'resourceRules').map(ruleOf),
    paths: objectsOf(status, 'nonResourceRules').flatMap((rule) =>
      textsOf(rule, 'nonResourceURLs').map((path) => ({ path, verbs: textsOf(rule, 'verbs') })),
    ),
    isIncomplete: status.incomplete === true,
    evaluationError: textOf(status, 'evaluationError'),
  };
}

/** The verbs of the matrix, in order of columns. */
export const matrixVerbs = [
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'],
] as const;

/** A cell of the matrix: allowed, allowed for some names, denied, or not a verb of the kind. */
export type MatrixCell =
  | { readonly kind: 'yes' | 'no' | 'none' }
  | { readonly kind: 'named'; readonly names: readonly string[] };

/** The permissions on one kind or subresource. */
export interface MatrixRow {
  readonly kind: Kind;
  /** Subresource; empty for the kind itself. */
  readonly subresource: string;
  /** One cell per verb of `matrixVerbs`. */
  readonly cells: readonly MatrixCell[];
}

/** Builds the matrix of all kinds and verbs from a set of rules. */
export function accessMatrix(
  kinds: readonly Kind[],
  rules: readonly ResourceRule[],
  options: { readonly subresources: 'shown' | 'hidden' },
): MatrixRow[] {
  return kinds
    .filter(({ preferred }) => preferred)
    .flatMap((kind) => [
      matrixRow(rules, { kind, subresource: '', verbs: kind.verbs }),
      ...(options.subresources === 'hidden' ? [] : kind.subresources).map(({ name, verbs }) =>
        matrixRow(rules, { kind, subresource: name, verbs }),
      ),
    ]);
}

function matrixRow(
  rules: readonly ResourceRule[],
  of: { readonly kind: Kind; readonly subresource: string; readonly verbs: readonly string[] },
): MatrixRow {
  const { kind, subresource, verbs } = of;
  const { group, resource } = kind;
  const cells = matrixVerbs.map((verb): MatrixCell => {
    if (!verbs.includes(verb)) return { kind: 'none' };
    const matching = rules.filter((rule) => grants(rule, { verb, group, resource, subresource }));
    if (matching.length === 0) return { kind: 'no' };
    if (matching.some(({ names }) => names.length === 0)) return { kind: 'yes' };
    return { kind: 'named', names: [...new Set(matching.flatMap(({ names }) => names))].sort() };
  });
  return { kind, subresource, cells };
}

/** One rule of a role or review: all of its verbs on all of its resources. */
interface ResourceRule {
  readonly verbs: readonly string[];
  readonly groups: readonly string[];
  /** `pods`, `pods/log`, `*`, or `*` and a subresource. */
  readonly resources: readonly string[];
  /** Empty for any name. */
  readonly names: readonly string[];
}

/** A verb on a resource. */
interface Permission {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
}

/** Parses a rule of a role or review. */
function ruleOf(rule: JsonObject): ResourceRule {
  return {
    verbs: textsOf(rule, 'verbs'),
    groups: textsOf(rule, 'apiGroups'),
    resources: textsOf(rule, 'resources'),
    names: textsOf(rule, 'resourceNames'),
  };
}

/** Whether a rule grants a permission, at least for some names. */
export function grants(rule: ResourceRule, permission: Permission): boolean {
  const { verb, group, resource, subresource } = permission;
  // The name of an object is unknown before it is created.
  if (verb === 'create' && subresource === '' && rule.names.length > 0) return false;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const has = (members: readonly string[], ...any: string[]): boolean =>
    members.some((member) => member === '*' || any.includes(member));
  const every = subresource === '' ? [] : [`*/${subresource}`];
  return has(rule.verbs, verb) && has(rule.groups, group) && has(rule.resources, full, ...every);
}

/** One grant of a verb to a subject. */
interface Grant {
  readonly subject: BoundSubject;
  /** `ClusterRoleBinding/admins`, `RoleBinding/team/editors` */
  readonly binding: string;
  /** `ClusterRole/edit` */
  readonly role: string;
  /** Namespace of the grant; empty for all. */
  readonly namespace: string;
  /** Resource names of the grant; empty for all. */
  readonly names: readonly string[];
}

interface BoundSubject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount';
  readonly name: string;
  /** Namespace of a service account. */
  readonly namespace: string;
}

/** The grants from roles and bindings, and the kinds that could not be read. */
export interface WhoCan {
  readonly grants: readonly Grant[];
  /** Kinds that the user may not list; their grants are missing. */
  readonly unread: readonly { readonly resource: string; readonly message: string }[];
}

interface Rbac {
  readonly clusterroles: readonly JsonObject[];
  readonly clusterrolebindings: readonly JsonObject[];
  readonly roles: readonly JsonObject[];
  readonly rolebindings: readonly JsonObject[];
}

const pageSize = 500;

/**
 * Finds the subjects with a permission according to RBAC roles and bindings: in a namespace, or in
 * all namespaces if `namespace` is empty. Omits grants by other authorizers and the group
 * `system:masters`, which needs no role. Never rejects; the result lists what could not be read.
 */
export async function whoCan(
  api: Api,
  options: {
    readonly dialect: Dialect;
    readonly permission: Permission;
    readonly namespace: string;
  },
): Promise<WhoCan> {
  const { dialect, permission, namespace } = options;
  const root = `/apis/${dialect.group('rbac.authorization')}/v1`;
  const unread: { resource: string; message: string }[] = [];
  const read = async (resource: string, within: string): Promise<readonly JsonObject[]> => {
    try {
      return await listAll(api, `${root}${within}/${resource}`);
    } catch (error) {
      unread.push({ resource, message: messageOf(error) });
      return [];
    }
  };
  const within = `/namespaces/${encodeURIComponent(namespace)}`;
  const inNamespace = async (resource: string) => (namespace === '' ? [] : read(resource, within));
  const [clusterroles, clusterrolebindings, roles, rolebindings] = await Promise.all([
    read('clusterroles', ''),
    read('clusterrolebindings', ''),
    inNamespace('roles'),
    inNamespace('rolebindings'),
  ]);
  const grants = grantsIn({ clusterroles, clusterrolebindings, roles, rolebindings }, permission);
  return { grants, unread };
}

async function listAll(api: Api, path: string): Promise<JsonObject[]> {
  const objects: JsonObject[] = [];
  let token = '';
  do {
    const list = await api.json({ path, query: { limit: pageSize, continue: token } });
    objects.push(...objectsOf(list, 'items'));
    token = textOf(objectOf(list, 'metadata'), 'continue');
  } while (token !== '');
  return objects;
}

function grantsIn(rbac: Rbac, permission: Permission): Grant[] {
  const ofCluster = namesGranting(rbac.clusterroles, permission);
  const ofNamespace = namesGranting(rbac.roles, permission);
  const grantsOf = (binding: JsonObject, kind: string): Grant[] => {
    const reference = objectOf(binding, 'roleRef');
    const role = textOf(reference, 'name');
    const isOfNamespace = textOf(reference, 'kind') === 'Role';
    const names = (isOfNamespace ? ofNamespace : ofCluster).get(role);
    if (names === undefined) return [];
    const metadata = objectOf(binding, 'metadata');
    const namespace = textOf(metadata, 'namespace');
    return objectsOf(binding, 'subjects').map((subject) => ({
      subject: subjectOf(subject),
      binding: [kind, ...(namespace === '' ? [] : [namespace]), textOf(metadata, 'name')].join('/'),
      role: `${isOfNamespace ? 'Role' : 'ClusterRole'}/${role}`,
      namespace,
      names,
    }));
  };
  return [
    ...rbac.clusterrolebindings.flatMap((binding) => grantsOf(binding, 'ClusterRoleBinding')),
    ...rbac.rolebindings.flatMap((binding) => grantsOf(binding, 'RoleBinding')),
  ].sort((left, right) => (subjectText(left.subject) < subjectText(right.subject) ? -1 : 1));
}

/** The roles with the permission, and its resource names; an empty list means all. */
function namesGranting(
  roles: readonly JsonObject[],
  permission: Permission,
): ReadonlyMap<string, readonly string[]> {
  const namesByRole = new Map<string, readonly string[]>();
  for (const role of roles) {
    const rules = objectsOf(role, 'rules')
      .map(ruleOf)
      .filter((rule) => grants(rule, permission));
    if (rules.length === 0) continue;
    const isForAll = rules.some(({ names }) => names.length === 0);
    const names = isForAll ? [] : [...new Set(rules.flatMap((rule) => rule.names))].sort();
    namesByRole.set(textOf(objectOf(role, 'metadata'), 'name'), names);
  }
  return namesByRole;
}

function subjectOf(subject: JsonObject): BoundSubject {
  const kind = textOf(subject, 'kind');
  return {
    kind: kind === 'Group' || kind === 'ServiceAccount' ? kind : 'User',
    name: textOf(subject, 'name'),
    namespace: textOf(subject, 'namespace'),
  };
}

/** Formats a subject: `Group/admins`, `ServiceAccount/team/builder`. */
export function subjectText({ kind, namespace, name }: BoundSubject): string {
  return [kind, ...(namespace === '' ? [] : [namespace]), name].join('/');
}
