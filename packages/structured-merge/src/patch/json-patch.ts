import {
  cloneJson,
  cloneJsonSteps,
  goValue,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  objectOf,
  problemText,
  runInOnePiece,
  setMember,
  WorkBudget,
} from '@wheelhouse/machinery';

/** A patch that cannot be applied; endpoints map its kind to 400, 422, or 413. */
export class PatchError extends Error {
  readonly kind: 'malformed' | 'unprocessable' | 'too-many';

  constructor(kind: PatchError['kind'], message: string) {
    super(message);
    this.name = 'PatchError';
    this.kind = kind;
  }
}

/** Maximum number of operations of a patch, as in kube-apiserver. */
const jsonPatchOperationsMax = 10_000;

/**
 * Maximum total size of the values that one patch copies, characters of JSON, as in kube-apiserver.
 */
const jsonPatchCopiedMax = 3 * 1024 * 1024;

/** Number of moved list items that count as one step of work. */
const itemsPerStep = 64;

/**
 * Maximum number of steps of a patch: ten thousand insertions at the head of a list of 25,000
 * items.
 */
const jsonPatchStepsMax = 2_000_000;

/** One operation of a JSON patch, whose members are not yet checked. */
export interface JsonPatchOperation {
  readonly op: string;
  readonly path: string | undefined;
  readonly from: string | undefined;
  /** Undefined if the operation has no such member, which differs from `null`. */
  readonly value: JsonValue | undefined;
}

/**
 * How a patch is interpreted. `exact` follows RFC 6902. `lenient` accepts what kube-apiserver's
 * library does: it replaces and copies absent values, treats a missing `value` as null, and counts
 * negative indexes from the end.
 */
export type JsonPatchRules = 'exact' | 'lenient';

interface JsonPatchOptions {
  readonly rules: JsonPatchRules;
  /**
   * What a test compares if a member is absent: `null`, the default of lenient rules, or `nothing`,
   * which fails.
   */
  readonly absent?: 'null' | 'nothing';
}

/**
 * Parses a decoded body as a patch; `null`, as which Go encodes an absent list, is an empty patch.
 * Throws PatchError: `malformed`, or `too-many` operations.
 */
export function parseJsonPatch(body: JsonValue): readonly JsonPatchOperation[] {
  if (body === null) return [];
  if (!Array.isArray(body)) throw misfit(body, 'jsonpatch.Patch');
  const misfitting = body.find((operation) => operation !== null && !isObject(operation));
  if (misfitting !== undefined) throw misfit(misfitting, 'jsonpatch.Operation');
  if (body.length > jsonPatchOperationsMax) {
    const message = `The allowed maximum operations in a JSON patch is ${jsonPatchOperationsMax}, got ${body.length}`;
    throw new PatchError('too-many', message);
  }
  return body.map(objectOf).map((operation) => ({
    op: textMember(operation, 'op') ?? 'unknown',
    path: textMember(operation, 'path'),
    from: textMember(operation, 'from'),
    value: member(operation, 'value'),
  }));
}

function misfit(value: JsonValue, type: string): PatchError {
  return new PatchError('malformed', problemText({ code: 'misfit', what: goValue(value), type }));
}

function textMember(operation: JsonObject, name: string): string | undefined {
  const value = member(operation, name);
  return typeof value === 'string' ? value : undefined;
}

/**
 * Applies a patch to a copy of the document. Throws PatchError, and WorkExceeded if the patch takes
 * too much work (TRUST-2).
 */
export function applyJsonPatch(
  document: JsonValue,
  patch: readonly JsonPatchOperation[],
  options: JsonPatchOptions,
): JsonValue {
  return runInOnePiece(jsonPatchWork(cloneJson(document), patch, options));
}

/** `applyJsonPatch` in steps. Modifies the document, which the result may share. */
export function* jsonPatchWork(
  document: JsonValue,
  patch: readonly JsonPatchOperation[],
  { rules, absent = rules === 'exact' ? 'nothing' : 'null' }: JsonPatchOptions,
): Generator<void, JsonValue> {
  const work = new WorkBudget({ what: 'the JSON patch', steps: jsonPatchStepsMax });
  const state: State = { root: document, copied: 0, work, rules, absent };
  for (const operation of patch) {
    yield* applyOne(state, operation);
    yield;
  }
  return state.root;
}

interface State {
  root: JsonValue;
  /** Characters of JSON copied so far. */
  copied: number;
  readonly work: WorkBudget;
  readonly rules: JsonPatchRules;
  readonly absent: 'null' | 'nothing';
}

function refuse(message: string): PatchError {
  return new PatchError('unprocessable', message);
}

function pathMissing(op: string): PatchError {
  const isNamed = op === 'replace' || op === 'test' || op === 'move';
  const why = isNamed ? 'operation missing path field: ' : '';
  return refuse(`${op} operation failed to decode path: ${why}missing value`);
}

