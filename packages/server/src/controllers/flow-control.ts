import {
  autoUpdateAnnotation,
  defaultFlowObjects,
  mandatoryFlowNames,
  type ResourceDef,
  type Stored,
} from '@wheelhouse/kinds';
import type { FlowSchema } from '@wheelhouse/kinds/types/flowcontrol/v1';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  cloneJson,
  type Dialect,
  formatTime,
  isObject,
  type JsonObject,
  jsonEqual,
  jsonObject,
  nextTurn,
} from '@wheelhouse/machinery';
import type { FlowSettings } from '../gates/flowcontrol/fair-flow-control.ts';
import { readLevel, readSchema, type SchemaSettings } from '../gates/flowcontrol/settings.ts';
import { follow } from '../registry/caches.ts';
import { EntryDecoder } from '../registry/entry-decoder.ts';
import { decodedInSlices } from '../registry/object-codec.ts';
import type { Entry } from '../watchcache/entry.ts';
import { type ControllerTools, createAbsent } from './tools.ts';
import { type Controller, createWorkQueue, runningQueue } from './work-queue.ts';

const periodMs = 60_000;
/** Writes of one object per period. */
const writesMax = 6;

/**
 * Limits how often an object is restored. Two servers with different defaults, such as those of two
 * releases, would otherwise overwrite each other without a pause.
 */
