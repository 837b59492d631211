import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import type { Features } from '../features/features.ts';

/** Context of the rules for all pods. */
export interface PodPorts {
  readonly dialect: Dialect;
  readonly features: Features;
}

/** Context of the rules for the spec of one pod or template. */
export interface PodRules extends PodPorts {
  /**
   * The Pod with the spec. Absent for a template, which may omit what the creator of its pods can
   * add.
   */
  readonly pod?: ApiObject;
  readonly allow: Allowances;
}

/** Rules that an object may break: a feature allows it, or the old object breaks them too. */
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
  /** Such names in the old object; a spec that keeps one of them may have others. */
  readonly relaxedNames: ReadonlySet<string>;
  readonly zeroSleep: boolean;
  /** SELinux labels that a mount applies, rather than the node to each file. */
  readonly mountedLabels: boolean;
  /** Resize policies of init containers that keep running. */
  readonly sidecarResizePolicies: boolean;
}

/** Returns the allowances of a new object. */
export const newlyAllowed = (features: Features): Allowances => ({
  indivisibleHugePages: false,
  affinityLabelValues: false,
  spreadSelectors: false,
  tokenPaths: false,
  hostSysctls: false,
  deletionCost: !features.enabled('PodDeletionCost'),
  relaxedSearches: features.enabled('RelaxedDNSSearchValidation'),
  relaxedVariables: features.enabled('RelaxedEnvironmentVariableValidation'),
  relaxedNames: new Set(),
  zeroSleep: features.enabled('PodLifecycleSleepActionAllowZero'),
  mountedLabels: features.enabled('SELinuxMount'),
  sidecarResizePolicies: false,
});

/** Returns the rules of the spec of a new template. */
export const newPodRules = (ports: PodPorts): PodRules => ({
  ...ports,
  allow: newlyAllowed(ports.features),
});
