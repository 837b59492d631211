import type { Dialect } from '../../dialect.ts';
import type { ApiObject } from '../../meta/types.ts';

/** What the rules of a pod's spec depend on beside the spec. */
export interface PodRules {
  readonly dialect: Dialect;
  /**
   * The Pod whose spec it is. Absent for a template, which is judged more loosely: who makes pods of
   * it may still fill in what is missing.
   */
  readonly pod?: ApiObject;
  readonly allow: Allowances;
}

/** What an update may keep because the object had it before the rule existed. */
export interface Allowances {
  readonly indivisibleHugePages: boolean;
  readonly affinityLabelValues: boolean;
  readonly spreadSelectors: boolean;
  readonly tokenPaths: boolean;
  readonly hostSysctls: boolean;
  readonly deletionCost: boolean;
}

/** As a new object is judged. */
export const nothingAllowed: Allowances = {
  indivisibleHugePages: false,
  affinityLabelValues: false,
  spreadSelectors: false,
  tokenPaths: false,
  hostSysctls: false,
  deletionCost: false,
};
