import { type PolicyRule, rulesOf, textAt, trimStars } from '@wheelhouse/kinds';
import {
  type ApiObject,
  getOrMake,
  isObject,
  type JsonObject,
  member,
  objectsOf,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Attributes } from '../../../registry/permit.ts';

/** The kinds of which the index consists. */
export type RbacKind = 'Role' | 'ClusterRole' | 'RoleBinding' | 'ClusterRoleBinding';

/** A change of one object: `current`, or `previous` if it was removed. */
export interface RbacChange {
  readonly kind: RbacKind;
  readonly previous?: ApiObject | undefined;
  readonly current?: ApiObject | undefined;
}

/** The values of a list; sets of a few values would multiply the memory of large roles. */
type Values = readonly string[] | ReadonlySet<string>;

/** A rule's lists; an undefined list matches everything. */
interface CompiledRule {
  readonly verbs: Values | undefined;
  readonly groups: Values | undefined;
  /** Includes subresource wildcards (a star, a slash, and the name) as written. */
  readonly resources: Values | undefined;
  readonly names: Values | undefined;
  readonly urls: Values | undefined;
  readonly urlPrefixes: readonly string[];
}

/** Number of values up to which searching a list is as fast as asking a set. */
const listedMax = 8;

const valuesOf = (list: readonly string[]): Values =>
  list.length <= listedMax ? list : new Set(list);

const valuesOrAll = (list: readonly string[]) => (list.includes('*') ? undefined : valuesOf(list));

const contains = (values: Values, value: string): boolean =>
  values instanceof Set ? values.has(value) : (values as readonly string[]).includes(value);

/** Prepares a rule for `ruleAllows`. */
export function compileRule(rule: PolicyRule): CompiledRule {
  return {
    verbs: valuesOrAll(rule.verbs),
    groups: valuesOrAll(rule.apiGroups),
    resources: valuesOrAll(rule.resources),
    names: rule.resourceNames.length === 0 ? undefined : valuesOf(rule.resourceNames),
    urls: valuesOrAll(rule.nonResourceURLs),
    urlPrefixes: rule.nonResourceURLs.filter((url) => url.endsWith('*')).map(trimStars),
  };
}

