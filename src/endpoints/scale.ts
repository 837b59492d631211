import { cloneJson } from '../base/json.ts';
import type { CrdScale } from '../catalogue/crd-shape.ts';
import type { ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { ownersForScale, ownersFromScale } from '../engines/apply/scale-owners.ts';
import { scale as scaleKind, validateScale } from '../kinds/autoscaling/scale.ts';
import { internalError, invalidObject, noSuchPath, notFound } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import type { Target } from '../registry/contract.ts';
import { objectIn, objectKey } from '../registry/object-codec.ts';
import { preconditionFailed } from '../registry/object-meta.ts';
import { groupResourceOf } from '../registry/registry.ts';
import { updateObject } from '../registry/update.ts';
import { parseUpdateOptions, type WriteOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';
import { decodeBody, decodeObject } from './decode-object.ts';
import { type AnyPatch, applierFor, readPatch } from './patch.ts';
import { patcherFor } from './patchers.ts';
import { sendValue } from './respond.ts';
import { scaleMappingOf, scaleOf, scalePathsOf, setReplicas } from './scale-object.ts';
import { writeContext } from './write-context.ts';

/** Makes the new Scale from the current one, which it may use up; owners included. */
type ScaleChange = (current: ApiObject) => ApiObject;

/**
 * The `scale` sub-resource: the replicas of an object, seen and written as a Scale whose owners are
 * the object's owners of that one field (SSA-10).
 */
export async function scaleEndpoint(call: ApiCall): Promise<void> {
  const paths = scalePathsOf(call.target, call.target.version);
  if (paths === undefined) throw noSuchPath();
  const { verb } = call.info;
  if (verb === 'get') return getScale(call, paths);
  const asScale: ApiCall = { ...call, target: scaleTarget(call) };
  if (verb === 'patch') {
    const patch = await readPatch(call);
    return writeScale(call, { paths, options: patch.options, change: patched(asScale, patch) });
  }
  const options = parseUpdateOptions(call.info.query, call.context.dialect);
  const body = await decodeBody(asScale);
  const given = decodeObject(asScale, { body, fieldValidation: options.fieldValidation });
  const change = recorded(asScale, options, () => cloneJson(given));
  return writeScale(call, { paths, options, change });
}

const kinds = new Map<Dialect, ResourceDef>();

/** The Scale as a kind of its own, so that it is decoded, patched and applied like any other. */
function scaleTarget({ target, context }: ApiCall): Target {
  const { dialect } = context;
  const def = kinds.get(dialect) ?? scaleKind(dialect);
  kinds.set(dialect, def);
  const [version] = def.versions;
  if (version === undefined) throw new Error('a Scale has no version');
  return { ...target, def, version };
}

async function getScale(call: ApiCall, paths: CrdScale): Promise<void> {
  const { context, target } = call;
  const key = objectKey(target.namespace, target.name);
  const entry = await context.registry.caches.of(target.def).get(key, undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  const { scale, replicas } = scaleOf(objectIn(target.def, target.version, entry), paths);
  if (replicas === undefined && target.def.custom !== undefined) throw noReplicas(paths);
  await sendValue(call, { status: 200, value: scale });
}

const noReplicas = ({ specReplicasPath }: CrdScale) =>
  internalError(`the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`);

/** A PUT, or a patch other than apply: the writer is recorded among the Scale's owners. */
function recorded(
  asScale: ApiCall,
  options: WriteOptions,
  make: (current: ApiObject) => ApiObject,
): ScaleChange {
  const { registry } = asScale.context;
  const manager = writeContext(asScale, options).fieldManager;
  return (live) => {
    const object = make(cloneJson(live));
    const nowMs = registry.clock.now();
    registry.fieldManager.recordUpdate({ target: asScale.target, live, object, manager, nowMs });
    return object;
  };
}

function patched(asScale: ApiCall, patch: AnyPatch): ScaleChange {
  const { type, bytes, options } = patch;
  if (type === 'apply') {
    const apply = applierFor(asScale, patch.body, options);
    return (current) => apply(current);
  }
  return recorded(asScale, options, patcherFor(asScale, { type, bytes, options }));
}

async function writeScale(
  call: ApiCall,
  write: { paths: CrdScale; options: WriteOptions; change: ScaleChange },
): Promise<void> {
  const { target } = call;
  const { paths, options, change } = write;
  const { registry } = call.context;
  const context = writeContext(call, options);
  const { entry } = await updateObject(registry, {
    target,
    context,
    transform: (current, attempt) =>
      withScale(target, current as ApiObject, {
        paths,
        change,
        admit: async (object, old) => {
          const { name } = target;
          const operation = 'UPDATE' as const;
          await registry.admission.mutate({
            operation,
            target,
            context,
            name,
            object,
            old,
            attempt,
          });
        },
      }),
    shown: (object) => scaleOf(object, paths).scale,
    record: false,
    onAbsent: 'refuse',
  });
  const { scale } = scaleOf(objectIn(target.def, target.version, entry), paths);
  await sendValue(call, { status: 200, value: scale });
}

/** The object after a change of its Scale: its replicas and their owners follow. */
async function withScale(
  target: Target,
  object: ApiObject,
  {
    paths,
    change,
    admit,
  }: {
    paths: CrdScale;
    change: ScaleChange;
    /** Admission of the changed Scale, which may change it again (ADM-2). */
    admit: (scale: ApiObject, old: ApiObject) => Promise<void>;
  },
): Promise<ApiObject> {
  const mapping = scaleMappingOf(target);
  const { scale, replicas } = scaleOf(object, paths);
  const owners = ownersForScale(object.metadata.managedFields, mapping);
  if (owners !== undefined) scale.metadata.managedFields = owners;
  const changed = change(cloneJson(scale));
  await admit(changed, scale);
  checkScale(target, changed, object);
  const wanted = Number((changed['spec'] as { replicas?: number } | undefined)?.replicas ?? 0);
  if (wanted !== replicas) setReplicas(object, paths.specReplicasPath, wanted);
  const { resourceVersion = '', managedFields } = changed.metadata;
  if (resourceVersion !== '') object.metadata.resourceVersion = resourceVersion;
  const { managedFields: before } = object.metadata;
  const after = ownersFromScale(before, managedFields, mapping);
  if (after === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = after;
  return object;
}

function checkScale(target: Target, scale: ApiObject, object: ApiObject): void {
  const errors = validateScale(scale);
  if (errors.length > 0) {
    throw invalidObject({ group: 'autoscaling', kind: 'Scale' }, target.name, errors);
  }
  const wanted = scale.metadata.uid ?? '';
  const actual = object.metadata.uid ?? '';
  if (wanted !== '' && wanted !== actual) {
    throw preconditionFailed(target, { wanted, actual, what: 'UID' });
  }
}
