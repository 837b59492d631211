import type { JsonValue } from '@wheelhouse/machinery';

/** Thrown for malformed or excessive JSON, with the message of kube-apiserver's decoder. */
export class JsonError extends Error {
  /** The index of the unexpected character, or of the byte if the text was read byte by byte. */
  readonly at: number | undefined;

  constructor(message: string, at?: number) {
    super(message);
    this.name = 'JsonError';
    this.at = at;
  }
}

/**
 * Maximum number of values in a request body, in any encoding: members, items, and containers.
 * Passes over an object take time proportional to it, so this limits how long a pass blocks the
 * event loop (TRUST-2). CustomResourceDefinitions, the largest objects in practice, have fewer: one
 * of 1.5 MB has about 41,000.
 */
export const bodyValuesMax = 60_000;

/**
 * Maximum number of values in a YAML body, including keys. The YAML library takes about ten times
 * as long for each node as a JSON parser.
 */
const yamlValuesMax = 30_000;

/**
 * Maximum number of lines in a YAML body. The library's lexer finds the end of a block scalar in
 * one step, and takes up to 150 ns for each line.
 */
const yamlLinesMax = 65_536;

/**
 * Maximum number of members of one object in a body. Listing or copying the members of an object
 * cannot be divided into steps and takes several times as long per member as in small objects.
 */
export const objectMembersMax = 16_384;

/**
 * Maximum number of characters of the names and texts of an object, which aliases, defaults, and
 * patches multiply: twice as many as a body has bytes.
 */
const objectCharactersMax = 6_291_456;

/** Thrown for a text with too many values, or with an object with too many members. */
export class TooManyValues extends JsonError {
  readonly max: number;
  /** Plural noun for what there are too many of. */
  readonly what: string;

  constructor(max: number, what: Countable = 'values') {
    super(`too many ${what}`);
    this.name = 'TooManyValues';
    this.max = max;
    this.what = what;
  }
}

type Countable = 'values' | 'lines' | 'characters' | 'members of one object' | 'bytes of one text';

/** Number of values that are counted in one step. */
const countedPerStep = 2_000;

/**
 * Checks in steps that a value, to which defaults and patches may have added others, is within the
 * limits of bodies and of characters.
 * @param skipped a value that is not visited
 * @throws TooManyValues
 */
export function* checkValuesSteps(root: JsonValue, skipped?: JsonValue): Generator<void, void> {
  let values = 1;
  let characters = 0;
  let pauseAt = countedPerStep;
  const open: (JsonValue | undefined)[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null || value === skipped) continue;
    const names = Array.isArray(value) ? [] : Object.keys(value);
    const items = Array.isArray(value) ? value : Object.values(value);
    values += Math.max(1, items.length);
    if (values > pauseAt) {
      pauseAt = values + countedPerStep;
      yield;
    }
    if (names.length > objectMembersMax) {
      throw new TooManyValues(objectMembersMax, 'members of one object');
    }
    for (const name of names) characters += name.length;
    for (const item of items) {
      if (typeof item === 'string') characters += item.length;
      else if (typeof item === 'object' && item !== null) open.push(item);
    }
    if (characters > objectCharactersMax)
      throw new TooManyValues(objectCharactersMax, 'characters');
  }
  if (values > bodyValuesMax) throw new TooManyValues(bodyValuesMax);
}

/** Limits on decoding a YAML text. */
export interface YamlLimits {
  /** Maximum number of values, including containers and copies by aliases. */
  readonly valuesMax: number;
  /** Maximum number of line ends; unlimited when absent. */
  readonly linesMax?: number;
  /** Maximum number of characters of names and texts, copies included; unlimited when absent. */
  readonly charactersMax?: number;
  /** Returns whether the result is still needed; otherwise, decoding stops at its next pause. */
  readonly isWanted?: () => boolean;
  /** `first`: the text after the first document is not read. Absent: there must be none. */
  readonly documents?: 'first';
}

/** The limits of the body of a request. */
export const yamlBodyLimits = {
  valuesMax: yamlValuesMax,
  linesMax: yamlLinesMax,
  charactersMax: objectCharactersMax,
  documents: 'first',
} as const;

/** Thrown for malformed or excessive YAML, with the message of kube-apiserver's decoder. */
export class YamlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'YamlError';
  }
}

/** Returns the error for a document that is nested too deeply. */
export const tooDeep = () => new YamlError('yaml: exceeded max depth');
