import {
  appendAll,
  base64ErrorAt,
  goFloat,
  goSyntax,
  int64Max,
  type JsonObject,
  type JsonValue,
  setMember,
  showHead,
  shownPathMax,
  truncateText,
} from '@wheelhouse/machinery';
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type LineCounter,
  type Pair,
  type ParsedNode,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { TooManyValues, tooDeep, YamlError, type YamlLimits } from './decode-limits.ts';
import { isTime, plainScalar } from './yaml-types.ts';

const duplicatesMax = 100;
/**
 * Maximum nesting depth of collections, including aliases. The library is recursive and overflows
 * the stack at about 700 levels. It may compile a regular expression there, and then the overflow
 * ends the process instead of throwing (docs/decisions/nesting-limit.md).
 */
export const depthMax = 250;
const tagPrefix = 'tag:yaml.org,2002:';

/** The options of the library for `treeSteps`, which interprets scalars itself. */
export const treeParsing = {
  schema: 'failsafe',
  version: '1.1',
  resolveKnownTags: false,
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'silent',
} as const;

/** A parsed document without syntax errors. */
interface ParsedTree {
  readonly contents: Document.Parsed['contents'];
  /** Further nodes of collections that were cut, by the token of the first node. */
  readonly rests?: ReadonlyMap<unknown, readonly { readonly items: readonly unknown[] }[]>;
  /** Values of scalars that are empty in the tree, or what is wrong with them, by their offset. */
  readonly texts?: ReadonlyMap<number, string | YamlError>;
}

/** The value of a document. */
export interface ReadTree {
  readonly value: JsonValue;
  /** Messages about duplicate keys; the last wins: `line 4: key "a" already set in map`. */
  readonly repeated: readonly string[];
  /** Approximate number of bytes of the text without aliases, if it has any. */
  readonly expandedBytes?: number;
}

/**
 * Returns in steps the value of a document that was parsed with `treeParsing`, as kube-apiserver's
 * decoder interprets it. Does not depend on Node, so that a browser gets the same result as the
 * server.
 * @throws YamlError or TooManyValues
 */
export function treeSteps(
  document: ParsedTree,
  lines: LineCounter,
  limits: YamlLimits,
): Generator<void, ReadTree> {
  return new TreeReader(document, { lines, limits }).read();
}

/** Bytes of a value in JSON besides its text: quotes and a comma. */
const nodeBytes = 3;

/** Number of nodes that one step converts. */
const nodesPerStep = 1000;

/** Converts a tree to JSON, and limits its growth by aliases. */
class TreeReader {
  readonly #document: ParsedTree;
  readonly #lines: LineCounter;
  readonly #limits: YamlLimits;
  readonly #duplicates: string[] = [];
  /** The keys of maps that have others than texts, as Go prints them: `1` is not `"1"`. */
  readonly #typedKeys = new WeakMap<JsonObject, Set<string>>();
  readonly #aliasesOpen = new Set<string>();
  readonly #anchors = new Map<string, ParsedNode>();
  /** The first key that has no text. */
  #keyError: FaultyKey | undefined;
  /** Whether a number is infinite or NaN. */
  #hasUnsupported = false;
  #nodes = 0;
  #aliasNodes = 0;
  #characters = 0;
  #depth = 0;

  constructor(document: ParsedTree, options: { lines: LineCounter; limits: YamlLimits }) {
    this.#document = document;
    this.#lines = options.lines;
    this.#limits = options.limits;
  }

