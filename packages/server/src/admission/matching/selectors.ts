import {
  type ApiObject,
  compileLabelSelector,
  isObject,
  type JsonValue,
  type LabelSelection,
  notFound,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { ObjectReader } from '../tools.ts';
import type { RequestFacts } from './facts.ts';

/** Reads a selector off an object; an absent one selects everything. */
export function selectorOf(value: JsonValue | undefined): LabelSelection {
  return compileLabelSelector(isObject(value) ? value : {});
}

const isEmpty = ({ requirements }: LabelSelection) => requirements.length === 0;

/** Whether the object as it is or as it was has such labels. */
export function selectsObject(selector: LabelSelection, call: AdmissionCall): boolean {
  if (isEmpty(selector)) return true;
  return [call.object, call.old].some(
    (object) => object !== undefined && selector.matches(labelsOf(object)),
  );
}

/**
 * Whether the namespace of a request has such labels: for a Namespace that is created or changed, its
 * own new ones. What is in no namespace is always selected. Throws 404 when there is no namespace.
 */
export async function selectsNamespace(
  selector: LabelSelection,
  at: {
    readonly call: AdmissionCall;
    readonly facts: RequestFacts;
    readonly objects: ObjectReader;
  },
): Promise<boolean> {
  const { call, facts, objects } = at;
  const isNamespace = facts.resource.group === '' && facts.resource.resource === 'namespaces';
  if (isEmpty(selector) || (facts.namespace === '' && !isNamespace)) return true;
  const isOwn = isNamespace && facts.subresource === '' && call.operation !== 'DELETE';
  if (isOwn) return selector.matches(labelsOf(call.object));
  const found = await objects.get('namespaces', { namespace: '', name: facts.namespace });
  if (found === undefined) throw notFound({ group: '', resource: 'namespaces' }, facts.namespace);
  return selector.matches(labelsOf(found));
}

function labelsOf(object: ApiObject | undefined): Readonly<Record<string, string>> {
  return object?.metadata?.labels ?? {};
}
