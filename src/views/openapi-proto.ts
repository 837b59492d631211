import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { encodeJson } from '../codec/json.ts';

/**
 * OpenAPI 2 in protobuf (`openapi.v2.Document`), which clients of `/openapi/v2` ask for: the message
 * types they know, with the members our documents have. Written from the end of the buffer forward,
 * so that the length of a message is known when its head is written.
 */

/** `string`, `bool`, `int`, `double`, `any` (JSON in a string) or the name of a message. */
type FieldType = string;

interface MessageShape {
  /** JSON member -> field number and type; a type ending in `*` is a list's. */
  readonly fields?: Readonly<Record<string, readonly [number: number, type: FieldType]>>;
  /** All other members, as pairs of name (1) and value (2) in this field. */
  readonly named?: readonly [number: number, type: FieldType];
  /** Members beginning with `x-`, as pairs of name and JSON. */
  readonly extensions?: number;
  /** The value itself stands in a field that depends on it. */
  readonly wrap?: (value: JsonValue) => readonly [number: number, type: FieldType];
}

const refOr =
  (number: number, type: FieldType): NonNullable<MessageShape['wrap']> =>
  (value) =>
    isObject(value) && value['$ref'] !== undefined ? [2, 'JsonReference'] : [number, type];

const parameterFields = {
  required: [1, 'bool'],
  in: [2, 'string'],
  description: [3, 'string'],
  name: [4, 'string'],
} as const;

const shapes: Readonly<Record<string, MessageShape>> = {
  Document: {
    fields: {
      swagger: [1, 'string'],
      info: [2, 'Info'],
      paths: [8, 'Paths'],
      definitions: [9, 'Definitions'],
      security: [12, 'SecurityRequirement*'],
      securityDefinitions: [13, 'SecurityDefinitions'],
    },
    extensions: 16,
  },
  Info: { fields: { title: [1, 'string'], version: [2, 'string'], description: [3, 'string'] } },
  Paths: { named: [2, 'PathItem'], extensions: 1 },
  PathItem: {
    fields: {
      get: [2, 'Operation'],
      put: [3, 'Operation'],
      post: [4, 'Operation'],
      delete: [5, 'Operation'],
      options: [6, 'Operation'],
      head: [7, 'Operation'],
      patch: [8, 'Operation'],
      parameters: [9, 'ParametersItem*'],
    },
    extensions: 10,
  },
  Operation: {
    fields: {
      tags: [1, 'string*'],
      description: [3, 'string'],
      operationId: [5, 'string'],
      produces: [6, 'string*'],
      consumes: [7, 'string*'],
      parameters: [8, 'ParametersItem*'],
      responses: [9, 'Responses'],
      schemes: [10, 'string*'],
      deprecated: [11, 'bool'],
    },
    extensions: 13,
  },
  ParametersItem: { wrap: refOr(1, 'Parameter') },
  JsonReference: { fields: { $ref: [1, 'string'], description: [2, 'string'] } },
  Parameter: {
    wrap: (value) =>
      isObject(value) && value['in'] === 'body' ? [1, 'BodyParameter'] : [2, 'NonBodyParameter'],
  },
  BodyParameter: {
    fields: {
      description: [1, 'string'],
      name: [2, 'string'],
      in: [3, 'string'],
      required: [4, 'bool'],
      schema: [5, 'Schema'],
    },
    extensions: 6,
  },
  NonBodyParameter: {
    wrap: (value) =>
      isObject(value) && value['in'] === 'path' ? [4, 'PathParameter'] : [3, 'QueryParameter'],
  },
  QueryParameter: {
    fields: {
      ...parameterFields,
      type: [6, 'string'],
      format: [7, 'string'],
      uniqueItems: [20, 'bool'],
    },
    extensions: 23,
  },
  PathParameter: {
    fields: {
      ...parameterFields,
      type: [5, 'string'],
      format: [6, 'string'],
      uniqueItems: [19, 'bool'],
    },
    extensions: 22,
  },
  Responses: { named: [1, 'ResponseValue'], extensions: 2 },
  ResponseValue: { wrap: refOr(1, 'Response') },
  Response: { fields: { description: [1, 'string'], schema: [2, 'SchemaItem'] }, extensions: 5 },
  SchemaItem: { wrap: () => [1, 'Schema'] },
  Definitions: { named: [1, 'Schema'] },
  Properties: { named: [1, 'Schema'] },
  Schema: {
    fields: {
      $ref: [1, 'string'],
      format: [2, 'string'],
      title: [3, 'string'],
      description: [4, 'string'],
      default: [5, 'any'],
      multipleOf: [6, 'double'],
      maximum: [7, 'double'],
      exclusiveMaximum: [8, 'bool'],
      minimum: [9, 'double'],
      exclusiveMinimum: [10, 'bool'],
      maxLength: [11, 'int'],
      minLength: [12, 'int'],
      pattern: [13, 'string'],
      maxItems: [14, 'int'],
      minItems: [15, 'int'],
      uniqueItems: [16, 'bool'],
      maxProperties: [17, 'int'],
      minProperties: [18, 'int'],
      required: [19, 'string*'],
      enum: [20, 'any*'],
      additionalProperties: [21, 'AdditionalPropertiesItem'],
      type: [22, 'TypeItem'],
      items: [23, 'ItemsItem'],
      properties: [25, 'Properties'],
    },
    extensions: 31,
  },
  AdditionalPropertiesItem: {
    wrap: (value) => (typeof value === 'boolean' ? [2, 'bool'] : [1, 'Schema']),
  },
  TypeItem: { wrap: () => [1, 'string'] },
  ItemsItem: { wrap: () => [1, 'Schema'] },
  SecurityRequirement: { named: [1, 'StringArray'] },
  StringArray: { wrap: () => [1, 'string*'] },
  SecurityDefinitions: { named: [1, 'SecurityDefinitionsItem'] },
  SecurityDefinitionsItem: { wrap: () => [2, 'ApiKeySecurity'] },
  ApiKeySecurity: {
    fields: {
      type: [1, 'string'],
      name: [2, 'string'],
      in: [3, 'string'],
      description: [4, 'string'],
    },
    extensions: 5,
  },
};