  *read(): Generator<void, ReadTree> {
    try {
      const value = yield* this.#value(this.#document.contents);
      // kube-apiserver converts keys, and then numbers, once the whole document is decoded.
      if (this.#keyError !== undefined) throw unsupportedKey(this.#keyError);
      if (this.#hasUnsupported) yield* refuseUnsupported(value);
      const expandedBytes = this.#characters + nodeBytes * this.#nodes;
      const expanded = this.#aliasNodes === 0 ? {} : { expandedBytes };
      return { value, repeated: this.#duplicates, ...expanded };
    } catch (error) {
      if (error instanceof RangeError) throw tooDeep();
      throw error;
    }
  }

  *#value(node: ParsedNode | null): Generator<void, JsonValue> {
    this.#count();
    if (this.#nodes % nodesPerStep === 0) yield;
    if (node === null) return null;
    if (isAlias(node)) return yield* this.#alias(node);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (isScalar(node)) {
      const isBinary = node.tag === `${tagPrefix}binary`;
      const value = isBinary ? yield* binarySteps(this.#textOf(node)) : this.#scalar(node);
      if (typeof value === 'number' && !Number.isFinite(value)) this.#hasUnsupported = true;
      return value;
    }
    if (this.#depth === depthMax) throw tooDeep();
    this.#depth += 1;
    const value = isSeq(node) ? yield* this.#list(node) : yield* this.#map(node);
    this.#depth -= 1;
    return value;
  }

  /**
   * Counts a node. As in kube-apiserver, the share of nodes from aliases that is allowed decreases
   * as the document grows.
   */
  #count(): void {
    this.#nodes += 1;
    if (this.#aliasesOpen.size > 0) this.#aliasNodes += 1;
    const { valuesMax } = this.#limits;
    if (this.#nodes > valuesMax) throw new TooManyValues(valuesMax);
    if (this.#nodes <= 1000 || this.#aliasNodes <= 100) return;
    const large = Math.min(1, Math.max(0, (this.#nodes - 400_000) / 3_600_000));
    if (this.#aliasNodes / this.#nodes > 0.99 - 0.89 * large) {
      throw new YamlError('yaml: document contains excessive aliasing');
    }
  }

  *#list(node: YAMLSeq): Generator<void, JsonValue> {
    const list: JsonValue[] = [];
    for (const item of this.#itemsOf(node)) list.push(yield* this.#value(item as ParsedNode));
    return list;
  }

  #itemsOf<Item>(node: { readonly items: Item[]; readonly srcToken?: unknown }): readonly Item[] {
    const rests = this.#document.rests?.get(node.srcToken);
    if (rests === undefined) return node.items;
    return [node, ...rests].flatMap(({ items }) => items as readonly Item[]);
  }

  *#alias(alias: Alias): Generator<void, JsonValue> {
    const name = alias.source;
    const node = this.#anchored(alias);
    this.#aliasesOpen.add(name);
    try {
      return yield* this.#value(node);
    } finally {
      this.#aliasesOpen.delete(name);
    }
  }

  /** Returns the node that an alias names. */
  #anchored(alias: Alias): ParsedNode {
    const name = alias.source;
    const node = this.#anchors.get(name);
    if (node === undefined) throw new YamlError(`yaml: unknown anchor '${name}' referenced`);
    if (this.#aliasesOpen.has(name)) {
      throw new YamlError(`yaml: anchor '${name}' value contains itself`);
    }
    return node;
  }

  /** Returns the value of a scalar, which may be infinite or NaN. */
  #scalar(node: Scalar, text = this.#textOf(node)): JsonValue {
    const tag = node.tag?.startsWith(tagPrefix) ? node.tag.slice(tagPrefix.length) : undefined;
    if (tag === undefined && node.type === 'PLAIN' && node.tag === undefined) {
      return plainScalar(text);
    }
    if (tag === undefined || !resolvedTags.has(tag)) return text;
    const value = plainScalar(text);
    if (fitsTag(tag, value, text)) return value;
    const shown = `!!${tagOf(value, text, tag)} \`${text.slice(0, 64)}\``;
    throw new YamlError(`yaml: cannot decode ${shown} as a !!${tag}`);
  }

  *#map(node: YAMLMap): Generator<void, JsonObject> {
    const result: JsonObject = {};
    yield* this.#fill(result, node);
    return result;
  }

  /** Adds the members of a map. Later members override those that a merge key adds. */
  *#fill(result: JsonObject, node: YAMLMap): Generator<void, void> {
    for (const pair of this.#itemsOf(node)) {
      const key = pair.key as ParsedNode | null;
      const value = pair.value as ParsedNode | null;
      if (isMergeKey(key)) {
        yield* this.#merge(result, value);
        continue;
      }
      const own = yield* this.#key(key);
      // Duplicates inside the value are reported first, as in kube-apiserver.
      const before = this.#keyError;
      const member = yield* this.#value(value);
      if (typeof own === 'object' && 'type' in own) {
        // A map is converted before its members are, and the last of repeated keys counts.
        const isRepeated = before?.map === result && before.key.shown === own.shown;
        if (before === undefined || isRepeated) {
          this.#keyError = { map: result, key: own, value: member };
        }
        continue;
      }
      if (this.#isRepeated(result, own)) this.#duplicate(startOf(pair), own);
      setMember(result, typeof own === 'string' ? own : own.name, member);
    }
  }

  /** Whether a map has a key, which is noted. */
  #isRepeated(result: JsonObject, key: string | TypedKey): boolean {
    const isText = typeof key === 'string';
    let keys = this.#typedKeys.get(result);
    if (keys === undefined) {
      if (isText) return Object.hasOwn(result, key);
      keys = new Set(Object.keys(result).map((name) => JSON.stringify(name)));
      this.#typedKeys.set(result, keys);
    }
    const id = isText ? JSON.stringify(key) : `${key.isFloat ? 'float ' : ''}${key.shown}`;
    if (keys.has(id)) return true;
    keys.add(id);
    return false;
  }

  /** Adds the members of a map, or of each map in a list, in which earlier maps win. */
  *#merge(result: JsonObject, node: ParsedNode | null): Generator<void, void> {
    if (isSeq(node)) {
      const items = this.#itemsOf(node) as readonly (ParsedNode | null)[];
      // A map may merge one that precedes it in the list.
      for (const item of items) this.#noteAnchor(item);
      for (const item of items.toReversed()) yield* this.#mergeMap(result, item);
    } else yield* this.#mergeMap(result, node);
  }

  #noteAnchor(node: ParsedNode | null): void {
    if (node === null || isAlias(node) || node.anchor === undefined) return;
    this.#anchors.set(node.anchor, node);
  }

  *#mergeMap(result: JsonObject, node: ParsedNode | null): Generator<void, void> {
    this.#count();
    if (this.#nodes % nodesPerStep === 0) yield;
    this.#noteAnchor(node);
    const name = isAlias(node) ? node.source : undefined;
    const map = isAlias(node) ? this.#anchored(node) : node;
    if (!isMap(map)) {
      throw new YamlError('yaml: map merge requires map or sequence of maps as the value');
    }
    if (this.#depth === depthMax) throw tooDeep();
    this.#depth += 1;
    if (name !== undefined) this.#aliasesOpen.add(name);
    yield* this.#fill(result, map as YAMLMap);
    if (name !== undefined) this.#aliasesOpen.delete(name);
    this.#depth -= 1;
  }

  /** Returns a key, converted to a string: `on:` becomes `true`, `1:` becomes `1`. */
  *#key(node: ParsedNode | null): Generator<void, string | TypedKey | UnsupportedKey> {
    if (!isScalar(node)) return keyText(yield* this.#value(node));
    this.#count();
    if (this.#nodes % nodesPerStep === 0) yield;
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    const text = this.#textOf(node);
    if (node.tag === `${tagPrefix}binary`) return yield* binarySteps(text);
    return keyText(this.#scalar(node, text), text);
  }

  #textOf(node: Scalar): string {
    const found = this.#document.texts?.get(node.range?.[0] ?? 0);
    if (found instanceof YamlError) throw found;
    const text = found ?? String(node.value);
    this.#characters += text.length;
    const { charactersMax = Number.POSITIVE_INFINITY } = this.#limits;
    if (this.#characters > charactersMax) throw new TooManyValues(charactersMax, 'characters');
    return text;
  }

  /**
   * Records a duplicate key with the line on which its value starts, as in kube-apiserver.
   * @param start the offset of the value; undefined if it has none
   */
  #duplicate(start: number | undefined, key: string | TypedKey): void {
    if (this.#duplicates.length >= duplicatesMax) return;
    const line = start === undefined ? 0 : this.#lines.linePos(start).line;
    const shown =
      typeof key === 'string' ? JSON.stringify(truncateText(key, shownPathMax)) : key.shown;
    this.#duplicates.push(`line ${line}: key ${shown} already set in map`);
  }
}

/** The offset of a pair's value with its anchor and tag, or of the key if there is no value. */
function startOf({ key, value, srcToken }: Pair<unknown, unknown>): number | undefined {
  const isProperty = ({ type }: { readonly type: string }) => type === 'anchor' || type === 'tag';
  const property = srcToken?.sep?.find(isProperty);
  if (property !== undefined) return property.offset;
  const node = isNode(value) ? value : key;
  return isNode(node) ? (node.range?.[0] ?? 0) : undefined;
}

function isMergeKey(node: ParsedNode | null): boolean {
  if (!isScalar(node) || node.value !== '<<') return false;
  return node.tag === `${tagPrefix}merge` || (node.tag === undefined && node.type === 'PLAIN');
}

/** The tags that scalars must fit; with any other tag, a scalar is a text. */
const resolvedTags = new Set(['null', 'bool', 'int', 'float', 'timestamp']);

/** The tag of a value. Only what is tagged as a time is one. */
function tagOf(value: JsonValue, text: string, tag: string): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return tag === 'timestamp' && isTime(text) ? tag : 'str';
  return isFloat(value, text) ? 'float' : 'int';
}

/** Whether a value has the type of its tag. An integer that has a sign is a float, too. */
function fitsTag(tag: string, value: JsonValue, text: string): boolean {
  const actual = tagOf(value, text, tag);
  const isSigned = typeof value !== 'bigint' || value <= int64Max;
  return actual === tag || (tag === 'float' && actual === 'int' && isSigned);
}

/** Whether a value is a float: an integer of more than 53 bits would be a bigint. */
const isFloat = (value: JsonValue, text: string): boolean =>
  typeof value === 'number' && (!Number.isSafeInteger(value) || writtenAsFloat.test(text));

const writtenAsFloat = /^(?![-+]?0x).*[.e]/i;

/** A key that is no text, but becomes one. */
interface TypedKey {
  readonly name: string;
  /** The key as Go prints it. */
  readonly shown: string;
  /** Whether it is a float: `1.0` and `1` are different keys that become the same text. */
  readonly isFloat: boolean;
}

/** A key that has no text. */
interface UnsupportedKey {
  readonly type: string;
  readonly shown: string;
}

/** A value as Go prints it before its keys are converted to strings. */
const yamlSyntax = (value: JsonValue | undefined): string =>
  goSyntax(value).replaceAll('map[string]', 'map[interface {}]');

/** A member of a map whose key has no text. */
interface FaultyKey {
  readonly map: JsonObject;
  readonly key: UnsupportedKey;
  readonly value: JsonValue;
}

function unsupportedKey({ key: { type, shown }, value }: FaultyKey): YamlError {
  const shownValue = value === null ? '<nil>' : showHead(value, yamlSyntax);
  return new YamlError(`unsupported map key of type: ${type}, key: ${shown}, value: ${shownValue}`);
}

/**
 * Converts a key to a string as kube-apiserver's library does. Throws YamlError for a list or a
 * map.
 * @param text the key as written
 */
function keyText(value: JsonValue, text = ''): string | TypedKey | UnsupportedKey {
  if (typeof value === 'string') return value;
  if (value === null) return { type: '%!s(<nil>)', shown: '<nil>' };
  if (typeof value === 'object') {
    throw new YamlError(`yaml: invalid map key: ${showHead(value, yamlSyntax)}`);
  }
  if (typeof value === 'bigint' && value > int64Max) {
    return { type: 'uint64', shown: `0x${value.toString(16)}` };
  }
  const isFloatKey = typeof value === 'number' && isFloat(value, text);
  const name = isFloatKey ? floatKey(value) : String(value);
  return { name, shown: goSyntax(value), isFloat: isFloatKey };
}

/** Prints a float as a key: the shortest text that has the same value in single precision. */
function floatKey(value: number): string {
  const single = Math.fround(value);
  if (Number.isNaN(single)) return '.nan';
  if (!Number.isFinite(single)) return single > 0 ? '.inf' : '-.inf';
  let digits = 0;
  while (Math.fround(Number(single.toExponential(digits))) !== single) digits += 1;
  return Object.is(single, -0) ? '-0' : goFloat(Number(single.toExponential(digits)));
}

/** Refuses in steps the first number, by the order of keys, that JSON does not have. */
function* refuseUnsupported(root: JsonValue): Generator<void, void> {
  const open: (JsonValue | undefined)[] = [root];
  for (let count = 1; open.length > 0; count += 1) {
    if (count % nodesPerStep === 0) yield;
    const value = open.pop();
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new YamlError(`json: unsupported value: ${goFloat(value)}`);
    }
    if (typeof value !== 'object' || value === null) continue;
    const items = Array.isArray(value)
      ? value
      : Object.keys(value)
          .sort()
          .map((name) => value[name]);
    appendAll(open, items.toReversed());
  }
}

/** Bytes that one step copies. */
const bytesPerStep = 262_144;

/**
 * Decodes a text from base64 in steps, each of which takes milliseconds for megabytes (TRUST-2). As
 * in Go, only line breaks may separate its characters.
 */
function* binarySteps(base64: string): Generator<void, string> {
  if (base64ErrorAt(base64) !== undefined) {
    throw new YamlError('yaml: !!binary value contains invalid base64 data');
  }
  yield;
  // Browsers have no buffers.
  const decoded = atob(base64);
  yield;
  const bytes = new Uint8Array(decoded.length);
  for (let at = 0; at < bytes.length; at += 1) {
    if (at % bytesPerStep === bytesPerStep - 1) yield;
    bytes[at] = decoded.charCodeAt(at);
  }
  yield;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
