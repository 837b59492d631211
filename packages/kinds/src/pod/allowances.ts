import { numberAt } from '../cells.ts';
import type { Pod, PodSpec, PodTemplateSpec, VolumeProjection } from '../gen/types/core/v1.ts';
import { objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { annotationsOf, validatePlainPath } from './fields.ts';
import { eachContainer } from './references.ts';
import { type Allowances, newlyAllowed, type PodPorts } from './rules.ts';
import { validateAffinity } from './validation/affinity.ts';
import { isDeletionCost } from './validation/annotations.ts';
import { relaxedNames } from './validation/environment.ts';
import { validateSpreadSelector } from './validation/placement.ts';
import { validateResources } from './validation/resources.ts';
import { validateSysctls } from './validation/security.ts';

/** Returns the rules that a pod or template breaks, so that its update may break them too. */
export function allowancesOf(
  old: Stored<PodTemplateSpec | Pod> | undefined,
  ports: PodPorts,
): Allowances {
  const spec = old?.spec ?? {};
  const { dialect, features } = ports;
  const allow = newlyAllowed(features);
  const rules = { ...ports, allow };
  const has = (errors: readonly { message: string }[], text: string) =>
    errors.some(({ message }) => message.includes(text));
  const resources = () =>
    eachContainer(spec, '').flatMap(({ container, path }) =>
      validateResources(objectAt(container, 'resources'), path, rules),
    );
  const isPlain = (source: Stored<VolumeProjection>) => {
    const token = source.serviceAccountToken;
    return token === undefined || validatePlainPath('', token.path ?? '').length === 0;
  };
  return {
    indivisibleHugePages:
      usesHugePages(spec) && has(resources(), 'is not positive integer multiple'),
    affinityLabelValues: validateAffinity(spec, '', rules).some(({ field }) =>
      /\.matchExpressions\[\d+\]\.values\[/.test(field),
    ),
    spreadSelectors: (spec.topologySpreadConstraints ?? []).some(
      (constraint) => validateSpreadSelector(constraint, '').length > 0,
    ),
    tokenPaths: (spec.volumes ?? []).some(
      (volume) => !(volume.projected?.sources ?? []).every(isPlain),
    ),
    hostSysctls: has(validateSysctls(spec, '', rules), "may not be specified when 'host"),
    deletionCost: allow.deletionCost || !isDeletionCost(annotationsOf(old), dialect),
    relaxedSearches:
      allow.relaxedSearches ||
      (spec.dnsConfig?.searches ?? []).some(
        (search) => search === '.' || `${search}`.includes('_'),
      ),
    relaxedVariables: allow.relaxedVariables,
    relaxedNames: allow.relaxedVariables ? allow.relaxedNames : relaxedNames(spec),
    zeroSleep:
      allow.zeroSleep ||
      eachContainer(spec, '').some(({ container }) =>
        ['preStop', 'postStart'].some((name) => {
          const sleep = objectAt(container, 'lifecycle', name, 'sleep');
          return sleep !== undefined && numberAt(sleep, 'seconds') === 0;
        }),
      ),
    mountedLabels: allow.mountedLabels || spec.securityContext?.seLinuxChangePolicy != null,
    sidecarResizePolicies: (spec.initContainers ?? []).some(
      (container) =>
        container.restartPolicy === 'Always' && (container.resizePolicy ?? []).length > 0,
    ),
  };
}

const usesHugePages = (spec: Stored<PodSpec>): boolean =>
  eachContainer(spec, '').some(({ container }) =>
    ['limits', 'requests'].some((kind) =>
      Object.keys(objectAt(container, 'resources', kind) ?? {}).some((name) =>
        name.startsWith('hugepages-'),
      ),
    ),
  );
