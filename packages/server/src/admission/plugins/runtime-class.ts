import { objectsAt, type Stored } from '@wheelhouse/kinds';
import type { RuntimeClass } from '@wheelhouse/kinds/types/node/v1';
import {
  type ApiObject,
  isObject,
  type JsonObject,
  type JsonValue,
  parseQuantity,
} from '@wheelhouse/machinery';
import { isOmittedEmpty } from '@wheelhouse/schema';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { mergeTolerations, nodeSelectorOf, specOf, writtenPod } from '../pods.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

/**
 * Applies a new pod's runtime class (ADM-1): its overhead and its scheduling constraints. The class
 * must exist, and the pod must not set another overhead.
 */
export function runtimeClass(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'RuntimeClass',
    async mutate(call) {
      const pod = writtenPod(call, ['CREATE']);
      if (pod === undefined) return;
      const podClass = await classOf(tools, call, pod);
      if (podClass === undefined) return;
      setOverhead(call, pod, podClass);
      setScheduling(call, pod, podClass);
    },
    async validate(call) {
      const pod = writtenPod(call, ['CREATE']);
      if (pod === undefined) return;
      const overhead = overheadOf(await classOf(tools, call, pod));
      const own = specOf(pod)['overhead'];
      if (overhead === undefined) {
        const isOmitted = isOmittedEmpty(pod, { parent: 'spec', name: 'overhead' });
        if ((own === undefined || own === null) && !isOmitted) return;
        const why =
          'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead';
        throw refusal(call, why);
      }
      if (!sameAmounts(own, overhead)) throw refusal(call, mismatch);
    },
  };
}

const mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

async function classOf(
  tools: AdmissionTools,
  call: AdmissionCall,
  pod: ApiObject,
): Promise<ApiObject | undefined> {
  const named = specOf(pod)['runtimeClassName'];
  if (typeof named !== 'string') return undefined;
  const stored = await tools.objects.get('runtimeclasses.node', { namespace: '', name: named });
  if (stored !== undefined) return stored;
  throw refusal(call, `pod rejected: RuntimeClass ${JSON.stringify(named)} not found`);
}

function overheadOf(podClass: Stored<RuntimeClass> | undefined): JsonObject | undefined {
  if (podClass?.overhead === undefined) return undefined;
  return podClass.overhead.podFixed ?? {};
}

function setOverhead(call: AdmissionCall, pod: ApiObject, podClass: ApiObject): void {
  const overhead = overheadOf(podClass);
  if (overhead === undefined) return;
  const spec = specOf(pod);
  const own = spec['overhead'];
  const isSet = isObject(own) && Object.keys(own).length > 0;
  if (isSet && !sameAmounts(own, overhead)) throw refusal(call, mismatch);
  if (Object.keys(overhead).length > 0) spec['overhead'] = { ...overhead };
  else delete spec['overhead'];
}

function sameAmounts(left: JsonValue | undefined, right: JsonObject): boolean {
  const amounts = isObject(left) ? left : {};
  const names = Object.keys(amounts);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => nanoOf(amounts[name]) === nanoOf(right[name]))
  );
}

function nanoOf(value: JsonValue | undefined): bigint | undefined {
  const parsed = value === undefined ? undefined : parseQuantity(String(value));
  return parsed !== undefined && 'nano' in parsed ? parsed.nano : undefined;
}

function setScheduling(call: AdmissionCall, pod: ApiObject, podClass: Stored<RuntimeClass>): void {
  const scheduling = podClass.scheduling;
  if (scheduling === undefined) return;
  const spec = specOf(pod);
  const own = nodeSelectorOf(spec);
  const added = nodeSelectorOf(scheduling);
  for (const [key, value] of Object.entries(added)) {
    if (!Object.hasOwn(own, key) || own[key] === value) continue;
    throw refusal(
      call,
      `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own[key]}`,
    );
  }
  const selector = { ...own, ...added };
  if (Object.keys(selector).length > 0) spec['nodeSelector'] = selector;
  const copies = (scheduling.tolerations ?? []).map((toleration) => ({ ...toleration }));
  const merged = mergeTolerations(objectsAt(spec, 'tolerations'), copies);
  if (merged.length > 0) spec['tolerations'] = merged;
}
