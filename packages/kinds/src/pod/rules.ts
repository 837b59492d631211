import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import type { Features } from '../features/features.ts';

/** What the rules of pods depend on whatever the pod. */
export interface PodPorts {
  readonly dialect: Dialect;
  readonly features: Features;
}

/** What the rules of a pod's spec depend on beside the spec. */
export interface PodRules extends PodPorts {
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
  /** Search domains with underscores, and the root. */
  readonly relaxedSearches: boolean;
  /** Names of variables of nearly any printable characters. */
  readonly relaxedVariables: boolean;
  readonly zeroSleep: boolean;
  /** SELinux labels that are mounted rather than set file by file. */
  readonly mountedLabels: boolean;
}

/** As a new object is judged. */
export const newlyAllowed = (features: Features): Allowances => ({
  indivisibleHugePages: false,
  affinityLabelValues: false,
  spreadSelectors: false,
  tokenPaths: false,
  hostSysctls: false,
  deletionCost: !features.enabled('PodDeletionCost'),
  relaxedSearches: features.enabled('RelaxedDNSSearchValidation'),
  relaxedVariables: features.enabled('RelaxedEnvironmentVariableValidation'),
  zeroSleep: features.enabled('PodLifecycleSleepActionAllowZero'),
  mountedLabels: features.enabled('SELinuxMount'),
});

/** The rules of a new pod's spec that is in no Pod. */
export const newPodRules = (ports: PodPorts): PodRules => ({
  ...ports,
  allow: newlyAllowed(ports.features),
});
