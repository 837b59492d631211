import { isObject, type JsonObject, type JsonValue, jsonObject } from '../base/json.ts';

/** An API group and a version. */
export interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
}
/** A resource of an API group. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}
/** A kind of an API group. */
export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

/** Returns `v1` for the core group, otherwise `group/version`. */
export function apiVersionOf(gv: GroupVersion): string {
  return gv.group === '' ? gv.version : `${gv.group}/${gv.version}`;
}

/** Splits an apiVersion; undefined if it is empty or has more than one slash. */
export function parseApiVersion(apiVersion: string): GroupVersion | undefined {
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return apiVersion === '' ? undefined : { group: '', version: apiVersion };
  if (apiVersion.indexOf('/', slash + 1) >= 0) return undefined;
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** Normalizes an apiVersion: versions of the core group may be written with a slash (`/v1`). */
export function normalizeApiVersion(apiVersion: string): string {
  return apiVersion.lastIndexOf('/') === 0 ? apiVersion.slice(1) : apiVersion;
}

/**
 * Returns the items of a list from a response or a manifest; undefined for other objects. Items of
 * built-in kinds omit the type that the list implies (API-2), which is filled in. A `List` implies
 * none.
 */
export function itemsOfList(object: JsonObject): readonly JsonValue[] | undefined {
  const { apiVersion, kind, items } = object;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return undefined;
  const itemKind = kind.slice(0, -'List'.length);
  if (itemKind === '') return items;
  return items.map((item) => (isObject(item) ? { apiVersion, kind: itemKind, ...item } : item));
}

/** An owner of an object, as `metadata.ownerReferences` lists it. */
export interface OwnerReference extends JsonObject {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The fields that one manager owns in one version, as `metadata.managedFields` lists them. */
export interface ManagedFieldsEntry extends JsonObject {
  manager?: string;
  operation: 'Apply' | 'Update';
  apiVersion: string;
  time?: string;
  fieldsType: 'FieldsV1';
  fieldsV1: JsonObject;
  subresource?: string;
}

/** The metadata of an object. */
export interface ObjectMeta extends JsonObject {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: { [key: string]: string };
  annotations?: { [key: string]: string };
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** A decoded API object with metadata. It is mutable: a request owns the object that it decoded. */
export interface ApiObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/**
 * Casts a decoded value to an API object and adds empty metadata if it has none. Decoders of kinds
 * guarantee that apiVersion and kind are strings.
 * @throws TypeError if it is not a JSON object
 */
export function asApiObject(value: object | JsonValue | undefined): ApiObject {
  const object = jsonObject(value);
  if (hasMetadata(object)) return object;
  object.metadata = {};
  return asApiObject(object);
}

const hasMetadata = (object: JsonObject): object is ApiObject => isObject(object.metadata);

/** The user who makes a request. Only authorization interprets the values. */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** The target of a request for the gates; absent parts are empty. */
export interface RequestSubject {
  /** The API verb of a resource request; otherwise the HTTP method in lower case. */
  readonly verb: string;
  readonly path: string;
  readonly isResourceRequest: boolean;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
}

/** The attributes that decide whether a request is long-running. */
interface Lasting {
  readonly isResourceRequest: boolean;
  readonly verb: string;
  readonly subresource: string;
  readonly path: string;
}

const longVerbs = new Set(['watch', 'proxy']);
const longSubresources = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/**
 * Whether a request is long-running, by kube-apiserver's rule: its response is a stream of
 * unlimited duration.
 */
export function isLongRunning({ isResourceRequest, verb, subresource, path }: Lasting): boolean {
  if (!isResourceRequest) return path.startsWith('/debug/pprof/');
  return longVerbs.has(verb) || longSubresources.has(subresource);
}

/** Whether a verb only reads; every other verb counts as mutating. */
export function isReadOnly(verb: string): boolean {
  return verb === 'get' || verb === 'list' || verb === 'watch';
}

const namePrefix = 'system:node:';
const group = 'system:nodes';

/**
 * Returns the node that a user represents: `system:node:<name>` in group `system:nodes` (AUTHZ-9).
 * Undefined for other users; empty for a node without a name.
 */
export function nodeOfUser(user: UserInfo): string | undefined {
  if (!user.name.startsWith(namePrefix) || !user.groups.includes(group)) return undefined;
  return user.name.slice(namePrefix.length);
}
