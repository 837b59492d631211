import {
  cloneJson,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  setMember,
} from '../../base/json.ts';
import { inOnePiece, WorkBudget } from '../../base/work.ts';
import { goValue } from '../../meta/go-values.ts';
import { PatchError } from './patch-error.ts';

/** Most operations of one patch, upstream's figure. */
export const jsonPatchOperationsMax = 10_000;

/** Most characters of JSON that the copies of one patch add up to, upstream's figure. */
export const jsonPatchCopiedMax = 3 * 1024 * 1024;

/** Items of lists that move to other places count as one step of work each so many. */
const itemsPerStep = 64;

/** Most steps of one patch: ten thousand insertions at the head of a list of 25,000 items. */
export const jsonPatchStepsMax = 4_000_000;

export interface JsonPatchOperation {
  readonly op: string;
  readonly path: string | undefined;
  readonly from: string | undefined;
  readonly value: JsonValue;
}

/** Reads a decoded body as a patch. Throws PatchError: `malformed`, or `too-many` operations. */
export function parseJsonPatch(body: JsonValue): readonly JsonPatchOperation[] {
  if (!Array.isArray(body)) {
    const type = 'Go value of type jsonpatch.Patch';
    throw new PatchError('malformed', `json: cannot unmarshal ${goValue(body)} into ${type}`);
  }
  if (body.length > jsonPatchOperationsMax) {
    const message = `The allowed maximum operations in a JSON patch is ${jsonPatchOperationsMax}, got ${body.length}`;
    throw new PatchError('too-many', message);
  }
  return body
    .map((given) => (isObject(given) ? given : {}))
    .map((one) => ({
      op: text(one, 'op') ?? 'unknown',
      path: text(one, 'path'),
      from: text(one, 'from'),
      value: member(one, 'value') ?? null,
    }));
}

function text(operation: JsonObject, name: string): string | undefined {
  const value = member(operation, name);
  return typeof value === 'string' ? value : undefined;
}

/**
 * RFC 6902 as upstream does it (negative indices count from the end). Throws PatchError, and
 * WorkExceeded for a patch that costs too much (TRUST-2).
 */
export function applyJsonPatch(
  document: JsonValue,
  patch: readonly JsonPatchOperation[],
): JsonValue {
  return inOnePiece(jsonPatchWork(document, patch));
}

/** The same as work that can pause between any two operations. */
export function* jsonPatchWork(
  document: JsonValue,
  patch: readonly JsonPatchOperation[],
): Generator<void, JsonValue> {
  const work = new WorkBudget({ what: 'the JSON patch', steps: jsonPatchStepsMax });
  const state: State = { root: cloneJson(document), copied: 0, work };
  for (const operation of patch) {
    applyOne(state, operation);
    yield;
  }
  return state.root;
}

interface State {
  root: JsonValue;
  /** Characters of JSON that were copied. */
  copied: number;
  readonly work: WorkBudget;
}

function refuse(message: string): PatchError {
  return new PatchError('unprocessable', message);
}

function applyOne(state: State, operation: JsonPatchOperation): void {
  const { op, path, value } = operation;
  if (!['add', 'remove', 'replace', 'move', 'copy', 'test'].includes(op)) {
    throw refuse(`Unexpected kind: ${op}`);
  }
  if (op === 'move' || op === 'copy') {
    transfer(state, operation);
    return;
  }
  if (path === undefined) throw refuse(`${op} operation failed to decode path: missing value`);
  if (op === 'test') test(state, path, value);
  else if (path === '' && op === 'replace') state.root = cloneJson(value);
  else change(state, { op, path, value });
}

function change(state: State, operation: { op: string; path: string; value: JsonValue }): void {
  const { op, path, value } = operation;
  const place = find(state.root, path, op);
  if (op === 'add' || op === 'remove') shift(state, place);
  if (op === 'add') add(place, path, cloneJson(value));
  else if (op === 'remove') remove(place, `error in remove for path: '${path}': `);
  else replace(place, path, cloneJson(value));
}

interface Place {
  readonly holder: JsonObject | JsonArray;
  readonly key: string;
}

/** Accounts for the items that go to other places when a list gains or loses one. */
function shift({ work }: State, { holder, key }: Place): void {
  if (!Array.isArray(holder)) return;
  const index = indexOf(key) ?? holder.length;
  const moved = index < 0 ? -index : Math.max(0, holder.length - index);
  work.spend(1 + Math.floor(Math.min(moved, holder.length) / itemsPerStep));
}

