import { isUtf8 } from 'node:buffer';
import { checkValuesSteps, memberPlaces } from '@wheelhouse/codec';
import {
  type ApiObject,
  asApiObject,
  BoundedTexts,
  invalidObject,
  type JsonObject,
  type Pace,
  problemText,
  shortened,
  shownPathMax,
} from '@wheelhouse/machinery';
import {
  DecodeError,
  type DecodeSource,
  decodeTyped,
  decodeTypedSteps,
  EmbeddedError,
  FoundPaths,
  maxDepth,
} from '@wheelhouse/schema';
import type { Target } from '../../registry/contract.ts';
import { groupKindOf } from '../../registry/registry.ts';
import type { FieldValidation } from '../../request/options.ts';
import type { ApiCall } from '../call.ts';

/** Whether an object is so large that the work on it pauses between its steps. */
export type ObjectSize = 'small' | 'large';

/** The size of an object on which work has this pace. */
export const sizeAt = (pace: Pace | undefined): ObjectSize =>
  pace === undefined ? 'small' : 'large';

/**
 * Gives a decoded body the form its kind's schema has: types checked, unknown members dropped and
 * told, defaults filled in. The body itself may be changed. `fail` makes the 400 of a wrong type,
 * whose wording follows the `source` that upstream decodes from, a body's text unless given. Throws
 * TooManyValues for a large object that defaults or a patch make larger than a body may be.
 */
export function* shapeSteps(
  target: Target,
  value: JsonObject,
  options: {
    readonly complaints: Complaints;
    readonly fail: (message: string) => Error;
    readonly source?: DecodeSource;
    /** Large: the work on it pauses, and what comes of it is checked against the limits of bodies. */
    readonly size: ObjectSize;
  },
): Generator<void, ApiObject> {
  const { version } = target;
  const { complaints, fail, source } = options;
  try {
    if (version.decode !== undefined) {
      // Upstream drops nulls from what it decodes, and an apply's result it does not.
      complaints.unknownIn(version.decode(value, { keepsNulls: source === 'map' }));
      return yield* checked(asApiObject(value), options);
    }
    const unknown = new FoundPaths();
    const decoded =
      options.size === 'large'
        ? yield* decodeTypedSteps(version.schema, value, { unknown, source })
        : decodeTyped(version.schema)(value, unknown, source);
    const object = asApiObject(decoded);
    complaints.unknownIn(unknown);
    yield;
    version.defaults?.(object);
    yield;
    return yield* checked(object, options);
  } catch (error) {
    if (error instanceof DecodeError) throw fail(error.message);
    if (!(error instanceof EmbeddedError)) throw error;
    // What comes of an apply was decoded before, and is judged.
    if (source !== 'map') throw fail(error.message);
    throw invalidObject(groupKindOf(target.def), target.name, [error.fieldError]);
  }
}

/** The object, unless it holds more than a body may, the owners of its fields left aside. */
function* checked(
  object: ApiObject,
  { size }: { readonly size: ObjectSize },
): Generator<void, ApiObject> {
  if (size === 'large') yield* checkValuesSteps(object, object.metadata.managedFields);
  return object;
}

interface Complaint {
  readonly what: 'unknown' | 'duplicate';
  readonly path: string;
  /** Says whose field it is, where that is not the object: `json patch `. */
  readonly prefix: string;
}

const textOf = ({ what, path, prefix }: Complaint) =>
  `${prefix}${what} field ${JSON.stringify(shortened(path, shownPathMax))}`;

const openBrace = '{'.charCodeAt(0);
const openBracket = '['.charCodeAt(0);

/** Bodies larger than this keep their complaints as found: looking for their order costs too much. */
const orderedBytesMax = 256 * 1024;

/**
 * Unknown and duplicate fields found in a body, each once, in the order found. What keeps them here
 * bounds their number: a body can have as many of them as members.
 */
export class Complaints {
  #found: Complaint[] = [];
  readonly #repeated: string[] = [];
  #omitted = 0;

  unknown(path: string, prefix = ''): void {
    this.#found.push({ what: 'unknown', path, prefix });
  }

  /** The unknown fields that a decoder found. */
  unknownIn(found: FoundPaths): void {
    for (const path of found.paths) this.unknown(path);
    this.#omitted += found.omitted;
  }

