import { decodeJsonSteps, JsonError } from '@wheelhouse/codec';
import {
  type Dialect,
  flatMapSteps,
  isObject,
  type JsonObject,
  type JsonValue,
  objectsOf,
  setMember,
} from '@wheelhouse/machinery';
import {
  DecodeError,
  decodeTypedSteps,
  type Property,
  resolved,
  type Schema,
} from '@wheelhouse/schema';

/** JSON in annotations that fields have replaced, which kube-apiserver still validates. */

const text: Property = { schema: { type: 'string' } };
const truth: Property = { schema: { type: 'boolean' }, pointer: true };
const seconds: Property = { schema: { type: 'integer', format: 'int64' }, pointer: true };

function struct(typeName: string, members: Readonly<Record<string, Property>>): Schema {
  return { type: 'object', typeName, properties: new Map(Object.entries(members)) };
}

/** Types without JSON names, so that JSON uses the Go field names in any letter case. */
const untagged = {
  tolerations: struct('core.Toleration', {
    Key: text,
    Operator: text,
    Value: text,
    Effect: text,
    TolerationSeconds: seconds,
  }),
  taints: struct('core.Taint', { Key: text, Value: text, Effect: text }),
} as const;

const avoidPods = struct('v1.AvoidPods', {
  preferAvoidPods: {
    schema: {
      type: 'array',
      items: struct('v1.PreferAvoidPodsEntry', {
        podSignature: {
          schema: struct('v1.PodSignature', {
            podController: {
              schema: struct('v1.OwnerReference', { controller: truth }),
              pointer: true,
            },
          }),
        },
      }),
    },
  },
});

/** The names of the replaced annotations. */
export const oldAnnotations = ({ label }: Dialect) => ({
  tolerations: label('tolerations', 'scheduler.alpha'),
  taints: label('taints', 'scheduler.alpha'),
  avoidPods: label('preferAvoidPods', 'scheduler.alpha'),
});

/** The content of an annotation, or the decoding error in Go's words. */
type Annotated = { readonly items: readonly JsonObject[] } | { readonly problem: string };

/** The tolerations or taints in an annotation, with the names of the current fields, in steps. */
export function annotatedList(
  type: keyof typeof untagged,
  annotation: string,
): Generator<void, Annotated> {
  const items = untagged[type];
  return read(annotation, function* (value) {
    const list: Schema = { type: 'array', items };
    const named = Array.isArray(value)
      ? yield* flatMapSteps(value, (item) => [goNames(item, items)])
      : value;
    const decoded: JsonValue = yield* decodeTypedSteps(list, named);
    return yield* flatMapSteps(objectsOf(decoded), (item) => [fieldNames(item)]);
  });
}

/** The entries of the annotation that names pods to avoid on a node, in steps. */
export const annotatedAvoidPods = (annotation: string): Generator<void, Annotated> =>
  read(annotation, function* (value) {
    const decoded = yield* decodeTypedSteps(avoidPods, value);
    return objectsOf(decoded['preferAvoidPods']);
  });

function* read(
  annotation: string,
  itemsOf: (value: JsonValue) => Generator<void, readonly JsonObject[]>,
): Generator<void, Annotated> {
  try {
    const { value } = yield* decodeJsonSteps(Buffer.from(annotation));
    return { items: yield* itemsOf(value) };
  } catch (error) {
    if (error instanceof JsonError || error instanceof DecodeError) {
      return { problem: error.message };
    }
    throw error;
  }
}

/** Returns the value with the member names of its type, which Go matches in any letter case. */
export function goNames(value: JsonValue, type: Schema): JsonValue {
  const { properties, items } = resolved(type);
  if (Array.isArray(value)) {
    return items === undefined ? value : value.map((item) => goNames(item, items));
  }
  if (!isObject(value) || properties === undefined) return value;
  const names = new Map([...properties.keys()].map((name) => [name.toLowerCase(), name]));
  const named: JsonObject = {};
  for (const [written, member = null] of Object.entries(value)) {
    const name = names.get(written.toLowerCase()) ?? written;
    const schema = properties.get(name)?.schema;
    setMember(named, name, schema === undefined ? member : goNames(member, schema));
  }
  return named;
}

function fieldNames(item: JsonObject): JsonObject {
  const members = Object.entries(item).filter(([, value]) => value !== null);
  return Object.fromEntries(
    members.map(([name, value]) => [name.charAt(0).toLowerCase() + name.slice(1), value]),
  );
}
