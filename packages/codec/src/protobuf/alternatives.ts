import { isObject, type JsonObject, type JsonValue, jsonObject } from '@wheelhouse/machinery';
import type { Alternatives, Property, Schema } from '@wheelhouse/schema';
import type { ValueCodec } from './value-codec.ts';

/**
 * A value that is one of several things in JSON (a schema, a list of them, a boolean) is a message
 * with a member for each in protobuf: the list or the boolean, and the object. `compile` makes the
 * codec of such a message.
 */
export function alternativesCodec(
  { object, list, boolean }: Alternatives,
  compile: (message: Schema) => ValueCodec,
): ValueCodec {
  const members: [string, Property][] = [];
  const only = (schema: Schema | undefined, number: number): void => {
    if (schema !== undefined) members.push(['object', { schema, number, pointer: true }]);
  };
  if (boolean === true) {
    members.push(['allows', { schema: { type: 'boolean', typed: true }, number: 1 }]);
    only(object, 2);
  } else {
    only(object, 1);
    if (list !== undefined) members.push(['list', { schema: list, number: 2 }]);
  }
  const codec = compile({ type: 'object', typed: true, properties: new Map(members) });
  return {
    wireType: codec.wireType,
    write: (writer, value) => codec.write(writer, messageOf(value)),
    read: (reader, depth) => valueIn(jsonObject(codec.read(reader, depth)), boolean === true),
    *writeSteps(writer, value, stride) {
      if (codec.writeSteps === undefined) codec.write(writer, messageOf(value));
      else yield* codec.writeSteps(writer, messageOf(value), stride);
    },
    *readSteps(reader, at) {
      if (codec.readSteps === undefined) throw new Error('a message is read in steps');
      return valueIn(jsonObject(yield* codec.readSteps(reader, at)), boolean === true);
    },
  };
}

function messageOf(value: JsonValue | undefined): JsonObject {
  if (Array.isArray(value)) return { list: value };
  // An object goes with `true`: what it describes is allowed.
  return isObject(value) ? { allows: true, object: value } : { allows: value === true };
}

function valueIn({ allows, object, list }: JsonObject, isBoolean: boolean): JsonValue {
  if (object !== undefined) return object;
  if (isBoolean) return allows === true;
  return list ?? null;
}
