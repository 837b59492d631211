import { type PolicyRule, rulesSteps, textAt, trimStars } from '@wheelhouse/kinds';
import {
  type ApiObject,
  cut,
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

/** The coordinates of a role or binding. */
export interface RbacPlace {
  readonly kind: RbacKind;
  /** Empty for a kind of the cluster. */
  readonly namespace: string;
  readonly name: string;
  /** Identifies the object among those of all four kinds. */
  readonly key: string;
}

/** Returns the place of an object by its key in the watch cache of its kind. */
export function placeOf(kind: RbacKind, cacheKey: string): RbacPlace {
  const isOfCluster = kind === 'ClusterRole' || kind === 'ClusterRoleBinding';
  if (isOfCluster) return { kind, namespace: '', name: cacheKey, key: `${kind}//${cacheKey}` };
  const [namespace, name = ''] = cut(cacheKey, '/');
  return { kind, namespace, name, key: `${kind}/${cacheKey}` };
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

const none: readonly string[] = [];

const prefixesOf = (urls: readonly string[]) =>
  urls.filter((url) => url.endsWith('*')).map(trimStars);

/** Prepares a rule for `ruleAllows`. */
export function compileRule(rule: PolicyRule): CompiledRule {
  return {
    verbs: valuesOrAll(rule.verbs),
    groups: valuesOrAll(rule.apiGroups),
    resources: valuesOrAll(rule.resources),
    names: rule.resourceNames.length === 0 ? undefined : valuesOf(rule.resourceNames),
    urls: valuesOrAll(rule.nonResourceURLs),
    urlPrefixes: rule.nonResourceURLs.length === 0 ? none : prefixesOf(rule.nonResourceURLs),
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
  /** The `key` of the role's place. */
  readonly key: string;
  readonly roleRef: { readonly kind: string; readonly name: string };
  rules: readonly PolicyRule[] | undefined;
  compiled: readonly CompiledRule[];
}

/** A binding whose grants are in the index. All of them begin and end to apply at once. */
interface Binding {
  /** The `key` of the binding's place. */
  readonly key: string;
  /** `ClusterRoleBinding "x" of ClusterRole "y"`, for the audit log. */
  readonly shown: string;
  readonly role: RoleSlot;
  readonly grants: { readonly subjectKey: string; readonly grant: Grant }[];
  isActive: boolean;
}

/** One subject of one binding, stored under the subject's key. */
export interface Grant {
  readonly binding: Binding;
  /** `User "z"`, for the audit log. */
  readonly subject: string;
  /** The error of an invalid subject, which never grants anything. */
  readonly problem: string | undefined;
}

/** Returns `ClusterRoleBinding "x" of ClusterRole "y" to User "z"`, for the audit log. */
export const describeGrant = ({ binding, subject }: Grant): string =>
  `${binding.shown} to ${subject}`;

/**
 * All roles and bindings, indexed by subject. A lookup costs one map access for the user's name and
 * for each group, at the cluster scope and in the namespace, for any number of other bindings.
 * Example: RoleBinding `b` in `ns` of Role `r` to user `u`
 *
 *     scopes: 'ns' -> bySubject: 'u:u' -> [ grant(binding -> role -> slot 'Role/ns/r') ]
 *     slots:  'Role/ns/r' -> { rules: undefined }     until Role `r` arrives and fills the slot
 *
 * A slot exists while a role or a binding uses it, so grants refer to it and decisions need no
 * lookup by name.
 */
export class RbacIndex {
  readonly #scopes = new Map<string, Map<string, Set<Grant>>>();
  readonly #slots = new Map<string, RoleSlot>();
  readonly #slotUsers = new Map<RoleSlot, number>();
  readonly #bindings = new Map<string, Binding>();

  /**
   * Sets an object, or removes it if it is undefined, in steps (TRUST-2). One of the steps replaces
   * the previous object as a whole; visitors see that object before, and the new one afterwards.
   * The steps of different objects may alternate, but not those of one object.
   */
  *setSteps(place: RbacPlace, object: ApiObject | undefined): Generator<void, void> {
    if (place.kind === 'Role' || place.kind === 'ClusterRole') yield* this.#setRole(place, object);
    else yield* this.#setBinding(place, object);
  }

  /** Number of grants of a binding; 0 if it does not exist. */
  grantsOf({ key }: RbacPlace): number {
    return this.#bindings.get(key)?.grants.length ?? 0;
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

  *#setRole(place: RbacPlace, role: ApiObject | undefined): Generator<void, void> {
    const { key } = place;
    if (role === undefined) {
      const slot = this.#slots.get(key);
      if (slot?.rules === undefined) return;
      slot.rules = undefined;
      slot.compiled = [];
      this.#release(slot);
      return;
    }
    const rules = yield* rulesSteps(role);
    const compiled: CompiledRule[] = [];
    for (const rule of rules) {
      compiled.push(compileRule(rule));
      yield;
    }
    const existing = this.#slots.get(key);
    const slot = existing?.rules === undefined ? this.#acquire(place, key) : existing;
    slot.rules = rules;
    slot.compiled = compiled;
  }

  #acquire({ kind, name }: { kind: string; name: string }, key: string): RoleSlot {
    const slot = getOrMake<string, RoleSlot>(this.#slots, key, () => ({
      key,
      roleRef: { kind, name },
      rules: undefined,
      compiled: [],
    }));
    this.#slotUsers.set(slot, (this.#slotUsers.get(slot) ?? 0) + 1);
    return slot;
  }

  #release(slot: RoleSlot): void {
    const users = (this.#slotUsers.get(slot) ?? 1) - 1;
    if (users > 0) {
      this.#slotUsers.set(slot, users);
    } else {
      this.#slotUsers.delete(slot);
      this.#slots.delete(slot.key);
    }
  }

  *#setBinding(place: RbacPlace, object: ApiObject | undefined): Generator<void, void> {
    const { key } = place;
    const next = object === undefined ? undefined : yield* this.#addGrants(place, object);
    const previous = this.#bindings.get(key);
    if (previous !== undefined) previous.isActive = false;
    if (next === undefined) {
      this.#bindings.delete(key);
    } else {
      next.isActive = true;
      this.#bindings.set(key, next);
    }
    if (previous !== undefined) yield* this.#removeGrants(place, previous);
  }

  /** Adds the grants of a binding, which does not apply yet. */
  *#addGrants(place: RbacPlace, object: ApiObject): Generator<void, Binding> {
    const { kind, namespace, name, key } = place;
    const roleRef = roleRefOf(object);
    const role = this.#acquire(roleRef, slotKey(roleRef, namespace));
    const shownName = JSON.stringify(namespace === '' ? name : `${name}/${namespace}`);
    const shown = `${kind} ${shownName} of ${roleRef.kind} ${JSON.stringify(roleRef.name)}`;
    const binding: Binding = { key, shown, role, grants: [], isActive: false };
    for (const subject of subjectsOf(object)) {
      const { keys, shown: shownSubject, problem } = indexSubject(subject, namespace);
      const grant: Grant = {
        binding,
        subject: shownSubject,
        problem: problem === undefined ? undefined : `${kind} ${shownName}: ${problem}`,
      };
      const scope = this.#scope(namespace);
      for (const subjectKey of keys) {
        const present = scope.get(subjectKey);
        if (present === undefined) scope.set(subjectKey, new Set([grant]));
        else present.add(grant);
        binding.grants.push({ subjectKey, grant });
      }
      yield;
    }
    return binding;
  }

  /** Removes the grants of a binding that no longer applies. */
  *#removeGrants({ namespace }: RbacPlace, binding: Binding): Generator<void, void> {
    this.#release(binding.role);
    for (const { subjectKey, grant } of binding.grants) {
      const scope = this.#scopes.get(namespace);
      const grants = scope?.get(subjectKey);
      grants?.delete(grant);
      if (grants?.size === 0) scope?.delete(subjectKey);
      if (scope?.size === 0) this.#scopes.delete(namespace);
      yield;
    }
  }

  #scope(namespace: string): Map<string, Set<Grant>> {
    return getOrMake(this.#scopes, namespace, () => new Map<string, Set<Grant>>());
  }
}

function visitAll(
  grants: ReadonlySet<Grant> | undefined,
  visit: (grant: Grant) => 'continue' | 'stop',
): 'continue' | 'stop' {
  if (grants === undefined) return 'continue';
  for (const grant of grants) {
    if (grant.binding.isActive && visit(grant) === 'stop') return 'stop';
  }
  return 'continue';
}

function slotKey(roleRef: { kind: string; name: string }, namespace: string): string {
  return `${roleRef.kind}/${roleRef.kind === 'Role' ? namespace : ''}/${roleRef.name}`;
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
