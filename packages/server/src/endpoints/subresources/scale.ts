import {
  apiVersionIn,
  integerProblem,
  type ResourceDef,
  type ScaleBehavior,
  type ScalePaths,
  scale as scaleKind,
  selectorText,
  stepsOf,
  type VersionDef,
  validateScale,
  valueAt,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  badRequest,
  cloneJson,
  conflict,
  type Dialect,
  definedMembers,
  internalError,
  invalidObject,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  notFound,
  paceFor,
  pathNotFound,
  setMember,
} from '@wheelhouse/machinery';
import { ownersForScale, ownersFromScale, type ScaleMapping } from '@wheelhouse/structured-merge';
import { sendUnstored } from '../../answer/respond.ts';
import type { ObjectView, Target, Transform, UpdatePlan } from '../../registry/contract.ts';
import { shownObject } from '../../registry/conversion/converted-kinds.ts';
import { objectKey, parsedAt } from '../../registry/object-codec.ts';
import {
  checkPathAgreement,
  type KeyShown,
  preconditionFailed,
} from '../../registry/object-meta.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import { parseGetOptions, type WriteOptions } from '../../request/options.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { decodeObject, readWrite } from '../body/decode-object.ts';
import type { ApiCall } from '../call.ts';
import type { PatchChange } from '../patches/apply.ts';
import { changeOf, readPatch, writeContext } from '../write.ts';

/** The apiVersion of Scale objects. */
const scaleVersion = 'autoscaling/v1';

/** The paths in an object that its Scale shows, and their form. */
interface ScaleForm extends ScalePaths, Pick<ScaleBehavior, 'selector'> {}

/** The Scale paths of a version; undefined if it has no Scale. */
function scaleFormOf({ def }: Target, version: VersionDef): ScaleForm | undefined {
  const { paths, selector } = def.behavior.scale;
  const scalePaths = version.scale ?? paths;
  return scalePaths === undefined ? undefined : { ...scalePaths, selector };
}

function integerAt(object: JsonObject, path: string): number | undefined {
  const value = valueAt(object, path);
  if (value === null) return undefined;
  const problem = integerProblem(object, path);
  if (problem !== undefined) throw internalError(problem);
  return value === undefined ? undefined : Number(value);
}

/** The Scale of an object; `replicas` is undefined if the object does not state them. */
function scaleOf(
  object: ApiObject,
  paths: ScaleForm,
): { readonly scale: ApiObject; readonly replicas: number | undefined } {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = integerAt(object, paths.specReplicasPath);
  const selector = selectorOf(object, paths);
  const metadata = { name, namespace, uid, resourceVersion, creationTimestamp };
  const scale = asApiObject({
    kind: 'Scale',
    apiVersion: scaleVersion,
    metadata: definedMembers(metadata),
    spec: definedMembers({ replicas: replicas === 0 ? undefined : replicas }),
    status: definedMembers({
      replicas: integerAt(object, paths.statusReplicasPath) ?? 0,
      selector: selector === '' ? undefined : selector,
    }),
  });
  return { scale, replicas };
}

/** The selector of an object as text; empty if it is absent or has another form. */
function selectorOf(object: ApiObject, { labelSelectorPath, selector: form }: ScaleForm): string {
  const selector = labelSelectorPath ? valueAt(object, labelSelectorPath) : undefined;
  if (form === 'text') return typeof selector === 'string' ? selector : '';
  if (!isObject(selector)) return '';
  const isMap = Object.values(selector).every((value) => typeof value === 'string');
  const text = selectorText(isMap ? { matchLabels: selector } : selector);
  return text === '<none>' ? '' : text;
}

