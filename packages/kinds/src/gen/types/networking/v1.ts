/** The types of `networking/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { TypedLocalObjectReference } from '../core/v1.ts';
import type { Embedded, IntOrString, LabelSelector, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type NetworkPolicy = {
  apiVersion: string;
  kind: 'NetworkPolicy';
  metadata: ObjectMeta;
  spec?: NetworkPolicySpec;
};
export type NetworkPolicySpec = {
  podSelector: LabelSelector;
  ingress?: NetworkPolicyIngressRule[];
  egress?: NetworkPolicyEgressRule[];
  policyTypes?: ('Egress' | 'Ingress')[];
};
export type NetworkPolicyIngressRule = {
  ports?: NetworkPolicyPort[];
  from?: NetworkPolicyPeer[];
};
export type NetworkPolicyEgressRule = {
  ports?: NetworkPolicyPort[];
  to?: NetworkPolicyPeer[];
};
export type NetworkPolicyPort = {
  protocol?: 'SCTP' | 'TCP' | 'UDP';
  port?: IntOrString;
  endPort?: number;
};
export type IPBlock = {
  cidr: string;
  except?: string[];
};
export type NetworkPolicyPeer = {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: IPBlock;
};
export type NetworkPolicyList = {
  apiVersion: string;
  kind: 'NetworkPolicyList';
  metadata: ListMeta;
  items: Embedded<NetworkPolicy>[];
};
export type Ingress = {
  apiVersion: string;
  kind: 'Ingress';
  metadata: ObjectMeta;
  spec?: IngressSpec;
  status?: IngressStatus;
};
export type IngressList = {
  apiVersion: string;
  kind: 'IngressList';
  metadata: ListMeta;
  items: Embedded<Ingress>[];
};
export type IngressSpec = {
  ingressClassName?: string;
  defaultBackend?: IngressBackend;
  tls?: IngressTLS[];
  rules?: IngressRule[];
};
export type IngressTLS = {
  hosts?: string[];
  secretName?: string;
};
export type IngressStatus = {
  loadBalancer?: IngressLoadBalancerStatus;
};
export type IngressLoadBalancerStatus = {
  ingress?: IngressLoadBalancerIngress[];
};
export type IngressLoadBalancerIngress = {
  ip?: string;
  hostname?: string;
  ports?: IngressPortStatus[];
};
export type IngressPortStatus = {
  port: number;
  protocol: 'SCTP' | 'TCP' | 'UDP';
  error?: string;
};
export type IngressRule = {
  host?: string;
  http?: HTTPIngressRuleValue;
};
export type IngressRuleValue = {
  http?: HTTPIngressRuleValue;
};
export type HTTPIngressRuleValue = {
  paths: HTTPIngressPath[];
};
export type HTTPIngressPath = {
  path?: string;
  pathType: 'Exact' | 'ImplementationSpecific' | 'Prefix';
  backend: IngressBackend;
};
export type IngressBackend = {
  service?: IngressServiceBackend;
  resource?: TypedLocalObjectReference;
};
export type IngressServiceBackend = {
  name: string;
  port?: ServiceBackendPort;
};
export type ServiceBackendPort = {
  name?: string;
  number?: number;
};
export type IngressClass = {
  apiVersion: string;
  kind: 'IngressClass';
  metadata: ObjectMeta;
  spec?: IngressClassSpec;
};
export type IngressClassSpec = {
  controller?: string;
  parameters?: IngressClassParametersReference;
};
export type IngressClassParametersReference = {
  apiGroup?: string;
  kind: string;
  name: string;
  scope?: string;
  namespace?: string;
};
export type IngressClassList = {
  apiVersion: string;
  kind: 'IngressClassList';
  metadata: ListMeta;
  items: Embedded<IngressClass>[];
};
