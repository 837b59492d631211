import { isUtf8 } from 'node:buffer';
import {
  base64ErrorAt,
  canonicalBase64,
  goPlain,
  int64Min,
  type JsonObject,
  type JsonValue,
  narrowed,
  problemText,
  runInOnePiece,
  setMember,
} from '@wheelhouse/machinery';
import { type FoundPaths, goType, resolved, type Schema } from '@wheelhouse/schema';
import {
  Cursor,
  duplicateKey,
  type Fault,
  floatOf,
  info,
  major,
  majorName,
  misfit,
  otherFault,
  secondsOverflow,
  textOfFault,
  timeOfSeconds,
  timeOfText,
  typeAfterTag,
  unknownMember,
  within,
} from './cursor.ts';
import {
  anyItem,
  anyMap,
  byteItem,
  encodings,
  fitsFormat,
  fitsInt64,
  formatErrors,
  int32Item,
  isRaw,
  isText,
  nil,
  overflow,
  rawPrefixes,
  selfDescribed,
  textItem,
  undefinedItem,
} from './item-types.ts';
import { notAccepted } from './well-formed.ts';

/** A key of a struct. */
interface FieldKey {
  /** Its name; absent for a key that is not a string. */
  readonly name?: string;
  /** A text that differs for different keys. */
  readonly id: string;
  /** The key in messages. */
  readonly shown: string;
}

function otherKey(key: JsonValue): FieldKey {
  const shown = goPlain(key);
  return { id: `${typeof key}\0${shown}`, shown };
}

/** Items between two pauses, about a millisecond of work. */
const itemsPerStep = 512;

/** Decodes well-formed bytes as kube-apiserver's decoder does. */
export class Decoder extends Cursor {
  /** The fault of the last item. */
  fault: Fault | undefined;
  /** Collects the paths of unknown members, if requested. */
  unknown: FoundPaths | undefined;
  /** The path of the current struct, list, or map, if `unknown` is set. */
  #path = '';
  #strictness: 'strict' | 'lax';
  /** The first fault in an item that kube-apiserver first keeps as bytes. */
  #rawFault: Fault | undefined;
  /** The text form of byte strings according to the nearest enclosing tag. */
  #encoding: 'base64url' | 'base64' | 'hex' | undefined;
  /** Items decoded in steps. */
  #items = 0;

  constructor(bytes: Buffer, strictness: 'strict' | 'lax' = 'lax') {
    super(bytes);
    this.#strictness = strictness;
  }

  /** Decodes the only item as the type of a schema. */
  whole(schema: Schema): JsonValue {
    const value = this.into(schema);
    this.fault ??= this.#rawFault;
    return value;
  }

  /** Decodes the only item as a map, like `whole`, in steps if it is one as stored. */
  *mapSteps(): Generator<void, JsonValue> {
    if (this.type === major.tag && Number(this.head()) !== selfDescribed) this.at = 0;
    if (this.type === major.map) return yield* this.#mapOf(anyItem, 'steps');
    this.at = 0;
    return this.whole(anyMap);
  }

  /** Decodes an item of any type in steps, if it has items. */
  *#anySteps(): Generator<void, JsonValue> {
    this.#items += 1;
    if (this.#items % itemsPerStep === 0) yield;
    this.fault = undefined;
    if (this.type === major.list) return yield* this.#listOf(anyItem, 'steps');
    return this.type === major.map ? yield* this.#mapOf(anyItem, 'steps') : this.any();
  }

  /** Decodes an item of any type. */
  any(): JsonValue {
    this.fault = undefined;
    switch (this.type) {
      case major.unsigned:
      case major.negative:
        return this.#anyInteger();
      case major.bytes:
        return this.#bytes().toString(this.#encoding ?? 'utf8');
      case major.text:
        return this.#text();
      case major.list:
        return this.#list(anyItem);
      case major.map:
        return this.#map(anyItem);
      case major.tag:
        return this.#tagged(anyItem);
      default:
        return this.#primitive();
    }
  }

