import {
  type ApiObject,
  dialectOf,
  type JsonObject,
  type JsonValue,
  runInOnePiece,
  setMember,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { builtinKinds } from './builtin-kinds.ts';
import type { MaybeSteps, ResourceDef, StrategyContext, VersionDef } from './resource-def.ts';
import { foundErrors } from './rules/checks.ts';

/** Applies a kind's own rules to objects without a server, for tests. */

const defs = builtinKinds(dialectOf('svc'));

/**
 * Values to set in an object by path: `spec.ports.0.port`, `spec.ports[0].port`, or
 * `labels["a.b"]`, which is `labels.a~b` as well. Undefined removes a member.
 */
export type Mutation = Readonly<Record<string, JsonValue | undefined>>;

interface HarnessOptions {
  readonly subresource?: string;
  /** The version of the body; the preferred one when absent. */
  readonly version?: string;
  readonly user?: Partial<StrategyContext['user']>;
}

const nowMs = Date.UTC(2030, 0, 1);

function contextOf({ subresource = '', user = {} }: HarnessOptions): StrategyContext {
  const whole = { name: 'tester', uid: '', groups: [], extra: {}, ...user };
  return { user: whole, nowMs, dryRun: false, subresource };
}

/** The context of a write without a subresource. */
export const plainContext = contextOf({});

/** Prepares an object in one piece. */
export function runPreparation(preparation: MaybeSteps<void>): void {
  if (preparation) runInOnePiece(preparation);
}

/** The first built-in kind of a name. */
export function kindOf(kind: string): ResourceDef {
  const found = defs.find((def) => def.kind === kind);
  if (found === undefined) throw new Error(`there is no kind ${kind}`);
  return found;
}

const versionOf = (def: ResourceDef, name: string | undefined): VersionDef => {
  const versionDef = def.versions.find(({ version }) => name === undefined || version === name);
  if (versionDef === undefined) throw new Error(`${def.kind} has no version ${name}`);
  return versionDef;
};

/** A body as the registry passes it to the kind: decoded, defaulted, in the stored version. */
export function decoded(
  def: ResourceDef,
  body: JsonObject,
  options: HarnessOptions = {},
): ApiObject {
  const version = versionOf(def, options.version);
  const metadata = { name: 'x', ...(def.scope === 'Namespaced' ? { namespace: 'default' } : {}) };
  const whole = { ...body, metadata: { ...metadata, ...(body['metadata'] as JsonObject) } };
  const object = decodeTyped(version.schema)(whole) as ApiObject;
  version.defaults?.(object);
  return version.toStorage?.(object) ?? object;
}

/** Sets each value at its path in a copy. */
export function mutated<T extends JsonObject>(body: T, mutation: Mutation): T {
  const copy = structuredClone(body);
  for (const [path, value] of Object.entries(mutation)) setAt(copy, path, value);
  return copy;
}

function setAt(object: JsonObject, path: string, value: JsonValue | undefined): void {
  const steps = [...path.matchAll(/\["([^"]+)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    ([, quoted, index, name = '']) =>
      index === undefined ? (quoted ?? name.replaceAll('~', '.')) : Number(index),
  );
  const last = steps.pop() as string | number;
  let parent = object as Record<string | number, unknown>;
  for (const [index, step] of steps.entries()) {
    parent[step] ??= typeof (steps[index + 1] ?? last) === 'number' ? [] : {};
    parent = parent[step] as Record<string | number, unknown>;
  }
  if (value === undefined) delete parent[last];
  else if (typeof last === 'number') parent[last] = structuredClone(value);
  else setMember(parent as JsonObject, last, structuredClone(value));
}

const lines = (errors: readonly { field: string; message: string }[]): string[] =>
  errors.map(({ field, message }) => `${field}: ${message}`);

/** The errors of a new object, as `field: message`. */
export function createErrors(def: ResourceDef, body: JsonObject): string[] {
  const object = decoded(def, body);
  runPreparation(def.strategy.prepareForCreate?.(plainContext, object));
  return lines(foundErrors(def.strategy.validateCreate?.(plainContext, object)));
}

/** The errors of a change of `body` by the mutation. */
export function updateErrors(
  def: ResourceDef,
  change: { readonly from: JsonObject; readonly to: JsonObject },
  options: HarnessOptions = {},
): string[] {
  const old = decoded(def, change.from);
  const object = decoded(def, change.to);
  const context = contextOf(options);
  runPreparation(def.strategy.prepareForUpdate?.(context, object, old));
  return lines(foundErrors(def.strategy.validateUpdate?.(context, object, old)));
}

/** A row of a table: a change of a valid object, and the resulting errors. */
export type Row = readonly [mutation: Mutation, errors: readonly string[]];

/** The title of a row's test. */
export const rowTitle = ([mutation]: Row): string => JSON.stringify(mutation).slice(0, 120);

/** A test for each row: `good`, once changed, is created with the errors. */
export const testCreates = (def: ResourceDef, good: JsonObject, rows: readonly Row[]): void =>
  test.each(rows.map((row) => [rowTitle(row), ...row] as const))('%s', (_, mutation, expected) => {
    expect(createErrors(def, mutated(good, mutation))).toEqual(expected);
  });

/** A test for each row: an update of `from` has the errors. */
export function testUpdates(
  def: ResourceDef,
  from: JsonObject,
  rows: readonly Row[],
  options?: HarnessOptions,
): void {
  test.each(rows.map((row) => [rowTitle(row), ...row] as const))('%s', (_, mutation, expected) => {
    expect(updateErrors(def, { from, to: mutated(from, mutation) }, options)).toEqual(expected);
  });
}
