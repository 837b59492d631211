import { isUtf8 } from 'node:buffer';
import {
  decodeCbor,
  decodeJson,
  decodeMessage,
  decodeYaml,
  encodeCbor,
  encodeEnvelope,
  encodeYaml,
  openEnvelope,
} from '@wheelhouse/codec';
import { schemaOf, schemaOfKind } from '@wheelhouse/kinds';
import {
  type Dialect,
  dialectNames,
  dialectOf,
  errorText,
  isObject,
  itemsOfList,
  type JsonObject,
  type JsonValue,
  jsonObject,
} from '@wheelhouse/machinery';
import { decodeTyped, maxDepth, type Schema } from '@wheelhouse/schema';
import { type FlagSpec, type Flags, parseFlags } from '../flags.ts';
import { CliError } from '../io.ts';
import { printJson, sortMaps } from '../output/go-json.ts';
import { convertToVersion, findBuiltinKind, UnsuitableVersionError } from './convert-version.ts';

/** Flags of `wheelhouse convert`. */
const convertFlags: readonly FlagSpec[] = [
  { name: 'from', type: 'text', help: 'Encoding of the input; detected by default' },
  { name: 'to', type: 'text', help: 'Encoding of the output; json by default' },
  { name: 'dialect', type: 'text', help: 'Dialect of group names: svc (default) or kubernetes' },
  {
    name: 'output-version',
    type: 'text',
    help: 'apiVersion of the output, such as apps/v1; unchanged by default',
  },
  { name: 'help', short: 'h', type: 'boolean', help: 'Show help' },
];

/**
 * Maximum length of the input in bytes: more than the server accepts, but small enough for memory.
 */
const inputBytesMax = 64 * 1024 * 1024;

/** The input and output of `wheelhouse convert`. */
interface ConvertIo {
  readonly input: AsyncIterable<Buffer | string>;
  write(bytes: Buffer | string): Promise<void>;
}

/**
 * Runs `wheelhouse convert`, which converts one object. Resolves with the exit code. Rejects with
 * CliError for invalid arguments, and with ConvertError.
 */
export async function runConvert(io: ConvertIo, args: readonly string[]): Promise<number> {
  const { flags, rest } = parseFlags(args, convertFlags);
  if (flags.boolean('help')) {
    await io.write(convertHelp());
    return 0;
  }
  if (rest.length > 0) throw new CliError(`unexpected argument ${JSON.stringify(rest[0])}`);
  const options = convertOptions(flags);
  await io.write(await convertObject(await readAll(io.input), options));
  return 0;
}

function convertOptions(flags: Flags): ConvertOptions {
  const dialectName = flags.text('dialect') ?? 'svc';
  const supportedDialect = dialectNames.find((name) => name === dialectName);
  if (supportedDialect === undefined) {
    throw new CliError(`--dialect must be one of ${dialectNames.join(', ')}`);
  }
  const from = flags.text('from');
  const outputVersion = flags.text('output-version');
  return {
    dialect: dialectOf(supportedDialect),
    to: formOf('to', flags.text('to') ?? 'json'),
    ...(from === undefined || from === '' ? {} : { from: formOf('from', from) }),
    ...(outputVersion === undefined ? {} : { outputVersion }),
  };
}

/** The encoding that a flag names. Throws CliError. */
export function formOf(flag: string, value: string): ConvertForm {
  const form = convertForms.find((convertForm) => convertForm === value);
  if (form !== undefined) return form;
  throw new CliError(`--${flag} must be one of ${convertForms.join(', ')}`);
}

async function readAll(input: ConvertIo['input']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > inputBytesMax) {
      throw new CliError(`the input is longer than ${inputBytesMax} bytes`);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function convertHelp(): string {
  const lines = convertFlags.map((flag) => `  --${flag.name.padEnd(16)} ${flag.help}\n`);
  return `Converts one object. Encodings: ${convertForms.join(', ')}.\n\nUsage:\n  wheelhouse convert [flags] < object > object\n\nFlags:\n${lines.join('')}`;
}

const convertForms = ['json', 'yaml', 'protobuf', 'cbor'] as const;

/** An encoding of objects. */
type ConvertForm = (typeof convertForms)[number];

/** What to convert an object from and to. */
interface ConvertOptions {
  readonly dialect: Dialect;
  /** Encoding of the input; detected if absent. */
  readonly from?: ConvertForm;
  readonly to: ConvertForm;
  /** apiVersion of the output: any version that the kind has or had; unchanged if absent. */
  readonly outputVersion?: string;
}

/** An object that cannot be converted; the message is a single line. */
export class ConvertError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConvertError';
  }
}

/**
 * Converts one object to another encoding, byte for byte as kube-apiserver encodes it: JSON with an
 * indent of two and kind first, YAML with sorted keys, protobuf in its envelope. Drops unknown
 * fields of built-in kinds. Objects of other kinds stay unchanged and have no protobuf encoding.
 * Rejects with ConvertError.
 */
export async function convertObject(bytes: Buffer, options: ConvertOptions): Promise<Buffer> {
  const { dialect, to, outputVersion } = options;
  const from = options.from ?? guessForm(bytes);
  const input = await decodeInput(bytes, { form: from, dialect });
  const object =
    outputVersion === undefined ? input : convertVersion(input, { dialect, outputVersion });
  try {
    return encodeOutput(object, { form: to, dialect });
  } catch (error) {
    throw error instanceof ConvertError ? error : new ConvertError(errorText(error));
  }
}

const protobufMagic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
const cborTag = Buffer.from([0xd9, 0xd9, 0xf7]);

