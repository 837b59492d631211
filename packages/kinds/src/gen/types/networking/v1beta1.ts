/** The types of `networking/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { TypedLocalObjectReference } from '../core/v1.ts';
import type { Condition, Embedded, IntOrString, ListMeta, ObjectMeta } from '../meta/v1.ts';
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
  backend?: IngressBackend;
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
  pathType?: string;
  backend: IngressBackend;
};
export type IngressBackend = {
  serviceName?: string;
  servicePort?: IntOrString;
  resource?: TypedLocalObjectReference;
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
  scope: string;
  namespace?: string;
};
export type IngressClassList = {
  apiVersion: string;
  kind: 'IngressClassList';
  metadata: ListMeta;
  items: Embedded<IngressClass>[];
};
export type IPAddress = {
  apiVersion: string;
  kind: 'IPAddress';
  metadata: ObjectMeta;
  spec?: IPAddressSpec;
};
export type IPAddressSpec = {
  parentRef: ParentReference;
};
export type ParentReference = {
  group?: string;
  resource: string;
  namespace?: string;
  name: string;
};
export type IPAddressList = {
  apiVersion: string;
  kind: 'IPAddressList';
  metadata: ListMeta;
  items: Embedded<IPAddress>[];
};
export type ServiceCIDR = {
  apiVersion: string;
  kind: 'ServiceCIDR';
  metadata: ObjectMeta;
  spec?: ServiceCIDRSpec;
  status?: ServiceCIDRStatus;
};
export type ServiceCIDRSpec = {
  cidrs?: string[];
};
export type ServiceCIDRStatus = {
  conditions?: Condition[];
};
export type ServiceCIDRList = {
  apiVersion: string;
  kind: 'ServiceCIDRList';
  metadata: ListMeta;
  items: Embedded<ServiceCIDR>[];
};
