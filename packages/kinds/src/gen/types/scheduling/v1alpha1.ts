/** The types of `scheduling/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type PriorityClass = {
  apiVersion: string;
  kind: 'PriorityClass';
  metadata: ObjectMeta;
  value: number;
  globalDefault?: boolean;
  description?: string;
  preemptionPolicy?: 'Never' | 'PreemptLowerPriority';
};
export type PriorityClassList = {
  apiVersion: string;
  kind: 'PriorityClassList';
  metadata: ListMeta;
  items: Embedded<PriorityClass>[];
};
