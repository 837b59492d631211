import {
  type ResourceDef,
  scale as scaleKind,
  type VersionDef,
  validateScale,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  cloneJson,
  conflict,
  type Dialect,
  internalError,
  invalidObject,
  type MaybePromise,
  noSuchPath,
  notFound,
} from '@wheelhouse/machinery';
import { ownersForScale, ownersFromScale } from '@wheelhouse/structured-merge';
import { sendValue } from '../../answer/respond.ts';
import { transformFor } from '../../answer/transform.ts';
import type { Target } from '../../registry/contract.ts';
import { shownObject } from '../../registry/conversion/views.ts';
import { objectKey } from '../../registry/object-codec.ts';
import { checkPathAgreement, preconditionFailed } from '../../registry/object-meta.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { updateObject } from '../../registry/update.ts';
import { parseGetOptions, parseUpdateOptions, type WriteOptions } from '../../request/options.ts';
import { decodeBody, decodeObject } from '../body/decode-object.ts';
import type { ApiCall } from '../call.ts';
import { type AnyPatch, applierFor, readPatch } from '../patch.ts';
import { patcherFor } from '../patches/patchers.ts';
import { writeContext } from '../write-context.ts';
import {
  type ScaleForm,
  scaleFormOf,
  scaleMappingOf,
  scaleOf,
  setReplicas,
} from './scale-object.ts';

type Way = 'put' | 'patch';

/** What the Scale of a custom object that says nothing of replicas has for a patch to change. */
const noneYet = -(2 ** 31);

/** Makes the new Scale from the current one, which it may use up; owners included. */
type ScaleChange = (current: ApiObject) => MaybePromise<ApiObject>;

/**
 * The `scale` sub-resource: the replicas of an object, seen and written as a Scale whose owners are
 * the object's owners of that one field (SSA-10).
 */
export async function scaleEndpoint(call: ApiCall): Promise<void> {
  const paths = scaleFormOf(call.target, call.target.version);
  if (paths === undefined) throw noSuchPath();
  const { verb } = call.info;
  if (verb === 'get') return getScale(call, paths);
  const asScale: ApiCall = { ...call, target: scaleTarget(call) };
  if (verb === 'patch') {
    const patch = await readPatch(call);
    const change = patched(asScale, patch);
    return writeScale(call, { paths, options: patch.options, change, way: 'patch' });
  }
  const options = parseUpdateOptions(call.info.query, call.context.dialect);
  const body = await decodeBody(asScale);
  const given = decodeObject(asScale, { body, fieldValidation: options.fieldValidation });
  checkPathAgreement(call.target, given);
  const change = recorded(asScale, options, () => cloneJson(given));
  return writeScale(call, { paths, options, change, way: 'put' });
}

const kinds = new Map<Dialect, ResourceDef>();

/** The Scale as a kind of its own, so that it is decoded, patched and applied like any other. */
function scaleTarget({ target, context }: ApiCall): Target {
  const { dialect } = context;
  const def = kinds.get(dialect) ?? scaleKind(dialect);
  kinds.set(dialect, def);
  const [version] = def.versions;
  if (version === undefined) throw new Error('a Scale has no version');
  const { columnFormats } = target.def.behavior.scale;
  if (columnFormats === 'plain') return { ...target, def, version };
  return { ...target, def, version: withFormats(version) };
}

const printed = new WeakMap<VersionDef, VersionDef>();

/** A Scale whose columns of names and ages have the formats that custom kinds give them. */
function withFormats(version: VersionDef): VersionDef {
  let known = printed.get(version);
  if (known === undefined) {
    const columns = version.columns?.map((column) => {
      if (column.name === 'Name') return { ...column, format: 'name' };
      return column.name === 'Age' ? { ...column, type: 'date' as const } : column;
    });
    known = columns === undefined ? version : { ...version, columns };
    printed.set(version, known);
  }
  return known;
}

