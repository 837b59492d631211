import { encodeJsonSteps } from '@wheelhouse/codec';
import {
  type ApiObject,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  normalizeApiVersion,
  objectOf,
  parseApiVersion,
  Stride,
  setMember,
  sortSteps,
  textOf,
} from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';
import { pointerSteps } from '@wheelhouse/structured-merge';
import { namelessBody } from '../../registry/object-meta.ts';
import type { FieldValidation } from '../../request/options.ts';
import { misfitKind, typeProblem } from '../body/decode-object.ts';
import { Complaints, reportComplaints } from '../body/kind-object.ts';
import type { ApiCall } from '../call.ts';

/** Patch types (PATCH-5). */
export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

interface KindOptions {
  readonly fieldValidation: FieldValidation;
  readonly fail: (why: string) => Error;
  /** Makes the error for unknown and duplicate fields. */
  readonly failStrictly: (why: string) => Error;
}

/**
 * Throws if a patched document states another apiVersion or kind than the patched object; `fail`
 * makes the 422 of one that cannot be decoded. A typed document may omit its kind.
 */
export function* checkPatchedKind(
  call: ApiCall,
  patched: JsonObject,
  options: KindOptions & { readonly live: ApiObject },
): Generator<void, void> {
  const { live, fail } = options;
  if (patched['kind'] === live.kind && patched['apiVersion'] === live.apiVersion) return;
  const unreadable = typeProblem(patched);
  if (unreadable !== undefined) throw fail(unreadable);
  if (call.target.def.behavior.bodies === 'typed') {
    const why = misfitKind(call, patched, { isPatched: true });
    if (why !== undefined) throw fail(why);
    if (normalizeApiVersion(textOf(patched['apiVersion'])) === '') {
      complainOfAll(call, patched, options);
      throw namelessBody(call.target.name);
    }
    return;
  }
  const kind = (patched['kind'] ?? '') as string;
  const apiVersion = (patched['apiVersion'] ?? '') as string;
  if (kind === '') {
    const sorted = yield* inPatchedOrder(patched, { schema: undefined, type: 'merge', patch: {} });
    const text = (yield* encodeJsonSteps(sorted)).toString('utf8');
    throw fail(`Object 'Kind' is missing in '${text}'`);
  }
  if (apiVersion === '') throw fail("Object 'apiVersion' is missing");
  const { group = '' } = parseApiVersion(apiVersion) ?? {};
  throw invalidObject({ group, kind }, call.target.name, [
    ...(kind === live.kind ? [] : [invalid('kind', kind, `must be ${live.kind}`)]),
    ...(apiVersion === live.apiVersion
      ? []
      : [invalid('apiVersion', apiVersion, `must be ${live.apiVersion}`)]),
  ]);
}

/** Reports every member as unknown, as kube-apiserver does for a document without a version. */
function complainOfAll(call: ApiCall, patched: JsonObject, options: KindOptions): void {
  const complaints = new Complaints();
  const names = Object.keys(patched).filter((name) => name !== 'apiVersion' && name !== 'kind');
  for (const name of names.sort()) complaints.unknown(name);
  const { fieldValidation, failStrictly } = options;
  reportComplaints(call, { complaints, fieldValidation, fail: failStrictly });
}

/**
 * A patched document in the member order that kube-apiserver would show. Objects that the patch
 * touched, maps, and values from a merge patch are sorted by name; values from a JSON patch
 * operation keep their order; the rest of a built-in kind follows its declaration.
 */
export function* inPatchedOrder(
  document: JsonValue,
  { schema, type, patch }: { schema: Schema | undefined; type: PatchType; patch: JsonValue },
): Generator<void, JsonValue> {
  const touched = type === 'json' ? touchedBy(patch) : patch;
  return yield* ordered(document, { schema, touched, stride: new Stride() });
}

function* ordered(
  value: JsonValue,
  of: {
    readonly schema: Schema | undefined;
    readonly touched: JsonValue | undefined;
    readonly stride: Stride;
  },
): Generator<void, JsonValue> {
  const { schema, touched, stride } = of;
  stride.count();
  if (stride.isOver) yield;
  if (touched === asGiven || typeof value !== 'object' || value === null) return value;
  const isPutThere = touched !== undefined && !isObject(touched);
  const at = schema === undefined || isPutThere ? undefined : resolved(schema);
  const inside = (name: string) => (isObject(touched) ? member(touched, name) : undefined);
  if (Array.isArray(value)) {
    const items: JsonValue[] = [];
    for (const [index, item] of value.entries()) {
      const next = { schema: at?.items, touched: inside(String(index)), stride };
      items.push(yield* ordered(item, next));
    }
    return items;
  }
  const result: JsonObject = {};
  const declared = isObject(touched) ? undefined : at?.properties;
  for (const name of yield* namesOf(value, declared)) {
    const child = at?.properties?.get(name)?.schema ?? at?.additionalProperties;
    const next = { schema: child, touched: inside(name), stride };
    setMember(result, name, yield* ordered(member(value, name) ?? null, next));
  }
  return result;
}

/** Number of names above which sorting runs in steps. */
const manyNames = 1024;

function* namesOf(
  value: JsonObject,
  declared: Schema['properties'],
): Generator<void, readonly string[]> {
  const names = Object.keys(value).filter((name) => value[name] !== undefined);
  if (declared === undefined) {
    if (names.length <= manyNames) return names.sort();
    return yield* sortSteps(names, (left, right) => (left < right ? -1 : 1));
  }
  const present = new Set(names);
  const declaredNames = [...declared.keys()].filter((name) => present.has(name));
  return [...declaredNames, ...names.filter((name) => !declared.has(name)).sort()];
}

/** Marks a value that an operation inserted and that no later operation changed. */
const asGiven = true;

/** The objects and lists that operations traverse, as a tree of their steps. */
function touchedBy(operations: JsonValue): JsonObject {
  const root: JsonObject = {};
  for (const operation of Array.isArray(operations) ? operations : []) {
    if (!isObject(operation)) continue;
    for (const pointer of [member(operation, 'path'), member(operation, 'from')]) {
      if (typeof pointer === 'string') touch(root, pointer);
    }
    if (['add', 'replace'].includes(textOf(operation['op']))) put(root, textOf(operation['path']));
  }
  return root;
}

function touch(root: JsonObject, pointer: string): JsonObject {
  let at = root;
  for (const name of pointerSteps(pointer).slice(0, -1)) {
    const next: JsonObject = objectOf(member(at, name));
    setMember(at, name, next);
    at = next;
  }
  return at;
}

/** Ignores list items, whose indices shift with insertions before them. */
function put(root: JsonObject, pointer: string): void {
  const name = pointerSteps(pointer).at(-1);
  if (name !== undefined && !/^(-|\d+)$/.test(name)) setMember(touch(root, pointer), name, asGiven);
}