export class WriteBudget {
  readonly #clock: Clock;
  /** Recent write times of each object, oldest first. */
  readonly #writes = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one write; otherwise returns the time in milliseconds until one is available. */
  take(key: string): number | undefined {
    const nowMs = this.#clock.monotonic();
    const recent = (this.#writes.get(key) ?? []).filter((atMs) => nowMs - atMs < periodMs);
    this.#writes.set(key, recent);
    const [oldest] = recent;
    if (oldest !== undefined && recent.length >= writesMax) return oldest + periodMs - nowMs;
    recent.push(nowMs);
    return undefined;
  }

  /** Drops the history of a removed object. */
  forget(key: string): void {
    this.#writes.delete(key);
  }
}

/** The two kinds that configure flow control. */
export interface FlowDefs {
  readonly levels: ResourceDef;
  readonly schemas: ResourceDef;
}

/** Creates the missing defaults concurrently (OPS-3). */
export async function createFlowDefaults(
  options: ControllerTools & { readonly defs: FlowDefs; readonly dialect: Dialect },
): Promise<void> {
  const { defs, dialect } = options;
  const desired = [...desiredObjects(defs, defaultFlowObjects(dialect))];
  await Promise.all(
    desired.map(([key, object]) => {
      const [def, name] = placeOf(defs, key);
      return createAbsent(options, { at: { def, namespace: '', name }, object });
    }),
  );
}

/** Enough to let the store group commits, and few enough that requests are served in between. */
const workers = 4;

/**
 * Maintains the default FlowSchemas and PriorityLevelConfigurations (OPS-3): creates missing ones,
 * restores mandatory ones, restores suggested ones unless a user has taken them over, and removes
 * objects that an older server maintained and that this one lacks. An object is processed when it
 * changes, not periodically.
 */
export async function startFlowDefaults(
  options: ControllerTools & { readonly defs: FlowDefs; readonly dialect: Dialect },
): Promise<Controller> {
  const { defs, dialect, caches, writer, clock } = options;
  const annotation = autoUpdateAnnotation(dialect);
  const defaults = desiredObjects(defs, defaultFlowObjects(dialect));
  const budget = new WriteBudget(clock);
  const run = async (key: string): Promise<void> => {
    await nextTurn();
    const [def, name] = placeOf(defs, key);
    const at = { def, namespace: '', name };
    const entry = await caches.of(def).get(name, undefined);
    const current = entry === undefined ? undefined : await decodedInSlices(entry, clock);
    const desired = defaults.get(key);
    const action = actionFor({ current, desired, annotation });
    if (action === 'none') return;
    const pauseMs = budget.take(key);
    if (pauseMs !== undefined) return queue.addAfter(key, pauseMs);
    if (action === 'remove') await writer.remove(at);
    else if (action === 'create') await writer.create(at, cloneJson(asApiObject(desired)));
    else await writer.change(at, (current) => reconciled({ current, desired, annotation }));
  };
  const queue = createWorkQueue({ ...options, name: 'flow-control-defaults', run, workers });
  for (const key of defaults.keys()) queue.add(key);
  const followed = await Promise.all(
    [defs.levels, defs.schemas].map((def) =>
      follow(
        caches.of(def),
        (name, entry) => {
          const key = `${def.resource}/${name}`;
          if (defaults.has(key) || mayBeManaged(entry, annotation)) queue.add(key);
          else if (entry === undefined) budget.forget(key);
        },
        { unreadable: 'omitted' },
      ),
    ),
  );
  return runningQueue(queue, ...followed);
}

function desiredObjects(
  { levels, schemas }: FlowDefs,
  defaults: ReturnType<typeof defaultFlowObjects>,
): ReadonlyMap<string, ApiObject> {
  const keyed = (def: ResourceDef, objects: readonly ApiObject[]) =>
    objects.map((object) => [`${def.resource}/${object.metadata.name}`, object] as const);
  return new Map([...keyed(levels, defaults.levels), ...keyed(schemas, defaults.schemas)]);
}

function placeOf(defs: FlowDefs, key: string): readonly [ResourceDef, string] {
  const [resource, name = ''] = key.split('/');
  return [resource === defs.levels.resource ? defs.levels : defs.schemas, name];
}

/** Whether an object contains the annotation's key; searches the bytes to avoid decoding it. */
function mayBeManaged(entry: Entry | undefined, annotation: string): boolean {
  return entry?.json.includes(annotation) === true;
}

interface Comparison {
  readonly current: ApiObject | undefined;
  readonly desired: ApiObject | undefined;
  readonly annotation: string;
}

/** The action that an object requires. */
function actionFor({ current, desired, annotation }: Comparison) {
  if (current === undefined) return desired === undefined ? 'none' : 'create';
  if (desired === undefined) return autoUpdateOf(current, annotation) === true ? 'remove' : 'none';
  return reconciled({ current, desired, annotation }) === current ? 'none' : 'change';
}

/** The value of the annotation, parsed as a Go boolean; undefined if it is absent or invalid. */
function autoUpdateOf({ metadata }: ApiObject, annotation: string): boolean | undefined {
  const text = metadata.annotations?.[annotation] ?? '';
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) return true;
  return ['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text) ? false : undefined;
}

/**
 * The object in its desired form; the same object if it needs no change. The spec is managed if the
 * object is mandatory or the annotation is true, and, without an annotation, until it is changed.
 */
function reconciled({
  current,
  desired,
  annotation,
}: Comparison & { current: ApiObject }): ApiObject {
  if (desired === undefined) return current;
  const autoUpdate = autoUpdateOf(current, annotation);
  const { name = '', generation } = current.metadata;
  const isManaged = mandatoryFlowNames.has(name) || (autoUpdate ?? generation === 1);
  const isSpecCorrect = !isManaged || isSameSpec(current, desired);
  if (isSpecCorrect && autoUpdate === isManaged) return current;
  const next = cloneJson(current);
  if (!isSpecCorrect) next.spec = cloneJson(desired.spec ?? null);
  next.metadata.annotations = { ...next.metadata.annotations, [annotation]: String(isManaged) };
  return next;
}

/** Compares specs, without the exempt level's settings, which belong to administrators. */
function isSameSpec(current: ApiObject, desired: ApiObject): boolean {
  const isExempt = isObject(desired.spec) && isObject(desired.spec['exempt']);
  if (!isExempt || !isObject(current.spec) || !isObject(current.spec['exempt'])) {
    return jsonEqual(current.spec, desired.spec);
  }
  const spec: JsonObject = { ...jsonObject(desired.spec), exempt: current.spec['exempt'] };
  return jsonEqual(current.spec, spec);
}

/** The single key of all objects together, which is not a valid name. */
const everything = '';

/**
 * Configures flow control from FlowSchemas and PriorityLevelConfigurations, initially and on every
 * change, and reports in each schema's status whether its level exists (OPS-3). Changes are batched
 * into one pass. Resolves when the stored objects are loaded.
 */
export async function startFlowConfiguration(
  options: ControllerTools & {
    readonly defs: FlowDefs;
    readonly configure: (settings: FlowSettings) => void;
    /** Names of levels that flow control has even if they are not stored. */
    readonly defaultLevels: ReadonlySet<string>;
  },
): Promise<Controller> {
  const { defs, caches, writer, clock } = options;
  const stored = { levels: new Map<string, ApiObject>(), schemas: new Map<string, StoredSchema>() };
  const budget = new WriteBudget(clock);
  let levelNames = options.defaultLevels;
  const applyStored = (): void => {
    const levels = [...stored.levels.values()].flatMap((object) => readLevel(object) ?? []);
    const schemas = [...stored.schemas.values()].map(({ settings }) => settings);
    options.configure({ levels, schemas });
    levelNames = new Set([...options.defaultLevels, ...levels.map(({ name }) => name)]);
    for (const [name, { object, settings }] of stored.schemas) {
      if (!isReported(object, conditionOf(settings, levelNames))) queue.add(name);
    }
  };
  const report = async (name: string): Promise<void> => {
    const schema = stored.schemas.get(name);
    if (schema === undefined) return;
    const condition = conditionOf(schema.settings, levelNames);
    if (isReported(schema.object, condition)) return;
    const pauseMs = budget.take(name);
    if (pauseMs !== undefined) return queue.addAfter(name, pauseMs);
    const at = { def: defs.schemas, namespace: '', name, subresource: 'status' };
    await writer.apply(at, (current) =>
      // Another server may have written the condition; a second write would change its time.
      isReported(current, condition) ? undefined : conditionBody(current, condition, clock.now()),
    );
  };
  const run = async (key: string): Promise<void> => {
    // A write triggers further runs; requests are served in between.
    await nextTurn();
    return key === everything ? applyStored() : report(key);
  };
  const queue = createWorkQueue({
    ...options,
    name: 'priority_and_fairness_config_queue',
    run,
    workers: 4,
  });
  const decoder = new EntryDecoder(clock);
  const storeIn =
    <T>(into: Map<string, T>, of: { readonly resource: string; read(object: ApiObject): T }) =>
    (name: string, entry: Entry | undefined) =>
      decoder.pass(`${of.resource}/${name}`, entry, (object) => {
        if (object === undefined) into.delete(name);
        else into.set(name, of.read(object));
        if (object === undefined) budget.forget(name);
        queue.add(everything);
      });
  const { levels, schemas } = defs;
  const onLevel = storeIn(stored.levels, { ...levels, read: (object) => object });
  const onSchema = storeIn(stored.schemas, { ...schemas, read: storedSchema });
  const followed = await Promise.all([
    follow(caches.of(levels), onLevel, { unreadable: 'omitted' }),
    follow(caches.of(schemas), onSchema, { unreadable: 'omitted' }),
  ]);
  await decoder.settled();
  return runningQueue(queue, ...followed);
}

/** A schema as it is stored, and what flow control uses of it, read once. */
interface StoredSchema {
  readonly object: ApiObject;
  readonly settings: SchemaSettings;
}

const storedSchema = (object: ApiObject): StoredSchema => ({
  object,
  settings: readSchema(object),
});

interface Condition {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

function conditionOf({ level }: SchemaSettings, levels: ReadonlySet<string>): Condition {
  const subject = `This FlowSchema references the PriorityLevelConfiguration object named "${level}"`;
  return levels.has(level)
    ? { status: 'False', reason: 'Found', message: `${subject} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${subject} but there is no such object` };
}

function isReported(schema: Stored<FlowSchema>, { status, reason, message }: Condition): boolean {
  return (schema.status?.conditions ?? []).some(
    (condition) =>
      condition.type === 'Dangling' &&
      condition.status === status &&
      condition.reason === reason &&
      condition.message === message,
  );
}

/** The body with which a schema's condition is applied, beside the conditions of other managers. */
function conditionBody(
  { apiVersion, kind, metadata: { name = '' } }: ApiObject,
  condition: Condition,
  nowMs: number,
): JsonObject {
  const dangling = { type: 'Dangling', ...condition, lastTransitionTime: formatTime(nowMs) };
  return { apiVersion, kind, metadata: { name }, status: { conditions: [dangling] } };
}
