import type { ApiObject } from '@wheelhouse/machinery';
import { same } from '../../rules/checks.ts';

/** A port of a Service. */
export type ServicePort = {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port?: number;
  targetPort?: number | string;
  nodePort?: number;
};

/** The spec of a Service in the stored version. */
export type ServiceSpec = {
  type?: string;
  ports?: ServicePort[];
  selector?: { [key: string]: string };
  clusterIP?: string;
  clusterIPs?: string[];
  externalIPs?: string[];
  ipFamilies?: string[];
  ipFamilyPolicy?: string;
  externalName?: string;
  externalTrafficPolicy?: string;
  internalTrafficPolicy?: string;
  healthCheckNodePort?: number;
  allocateLoadBalancerNodePorts?: boolean;
  loadBalancerClass?: string;
  loadBalancerIP?: string;
  loadBalancerSourceRanges?: string[];
  sessionAffinity?: string;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  trafficDistribution?: string;
};

/** A Service with the members that its rules use. */
export interface Service extends ApiObject {
  spec: ServiceSpec;
}

/** The object as a Service; adds a spec if it has none. */
export function asService(object: ApiObject): Service {
  const service = object as Service;
  service.spec ??= {};
  return service;
}

const typesWithAddress = new Set(['ClusterIP', 'NodePort', 'LoadBalancer']);

/** The `clusterIP` of a headless Service. */
export const noAddress = 'None';

/** Whether the Service is an alias of a DNS name, without addresses and endpoints. */
export const isExternalName = (spec: ServiceSpec): boolean => spec.type === 'ExternalName';

/** Whether the type has cluster IPs; `None` counts as one. */
export const needsClusterIp = (spec: ServiceSpec): boolean => typesWithAddress.has(spec.type ?? '');

/** Whether the Service deliberately has no address. */
export const isHeadless = ({ clusterIPs = [] }: ServiceSpec): boolean =>
  clusterIPs.length === 1 && clusterIPs[0] === noAddress;

/** Whether ports that request no node port are allocated one. */
export const allocatesNodePorts = (spec: ServiceSpec): boolean =>
  spec.type === 'NodePort' ||
  (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);

/** Whether the type can have node ports, allocated or requested. */
export const mayHaveNodePorts = (spec: ServiceSpec): boolean =>
  spec.type === 'NodePort' || spec.type === 'LoadBalancer';

/** Whether load balancers check the health of nodes by a port of their own. */
export const needsHealthCheck = (spec: ServiceSpec): boolean =>
  spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';

/** Whether a node port, a load balancer, or an external address exposes the Service. */
export const isExternallyAccessible = (spec: ServiceSpec): boolean =>
  mayHaveNodePorts(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs ?? []).length > 0);

/** Whether two specs have the same cluster IPs in the same order; an absent list is empty. */
export const sameClusterIps = (left: ServiceSpec, right: ServiceSpec): boolean =>
  same(left.clusterIPs ?? [], right.clusterIPs ?? []);

/** Whether two specs have the same IP families in the same order; an absent list is empty. */
export const sameFamilies = (left: ServiceSpec, right: ServiceSpec): boolean =>
  same(left.ipFamilies ?? [], right.ipFamilies ?? []);

/** The node ports in a spec, with repetitions. */
export const nodePortsOf = ({ ports = [] }: ServiceSpec): readonly number[] =>
  ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : [nodePort]));

/**
 * Makes `clusterIPs` consistent with `clusterIP` in place, because older clients write only that.
 */
export function syncClusterIps(spec: ServiceSpec, old: ServiceSpec | undefined): void {
  const single = spec.clusterIP ?? '';
  if (old === undefined) {
    if (single !== '' && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [single];
    return;
  }
  const before = old.clusterIP ?? '';
  const list = old.clusterIPs ?? [];
  if (list.length > 0 && (spec.clusterIPs ?? []).length === 0 && before === single) {
    spec.clusterIPs = [...list];
  }
  if (before === single || !sameClusterIps(old, spec)) return;
  if (before !== '' && single === '') delete spec.clusterIPs;
  else spec.clusterIPs = [single];
}

/** Restores allocated values that an update omits, in place. */
export function keepAllocated(spec: ServiceSpec, old: ServiceSpec): void {
  if (!isExternalName(old) && !isExternalName(spec)) keepAddresses(spec, old);
  if (allocatesNodePorts(old) && allocatesNodePorts(spec)) keepNodePorts(spec, old);
  if (needsHealthCheck(old) && needsHealthCheck(spec) && (spec.healthCheckNodePort ?? 0) === 0) {
    setOrDelete(spec, 'healthCheckNodePort', old.healthCheckNodePort);
  }
}

function keepAddresses(spec: ServiceSpec, old: ServiceSpec): void {
  if ((spec.clusterIP ?? '') === '') setOrDelete(spec, 'clusterIP', old.clusterIP);
  const before = old.clusterIPs ?? [];
  if ((spec.clusterIPs ?? []).length === 0 && before.length > 0) spec.clusterIPs = [...before];
}

/** Restores the node port of each port by its name, unless another port of the Service has it. */
function keepNodePorts(spec: ServiceSpec, old: ServiceSpec): void {
  const now = new Set(nodePortsOf(spec));
  const used = new Set(nodePortsOf(old).filter((port) => now.has(port)));
  const oldNodePorts = new Map(
    (old.ports ?? []).map((port) => [port.name ?? '', port.nodePort ?? 0]),
  );
  for (const port of spec.ports ?? []) {
    const before = oldNodePorts.get(port.name ?? '') ?? 0;
    if ((port.nodePort ?? 0) !== 0 || before === 0 || used.has(before)) continue;
    port.nodePort = before;
    used.add(before);
  }
}

/**
 * Drops unchanged members that do not apply to the new type, in place; validation rejects those
 * that the client has changed.
 */
export function dropTypeDependent(spec: ServiceSpec, old: ServiceSpec): void {
  if (!isExternalName(old) && isExternalName(spec)) dropAddresses(spec, old);
  if (mayHaveNodePorts(old) && !mayHaveNodePorts(spec) && addsNoNodePort(spec, old)) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (needsHealthCheck(old) && !needsHealthCheck(spec))
    dropIfSame(spec, old, 'healthCheckNodePort');
  if (old.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    dropIfSame(spec, old, 'allocateLoadBalancerNodePorts');
    dropIfSame(spec, old, 'loadBalancerClass');
  }
  if (isExternallyAccessible(old) && !isExternallyAccessible(spec)) {
    dropIfSame(spec, old, 'externalTrafficPolicy');
  }
}

function dropAddresses(spec: ServiceSpec, old: ServiceSpec): void {
  if (old.clusterIP === spec.clusterIP && sameClusterIps(old, spec)) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (sameFamilies(old, spec)) delete spec.ipFamilies;
  dropIfSame(spec, old, 'ipFamilyPolicy');
}

function addsNoNodePort(spec: ServiceSpec, old: ServiceSpec): boolean {
  const before = new Set(nodePortsOf(old));
  return nodePortsOf(spec).every((port) => before.has(port));
}

function dropIfSame(spec: ServiceSpec, old: ServiceSpec, name: keyof ServiceSpec): void {
  if (spec[name] === old[name]) delete spec[name];
}

function setOrDelete<Name extends keyof ServiceSpec>(
  spec: ServiceSpec,
  name: Name,
  value: ServiceSpec[Name] | undefined,
): void {
  if (value === undefined) delete spec[name];
  else spec[name] = value;
}
