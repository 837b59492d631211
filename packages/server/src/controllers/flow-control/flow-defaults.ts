import {
  autoUpdateAnnotation,
  defaultFlowObjects,
  mandatoryFlowNames,
  type ResourceDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  cloneJson,
  type Dialect,
  isObject,
  type JsonObject,
  jsonEqual,
  jsonObject,
  nextTurn,
} from '@wheelhouse/machinery';
import { follow } from '../../registry/caches.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { type ControllerTools, createAbsent } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';

const periodMs = 60_000;
/** Writes of one object per period. */
const writesMax = 6;

/**
 * Limits how often an object is restored. Two servers that disagree about it, such as two releases,
 * would otherwise overwrite each other without a pause.
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
  const wanted = [...wantedObjects(defs, defaultFlowObjects(dialect))];
  await Promise.all(
    wanted.map(([key, object]) => {
      const [def, name] = placeOf(defs, key);
      return createAbsent(options, { at: { def, namespace: '', name }, object });
    }),
  );
}

/** Enough for the store to group commits, few enough for requests to be served in between. */
const workers = 4;

/**
 * Maintains the default FlowSchemas and PriorityLevelConfigurations (OPS-3): creates missing ones,
 * restores mandatory ones, restores suggested ones unless a user took them over, and removes
 * objects that an older server maintained and this one does not have. An object is processed when
 * it changes, never periodically.
 */
export async function startFlowDefaults(
  options: ControllerTools & {
    readonly defs: FlowDefs;
    readonly dialect: Dialect;
  },
): Promise<{ close(): Promise<void> }> {
  const { defs, dialect, caches, writer, clock } = options;
  const annotation = autoUpdateAnnotation(dialect);
  const wanted = wantedObjects(defs, defaultFlowObjects(dialect));
  const budget = new WriteBudget(clock);
  const run = async (key: string): Promise<void> => {
    await nextTurn();
    const [def, name] = placeOf(defs, key);
    const at = { def, namespace: '', name };
    const entry = await caches.of(def).get(name, undefined);
    const current = entry === undefined ? undefined : decodeEntry(entry);
    const desired = wanted.get(key);
    const action = actionFor({ current, desired, annotation });
    if (action === 'none') return;
    const pauseMs = budget.take(key);
    if (pauseMs !== undefined) return queue.addAfter(key, pauseMs);
    if (action === 'remove') await writer.remove(at);
    else if (action === 'create') await writer.create(at, cloneJson(asApiObject(desired)));
    else await writer.change(at, (found) => revised({ current: found, desired, annotation }));
  };
  const queue = createWorkQueue({ ...options, name: 'flow-control-defaults', run, workers });
  for (const key of wanted.keys()) queue.add(key);
  const followed = await Promise.all(
    [defs.levels, defs.schemas].map((def) =>
      follow(
        caches.of(def),
        (name, entry) => {
          const key = `${def.resource}/${name}`;
          if (wanted.has(key) || isOurs(entry, annotation)) queue.add(key);
          else if (entry === undefined) budget.forget(key);
        },
        { unreadable: 'left-out' },
      ),
    ),
  );
  return {
    async close() {
      for (const one of followed) one.close();
      await queue.close();
    },
  };
}

function wantedObjects(
  { levels, schemas }: FlowDefs,
  defaults: ReturnType<typeof defaultFlowObjects>,
): ReadonlyMap<string, ApiObject> {
  const keyed = (def: ResourceDef, objects: readonly ApiObject[]) =>
    objects.map((one) => [`${def.resource}/${one.metadata.name}`, one] as const);
  return new Map([...keyed(levels, defaults.levels), ...keyed(schemas, defaults.schemas)]);
}

function placeOf(defs: FlowDefs, key: string): readonly [ResourceDef, string] {
  const [resource, name = ''] = key.split('/');
  return [resource === defs.levels.resource ? defs.levels : defs.schemas, name];
}

/** Searches the bytes before decoding, since most objects lack the annotation. */
function isOurs(entry: Entry | undefined, annotation: string): boolean {
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
  if (desired === undefined) {
    return saidOf(current, annotation) === true ? 'remove' : 'none';
  }
  return revised({ current, desired, annotation }) === current ? 'none' : 'change';
}

/** The value of the annotation, parsed like a Go boolean; undefined if it is neither. */
function saidOf({ metadata }: ApiObject, annotation: string): boolean | undefined {
  const text = metadata.annotations?.[annotation] ?? '';
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) return true;
  return ['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text) ? false : undefined;
}

/**
 * The object in its desired form; the same object if it is correct. The spec is maintained if it is
 * mandatory or the annotation says so; without an annotation, as long as nobody changed it.
 */
function revised({ current, desired, annotation }: Comparison & { current: ApiObject }): ApiObject {
  if (desired === undefined) return current;
  const said = saidOf(current, annotation);
  const { name = '', generation } = current.metadata;
  const isKept = mandatoryFlowNames.has(name) || (said ?? generation === 1);
  const isSpecRight = !isKept || isSameSpec(current, desired);
  if (isSpecRight && said === isKept) return current;
  const next = cloneJson(current);
  if (!isSpecRight) next.spec = cloneJson(desired.spec ?? null);
  next.metadata.annotations = { ...next.metadata.annotations, [annotation]: String(isKept) };
  return next;
}

/** Administrators own the exempt level's own settings, which are not compared. */
function isSameSpec(current: ApiObject, desired: ApiObject): boolean {
  const isExempt = isObject(desired.spec) && isObject(desired.spec['exempt']);
  if (!isExempt || !isObject(current.spec) || !isObject(current.spec['exempt'])) {
    return jsonEqual(current.spec, desired.spec);
  }
  const spec: JsonObject = { ...jsonObject(desired.spec), exempt: current.spec['exempt'] };
  return jsonEqual(current.spec, spec);
}
