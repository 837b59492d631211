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
 * Handles members that a client omits, or leaves in place although they have lost their meaning.
 * All functions change the new spec in place.
 */

/** Older clients write only `clusterIP`: keeps `clusterIPs` consistent with it. */
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

/** Keeps values that the server chose when an update omits them. */
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

/** A port keeps the node port of its name unless another port of the Service now has it. */
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
 * Drops members that do not apply to the new type, unless the client changed them too; validation
 * then rejects them.
 */
export function dropTypeDependent(spec: ServiceSpec, old: ServiceSpec): void {
  if (!isExternalName(old) && isExternalName(spec)) dropAddresses(spec, old);
  if (mayHaveNodePorts(old) && !mayHaveNodePorts(spec) && sameNodePorts(spec, old)) {
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

function sameNodePorts(one: ServiceSpec, other: ServiceSpec): boolean {
  const [left, right] = [new Set(nodePortsOf(one)), new Set(nodePortsOf(other))];
  return left.size === right.size && [...left].every((port) => right.has(port));
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
