import {
  type ApiObject,
  asApiObject,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';

/** How to reduce objects to what quotas measure, by resource; other resources are only counted. */
const contents: Readonly<Record<string, (object: ApiObject) => JsonObject>> = {
  pods: (pod) => ({ spec: podPart(members(pod['spec'])), status: pick(pod['status'], ['phase']) }),
  services: ({ spec }) => ({
    spec: pick(spec, ['type', 'ports', 'allocateLoadBalancerNodePorts']),
  }),
  persistentvolumeclaims: ({ spec }) => ({ spec: pick(spec, ['storageClassName', 'resources']) }),
};

const podMembers = [
  'overhead',
  'resources',
  'priorityClassName',
  'activeDeadlineSeconds',
  'affinity',
];
const containerMembers = ['name', 'resources', 'restartPolicy'];

function podPart(spec: JsonObject): JsonObject {
  const containers = (list: JsonValue | undefined) =>
    Array.isArray(list) ? list.map((container) => pick(container, containerMembers)) : [];
  return {
    ...pick(spec, podMembers),
    containers: containers(spec['containers']),
    initContainers: containers(spec['initContainers']),
  };
}

/**
 * Returns the part of an object that quotas measure, so that reservations hold little, and nothing
 * that is encrypted at rest.
 */
export function countedPart(resource: string, object: ApiObject): ApiObject {
  const { apiVersion, kind, metadata } = object;
  const { labels: _, managedFields: __, annotations = {}, ...rest } = metadata;
  const isClaim = resource === 'persistentvolumeclaims';
  const counted = isClaim ? { ...rest, annotations } : rest;
  const content = Object.hasOwn(contents, resource) ? contents[resource]?.(object) : undefined;
  return asApiObject({ apiVersion, kind, metadata: counted, ...content });
}

function members(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function pick(value: JsonValue | undefined, names: readonly string[]): JsonObject {
  const from = members(value);
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(from, name) ? [[name, from[name]]] : [])),
  );
}