/** The error for a value whose holder does not exist; its wording depends on the operation. */
function holderMissing(op: string, path: string, of: 'from' | 'path'): PatchError {
  let where = `doc is missing path: "${path}"`;
  if (op === 'replace') where = `doc is missing path: ${path}`;
  else if (op === 'test') where = `is missing path: ${path}`;
  else if (op === 'move' || op === 'copy') {
    where = `doc is missing ${of === 'from' ? 'from' : 'destination'} path: ${path}`;
  }
  return refuse(`${op} operation does not apply: ${where}: missing value`);
}

function* applyOne(state: State, operation: JsonPatchOperation): Generator<void, void> {
  const { op, path, value = null } = operation;
  if (!['add', 'remove', 'replace', 'move', 'copy', 'test'].includes(op)) {
    throw refuse(`Unexpected kind: ${op}`);
  }
  if (state.rules === 'exact') checkForm(operation);
  if (op === 'move' || op === 'copy') {
    yield* transfer(state, operation);
    return;
  }
  if (path === undefined) throw pathMissing(op);
  if (op === 'test') test(state, path, value);
  // Copied, because the patch may be applied again.
  else change(state, { op, path, value: yield* cloneJsonSteps(value) });
}

/** The lenient rules only allow replacing the whole document. */
function isWholeDocument({ rules }: State, path: string, op: string): boolean {
  return path === '' && (op === 'replace' || (rules === 'exact' && op === 'add'));
}

/** Checks the requirements of RFC 6902 on a single operation. */
function checkForm({ op, path, from, value }: JsonPatchOperation): void {
  if (value === undefined && ['add', 'replace', 'test'].includes(op)) {
    throw refuse(`${op} operation: missing value`);
  }
  for (const pointer of [path, from]) {
    if (pointer === undefined || pointer === '') continue;
    if (pointer[0] !== '/' || /~(?![01])/.test(pointer)) {
      throw refuse(`${JSON.stringify(pointer)} is not a JSON Pointer`);
    }
  }
  if (op === 'move' && path?.startsWith(`${from}/`)) {
    throw refuse('move operation: a value cannot move into itself');
  }
}

/** Adds, removes, or replaces a value, which the document owns from now on. */
function change(state: State, operation: { op: string; path: string; value: JsonValue }): void {
  const { op, path, value } = operation;
  if (isWholeDocument(state, path, op)) {
    state.root = value;
    return;
  }
  const place = placeAt(state, path, { op });
  if (op === 'add' || op === 'remove') chargeShift(state, place);
  if (op === 'add') add(place, value, `error in add for path: '${path}': `);
  else if (op === 'remove') remove(place, `error in remove for path: '${path}': `);
  else replace(place, path, value);
}

/** A member or list item, which may be absent. */
interface Place {
  readonly holder: JsonObject | JsonArray;
  readonly key: string;
  readonly rules: JsonPatchRules;
}

/** Charges for the items that move when a list gains or loses one. */
function chargeShift({ work, rules }: State, { holder, key }: Place): void {
  if (!Array.isArray(holder)) return;
  const index = indexOf(key, rules) ?? holder.length;
  const moved = index < 0 ? -index : Math.max(0, holder.length - index);
  work.spend(1 + Math.floor(Math.min(moved, holder.length) / itemsPerStep));
}

/** The place at a path. Throws PatchError if its holder does not exist. */
function placeAt(
  { root, rules }: State,
  path: string,
  { op, of = 'path' }: { readonly op: string; readonly of?: 'from' | 'path' },
): Place {
  const missing = () => holderMissing(op, path, of);
  const steps = pointerSteps(path);
  const key = steps.pop();
  if (key === undefined) throw missing();
  let holder: JsonValue | undefined = root;
  for (const step of steps) holder = valueAt(holder, step, rules);
  if (typeof holder !== 'object' || holder === null) throw missing();
  return { holder, key, rules };
}

/** The member names and indexes of a JSON pointer (RFC 6901). */
export function pointerSteps(pointer: string): string[] {
  const steps = pointer.split('/').slice(1);
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function valueAt(
  holder: JsonValue | undefined,
  key: string,
  rules: JsonPatchRules,
): JsonValue | undefined {
  if (Array.isArray(holder)) {
    const index = indexOf(key, rules);
    return index === undefined ? undefined : holder[index < 0 ? index + holder.length : index];
  }
  return isObject(holder) ? member(holder, key) : undefined;
}

const indexForms: Record<JsonPatchRules, RegExp> = {
  exact: /^(0|[1-9][0-9]{0,14})$/,
  lenient: /^[+-]?[0-9]{1,15}$/,
};

function indexOf(key: string, rules: JsonPatchRules): number | undefined {
  return indexForms[rules].test(key) ? Number(key) : undefined;
}

function syntaxError(key: string): string {
  return problemText({ code: 'number', parser: 'Atoi', text: key, problem: 'syntax' });
}

/** An index within `length` items; negative ones count from the end. */
function indexIn({ key, rules }: Place, length: number): number {
  const index = indexOf(key, rules);
  if (index === undefined) throw refuse(syntaxError(key));
  if (index >= length || index < -length) {
    throw refuse(`Unable to access invalid index: ${index}: invalid index referenced`);
  }
  return index < 0 ? index + length : index;
}

/** Runs an action and prepends a prefix to the message of its PatchError. */
function withPrefix<T>(prefix: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof PatchError) throw refuse(prefix + error.message);
    throw error;
  }
}