  /** Decodes an item as the type of a schema; nil is null for every type. */
  into(schema: Schema, pointer: 'pointer' | 'value' = 'value'): JsonValue {
    this.fault = undefined;
    if (pointer === 'pointer' && (this.next === nil || this.next === undefinedItem)) {
      this.at += 1;
      return null;
    }
    const at = resolved(schema);
    if (at.alternatives !== undefined) return this.#withoutTags(() => this.#oneOf(at));
    if (at.intOrString === true) return this.#withoutTags(() => this.#intOrString());
    if (at === anyItem) return this.any();
    if (isRaw(at)) return this.#withoutTags(() => this.#raw(at));
    if (at.type === 'string' && at.format !== undefined && at.format !== 'byte') {
      return this.#withoutTags(() => this.#formatted(at));
    }
    return this.#typed(at);
  }

  /**
   * Decodes an item that kube-apiserver first keeps as bytes. It reports faults in such items last,
   * unless their type has a custom decoder.
   */
  #raw(schema: Schema): JsonValue {
    const value = this.any();
    const prefix = rawPrefixes[schema.typeName ?? ''];
    if (this.fault === undefined || prefix === undefined) return value;
    this.#rawFault ??= otherFault(prefix + textOfFault(this.fault));
    this.fault = undefined;
    return value;
  }

  /** Decodes and validates a time or quantity, which is a string and is normalized later. */
  #formatted(schema: Schema): JsonValue {
    const text = this.into(textItem, 'pointer');
    const error = typeof text === 'string' ? formatErrors[schema.format ?? '']?.(text) : undefined;
    if (this.fault === undefined && error !== undefined) this.fault = otherFault(error);
    return text;
  }

  /** Decodes as custom decoders do, without the effect of enclosing tags. */
  #withoutTags(decode: () => JsonValue): JsonValue {
    const outer = this.#encoding;
    this.#encoding = undefined;
    const value = decode();
    this.#encoding = outer;
    return value;
  }

  #typed(schema: Schema): JsonValue {
    const { type } = this;
    switch (type) {
      case major.unsigned:
      case major.negative:
        return this.#number(schema);
      case major.bytes:
        return this.#byteString(schema);
      case major.text: {
        const text = this.#text();
        if (this.fault === undefined) this.#expect(isText(schema), { type, schema });
        return text;
      }
      case major.list:
        return this.#listInto(schema);
      case major.map:
        if (schema.properties !== undefined) return this.#struct(schema);
        if (schema.additionalProperties !== undefined) {
          return this.#map(schema.additionalProperties);
        }
        return this.#refuse(schema);
      case major.tag:
        return this.#tagged(schema);
      default: {
        const value = this.#primitive();
        const fits = value === null || typeof value === schema.type;
        if (this.fault === undefined) this.#expect(fits, { type, schema });
        return value;
      }
    }
  }

  #expect(fits: boolean, found: { type: number; schema: Schema; why?: string }): void {
    if (!fits) this.fault = misfit(found.type, goType(found.schema), found.why);
  }

  /** Skips an item of the wrong type. */
  #refuse(schema: Schema, why?: string): JsonValue {
    const { type } = this;
    this.skip();
    this.fault = misfit(type, goType(schema), why);
    return null;
  }

  #integer(): bigint {
    const { type } = this;
    const argument = BigInt(this.head());
    return type === major.unsigned ? argument : -1n - argument;
  }

  #anyInteger(): JsonValue {
    const { type } = this;
    const value = this.#integer();
    if (!fitsInt64(value)) this.fault = misfit(type, 'int64', overflow(value, "Go's int64"));
    return narrowed(value);
  }

  #number(schema: Schema): JsonValue {
    const { type } = this;
    const value = this.#integer();
    if (value < int64Min) {
      this.#expect(false, { type, schema, why: overflow(value, "Go's int64") });
    } else if (schema.type === 'integer') {
      const why = overflow(value, goType(schema));
      this.#expect(fitsFormat(value, schema.format), { type, schema, why });
    } else this.#expect(schema.type === 'number', { type, schema });
    return schema.type === 'number' ? Number(value) : narrowed(value);
  }

  #bytes(): Buffer {
    const pieces = this.pieces();
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  }

  #text(): string {
    const pieces = this.pieces();
    if (!pieces.every(isUtf8)) this.fault = otherFault('cbor: invalid UTF-8 string');
    return pieces.map((piece) => piece.toString('utf8')).join('');
  }

  /** Decodes a byte string, which contains base64 if the field has bytes and there is no tag. */
  #byteString(schema: Schema): JsonValue {
    const { type } = this;
    const bytes = this.#bytes();
    const encoding = this.#encoding;
    if (schema.format !== 'byte') {
      this.#expect(isText(schema), { type, schema });
      return bytes.toString(encoding ?? 'utf8');
    }
    if (encoding !== undefined) return bytes.toString('base64');
    const text = bytes.toString('latin1');
    const at = base64ErrorAt(text);
    if (at === undefined) return canonicalBase64(text);
    const why = problemText({ code: 'base64', at });
    this.fault = otherFault(`cbor: failed to decode base64 from byte string: ${why}`);
    return text;
  }

  #listInto(schema: Schema): JsonValue {
    if (schema.type === 'array') return this.#list(schema.items ?? anyItem);
    if (schema.format === 'byte') {
      return Buffer.from(this.#list(byteItem).map(Number)).toString('base64');
    }
    if (schema.properties === undefined) return this.#refuse(schema);
    return this.#refuse(schema, 'cannot decode CBOR array to struct without toarray option');
  }

  #list(items: Schema): JsonValue[] {
    return runInOnePiece(this.#listOf(items, 'one piece'));
  }

  *#listOf(items: Schema, work: 'one piece' | 'steps'): Generator<void, JsonValue[]> {
    const more = this.items();
    const list: JsonValue[] = [];
    let first: Fault | undefined;
    const outer = this.#path;
    while (more()) {
      if (this.unknown !== undefined) this.#path = `${outer}[${list.length}]`;
      list.push(work === 'steps' ? yield* this.#anySteps() : this.into(items));
      first ??= this.fault;
    }
    this.#path = outer;
    this.fault = first;
    return list;
  }

  #map(items: Schema): JsonObject {
    return runInOnePiece(this.#mapOf(items, 'one piece'));
  }

  *#mapOf(items: Schema, work: 'one piece' | 'steps'): Generator<void, JsonObject> {
    const more = this.items();
    const map: JsonObject = {};
    let first: Fault | undefined;
    // A nil key repeats the previous key.
    let name = '';
    for (let index = 0; more(); index += 1) {
      name = (this.into(textItem) as string | null) ?? name;
      if (this.fault !== undefined) {
        first ??= this.fault;
        this.skip();
        continue;
      }
      const outer = this.#enter(name);
      const value = work === 'steps' ? yield* this.#anySteps() : this.into(items);
      this.#path = outer;
      first ??= this.fault;
      if (this.fault !== undefined) continue;
      if (Object.hasOwn(map, name)) {
        first = duplicateKey(name, index);
        this.#skipMembers(more);
        break;
      }
      setMember(map, name, value);
    }
    this.fault = first;
    return map;
  }

  /** Enters a member, and returns the path to restore. */
  #enter(name: string): string {
    const outer = this.#path;
    if (this.unknown !== undefined) this.#path = outer === '' ? name : `${outer}.${name}`;
    return outer;
  }

  #skipMembers(more: () => boolean): void {
    while (more()) {
      this.skip();
      this.skip();
    }
  }

  #struct(schema: Schema): JsonObject {
    const more = this.items();
    const object: JsonObject = {};
    const seen = new Set<string>();
    let first: Fault | undefined;
    for (let index = 0; more(); index += 1) {
      this.fault = undefined;
      const key = this.#fieldKey();
      first ??= this.fault;
      if (key === undefined) {
        this.skip();
        continue;
      }
      const property = key.name === undefined ? undefined : schema.properties?.get(key.name);
      const isUnknown = property === undefined && this.#strictness === 'strict';
      if (isUnknown || seen.has(key.id)) {
        first = isUnknown ? unknownMember(index) : duplicateKey(key.shown, index);
        this.skip();
        this.#skipMembers(more);
        break;
      }
      seen.add(key.id);
      const outer = this.#enter(key.shown);
      if (property === undefined) {
        this.unknown?.add(this.#path);
        this.#path = outer;
        this.skip();
        continue;
      }
      const value = this.into(property.schema, property.pointer === true ? 'pointer' : 'value');
      this.#path = outer;
      if (this.fault === undefined) setMember(object, key.shown, value);
      else first ??= within(this.fault, `${goType(schema)}.${key.shown}`);
    }
    this.fault = first;
    return object;
  }

  /** Reads a key; undefined if it is ignored. */
  #fieldKey(): FieldKey | undefined {
    const { type } = this;
    if (type === major.bytes || type === major.text) {
      const name = type === major.text ? this.#text() : this.#bytes().toString('utf8');
      return this.fault === undefined ? { name, id: name, shown: name } : undefined;
    }
    if (type <= major.negative) return this.#numberKey();
    const key = this.any();
    const isKey = this.fault === undefined && (key === null || typeof key !== 'object');
    const why = `map key is of type ${majorName(type)} and cannot be used to match struct field name`;
    this.fault = misfit(type, 'string', why);
    return isKey ? otherKey(key) : undefined;
  }

  #numberKey(): FieldKey | undefined {
    const { type } = this;
    const value = this.#integer();
    if (value >= int64Min) return otherKey(narrowed(BigInt.asIntN(64, value)));
    this.fault = misfit(type, 'int64', overflow(`-1-${-1n - value}`, "Go's int64"));
    return undefined;
  }

  #tagged(schema: Schema): JsonValue {
    const number = Number(this.head());
    const expected = typeAfterTag(number, this.next);
    if (expected !== undefined) {
      const actual = majorName(this.type);
      this.skip();
      this.fault = otherFault(
        `cbor: tag number ${number} must be followed by ${expected}, got ${actual}`,
      );
      return null;
    }
    if (schema === anyItem && number <= 1) return this.#time();
    const outer = this.#encoding;
    this.#encoding = encodings[number] ?? outer;
    const value = schema === anyItem ? this.any() : this.#typed(schema);
    this.#encoding = outer;
    return value;
  }

  #time(): JsonValue {
    const { type } = this;
    if (type === major.text) {
      const text = this.#text();
      return this.fault === undefined ? this.#textOrFault(timeOfText(text)) : null;
    }
    if (type === major.primitive) return this.#textOrFault(timeOfSeconds(this.#primitive()));
    const value = this.#integer();
    if (fitsInt64(value)) return this.#textOrFault(timeOfSeconds(value));
    this.fault = secondsOverflow(type, value);
    return null;
  }

  #textOrFault(time: ReturnType<typeof timeOfText>): JsonValue {
    if ('text' in time) return time.text;
    this.fault = time.fault;
    return null;
  }

  #primitive(): JsonValue {
    const argument = this.head();
    if (this.info >= info.twoBytes) return floatOf(this.info, argument);
    if (argument === 20) return false;
    if (argument === 21) return true;
    if (argument !== 22) {
      const what = `simple value ${argument} is not recognized`;
      this.fault = otherFault(notAccepted(major.primitive, what));
    }
    return null;
  }

  #intOrString(): JsonValue {
    const start = this.at;
    const text = this.into(textItem);
    if (this.fault === undefined) return text;
    this.at = start;
    return this.into(int32Item);
  }

  /** Decodes a value of one of several types; kube-apiserver's decoders of such types are strict. */
  #oneOf(schema: Schema): JsonValue {
    const { object, list, boolean, otherwise } = schema.alternatives ?? {};
    while (this.type === major.tag) {
      const start = this.at;
      if (Number(this.head()) === selfDescribed) continue;
      this.at = start;
      break;
    }
    const isBoolean = boolean === true && (this.next === 0xf4 || this.next === 0xf5);
    const target = this.type === major.map ? object : this.type === major.list ? list : undefined;
    if (isBoolean) return this.any();
    if (target === undefined) {
      this.skip();
      if (otherwise !== undefined) this.fault = otherFault(otherwise);
      return null;
    }
    const outer = this.#strictness;
    this.#strictness = 'strict';
    const value = this.into(target);
    this.#strictness = outer;
    return value;
  }
}
