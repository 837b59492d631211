/** The types of `node/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { Toleration } from '../core/v1.ts';
import type { Embedded, ListMeta, ObjectMeta, Quantity } from '../meta/v1.ts';
export type RuntimeClass = {
  apiVersion: string;
  kind: 'RuntimeClass';
  metadata: ObjectMeta;
  spec: RuntimeClassSpec;
};
export type RuntimeClassSpec = {
  runtimeHandler: string;
  overhead?: Overhead;
  scheduling?: Scheduling;
};
export type Overhead = {
  podFixed?: { [name: string]: Quantity };
};
export type Scheduling = {
  nodeSelector?: { [name: string]: string };
  tolerations?: Toleration[];
};
export type RuntimeClassList = {
  apiVersion: string;
  kind: 'RuntimeClassList';
  metadata: ListMeta;
  items: Embedded<RuntimeClass>[];
};