/** Sets the replicas of an object in place, and creates missing parents. */
function setReplicas(object: ApiObject, path: string, replicas: number): void {
  const steps = stepsOf(path);
  const last = steps.pop() ?? '';
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

/** Maps owners of a kind's replicas to owners of its Scale (SSA-10). */
function scaleMappingOf(target: Target): ScaleMapping {
  const { def, version } = target;
  const pathOf = (versionDef: VersionDef) => {
    const path = scaleFormOf(target, versionDef)?.specReplicasPath;
    return path === undefined ? null : stepsOf(path).join('.');
  };
  const byVersion = new Map(
    def.versions.map((versionDef) => [apiVersionIn(def, versionDef), pathOf(versionDef)]),
  );
  return {
    scaleVersion,
    apiVersion: apiVersionIn(def, version),
    replicasPath: (apiVersion) => byVersion.get(apiVersion),
  };
}

/** The Scale that a patch changes if a custom object does not state replicas. */
const noneYet = -(2 ** 31);

/**
 * The `scale` subresource: the replicas of an object, read and written as a Scale, whose field
 * owners are the object's owners of that field (SSA-10).
 */
export async function scaleEndpoint(call: ApiCall): Promise<void> {
  const paths = scaleFormOf(call.target, call.target.version);
  if (paths === undefined) throw pathNotFound();
  const { verb } = call.info;
  if (verb === 'get') return getScale(call, paths);
  const asScale: ApiCall = { ...call, target: scaleTarget(call) };
  if (verb === 'patch') {
    const patch = await readPatch(call);
    return writeScale(call, paths, { options: patch.options, change: changeOf(asScale, patch) });
  }
  const { body, options } = await readWrite(asScale);
  const scale = decodeObject(asScale, { body, fieldValidation: options.fieldValidation });
  checkPathAgreement(call.target, scale);
  const change: PatchChange = { source: 'body', transform: () => cloneJson(scale) };
  return writeScale(call, paths, { options, change });
}

async function writeScale(
  call: ApiCall,
  paths: ScaleForm,
  { options, change }: { readonly options: WriteOptions; readonly change: PatchChange },
): Promise<void> {
  const { target } = call;
  const { entry } = await write(call.context.registry, {
    operation: 'update',
    target,
    context: writeContext(call, options),
    ...change,
    transform: change.source === 'patched' ? ofStatedReplicas(change.transform) : change.transform,
    view: scaleView(call, { paths, source: change.source, dryRun: options.dryRun }),
    onAbsent: 'refuse',
  });
  const { scale } = scaleOf(await objectOf(call, entry), paths);
  await sendScale(call, scale);
}

/** The object of an entry, decoded at the pace of its size. */
async function objectOf({ context, target }: ApiCall, entry: Entry): Promise<ApiObject> {
  const pace = paceFor(context.clock, entry.json.length);
  if (pace !== undefined) await parsedAt(pace, entry);
  return shownObject(target, entry);
}

/**
 * A JSON patch replaces only what is present, and may scale up from 0. Only the patched document
 * states 0 replicas: to the field manager, they are the absent value that they are in a Scale.
 */
function ofStatedReplicas(transform: Transform): Transform {
  const stated = (scale: ApiObject | undefined) => {
    if (scale === undefined || valueAt(scale, '.spec.replicas') !== undefined) return scale;
    return { ...scale, spec: { replicas: 0 } };
  };
  return ({ current, live, pace }) =>
    transform({ current: stated(current), live: stated(live), pace });
}

/** The Scale view of an object: changing it changes the replicas and their owners. */
function scaleView(
  call: ApiCall,
  form: {
    readonly paths: ScaleForm;
    readonly source: UpdatePlan['source'];
    readonly dryRun: boolean;
  },
): ObjectView {
  const { paths, source, dryRun } = form;
  const { target } = call;
  const mapping = scaleMappingOf(target);
  const { requiresReplicas, validatedAs } = target.def.behavior.scale;
  return {
    target: scaleTarget(call),
    show: (object) => scaleOf(object, paths).scale,
    *showOwned(object) {
      const { scale, replicas } = scaleOf(object, paths);
      if (replicas === undefined && requiresReplicas) scale['spec'] = { replicas: noneYet };
      const shown = yield* ownersForScale(object.metadata.managedFields, mapping);
      if (shown !== undefined) scale.metadata.managedFields = shown;
      return scale;
    },
    *merge(object, changed) {
      const replicas = replicasOf(changed);
      if (validatedAs === 'scale') checkScale(target, changed, call.context.dialect);
      if (requiresReplicas && replicas === noneYet) throw emptyReplicas(paths);
      const { store } = call.context.registry;
      checkUid(target, { changed, object, source, store, dryRun });
      if (replicas !== scaleOf(object, paths).replicas) {
        setReplicas(object, paths.specReplicasPath, replicas);
        // Setting the replicas may create the spec, which has defaults.
        target.version.decode?.(object, { keepsNulls: true });
      }
      const { resourceVersion = '', managedFields } = changed.metadata;
      if (resourceVersion !== '') object.metadata.resourceVersion = resourceVersion;
      const owners = object.metadata.managedFields;
      const after = yield* ownersFromScale(owners, managedFields, mapping);
      if (after === undefined) delete object.metadata.managedFields;
      else object.metadata.managedFields = after;
    },
  };
}

const kinds = new Map<Dialect, ResourceDef>();

/** The Scale as a kind, so that it is decoded, patched, and applied like any other. */
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

const desiredOf = (scale: JsonObject): JsonValue => valueAt(scale, '.spec.replicas') ?? null;

/**
 * A Scale with the column formats of custom kinds; like kube-apiserver, without a number for 0
 * replicas.
 */
function withFormats(version: VersionDef): VersionDef {
  let formatted = printed.get(version);
  if (formatted === undefined) {
    const columns = version.columns?.map((column) => {
      if (column.name === 'Name') return { ...column, format: 'name' };
      if (column.name === 'Desired') return { ...column, cell: desiredOf };
      return column.name === 'Age' ? { ...column, type: 'date' as const } : column;
    });
    formatted = columns === undefined ? version : { ...version, columns };
    printed.set(version, formatted);
  }
  return formatted;
}

async function getScale(call: ApiCall, paths: ScaleForm): Promise<void> {
  const { context, target } = call;
  const { resourceVersion } = parseGetOptions(call.info.query);
  const key = objectKey(target.namespace, target.name);
  const entry = await context.registry.caches.of(target.def).get(key, resourceVersion);
  if (entry === undefined) {
    const { missing } = target.def.subresources.find(({ name }) => name === 'scale') ?? {};
    throw notFound(missing ?? groupResourceOf(target.def), target.name);
  }
  const { scale, replicas } = scaleOf(await objectOf(call, entry), paths);
  if (replicas === undefined && target.def.behavior.scale.requiresReplicas) throw noReplicas(paths);
  await sendScale(call, scale);
}

/** Answers with a Scale in the requested form; in tables it has its own columns (CODEC-5). */
function sendScale(call: ApiCall, scale: ApiObject): Promise<void> {
  return sendUnstored(call, { status: 200, object: scale, target: scaleTarget(call) });
}

const noReplicas = ({ specReplicasPath }: ScaleForm) =>
  internalError(`the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`);

const replicasOf = (scale: ApiObject) =>
  Number((scale['spec'] as { replicas?: number } | undefined)?.replicas ?? 0);

/** Validates the replicas by the custom kind's own strategy. */
function checkScale(target: Target, scale: ApiObject, dialect: Dialect): void {
  const errors = validateScale(scale, dialect);
  if (errors.length > 0) {
    throw invalidObject({ group: 'autoscaling', kind: 'Scale' }, target.name, errors);
  }
}

const emptyReplicas = ({ specReplicasPath }: ScaleForm) =>
  badRequest(`the spec replicas field ${JSON.stringify(specReplicasPath)} cannot be empty`);

/** Throws 409 if a write states another uid: a PUT of the object, a patch of the Scale. */
function checkUid(
  target: Target,
  scale: {
    readonly changed: ApiObject;
    readonly object: ApiObject;
    readonly source: UpdatePlan['source'];
  } & KeyShown,
): void {
  const { source, store, dryRun } = scale;
  const expected = scale.changed.metadata.uid ?? '';
  const actual = scale.object.metadata.uid ?? '';
  if (expected === '' || expected === actual) return;
  if (source === 'body')
    throw preconditionFailed(target, { expected, actual, what: 'UID', store, dryRun });
  if (!target.def.behavior.scale.patchChecksUid) return;
  const { group, resource } = groupResourceOf(target.def);
  const why = `Precondition failed: UID in precondition: ${expected}, UID in object meta: ${actual}`;
  throw conflict({ group, resource: `${resource}/scale` }, target.name, why);
}
