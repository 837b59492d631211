import { isObject, type JsonObject, type JsonValue, jsonObject } from '../base/json.ts';

export interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
}
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}
export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

/** `v1` for the core group, else `group/version`. */
export function apiVersionOf(gv: GroupVersion): string {
  return gv.group === '' ? gv.version : `${gv.group}/${gv.version}`;
}

/** Splits an apiVersion; undefined when it has more than one slash or is empty. */
export function parseApiVersion(apiVersion: string): GroupVersion | undefined {
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return apiVersion === '' ? undefined : { group: '', version: apiVersion };
  if (apiVersion.indexOf('/', slash + 1) >= 0) return undefined;
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** Versions of the core group may be written with a slash (`/v1`): gives them as they are shown. */
export function shownApiVersion(apiVersion: string): string {
  return apiVersion.lastIndexOf('/') === 0 ? apiVersion.slice(1) : apiVersion;
}

/**
 * The items of a list, as it is answered or written in a manifest; undefined for other objects.
 * Items of lists of built-in kinds leave out the type that the list implies (API-2): it is filled in.
 * A `List` implies none.
 */
export function itemsOfList(object: JsonObject): readonly JsonValue[] | undefined {
  const { apiVersion, kind, items } = object;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return undefined;
  const itemKind = kind.slice(0, -'List'.length);
  if (itemKind === '') return items;
  return items.map((item) => (isObject(item) ? { apiVersion, kind: itemKind, ...item } : item));
}

export interface OwnerReference extends JsonObject {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry extends JsonObject {
  manager?: string;
  operation: 'Apply' | 'Update';
  apiVersion: string;
  time?: string;
  fieldsType: 'FieldsV1';
  fieldsV1: JsonObject;
  subresource?: string;
}

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

/** Any decoded API object that has metadata. Mutable: a request owns the one it decoded. */
export interface ApiObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/**
 * A decoded value as an API object; adds empty metadata where it has none. What decoders of kinds
 * return has apiVersion and kind as texts.
 * @throws TypeError for what is no JSON object
 */
export function asApiObject(value: object | JsonValue | undefined): ApiObject {
  const object = jsonObject(value);
  if (hasMetadata(object)) return object;
  object.metadata = {};
  return asApiObject(object);
}

const hasMetadata = (object: JsonObject): object is ApiObject => isObject(object.metadata);

/** Who makes a request; values are opaque to everything but authorization. */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** What a request asks for, as every gate looks at it; what it has not is empty. */
export interface RequestSubject {
  /** Lower-case service verb for resource requests; the lower-case HTTP method otherwise. */
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

/** What tells a request that may last as long as its client likes. */
interface Lasting {
  readonly isResourceRequest: boolean;
  readonly verb: string;
  readonly subresource: string;
  readonly path: string;
}

const longVerbs = new Set(['watch', 'proxy']);
const longSubresources = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/** Whether a request may take as long as it likes, its answer being a stream: as upstream tells it. */
export function isLongRunning({ isResourceRequest, verb, subresource, path }: Lasting): boolean {
  if (!isResourceRequest) return path.startsWith('/debug/pprof/');
  return longVerbs.has(verb) || longSubresources.has(subresource);
}

const namePrefix = 'system:node:';
const group = 'system:nodes';

/**
 * The node a user is: one named `system:node:<name>` in group `system:nodes` (AUTHZ-9). Undefined
 * for anybody else; empty for a node that does not say which.
 */
export function nodeOfUser(user: UserInfo): string | undefined {
  if (!user.name.startsWith(namePrefix) || !user.groups.includes(group)) return undefined;
  return user.name.slice(namePrefix.length);
}
