import { decodeJson, parseAccept } from '@wheelhouse/codec';
import {
  acceptedDiscoveryGroups,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';

/** What a server tells of each group version it serves, by `<group>/<version>`. */
export type RemoteVersions = ReadonlyMap<string, JsonObject>;

/** Whether a document's type is that of aggregated discovery. */
export function isAggregated(contentType: string): boolean {
  return parseAccept(contentType).some(({ parameters }) => {
    const isList = parameters.get('as') === 'APIGroupDiscoveryList';
    const isKnown = ['v2', 'v2beta1'].includes(parameters.get('v') ?? '');
    return isList && isKnown && acceptedDiscoveryGroups.includes(parameters.get('g') ?? '');
  });
}

/**
 * Reads another server's aggregated discovery. Only what clients are told of is taken over, and what
 * has another type than it should refuses the whole: throws.
 */
export function readAggregated(body: Buffer): RemoteVersions {
  const found = new Map<string, JsonObject>();
  for (const group of objectsIn(decoded(body), 'items')) {
    const metadata = objectIn(group, 'metadata') ?? {};
    const name = textIn(metadata, 'name');
    for (const version of objectsIn(group, 'versions')) {
      const resources = objectsIn(version, 'resources').map(resourceOf);
      const text = textIn(version, 'version');
      found.set(`${name}/${text}`, { version: text, resources });
    }
  }
  return found;
}

function resourceOf(from: JsonObject): JsonObject {
  const subresources = objectsIn(from, 'subresources').map((one) => ({
    subresource: textIn(one, 'subresource'),
    responseKind: kindOf(objectIn(one, 'responseKind')),
    ...listed(one, 'acceptedTypes', objectsIn(one, 'acceptedTypes').map(kindOf)),
    verbs: textsIn(one, 'verbs'),
  }));
  return {
    resource: textIn(from, 'resource'),
    responseKind: kindOf(objectIn(from, 'responseKind')),
    scope: textIn(from, 'scope'),
    singularResource: textIn(from, 'singularResource'),
    verbs: textsIn(from, 'verbs'),
    ...listed(from, 'shortNames', textsIn(from, 'shortNames')),
    ...listed(from, 'categories', textsIn(from, 'categories')),
    ...listed(from, 'subresources', subresources),
  };
}

/**
 * Reads the list of a version's resources that servers without aggregated discovery give. Throws
 * for anything else.
 */
export function readResourceList(body: Buffer, version: string): JsonObject {
  const list = objectsIn(decoded(body), 'resources');
  const resources = new Map<string, JsonObject & { subresources: JsonObject[] }>();
  for (const one of list) {
    const name = textIn(one, 'name');
    if (!name.includes('/')) resources.set(name, { ...topResource(one, name), subresources: [] });
  }
  for (const one of list) {
    const [name = '', ...rest] = textIn(one, 'name').split('/');
    if (rest.length === 0) continue;
    const orphan = { resource: name, responseKind: kindOf(undefined), scope: scopeOf(one) };
    const parent = resources.get(name) ?? { ...orphan, subresources: [] };
    resources.set(name, parent);
    if (parent['scope'] !== scopeOf(one)) {
      throw new Error(`the scopes of ${name} and ${name}/${rest.join('/')} do not match`);
    }
    parent.subresources.push({
      subresource: rest.join('/'),
      responseKind: kindOf(textIn(one, 'kind') === '' ? undefined : one),
      verbs: textsIn(one, 'verbs'),
    });
  }
  return {
    version,
    resources: [...resources.values()].map(({ subresources, ...rest }) =>
      subresources.length === 0 ? rest : { ...rest, subresources },
    ),
  };
}

function topResource(one: JsonObject, name: string): JsonObject {
  return {
    resource: name,
    responseKind: kindOf(one),
    scope: scopeOf(one),
    singularResource: textIn(one, 'singularName'),
    verbs: textsIn(one, 'verbs'),
    ...listed(one, 'shortNames', textsIn(one, 'shortNames')),
    ...listed(one, 'categories', textsIn(one, 'categories')),
  };
}

function scopeOf(one: JsonObject): string {
  const namespaced = member(one, 'namespaced') ?? false;
  if (typeof namespaced !== 'boolean') throw wrongType('namespaced');
  return namespaced ? 'Namespaced' : 'Cluster';
}

function kindOf(from: JsonObject | undefined): JsonObject {
  const read = (name: string) => (from === undefined ? '' : textIn(from, name));
  return { group: read('group'), version: read('version'), kind: read('kind') };
}

function listed(from: JsonObject, name: string, values: JsonValue[]): JsonObject {
  const original = member(from, name);
  return original === undefined || original === null || values.length === 0
    ? {}
    : { [name]: values };
}

function decoded(body: Buffer): JsonObject {
  const { value } = decodeJson(body);
  if (!isObject(value)) throw new Error('a discovery document is an object');
  return value;
}

const wrongType = (name: string) =>
  new Error(`${JSON.stringify(name)} of a discovery document has another type`);

function objectIn(from: JsonObject, name: string): JsonObject | undefined {
  const value = member(from, name) ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw wrongType(name);
}

function listIn(from: JsonObject, name: string): readonly JsonValue[] {
  const value = member(from, name) ?? [];
  if (!Array.isArray(value)) throw wrongType(name);
  return value;
}

function objectsIn(from: JsonObject, name: string): readonly JsonObject[] {
  return listIn(from, name).map((one) => {
    if (!isObject(one)) throw wrongType(name);
    return one;
  });
}

function textIn(from: JsonObject, name: string): string {
  const value = member(from, name) ?? '';
  if (typeof value !== 'string') throw wrongType(name);
  return value;
}

function textsIn(from: JsonObject, name: string): string[] {
  return listIn(from, name).map((one) => {
    if (typeof one !== 'string') throw wrongType(name);
    return one;
  });
}
