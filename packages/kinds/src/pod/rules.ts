import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import type { Features } from '../features/features.ts';

/** Context of the rules that is the same for all pods. */
export interface PodPorts {
  readonly dialect: Dialect;
  readonly features: Features;
}

/** Context of the rules of one pod's spec. */
export interface PodRules extends PodPorts {
  /**
   * The Pod that has the spec. Absent for a template, which is validated more leniently: whoever
   * makes pods from it may still fill in what is missing.
   */
  readonly pod?: ApiObject;
  readonly allow: Allowances;
}

/** Rules that an update may break because the old object breaks them too. */
export interface Allowances {
  readonly indivisibleHugePages: boolean;
  readonly affinityLabelValues: boolean;
  readonly spreadSelectors: boolean;
  readonly tokenPaths: boolean;
  readonly hostSysctls: boolean;
  readonly deletionCost: boolean;
  /** Search domains with underscores, and the root domain. */
  readonly relaxedSearches: boolean;
  /** Names of variables with almost any printable character. */
  readonly relaxedVariables: boolean;
  readonly zeroSleep: boolean;
  /** SELinux labels that are applied by mounting rather than file by file. */
  readonly mountedLabels: boolean;
}

/** The allowances of a new object. */
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

/** The rules of a new spec that is in a template. */
export const newPodRules = (ports: PodPorts): PodRules => ({
  ...ports,
  allow: newlyAllowed(ports.features),
});
