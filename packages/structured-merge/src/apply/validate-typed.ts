import {
  goPlain,
  goSyntax,
  goTypeName,
  isObject,
  type JsonObject,
  type JsonValue,
  listedBytesMax,
  listedMax,
  longerPath,
  omittedText,
  Stride,
  shownTextMax,
  truncateText,
} from '@wheelhouse/machinery';
import { type PathElement, showElement } from './path-element.ts';
import {
  fitting,
  itemElement,
  type ListType,
  type MapType,
  memberType,
  type ScalarType,
  type ValueType,
} from './value-type.ts';

/** A value violates its schema. The message is kube-apiserver's. */
export class TypedError extends Error {
  constructor(problems: Problems) {
    super(problems.text);
    this.name = 'TypedError';
  }
}

/**
 * The problems that a walk found. Keeps the texts of the first ones, as many as a response lists
 * (TRUST-3), and counts the others, so that time and memory do not grow with them.
 */
class Problems {
  readonly #texts: string[] = [];
  readonly #paths = new Map<Place, string>();
  #bytes = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(place: Place, message: string): void {
    this.#count += 1;
    const isOmitting = this.#texts.length < this.#count - 1;
    if (isOmitting || this.#texts.length === listedMax) return;
    const path = this.#pathOf(place);
    const text = truncateText(path === '' ? message : `${path}: ${message}`, shownTextMax);
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes <= listedBytesMax) this.#texts.push(text);
  }

  /** The path of a place relative to the start of the walk; many problems share most of theirs. */
  #pathOf(place: Place): string {
    if (place.parent === undefined) return '';
    const cachedPath = this.#paths.get(place);
    if (cachedPath !== undefined) return cachedPath;
    const { parent, element, isField } = place;
    const path = longerPath(this.#pathOf(parent), isField ? `.${element}` : showElement(element));
    this.#paths.set(place, path);
    return path;
  }

  /** A single problem as it is, or several as a list. */
  get text(): string {
    if (this.#count === 1) return this.#texts[0]!;
    const omitted = this.#count - this.#texts.length;
    const lines = omitted === 0 ? this.#texts : [...this.#texts, omittedText(omitted, 'error')];
    return ['errors:', ...lines.map((line) => `  ${line}`)].join('\n');
  }
}

/** The position of a walk. Its path is rendered only if there is a problem. */
export interface Place {
  readonly problems: Problems;
  readonly parent: Place | undefined;
  /** The path element; for a field only its name, since most are never rendered. */
  readonly element: PathElement;
  readonly isField: boolean;
}

/** The root of a walk. */
export function rootPlace(): Place {
  return { problems: new Problems(), parent: undefined, element: '', isField: false };
}

/** The position of a child. */
export function below(place: Place, element: PathElement): Place {
  return { problems: place.problems, parent: place, element, isField: false };
}

/** The position of a field. */
export function belowField(place: Place, name: string): Place {
  return { problems: place.problems, parent: place, element: name, isField: true };
}

/** Reports problems of the value at a place. */
export function complain(place: Place, ...messages: readonly string[]): void {
  for (const message of messages) place.problems.add(place, message);
}

/** Whether a set or list map may contain duplicates, as stored objects may. */
interface ValidationOptions {
  readonly allowDuplicates: boolean;
  /** Whether null is a problem, as the null of an expression is; otherwise it fits every type. */
  readonly nulls?: 'refused' | undefined;
}

/** Throws a TypedError if a value violates its type. */
export function validateTyped(type: ValueType, value: JsonValue, options: ValidationOptions): void {
  const place = rootPlace();
  const { allowDuplicates, nulls } = options;
  validateValue(type, value, { allowDuplicates, nulls, place });
  if (place.problems.count > 0) throw new TypedError(place.problems);
}

/** `validateTyped` in steps, for large values. */
export function* validateTypedSteps(
  type: ValueType,
  value: JsonValue,
  options: ValidationOptions,
): Generator<void, void> {
  const place = rootPlace();
  const { allowDuplicates, nulls } = options;
  const walk: Walk = { allowDuplicates, nulls, place };
  yield* validateValueSteps(type, value, { walk, stride: new Stride() });
  if (place.problems.count > 0) throw new TypedError(place.problems);
}

/** The state of a walk in steps. */
interface Stepping {
  readonly walk: Walk;
  readonly stride: Stride;
}

function* validateValueSteps(
  type: ValueType,
  value: JsonValue,
  at: Stepping,
): Generator<void, void> {
  const { map, scalar, list } = fitting(type, value);
  const { walk } = at;
  if (map !== undefined && isObject(value)) yield* validateMapSteps(map, value, at);
  else if (scalar === undefined && list !== undefined && Array.isArray(value)) {
    yield* validateListSteps(list, value, at);
  } else {
    // A heavy value of another type, which the message shows.
    yield;
    validateValue(type, value, walk);
  }
}

function* validateMapSteps(map: MapType, value: JsonObject, at: Stepping): Generator<void, void> {
  const { walk, stride } = at;
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const type = declaredType(map, name, walk.place);
    if (type === undefined) return;
    const isLight = stride.weigh(item) === 'light';
    if (stride.isOver) yield;
    if (isValidScalar(type, item)) continue;
    const there = into(walk, belowField(walk.place, name));
    if (isLight) validateValue(type, item, there);
    else yield* validateValueSteps(type, item, { walk: there, stride });
  }
}

