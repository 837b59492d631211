import { isObject, type JsonObject } from '../base/json.ts';
import { required } from '../meta/field-error.ts';
import { conflict, invalidObject } from '../meta/status.ts';
import { formatTime } from '../meta/times.ts';
import type { ApiObject } from '../meta/types.ts';
import { groupResourceOf } from '../registry/registry.ts';
import { updateObject } from '../registry/update.ts';
import type { ApiCall } from './call.ts';
import { sendValue } from './respond.ts';
import { virtualRequest } from './virtual-body.ts';
import { writeContext } from './write-context.ts';

/** POST to `binding`: gives a Pod the node it is to run on, once (API-6). */
export async function bindingEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  const { object, options } = await virtualRequest(call, 'core.v1.Binding');
  const node = isObject(object.target) ? object.target.name : undefined;
  if (typeof node !== 'string' || node === '') {
    throw invalidObject({ group: '', kind: 'Binding' }, target.name, [required('target.name')]);
  }
  await updateObject(context.registry, {
    target: { ...target, subresource: 'binding' },
    context: writeContext(call, options),
    transform: (current) => bound(call, current as ApiObject, { binding: object, node }),
    record: true,
    onAbsent: 'refuse',
  });
  const value: JsonObject = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    code: 201,
  };
  await sendValue(call, { status: 201, value });
}

function bound(
  call: ApiCall,
  pod: ApiObject,
  { binding, node }: { binding: ApiObject; node: string },
): ApiObject {
  const spec = isObject(pod.spec) ? pod.spec : {};
  const refuse = (why: string) => conflict(groupResourceOf(call.target.def), call.target.name, why);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw refuse(`pod ${call.target.name} is being deleted, cannot be assigned to a host`);
  }
  if (typeof spec.nodeName === 'string' && spec.nodeName !== '') {
    const assigned = JSON.stringify(spec.nodeName);
    throw refuse(`pod ${call.target.name} is already assigned to node ${assigned}`);
  }
  const status = isObject(pod.status) ? pod.status : {};
  const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isObject) : [];
  const others = conditions.filter((one) => one.type !== 'PodScheduled');
  const scheduled = {
    type: 'PodScheduled',
    status: 'True',
    lastTransitionTime: formatTime(call.context.clock.now()),
  };
  const annotations = { ...pod.metadata.annotations, ...binding.metadata.annotations };
  if (Object.keys(annotations).length > 0) pod.metadata.annotations = annotations;
  return {
    ...pod,
    spec: { ...spec, nodeName: node },
    status: { ...status, conditions: [...others, scheduled] },
  };
}
