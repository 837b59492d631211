/** Of earlier releases: the types of `apiregistration/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type APIServiceList = {
  apiVersion: string;
  kind: 'APIServiceList';
  metadata: ListMeta;
  items: Embedded<APIService>[];
};
export type ServiceReference = {
  namespace?: string;
  name?: string;
  port?: number;
};
export type APIServiceSpec = {
  service?: ServiceReference;
  group?: string;
  version?: string;
  insecureSkipTLSVerify?: boolean;
  caBundle?: string;
  groupPriorityMinimum: number;
  versionPriority: number;
};
export type APIServiceCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type APIServiceStatus = {
  conditions?: APIServiceCondition[];
};
export type APIService = {
  apiVersion: string;
  kind: 'APIService';
  metadata: ObjectMeta;
  spec?: APIServiceSpec;
  status?: APIServiceStatus;
};