/** Whether one rule allows a request (AUTHZ-4). */
export function ruleAllows(rule: CompiledRule, attributes: Attributes): boolean {
  if (rule.verbs !== undefined && !contains(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest) return urlMatches(rule, attributes.path);
  if (rule.groups !== undefined && !contains(rule.groups, attributes.group)) return false;
  if (rule.names !== undefined && !contains(rule.names, attributes.name)) return false;
  const { resources } = rule;
  if (resources === undefined) return true;
  const { resource, subresource } = attributes;
  if (subresource === '') return contains(resources, resource);
  return (
    contains(resources, `${resource}/${subresource}`) || contains(resources, `*/${subresource}`)
  );
}

function urlMatches(rule: CompiledRule, path: string): boolean {
  if (rule.urls === undefined || contains(rule.urls, path)) return true;
  return rule.urlPrefixes.some((prefix) => path.startsWith(prefix));
}

/** A role that exists or that a binding refers to; `rules` is undefined while it does not exist. */
export interface RoleSlot {
  readonly roleRef: { readonly kind: string; readonly name: string };
  rules: readonly PolicyRule[] | undefined;
  compiled: readonly CompiledRule[];
}

/** One subject of one binding, stored under the subject's key. */
interface Grant {
  readonly role: RoleSlot;
  /** `ClusterRoleBinding "x" of ClusterRole "y" to User "z"`, for the audit log. */
  readonly describe: () => string;
  /** The error of an invalid subject, which never grants anything. */
  readonly problem: string | undefined;
}

interface IndexedBinding {
  readonly slotKey: string;
  readonly role: RoleSlot;
  readonly grants: readonly { readonly subjectKey: string; readonly grant: Grant }[];
}

/**
 * All roles and bindings, indexed by subject. A lookup costs one map access for the user's name and
 * for each group, at the cluster scope and in the namespace, for any number of other bindings.
 * Example: RoleBinding `b` in `ns` of Role `r` to user `u`
 *
 *     scopes: 'ns' -> bySubject: 'u:u' -> [ grant(role -> slot 'ns/r') ]
 *     slots:  'ns/r' -> { rules: undefined }          until Role `r` arrives and fills the slot
 *
 * A slot exists while a role or a binding uses it, so grants refer to it and decisions need no
 * lookup by name.
 */
export class RbacIndex {
  readonly #scopes = new Map<string, Map<string, Set<Grant>>>();
  readonly #slots = new Map<string, RoleSlot>();
  readonly #slotUsers = new Map<RoleSlot, number>();
  /** The index entries of each binding, to remove them. */
  readonly #bindings = new Map<string, IndexedBinding>();

  /** Applies a change; idempotent. */
  apply(change: RbacChange): void {
    const object = change.current ?? change.previous;
    if (object === undefined) return;
    const name = object.metadata.name ?? '';
    const namespace = object.metadata.namespace ?? '';
    if (change.kind === 'Role' || change.kind === 'ClusterRole') {
      const roleRef = { kind: change.kind, name };
      const place = change.kind === 'Role' ? namespace : '';
      this.#setRole(roleRef, { place, role: change.current });
    } else {
      this.#removeBinding(`${namespace}/${name}`);
      if (change.current !== undefined) this.#addBinding(change.current, { namespace, name });
    }
  }

  /**
   * Calls `visit` for each grant that applies to the user, those of the cluster first, until
   * `stop`.
   */
  visit(user: UserInfo, namespace: string, visit: (grant: Grant) => 'continue' | 'stop'): void {
    if (this.#visitScope('', user, visit) === 'stop' || namespace === '') return;
    this.#visitScope(namespace, user, visit);
  }

  /** The slot of a role reference, if a role or binding uses it. */
  role(roleRef: { kind: string; name: string }, namespace: string): RoleSlot | undefined {
    return this.#slots.get(slotKey(roleRef, namespace));
  }

  #visitScope(
    namespace: string,
    user: UserInfo,
    visit: (grant: Grant) => 'continue' | 'stop',
  ): 'continue' | 'stop' {
    const subjects = this.#scopes.get(namespace);
    if (subjects === undefined) return 'continue';
    if (visitAll(subjects.get(`u:${user.name}`), visit) === 'stop') return 'stop';
    for (const group of user.groups) {
      if (visitAll(subjects.get(`g:${group}`), visit) === 'stop') return 'stop';
    }
    return 'continue';
  }

  #setRole(
    roleRef: { kind: string; name: string },
    { place, role }: { place: string; role: ApiObject | undefined },
  ): void {
    const key = slotKey(roleRef, place);
    const existing = this.#slots.get(key);
    if (role === undefined) {
      if (existing === undefined) return;
      if (existing.rules !== undefined) this.#release(key, existing);
      existing.rules = undefined;
      existing.compiled = [];
      return;
    }
    const slot = existing?.rules === undefined ? this.#acquire(roleRef, place) : existing;
    slot.rules = rulesOf(role);
    slot.compiled = slot.rules.map(compileRule);
  }

  #acquire(roleRef: { kind: string; name: string }, place: string): RoleSlot {
    const key = slotKey(roleRef, place);
    const slot = getOrMake(this.#slots, key, () => ({ roleRef, rules: undefined, compiled: [] }));
    this.#slotUsers.set(slot, (this.#slotUsers.get(slot) ?? 0) + 1);
    return slot;
  }

  #release(key: string, slot: RoleSlot): void {
    const users = (this.#slotUsers.get(slot) ?? 1) - 1;
    if (users > 0) {
      this.#slotUsers.set(slot, users);
    } else {
      this.#slotUsers.delete(slot);
      this.#slots.delete(key);
    }
  }

  #addBinding(binding: ApiObject, { namespace, name }: { namespace: string; name: string }): void {
    const roleRef = roleRefOf(binding);
    const role = this.#acquire(roleRef, namespace);
    const kind = namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding';
    const bindingName = JSON.stringify(namespace === '' ? name : `${name}/${namespace}`);
    const of = `${roleRef.kind} ${JSON.stringify(roleRef.name)}`;
    const grants: { subjectKey: string; grant: Grant }[] = [];
    const scope = this.#scope(namespace);
    for (const subject of subjectsOf(binding)) {
      const { keys, shown, problem } = indexSubject(subject, namespace);
      const describe = () => `${kind} ${bindingName} of ${of} to ${shown}`;
      const describedProblem =
        problem === undefined ? undefined : `${kind} ${bindingName}: ${problem}`;
      const grant: Grant = { role, describe, problem: describedProblem };
      for (const subjectKey of keys) {
        const present = scope.get(subjectKey);
        if (present === undefined) scope.set(subjectKey, new Set([grant]));
        else present.add(grant);
        grants.push({ subjectKey, grant });
      }
    }
    const indexed = { slotKey: slotKey(roleRef, namespace), role, grants };
    this.#bindings.set(`${namespace}/${name}`, indexed);
  }

  #removeBinding(bindingKey: string): void {
    const indexed = this.#bindings.get(bindingKey);
    if (indexed === undefined) return;
    this.#bindings.delete(bindingKey);
    const namespace = bindingKey.slice(0, bindingKey.indexOf('/'));
    const scope = this.#scopes.get(namespace);
    for (const { subjectKey, grant } of indexed.grants) {
      const grants = scope?.get(subjectKey);
      grants?.delete(grant);
      if (grants?.size === 0) scope?.delete(subjectKey);
    }
    if (scope?.size === 0) this.#scopes.delete(namespace);
    this.#release(indexed.slotKey, indexed.role);
  }

  #scope(namespace: string): Map<string, Set<Grant>> {
    return getOrMake(this.#scopes, namespace, () => new Map<string, Set<Grant>>());
  }
}

