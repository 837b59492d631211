import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import type { MaybeSteps, ResourceDef } from '../resource-def.ts';
import type { Features, GateName } from './features.ts';

/**
 * Members of a kind that belong to a feature. A write drops them if one of the feature's gates is
 * disabled, unless the old object uses the feature, so that disabling a feature loses no data.
 */
export interface GatedFields {
  readonly gates: readonly GateName[];
  /** A gate that, enabled, suffices. */
  readonly unless?: GateName;
  /**
   * Paths of dropped members: `spec.rules[].failIndex` drops that member of each item. Bars
   * separate the alternatives of a step: `spec.containers|initContainers[].resizePolicy`.
   */
  readonly drop: readonly string[];
  /** Paths that show whether the old object uses the feature; absent: the paths of `drop`. */
  readonly usedBy?: readonly string[];
  /** `create`: only creates drop them. */
  readonly on?: 'create';
  /** Changes an object in place after its members were dropped. */
  readonly adjust?: (object: JsonObject, old: JsonObject | undefined) => void;
}

type Path = readonly { readonly names: readonly string[]; readonly isList: boolean }[];

/**
 * Drops members in place before the rules of the kind run, in steps if they are in lists (TRUST-2).
 */
type DropFields = (
  object: JsonObject,
  old: JsonObject | undefined,
  subresource: string,
) => MaybeSteps<void>;

/** A table entry of a disabled feature. */
interface DisabledFields extends Pick<GatedFields, 'on' | 'adjust'> {
  readonly drop: readonly Path[];
  readonly usedBy: readonly Path[];
  readonly isOfStatus: boolean;
}

/** Returns a function that drops the members of disabled features; undefined if all are enabled. */
export function droppingFields(
  tables: readonly GatedFields[],
  features: Features,
): DropFields | undefined {
  const off = tables
    .filter(({ gates }) => !gates.every((gate) => features.enabled(gate)))
    .filter(({ unless }) => unless === undefined || !features.enabled(unless))
    .map(
      ({ drop, usedBy = drop, on, adjust }): DisabledFields => ({
        ...(adjust === undefined ? {} : { adjust }),
        drop: drop.map(parsePath),
        usedBy: usedBy.map(parsePath),
        ...(on === undefined ? {} : { on }),
        isOfStatus: drop[0]?.startsWith('status.') === true,
      }),
    );
  if (off.length === 0) return undefined;
  const inLists = off.some(({ drop, usedBy }) =>
    [...drop, ...usedBy].some((path) => path.some(({ isList }) => isList)),
  );
  if (!inLists) {
    return (object, old, subresource) => {
      for (const fields of off) {
        if (isDropped(fields, old, subresource)) dropMembers(fields, object, old);
      }
    };
  }
  return function* dropInSteps(object, old, subresource) {
    for (const fields of off) {
      const drops = isDropped(fields, old, subresource);
      yield;
      if (drops) dropMembers(fields, object, old);
      yield;
    }
  };
}

/** Whether a write drops the members of a disabled feature. */
function isDropped(
  { usedBy, on, isOfStatus }: DisabledFields,
  old: JsonObject | undefined,
  subresource: string,
): boolean {
  // A write to status changes no other members.
  if (subresource === 'status' && !isOfStatus) return false;
  return old === undefined || (on !== 'create' && !usedBy.some((path) => isUsed(old, path)));
}

function dropMembers(
  { drop, adjust }: DisabledFields,
  object: JsonObject,
  old: JsonObject | undefined,
): void {
  for (const path of drop) dropAt(object, path);
  adjust?.(object, old);
}

/**
 * Returns a kind that drops the fields of disabled features.
 * @param when whether an update drops them before or after the kind's own preparation
 */
export function withDroppedFields(
  def: ResourceDef,
  drop: DropFields | undefined,
  when: 'before' | 'after',
): ResourceDef {
  if (drop === undefined) return def;
  const { strategy } = def;
  return {
    ...def,
    strategy: {
      ...strategy,
      prepareForCreate: (context, object) =>
        inTurn(drop(object, undefined, context.subresource), () =>
          strategy.prepareForCreate?.(context, object),
        ),
      prepareForUpdate: (context, object, old) => {
        const prepare = () => strategy.prepareForUpdate?.(context, object, old);
        const dropFields = () => drop(object, old, context.subresource);
        return when === 'before' ? inTurn(dropFields(), prepare) : inTurn(prepare(), dropFields);
      },
    },
  };
}

/** Runs two passes in turn, in steps if the first takes steps. */
const inTurn = (first: MaybeSteps<void>, second: () => MaybeSteps<void>): MaybeSteps<void> =>
  first ? inTurnSteps(first, second) : second();

function* inTurnSteps(
  first: Generator<void, void>,
  second: () => MaybeSteps<void>,
): Generator<void, void> {
  yield* first;
  const rest = second();
  if (rest) yield* rest;
}

function parsePath(text: string): Path {
  return text.split('.').map((step) => {
    const isList = step.endsWith('[]');
    return { names: (isList ? step.slice(0, -2) : step).split('|'), isList };
  });
}

/** Whether a member is present and not empty. */
function isUsed(value: JsonValue | undefined, path: Path, at = 0): boolean {
  const step = path[at];
  if (step === undefined) return isFilled(value);
  if (!isObject(value)) return false;
  // Without closures, because a first update calls this for each container before it is optimized.
  for (const name of step.names) {
    const member = value[name];
    if (!step.isList) {
      if (isUsed(member, path, at + 1)) return true;
    } else if (Array.isArray(member)) {
      for (const item of member) if (isUsed(item, path, at + 1)) return true;
    }
  }
  return false;
}

function isFilled(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}

function dropAt(value: JsonValue | undefined, path: Path, at = 0): void {
  const step = path[at];
  if (step === undefined || !isObject(value)) return;
  for (const name of step.names) {
    const member = value[name];
    if (member === undefined) continue;
    if (at === path.length - 1) delete value[name];
    else if (!step.isList) dropAt(member, path, at + 1);
    else if (Array.isArray(member)) for (const item of member) dropAt(item, path, at + 1);
  }
}
