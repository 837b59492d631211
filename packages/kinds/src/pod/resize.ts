import {
  cloneJsonSteps,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
} from '@wheelhouse/machinery';
import type { Pod, PodSpec } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps, someSteps } from '../rules/checks.ts';
import { ensure, forEachSteps, objectAt } from '../rules/fill.ts';
import { qualityOfService, statesPodAmounts } from './amounts.ts';
import { annotationsOf } from './fields.ts';
import { goDifference } from './go-text.ts';
import type { PodPorts } from './rules.ts';
import { changeRules, sameSemantically, validatePod } from './update.ts';
import { mirrorAnnotation } from './validation/annotations.ts';

const resizable = ['cpu', 'memory'];

/** Validates an update through `resize` in steps. */
export function* validateResize(
  object: Stored<Pod>,
  old: Stored<Pod>,
  ports: PodPorts,
): Generator<void, FieldError[]> {
  const [spec, before] = [ensure(object, 'spec'), ensure(old, 'spec')];
  const errors = yield* validatePod(object, yield* changeRules(object, old, ports));
  const problem = resizeProblem(object, old, ports);
  // kube-apiserver reports a path without a name.
  if (problem !== undefined) return [forbiddenField('[]', problem)];
  const quality = (old.status?.qosClass ?? '') || qualityOfService(before);
  if (qualityOfService(spec) !== quality) {
    const detail = 'Pod QOS Class may not change as a result of resizing';
    errors.push(invalid('spec', object.status?.qosClass ?? '', detail));
  }
  if (!isSupported(old)) {
    errors.push(forbiddenField('spec', 'Pod running on node without support for resize'));
  }
  return [
    ...errors,
    ...(yield* validateNotRemoved(spec, before)),
    ...(yield* validateMutable(spec, before)),
  ];
}

/** Why a pod can never be resized; undefined if it can. */
function resizeProblem(
  object: Stored<Pod>,
  old: Stored<Pod>,
  { dialect }: PodPorts,
): string | undefined {
  if ([object, old].some(({ spec }) => statesPodAmounts(spec))) {
    return 'pods with pod-level resources cannot be resized';
  }
  if (Object.hasOwn(annotationsOf(old), mirrorAnnotation(dialect))) {
    return 'static pods cannot be resized';
  }
  return (old.spec?.os?.name ?? '') === 'windows' ? 'windows pods cannot be resized' : undefined;
}

/** Whether the node of a pod supports resizing: it reports the resources of running containers. */
function isSupported(pod: Stored<Pod>): boolean {
  const running = (pod.status?.containerStatuses ?? []).find(
    (containerStatus) => containerStatus.state?.running !== undefined,
  );
  return running === undefined || running.resources !== undefined;
}

const kinds = ['requests', 'limits'];

/** Rejects the removal of a request or limit of a container. */
function validateNotRemoved(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const now = spec.containers ?? [];
  return flatMapSteps(old.containers ?? [], (before, index) =>
    flatMapSteps(kinds, function* (kind) {
      const amounts = objectAt(now[index], 'resources', kind) ?? {};
      const names = Object.keys(objectAt(before, 'resources', kind) ?? {});
      if (!(yield* someSteps(names, (name) => amounts[name] === undefined))) return [];
      const field = `spec.containers[${index}].resources.${kind}`;
      return [forbiddenField(field, `resource ${kind} cannot be removed`)];
    }),
  );
}

/** Restores cpu, memory, and resize policies in a copy, and rejects any other difference. */
function* validateMutable(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const rest = yield* cloneJsonSteps(spec);
  const before = old.containers ?? [];
  let index = 0;
  yield* forEachSteps(rest.containers ?? [], (container) => {
    const { resources, resizePolicy: policy } = before[index] ?? {};
    index += 1;
    const restored: JsonObject = {};
    for (const kind of kinds) {
      const oldAmounts = objectAt(resources, kind);
      if (oldAmounts === undefined) continue;
      const amounts = objectAt(container, 'resources', kind) ?? {};
      for (const name of resizable) {
        delete amounts[name];
        if (oldAmounts[name] !== undefined) amounts[name] = oldAmounts[name];
      }
      restored[kind] = amounts;
    }
    if (container.resources !== undefined || resources !== undefined) {
      container.resources = restored;
    }
    if (policy === undefined) delete container.resizePolicy;
    else container.resizePolicy = policy;
  });
  if (yield* sameSemantically(rest, old)) return [];
  const difference = yield* goDifference('core.PodSpec', old, rest);
  return [forbiddenField('spec', `only cpu and memory resources are mutable\n${difference}`)];
}
