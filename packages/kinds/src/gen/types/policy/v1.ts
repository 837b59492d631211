/** The types of `policy/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { Condition, DeleteOptions, Embedded, IntOrString, LabelSelector, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type PodDisruptionBudgetSpec = {
  minAvailable?: IntOrString;
  selector?: LabelSelector;
  maxUnavailable?: IntOrString;
  unhealthyPodEvictionPolicy?: 'AlwaysAllow' | 'IfHealthyBudget';
};
export type PodDisruptionBudgetStatus = {
  observedGeneration?: number;
  disruptedPods?: { [name: string]: Time };
  disruptionsAllowed: number;
  currentHealthy: number;
  desiredHealthy: number;
  expectedPods: number;
  conditions?: Condition[];
};
export type PodDisruptionBudget = {
  apiVersion: string;
  kind: 'PodDisruptionBudget';
  metadata: ObjectMeta;
  spec?: PodDisruptionBudgetSpec;
  status?: PodDisruptionBudgetStatus;
};
export type PodDisruptionBudgetList = {
  apiVersion: string;
  kind: 'PodDisruptionBudgetList';
  metadata: ListMeta;
  items: Embedded<PodDisruptionBudget>[];
};
export type Eviction = {
  apiVersion: string;
  kind: 'Eviction';
  metadata: ObjectMeta;
  deleteOptions?: DeleteOptions;
};
