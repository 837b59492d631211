import {
  type ScaleBehavior,
  type ScalePaths,
  selectorText,
  type VersionDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  internalError,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
} from '@wheelhouse/machinery';
import type { ScaleMapping } from '@wheelhouse/structured-merge';
import type { Target } from '../../registry/contract.ts';

/** apiVersion of the Scale objects. */
export const scaleVersion = 'autoscaling/v1';

/** Where an object keeps what its Scale shows, and in which form. */
export interface ScaleForm extends ScalePaths, Pick<ScaleBehavior, 'selector'> {}

/** Where a version keeps what its Scale shows; undefined when it has none. */
export function scaleFormOf({ def }: Target, version: VersionDef): ScaleForm | undefined {
  const { paths, selector } = def.behavior.scale;
  const found = version.scale ?? paths;
  return found === undefined ? undefined : { ...found, selector };
}

const stepsOf = (path: string) => path.replace(/^\./, '').split('.');

function valueAt(object: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const step of stepsOf(path)) value = isObject(value) ? member(value, step) : undefined;
  return value;
}

function integerAt(object: JsonObject, path: string): number | undefined {
  const value = valueAt(object, path);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value)) return value;
  throw internalError(`${path} accessor error: the value is not an integer`);
}

/** The Scale of an object; `replicas` is undefined when the object says nothing of them. */
export function scaleOf(
  object: ApiObject,
  paths: ScaleForm,
): { readonly scale: ApiObject; readonly replicas: number | undefined } {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = integerAt(object, paths.specReplicasPath);
  const selector = selectorOf(object, paths);
  const metadata = { name, namespace, uid, resourceVersion, creationTimestamp };
  const scale = {
    kind: 'Scale',
    apiVersion: scaleVersion,
    metadata: withoutAbsent(metadata),
    spec: withoutAbsent({ replicas: replicas === 0 ? undefined : replicas }),
    status: withoutAbsent({
      replicas: integerAt(object, paths.statusReplicasPath) ?? 0,
      selector: selector === '' ? undefined : selector,
    }),
  } as ApiObject;
  return { scale, replicas };
}

/** The selector of an object as text; empty for none, and for one of another form. */
function selectorOf(object: ApiObject, { labelSelectorPath, selector: form }: ScaleForm): string {
  const selector = labelSelectorPath ? valueAt(object, labelSelectorPath) : undefined;
  if (form === 'text') return typeof selector === 'string' ? selector : '';
  if (!isObject(selector)) return '';
  const isMap = Object.values(selector).every((value) => typeof value === 'string');
  const text = selectorText(isMap ? { matchLabels: selector } : selector);
  return text === '<none>' ? '' : text;
}

function withoutAbsent(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** Sets the replicas of an object in place, making what leads there. */
export function setReplicas(object: ApiObject, path: string, replicas: number): void {
  const steps = stepsOf(path);
  const last = steps.pop() as string;
  let holder: JsonObject = object;
  for (const step of steps) {
    let next = member(holder, step);
    if (!isObject(next)) {
      next = {};
      setMember(holder, step, next);
    }
    holder = next;
  }
  setMember(holder, last, replicas);
}

/** How owners of a kind's replicas are those of its Scale (SSA-10). */
export function scaleMappingOf(target: Target): ScaleMapping {
  const { def, version } = target;
  const pathOf = (one: VersionDef) => {
    const path = scaleFormOf(target, one)?.specReplicasPath;
    return path === undefined ? null : stepsOf(path).join('.');
  };
  const byVersion = new Map(
    def.versions.map((one) => [
      apiVersionOf({ group: def.group, version: one.version }),
      pathOf(one),
    ]),
  );
  return {
    scaleVersion,
    apiVersion: apiVersionOf({ group: def.group, version: version.version }),
    replicasPath: (apiVersion) => byVersion.get(apiVersion),
  };
}
