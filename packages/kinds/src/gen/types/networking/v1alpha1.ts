/** The types of `networking/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { Condition, Embedded, ListMeta, ObjectMeta } from '../meta/v1.ts';
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
