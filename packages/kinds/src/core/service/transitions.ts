import {
  allocatesNodePorts,
  isExternallyAccessible,
  isExternalName,
  mayHaveNodePorts,
  needsHealthCheck,
  nodePortsOf,
  type ServiceSpec,
  sameClusterIps,
  sameFamilies,
} from './spec.ts';

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
