import { encodeCbor, encodeEnvelope, encodeYaml } from '@wheelhouse/codec';
import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import { cloneJson, dialectOf, isObject, type JsonObject } from '@wheelhouse/machinery';

const dialect = dialectOf('svc');

/** A verb and the encoding of its body. */
export interface Form {
  readonly name: string;
  readonly verb: 'create' | 'apply' | 'update' | 'merge' | 'strategic';
  readonly type: string;
  encode(object: JsonObject, version: VersionDef): string | Buffer;
}

const asJson = (object: JsonObject) => JSON.stringify(object);
export const forms: readonly Form[] = [
  { name: 'create', verb: 'create', type: 'application/json', encode: asJson },
  { name: 'create in YAML', verb: 'create', type: 'application/yaml', encode: encodeYaml },
  { name: 'create in CBOR', verb: 'create', type: 'application/cbor', encode: encodeCbor },
  {
    name: 'create in protobuf',
    verb: 'create',
    type: dialect.protobufMediaType,
    encode: (object, { schema }) => encodeEnvelope(schema, object),
  },
  { name: 'apply', verb: 'apply', type: 'application/apply-patch+yaml', encode: asJson },
  { name: 'update', verb: 'update', type: 'application/json', encode: asJson },
  { name: 'merge', verb: 'merge', type: 'application/merge-patch+json', encode: asJson },
  {
    name: 'strategic merge',
    verb: 'strategic',
    type: 'application/strategic-merge-patch+json',
    encode: asJson,
  },
];

/** An encoding of an answer. */
export interface AnswerForm {
  readonly name: string;
  readonly accept: string;
}

const tableType = `application/json;as=Table;v=v1;g=${dialect.group('meta')}`;

/** The encodings of answers; the cells of a table have code of their own in each kind. */
export const answers: readonly AnswerForm[] = [
  { name: 'JSON', accept: 'application/json' },
  { name: 'a table', accept: `${tableType},application/json` },
  { name: 'YAML', accept: 'application/yaml' },
  { name: 'protobuf', accept: `${dialect.protobufMediaType},application/json` },
];

/** The method of each verb. */
export const methods = {
  create: 'POST',
  apply: 'PATCH',
  update: 'PUT',
  merge: 'PATCH',
  strategic: 'PATCH',
} as const;

/** The path at which a kind's example is created, and the example in that version. */
export function placeOf(def: ResourceDef, { version }: VersionDef, namespace: string) {
  const example = cloneJson((def.example?.() ?? {}) as JsonObject);
  const metadata: JsonObject = isObject(example['metadata']) ? example['metadata'] : {};
  const isNamespaced = def.scope === 'Namespaced';
  if (isNamespaced) metadata['namespace'] = namespace;
  const apiVersion = def.group === '' ? version : `${def.group}/${version}`;
  const root = def.group === '' ? '/api' : `/apis/${def.group}`;
  const path = `${root}/${version}${isNamespaced ? `/namespaces/${namespace}` : ''}/${def.resource}`;
  const object = { ...example, apiVersion, kind: def.kind, metadata };
  return { path, object, name: String(metadata['name']) };
}