function visitAll(
  grants: ReadonlySet<Grant> | undefined,
  visit: (grant: Grant) => 'continue' | 'stop',
): 'continue' | 'stop' {
  if (grants !== undefined) for (const grant of grants) if (visit(grant) === 'stop') return 'stop';
  return 'continue';
}

function slotKey(roleRef: { kind: string; name: string }, namespace: string): string {
  const place = roleRef.kind === 'Role' ? namespace : '';
  return `${roleRef.kind}/${place}/${roleRef.name}`;
}

function roleRefOf(binding: ApiObject): { kind: string; name: string } {
  const roleRef = member(binding, 'roleRef');
  if (!isObject(roleRef)) return { kind: '', name: '' };
  return { kind: textAt(roleRef, 'kind'), name: textAt(roleRef, 'name') };
}

const subjectsOf = (binding: ApiObject) => objectsOf(member(binding, 'subjects'));

/**
 * The keys of a subject in the index. An invalid subject (a User or Group with a namespace, or an
 * unknown kind) is indexed under the keys that it probably means, with an error to report on denial
 * (AUTHZ-4).
 */
function indexSubject(
  subject: JsonObject,
  bindingNamespace: string,
): { keys: string[]; shown: string; problem: string | undefined } {
  const kind = textAt(subject, 'kind');
  const name = textAt(subject, 'name');
  const namespace = textAt(subject, 'namespace');
  const shown = `${kind} ${JSON.stringify(name)}`;
  if (kind === 'ServiceAccount') {
    const home = namespace === '' ? bindingNamespace : namespace;
    const account = `ServiceAccount ${JSON.stringify(`${name}/${home}`)}`;
    const keys = home === '' ? [] : [`u:system:serviceaccount:${home}:${name}`];
    return { keys, shown: account, problem: undefined };
  }
  if (kind !== 'User' && kind !== 'Group') {
    const problem = `subject ${shown} has an unknown kind`;
    return { keys: [`u:${name}`, `g:${name}`], shown, problem };
  }
  const problem =
    namespace === ''
      ? undefined
      : `subject ${shown} must not have the namespace ${JSON.stringify(namespace)}`;
  return { keys: [kind === 'User' ? `u:${name}` : `g:${name}`], shown, problem };
}
