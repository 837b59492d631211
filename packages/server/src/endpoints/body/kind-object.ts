import { isUtf8 } from 'node:buffer';
import { checkValuesSteps, memberPlaces, type SpelledJson } from '@wheelhouse/codec';
import {
  type ApiObject,
  asApiObject,
  BoundedTexts,
  goQuoted,
  invalidObject,
  type JsonObject,
  type Pace,
  problemText,
  recordIntegralFloats,
  shownPathMax,
  truncateText,
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

/** Whether an object is so large that work on it pauses between steps. */
export type ObjectSize = 'small' | 'large';

/** The size class of an object, by the pace of the work on it. */
export const sizeAt = (pace: Pace | undefined): ObjectSize =>
  pace === undefined ? 'small' : 'large';

/**
 * Converts a decoded body to the form of its kind's schema: checks types, drops and reports unknown
 * members, and applies defaults. May modify the body. Throws the error that `fail` makes for a
 * wrong type, worded for the `source` that kube-apiserver decodes from (by default a body's text),
 * TooManyValues if defaults or a patch make a large object larger than a body may be, and
 * WorkExceeded if defaults add too much.
 */
export function* kindObjectSteps(
  target: Target,
  value: JsonObject,
  options: {
    readonly complaints: Complaints;
    readonly fail: (message: string) => Error;
    readonly source?: DecodeSource;
    /**
     * The value with placeholders for numbers with a fraction or an exponent, which are no integers
     * (FV-1, CRD-3).
     */
    readonly spelled?: SpelledJson | undefined;
    /**
     * `large`: work on the object pauses, and the result is checked against the limits of bodies.
     */
    readonly size: ObjectSize;
  },
): Generator<void, ApiObject> {
  const { version } = target;
  const { complaints, fail, source, spelled } = options;
  try {
    if (version.decode !== undefined) {
      if (spelled !== undefined) yield* recordIntegralFloats(value, spelled);
      // kube-apiserver drops nulls from decoded bodies, but not from the result of an apply.
      const pruned = version.decode(value, { keepsNulls: source === 'map', size: options.size });
      complaints.unknownIn(pruned, { isPlain: true });
      return yield* checked(asApiObject(value), options);
    }
    if (spelled !== undefined) {
      const { spellings } = spelled;
      yield* decodeTypedSteps(version.schema, spelled.value, { source, spellings });
    }
    const unknown = new FoundPaths();
    const decoded =
      options.size === 'large'
        ? yield* decodeTypedSteps(version.schema, value, { unknown, source })
        : decodeTyped(version.schema)(value, unknown, source);
    const object = asApiObject(decoded);
    complaints.unknownIn(unknown);
    yield;
    if (options.size === 'large' && version.defaultSteps !== undefined) {
      yield* version.defaultSteps(object);
    } else version.defaults?.(object);
    yield;
    return yield* checked(object, options);
  } catch (error) {
    if (error instanceof DecodeError) throw fail(error.message);
    if (!(error instanceof EmbeddedError)) throw error;
    // The result of an apply has been decoded before, so this is a validation error.
    if (source !== 'map') throw fail(error.message);
    throw invalidObject(groupKindOf(target.def), target.name, [error.fieldError]);
  }
}

/** Returns the object. Throws TooManyValues if it exceeds a body's limits, managed fields aside. */
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
  /** Names the owner of the field if it is not the object: `json patch `. */
  readonly prefix: string;
  /** Whether the path is quoted without escapes, as kube-apiserver does for custom kinds. */
  readonly isPlain?: true;
}

function textOf({ what, path, prefix, isPlain }: Complaint): string {
  const shown = truncateText(path, shownPathMax);
  return `${prefix}${what} field ${isPlain === true ? `"${shown}"` : goQuoted(shown)}`;
}

const openBrace = '{'.charCodeAt(0);
const openBracket = '['.charCodeAt(0);

/**
 * Maximum size of a body whose complaints are sorted by position; larger bodies keep the order in
 * which they were found.
 */
const orderedBytesMax = 256 * 1024;

/**
 * Unknown and duplicate fields found in a body, each once, in the order found. Callers must bound
 * their number: a body can have as many of them as members.
 */
export class Complaints {
  #found: Complaint[] = [];
  readonly #repeated: string[] = [];
  #omitted = 0;

  unknown(path: string, prefix = ''): void {
    this.#found.push({ what: 'unknown', path, prefix });
  }

  /**
   * The unknown fields that a decoder found.
   * @param quoting `isPlain` for those of a custom kind
   */
  unknownIn(found: FoundPaths, quoting: Pick<Complaint, 'isPlain'> = {}): void {
    for (const path of found.paths) {
      this.#found.push({ what: 'unknown', path, prefix: '', ...quoting });
    }
    this.#omitted += found.omitted;
  }

  /** @param prefix names the owner of the field if it is not the object (`json patch `) */
  duplicate(path: string, prefix = ''): void {
    this.#found.push({ what: 'duplicate', path, prefix });
  }

  /** Adds lines in which a YAML decoder reports duplicate keys. */
  repeated(lines: readonly string[] = []): void {
    for (const line of lines) this.#repeated.push(line);
  }

  /**
   * Orders the complaints as Go's typed decoder finds them: by position in the text, a duplicate at
   * its second occurrence, and none inside an unknown field. For YAML that decoder receives JSON
   * with sorted members.
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
      ({ what, path }) => what === 'unknown' || !unknown.some((outer) => isWithin(path, outer)),
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
   * The text of a strict rejection: as many complaints as an answer may list, and the number of
   * those omitted.
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

/** Formats duplicate keys of a YAML body as one error. */
export function repeatedText(lines: readonly string[]): string {
  return problemText({ code: 'repeated keys', lines });
}

const isWithin = (path: string, outer: string) =>
  path.startsWith(outer) && (path.length === outer.length || '.['.includes(path[outer.length]!));

function byPath(left: Complaint, right: Complaint): number {
  const [leftSteps, rightSteps] = [left, right].map(({ path }) => path.split(/[.[]/));
  for (const [at, step] of leftSteps!.entries()) {
    const against = rightSteps![at];
    if (against === undefined) return 1;
    if (step === against) continue;
    const [a, b] = [Number.parseInt(step, 10), Number.parseInt(against, 10)];
    if (Number.isNaN(a) || Number.isNaN(b)) return step < against ? -1 : 1;
    if (a !== b) return a - b;
  }
  return leftSteps!.length - rightSteps!.length;
}

function inTextOrder(found: readonly Complaint[], bytes: Buffer): Complaint[] {
  if (bytes.length > orderedBytesMax || !isUtf8(bytes)) return [...found];
  const paths = new Set(found.map(({ path }) => path));
  const places = memberPlaces(bytes.toString('utf8'), paths, { depthMax: maxDepth });
  if (places === undefined) return [...found];
  const placeOf = ({ what, path }: Complaint) => {
    const place = places.get(path);
    return what === 'duplicate' ? (place?.second ?? -1) : (place?.first ?? -1);
  };
  return [...found].sort((left, right) => placeOf(left) - placeOf(right));
}

/** `Ignore` drops complaints, `Warn` adds a warning for each, `Strict` throws (FV-2). */
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
