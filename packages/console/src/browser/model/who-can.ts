import type { Dialect, JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { messageOf, objectOf, objectsOf, textOf } from './failure.ts';
import { type Granted, grants, ruleOf } from './rules.ts';

/** One way in which somebody has got a verb. */
export interface Grant {
  readonly subject: BoundSubject;
  /** `ClusterRoleBinding/admins`, `RoleBinding/team/editors` */
  readonly binding: string;
  /** `ClusterRole/edit` */
  readonly role: string;
  /** Where it holds; empty: everywhere. */
  readonly namespace: string;
  /** For these names alone; empty: for all. */
  readonly names: readonly string[];
}

export interface BoundSubject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount';
  readonly name: string;
  /** Of a service account. */
  readonly namespace: string;
}

/** Who has what by roles and bindings, and what of these could not be read. */
export interface WhoCan {
  readonly grants: readonly Grant[];
  /** Kinds the user may not list: grants through them are missing. */
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
 * Who may do something by the roles that are bound: in a namespace and everywhere, or everywhere
 * alone for `namespace` empty. What other authorizers allow, and what `system:masters` may, is not
 * in any role. Never rejects: what cannot be read is told.
 */
export async function whoCan(
  api: Api,
  options: { readonly dialect: Dialect; readonly wanted: Granted; readonly namespace: string },
): Promise<WhoCan> {
  const { dialect, wanted, namespace } = options;
  const root = `/apis/${dialect.group('rbac.authorization')}/v1`;
  const unread: { resource: string; message: string }[] = [];
  const read = async (resource: string, within: string): Promise<readonly JsonObject[]> => {
    try {
      return await allOf(api, `${root}${within}/${resource}`);
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
  const found = grantsIn({ clusterroles, clusterrolebindings, roles, rolebindings }, wanted);
  return { grants: found, unread };
}

async function allOf(api: Api, path: string): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  let token = '';
  do {
    const list = await api.json({ path, query: { limit: pageSize, continue: token } });
    found.push(...objectsOf(list, 'items'));
    token = textOf(objectOf(list, 'metadata'), 'continue');
  } while (token !== '');
  return found;
}

function grantsIn(rbac: Rbac, wanted: Granted): Grant[] {
  const ofCluster = namesGranting(rbac.clusterroles, wanted);
  const ofNamespace = namesGranting(rbac.roles, wanted);
  const bound = (binding: JsonObject, kind: string): Grant[] => {
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
    ...rbac.clusterrolebindings.flatMap((binding) => bound(binding, 'ClusterRoleBinding')),
    ...rbac.rolebindings.flatMap((binding) => bound(binding, 'RoleBinding')),
  ].sort((one, other) => (shown(one.subject) < shown(other.subject) ? -1 : 1));
}

/** Roles that grant it, and for which names: none for all. */
function namesGranting(
  roles: readonly JsonObject[],
  wanted: Granted,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const role of roles) {
    const rules = objectsOf(role, 'rules')
      .map(ruleOf)
      .filter((rule) => grants(rule, wanted));
    if (rules.length === 0) continue;
    const isForAll = rules.some(({ names }) => names.length === 0);
    const names = isForAll ? [] : [...new Set(rules.flatMap((rule) => rule.names))].sort();
    found.set(textOf(objectOf(role, 'metadata'), 'name'), names);
  }
  return found;
}

function subjectOf(subject: JsonObject): BoundSubject {
  const kind = textOf(subject, 'kind');
  return {
    kind: kind === 'Group' || kind === 'ServiceAccount' ? kind : 'User',
    name: textOf(subject, 'name'),
    namespace: textOf(subject, 'namespace'),
  };
}

/** A subject as one text: `Group/admins`, `ServiceAccount/team/builder`. */
export function shown({ kind, namespace, name }: BoundSubject): string {
  return [kind, ...(namespace === '' ? [] : [namespace]), name].join('/');
}
