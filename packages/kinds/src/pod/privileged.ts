import { type ApiObject, type FieldError, forbiddenField } from '@wheelhouse/machinery';
import type { ResourceDef, StrategyContext } from '../resource-def.ts';
import { errorSteps } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import { isTrue } from './fields.ts';
import { eachContainer } from './references.ts';
import { hostProcess } from './validation/security.ts';

/** Paths of the pod spec by kind, without StatefulSet, which kube-apiserver does not check. */
const specPaths: ReadonlyMap<string, readonly string[]> = new Map([
  ['Pod', ['spec']],
  ['PodTemplate', ['template', 'spec']],
  ['ReplicationController', ['spec', 'template', 'spec']],
  ['Deployment.apps', ['spec', 'template', 'spec']],
  ['ReplicaSet.apps', ['spec', 'template', 'spec']],
  ['DaemonSet.apps', ['spec', 'template', 'spec']],
  ['Job.batch', ['spec', 'template', 'spec']],
  ['CronJob.batch', ['spec', 'jobTemplate', 'spec', 'template', 'spec']],
]);

/** Returns the kinds, with those that contain pod specs changed to reject privileged containers. */
export function withoutPrivileged(defs: readonly ResourceDef[]): readonly ResourceDef[] {
  return defs.map((def) => {
    const path = specPaths.get(def.group === '' ? def.kind : `${def.kind}.${def.group}`);
    return path === undefined ? def : restricted(def, path);
  });
}

function restricted(def: ResourceDef, path: readonly string[]): ResourceDef {
  const { validateCreate, validateUpdate } = def.strategy;
  const privileged = (context: StrategyContext, object: ApiObject): readonly FieldError[] =>
    context.subresource === 'status' ? [] : validateUnprivileged(object, path);
  return {
    ...def,
    strategy: {
      ...def.strategy,
      *validateCreate(context, object) {
        const errors = yield* errorSteps(validateCreate?.(context, object));
        return [...errors, ...privileged(context, object)];
      },
      *validateUpdate(context, object, old) {
        const errors = yield* errorSteps(validateUpdate?.(context, object, old));
        return [...errors, ...privileged(context, object)];
      },
    },
  };
}

function validateUnprivileged(object: ApiObject, path: readonly string[]): FieldError[] {
  const spec = objectAt(object, ...path);
  const field = path.join('.');
  const containers = eachContainer(spec, field);
  const errors = containers
    .filter(({ container }) => isTrue(container, 'securityContext', 'privileged'))
    .map((placed) =>
      forbiddenField(`${placed.path}.securityContext.privileged`, 'disallowed by cluster policy'),
    );
  const ofPod = hostProcess(spec);
  if (containers.some(({ container }) => hostProcess(container) ?? ofPod ?? false)) {
    const detail = 'hostProcess containers are disallowed by cluster policy';
    errors.push(forbiddenField(field, detail));
  }
  return errors;
}