/** The protobuf form of a document `openApiV2` made. */
export function openApiV2Proto(document: JsonObject): Buffer {
  const writer = new BackwardWriter();
  writeMessage(writer, 'Document', document);
  return writer.bytes();
}

function writeMessage(writer: BackwardWriter, name: string, value: JsonValue): void {
  const shape = shapes[name];
  if (shape === undefined) throw new Error(`no message ${name}`);
  if (shape.wrap !== undefined) {
    const [number, type] = shape.wrap(value);
    writeField(writer, { number, type }, value);
    return;
  }
  if (!isObject(value)) return;
  for (const member of Object.keys(value).reverse()) {
    const held = value[member];
    if (held !== undefined) writeMember(writer, shape, { member, held });
  }
}

function writeMember(
  writer: BackwardWriter,
  shape: MessageShape,
  { member, held }: { member: string; held: JsonValue },
): void {
  const field = shape.fields;
  if (field !== undefined && Object.hasOwn(field, member)) {
    const [number = 0, type = ''] = field[member] ?? [];
    writeField(writer, { number, type }, held);
  } else if (member.startsWith('x-') && shape.extensions !== undefined) {
    writeNamed(writer, { number: shape.extensions, type: 'any' }, { member, held });
  } else if (shape.named !== undefined) {
    const [number, type] = shape.named;
    writeNamed(writer, { number, type }, { member, held });
  }
}

interface Field {
  readonly number: number;
  readonly type: FieldType;
}

function writeNamed(
  writer: BackwardWriter,
  { number, type }: Field,
  { member, held }: { member: string; held: JsonValue },
): void {
  writer.delimited(number, () => {
    writeField(writer, { number: 2, type }, held);
    writeField(writer, { number: 1, type: 'string' }, member);
  });
}

function writeField(writer: BackwardWriter, { number, type }: Field, value: JsonValue): void {
  if (type.endsWith('*')) {
    const items = Array.isArray(value) ? value : [];
    for (const item of [...items].reverse()) {
      writeField(writer, { number, type: type.slice(0, -1) }, item);
    }
    return;
  }
  switch (type) {
    case 'string':
      writer.delimited(number, () => writer.text(String(value)));
      return;
    case 'any':
      writer.delimited(number, () => {
        writer.delimited(2, () => writer.text(`${encodeJson(value).toString('utf8')}\n`));
      });
      return;
    case 'bool':
      if (value === true) writer.varint(number, 1);
      return;
    case 'int':
      if (Number(value) !== 0) writer.varint(number, Number(value));
      return;
    case 'double':
      if (Number(value) !== 0) writer.double(number, Number(value));
      return;
    default:
      writer.delimited(number, () => writeMessage(writer, type, value));
  }
}

/** Protobuf's wire format, the last byte first. */
class BackwardWriter {
  #buffer = Buffer.allocUnsafe(64 * 1024);
  /** Where the first byte written stands; all after it is done. */
  #start = this.#buffer.length;

  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#start));
  }

  text(value: string): void {
    const length = Buffer.byteLength(value);
    this.#reserve(length);
    this.#start -= length;
    this.#buffer.write(value, this.#start);
  }

  double(field: number, value: number): void {
    this.#reserve(8);
    this.#start -= 8;
    this.#buffer.writeDoubleLE(value, this.#start);
    this.#number((field << 3) | 1);
  }

  varint(field: number, value: number): void {
    this.#number(value);
    this.#number(field << 3);
  }

  /** A field whose length comes first: `write` puts its content there. */
  delimited(field: number, write: () => void): void {
    const end = this.#buffer.length - this.#start;
    write();
    this.#number(this.#buffer.length - this.#start - end);
    this.#number((field << 3) | 2);
  }

  /** A number in groups of seven bits; negative ones as 64-bit two's complement. */
  #number(value: number): void {
    const groups: number[] = [];
    let rest = BigInt.asUintN(64, BigInt(Math.trunc(value)));
    if (value >= 0 && value < 128) groups.push(value);
    else {
      for (; rest > 127n; rest >>= 7n) groups.push(Number(rest & 127n) | 128);
      groups.push(Number(rest));
    }
    this.#reserve(groups.length);
    this.#start -= groups.length;
    for (const [index, group] of groups.entries()) this.#buffer[this.#start + index] = group;
  }

  #reserve(length: number): void {
    if (length <= this.#start) return;
    const done = this.#buffer.length - this.#start;
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, done + length));
    this.#buffer.copy(grown, grown.length - done, this.#start);
    this.#buffer = grown;
    this.#start = grown.length - done;
  }
}
