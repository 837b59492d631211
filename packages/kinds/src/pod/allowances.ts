import { numberAt } from '../cells.ts';
import type { Container, Pod, PodTemplateSpec, VolumeProjection } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { selectorsPerStep, someSteps } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import { annotationsOf, validatePlainPath } from './fields.ts';
import { containersOf } from './references.ts';
import { type Allowances, newlyAllowed, type PodPorts } from './rules.ts';
import { hasWrongLabelValues } from './validation/affinity.ts';
import { isDeletionCost } from './validation/annotations.ts';
import { relaxedNames } from './validation/environment.ts';
import { validateSpreadSelector } from './validation/placement.ts';
import { hasPartialPages } from './validation/resources.ts';
import { hasHostSysctls } from './validation/security.ts';

/**
 * Returns the rules that a pod or template breaks, so that its update may break them too, in steps
 * (TRUST-2). Looks for these rules alone, because the old object may break many others.
 */
export function* allowanceSteps(
  old: Stored<PodTemplateSpec | Pod> | undefined,
  ports: PodPorts,
): Generator<void, Allowances> {
  const spec = old?.spec ?? {};
  const { dialect, features } = ports;
  const allow = newlyAllowed(features);
  const containers = containersOf(spec);
  return {
    indivisibleHugePages: yield* someSteps(containers, hasPartialPages),
    affinityLabelValues: yield* hasWrongLabelValues(spec),
    spreadSelectors: yield* someSteps(
      spec.topologySpreadConstraints ?? [],
      (constraint) => validateSpreadSelector(constraint, '').length > 0,
      { perStep: selectorsPerStep },
    ),
    tokenPaths: yield* someSteps(spec.volumes ?? [], (volume) =>
      someSteps(volume.projected?.sources ?? [], (source) => !isPlain(source)),
    ),
    hostSysctls: yield* hasHostSysctls(spec),
    deletionCost: allow.deletionCost || !isDeletionCost(annotationsOf(old), dialect),
    relaxedSearches:
      allow.relaxedSearches ||
      (yield* someSteps(
        spec.dnsConfig?.searches ?? [],
        (search) => search === '.' || `${search}`.includes('_'),
      )),
    relaxedVariables: allow.relaxedVariables,
    relaxedNames: allow.relaxedVariables ? allow.relaxedNames : yield* relaxedNames(spec),
    zeroSleep: allow.zeroSleep || (yield* someSteps(containers, hasZeroSleep)),
    mountedLabels: allow.mountedLabels || spec.securityContext?.seLinuxChangePolicy != null,
    sidecarResizePolicies: yield* someSteps(
      spec.initContainers ?? [],
      (container) =>
        container.restartPolicy === 'Always' && (container.resizePolicy ?? []).length > 0,
    ),
  };
}

function isPlain({ serviceAccountToken: token }: Stored<VolumeProjection>): boolean {
  return token === undefined || validatePlainPath('', token.path ?? '').length === 0;
}

function hasZeroSleep(container: Stored<Container>): boolean {
  return ['preStop', 'postStart'].some((name) => {
    const sleep = objectAt(container, 'lifecycle', name, 'sleep');
    return sleep !== undefined && numberAt(sleep, 'seconds') === 0;
  });
}