  /** @param prefix says whose field it is, where that is not the object (`json patch `) */
  duplicate(path: string, prefix = ''): void {
    this.#found.push({ what: 'duplicate', path, prefix });
  }

  /** Lines in which a YAML decoder tells of keys given twice. */
  repeated(lines: readonly string[] = []): void {
    for (const line of lines) this.#repeated.push(line);
  }

  /**
   * As upstream's decoder into a Go type finds them: in the order of the text, a duplicate where it
   * is given again, and nothing told of what is in, or twice, of a field that is not known. YAML
   * comes to that decoder as JSON with its members sorted.
   */
  inTypedOrder(bytes: Buffer): void {
    if (this.#found.length < 2) return;
    const start = bytes.find((byte) => byte > 0x20);
    if (start !== openBrace && start !== openBracket) {
      this.#found.sort(byPath);
      return;
    }
    const unknown = this.#found.filter(({ what }) => what === 'unknown').map(({ path }) => path);
    const remaining = this.#found.filter(
      ({ what, path }) => what === 'unknown' || !unknown.some((one) => isWithin(path, one)),
    );
    this.#found = remaining.length === unknown.length ? remaining : inTextOrder(remaining, bytes);
  }

  get isEmpty(): boolean {
    return this.#repeated.length + this.#found.length === 0;
  }

  /** Adds one warning for each complaint. */
  warn(warnings: BoundedTexts): void {
    warnings.addAll(this.#repeated);
    this.#addTo(warnings);
  }

  /**
   * The text of a strict refusal: the complaints as upstream joins them, as many as an answer may
   * list, and how many more there are.
   */
  get strictText(): string {
    const texts = new BoundedTexts('error');
    if (this.#repeated.length > 0) texts.add(repeatedText(this.#repeated));
    this.#addTo(texts);
    return problemText({ code: 'strict', problems: texts.list });
  }

  #addTo(texts: BoundedTexts): void {
    for (const complaint of this.#found) texts.add(textOf(complaint));
    texts.omit(this.#omitted);
  }
}

/** How a YAML decoder words keys given twice, as one error. */
export function repeatedText(lines: readonly string[]): string {
  return problemText({ code: 'repeated keys', lines });
}

const isWithin = (path: string, outer: string) =>
  path.startsWith(outer) && (path.length === outer.length || '.['.includes(path[outer.length]!));

function byPath(one: Complaint, other: Complaint): number {
  const [left, right] = [one, other].map(({ path }) => path.split(/[.[]/));
  for (const [at, step] of left!.entries()) {
    const against = right![at];
    if (against === undefined) return 1;
    if (step === against) continue;
    const [a, b] = [Number.parseInt(step, 10), Number.parseInt(against, 10)];
    if (Number.isNaN(a) || Number.isNaN(b)) return step < against ? -1 : 1;
    if (a !== b) return a - b;
  }
  return left!.length - right!.length;
}

function inTextOrder(found: readonly Complaint[], bytes: Buffer): Complaint[] {
  if (bytes.length > orderedBytesMax || !isUtf8(bytes)) return [...found];
  const wanted = new Set(found.map(({ path }) => path));
  const places = memberPlaces(bytes.toString('utf8'), wanted, { depthMax: maxDepth });
  if (places === undefined) return [...found];
  const placeOf = ({ what, path }: Complaint) => {
    const place = places.get(path);
    return what === 'duplicate' ? (place?.second ?? -1) : (place?.first ?? -1);
  };
  return [...found].sort((one, other) => placeOf(one) - placeOf(other));
}

/** `Ignore` drops complaints, `Warn` gives a header for each, `Strict` refuses (FV-2). */
export function reportComplaints(
  call: Pick<ApiCall, 'warnings'>,
  options: {
    complaints: Complaints;
    fieldValidation: FieldValidation;
    fail: (message: string) => Error;
  },
): void {
  const { fieldValidation } = options;
  if (fieldValidation === 'Ignore') return;
  const { complaints } = options;
  if (complaints.isEmpty) return;
  if (fieldValidation === 'Strict') throw options.fail(complaints.strictText);
  complaints.warn(call.warnings);
}
