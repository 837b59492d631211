import {
  builtinKinds,
  defaultFeatures,
  type MaybeSteps,
  type ResourceDef,
  type StrategyContext,
} from '@wheelhouse/kinds';
import { previewKinds } from '@wheelhouse/kinds/testing';
import {
  type ApiObject,
  dialectOf,
  invalidObject,
  type JsonObject,
  runInOnePiece,
} from '@wheelhouse/machinery';
import { decodeTyped, restoreOmitted, settleEmpty } from '@wheelhouse/schema';
import { placeOf } from './growth-forms.ts';
import { type Collection, collectionsOf } from './growth-shapes.ts';

/** The rules of kinds over large objects, without a server. */

const dialect = dialectOf('svc');

/** All kinds that have an example and are stored. */
export const ruledKinds: readonly ResourceDef[] = [
  ...builtinKinds(dialect),
  ...previewKinds(dialect, defaultFeatures, {}),
].filter(({ example, isVirtual }) => example !== undefined && isVirtual !== true);

/** Kinds whose pod templates have the rules of Pod. */
const withTemplates = new Set([
  'CronJob',
  'DaemonSet',
  'Deployment',
  'Job',
  'PodTemplate',
  'ReplicaSet',
  'ReplicationController',
  'StatefulSet',
]);

/** The lists and maps of a kind's stored version that have rules of their own. */
export const ruledCollections = (def: ResourceDef): readonly Collection[] =>
  collectionsOf(versionOf(def).schema).filter(
    ({ steps, schema }) =>
      (schema.items !== undefined || schema.additionalProperties !== undefined) &&
      steps[0] !== 'metadata' &&
      !(withTemplates.has(def.kind) && steps.includes('template')),
  );

function versionOf(def: ResourceDef) {
  const [version] = def.versions;
  if (version === undefined) throw new Error(`${def.kind} has no version`);
  return version;
}

/** How an object is written: a creation, an update of the example, or a write to its status. */
export const ruleForms = ['create', 'update', 'status'] as const;
export type RuleForm = (typeof ruleForms)[number];

/** Whether a form writes a collection. */
export const writes = (form: RuleForm, { steps }: Collection): boolean =>
  form !== 'status' || steps[0] === 'status';

/** The example of a kind. */
export const exampleOf = (def: ResourceDef): JsonObject =>
  placeOf(def, versionOf(def), 'default').object;

const user = { name: 'tester', uid: '', groups: [], extra: {} };

/** A pass of the rules over an object: its name, and a function that runs or begins it. */
type RulePass = readonly [name: string, run: () => MaybeSteps<unknown>];

/**
 * The passes of a write, which the caller runs in order. Throws a DecodeError if the body does not
 * fit the kind.
 */
export function* rulePasses(
  def: ResourceDef,
  body: JsonObject,
  form: RuleForm,
): Generator<RulePass, void> {
  const { strategy } = def;
  const version = versionOf(def);
  const subresource = form === 'status' ? 'status' : '';
  const context: StrategyContext = { user, nowMs: 0, dryRun: false, subresource, warn: () => {} };
  const old = form === 'create' ? undefined : completed(def, exampleOf(def));
  const object = decodeTyped(version.schema)(body) as ApiObject;
  yield ['defaults', () => version.defaultSteps?.(object) ?? version.defaults?.(object)];
  settleEmpty(version.schema, object);
  yield [
    'preparation',
    () =>
      old === undefined
        ? strategy.prepareForCreate?.(context, object)
        : strategy.prepareForUpdate?.(context, object, old),
  ];
  if (old === undefined) restoreOmitted(object);
  yield ['validation', () => findingsOf(def, { context, object, old })];
  if (form !== 'status') yield ['warnings', () => strategy.warnings?.(object, old)];
  for (const { name, cell } of version.columns ?? []) yield [`cell ${name}`, () => cell(object, 0)];
}

/** The errors of an object, and the answer that reports them. */
function* findingsOf(
  def: ResourceDef,
  of: {
    readonly context: StrategyContext;
    readonly object: ApiObject;
    readonly old: ApiObject | undefined;
  },
): Generator<void, number> {
  const { context, object, old } = of;
  const { strategy, group, kind } = def;
  const findings =
    old === undefined
      ? strategy.validateCreate?.(context, object, () => [])
      : strategy.validateUpdate?.(context, object, old, () => []);
  if (findings === undefined) return 0;
  const errors = 'next' in findings ? yield* findings : findings;
  if (errors.length > 0) invalidObject({ group, kind }, 'example', errors);
  return errors.length;
}

/** A body with defaults, as the registry reads it from the store. */
export function completed(def: ResourceDef, body: JsonObject): ApiObject {
  const version = versionOf(def);
  const object = decodeTyped(version.schema)(body) as ApiObject;
  const steps = version.defaultSteps?.(object);
  if (steps === undefined) version.defaults?.(object);
  else runInOnePiece(steps);
  settleEmpty(version.schema, object);
  return object;
}
