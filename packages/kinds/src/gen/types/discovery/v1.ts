/** The types of `discovery/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { ObjectReference } from '../core/v1.ts';
import type { Embedded, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type EndpointSlice = {
  apiVersion: string;
  kind: 'EndpointSlice';
  metadata: ObjectMeta;
  addressType: 'FQDN' | 'IPv4' | 'IPv6';
  endpoints: Endpoint[];
  ports?: EndpointPort[] | null;
};
export type Endpoint = {
  addresses: string[];
  conditions?: EndpointConditions;
  hostname?: string;
  targetRef?: Embedded<ObjectReference>;
  deprecatedTopology?: { [name: string]: string };
  nodeName?: string;
  zone?: string;
  hints?: EndpointHints;
};
export type EndpointConditions = {
  ready?: boolean;
  serving?: boolean;
  terminating?: boolean;
};
export type EndpointHints = {
  forZones?: ForZone[];
};
export type ForZone = {
  name: string;
};
export type EndpointPort = {
  name?: string;
  protocol?: 'SCTP' | 'TCP' | 'UDP';
  port?: number;
  appProtocol?: string;
};
export type EndpointSliceList = {
  apiVersion: string;
  kind: 'EndpointSliceList';
  metadata: ListMeta;
  items: Embedded<EndpointSlice>[];
};