function find(root: JsonValue, path: string, op: string): Place {
  const missing = () =>
    refuse(
      `${op} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`,
    );
  const steps = path.split('/').slice(1).map(unescaped);
  const key = steps.pop();
  if (key === undefined) throw missing();
  let holder: JsonValue | undefined = root;
  for (const step of steps) holder = valueAt(holder, step);
  if (typeof holder !== 'object' || holder === null) throw missing();
  return { holder, key };
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

function valueAt(holder: JsonValue | undefined, key: string): JsonValue | undefined {
  if (Array.isArray(holder)) {
    const index = indexOf(key);
    return index === undefined ? undefined : holder[index < 0 ? index + holder.length : index];
  }
  return isObject(holder) ? member(holder, key) : undefined;
}

function indexOf(key: string): number | undefined {
  return /^[+-]?[0-9]{1,15}$/.test(key) ? Number(key) : undefined;
}

function syntaxError(key: string): string {
  return `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`;
}

/** Index within `length` items, counted from the end when negative. */
function indexIn(key: string, length: number): number {
  const index = indexOf(key);
  if (index === undefined) throw refuse(syntaxError(key));
  if (index >= length || index < -length) {
    throw refuse(`Unable to access invalid index: ${index}: invalid index referenced`);
  }
  return index < 0 ? index + length : index;
}

function framed<T>(frame: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof PatchError) throw refuse(frame + error.message);
    throw error;
  }
}

function add({ holder, key }: Place, path: string, value: JsonValue, op = 'add'): void {
  if (!Array.isArray(holder)) {
    setMember(holder, key, value);
    return;
  }
  if (key === '-') {
    holder.push(value);
    return;
  }
  framed(`error in ${op} for path: '${path}': `, () => {
    if (indexOf(key) === undefined) {
      throw refuse(`value was not a proper array index: '${key}': ${syntaxError(key)}`);
    }
    holder.splice(indexIn(key, holder.length + 1), 0, value);
  });
}

function remove({ holder, key }: Place, frame: string): void {
  framed(frame, () => {
    if (Array.isArray(holder)) holder.splice(indexIn(key, holder.length), 1);
    else if (Object.hasOwn(holder, key)) delete holder[key];
    else throw refuse(`Unable to remove nonexistent key: ${key}: missing value`);
  });
}

/** Of an object even what is not there is replaced, as upstream's library has it. */
function replace({ holder, key }: Place, path: string, value: JsonValue): void {
  if (Array.isArray(holder) && valueAt(holder, key) === undefined) {
    throw refuse(`replace operation does not apply: doc is missing key: ${path}: missing value`);
  }
  if (Array.isArray(holder)) holder[indexIn(key, holder.length)] = value;
  else setMember(holder, key, value);
}

function test(state: State, path: string, value: JsonValue): void {
  let actual: JsonValue | undefined = state.root;
  if (path !== '') {
    const { holder, key } = find(state.root, path, 'test');
    if (Array.isArray(holder)) {
      const frame = `error in test for path: '${path}': `;
      actual = framed(frame, () => holder[indexIn(key, holder.length)]);
    } else actual = member(holder, key);
  }
  if (!jsonEqual(actual ?? null, value)) throw refuse(`testing value ${path} failed: test failed`);
}

function transfer(state: State, operation: JsonPatchOperation): void {
  const { op, from, path } = operation;
  if (from === undefined) {
    throw refuse(
      `${op} operation failed to decode from: operation, missing from field: missing value`,
    );
  }
  if (path === undefined) throw refuse(`${op} operation failed to decode path: missing value`);
  const source = find(state.root, from, op);
  const { holder, key } = source;
  const frame = op === 'move' ? `path: '${key}'` : `from: '${from}'`;
  const value = framed(`error in ${op} for ${frame}: `, () => {
    const at = Array.isArray(holder) ? holder[indexIn(key, holder.length)] : member(holder, key);
    // A copy of what is not there is null, as upstream's library has it.
    if (at !== undefined || op === 'copy') return at ?? null;
    throw refuse(`Unable to remove nonexistent key: ${key}: missing value`);
  });
  if (op === 'move') {
    shift(state, source);
    remove(source, '');
  } else accountFor(state, value);
  const place = find(state.root, path, op);
  shift(state, place);
  add(place, path, op === 'move' ? value : cloneJson(value), op);
}

/** Copies of copies double: refused before the memory is gone. */
function accountFor(state: State, value: JsonValue): void {
  const open: (JsonValue | undefined)[] = [value];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one !== 'object' || one === null) {
      state.copied += typeof one === 'string' ? one.length + 2 : String(one).length;
    } else if (Array.isArray(one)) {
      state.copied += 1 + one.length;
      for (const item of one) open.push(item);
    } else {
      for (const name of Object.keys(one)) {
        state.copied += name.length + 4;
        open.push(one[name]);
      }
      state.copied += 1;
    }
    if (state.copied > jsonPatchCopiedMax) {
      throw refuse(
        'Unable to complete the copy, the accumulated size increase of copy is ' +
          `${state.copied}, exceeding the limit ${jsonPatchCopiedMax}`,
      );
    }
  }
}
