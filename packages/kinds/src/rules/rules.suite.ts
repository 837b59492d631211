import { type ApiObject, dialectOf, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { decodeTyped, settleEmpty } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { builtinKinds } from '../builtin-kinds.ts';
import { type Mutation, mutated, plainContext, runPreparation } from '../kind.suite.ts';
import type { MaybeSteps } from '../resource-def.ts';
import { foundErrors } from './checks.ts';

/**
 * Creates and changes objects, and returns their errors and warnings, for tests of kinds' rules.
 */

const defs = builtinKinds(dialectOf('kubernetes'));

const defOf = (kind: string) => {
  const def = defs.find((candidate) => candidate.kind === kind && candidate.group !== 'extensions');
  if (def === undefined) throw new Error(`no kind ${kind}`);
  return def;
};

/** Members to set by path. */
export type Changes = Mutation;

/** A copy of an object with some members changed. */
export const changed = mutated;

/** The warnings of a kind's rules, in one piece. */
function foundWarnings(warnings: MaybeSteps<readonly string[]> = []): readonly string[] {
  return 'next' in warnings ? runInOnePiece(warnings) : warnings;
}

/** The object as a create stores it: decoded, defaulted, and prepared. */
export function created(object: JsonObject): ApiObject {
  const def = defOf(String(object['kind']));
  const decoded = defaulted(object);
  const schema = def.versions[0]?.schema;
  if (schema !== undefined) settleEmpty(schema, decoded);
  runPreparation(def.strategy.prepareForCreate?.(plainContext, decoded));
  return decoded;
}

/** The object as it is decoded from a request's body, with defaults. */
export function defaulted(object: JsonObject): ApiObject {
  const version = defOf(String(object['kind'])).versions[0];
  const decoded = decodeTyped(version!.schema)(structuredClone(object)) as ApiObject;
  version?.defaults?.(decoded);
  return decoded;
}

const messagesOf = (errors: readonly { field: string; message: string }[]) =>
  errors.map((error) => `${error.field}: ${error.message}`);

/** The errors of creating an object. */
export function createErrors(object: JsonObject): string[] {
  const { strategy } = defOf(String(object['kind']));
  return messagesOf(foundErrors(strategy.validateCreate?.(plainContext, created(object))));
}

/** The errors of changing an object that `created` returned. */
export function updateErrors(old: ApiObject, next: JsonObject, subresource = ''): string[] {
  const { strategy } = defOf(String(old['kind']));
  const at = { ...plainContext, subresource };
  const object = defaulted(next);
  object.metadata = { ...structuredClone(old.metadata), ...object.metadata };
  runPreparation(strategy.prepareForUpdate?.(at, object, old));
  return messagesOf(foundErrors(strategy.validateUpdate?.(at, object, old)));
}

/** The object as an update leaves it. */
export function updated(old: ApiObject, next: JsonObject, subresource = ''): ApiObject {
  const object = defaulted(next);
  object.metadata = { ...structuredClone(old.metadata), ...object.metadata };
  runPreparation(
    defOf(String(old['kind'])).strategy.prepareForUpdate?.(
      { ...plainContext, subresource },
      object,
      old,
    ),
  );
  return object;
}

/** The warnings of an accepted create, those of its preparation first. */
export function createWarnings(object: JsonObject): string[] {
  const { strategy } = defOf(String(object['kind']));
  const warnings: string[] = [];
  const decoded = defaulted(object);
  runPreparation(
    strategy.prepareForCreate?.({ ...plainContext, warn: (text) => warnings.push(text) }, decoded),
  );
  return [...warnings, ...foundWarnings(strategy.warnings?.(decoded, undefined))];
}

/** The warnings of a change. */
export const updateWarnings = (old: ApiObject, next: JsonObject): readonly string[] =>
  foundWarnings(defOf(String(old['kind'])).strategy.warnings?.(updated(old, next), old));

/** A valid pod with one container. */
export const plainPod = (): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'default' },
  spec: { containers: [{ name: 'a', image: 'i:1' }] },
});

/** Changes of a valid pod, and the resulting errors. */
type PodRow = readonly [changes: Changes, ...errors: string[]];

/** A test for each row. */
export const testPods = (rows: readonly PodRow[]) =>
  test.each(rows.map(([changes, ...errors]) => [changes, errors] as const))(
    '%j',
    (changes, errors) => {
      expect(createErrors(changed(plainPod(), changes))).toEqual(errors);
    },
  );
