import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { type FlagSpec, type Flags, parseFlags } from '../flags.ts';
import { CliError } from '../io.ts';
import { type ConvertForm, type ConvertOptions, convertForms, convertObject } from './convert.ts';

/** Flags of `wheelhouse convert`. */
export const convertFlags: readonly FlagSpec[] = [
  { name: 'from', type: 'text', help: 'Form of the input: json, yaml, protobuf, cbor' },
  { name: 'to', type: 'text', help: 'Form of the output: json, yaml, protobuf, cbor' },
  { name: 'dialect', type: 'text', help: 'Dialect of group names: svc (default) or kubernetes' },
  { name: 'output-version', type: 'text', help: 'apiVersion of the output, of the same group' },
  { name: 'help', short: 'h', type: 'boolean', help: 'Show help' },
];

/** More than any object the server takes, and little enough to hold. */
const inputBytesMax = 64 * 1024 * 1024;

/** What `wheelhouse convert` reads and writes. */
export interface ConvertIo {
  readonly input: AsyncIterable<Buffer | string>;
  write(bytes: Buffer | string): Promise<void>;
}

/** Runs `wheelhouse convert`: one object from the input to the output. Rejects with one line. */
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

/** Checks a form given by a flag. Throws CliError. */
export function formOf(flag: string, value: string): ConvertForm {
  const form = convertForms.find((one) => one === value);
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
  return `Usage:\n  wheelhouse convert [flags] < object > object\n\nFlags:\n${lines.join('')}`;
}