/** Detects an encoding by its first bytes. Text that is not a JSON object counts as YAML. */
export function guessForm(bytes: Buffer): ConvertForm {
  if (bytes.subarray(0, protobufMagic.length).equals(protobufMagic)) return 'protobuf';
  if (bytes.subarray(0, cborTag.length).equals(cborTag)) return 'cbor';
  // A CBOR map without the self-described tag.
  if ((bytes[0] ?? 0) >> 5 === 5 && !isUtf8(bytes)) return 'cbor';
  const start = bytes.find((byte) => ![0x20, 0x09, 0x0a, 0x0d].includes(byte));
  return start === '{'.charCodeAt(0) ? 'json' : 'yaml';
}

const limits = { depthMax: maxDepth, valuesMax: 2_000_000 };

async function decodeInput(
  bytes: Buffer,
  format: { form: ConvertForm; dialect: Dialect },
): Promise<JsonObject> {
  try {
    const value = await decodeAs(bytes, format);
    if (!isObject(value))
      throw new ConvertError(`the input must be an object but is ${describeValue(value)}`);
    const schema = schemaFor(format.dialect, typeOf(value));
    if (schema === undefined) return value;
    return { ...typeMembers(typeOf(value)), ...decodeTyped(schema)(value) };
  } catch (error) {
    if (error instanceof ConvertError) throw error;
    throw new ConvertError(`the input is not a valid ${format.form} object: ${errorText(error)}`);
  }
}

async function decodeAs(
  bytes: Buffer,
  { form, dialect }: { form: ConvertForm; dialect: Dialect },
): Promise<JsonValue> {
  if (form === 'json') return decodeJson(bytes, limits).value;
  if (form === 'yaml') return (await decodeYaml(bytes)).value;
  if (form === 'cbor') return decodeCbor(bytes);
  const { apiVersion, kind, raw } = openEnvelope(bytes);
  const schema = protobufSchema(dialect, { apiVersion, kind });
  return { ...decodeMessage(schema, raw), ...typeMembers({ apiVersion, kind }) };
}

function describeValue(value: JsonValue): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  return `a ${typeof value}`;
}

interface ObjectType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** A watch event has no kind; its protobuf envelope names none. */
const watchEventType: ObjectType = { apiVersion: '', kind: '' };

const isTyped = ({ apiVersion, kind }: ObjectType) => apiVersion !== '' || kind !== '';

/** The members that declare a type; none for a watch event. */
function typeMembers(type: ObjectType): JsonObject {
  return isTyped(type) ? { apiVersion: type.apiVersion, kind: type.kind } : {};
}

function typeOf(object: JsonObject): ObjectType {
  const { apiVersion, kind } = object;
  const isBare = apiVersion === undefined && kind === undefined;
  if (isBare && typeof object['type'] === 'string' && isObject(object['object'])) {
    return watchEventType;
  }
  const textIn = (name: string, value: JsonValue | undefined) => {
    if (typeof value === 'string' && value !== '') return value;
    throw new ConvertError(`the object has no ${name}`);
  };
  return { kind: textIn('kind', kind), apiVersion: textIn('apiVersion', apiVersion) };
}

function protobufSchema(dialect: Dialect, type: ObjectType): Schema {
  const schema = isTyped(type) ? schemaOfKind(dialect, type) : schemaFor(dialect, type);
  if (schema !== undefined) return schema;
  const version = JSON.stringify(type.apiVersion);
  throw new ConvertError(`${type.kind} in version ${version} has no protobuf form`);
}

function encodeOutput(object: JsonObject, format: { form: ConvertForm; dialect: Dialect }): Buffer {
  const type = typeOf(object);
  switch (format.form) {
    case 'yaml':
      return Buffer.from(encodeYaml(object));
    case 'cbor':
      return encodeCbor(object);
    case 'protobuf':
      return encodeEnvelope(protobufSchema(format.dialect, type), object);
    case 'json': {
      const schema = schemaFor(format.dialect, type);
      const { apiVersion: _version, kind: _kind, ...rest } = jsonObject(sortMaps(object, schema));
      const { apiVersion, kind } = type;
      return Buffer.from(printJson(isTyped(type) ? { kind, apiVersion, ...rest } : rest));
    }
  }
}

/** The schema of a built-in kind of any release. */
function schemaFor(dialect: Dialect, type: ObjectType): Schema | undefined {
  if (!isTyped(type)) return schemaOf('meta.v1.WatchEvent');
  return schemaOfKind(dialect, type) ?? findBuiltinKind(dialect, type)?.version.schema;
}

/** Converts an object, or each item of a list, to another version. */
function convertVersion(
  object: JsonObject,
  target: { dialect: Dialect; outputVersion: string },
): JsonObject {
  const { dialect, outputVersion } = target;
  const type = typeOf(object);
  const listed = itemsOfList(object);
  if (listed !== undefined) {
    const items = listed.filter(isObject).map((item) => convertVersion(item, target));
    return { apiVersion: 'v1', kind: 'List', metadata: {}, items };
  }
  const from = findBuiltinKind(dialect, type);
  if (from === undefined && type.apiVersion === outputVersion) return object;
  try {
    if (from !== undefined) return convertToVersion(object, { dialect, from, outputVersion });
  } catch (error) {
    const isUnsuitable = error instanceof UnsuitableVersionError;
    if (!isUnsuitable) {
      throw new ConvertError(`the object cannot be converted: ${errorText(error)}`);
    }
  }
  const [to, fromVersion] = [outputVersion, type.apiVersion].map((version) =>
    JSON.stringify(version),
  );
  throw new ConvertError(
    `${type.kind} in version ${fromVersion} cannot be converted to version ${to}`,
  );
}
