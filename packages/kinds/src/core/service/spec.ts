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

export const mayHaveNodePorts = (spec: ServiceSpec): boolean =>
  spec.type === 'NodePort' || spec.type === 'LoadBalancer';

/** Whether load balancers check the health of nodes by a port of their own. */
export const needsHealthCheck = (spec: ServiceSpec): boolean =>
  spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';

/** Whether a node port, a load balancer, or an external address exposes the Service. */
export const isExternallyAccessible = (spec: ServiceSpec): boolean =>
  mayHaveNodePorts(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs ?? []).length > 0);

export const sameClusterIps = (left: ServiceSpec, right: ServiceSpec): boolean =>
  same(left.clusterIPs ?? [], right.clusterIPs ?? []);

export const sameFamilies = (left: ServiceSpec, right: ServiceSpec): boolean =>
  same(left.ipFamilies ?? [], right.ipFamilies ?? []);

/** The node ports in a spec, with repetitions. */
export const nodePortsOf = ({ ports = [] }: ServiceSpec): readonly number[] =>
  ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : [nodePort]));
