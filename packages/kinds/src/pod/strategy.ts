import {
  type ApiObject,
  type Dialect,
  dnsLabel,
  type FieldError,
  forbiddenField,
} from '@wheelhouse/machinery';
import type { Pod } from '../gen/types/core/v1.ts';
import { ensure } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { annotationsOf } from './fields.ts';
import { validateResize } from './resize.ts';
import { newlyAllowed, type PodPorts } from './rules.ts';
import { validatePodStatus } from './status.ts';
import { podErrorSteps, podUpdateErrorSteps, validateAddedContainers } from './update.ts';
import { validateProfileAgreement } from './validation/annotations.ts';
import { podWarnings } from './warnings.ts';

/** Judges a Pod that is to be made. */
export function* newPodErrorSteps(
  object: Stored<Pod>,
  ports: PodPorts,
): Generator<void, FieldError[]> {
  const { dialect } = ports;
  const spec = ensure(object, 'spec');
  const errors = yield* podErrorSteps(object, {
    ...ports,
    pod: object,
    allow: newlyAllowed(ports.features),
  });
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    const detail = 'cannot be set until all schedulingGates have been cleared';
    errors.push(forbiddenField('spec.nodeName', detail));
  }
  return [
    ...errors,
    ...validateProfileAgreement(annotationsOf(object), spec, { path: 'spec', dialect }),
  ];
}

/** Judges a change of a Pod by the endpoint it came through. */
export function* podChangeErrorSteps(change: {
  subresource: string;
  object: ApiObject;
  old: ApiObject;
  ports: PodPorts;
}): Generator<void, readonly FieldError[]> {
  const { subresource, object, old, ports } = change;
  switch (subresource) {
    case '':
      return yield* podUpdateErrorSteps(object, old, ports);
    case 'status':
      return validatePodStatus(object, old, ports);
    case 'ephemeralcontainers':
      return validateAddedContainers(object, old, ports);
    case 'resize':
      return validateResize(object, old, ports);
    default:
      return [];
  }
}

/** What is accepted of a new Pod but hardly meant. Changes are not looked at: programs make them. */
export function newPodWarnings(object: Stored<Pod>, dialect: Dialect): string[] {
  const messages = dnsLabel(object.metadata.name ?? '');
  const named =
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; " +
    `a DNS label is recommended: [${messages.join(' ')}]`;
  return [...(messages.length === 0 ? [] : [named]), ...podWarnings(object, '', dialect)];
}
