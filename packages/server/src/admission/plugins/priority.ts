import { numberAt, type Stored, textAt } from '@wheelhouse/kinds';
import type { PodSpec } from '@wheelhouse/kinds/types/core/v1';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { specOf, writtenPod } from '../pods.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

const classes = 'priorityclasses.scheduling';

/**
 * Sets the priority of every new pod from its class, or from the default class, and allows only one
 * default class (ADM-1).
 */
export function priority(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'Priority',
    async mutate(call) {
      if (call.target.def.resource !== 'pods') return;
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      if (pod === undefined) return;
      if (call.operation === 'UPDATE') keepPriority(specOf(pod), call.old);
      else await setPriority(tools, call, specOf(pod));
    },
    async validate(call) {
      const { def, subresource } = call.target;
      if (def.resource === 'pods' || subresource !== '' || call.operation === 'DELETE') return;
      if (call.object?.['globalDefault'] !== true) return;
      const present = await defaultClass(tools);
      const name = present?.metadata.name;
      if (name === undefined) return;
      if (call.operation === 'UPDATE' && name === call.object.metadata.name) return;
      const why = `PriorityClass ${name} is already marked as default. Only one default can exist`;
      throw refusal(call, why);
    },
  };
}

/** An update that omits the computed fields keeps them. */
function keepPriority(spec: JsonObject, old: ApiObject | undefined): void {
  const before = old === undefined ? {} : specOf(old);
  for (const member of ['priority', 'preemptionPolicy']) {
    const value = before[member];
    if (spec[member] === undefined && value !== undefined) spec[member] = value;
  }
}

async function setPriority(
  tools: AdmissionTools,
  call: AdmissionCall,
  spec: Stored<PodSpec>,
): Promise<void> {
  const named = spec.priorityClassName ?? '';
  const found =
    named === ''
      ? await defaultClass(tools)
      : await tools.objects.get(classes, { namespace: '', name: named });
  if (found === undefined && named !== '') {
    throw refusal(call, `no PriorityClass with name ${named} was found`);
  }
  const name = found?.metadata.name ?? '';
  if (name !== '') spec.priorityClassName = name;
  const value = numberAt(found, 'value');
  const podPriority = spec.priority;
  if (podPriority !== undefined && podPriority !== null && Number(podPriority) !== value) {
    throw refusal(
      call,
      `the integer value of priority (${podPriority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
    );
  }
  spec.priority = value;
  const policy = found === undefined ? 'PreemptLowerPriority' : textAt(found, 'preemptionPolicy');
  if (policy === '') return;
  const podPolicy = spec.preemptionPolicy ?? undefined;
  if (podPolicy !== undefined && podPolicy !== policy) {
    throw refusal(
      call,
      `the string value of PreemptionPolicy (${podPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
    );
  }
  spec.preemptionPolicy = policy;
}

/** A race may leave several defaults; the lowest one applies. */
async function defaultClass(tools: AdmissionTools): Promise<ApiObject | undefined> {
  const priorityClasses = await tools.objects.list(classes, '');
  const defaults = priorityClasses.filter(
    (priorityClass) => priorityClass['globalDefault'] === true,
  );
  return defaults.sort((left, right) => numberAt(left, 'value') - numberAt(right, 'value'))[0];
}