async function getScale(call: ApiCall, paths: ScaleForm): Promise<void> {
  const { context, target } = call;
  parseGetOptions(call.info.query, context.dialect);
  const key = objectKey(target.namespace, target.name);
  const entry = await context.registry.caches.of(target.def).get(key, undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  const { scale, replicas } = scaleOf(await shownObject(target, entry), paths);
  if (replicas === undefined && target.def.behavior.scale.requiresReplicas) throw noReplicas(paths);
  await sendScale(call, scale);
}

/** Answers with a Scale, in the form asked for: it prints as a kind of its own (CODEC-5). */
function sendScale(call: ApiCall, scale: ApiObject): Promise<void> {
  const form = transformFor({ ...call, target: scaleTarget(call) }, 'object');
  return sendValue(call, { status: 200, value: form?.object(scale) ?? scale });
}

const noReplicas = ({ specReplicasPath }: ScaleForm) =>
  internalError(`the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`);

/** A PUT, or a patch other than apply: the writer is recorded among the Scale's owners. */
function recorded(
  asScale: ApiCall,
  options: WriteOptions,
  make: (current: ApiObject, live: ApiObject) => MaybePromise<ApiObject>,
): ScaleChange {
  const { registry } = asScale.context;
  const manager = writeContext(asScale, options).fieldManager;
  return async (live) => {
    const object = await make(cloneJson(live), live);
    const update = { target: asScale.target, live, object, manager, nowMs: registry.clock.now() };
    await registry.fieldManager.recordUpdate(update);
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
  write: { paths: ScaleForm; options: WriteOptions; change: ScaleChange; way: Way },
): Promise<void> {
  const { target } = call;
  const { paths, options, change, way } = write;
  const { registry } = call.context;
  const context = writeContext(call, options);
  const { entry } = await updateObject(registry, {
    target,
    context,
    transform: (current, attempt) =>
      withScale(target, current as ApiObject, {
        paths,
        change,
        way,
        check: (scale) => checkScale(target, scale, call.context.dialect),
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
  const { scale } = scaleOf(await shownObject(target, entry), paths);
  await sendScale(call, scale);
}

/** The object after a change of its Scale: its replicas and their owners follow. */
async function withScale(
  target: Target,
  object: ApiObject,
  {
    paths,
    change,
    way,
    check,
    admit,
  }: {
    paths: ScaleForm;
    change: ScaleChange;
    way: Way;
    /** Throws where a built-in kind's Scale breaks the rules of one. */
    check: (scale: ApiObject) => void;
    /** Admission of the changed Scale, which may change it again (ADM-2). */
    admit: (scale: ApiObject, old: ApiObject) => Promise<void>;
  },
): Promise<ApiObject> {
  const mapping = scaleMappingOf(target);
  const { scale, replicas } = scaleOf(object, paths);
  const { requiresReplicas, judgedAs } = target.def.behavior.scale;
  if (replicas === undefined && requiresReplicas) {
    scale['spec'] = { replicas: noneYet };
  }
  const owners = ownersForScale(object.metadata.managedFields, mapping);
  if (owners !== undefined) scale.metadata.managedFields = owners;
  const changed = await change(cloneJson(scale));
  checkPathAgreement(target, changed);
  await admit(changed, scale);
  const wanted = replicasOf(changed);
  if (judgedAs === 'scale') check(changed);
  if (requiresReplicas && wanted === noneYet) throw emptyReplicas(paths);
  checkUid(target, { changed, object, way });
  if (wanted !== replicas) {
    setReplicas(object, paths.specReplicasPath, wanted);
    // The replicas may bring a spec, and that has defaults.
    target.version.decode?.(object, { keepsNulls: true });
  }
  const { resourceVersion = '', managedFields } = changed.metadata;
  if (resourceVersion !== '') object.metadata.resourceVersion = resourceVersion;
  const { managedFields: before } = object.metadata;
  const after = ownersFromScale(before, managedFields, mapping);
  if (after === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = after;
  return object;
}

const replicasOf = (scale: ApiObject) =>
  Number((scale['spec'] as { replicas?: number } | undefined)?.replicas ?? 0);

/** The rules of a custom kind's own strategy hold for the replicas of its objects. */
function checkScale(target: Target, scale: ApiObject, dialect: Dialect): void {
  const errors = validateScale(scale, dialect);
  if (errors.length > 0) {
    throw invalidObject({ group: 'autoscaling', kind: 'Scale' }, target.name, errors);
  }
}

const emptyReplicas = ({ specReplicasPath }: ScaleForm) =>
  badRequest(`the spec replicas field ${JSON.stringify(specReplicasPath)} cannot be empty`);

/** A PUT asks for the object by its uid; a patch, of built-in kinds alone, for that of the Scale. */
function checkUid(
  target: Target,
  scale: { readonly changed: ApiObject; readonly object: ApiObject; readonly way: Way },
): void {
  const wanted = scale.changed.metadata.uid ?? '';
  const actual = scale.object.metadata.uid ?? '';
  if (wanted === '' || wanted === actual) return;
  if (scale.way === 'put') throw preconditionFailed(target, { wanted, actual, what: 'UID' });
  if (!target.def.behavior.scale.patchChecksUid) return;
  const { group, resource } = groupResourceOf(target.def);
  const why = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${actual}`;
  throw conflict({ group, resource: `${resource}/scale` }, target.name, why);
}