function* validateListSteps(
  list: ListType,
  items: readonly JsonValue[],
  at: Stepping,
): Generator<void, void> {
  const { walk, stride } = at;
  const type = list.element.get();
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    const element = itemOf(list, { index, item, seen }, walk);
    if (element === undefined) return;
    const there = into(walk, below(walk.place, element));
    if (stride.weigh(item) === 'light') validateValue(type, item, there);
    else yield* validateValueSteps(type, item, { walk: there, stride });
    if (stride.isOver) yield;
  }
}

interface Walk extends ValidationOptions {
  readonly place: Place;
}

/** The walk at another place. */
const into = ({ allowDuplicates, nulls }: Walk, place: Place): Walk => ({
  allowDuplicates,
  nulls,
  place,
});

function validateValue(type: ValueType, value: JsonValue, walk: Walk): void {
  if (value === null && walk.nulls === 'refused') {
    const problem = nullProblem(type);
    if (problem !== undefined) complain(walk.place, problem);
    return;
  }
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined) validateMap(map, value, walk);
  else if (scalar !== undefined) {
    const problem = scalarProblem(scalar, value, '');
    if (problem !== undefined) complain(walk.place, problem);
  } else if (list !== undefined) validateList(list, value, walk);
}

const nullProblems: Readonly<Record<ScalarType, string>> = {
  numeric: 'expected numeric (int or float), got structpb.NullValue',
  string: 'expected string, got &value.valueUnstructured{Value:0}',
  boolean: 'expected boolean, got &{NULL_VALUE}',
  untyped: 'expected any scalar, got &{NULL_VALUE}',
};

/** The problem of a null that is refused; undefined for a type that accepts any value. */
function nullProblem({ map, scalar, list }: ValueType): string | undefined {
  if (map !== undefined) return 'expected map, got &{NULL_VALUE}';
  if (scalar !== undefined) return nullProblems[scalar];
  return list === undefined ? undefined : 'expected list, got &{NULL_VALUE}';
}

/** Whether a value is a valid scalar: a fast path that needs no place for errors. */
function isValidScalar(type: ValueType, value: JsonValue): boolean {
  const { scalar } = type;
  return (
    scalar !== undefined &&
    typeof value !== 'object' &&
    scalarProblem(scalar, value, '') === undefined
  );
}

/** The type of a member; complains and returns undefined if the schema does not declare it. */
function declaredType(map: MapType, name: string, place: Place): ValueType | undefined {
  const type = memberType(map, name);
  if (type === undefined) complain(belowField(place, name), 'field not declared in schema');
  return type;
}

function validateMap(map: MapType, value: JsonValue, walk: Walk): void {
  if (value === null) return;
  if (!isObject(value)) {
    complain(walk.place, `expected map, got &{${goPlain(value)}}`);
    return;
  }
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const type = declaredType(map, name, walk.place);
    if (type === undefined) return;
    if (isValidScalar(type, item)) continue;
    validateValue(type, item, into(walk, belowField(walk.place, name)));
  }
}

function validateList(list: ListType, value: JsonValue, walk: Walk): void {
  if (value === null) return;
  if (!Array.isArray(value)) {
    complain(walk.place, `expected list, got &{${goPlain(value)}}`);
    return;
  }
  const type = list.element.get();
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const element = itemOf(list, { index, item, seen }, walk);
    if (element === undefined) return;
    validateValue(type, item, into(walk, below(walk.place, element)));
  }
}

/** The path element of an item, which may be a duplicate; undefined if it has none. */
function itemOf(
  list: ListType,
  { index, item, seen }: { index: number; item: JsonValue; seen: Set<string> },
  walk: Walk,
): PathElement | undefined {
  if (list.atomic) return `i:${index}`;
  const element = itemElement(list, item);
  if (typeof element !== 'string') {
    complain(walk.place, `element ${index}: ${element.problem}`);
    return undefined;
  }
  if (seen.has(element) && !walk.allowDuplicates) {
    complain(walk.place, `duplicate entries for key ${showElement(element)}`);
  }
  seen.add(element);
  return element;
}

/**
 * The problem of a value that is not a scalar of this type; undefined if it is one or null.
 * @param prefix begins the message: `lhs: ` and `rhs: ` when two values are compared
 */
export function scalarProblem(
  scalar: ScalarType,
  value: JsonValue | undefined,
  prefix: string,
): string | undefined {
  if (value === null || value === undefined) return undefined;
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  if (scalar === 'numeric') {
    if (isNumber) return undefined;
    return `${prefix}expected numeric (int or float), got ${goTypeName(value)}`;
  }
  if (scalar === 'string') {
    if (typeof value === 'string') return undefined;
    return `${prefix}expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
  }
  if (scalar === 'boolean') {
    if (typeof value === 'boolean') return undefined;
    return `${prefix}expected boolean, got &{${goPlain(value)}}`;
  }
  if (typeof value !== 'object') return undefined;
  return `${prefix}expected any scalar, got &{${goPlain(value)}}`;
}