/** Adds a value; `prefix` begins the message of an error. */
function add(place: Place, value: JsonValue, prefix: string): void {
  const { holder, key, rules } = place;
  if (!Array.isArray(holder)) {
    setMember(holder, key, value);
    return;
  }
  if (key === '-') {
    holder.push(value);
    return;
  }
  withPrefix(prefix, () => {
    if (indexOf(key, rules) === undefined) {
      throw refuse(`value was not a proper array index: '${key}': ${syntaxError(key)}`);
    }
    holder.splice(indexIn(place, holder.length + 1), 0, value);
  });
}

/** Removes a value; `prefix` begins the message of an error. */
function remove(place: Place, prefix: string): void {
  const { holder, key } = place;
  withPrefix(prefix, () => {
    if (Array.isArray(holder)) holder.splice(indexIn(place, holder.length), 1);
    else if (Object.hasOwn(holder, key)) delete holder[key];
    else throw refuse(`Unable to remove nonexistent key: ${key}: missing value`);
  });
}

function replace(place: Place, path: string, value: JsonValue): void {
  const { holder, key, rules } = place;
  const mustExist = rules === 'exact' || Array.isArray(holder);
  if (mustExist && valueAt(holder, key, rules) === undefined) {
    throw refuse(`replace operation does not apply: doc is missing key: ${path}: missing value`);
  }
  if (Array.isArray(holder)) holder[indexIn(place, holder.length)] = value;
  else setMember(holder, key, value);
}

function test(state: State, path: string, value: JsonValue): void {
  let actual: JsonValue | undefined = state.root;
  if (path !== '') {
    const place = placeAt(state, path, { op: 'test' });
    const { holder, key } = place;
    if (Array.isArray(holder)) {
      const prefix = `error in test for path: '${path}': `;
      actual = withPrefix(prefix, () => holder[indexIn(place, holder.length)]);
    } else actual = member(holder, key);
  }
  const isAbsent = actual === undefined && state.absent === 'nothing';
  if (isAbsent || !jsonEqual(actual ?? null, value))
    throw refuse(`testing value ${path} failed: test failed`);
}

function* transfer(state: State, operation: JsonPatchOperation): Generator<void, void> {
  const { op, from, path } = operation;
  if (from === undefined) {
    throw refuse(
      `${op} operation failed to decode from: operation, missing from field: missing value`,
    );
  }
  if (from === '' && op === 'copy' && state.rules === 'exact') {
    chargeCopy(state, state.root);
    put(state, { op, path, value: yield* cloneJsonSteps(state.root) });
    return;
  }
  const source = placeAt(state, from, { op, of: 'from' });
  const value = valueToTransfer(source, { op, from });
  if (op === 'move') {
    chargeShift(state, source);
    remove(source, '');
  } else chargeCopy(state, value);
  put(state, { op, path, value: op === 'move' ? value : yield* cloneJsonSteps(value) });
}

function valueToTransfer(source: Place, { op, from }: { op: string; from: string }): JsonValue {
  const { holder, key, rules } = source;
  const origin = op === 'move' ? `path: '${key}'` : `from: '${from}'`;
  return withPrefix(`error in ${op} for ${origin}: `, () => {
    const value = Array.isArray(holder)
      ? holder[indexIn(source, holder.length)]
      : member(holder, key);
    if (value !== undefined) return value;
    // A lenient copy of an absent value is null, as in kube-apiserver's library.
    if (op === 'copy' && rules === 'lenient') return null;
    throw refuse(`Unable to remove nonexistent key: ${key}: missing value`);
  });
}

/** Inserts a moved or copied value, which the document owns from now on. */
function put(
  state: State,
  {
    op,
    path,
    value,
  }: { readonly op: string; readonly path: string | undefined; readonly value: JsonValue },
): void {
  if (path === undefined) throw pathMissing(op);
  if (path === '' && state.rules === 'exact') {
    state.root = value;
    return;
  }
  const place = placeAt(state, path, { op });
  chargeShift(state, place);
  const prefix =
    op === 'copy'
      ? 'error while adding value during copy: '
      : `error in move for path: '${path}': `;
  add(place, value, prefix);
}

/**
 * Charges for a copy. Copies of copies grow exponentially, so they are limited before memory runs
 * out.
 */
function chargeCopy(state: State, value: JsonValue): void {
  const unvisited: (JsonValue | undefined)[] = [value];
  while (unvisited.length > 0) {
    const part = unvisited.pop();
    if (typeof part !== 'object' || part === null) {
      state.copied += typeof part === 'string' ? part.length + 2 : String(part).length;
    } else if (Array.isArray(part)) {
      state.copied += 1 + part.length;
      for (const item of part) unvisited.push(item);
    } else {
      for (const name of Object.keys(part)) {
        state.copied += name.length + 4;
        unvisited.push(part[name]);
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
